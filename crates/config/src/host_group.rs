//! Which hosts belong to a host group of the file.

use std::fmt;

use ringwise_model::{Fact, Snapshot};

use crate::words::glob_matches;

/// Selects hosts: all criteria must match; of a list, one element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostMatcher {
    /// Host names or patterns with `*` and `?`. Empty: any name.
    pub names: Vec<String>,
    /// The host has an interface with one of these drivers. Empty: any driver.
    pub drivers: Vec<String>,
    /// Number of CPUs that are present, offline ones included.
    pub cpu_count: Option<CountRange>,
    /// Number of NUMA nodes with CPUs; 1 on a kernel without NUMA.
    pub node_count: Option<CountRange>,
}

/// A number of things that is between two limits, which are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRange {
    /// At least so many.
    pub least: u32,
    /// At most so many. `u32::MAX`: there is no limit.
    pub most: u32,
}

/// Whether a host belongs to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostMatch {
    /// All criteria match.
    Yes,
    /// A criterion does not match.
    No,
    /// A criterion cannot be decided, so the group does not apply. The text names it, with the reason.
    Unknown(String),
}

impl CountRange {
    /// Parses `16`, `>= 16`, `> 15`, `<= 8`, `< 9` or `8-16`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| t.trim().parse::<u32>().ok();
        let text = text.trim();
        let range = if let Some(n) = text.strip_prefix(">=") {
            Self { least: number(n)?, most: u32::MAX }
        } else if let Some(n) = text.strip_prefix("<=") {
            Self { least: 0, most: number(n)? }
        } else if let Some(n) = text.strip_prefix('>') {
            Self { least: number(n)?.checked_add(1)?, most: u32::MAX }
        } else if let Some(n) = text.strip_prefix('<') {
            Self { least: 0, most: number(n)?.checked_sub(1)? }
        } else if let Some((from, to)) = text.split_once('-') {
            Self { least: number(from)?, most: number(to)? }
        } else {
            Self { least: number(text)?, most: number(text)? }
        };
        // Every host has at least one CPU and one node.
        (range.least <= range.most && range.most > 0).then_some(range)
    }

    fn contains(self, n: usize) -> bool {
        u32::try_from(n).is_ok_and(|n| self.least <= n && n <= self.most)
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (a, b) if a == b => write!(f, "{a}"),
            (a, u32::MAX) => write!(f, ">= {a}"),
            (0, b) => write!(f, "<= {b}"),
            (a, b) => write!(f, "{a}-{b}"),
        }
    }
}

