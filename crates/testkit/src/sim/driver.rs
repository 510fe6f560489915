//! Side effects of drivers: what they change beyond the request.

use std::collections::BTreeSet;
use std::time::Duration;

use ringwise_model::errno::{EINVAL, ENOMEM, EOPNOTSUPP};
use ringwise_model::{
    Confidence, Count, CpuId, CpuSet, Fact, IrqId, MapSource, Movable, Nic, RingKind, RingValues, Role, Rss, RxQueue,
    TxQueue, Vector,
};
use ringwise_sys::{Error, Result};

use super::State;
use super::driver_kind::{Quirk, SimulatedDriver};

/// Vectors that are managed by the kernel according to the snapshot.
pub(super) fn managed(nic: &Nic) -> BTreeSet<u32> {
    nic.vectors.iter().filter(|v| matches!(v.movable, Movable::No(_))).map(|v| v.irq.0).collect()
}

/// The interrupt moves to its mask at its next occurrence; a CPU that is still in the mask keeps it.
/// lab: "then it has moved", "a widened mask moves nothing"
pub(super) fn settle(v: &mut Vector, online: &CpuSet) {
    let (Fact::Known(asked), Fact::Known(effective)) = (&v.asked, &v.effective) else {
        return;
    };
    let live = asked.intersection(online);
    if effective.intersects(&live) {
        return;
    }
    if let Some(cpu) = live.first() {
        v.effective = Fact::Known(CpuSet::one(cpu));
    }
}

/// The CPUs for new vectors of this device: those of its node, spread.
/// lab: "eth0: fresh vectors may go to the CPUs of its node", "eth0: and are spread there"
fn default_cpus(s: &State, i: usize) -> CpuSet {
    let near = s.nics[i].local_cpus.known().map(|l| l.intersection(&s.topology.online)).unwrap_or_default();
    if near.is_empty() { s.topology.online.clone() } else { near }
}

/// A vector as the kernel creates it; `place` spreads the effective CPU.
pub(super) fn new_vector(
    irq: u32,
    name: String,
    role: Role,
    cpus: &CpuSet,
    place: usize,
    node: Fact<ringwise_model::NodeId>,
) -> Vector {
    let at = cpus.iter().nth(place % cpus.len().max(1));
    Vector {
        irq: IrqId(irq),
        names: vec![name],
        role,
        confidence: Confidence::Sure,
        source: MapSource::MsiAndName,
        napi: None,
        asked: Fact::Known(cpus.clone()),
        effective: Fact::Known(at.map(CpuSet::one).unwrap_or_default()),
        hint: Fact::Known(CpuSet::new()),
        node,
        movable: Movable::UnknownUntilTried,
        count: Fact::Known(0),
    }
}

/// Vectors of igb at this number of queues: pairs above four, else receive and transmit apart; the
/// control vector first in MSI order. lab: "igb: 4 queues have separate vectors", "igb: 8 queues have TxRx vectors"
pub(super) fn igb_vectors(
    dev: &str,
    queues: u32,
    first_irq: u32,
    cpus: &CpuSet,
    node: &Fact<ringwise_model::NodeId>,
) -> Vec<Vector> {
    let mut irq = first_irq;
    let control = new_vector(irq, dev.to_string(), Role::Control, cpus, 0, node.clone());
    let mut out = Vec::new();
    let mut add = |name: String, rx: Vec<u32>, tx: Vec<u32>| {
        irq += 1;
        let place = (irq - first_irq) as usize;
        out.push(new_vector(irq, name, Role::Queues { rx, tx }, cpus, place, node.clone()));
    };
    if queues > 4 {
        (0..queues).for_each(|q| add(format!("{dev}-TxRx-{q}"), vec![q], vec![q]));
    } else {
        (0..queues).for_each(|q| add(format!("{dev}-rx-{q}"), vec![q], vec![]));
        (0..queues).for_each(|q| add(format!("{dev}-tx-{q}"), vec![], vec![q]));
    }
    out.push(control);
    out
}

/// Rows of a table that gives each queue one block.
pub(super) fn blocks(size: usize, queues: u32) -> Vec<u32> {
    (0..size).map(|i| (i * queues as usize / size.max(1)) as u32).collect()
}

