//! `/proc/cmdline`: which CPUs are isolated by options of the kernel (kernel/sched/isolation.c).

use ringwise_model::{CpuId, CpuSet};

use crate::{ParseError, cpulist};

/// `isolcpus=[flag,…]LIST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolcpus {
    /// `nohz`, `domain`, `managed_irq`, as written. Empty: the kernel assumes `domain`.
    pub flags: Vec<String>,
    /// CPUs of the list after the flags, in the format of [`crate::cpulist`].
    pub cpus: CpuSet,
}

/// Words of the command line; white space within double quotes does not split, the quotes are removed.
pub fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut word, mut quoted, mut any) = (String::new(), false, false);
    for c in text.trim().chars() {
        match c {
            '"' => {
                quoted = !quoted;
                any = true;
            }
            c if c.is_whitespace() && !quoted => {
                if any {
                    out.push(std::mem::take(&mut word));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    if any {
        out.push(word);
    }
    out
}

/// Value of the first `name=value`; the empty text for `name` without a value. Words after `--` belong to init.
pub fn value(text: &str, name: &str) -> Option<String> {
    words(text).into_iter().take_while(|w| w != "--").find_map(|w| match w.split_once('=') {
        Some((n, v)) if n == name => Some(v.to_string()),
        None if w == name => Some(String::new()),
        _ => None,
    })
}

/// The first `isolcpus=`, if there is one. `last` is the highest possible CPU, for lists that contain `N`.
pub fn isolcpus(text: &str, last: Option<CpuId>) -> Result<Option<Isolcpus>, ParseError> {
    let Some(v) = value(text, "isolcpus") else { return Ok(None) };
    let mut rest = v.as_str();
    let mut flags = Vec::new();
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, later) = rest.split_once(',').unwrap_or((rest, ""));
        flags.push(flag.to_string());
        rest = later;
    }
    Ok(Some(Isolcpus { flags, cpus: list("isolcpus=", rest, last)? }))
}

/// CPUs of the first `nohz_full=`, if there is one.
pub fn nohz_full(text: &str, last: Option<CpuId>) -> Result<Option<CpuSet>, ParseError> {
    value(text, "nohz_full").map(|v| list("nohz_full=", &v, last)).transpose()
}

/// A list that may use `N` for the last CPU and `all` (lib/bitmap-str.c).
fn list(what: &'static str, text: &str, last: Option<CpuId>) -> Result<CpuSet, ParseError> {
    if !text.contains(['N', 'n', 'a', 'A']) {
        return cpulist::parse(text).map_err(|e| ParseError { what, ..e });
    }
    let Some(last) = last else {
        return Err(ParseError::new(what, text, "CPU numbers (N and all need the number of CPUs)"));
    };
    let plain: Vec<String> = text
        .split(',')
        .map(|part| {
            let lower = part.to_ascii_lowercase();
            let full = match lower.strip_prefix("all") {
                Some(rest) => format!("0-N{rest}"),
                None => part.to_string(),
            };
            full.replace(['N', 'n'], &last.to_string())
        })
        .collect();
    cpulist::parse(&plain.join(",")).map_err(|e| ParseError { what, ..e })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(s: &str) -> CpuSet {
        cpulist::parse(s).unwrap()
    }

    #[test]
    fn finds_the_isolated() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 quiet isolcpus=managed_irq,domain,2-5 nohz_full=4-5\n";
        let i = isolcpus(line, None).unwrap().unwrap();
        assert_eq!((i.flags, i.cpus), (vec!["managed_irq".to_string(), "domain".to_string()], set("2-5")));
        assert_eq!(nohz_full(line, None).unwrap(), Some(set("4-5")));
        assert_eq!(isolcpus("quiet", None).unwrap(), None);
        assert_eq!(isolcpus("isolcpus=2,4-5", None).unwrap().unwrap().flags.len(), 0);
        assert_eq!(isolcpus("isolcpus=nohz", None).unwrap().unwrap().cpus, CpuSet::new());
    }

    #[test]
    fn last_cpu_and_all() {
        let last = Some(CpuId(7));
        assert_eq!(nohz_full("nohz_full=2-N", last).unwrap(), Some(set("2-7")));
        assert_eq!(nohz_full("nohz_full=all", last).unwrap(), Some(set("0-7")));
        assert_eq!(nohz_full("nohz_full=all:1/2", last).unwrap(), Some(set("0,2,4,6")));
        assert!(nohz_full("nohz_full=2-N", None).is_err());
    }

    #[test]
    fn quotes_and_the_words_of_init() {
        assert_eq!(words("a=\"b c\" \"d=e f\"  g\n"), ["a=b c", "d=e f", "g"]);
        assert_eq!(value("init=/bin/sh -- isolcpus=1", "isolcpus"), None);
        assert_eq!(value("nohz_full", "nohz_full").as_deref(), Some(""));
        assert_eq!(value("xisolcpus=1 isolcpus=2 isolcpus=3", "isolcpus").as_deref(), Some("2"));
    }

    #[test]
    fn refuses_the_rest() {
        for bad in ["isolcpus=2-x", "isolcpus=5-2", "isolcpus=domain,\0", "isolcpus=2-xan"] {
            assert!(isolcpus(bad, Some(CpuId(7))).is_err(), "{bad:?}");
        }
    }
}
