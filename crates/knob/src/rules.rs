//! Flow steering rules (`ethtool -N`) and the feature that they need.
//!
//! A rule is addressed by its location. Some drivers choose the location themselves and accept none from the user; then
//! the address is computed from the content of the rule, so that it stays the same at every location.

use std::collections::BTreeSet;

use ringwise_model::errno::{EEXIST, EINVAL, ENOENT, ENOSPC, EOPNOTSUPP};
use ringwise_model::{Action, Fact, Nic, Rule, Rules, Snapshot, fnv};

use crate::features::NTUPLE;
use crate::{Address, Descriptor, Family, NotProjected, Reaction, Setting, features, known, nic};

pub(crate) struct RulesFamily;

impl Descriptor for RulesFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        addresses(nic)
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::FlowRule { dev, location } => format!("{dev} flow rule {}", location_text(*location)),
            other => format!("{} {NTUPLE}", other.dev().unwrap_or_default()),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match (address.dev().and_then(|d| s.nic(d)), address) {
            (Some(n), Address::Ntuple { .. }) => live_ntuple(n),
            (Some(n), Address::FlowRule { location, .. }) => live(n, *location),
            _ => Fact::Absent,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Ntuple { dev, on } => features::project(nic(s, dev)?, NTUPLE, *on),
            Setting::FlowRule { dev, location, rule } => {
                project(known(&mut nic(s, dev)?.rules)?, *location, rule.as_ref())
            }
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        if let Address::Ntuple { .. } = address {
            return (errno == Some(EOPNOTSUPP)).then_some(features::UNSUPPORTED);
        }
        let meaning = match errno? {
            EEXIST => (Reaction::Fail, "the device has the same rule at another location"),
            ENOENT => (Reaction::Fail, "there is no rule at this location any more"),
            ENOSPC => (Reaction::Fail, "the rule table of the device is full, or the location is beyond the table"),
            EINVAL => (
                Reaction::Fail,
                "the driver refuses the rule: a queue or context does not exist, or the driver cannot match a field or mask",
            ),
            EOPNOTSUPP => (
                Reaction::Refused,
                "the driver does not support rules for this flow type or field, or only while ntuple is on",
            ),
            _ => return None,
        };
        Some(meaning)
    }

    /// Many drivers drop all rules when the feature is switched off.
    fn invalidates(&self, address: &Address) -> &'static [Family] {
        match address {
            Address::Ntuple { .. } => &[Family::Rules],
            _ => &[],
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Ntuple { on, .. } => features::text(*on),
            Setting::FlowRule { rule, .. } => rule.as_ref().map_or_else(|| "none".into(), text),
            _ => String::new(),
        }
    }

    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Ntuple { dev, on } => Some(features::command(dev, NTUPLE, *on)),
            Setting::FlowRule { dev, location, rule } => command(now.nic(dev), dev, *location, rule.as_ref()),
            _ => None,
        }
    }
}

/// This bit is set in locations that are computed from the content of a rule.
pub const BY_CONTENT: u32 = 0x8000_0000;

/// The feature `rx-ntuple-filter` in this snapshot.
pub fn live_ntuple(nic: &Nic) -> Fact<Setting> {
    nic.features.as_ref().and_then(|all| match all.get(NTUPLE) {
        Some(f) => Fact::Known(Setting::Ntuple { dev: nic.dev.name.clone(), on: f.on }),
        None => Fact::Absent,
    })
}

/// Known without a rule: the device supports rules, but has none at this location.
pub fn live(nic: &Nic, location: u32) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rules.as_ref().map(|r: &Rules| {
        let rule = real(r, location).and_then(|at| r.rules.get(&at)).cloned();
        Setting::FlowRule { dev, location, rule }
    })
}

/// The current location in the device of a rule that `location` addresses. `None`: there is no such rule.
pub fn real(rules: &Rules, location: u32) -> Option<u32> {
    if location & BY_CONTENT == 0 {
        return Some(location);
    }
    rules.rules.iter().find(|(_, r)| by_content(r) == location).map(|(at, _)| *at)
}

/// The location that stands for the content of the rule. Journals contain it, so the computation never changes.
pub fn by_content(rule: &Rule) -> u32 {
    fnv::of_32(text(rule).bytes()) | BY_CONTENT
}

/// The location for a new rule: that of an identical rule, else the lowest location that is free and not `taken`. Drivers
/// that use locations as priority match lower locations first. `None`: the table is full.
pub fn place(rules: &Rules, rule: &Rule, taken: impl Fn(u32) -> bool) -> Option<u32> {
    if rules.chooses_location {
        return Some(by_content(rule));
    }
    if let Some((at, _)) = rules.rules.iter().find(|(at, r)| *r == rule && !taken(**at)) {
        return Some(*at);
    }
    let end = if rules.capacity == 0 { BY_CONTENT } else { rules.capacity };
    (0..end).find(|at| !rules.rules.contains_key(at) && !taken(*at))
}

/// If the driver chooses the location, the rule gets the lowest free one.
pub(crate) fn project(rules: &mut Rules, location: u32, rule: Option<&Rule>) -> Result<(), NotProjected> {
    match (rule, real(rules, location)) {
        (Some(rule), Some(at)) => drop(rules.rules.insert(at, rule.clone())),
        (Some(rule), None) => {
            let free = (0..BY_CONTENT).find(|at| !rules.rules.contains_key(at));
            rules.rules.insert(free.ok_or(NotProjected("all rule locations are in use"))?, rule.clone());
        }
        (None, Some(at)) => drop(rules.rules.remove(&at)),
        (None, None) => {}
    }
    Ok(())
}

