//! The checksum of each line of a journal, which is the last member of its JSON object: `,"crc32":"0a1b2c3d"}`. It covers the
//! line without that member. CRC-32 detects every single flipped bit, and every burst of up to 32 bits.

/// Length of the member, including its quotes and the closing brace.
const LENGTH: usize = r#","crc32":"00000000"}"#.len();
const KEY: &[u8] = br#","crc32":""#;

/// The result of checking a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    Right,
    Wrong,
    /// The line has none.
    None,
}

/// Adds the checksum to a JSON object with at least one member.
pub(crate) fn add(mut object: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&object);
    object.pop();
    object.extend_from_slice(KEY);
    object.extend_from_slice(format!("{sum:08x}\"}}").as_bytes());
    object
}

pub(crate) fn check(line: &[u8]) -> Sum {
    let Some((object, member)) = line.split_at_checked(line.len().wrapping_sub(LENGTH)) else { return Sum::None };
    let Some(sum) = member.strip_prefix(KEY).and_then(|m| m.strip_suffix(b"\"}")) else { return Sum::None };
    let mut of = crc32fast::Hasher::new();
    of.update(object);
    of.update(b"}");
    if sum == format!("{:08x}", of.finalize()).as_bytes() { Sum::Right } else { Sum::Wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_found() {
        let line = add(br#"{"record":"step","setting":{"rfs":4096}}"#.to_vec());
        assert_eq!(check(&line), Sum::Right);
        let whole: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(whole["setting"]["rfs"], 4096);
        for bit in 0..line.len() * 8 {
            let mut damaged = line.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(check(&damaged), Sum::Right, "bit {bit}");
        }
        assert_eq!(check(b"{}"), Sum::None);
        assert_eq!(check(b""), Sum::None);
    }
}
