//! Selects the interfaces to plan.

use std::collections::BTreeSet;

use ringwise_model::natural::compare as natural;
use ringwise_model::order::Order;
use ringwise_model::{Fact, Intent, Nic, NicKind, Snapshot, User};

use crate::dev::Dev;
use crate::{Obstacle, Refusal, SkippedInterface};

/// The users of the queues if they forbid changing the channel count. A program on a bond, and a switch that contains a
/// bond, use the queues of the members.
pub(crate) fn channel_users(d: &Dev) -> Option<Vec<User>> {
    let bond = d.bond();
    let mut users: Vec<User> = d.nic.users.known().cloned().unwrap_or_default();
    users.extend(bond.and_then(|b| b.users.known()).into_iter().flatten().cloned());
    let above = bond.and(d.above);
    if above.is_some_and(|n| matches!(&n.kind, NicKind::Software { kind } if kind == "openvswitch")) {
        users.push(User::Ovs);
    }
    users.dedup();
    (!users.is_empty()).then_some(users)
}

fn held_by_userspace(nic: &Nic) -> Option<&str> {
    nic.users.known()?.iter().find_map(|u| match u {
        User::Userspace { driver } => Some(driver.as_str()),
        _ => None,
    })
}

/// Why this device is not planned unless it is named.
fn not_by_default(nic: &Nic) -> Option<Obstacle> {
    if let Some(why) = never(nic) {
        return Some(why);
    }
    if nic.kind == NicKind::Unknown && nic.queue_vectors().next().is_none() {
        return Some(Obstacle::KindUnknown);
    }
    let silent = matches!(nic.link.carrier, Fact::Unknown(_)) && matches!(nic.link.operstate, Fact::Unknown(_));
    (!nic.link_is_up() && !silent).then_some(Obstacle::LinkDown)
}

/// Why this device cannot be planned at all.
fn never(nic: &Nic) -> Option<Obstacle> {
    match &nic.kind {
        NicKind::Software { kind } => return Some(Obstacle::Software { kind: kind.clone() }),
        NicKind::Loopback => return Some(Obstacle::Loopback),
        NicKind::Unknown | NicKind::Physical | NicKind::Vf | NicKind::Virtio | NicKind::Paravirtual => {}
    }
    if nic.rx_queues.is_empty() {
        return Some(Obstacle::NoQueuesRead);
    }
    if nic.driver.is_absent() {
        return Some(Obstacle::NoDriver);
    }
    held_by_userspace(nic).map(|d| Obstacle::UserspaceDriver { driver: d.to_string() })
}

/// Whether the interface has no queues of its own and all interfaces below it that have queues are named.
fn is_named_below(s: &Snapshot, nic: &Nic, named: &BTreeSet<&String>) -> bool {
    let below = s.members_of(nic);
    !nic.has_own_queues() && !below.is_empty() && below.iter().all(|n| named.contains(&n.dev.name))
}

/// The devices to plan, by name in natural order, and the skipped ones.
pub(crate) fn devices<'a>(s: &'a Snapshot, intent: &Intent) -> Result<(Vec<&'a Nic>, Vec<SkippedInterface>), Refusal> {
    let mut nics: Vec<&Nic> = s.nics.iter().collect();
    nics.order_by(|a, b| natural(a.name(), b.name()));
    let mut left = Vec::new();
    let mut chosen = Vec::new();
    for name in &intent.devs {
        let Ok(at) = nics.binary_search_by(|n| natural(n.name(), name)) else {
            let have = nics.iter().filter(|n| n.has_own_queues()).map(|n| n.name().to_string()).collect();
            return Err(Refusal::UnknownDevice { dev: name.clone(), have });
        };
        let nic = nics[at];
        let mut why = never(nic);
        if why.is_none() && nic.queue_vectors().next().is_none() && !nic.link_is_up() {
            why = Some(Obstacle::LinkDownNoInterrupts);
        }
        if let Some(mut why) = why {
            let below: Vec<String> =
                nic.lower.iter().filter_map(|i| s.nic_by_index(*i)).map(|n| n.name().to_string()).collect();
            if !below.is_empty() {
                why = Obstacle::LiesOn { obstacle: Box::new(why), below };
            }
            return Err(Refusal::NotTunable { dev: name.clone(), why: Box::new(why) });
        }
        chosen.push(nic);
    }
    let named = intent.devs.iter().collect::<BTreeSet<_>>();
    for nic in &nics {
        if nic.kind == NicKind::Loopback || named.contains(&nic.dev.name) {
            continue;
        }
        // The interfaces of a file that have no link are not among those of the intent.
        let by_itself = || not_by_default(nic).filter(|_| intent.config.is_some());
        let why = match intent.devs.is_empty() {
            true => not_by_default(nic),
            // A bond, bridge or VLAN is named by its interfaces.
            false if is_named_below(s, nic, &named) => continue,
            false => Some(by_itself().unwrap_or(Obstacle::NotNamed)),
        };
        match why {
            Some(why) => left.push(SkippedInterface { dev: nic.name().to_string(), why }),
            None => chosen.push(*nic),
        }
    }
    if intent.devs.is_empty() {
        left.extend(s.held.iter().map(|h| SkippedInterface {
            dev: h.bus_address.clone(),
            why: Obstacle::UserspaceDriver { driver: h.driver.clone() },
        }));
        left.extend(s.without_interface.iter().map(|f| {
            let driver = f.driver.clone();
            let why = if f.in_other_namespace {
                Obstacle::OtherNamespace { driver }
            } else {
                Obstacle::NoInterface { driver }
            };
            SkippedInterface { dev: f.bus_address.clone(), why }
        }));
    }
    if chosen.is_empty() {
        return Err(Refusal::NothingTunable { left_alone: left });
    }
    chosen.order_by(|a, b| natural(a.name(), b.name()));
    Ok((chosen, left))
}
