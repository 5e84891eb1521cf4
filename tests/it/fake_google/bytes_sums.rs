//! The checksums that Cloud Storage tells: CRC-32C and MD5.

/// CRC-32C (Castagnoli).
pub fn crc32c(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32).map(|byte| (0..8).fold(byte, |crc, _| step(crc))).collect();
    !bytes.iter().fold(u32::MAX, |crc, byte| (crc >> 8) ^ table[((crc ^ u32::from(*byte)) & 0xff) as usize])
}

fn step(crc: u32) -> u32 {
    if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 }
}

/// How far MD5 rotates in each of its four rounds.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5 (RFC 1321).
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let constants = sines();
    let mut sums = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        let next = md5_block(sums, block, &constants);
        sums = [0, 1, 2, 3].map(|at| sums[at].wrapping_add(next[at]));
    }
    let mut out = [0; 16];
    for (place, sum) in out.chunks_exact_mut(4).zip(sums) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    out
}

fn md5_block(mut s: [u32; 4], block: &[u8], constants: &[u32]) -> [u32; 4] {
    let word = |at: usize| u32::from_le_bytes(block[at * 4..at * 4 + 4].try_into().expect("four bytes"));
    for at in 0..64 {
        let [a, b, c, d] = s;
        let (mixed, index) = match at / 16 {
            0 => ((b & c) | (!b & d), at),
            1 => ((d & b) | (!d & c), (5 * at + 1) % 16),
            2 => (b ^ c ^ d, (3 * at + 5) % 16),
            _ => (c ^ (b | !d), (7 * at) % 16),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(constants[at]).wrapping_add(word(index));
        s = [d, b.wrapping_add(sum.rotate_left(TURNS[at / 16][at % 4])), b, c];
    }
    s
}

/// The whole parts of 2^32 times the sines of 1 to 64.
fn sines() -> Vec<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32, and not negative")]
    (1..=64).map(|at| (libm::sin(f64::from(at)).abs() * 4_294_967_296.0) as u32).collect()
}

#[test]
fn checksums_are_those_of_their_documents() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(b""), 0);
    let hex = |bytes: &[u8]| md5(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(hex(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
    let long = b"12345678901234567890123456789012345678901234567890123456789012345678901234567890";
    assert_eq!(hex(long), "57edf4a22be3c955ac49da2e2107b67a");
}