/// The kernel's own default. lab: "igb: the kernel's default table goes round"
pub(super) fn round_robin(size: usize, queues: u32) -> Vec<u32> {
    (0..size).map(|i| i as u32 % queues.max(1)).collect()
}

fn set_table(nic: &mut Nic, table: impl FnOnce(usize) -> Vec<u32>) {
    if let Fact::Known(Rss { table: t, .. }) = &mut nic.rss
        && !t.is_empty()
    {
        *t = table(t.len());
    }
}

/// Queue directories: removed ones lose their settings, new ones begin without settings.
/// lab: "RPS of a queue that was removed is gone", "XPS of a queue that was removed is gone"
fn resize(nic: &mut Nic, rx: u32, tx: u32, default_mask: &Fact<CpuSet>) {
    nic.rx_queues.retain(|q| q.id < rx);
    nic.tx_queues.retain(|q| q.id < tx);
    for id in nic.rx_queues.len() as u32..rx {
        let rps = default_mask.known().cloned().unwrap_or_default();
        nic.rx_queues.push(RxQueue { id, rps_cpus: Fact::Known(rps), rps_flow_cnt: Fact::Known(0) });
    }
    let template = nic.tx_queues.first().map(|q| q.bql.clone());
    for id in nic.tx_queues.len() as u32..tx {
        nic.tx_queues.push(TxQueue {
            id,
            xps_cpus: Fact::Known(CpuSet::new()),
            xps_rxqs: Fact::Known(Vec::new()),
            bql: template.clone().unwrap_or(Fact::Absent),
        });
    }
    // lab: "e1000e: one queue has no xps_cpus to read"
    let one = nic.tx_queues.len() == 1;
    for q in &mut nic.tx_queues {
        match (one, &q.xps_cpus) {
            (true, _) => q.xps_cpus = Fact::Absent,
            (false, Fact::Absent) => q.xps_cpus = Fact::Known(CpuSet::new()),
            _ => {}
        }
    }
}

/// The driver applies the new combined count, which the kernel has checked.
pub(super) fn channels_changed(s: &mut State, i: usize, combined: u32) -> Result<()> {
    let cpus = default_cpus(s, i);
    let default_mask = s.host.rps_default_mask.clone();
    let (now, first_irq) = (s.now, s.next_irq);
    let online = s.topology.online.clone();
    let version = s.version();
    let nic = &mut s.nics[i];
    resize(nic, combined, combined, &default_mask);
    super::moderation::resize(nic, combined);
    match s.extra[i].driver {
        SimulatedDriver::Igb => {
            // Every vector is freed and requested again: other numbers, default affinity.
            // lab: "igb: -L resets affinity"
            nic.vectors = igb_vectors(&nic.dev.name, combined, first_irq, &cpus, &nic.node);
            s.next_irq += nic.vectors.len() as u32;
            super::moderation::of_pairs(nic);
            // New instances with the values of the device. lab: "igb: -L makes new instances"
            let last = nic.napi.known().and_then(|n| n.instances.last()).map(|i| i.id);
            if let Some(last) = last {
                super::napi::link(nic, last + 1, version);
            }
            // lab: "igb: -L resets a table that was set manually", "igb: after -L the table is equal" (also a user's table)
            set_table(nic, |n| blocks(n, combined));
            // lab: wait_link after -L
            s.extra[i].link_down_until(now + Duration::from_millis(1500));
        }
        SimulatedDriver::Virtio => {
            // lab: "virtio: -L rewrites affinity", "virtio: the driver presets XPS" (drivers/net/virtio_net.c, virtnet_set_affinity)
            let all: Vec<CpuId> = online.iter().collect();
            let stride = (all.len() / combined as usize).max(1);
            for q in 0..combined {
                let group: CpuSet = all.iter().skip(q as usize * stride % all.len()).take(stride).copied().collect();
                for v in &mut nic.vectors {
                    if v.rx().contains(&q) || v.tx().contains(&q) {
                        v.asked = Fact::Known(group.clone());
                        v.hint = Fact::Known(group.clone());
                    }
                }
                if let Some(t) = nic.tx_queues.iter_mut().find(|t| t.id == q)
                    && t.xps_cpus.is_known()
                {
                    t.xps_cpus = Fact::Known(group.clone());
                }
            }
            // lab: "virtio: -L keeps the table"
        }
        SimulatedDriver::Mqnic | SimulatedDriver::Other => {
            // Vectors stay, only those in use carry a name. lab: "mqnic: -L keeps affinity"
            let name = nic.dev.name.clone();
            for v in &mut nic.vectors {
                if let Role::Queues { rx, tx } = &v.role {
                    let q = rx.first().or(tx.first()).copied().unwrap_or(0);
                    v.names = if q < combined { vec![format!("{name}-TxRx-{q}")] } else { Vec::new() };
                }
            }
            let resets = s.extra[i].quirks.contains(&Quirk::Resets);
            if resets || !s.extra[i].rss_by_user {
                set_table(nic, |n| round_robin(n, combined));
            }
            if resets {
                nic.vectors.iter_mut().for_each(|v| v.asked = Fact::Known(cpus.clone()));
                if let Fact::Known(c) = &mut nic.coalesce {
                    c.0.values_mut().for_each(|v| *v = 50);
                    let reset = c.clone();
                    if let Fact::Known(all) = &mut nic.queue_coalesce {
                        all.values_mut().for_each(|q| q.clone_from(&reset));
                    }
                }
                if let Fact::Known(r) = &mut nic.rings {
                    [&mut r.rx, &mut r.tx].into_iter().flatten().for_each(|c| c.now = 512);
                }
            }
        }
        SimulatedDriver::Vmxnet3 | SimulatedDriver::E1000e => return Err(Error::errno("channels-set", EOPNOTSUPP)),
    }
    Ok(())
}

