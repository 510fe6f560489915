//! The bonding driver's files. lab: scenario 535-control, "bond: …"

use std::time::Duration;

use ringwise_model::{Fact, NicKind};

use super::State;
use super::tree::Tree;

/// LACP takes this long to use a port again whose link is back.
const JOIN: Duration = Duration::from_secs(2);
/// Active, short timeout, aggregating, in sync, collecting, distributing.
const JOINED: u32 = 0x3f;
/// Active, short timeout, aggregating: alone.
const ALONE: u32 = 0x07;

fn is_lacp(s: &State, bond: usize) -> bool {
    s.nics[bond].bond.as_ref().is_some_and(|b| b.mode == Fact::Known("802.3ad".into()))
}

fn members(s: &State, bond: usize) -> Vec<usize> {
    let index = s.nics[bond].dev.ifindex;
    (0..s.nics.len()).filter(|i| s.nics[*i].master.is_some() && s.nics[*i].master == index).collect()
}

fn has_link(s: &State, i: usize) -> bool {
    s.link_is_back(i) && s.nics[i].link.carrier == Fact::Known(true)
}

fn joined(s: &State, i: usize) -> bool {
    has_link(s, i)
        && !s.extra[i].left_out_by_bond
        && (s.extra[i].link_at.is_zero() || s.now >= s.extra[i].link_at + JOIN)
}

/// The aggregator is numbered by the first port that is in it; a port alone has one of its own.
fn aggregator(s: &State, bond: usize, i: usize) -> usize {
    let list = members(s, bond);
    let number = |i: usize| list.iter().position(|m| *m == i).unwrap_or(0) + 1;
    if joined(s, i) { list.iter().copied().find(|m| joined(s, *m)).map_or(1, number) } else { number(i) }
}

/// Files below the interface's directory, of a bond or of a member of one.
pub(super) fn put(t: &mut Tree, s: &State, i: usize, dir: &str) {
    let nic = &s.nics[i];
    if matches!(&nic.kind, NicKind::Software { kind } if kind == "bond") {
        let list = members(s, i);
        let names: Vec<&str> = list.iter().map(|m| s.nics[*m].dev.name.as_str()).collect();
        let lacp = is_lacp(s, i);
        t.file(format!("{dir}/bonding/slaves"), names.join(" "));
        t.file(format!("{dir}/bonding/mode"), if lacp { "802.3ad 4" } else { "active-backup 1" });
        let active = list.iter().find(|m| has_link(s, **m)).map_or("", |m| s.nics[*m].dev.name.as_str());
        t.file(format!("{dir}/bonding/active_slave"), if lacp { "" } else { active });
        let in_use = list.iter().find(|m| joined(s, **m)).map(|m| aggregator(s, i, *m).to_string());
        t.file(format!("{dir}/bonding/ad_aggregator"), if lacp { in_use.unwrap_or_default() } else { String::new() });
    }
    let above = |n: &ringwise_model::Nic| n.bond.is_some() && n.dev.ifindex == nic.master && nic.master.is_some();
    let Some(bond) = s.nics.iter().position(above) else { return };
    let d = format!("{dir}/bonding_slave");
    let up = has_link(s, i);
    t.file(format!("{d}/mii_status"), if up { "up" } else { "down" });
    t.file(format!("{d}/state"), if up { "active" } else { "backup" });
    let (a, state) = if is_lacp(s, bond) {
        let state = if joined(s, i) { JOINED } else { ALONE };
        (aggregator(s, bond, i).to_string(), state.to_string())
    } else {
        ("N/A".to_string(), "N/A".to_string())
    };
    t.file(format!("{d}/ad_aggregator_id"), a);
    t.file(format!("{d}/ad_actor_oper_port_state"), &state);
    t.file(format!("{d}/ad_partner_oper_port_state"), state);
}