/// The queue that a rule names; `None` if a context spreads the matching flows.
pub fn queue(rule: &Rule) -> Option<u32> {
    match rule.action {
        Action::Queue(q) if rule.context.is_none() => Some(q),
        _ => None,
    }
}

/// Whether the change deletes the rule, or moves it away from a queue that is not among the first `left` queues.
pub(crate) fn makes_way(from: &Fact<Setting>, to: &Setting, left: Option<u32>) -> bool {
    let Setting::FlowRule { rule: to, .. } = to else { return false };
    let (Some(_), Some(Setting::FlowRule { rule: Some(from), .. })) = (to, from.known()) else { return to.is_none() };
    queue(from).zip(left).is_some_and(|(q, left)| q >= left)
}

/// Rules that steer to queues beyond the first `left`, with their locations.
pub fn beyond(nic: &Nic, left: u32) -> Vec<(u32, &Rule)> {
    let all = nic.rules.known().into_iter().flat_map(|r| &r.rules);
    all.filter(|(_, r)| queue(r).is_some_and(|q| q >= left)).map(|(at, r)| (*at, r)).collect()
}

/// Addresses of the feature and of all rules of the device.
pub fn addresses(nic: &Nic) -> Vec<Address> {
    let dev = || nic.dev.name.clone();
    let mut out = Vec::new();
    if nic.features.known().and_then(|all| all.get(NTUPLE)).is_some_and(|f| !f.fixed) {
        out.push(Address::Ntuple { dev: dev() });
    }
    let Some(all) = nic.rules.known() else { return out };
    let place = |(at, r): (&u32, &Rule)| if all.chooses_location { by_content(r) } else { *at };
    let places: BTreeSet<u32> = all.rules.iter().map(place).collect();
    out.extend(places.into_iter().map(|location| Address::FlowRule { dev: dev(), location }));
    out
}

/// `7`; `placed by the driver (1a2b3c4d)`
pub fn location_text(location: u32) -> String {
    match location & BY_CONTENT {
        0 => location.to_string(),
        _ => format!("placed by the driver ({:08x})", location & !BY_CONTENT),
    }
}

/// `tcp4 dst-port 443 action 2`
pub fn text(rule: &Rule) -> String {
    let mut out = rule.flow.clone();
    for (k, v) in &rule.fields {
        out += &format!(" {k} {v}");
    }
    if let Some(c) = rule.context {
        out += &format!(" context {c}");
    }
    match rule.action {
        Action::Queue(q) => out += &format!(" action {q}"),
        Action::Drop => out += " action -1",
        Action::Wake => out += " action -2",
        Action::Vf { vf, queue } => out += &format!(" vf {vf} queue {queue}"),
    }
    out
}

/// `None`: the rule does not exist, or ethtool cannot express it.
pub fn command(nic: Option<&Nic>, dev: &str, location: u32, rule: Option<&Rule>) -> Option<String> {
    match rule {
        Some(r) if r.flow.starts_with("type-") => None,
        Some(r) if location & BY_CONTENT != 0 => Some(format!("ethtool -N {dev} flow-type {}", text(r))),
        Some(r) => Some(format!("ethtool -N {dev} flow-type {} loc {location}", text(r))),
        None if location & BY_CONTENT == 0 => Some(format!("ethtool -N {dev} delete {location}")),
        None => Some(format!("ethtool -N {dev} delete {}", real(nic?.rules.known()?, location)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(port: u32, queue: u32) -> Rule {
        let fields = [("dst-port".to_string(), port.to_string())].into();
        Rule { flow: "tcp4".into(), fields, action: Action::Queue(queue), context: None }
    }

    fn rules(chooses_location: bool, capacity: u32, list: &[(u32, Rule)]) -> Rules {
        Rules { capacity, chooses_location, rules: list.iter().cloned().collect() }
    }

    #[test]
    fn the_lowest_free_location() {
        let all = rules(false, 3, &[(0, rule(80, 1))]);
        assert_eq!(place(&all, &rule(80, 1), |_| false), Some(0), "where it is already");
        assert_eq!(place(&all, &rule(443, 1), |_| false), Some(1));
        assert_eq!(place(&all, &rule(443, 1), |at| at == 1), Some(2));
        assert_eq!(place(&all, &rule(443, 1), |at| at > 0), None);
        assert_eq!(place(&rules(false, 0, &[]), &rule(443, 1), |at| at < 9), Some(9), "an unknown capacity");
    }

    #[test]
    fn the_content_is_the_address_if_the_driver_chooses_the_location() {
        let (a, b) = (rule(80, 1), rule(443, 1));
        let all = rules(true, 64, &[(63, a.clone()), (62, b.clone())]);
        let at = place(&all, &b, |_| false).unwrap();
        assert_eq!(at, 0x8f87_8395, "journals contain this number");
        assert_eq!((real(&all, at), real(&all, by_content(&a))), (Some(62), Some(63)));
        assert_eq!(real(&rules(true, 64, &[]), at), None);
        assert_eq!(
            command(None, "eth0", at, Some(&b)).unwrap(),
            "ethtool -N eth0 flow-type tcp4 dst-port 443 action 1"
        );
        assert_eq!(command(None, "eth0", 4, None).unwrap(), "ethtool -N eth0 delete 4");
        assert_eq!(location_text(at), "placed by the driver (0f878395)");
    }
}
