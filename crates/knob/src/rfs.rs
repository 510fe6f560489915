//! Receive flow steering: `queues/rx-N/rps_flow_cnt` and sysctl `net.core.rps_sock_flow_entries`, in entries.

use ringwise_model::{Fact, Host, Nic, Snapshot};

use crate::{Address, Descriptor, Match, NotProjected, Setting, path, rx_queue};

pub(crate) struct RfsFamily;

impl Descriptor for RfsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let of_queue = |queue| Address::RpsFlowCnt { dev: nic.dev.name.clone(), queue };
        nic.rx_queues.iter().map(|q| of_queue(q.id)).collect::<Vec<_>>()
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::RpsFlowCnt { dev, queue } => format!("{dev} rx-{queue} rps_flow_cnt"),
            _ => "net.core.rps_sock_flow_entries".into(),
        }
    }

    fn file(&self, address: &Address) -> Option<String> {
        match address {
            Address::RpsFlowCnt { dev, queue } => Some(path::of_rx(dev, *queue, "rps_flow_cnt")),
            Address::RfsEntries => Some(path::RFS_ENTRIES.to_string()),
            _ => None,
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::RpsFlowCnt { dev, queue } => s.nic(dev).map_or(Fact::Absent, |n| live(n, *queue)),
            Address::RfsEntries => live_entries(&s.host),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::RpsFlowCnt { entries, .. }, Setting::RpsFlowCnt { entries: got, .. })
            | (Setting::RfsEntries { entries }, Setting::RfsEntries { entries: got }) => compare(*entries, *got),
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::RpsFlowCnt { dev, queue, entries } => {
                rx_queue(s, dev, *queue)?.rps_flow_cnt = Fact::Known(kept(*entries));
            }
            Setting::RfsEntries { entries } => s.host.rps_sock_flow_entries = Fact::Known(kept(*entries)),
            _ => return Err(NotProjected::OTHER_FAMILY),
        }
        Ok(())
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::RpsFlowCnt { entries, .. } | Setting::RfsEntries { entries } => entries.to_string(),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::RpsFlowCnt { dev, queue, entries } => Some(command(dev, *queue, *entries)),
            Setting::RfsEntries { entries } => Some(command_entries(*entries)),
            _ => None,
        }
    }
}

/// Flow table size of a queue in this snapshot.
pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.rx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.rps_flow_cnt.as_ref().map(|n: &u32| Setting::RpsFlowCnt { dev, queue, entries: *n })
}

/// Flow table size of the host in this snapshot.
pub fn live_entries(host: &Host) -> Fact<Setting> {
    host.rps_sock_flow_entries.as_ref().map(|n: &u32| Setting::RfsEntries { entries: *n })
}

/// Both are rounded up to a power of two (net/core/net-sysfs.c, sysctl_net_core.c); 0 stays 0.
pub fn kept(entries: u32) -> u32 {
    if entries == 0 { 0 } else { entries.checked_next_power_of_two().unwrap_or(entries) }
}

/// Compares the sizes as the kernel rounds them.
pub fn compare(want: u32, got: u32) -> Match {
    if kept(want) == kept(got) { Match::Same } else { Match::Differs }
}

/// The command that writes the flow table size of a queue.
pub fn command(dev: &str, queue: u32, entries: u32) -> String {
    format!("echo {entries} > {}", path::of_rx(dev, queue, "rps_flow_cnt"))
}

/// The command that writes the flow table size of the host.
pub fn command_entries(entries: u32) -> String {
    format!("echo {entries} > {}", path::RFS_ENTRIES)
}
