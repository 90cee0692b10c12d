//! A gzip bomb.

/// Bits, the lowest first, as deflate packs them.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        self.pending |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Huffman codes are packed from their highest bit.
    fn push_code(&mut self, code: u32, count: u32) {
        let reversed = code.reverse_bits() >> (32 - count);
        self.push(reversed, count);
    }
}

/// A gzip stream that unpacks to about so many zeros: one literal zero, then "the last byte, 258
/// times again" in 13 bits each. The checksum at the end is left out: whoever gets that far has
/// already unpacked it all.
pub(super) fn gzip_of_zeros(bytes: usize) -> Vec<u8> {
    let mut bits = Bits {
        bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255],
        ..Bits::default()
    };
    // The last block, with fixed codes.
    bits.push(1, 1);
    bits.push(1, 2);
    bits.push_code(0x30, 8);
    for _ in 0..bytes / 258 {
        // Length 258 is the symbol 285, distance 1 the symbol 0.
        bits.push_code(0b1100_0101, 8);
        bits.push_code(0, 5);
    }
    bits.push_code(0, 7);
    bits.push(0, 7);
    bits.bytes
}
