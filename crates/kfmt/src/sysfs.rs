//! Small values in files of sysfs and procfs: numbers, flags, and those with a special value for "unknown".

use ringwise_model::{NodeId, NodeMemory};

use crate::ParseError;

const WHAT: &str = "sysfs value";

fn number<T: std::str::FromStr>(text: &str, expected: &'static str) -> Result<T, ParseError> {
    let body = text.trim();
    let digits = body.strip_prefix('-').unwrap_or(body);
    // FromStr alone would accept a leading plus.
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseError::new(WHAT, body, expected));
    }
    body.parse().map_err(|_| ParseError::new(WHAT, body, expected))
}

/// A file with one decimal number of 32 bits; white space around it is ignored.
pub fn parse_u32(text: &str) -> Result<u32, ParseError> {
    number(text, "a number from 0 to 4294967295")
}

/// A file with one signed decimal number of 32 bits; white space around it is ignored.
pub fn parse_i32(text: &str) -> Result<i32, ParseError> {
    number(text, "a signed 32-bit number")
}

/// A file with one decimal number of 64 bits; white space around it is ignored.
pub fn parse_u64(text: &str) -> Result<u64, ParseError> {
    number(text, "an unsigned 64-bit number")
}

/// `1`, `Y`, `y`, `yes`, `on` or `0`, `N`, `n`, `no`, `off`.
pub fn parse_bool(text: &str) -> Result<bool, ParseError> {
    match text.trim() {
        "1" | "Y" | "y" | "yes" | "on" => Ok(true),
        "0" | "N" | "n" | "no" | "off" => Ok(false),
        other => Err(ParseError::new(WHAT, other, "1, 0, Y, N, yes, no, on or off")),
    }
}

/// `numa_node`, `/proc/irq/N/node`: −1 means that the firmware does not report it, which is not node 0.
pub fn parse_numa_node(text: &str) -> Result<Option<NodeId>, ParseError> {
    let expected = "a node number or -1";
    match number::<i32>(text, expected)? {
        -1 => Ok(None),
        n => u32::try_from(n).map(|n| Some(NodeId(n))).map_err(|_| ParseError::new(WHAT, text.trim(), expected)),
    }
}

/// `speed` of an interface in Mb/s; −1 (or the same 32 bits without sign) means unknown.
pub fn parse_speed(text: &str) -> Result<Option<u32>, ParseError> {
    let expected = "a speed in Mb/s or -1";
    match number::<i64>(text, expected)? {
        -1 | 0xffff_ffff => Ok(None),
        n => u32::try_from(n).map(Some).map_err(|_| ParseError::new(WHAT, text.trim(), expected)),
    }
}

/// `current_link_speed` and `max_link_speed` of a PCI function: megatransfers per second of one lane. `None`: the
/// kernel does not know.
pub fn parse_pcie_speed(text: &str) -> Result<Option<u32>, ParseError> {
    let bad = || ParseError::new(WHAT, text.trim(), "a speed such as 8.0 GT/s PCIe");
    let Some((number, _)) = text.trim().split_once(" GT/s") else {
        return if text.trim().starts_with("Unknown") { Ok(None) } else { Err(bad()) };
    };
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| s.len() <= 4 && !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(tenths) || tenths.len() > 1 {
        return Err(bad());
    }
    let n = |s: &str| s.parse::<u32>().map_err(|_| bad());
    Ok(Some(n(whole)? * 1000 + n(tenths)? * 100))
}

/// `module/pcie_aspm/parameters/policy`: the word in brackets (`[default] performance powersave`).
pub fn parse_choice(text: &str) -> Result<String, ParseError> {
    let found = text.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    found.map(str::to_string).ok_or_else(|| ParseError::new(WHAT, text.trim(), "one choice of several in brackets"))
}

/// `node/nodeN/distance`: to each online node, in ascending order of their numbers.
pub fn parse_distances(text: &str) -> Result<Vec<u32>, ParseError> {
    let expected = "distances such as 10 21";
    let list: Vec<u32> = text.split_whitespace().map(|w| number(w, expected)).collect::<Result<_, _>>()?;
    if list.is_empty() { Err(ParseError::new("node distance", text, expected)) } else { Ok(list) }
}

