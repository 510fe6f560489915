//! The interfaces of this host that a file of another program is for.

use ringwise_model::{Nic, Snapshot};

use crate::words::glob_matches;

/// Interfaces whose settings can be imported: those with queues of their own.
pub(super) fn all(s: &Snapshot) -> impl Iterator<Item = &Nic> {
    s.nics.iter().filter(|n| n.has_own_queues())
}

/// Interfaces by name, alternative name or pattern. Patterns are separated by white space, commas or semicolons; those
/// that begin with `!` exclude. Only exclusions: all others.
pub(super) fn by_patterns<'a>(s: &'a Snapshot, patterns: &str) -> Vec<&'a Nic> {
    let words: Vec<&str> = patterns.split([' ', '\t', ',', ';']).filter(|w| !w.is_empty()).collect();
    let (not, wanted): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|w| w.starts_with('!'));
    let is = |p: &str, n: &Nic| glob_matches(p, n.name()) || n.labels.iter().any(|l| glob_matches(p, l));
    all(s)
        .filter(|n| wanted.is_empty() || wanted.iter().any(|p| is(p, n)))
        .filter(|n| !not.iter().any(|p| is(&p[1..], n)))
        .collect()
}

/// Interfaces by exact name or alternative name. A bond, bridge or VLAN stands for its members.
pub(super) fn by_name<'a>(s: &'a Snapshot, name: &str) -> Vec<&'a Nic> {
    let Some(n) = s.nics.iter().find(|n| n.name() == name || n.labels.iter().any(|l| l == name)) else {
        return Vec::new();
    };
    if n.has_own_queues() { vec![n] } else { s.members_of(n) }
}

/// Interfaces with this permanent address, in any notation with two digits for each byte.
pub(super) fn by_mac<'a>(s: &'a Snapshot, mac: &str) -> Vec<&'a Nic> {
    let digits = |t: &str| t.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase();
    let wanted = digits(mac);
    let is = |n: &&Nic| wanted.len() == 12 && n.dev.permanent_mac.as_deref().is_some_and(|m| digits(m) == wanted);
    all(s).filter(is).collect()
}
