//! udev rules: attributes in sysfs. CPU masks are written in the kernel's format.

use std::fmt::Write as _;

use ringwise_model::{CpuId, CpuSet, Intent, Knob, Nic};

use super::{Exported, HEAD, devs, nic, of};
use crate::set::quote;

/// Rules of udev(7) that write the settings kept in sysfs when an interface appears.
pub fn udev(i: &Intent, nics: &[Nic]) -> Exported {
    let mut out = Exported::beyond(i);
    let mut text = HEAD.to_string();
    for dev in devs(i) {
        let Some(n) = nic(nics, dev) else { continue };
        let count = |rx: bool| if rx { n.rx_queues.len() } else { n.tx_queues.len() } as u32;
        let mut attrs: Vec<(String, String)> = Vec::new();
        // `false`: the setting is for all queues, and their number is unknown.
        let mut each = |queues: &Option<Vec<u32>>, rx: bool, file: &str, value: String| {
            let all: Vec<u32> = queues.clone().unwrap_or_else(|| (0..count(rx)).collect());
            let dir = if rx { "rx" } else { "tx" };
            attrs.extend(all.iter().map(|q| (format!("queues/{dir}-{q}/{file}"), value.clone())));
            !all.is_empty()
        };
        let mut own: Vec<(String, String)> = Vec::new();
        for w in of(i, dev) {
            let mask = |c: &CpuSet| ringwise_kfmt::cpumask::format(c, None);
            let written = match &w.knob {
                Knob::XpsCpus { queues, cpus } => each(queues, false, "xps_cpus", mask(cpus)),
                Knob::RpsCpus { queues, cpus } => each(queues, true, "rps_cpus", mask(cpus)),
                Knob::RpsFlowCnt { queues, entries } => each(queues, true, "rps_flow_cnt", entries.to_string()),
                Knob::XpsRxqs { queues, rxqs } => {
                    let set = rxqs.iter().map(|q| CpuId(*q)).collect();
                    each(queues, false, "xps_rxqs", mask(&set))
                }
                Knob::Napi { queues: None, values } => {
                    let all = [
                        ("napi_defer_hard_irqs", values.defer_hard_irqs.map(u64::from)),
                        ("gro_flush_timeout", values.gro_flush_timeout_ns),
                        ("threaded", values.threaded.map(u64::from)),
                    ];
                    own.extend(all.iter().filter_map(|(k, v)| Some((k.to_string(), (*v)?.to_string()))));
                    if values.irq_suspend_timeout_ns.is_some() {
                        out.leave_out(w, "napi.irq_suspend_timeout_ns");
                    }
                    true
                }
                _ => false,
            };
            if !written {
                out.leave(w);
            }
        }
        attrs.extend(own);
        if attrs.is_empty() {
            continue;
        }
        // A bond and its VLANs have the address of a member, and no driver. NAME is empty if no rule has set it.
        let found = match (&n.dev.permanent_mac, &n.dev.bus_address) {
            (Some(mac), _) => format!("ATTR{{address}}=={}, DRIVERS==\"?*\"", quote(mac)),
            (None, Some(bus)) => format!("KERNELS=={}", quote(bus)),
            (None, None) => format!("KERNEL=={}", quote(dev)),
        };
        let all: Vec<String> = attrs.iter().map(|(k, v)| format!("ATTR{{{k}}}={}", quote(v))).collect();
        let _ = writeln!(text, "ACTION==\"add\", SUBSYSTEM==\"net\", {found}, {}", all.join(", "));
    }
    if text != HEAD {
        out.files.push(("82-ringwise.rules".into(), text));
    }
    out.leave_host(i);
    out
}

#[cfg(test)]
mod tests {
    use ringwise_model::Wish;
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn all_queues_of_an_unknown_number_are_left_out_and_named() {
        let nic = NicSpec::new("eth0", "igb", Some(0), 2, 2);
        let mut s = machines::host("one", CpuSpec::flat(4, 1), vec![nic]).snapshot();
        let wish = Wish {
            dev: Some("eth0".into()),
            knob: Knob::RpsFlowCnt { queues: None, entries: 256 },
            by: ringwise_model::ConfiguredBy::File { path: "a.toml".into(), line: 3 },
            params_by: Default::default(),
        };
        let i = Intent { wishes: vec![wish], ..Intent::default() };
        assert!(udev(&i, &s.nics).files[0].1.contains("queues/rx-1/rps_flow_cnt"));
        s.nics[0].rx_queues.clear();
        let out = udev(&i, &s.nics);
        assert!(out.files.is_empty(), "{:?}", out.files);
        assert!(out.left_out.iter().any(|l| l.contains("a.toml line 3")), "{:?}", out.left_out);
    }
}