/// `capture --redact` replaces host names with `host-name-1` and so on, which a pattern could match by accident.
fn is_pseudonym(name: &str) -> bool {
    let number = name.strip_prefix("host-name-");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn yes(is: bool) -> HostMatch {
    if is { HostMatch::Yes } else { HostMatch::No }
}

fn unknown(what: &str, why: impl fmt::Display) -> HostMatch {
    HostMatch::Unknown(format!("the {what} is unknown ({why})"))
}

impl HostMatcher {
    /// Whether this host belongs to the group. What is unknown never matches.
    pub fn matches(&self, s: &Snapshot) -> HostMatch {
        let all = [self.name_matches(s), self.driver_matches(s), self.cpus_match(s), self.nodes_match(s)];
        if all.contains(&HostMatch::No) {
            return HostMatch::No;
        }
        all.into_iter().find(|m| *m != HostMatch::Yes).unwrap_or(HostMatch::Yes)
    }

    fn name_matches(&self, s: &Snapshot) -> HostMatch {
        if self.names.is_empty() {
            return HostMatch::Yes;
        }
        match &s.host.name {
            Fact::Known(n) if is_pseudonym(n) => unknown("host name", "it was replaced in this capture"),
            Fact::Known(n) if n != "(none)" => {
                // Host names do not distinguish upper and lower case.
                let name = n.to_lowercase();
                yes(self.names.iter().any(|p| glob_matches(&p.to_lowercase(), &name)))
            }
            Fact::Known(_) | Fact::Absent => unknown("host name", "the host has none"),
            Fact::Unknown(why) => unknown("host name", why),
        }
    }

    fn driver_matches(&self, s: &Snapshot) -> HostMatch {
        let has = |d: &String| self.drivers.iter().any(|want| want.eq_ignore_ascii_case(d));
        if self.drivers.is_empty() || s.nics.iter().any(|n| n.driver.known().is_some_and(has)) {
            return HostMatch::Yes;
        }
        let unread = s.nics.iter().find_map(|n| Some((n.name(), n.driver.unread().filter(|_| n.has_own_queues())?)));
        unread.map_or(HostMatch::No, |(dev, why)| unknown(&format!("driver of {dev}"), why))
    }

    fn cpus_match(&self, s: &Snapshot) -> HostMatch {
        let Some(range) = self.cpu_count else { return HostMatch::Yes };
        match &s.topology.present {
            Fact::Known(cpus) => yes(range.contains(cpus.iter().count())),
            Fact::Absent => unknown("number of CPUs", "the kernel does not list them"),
            Fact::Unknown(why) => unknown("number of CPUs", why),
        }
    }

    fn nodes_match(&self, s: &Snapshot) -> HostMatch {
        let Some(range) = self.node_count else { return HostMatch::Yes };
        match &s.topology.nodes {
            Fact::Known(nodes) => yes(range.contains(nodes.values().filter(|n| !n.cpus.is_empty()).count())),
            Fact::Absent => yes(range.contains(1)),
            Fact::Unknown(why) => unknown("number of NUMA nodes", why),
        }
    }
}

impl fmt::Display for HostMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |key: &str, all: &[String]| (!all.is_empty()).then(|| format!("{key} {}", all.join(" or ")));
        let count = |key: &str, range: Option<CountRange>| range.map(|r| format!("{key} {r}"));
        let parts = [
            list("name", &self.names),
            list("driver", &self.drivers),
            count("cpu_count", self.cpu_count),
            count("node_count", self.node_count),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::CpuSet;
    use ringwise_testkit::machines;

    use super::*;

    #[test]
    fn counts() {
        let range = |text: &str| CountRange::parse(text).map(|r| (r.least, r.most));
        for (text, want, shown) in [
            ("16", (16, 16), "16"),
            (">= 16", (16, u32::MAX), ">= 16"),
            (">15", (16, u32::MAX), ">= 16"),
            ("<= 8", (0, 8), "<= 8"),
            ("< 9", (0, 8), "<= 8"),
            ("8-16", (8, 16), "8-16"),
        ] {
            assert_eq!(range(text), Some(want), "{text}");
            assert_eq!(CountRange::parse(text).unwrap().to_string(), shown);
        }
        for bad in ["", "0", "x", ">=", "< 0", "< 1", "9-8", "-3", "> 4294967295", "=4", "1-2-3"] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }

    fn named(name: Fact<String>) -> Snapshot {
        let mut s = machines::ten()[0].snapshot();
        s.host.name = name;
        s
    }

    #[test]
    fn an_unknown_name_is_no_match() {
        let any = HostMatcher { names: vec!["*".into()], ..HostMatcher::default() };
        let of = |name| any.matches(&named(name));
        assert_eq!(of(Fact::Known("Edge7.example".into())), HostMatch::Yes);
        for name in ["host-name-1", "(none)"].map(|n| Fact::Known(n.into())) {
            assert!(matches!(of(name), HostMatch::Unknown(_)));
        }
        let HostMatch::Unknown(why) = of(Fact::unknown("hostname", "not in this capture")) else { panic!() };
        assert_eq!(why, "the host name is unknown (hostname: not in this capture)");
        // The name does not matter if another criterion does not match.
        let other = HostMatcher { drivers: vec!["nosuch".into()], ..any.clone() };
        assert_eq!(other.matches(&named(Fact::Absent)), HostMatch::No);
    }

    #[test]
    fn names_are_patterns_without_case() {
        let m = HostMatcher { names: vec!["EDGE*".into(), "fw?".into()], ..HostMatcher::default() };
        let of = |name: &str| m.matches(&named(Fact::Known(name.into())));
        assert_eq!([of("edge7"), of("Fw1")], [HostMatch::Yes, HostMatch::Yes]);
        assert_eq!([of("fw10"), of("an-edge")], [HostMatch::No, HostMatch::No]);
    }

    #[test]
    fn hardware() {
        let mut s = machines::ten()[0].snapshot();
        let driver = s.nics.iter().find_map(|n| n.driver.known().cloned()).unwrap();
        s.topology.present = Fact::Known(CpuSet::range(0, 15));
        let of = |m: &HostMatcher, s: &Snapshot| m.matches(s);
        let m = |cpus: &str| HostMatcher {
            drivers: vec!["nosuch".into(), driver.clone()],
            cpu_count: CountRange::parse(cpus),
            ..HostMatcher::default()
        };
        assert_eq!([of(&m(">= 16"), &s), of(&m("> 16"), &s)], [HostMatch::Yes, HostMatch::No]);
        let nodes = |n: &str| HostMatcher { node_count: CountRange::parse(n), ..HostMatcher::default() };
        s.topology.nodes = Fact::Absent;
        assert_eq!([of(&nodes("1"), &s), of(&nodes("2"), &s)], [HostMatch::Yes, HostMatch::No]);
        s.topology.nodes = Fact::unknown("node", "not in this capture");
        assert!(matches!(of(&nodes("1"), &s), HostMatch::Unknown(_)));
        s.nics.iter_mut().for_each(|n| n.driver = Fact::unknown("driver", "no answer"));
        assert!(matches!(of(&m("16"), &s), HostMatch::Unknown(_)));
    }
}
