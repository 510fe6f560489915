//! The Toeplitz hash of "RSS Hashing Functions" (Microsoft): the XOR, over all set bits of the input, of the 32 bits of
//! the key that begin at that bit.

/// The longest input: two IPv6 addresses and two ports.
pub const LONGEST: usize = 36;

/// The hash, prepared for many inputs: each byte of the input is looked up in the table of its position. A table has
/// 1 KiB, so the twelve tables of an IPv4 flow fit into the first-level cache; tables for two bytes each would not.
#[derive(Debug, Clone)]
pub struct Toeplitz {
    tables: Vec<[u32; 256]>,
}

impl Toeplitz {
    /// Prepares the tables for a key. Bits beyond the end of the key count as zero, as in devices whose inputs are
    /// longer than their keys.
    pub fn new(key: &[u8]) -> Self {
        let tables = (0..LONGEST).map(|at| {
            let windows: [u32; 8] = std::array::from_fn(|bit| window(key, at * 8 + bit));
            let mut table = [0u32; 256];
            for value in 1..256usize {
                // The entry without the lowest set bit has been computed before.
                let low = value.trailing_zeros() as usize;
                table[value] = table[value & (value - 1)] ^ windows[7 - low];
            }
            table
        });
        Self { tables: tables.collect() }
    }

    /// The hash of `input`, of which bytes beyond [`LONGEST`] are ignored.
    pub fn hash(&self, input: &[u8]) -> u32 {
        self.tables.iter().zip(input).fold(0, |h, (table, byte)| h ^ table[usize::from(*byte)])
    }
}

/// 32 bits of the key from this bit on.
fn window(key: &[u8], bit: usize) -> u32 {
    let byte = |i: usize| u64::from(key.get(bit / 8 + i).copied().unwrap_or(0));
    let five = (0..5).fold(0u64, |w, i| w << 8 | byte(i));
    (five >> (8 - bit % 8)) as u32
}

/// The hash by its definition, bit by bit. Tests compare the tables with it.
pub fn bit_by_bit(key: &[u8], input: &[u8]) -> u32 {
    let mut hash = 0;
    for (i, byte) in input.iter().enumerate() {
        for bit in 0..8 {
            if byte & (0x80 >> bit) != 0 {
                hash ^= window(key, i * 8 + bit);
            }
        }
    }
    hash
}

/// Whether both directions of every flow have the same hash because the key repeats every 16 bits.
pub fn is_symmetric(key: &[u8]) -> bool {
    key.len() >= 4 && key.chunks_exact(2).all(|c| c == &key[..2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_the_key() {
        let key = [0x6d, 0x5a, 0x56, 0xda, 0x25];
        assert_eq!(window(&key, 0), 0x6d5a_56da);
        assert_eq!(window(&key, 1), 0xdab4_adb4);
        assert_eq!(window(&key, 8), 0x5a56_da25);
        assert_eq!(window(&key, 36), 0x5000_0000);
        assert_eq!(window(&key, 400), 0);
    }

    #[test]
    fn a_key_of_16_bits_over_and_over() {
        assert!(is_symmetric(&[0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a]));
        assert!(!is_symmetric(&[0x6d, 0x5a, 0x56, 0xda]));
    }
}
