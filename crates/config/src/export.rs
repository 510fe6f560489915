//! A configuration in the words of other programs, and what these have no words for.

use std::fmt::Write as _;

use ringwise_model::{Intent, Knob, Nic, Wish};

use crate::set::quote;

/// Text of each file, by name, and what it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    pub files: Vec<(String, String)>,
    pub left_out: Vec<String>,
}

const HEAD: &str = "# Written by ringwise config export.\n";

fn devs(i: &Intent) -> Vec<&str> {
    let mut out: Vec<&str> = i.wishes.iter().filter_map(|w| w.dev.as_deref()).collect();
    out.extend(i.groups.iter().map(|g| g.dev.as_str()));
    out.sort();
    out.dedup();
    out
}

fn of<'a>(i: &'a Intent, dev: &str) -> impl Iterator<Item = &'a Wish> {
    i.wishes.iter().filter(move |w| w.dev.as_deref() == Some(dev))
}

/// What a format cannot say at all: the goal decides by what is there, groups follow programs.
fn beyond(i: &Intent, out: &mut Exported) {
    out.left_out.push(format!("goal {}: it is decided on the host; as settings: ringwise plan -o sh", i.goal));
    out.left_out.extend(i.groups.iter().map(|g| format!("{} group \"{}\" ({})", g.dev, g.name, g.said)));
}

fn leave(out: &mut Exported, w: &Wish) {
    let dev = w.dev.as_deref().unwrap_or("host");
    out.left_out.push(format!("{dev} {} ({})", name(&w.knob), w.said));
}

/// The key of the file.
fn name(k: &Knob) -> String {
    match k {
        Knob::Feature { name, .. } => return format!("feature {name}"),
        Knob::Sysctl { name, .. } => return format!("sysctl {name}"),
        Knob::Coalesce { queues: Some(_), .. } => "coalesce of queues",
        Knob::Coalesce { .. } => "coalesce",
        Knob::Pause { .. } => "pause",
        Knob::Channels { .. } => "channels",
        Knob::Rings { .. } => "rings",
        Knob::RssTable { .. } => "rss.table",
        Knob::RssHash { .. } => "rss.key",
        Knob::RssFields { .. } => "rss.fields",
        Knob::FlowRule { .. } => "rule",
        Knob::Napi { .. } => "napi",
        Knob::IrqCpus { .. } => "irq_cpus",
        Knob::XpsCpus { .. } => "xps_cpus",
        Knob::XpsRxqs { .. } => "xps_rxqs",
        Knob::RpsCpus { .. } => "rps_cpus",
        Knob::RpsFlowCnt { .. } => "rps_flow_cnt",
        Knob::RfsEntries { .. } => "rfs_entries",
        Knob::CpuLatency { .. } => "cpu_latency",
    }
    .to_string()
}

/// systemd.link(5).
pub fn link(i: &Intent, nics: &[Nic]) -> Exported {
    let mut out = Exported::default();
    beyond(i, &mut out);
    for dev in devs(i) {
        let mut text = String::new();
        for w in of(i, dev) {
            let before = text.len();
            link_lines(&w.knob, &mut text);
            if text.len() == before {
                leave(&mut out, w);
            }
        }
        let Some(n) = nics.iter().find(|n| n.name() == dev).filter(|_| !text.is_empty()) else { continue };
        let found = match (&n.dev.permanent_mac, &n.dev.bus_address) {
            (Some(mac), _) => format!("PermanentMACAddress={mac}"),
            (None, Some(bus)) => format!("Path=*-{bus}*"),
            (None, None) => format!("OriginalName={dev}"),
        };
        // One .link file wins as a whole: the name stays as the distribution's file has it.
        let text =
            format!("{HEAD}[Match]\n{found}\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\n{text}");
        out.files.push((format!("60-ringwise-{dev}.link"), text));
    }
    out.left_out
        .extend(i.wishes.iter().filter(|w| w.dev.is_none()).map(|w| format!("host {} ({})", name(&w.knob), w.said)));
    out
}

fn link_lines(k: &Knob, out: &mut String) {
    let mut line = |k: &str, v: &dyn std::fmt::Display| *out += &format!("{k}={v}\n");
    match k {
        Knob::Channels { rx, tx, combined } => {
            for (k, v) in [("RxChannels", rx), ("TxChannels", tx), ("CombinedChannels", combined)] {
                v.iter().for_each(|v| line(k, v));
            }
        }
        Knob::Rings { rx, tx } => {
            for (k, v) in [("RxBufferSize", rx), ("TxBufferSize", tx)] {
                v.iter().for_each(|v| line(k, v));
            }
        }
        Knob::Pause { autoneg, rx, tx } => {
            for (k, v) in [("AutoNegotiationFlowControl", autoneg), ("RxFlowControl", rx), ("TxFlowControl", tx)] {
                v.iter().for_each(|v| line(k, v));
            }
        }
        Knob::Coalesce { queues: None, params } if params.keys().all(|p| link_coalesce(p).is_some()) => {
            for (p, v) in params {
                let Some(key) = link_coalesce(p) else { continue };
                match key.starts_with("UseAdaptive") {
                    true => line(key, &(*v == 1)),
                    false if key.ends_with("Sec") => line(key, &format!("{v}us")),
                    false => line(key, v),
                }
            }
        }
        Knob::Feature { name, on } => {
            if let Some(key) = link_feature(name) {
                line(key, on);
            }
        }
        _ => {}
    }
}

