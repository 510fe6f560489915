//! CPU lists: `0-3,8` (`smp_affinity_list`, `cpulist`, `online`, …).

use ringwise_model::CpuSet;

use crate::ParseError;

const WHAT: &str = "CPU list";
/// Maximum number of CPUs that all ranges of one list name together. The kernel prints disjoint ranges (at most 65,536
/// CPUs); a text that repeats huge ranges would only waste time.
const MAX_NAMED: u64 = 1 << 20;

/// Some kernels (5.15 release candidates on arm64) include the terminating NUL of `cpulist` and `cpumap` in the file. A
/// NUL alone is not a list.
pub(crate) fn without_terminator(text: &str) -> &str {
    text.strip_suffix('\0').filter(|t| !t.is_empty()).unwrap_or(text)
}

/// The kernel's list, also with `first-last:used/group`. Surrounding white space and one trailing NUL are ignored. The
/// empty text is the empty set. CPU numbers go up to [`ringwise_model::cpuset::MAX_CPU`].
pub fn parse(text: &str) -> Result<CpuSet, ParseError> {
    let text = without_terminator(text);
    let mut named = 0u64;
    for part in text.trim().split(',') {
        if let Some((first, last)) = part.split(':').next().and_then(|r| r.split_once('-'))
            && let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
        {
            named += u64::from(last.saturating_sub(first));
        }
        if named > MAX_NAMED {
            return Err(ParseError::new(WHAT, text, "ranges that do not overlap"));
        }
    }
    text.parse().map_err(|e: ringwise_model::cpuset::BadCpuList| {
        let rest = text.get(e.at..).unwrap_or(text);
        ParseError::new(WHAT, rest, e.why)
    })
}

/// The kernel's shortest list; the empty set gives the empty text.
pub fn format(set: &CpuSet) -> String {
    set.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_prints() {
        assert_eq!(format(&parse("0-3,8\n").unwrap()), "0-3,8");
        assert_eq!(format(&parse("0-127,256-383\n").unwrap()), "0-127,256-383");
        assert_eq!(parse("\n").unwrap(), CpuSet::new());
        assert_eq!(parse("0-7:2/4").unwrap(), parse("0-1,4-5").unwrap());
    }

    /// 5.15 release candidates on arm64 include the terminator of `cpulist` and `cpumap` in the file.
    #[test]
    fn one_trailing_nul_is_passed_over() {
        assert_eq!(parse("0-3\n\0").unwrap(), parse("0-3").unwrap());
        assert_eq!(parse("0-3\0").unwrap(), parse("0-3").unwrap());
        assert_eq!(parse("\n\0").unwrap(), CpuSet::new());
        assert_eq!(crate::cpumask::parse("00000000,0000000f\n\0").unwrap(), parse("0-3").unwrap());
    }

    #[test]
    fn refuses_the_rest() {
        for bad in ["1,,2", "3-1", "0x3", "1 2", "0\0\0", "0\x001", "-1", "99999999", "0-3-5", "\0"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let e = parse("0-3,x").unwrap_err();
        assert_eq!((e.what, e.found.as_str()), ("CPU list", "x"));
    }

    #[test]
    fn repeated_huge_ranges_cost_nothing() {
        let text = "0-65535,".repeat(100_000) + "0";
        assert!(parse(&text).is_err());
    }
}
