//! Just enough of protobuf's wire format to speak Hadoop's RPC: varints and length-delimited fields.
//! Must not know any message.

/// A message being written, field by field, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Integers and enumerations, as they stand on the wire (negative ones in two's complement of 64 bits).
    Varint(u64),
    /// Texts, bytes and messages.
    Bytes(&'a [u8]),
    /// Eight or four bytes of which nothing here makes use.
    Fixed,
}

/// Bytes that are no protobuf: cut short, or a wire type that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protobuf message")]
pub struct Malformed;

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an integer, a truth value or an enumeration.
    pub fn varint(mut self, field: u32, value: u64) -> Self {
        put_varint(&mut self.0, u64::from(field) << 3);
        put_varint(&mut self.0, value);
        self
    }

    /// Adds an `int32` or `int64`: a negative one takes ten bytes.
    pub fn int(self, field: u32, value: i64) -> Self {
        self.varint(field, value.cast_unsigned())
    }

    /// Adds a `sint32` or `sint64`: zigzag.
    pub fn sint(self, field: u32, value: i64) -> Self {
        self.varint(field, ((value << 1) ^ (value >> 63)).cast_unsigned())
    }

    /// Adds bytes or a text.
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        put_varint(&mut self.0, u64::from(field) << 3 | 2);
        put_delimited(&mut self.0, value.as_ref());
        self
    }

    /// Adds a message.
    pub fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// The message without its length.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The message after its length, as Hadoop strings messages together.
    pub fn delimited(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + 5);
        put_delimited(&mut out, &self.0);
        out
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn put_delimited(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads messages and their fields from front to back.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all is read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next length and as many bytes.
    pub fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    /// The next field: its number and what it holds; `None` at the end.
    pub fn field(&mut self) -> Result<Option<(u64, Value<'a>)>, Malformed> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => Value::Bytes(self.delimited()?),
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed),
        };
        Ok(Some((tag >> 3, value)))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }
}
