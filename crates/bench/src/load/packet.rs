//! The head of datagrams, and the opening of a TCP connection.

/// Size of the head of a datagram: `rwb` and its kind, tag, sequence number, microseconds; little-endian.
pub(super) const HEAD: usize = 16;
/// Size of the opening of a connection: `rwb` and its kind, size of a message.
pub(super) const OPENING: usize = 8;

const MAGIC: [u8; 3] = *b"rwb";

/// Kind of a request, which is answered.
pub(super) const REQUEST: u8 = 1;
/// Kind of an answer. It is never answered, so that a datagram cannot circulate between two ends.
pub(super) const ANSWER: u8 = 2;
/// Kind of a datagram that is counted.
pub(super) const ONE_WAY: u8 = 3;
/// The same kind during the warm-up.
pub(super) const WARM_UP: u8 = 4;
/// Kind of a request during the warm-up.
pub(super) const WARM_REQUEST: u8 = 5;

/// `tag` identifies a flow of a run; answers with another tag are foreign. `us`: intended time since the start, for
/// readers of a packet capture.
pub(super) fn put(bytes: &mut [u8], kind: u8, tag: u32, seq: u32, us: u32) {
    bytes[..3].copy_from_slice(&MAGIC);
    bytes[3] = kind;
    bytes[4..8].copy_from_slice(&tag.to_le_bytes());
    bytes[8..12].copy_from_slice(&seq.to_le_bytes());
    bytes[12..16].copy_from_slice(&us.to_le_bytes());
}

/// Kind, tag and sequence number; `None`: the datagram is not from this generator.
pub(super) fn get(bytes: &[u8]) -> Option<(u8, u32, u32)> {
    let head = bytes.get(..HEAD).filter(|h| h[..3] == MAGIC)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    Some((head[3], word(4), word(8)))
}

pub(super) fn opening(kind: u8, size: u32) -> [u8; OPENING] {
    let s = size.to_le_bytes();
    [MAGIC[0], MAGIC[1], MAGIC[2], kind, s[0], s[1], s[2], s[3]]
}

/// Kind and size; `None`: the connection is not from this generator.
pub(super) fn opened(bytes: [u8; OPENING]) -> Option<(u8, u32)> {
    (bytes[..3] == MAGIC).then(|| (bytes[3], u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_heads_are_distinguished_from_foreign_ones() {
        let mut b = [0; 20];
        put(&mut b, REQUEST, 0xdead_beef, 7, 9);
        assert_eq!(get(&b), Some((REQUEST, 0xdead_beef, 7)));
        assert_eq!(b[12], 9);
        assert_eq!(get(&b[..15]), None);
        b[0] ^= 1;
        assert_eq!(get(&b), None);
        assert_eq!(opened(opening(ONE_WAY, 70_000)), Some((ONE_WAY, 70_000)));
        assert_eq!(opened(*b"GET / HT"), None);
    }
}
