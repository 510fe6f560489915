//! Which interfaces an entry is for, and which host groups apply to a host.

use ringwise_model::{ConfiguredBy, Nic, Snapshot};

use crate::host_group::HostMatch;
use crate::value::{Config, HostGroup, Matcher};
use crate::words::{glob_matches, is_glob};

/// A host group that does not apply because something about the host is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedGroup {
    /// Name of the group.
    pub name: String,
    /// What is unknown, with the line of the group and the reason.
    pub note: String,
}

/// The groups of a file that apply to a host, and those that cannot be decided.
pub(crate) fn applying<'a>(config: &'a Config, s: &Snapshot) -> (Vec<&'a HostGroup>, Vec<UndecidedGroup>) {
    let (mut groups, mut undecided) = (Vec::new(), Vec::new());
    for g in &config.host_groups {
        match g.matcher.matches(s) {
            HostMatch::Yes => groups.push(g),
            HostMatch::No => {}
            HostMatch::Unknown(why) => {
                let note = format!("{}: host group {} does not apply, because {why}", g.by, g.name);
                undecided.push(UndecidedGroup { name: g.name.clone(), note });
            }
        }
    }
    (groups, undecided)
}

pub(crate) fn named(pattern: &str, n: &Nic) -> bool {
    glob_matches(pattern, n.name())
}

/// Interfaces that a match selects. It is an error if several are found where only one may match. Interfaces without
/// queues of their own (a bond, a VLAN) have the address of their member, and are never selected by it.
pub(crate) fn devices<'a>(m: &Matcher, nics: &'a [Nic], by: &ConfiguredBy, wrong: &mut Vec<String>) -> Vec<&'a Nic> {
    let found: Vec<&Nic> = nics.iter().filter(|n| selects(m, n)).collect();
    if m.is_one() && found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|n| n.name()).collect();
        wrong.push(format!("{by}: {m} must match one interface, but matches {}; add bus or name", names.join(" and ")));
        return Vec::new();
    }
    found
}

/// Whether the criteria match this interface.
pub(crate) fn selects(m: &Matcher, n: &Nic) -> bool {
    let exact = m.name.as_deref().is_some_and(|n| !is_glob(n));
    (exact || n.has_own_queues()) && fits(m, n)
}

/// The same; none if the match is ambiguous.
pub(crate) fn matching<'a>(m: &Matcher, nics: &'a [Nic]) -> Vec<&'a Nic> {
    devices(m, nics, &ConfiguredBy::Unknown, &mut Vec::new())
}

fn fits(m: &Matcher, n: &Nic) -> bool {
    let is = |want: &Option<String>, have: Option<&String>| match (want, have) {
        (None, _) => true,
        (Some(w), Some(h)) => w.eq_ignore_ascii_case(h),
        (Some(_), None) => false,
    };
    m.name.as_ref().is_none_or(|p| named(p, n))
        && is(&m.driver, n.driver.known())
        && is(&m.bus, n.dev.bus_address.as_ref())
        && is(&m.mac, n.dev.permanent_mac.as_ref())
        && m.label.as_ref().is_none_or(|l| n.labels.contains(l))
}