fn link_coalesce(p: &str) -> Option<&'static str> {
    Some(match p {
        "use-adaptive-rx" => "UseAdaptiveRxCoalesce",
        "use-adaptive-tx" => "UseAdaptiveTxCoalesce",
        "rx-usecs" => "RxCoalesceSec",
        "tx-usecs" => "TxCoalesceSec",
        "rx-max-frames" => "RxMaxCoalescedFrames",
        "tx-max-frames" => "TxMaxCoalescedFrames",
        _ => return None,
    })
}

fn link_feature(name: &str) -> Option<&'static str> {
    Some(match name {
        "gro" | "rx-gro" => "GenericReceiveOffload",
        "rx-gro-hw" => "GenericReceiveOffloadHardware",
        "lro" | "rx-lro" => "LargeReceiveOffload",
        "gso" | "tx-generic-segmentation" => "GenericSegmentationOffload",
        "tso" | "tx-tcp-segmentation" => "TCPSegmentationOffload",
        "tx-tcp6-segmentation" => "TCP6SegmentationOffload",
        "rx" | "rx-checksum" => "ReceiveChecksumOffload",
        "ntuple" | "rx-ntuple-filter" => "NTupleFilter",
        _ => return None,
    })
}

/// A state for `nmstatectl apply`.
pub fn nmstate(i: &Intent) -> Exported {
    let mut out = Exported::default();
    beyond(i, &mut out);
    let mut text = format!("{HEAD}interfaces:\n");
    for dev in devs(i) {
        let mut parts: [(&str, String); 4] = ["feature", "pause", "ring", "coalesce"].map(|k| (k, String::new()));
        for w in of(i, dev) {
            let mut put = |at: usize, k: &str, v: &dyn std::fmt::Display| parts[at].1 += &format!("        {k}: {v}\n");
            match &w.knob {
                Knob::Feature { name, on } => put(0, name, on),
                Knob::Pause { autoneg, rx, tx } => {
                    for (k, v) in [("autoneg", autoneg), ("rx", rx), ("tx", tx)] {
                        v.iter().for_each(|v| put(1, k, v));
                    }
                }
                Knob::Rings { rx, tx } => {
                    for (k, v) in [("rx", rx), ("tx", tx)] {
                        v.iter().for_each(|v| put(2, k, v));
                    }
                }
                Knob::Coalesce { queues: None, params }
                    if !params.keys().any(|p| p.contains("cqe") || p.contains("aggr")) =>
                {
                    for (p, v) in params {
                        let short = p.trim_start_matches("use-");
                        let short =
                            if p.starts_with("use-") { short.to_string() } else { p.replace("-max-frames", "-frames") };
                        match p.starts_with("use-") {
                            true => put(3, &short, &(*v == 1)),
                            false => put(3, &short, v),
                        }
                    }
                }
                _ => leave(&mut out, w),
            }
        }
        if parts.iter().all(|(_, t)| t.is_empty()) {
            continue;
        }
        let _ = writeln!(text, "  - name: {}\n    ethtool:", quote(dev));
        for (key, lines) in parts.iter().filter(|(_, t)| !t.is_empty()) {
            let _ = write!(text, "      {key}:\n{lines}");
        }
    }
    out.files.push(("ringwise.yml".into(), text));
    out.left_out
        .extend(i.wishes.iter().filter(|w| w.dev.is_none()).map(|w| format!("host {} ({})", name(&w.knob), w.said)));
    out
}

