//! FNV-1a distinguishes texts and values, with the same result on every machine and in every run. It is not
//! cryptographic: two texts with the same number can be constructed.

use std::hash::Hasher;

/// 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Fnv {
    /// A text and its length, so that two consecutive texts differ from a single one.
    pub fn text(&mut self, text: &str) {
        self.write(&(text.len() as u64).to_le_bytes());
        self.write(text.as_bytes());
    }
}

/// 32 bits.
pub fn of_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the algorithm's authors (draft-eastlake-fnv, test vectors).
    #[test]
    fn as_its_authors_have_it() {
        let of = |text: &str| {
            let mut h = Fnv::default();
            h.write(text.as_bytes());
            h.finish()
        };
        assert_eq!(
            [of(""), of("a"), of("foobar")],
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
        let of = |text: &str| of_32(text.bytes());
        assert_eq!([of(""), of("a"), of("foobar")], [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }
}
