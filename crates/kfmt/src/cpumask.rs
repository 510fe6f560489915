//! CPU masks: hexadecimal groups of 32 bits with commas, the highest group first
//! (`rps_cpus`, `xps_cpus`, `smp_affinity`). Kernel side: lib/bitmap-str.c, `bitmap_parse` and `%*pb`.

use ringwise_model::cpuset::MAX_CPU;
use ringwise_model::{CpuId, CpuSet};

use crate::{ParseError, cpulist};

const WHAT: &str = "CPU mask";
const MAX_GROUPS: usize = (MAX_CPU as usize + 1) / 32;

/// Reads a mask of at most 65,536 bits. White space around it, one trailing NUL and `0x` before a group are ignored. An
/// empty group between commas means 32 zero bits, as other tools print it (`0xffff,,0xffff`); the kernel never prints
/// one. The empty text is an error, because no mask file is empty.
pub fn parse(text: &str) -> Result<CpuSet, ParseError> {
    let body = cpulist::without_terminator(text).trim();
    if body.is_empty() {
        return Err(ParseError::new(WHAT, text, "hexadecimal groups such as 00000000,0000000f"));
    }
    if body.len() > MAX_GROUPS * 11 {
        return Err(ParseError::new(WHAT, body, "at most 65,536 bits"));
    }
    let mut set = CpuSet::new();
    for (i, group) in body.rsplit(',').enumerate() {
        if i >= MAX_GROUPS {
            return Err(ParseError::new(WHAT, body, "at most 65,536 bits"));
        }
        let digits = group.strip_prefix("0x").or_else(|| group.strip_prefix("0X")).unwrap_or(group);
        if digits.is_empty() && digits.len() == group.len() {
            continue;
        }
        if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ParseError::new(WHAT, group, "1 to 8 hexadecimal digits between commas"));
        }
        let Ok(mut bits) = u32::from_str_radix(digits, 16) else {
            return Err(ParseError::new(WHAT, group, "1 to 8 hexadecimal digits between commas"));
        };
        while bits != 0 {
            set.insert(CpuId(i as u32 * 32 + bits.trailing_zeros()));
            bits &= bits - 1;
        }
    }
    Ok(set)
}

/// Mask text that `bitmap_parse` accepts. With `nr_cpus` (the kernel's `nr_cpu_ids`: possible CPUs), it is exactly what
/// the kernel prints, including zero groups. Without, it is the shortest form: no leading zeros in the first group,
/// eight digits in each following group, `0` for the empty set.
///
/// A CPU at or above `nr_cpus` is printed too; the kernel then answers EOVERFLOW.
pub fn format(set: &CpuSet, nr_cpus: Option<u32>) -> String {
    let needed = set.last().map_or(1, |c| c.0 + 1);
    let bits = needed.max(nr_cpus.unwrap_or(1));
    let mut groups = vec![0u32; bits.div_ceil(32) as usize];
    for c in set.iter() {
        groups[c.0 as usize / 32] |= 1 << (c.0 % 32);
    }
    let mut out = String::new();
    for (i, g) in groups.iter().enumerate().rev() {
        if out.is_empty() {
            let width = if nr_cpus.is_some() { ((bits - 1) % 32 / 4 + 1) as usize } else { 1 };
            out = format!("{g:0width$x}");
        } else {
            out.push_str(&format!("{g:08x}"));
        }
        if i > 0 {
            out.push(',');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpulist;

    fn list(s: &str) -> CpuSet {
        cpulist::parse(s).unwrap()
    }

    #[test]
    fn reads_what_the_kernel_prints() {
        for (mask, cpus) in [
            ("0", ""),
            ("00\n", ""),
            ("f", "0-3"),
            ("ff\n", "0-7"),
            ("00000000,00000002", "1"),
            ("00000001,00000000", "32"),
            ("ffff,ffffffff,ffffffff\n", "0-79"),
            ("80000000,00000000,00000000,00000001", "0,127"),
            ("0xffff,,0xffff", "0-15,64-79"),
            (",1", "0"),
        ] {
            assert_eq!(parse(mask).unwrap(), list(cpus), "{mask}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for bad in
            ["", "\n", "\0", "f\0\0", "0-3", "g", "123456789", "ffffffffffffffff", "1 2", "0x", "-1", "+1", "1,+1"]
        {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(parse(&"0,".repeat(5000)).is_err());
    }

    #[test]
    fn prints_the_kernels_form() {
        assert_eq!(format(&list("0-3"), None), "f");
        assert_eq!(format(&list(""), None), "0");
        assert_eq!(format(&list("32"), None), "1,00000000");
        assert_eq!(format(&list("0-79"), None), "ffff,ffffffff,ffffffff");
        assert_eq!(format(&list("3"), Some(4)), "8");
        assert_eq!(format(&list("1"), Some(8)), "02");
        assert_eq!(format(&list("1"), Some(64)), "00000000,00000002");
        assert_eq!(format(&list("1"), Some(65)), "0,00000000,00000002");
        assert_eq!(format(&list("1"), Some(72)), "00,00000000,00000002");
        assert_eq!(format(&list(""), Some(16)), "0000");
        assert_eq!(format(&list("511"), Some(512)).len(), 16 * 9 - 1);
    }

    #[test]
    fn the_largest_mask_is_read_back() {
        let set = list("0,65535");
        assert_eq!(parse(&format(&set, None)).unwrap(), set);
    }
}
