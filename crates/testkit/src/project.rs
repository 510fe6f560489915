//! A snapshot with settings written into it, as a kernel without quirks would keep them.

mod knobs;

use ringwise_knob::{Address, Setting, coalesce, irq, rfs};
use ringwise_model::{Channels, Count, CpuSet, Dir, Fact, Nic, Role, Snapshot};

use crate::machines::{self, Vectors};

/// The host after `settings` were written in their order.
///
/// # Panics
/// When a setting names a device, queue or vector that does not exist then.
pub fn project(s: &Snapshot, settings: &[Setting]) -> Snapshot {
    let mut out = s.clone();
    let online = s.topology.online.clone();
    for setting in settings {
        if let Setting::RfsEntries { entries } = setting {
            out.host.rps_sock_flow_entries = Fact::Known(rfs::kept(*entries));
            continue;
        }
        if let Setting::CpuLatency { cpu, value } = setting {
            out.host.cpu_latency.insert(*cpu, Fact::Known(value.clone()));
            continue;
        }
        let address = setting.address().unwrap_or(Address::RfsEntries);
        let dev = address.dev().unwrap_or_default();
        let nic =
            out.nics.iter_mut().find(|n| n.dev.name == dev).unwrap_or_else(|| panic!("{address}: no such device"));
        write(nic, setting, &online, &address);
    }
    out
}

fn write(nic: &mut Nic, setting: &Setting, online: &CpuSet, address: &Address) {
    match setting {
        Setting::Channels { rx, tx, combined, .. } => channels(nic, *rx, *tx, *combined, online),
        Setting::IrqCpus { of, cpus, .. } => {
            let number = irq::vector(nic, *of).map(|v| v.irq);
            let v = nic.vectors.iter_mut().find(|v| Some(v.irq) == number);
            let v = v.unwrap_or_else(|| panic!("{address}: no such vector"));
            v.asked = Fact::Known(cpus.clone());
            v.effective = Fact::Known(cpus.clone());
        }
        Setting::XpsCpus { queue, cpus, .. } => {
            let q = nic.tx_queues.iter_mut().find(|q| q.id == *queue);
            q.unwrap_or_else(|| panic!("{address}: no such queue")).xps_cpus = Fact::Known(cpus.clone());
        }
        Setting::RpsCpus { queue, cpus, .. } => {
            let q = nic.rx_queues.iter_mut().find(|q| q.id == *queue);
            q.unwrap_or_else(|| panic!("{address}: no such queue")).rps_cpus = Fact::Known(cpus.clone());
        }
        Setting::RpsFlowCnt { queue, entries, .. } => {
            let q = nic.rx_queues.iter_mut().find(|q| q.id == *queue);
            q.unwrap_or_else(|| panic!("{address}: no such queue")).rps_flow_cnt = Fact::Known(rfs::kept(*entries));
        }
        other => assert!(knobs::write(nic, other, address), "{address}: not projected: {other:?}"),
    }
}

fn channels(nic: &mut Nic, rx: Option<u32>, tx: Option<u32>, combined: Option<u32>, online: &CpuSet) {
    let n = combined.or(rx).unwrap_or(1);
    assert_eq!(combined.or(tx), Some(n), "as many transmit as receive queues");
    let set = |c: Option<Count>, now: Option<u32>| c.map(|c| Count { now: now.unwrap_or(c.now), ..c });
    nic.channels = nic.channels.clone().map(|c| Channels {
        rx: set(c.rx, rx),
        tx: set(c.tx, tx),
        combined: set(c.combined, combined),
        other: c.other,
    });
    let max = nic.channels.known().and_then(|c| c.combined).map_or(0, |c| c.max);
    let split = match coalesce::pairs_with(nic.driver.known().map(String::as_str), n, max) {
        Some(pairs) => !pairs,
        None => nic.vector_of(Dir::Tx, 0).is_some_and(|v| v.rx().is_empty()),
    };
    let style = if split { Vectors::Split } else { Vectors::Paired };
    let control = nic.vectors.iter().filter(|v| v.role == Role::Control).cloned().collect::<Vec<_>>();
    let first = 500 + nic.vectors.first().map_or(0, |v| v.irq.0 / 1000 * 1000);
    nic.vectors = machines::vectors(&nic.dev.name.clone(), style, n, first, online);
    nic.vectors.extend(control);
    nic.rx_queues.truncate(n as usize);
    nic.tx_queues.truncate(n as usize);
    for q in nic.rx_queues.len() as u32..n {
        nic.rx_queues.push(machines::rx_queue(q, &CpuSet::new(), 0));
    }
    for q in nic.tx_queues.len() as u32..n {
        nic.tx_queues.push(machines::tx_queue(q, n));
    }
    for q in &mut nic.tx_queues {
        // Redrawn by the change; a device with one transmit queue has none.
        q.xps_cpus = if n > 1 { Fact::Known(CpuSet::new()) } else { Fact::Absent };
    }
}