/// A profile of tuned. Its net plugin has one value for all interfaces of a section.
pub fn tuned(i: &Intent) -> Exported {
    let mut out = Exported::default();
    beyond(i, &mut out);
    let mut text = format!("{HEAD}[main]\nsummary=Network tuning exported by ringwise\n");
    for dev in devs(i) {
        let mut lines = String::new();
        let mut features: Vec<String> = Vec::new();
        for w in of(i, dev) {
            match &w.knob {
                Knob::Feature { name, on } => features.push(format!("{name} {}", if *on { "on" } else { "off" })),
                Knob::Channels { rx, tx, combined } => {
                    let all = [("rx", rx), ("tx", tx), ("combined", combined)];
                    let _ = writeln!(lines, "channels={}", words(&all));
                }
                Knob::Rings { rx, tx } => lines += &format!("ring={}\n", words(&[("rx", rx), ("tx", tx)])),
                Knob::Pause { autoneg, rx, tx } => {
                    let all = [("autoneg", autoneg), ("rx", rx), ("tx", tx)];
                    let all =
                        all.iter().filter_map(|(k, v)| Some(format!("{k} {}", if (**v)? { "on" } else { "off" })));
                    let _ = writeln!(lines, "pause={}", all.collect::<Vec<_>>().join(" "));
                }
                Knob::Coalesce { queues: None, params } => {
                    let all = params.iter().map(|(p, v)| match p.strip_prefix("use-") {
                        Some(flag) => format!("{flag} {}", if *v == 1 { "on" } else { "off" }),
                        None => format!("{} {v}", p.replace("-max-frames", "-frames")),
                    });
                    let _ = writeln!(lines, "coalesce={}", all.collect::<Vec<_>>().join(" "));
                }
                _ => leave(&mut out, w),
            }
        }
        if !features.is_empty() {
            let _ = writeln!(lines, "features={}", features.join(" "));
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n[net_{dev}]\ntype=net\ndevices={dev}\n{lines}");
        }
    }
    let mut sysctl = String::new();
    for w in i.wishes.iter().filter(|w| w.dev.is_none()) {
        match &w.knob {
            Knob::Sysctl { name, value } => sysctl += &format!("{}={value}\n", name.replace('/', ".")),
            Knob::RfsEntries { entries } => sysctl += &format!("net.core.rps_sock_flow_entries={entries}\n"),
            _ => leave(&mut out, w),
        }
    }
    if !sysctl.is_empty() {
        let _ = write!(text, "\n[sysctl]\n{sysctl}");
    }
    out.files.push(("tuned.conf".into(), text));
    out
}

fn words(all: &[(&str, &Option<u32>)]) -> String {
    all.iter().filter_map(|(k, v)| Some(format!("{k} {}", (**v)?))).collect::<Vec<_>>().join(" ")
}

/// udev rules: attributes in sysfs. Masks of CPUs are written as the kernel takes them.
pub fn udev(i: &Intent, nics: &[Nic]) -> Exported {
    let mut out = Exported::default();
    beyond(i, &mut out);
    let mut text = HEAD.to_string();
    for dev in devs(i) {
        let Some(n) = nics.iter().find(|n| n.name() == dev) else { continue };
        let count = |rx: bool| if rx { n.rx_queues.len() } else { n.tx_queues.len() } as u32;
        let mut attrs: Vec<(String, String)> = Vec::new();
        let mut each = |queues: &Option<Vec<u32>>, rx: bool, file: &str, value: String| {
            let all: Vec<u32> = queues.clone().unwrap_or_else(|| (0..count(rx)).collect());
            let dir = if rx { "rx" } else { "tx" };
            attrs.extend(all.iter().map(|q| (format!("queues/{dir}-{q}/{file}"), value.clone())));
        };
        let mut own: Vec<(String, String)> = Vec::new();
        for w in of(i, dev) {
            let mask = |c: &ringwise_model::CpuSet| ringwise_kfmt::cpumask::format(c, None);
            match &w.knob {
                Knob::XpsCpus { queues, cpus } => each(queues, false, "xps_cpus", mask(cpus)),
                Knob::RpsCpus { queues, cpus } => each(queues, true, "rps_cpus", mask(cpus)),
                Knob::RpsFlowCnt { queues, entries } => each(queues, true, "rps_flow_cnt", entries.to_string()),
                Knob::XpsRxqs { queues, rxqs } => {
                    let set = rxqs.iter().map(|q| ringwise_model::CpuId(*q)).collect();
                    each(queues, false, "xps_rxqs", mask(&set));
                }
                Knob::Napi { queues: None, values } => {
                    let all = [
                        ("napi_defer_hard_irqs", values.defer_hard_irqs.map(u64::from)),
                        ("gro_flush_timeout", values.gro_flush_timeout_ns),
                        ("threaded", values.threaded.map(u64::from)),
                    ];
                    own.extend(all.iter().filter_map(|(k, v)| Some((k.to_string(), (*v)?.to_string()))));
                    if values.irq_suspend_timeout_ns.is_some() {
                        leave(&mut out, w);
                    }
                }
                _ => leave(&mut out, w),
            }
        }
        attrs.extend(own);
        if attrs.is_empty() {
            continue;
        }
        let found = match &n.dev.permanent_mac {
            Some(mac) => format!("ATTR{{address}}=={}", quote(mac)),
            None => format!("NAME=={}", quote(dev)),
        };
        let all: Vec<String> = attrs.iter().map(|(k, v)| format!("ATTR{{{k}}}={}", quote(v))).collect();
        let _ = writeln!(text, "ACTION==\"add\", SUBSYSTEM==\"net\", {found}, {}", all.join(", "));
    }
    out.files.push(("82-ringwise.rules".into(), text));
    out.left_out
        .extend(i.wishes.iter().filter(|w| w.dev.is_none()).map(|w| format!("host {} ({})", name(&w.knob), w.said)));
    out
}
