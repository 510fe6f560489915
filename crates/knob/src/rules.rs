//! Flow steering rules (`ethtool -N`), and the feature they need.

use ringwise_model::{Action, Fact, Nic, Rule, Rules};

use crate::features::NTUPLE;
use crate::{Address, Setting};

pub fn live_ntuple(nic: &Nic) -> Fact<Setting> {
    nic.features.as_ref().and_then(|all| match all.get(NTUPLE) {
        Some(f) => Fact::Known(Setting::Ntuple { dev: nic.dev.name.clone(), on: f.on }),
        None => Fact::Absent,
    })
}

/// Known and without a rule: the device takes rules, but has none here.
pub fn live(nic: &Nic, location: u32) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rules.as_ref().map(|r: &Rules| Setting::FlowRule { dev, location, rule: r.rules.get(&location).cloned() })
}

pub fn addresses(nic: &Nic) -> Vec<Address> {
    let dev = || nic.dev.name.clone();
    let mut out = Vec::new();
    if nic.features.known().and_then(|all| all.get(NTUPLE)).is_some_and(|f| !f.fixed) {
        out.push(Address::Ntuple { dev: dev() });
    }
    let places = nic.rules.known().into_iter().flat_map(|r| r.rules.keys());
    out.extend(places.map(|l| Address::FlowRule { dev: dev(), location: *l }));
    out
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

pub fn command(dev: &str, location: u32, rule: Option<&Rule>) -> String {
    match rule {
        Some(r) => format!("ethtool -N {dev} flow-type {} loc {location}", text(r)),
        None => format!("ethtool -N {dev} delete {location}"),
    }
}
