//! Hash fields of a flow type: the kernel's mask (`RXH_*`, linux/ethtool.h) ⇄ ethtool's letters.

use crate::ParseError;

/// Bit and letter, in the order in which they are written.
const LETTERS: [(u32, char); 10] = [
    (1, 'm'),  // RXH_L2DA
    (2, 'v'),  // RXH_VLAN
    (3, 't'),  // RXH_L3_PROTO
    (4, 's'),  // RXH_IP_SRC
    (5, 'd'),  // RXH_IP_DST
    (6, 'f'),  // RXH_L4_B_0_1: source port
    (7, 'n'),  // RXH_L4_B_2_3: destination port
    (8, 'e'),  // RXH_GTP_TEID
    (9, 'l'),  // RXH_IP6_FL, since 6.18
    (31, 'r'), // RXH_DISCARD
];

/// `sdfn` for source, destination and both ports; bits without a letter follow as `+0x400`. The text is empty if no
/// field is hashed.
pub fn letters(mask: u64) -> String {
    let mut rest = mask;
    let mut out = String::new();
    for (bit, letter) in LETTERS {
        if mask & (1 << bit) != 0 {
            out.push(letter);
            rest &= !(1 << bit);
        }
    }
    if rest != 0 {
        out.push_str(&format!("+{rest:#x}"));
    }
    out
}

/// The mask for such a text.
pub fn mask(text: &str) -> Result<u64, ParseError> {
    let bad = || ParseError::new("hash fields", text, "letters of mvtsdfnelr, such as sdfn");
    let (letters, rest) = text.split_once('+').map_or((text, None), |(l, r)| (l, Some(r)));
    let mut out = match rest {
        Some(r) => r.strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok()).ok_or_else(bad)?,
        None => 0,
    };
    for c in letters.chars() {
        let (bit, _) = LETTERS.iter().find(|l| l.1 == c).ok_or_else(bad)?;
        out |= 1 << bit;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_masks() {
        for (m, text) in [
            (0x30, "sd"),
            (0xf0, "sdfn"),
            (0, ""),
            (0x06, "mv"),
            (0x8000_0000, "r"),
            (0x88, "tn"),
            (0x230, "sdl"),
            (0x430, "sd+0x400"),
        ] {
            assert_eq!(letters(m), text);
            assert_eq!(mask(text).unwrap(), m);
        }
        assert!(mask("sdx").is_err() && mask("sd+200").is_err());
    }
}
