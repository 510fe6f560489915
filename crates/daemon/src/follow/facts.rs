//! The receive queues of a device: the indirection table, what forbids writing it, and queues that programs use.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_adapt::Forbidden;
use ringwise_adapt::load::Exclusion;
use ringwise_flow::Steering;
use ringwise_flow::stack::RXHASH;
use ringwise_flow::steering::NTUPLE;
use ringwise_knob::restarts_for_rss;
use ringwise_model::{Fact, IrqId, Movable, Nic, User};

/// `threaded` of a NAPI instance whose kernel thread polls without a pause.
const BUSY_POLL: u32 = 2;

/// Facts about one interface that rarely change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Receive queue of each entry. `None`: unknown, or the device has no table.
    pub table: Option<Vec<u32>>,
    pub forbidden: Vec<Forbidden>,
    pub excluded: BTreeMap<u32, Exclusion>,
    /// The RPS mask of its only receive queue. `None`: unknown, or there are several.
    pub mask: Option<BTreeSet<u32>>,
    /// Interrupts that cannot be moved.
    pub immovable: BTreeSet<IrqId>,
    /// Computes the entry of a packet from its header.
    pub steering: Option<Steering>,
}

/// The facts of a device of which every part was read. `host_key`: the hash key that the kernel provides for drivers.
pub(crate) fn facts(nic: &Nic, host_key: &Fact<String>) -> Facts {
    let table = nic.rss.known().map(|r| r.table.clone()).filter(|t| !t.is_empty());
    let fixed = nic.vectors.iter().filter(|v| matches!(v.movable, Movable::No(_)));
    Facts {
        table,
        forbidden: forbidden(nic),
        excluded: excluded(nic),
        mask: match nic.rx_queues.as_slice() {
            [only] => only.rps_cpus.known().map(|cpus| cpus.iter().map(|c| c.0).collect()),
            _ => None,
        },
        immovable: fixed.map(|v| v.irq).collect(),
        steering: Some(Steering::new(nic, host_key)),
    }
}

fn forbidden(nic: &Nic) -> Vec<Forbidden> {
    let mut out = Vec::new();
    if nic.driver.known().is_none() {
        out.push(Forbidden::Unknown);
    }
    if restarts_for_rss(nic) {
        out.push(Forbidden::WriteResetsDevice);
    }
    let feature = |name: &str| nic.features.known().map(|f| f.get(name).map(|f| f.on));
    match feature(RXHASH) {
        Some(Some(false)) => out.push(Forbidden::HashOff),
        // Some drivers always hash and have no such feature. Packets without a hash are noticed when they are counted.
        Some(_) => {}
        None => out.push(Forbidden::Unknown),
    }
    let mut flow_tables = false;
    for q in &nic.rx_queues {
        match &q.rps_cpus {
            Fact::Known(cpus) if !cpus.is_empty() => out.push(Forbidden::Rps),
            Fact::Unknown(_) => out.push(Forbidden::Unknown),
            _ => {}
        }
        flow_tables |= q.rps_flow_cnt.known().is_some_and(|n| *n > 0);
        if matches!(q.rps_flow_cnt, Fact::Unknown(_)) {
            out.push(Forbidden::Unknown);
        }
    }
    // It is unknown which queues others use.
    if matches!(nic.users, Fact::Unknown(_)) || matches!(nic.napi, Fact::Unknown(_)) {
        out.push(Forbidden::Unknown);
    }
    match &nic.rules {
        Fact::Known(r) if !r.rules.is_empty() => out.push(Forbidden::Rules),
        Fact::Unknown(_) => out.push(Forbidden::Unknown),
        _ => {}
    }
    if flow_tables && feature(NTUPLE) == Some(Some(true)) {
        out.push(Forbidden::Rfs);
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn excluded(nic: &Nic) -> BTreeMap<u32, Exclusion> {
    let held = nic.queue_users().filter_map(|u| {
        let why = match u {
            User::Dmabuf { .. } | User::IoUring { .. } => Exclusion::Memory,
            User::Lease { .. } => Exclusion::Leased,
            _ => Exclusion::AfXdp,
        };
        Some((u.queue()?, why))
    });
    let instances = nic.napi.known().into_iter().flat_map(|n| &n.instances);
    let polled = instances.filter(|i| {
        i.values
            .known()
            .is_some_and(|v| v.threaded == Some(BUSY_POLL) || v.irq_suspend_timeout_ns.is_some_and(|n| n > 0))
    });
    polled.flat_map(|i| i.rx.iter().map(|q| (*q, Exclusion::BusyPolled))).chain(held).collect()
}