/// `node/nodeN/meminfo` (drivers/base/node.c, node_read_meminfo): lines such as `Node 0 MemTotal: 16384 kB`.
pub fn parse_node_memory(text: &str) -> Result<NodeMemory, ParseError> {
    let found = text.lines().find_map(|l| {
        let mut words = l.split_whitespace().skip(2);
        (words.next() == Some("MemTotal:")).then(|| words.collect::<Vec<_>>())
    });
    let bytes = match found.as_deref() {
        Some([n, "kB"]) => n.parse::<u64>().ok().and_then(|n| n.checked_mul(1024)),
        _ => None,
    };
    let wrong = || {
        ParseError::new("node memory", found.unwrap_or_default().join(" "), "a line such as Node 0 MemTotal: 16384 kB")
    };
    Ok(NodeMemory { total_bytes: bytes.ok_or_else(wrong)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(parse_u32("4096\n").unwrap(), 4096);
        assert_eq!(parse_i32(" -1\n").unwrap(), -1);
        assert_eq!(parse_u64("18446744073709551615").unwrap(), u64::MAX);
        for bad in ["", "\n", "+1", "0x1", "1 2", "1\0", "--1", "-", "４", "99999999999999999999999"] {
            assert!(parse_u64(bad).is_err() && parse_i32(bad).is_err() && parse_u32(bad).is_err(), "{bad:?}");
        }
        assert!(parse_u32("-1").is_err());
    }

    #[test]
    fn flags() {
        assert!(parse_bool("1\n").unwrap() && parse_bool("Y\n").unwrap() && parse_bool("yes").unwrap());
        assert!(!parse_bool("0").unwrap() && !parse_bool("N").unwrap());
        assert!(parse_bool("").is_err() && parse_bool("2").is_err());
    }

    #[test]
    fn not_known_is_not_zero() {
        assert_eq!(parse_numa_node("-1\n").unwrap(), None);
        assert_eq!(parse_numa_node("0\n").unwrap(), Some(NodeId(0)));
        assert!(parse_numa_node("-2").is_err());
        assert_eq!(parse_speed("-1\n").unwrap(), None);
        assert_eq!(parse_speed("4294967295").unwrap(), None);
        assert_eq!(parse_speed("25000\n").unwrap(), Some(25_000));
        assert!(parse_speed("-5").is_err());
    }

    #[test]
    fn pcie_and_choices() {
        assert_eq!(parse_pcie_speed("2.5 GT/s PCIe\n").unwrap(), Some(2500));
        assert_eq!(parse_pcie_speed("16.0 GT/s PCIe").unwrap(), Some(16_000));
        assert_eq!(parse_pcie_speed("8 GT/s").unwrap(), Some(8000));
        assert_eq!(parse_pcie_speed("Unknown").unwrap(), None);
        for bad in ["", "x GT/s", "1.25 GT/s", ".5 GT/s", "99999999 GT/s", "5 Gb/s"] {
            assert!(parse_pcie_speed(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_choice("default performance [powersave] x\n").unwrap(), "powersave");
        assert!(parse_choice("default").is_err() && parse_choice("[a").is_err());
    }

    #[test]
    fn memory_of_a_node() {
        let text = "Node 1 MemTotal:       16777216 kB\nNode 1 MemFree:         1024 kB\nNode 1 MemUsed: 1 kB\n";
        let memory = NodeMemory { total_bytes: 16 << 30 };
        assert_eq!(parse_node_memory(text).unwrap(), memory);
        for bad in ["", "Node 1 MemFree: 5 kB", "Node 1 MemTotal: 5 MB", "Node 1 MemTotal: x kB"] {
            assert!(parse_node_memory(bad).is_err(), "{bad}");
        }
        let huge = text.replace("16777216", "18446744073709551615");
        assert!(parse_node_memory(&huge).is_err(), "more than 64 bits");
    }

    #[test]
    fn distances() {
        assert_eq!(parse_distances("10 21 \n").unwrap(), [10, 21]);
        assert!(parse_distances("\n").is_err() && parse_distances("10 x").is_err());
    }
}
