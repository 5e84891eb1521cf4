//! CRC-32C (Castagnoli), the checksum that Cloud Storage keeps of every object.

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "the index is below 256")]
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// The checksum of these bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let step = |value: u32, byte: &u8| TABLE[usize::from(value.to_le_bytes()[0] ^ byte)] ^ (value >> 8);
    !bytes.iter().fold(!0, step)
}

/// As Cloud Storage writes it: four bytes, most significant first, in base 64.
pub fn crc32c_text(value: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // 32 bits are five digits of six and one of two, which four zeros fill up.
    let bits = u64::from(value) << 4;
    let digit = |place: u32| char::from(DIGITS[usize::from(((bits >> (6 * (5 - place))) & 63).to_le_bytes()[0])]);
    (0..6).map(digit).chain("==".chars()).collect()
}

/// The value of such a text; `None`: it is none.
pub(super) fn parse(text: &str) -> Option<u32> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits = text.strip_suffix("==").filter(|digits| digits.len() == 6)?;
    let bits = digits.bytes().try_fold(0_u64, |bits, c| Some(bits << 6 | u64::from(digit(c)?)))?;
    u32::try_from(bits >> 4).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 3720, B.4, and the check value of the catalogue of CRCs.
    #[test]
    fn known_values() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn the_text_is_base_64() {
        for (value, text) in [(0, "AAAAAA=="), (0xe306_9283, "4waSgw=="), (u32::MAX, "/////w==")] {
            assert_eq!(crc32c_text(value), text);
            assert_eq!(parse(text), Some(value));
        }
        for text in ["", "4waSgw", "4waSg===", "4waS!w==", "4waSgwAA=="] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
