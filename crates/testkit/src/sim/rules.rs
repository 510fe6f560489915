//! Flow steering rules: what the kernel and the drivers accept and refuse.

use ringwise_kfmt::ethtool_ioctl::rxnfc;
use ringwise_kfmt::rule::{FlowSpec, parse_rule};
use ringwise_model::errno::{EINVAL, EMSGSIZE, ENOENT, ENOSPC, EOPNOTSUPP};
use ringwise_model::{Action, Fact, Nic, Rule, Rules};
use ringwise_sys::{IoctlCmd, Result};

use super::State;
use super::driver_kind::SimulatedDriver;
use super::refusal::{bad, fact, no};

/// The test NIC has no place for the upper half of user-def. lab: "rules: a field that the driver has not"
fn takes(driver: SimulatedDriver, rule: &Rule) -> bool {
    let upper = |v: &String| v.starts_with("0x") && !v.starts_with("0x00000000");
    driver != SimulatedDriver::Mqnic || !rule.fields.get("user-def").is_some_and(upper)
}

fn ntuple(nic: &Nic) -> Option<bool> {
    nic.features.known()?.get("rx-ntuple-filter").map(|f| f.on)
}

/// Absent: the driver does not count them. lab: "rules: eth0 counts none", "rules: virtio has none"
pub(super) fn get(nic: &Nic, cmd: IoctlCmd, payload: &[u8]) -> Result<Vec<u8>> {
    let all = fact(&nic.rules)?;
    Ok(match cmd {
        IoctlCmd::RuleCount => rxnfc::count_reply(&rxnfc::FlowRuleCount {
            rules: all.rules.len() as u32,
            capacity: all.capacity,
            chooses_location: all.chooses_location,
        }),
        IoctlCmd::RuleList => {
            if rxnfc::all_room(payload).map_err(bad)? < all.rules.len() as u32 {
                return Err(no(EMSGSIZE));
            }
            let places: Vec<u32> = all.rules.keys().copied().collect();
            rxnfc::all_reply(payload, all.capacity, &places)
        }
        _ => {
            let at = rxnfc::location(payload).map_err(bad)?;
            let rule = all.rules.get(&at).ok_or_else(|| no(ENOENT))?;
            rxnfc::rule_reply(&FlowSpec::of(rule, at).map_err(bad)?)
        }
    })
}

/// The location: that of the insertion, which the driver may have chosen.
pub(super) fn set(s: &mut State, dev: &str, cmd: IoctlCmd, payload: &[u8]) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(19))?;
    let (driver, nic) = (s.extra[i].driver, &mut s.nics[i]);
    let on = ntuple(nic);
    let (queues, contexts) = (nic.rx_queues.len() as u32, contexts(nic));
    let Fact::Known(all) = &mut nic.rules else { return Err(no(EOPNOTSUPP)) };
    let at = rxnfc::location(payload).map_err(bad)?;
    if cmd == IoctlCmd::RuleDelete {
        return all.rules.remove(&at).map(|_| ()).ok_or_else(|| no(ENOENT));
    }
    let rule = rxnfc::rule(payload).map_err(bad)?.rule();
    // net/ethtool/ioctl.c, ethtool_set_rxnfc. lab: "rules: a context that does not exist"
    if rule.context.is_some_and(|c| !contexts.contains(&c)) {
        return Err(no(EINVAL));
    }
    // lab: "rules: with ntuple off", "rules: a field that the driver has not"
    if on == Some(false) || !takes(driver, &rule) {
        return Err(no(EOPNOTSUPP));
    }
    let at = place(all, at)?;
    // lab: "rules: a queue that does not exist"
    if matches!(rule.action, Action::Queue(q) if q >= queues) {
        return Err(no(EINVAL));
    }
    // An existing rule is replaced. lab: "rules: an occupied location"
    all.rules.insert(at, rule);
    Ok(())
}

pub(super) fn insert_from_text(s: &mut State, dev: &str, words: &str) -> Result<()> {
    let (rule, at) = parse_rule(words).map_err(bad)?;
    let spec = FlowSpec::of(&rule, at.unwrap_or(rxnfc::LOC_ANY)).map_err(bad)?;
    set(s, dev, IoctlCmd::RuleInsert, &rxnfc::insert(&spec))
}

fn contexts(nic: &Nic) -> Vec<u32> {
    let rss = nic.rss.known().and_then(|r| r.contexts.known());
    rss.into_iter().flat_map(|c| c.keys().copied()).collect()
}

/// Drivers that choose the location ignore the requested one. lab: "rules: a driver that chooses the location"
/// They refuse a location of the user (drivers/net/ethernet/sfc/ethtool_common.c); this is not tested in the lab.
fn place(all: &Rules, asked: u32) -> Result<u32> {
    if !all.chooses_location {
        // lab: "rules: a location beyond the table"
        return if asked >= all.capacity { Err(no(ENOSPC)) } else { Ok(asked) };
    }
    if asked != rxnfc::LOC_ANY {
        return Err(no(EINVAL));
    }
    (0..all.capacity).rev().find(|l| !all.rules.contains_key(l)).ok_or_else(|| no(ENOSPC))
}

/// Highest queue that a rule names. lab: "rules: fewer queues than a rule needs"
pub(super) fn highest(nic: &Nic) -> Option<u32> {
    let queue = |r: &Rule| match r.action {
        Action::Queue(q) => Some(q),
        _ => None,
    };
    nic.rules.known()?.rules.values().filter_map(queue).max()
}