/// The driver applies new ring sizes, rounded in its own way.
pub(super) fn rings_changed(s: &mut State, i: usize, want: &RingValues) -> Result<()> {
    let now = s.now;
    let driver = s.extra[i].driver;
    let round = |n: u32| -> Result<u32> {
        match driver {
            // lab: "igb: -G rounds up to a multiple of 8" (100 becomes 104, 10 becomes 64)
            SimulatedDriver::Igb | SimulatedDriver::E1000e => Ok(n.max(64).next_multiple_of(8)),
            // lab: "vmxnet3: -G rounds up to a multiple of 32"
            SimulatedDriver::Vmxnet3 => Ok(n.next_multiple_of(32)),
            // lab: "virtio: rings that are no power of two"
            SimulatedDriver::Virtio if !n.is_power_of_two() => Err(Error::errno("rings-set", ENOMEM)),
            // Before 5.17 without a message. lab: "mqnic: rings below 64"
            SimulatedDriver::Mqnic if n < 64 => {
                let mut e = Error::errno("rings-set", EINVAL);
                e.words = Some("ring size below 64".into());
                Err(e)
            }
            SimulatedDriver::Mqnic => Ok(n.next_power_of_two()),
            SimulatedDriver::Virtio | SimulatedDriver::Other => Ok(n),
        }
    };
    let (rx, tx) = (want.rx.map(round).transpose()?, want.tx.map(round).transpose()?);
    let nic = &mut s.nics[i];
    if let Fact::Known(r) = &mut nic.rings {
        for (ring, n) in [(&mut r.rx, rx), (&mut r.tx, tx)] {
            if let (Some(c), Some(n)) = (ring, n) {
                c.now = n.min(c.max);
            }
        }
        // What the message does not name keeps its value: net/ethtool/rings.c, `ethnl_set_rings`, starts from the present
        // parameters (`ethtool_ringparam_get_cfg`).
        for (part, n) in want.iter().filter(|(p, _)| p.kind != RingKind::Size) {
            let found = match part.kind {
                RingKind::Mode => (n != 0).then_some(Count { now: n, max: 0 }),
                _ => part.found(r).map(|c| Count { now: n, ..c }),
            };
            part.store(r, found);
        }
    }
    if driver == SimulatedDriver::Vmxnet3 {
        // lab: "vmxnet3: -G resets the table"
        let queues = nic.rx_queues.len() as u32;
        set_table(nic, |n| round_robin(n, queues));
    }
    if driver == SimulatedDriver::Igb {
        // lab: wait_link after -G
        s.extra[i].link_down_until(now + Duration::from_millis(1200));
    }
    Ok(())
}
