//! Exports a configuration to the formats of other programs, and lists what these formats cannot express.
//!
//! Tests check the results with the programs that read them: `.link` files and rules with systemd-udevd in
//! `lab/scenarios/655-export.sh`, profiles with tuned's net plugin in `crates/cli/tests/export.rs` if tuned is
//! installed. There, states are compared with the keys that nmstate accepts.

pub(crate) mod link;
mod nmstate;
mod tuned;
mod udev;

pub use link::link;
pub use nmstate::nmstate;
pub use tuned::tuned;
pub use udev::udev;

use ringwise_model::{Intent, Knob, Nic, RingKind, RingValues, Wish};

/// The text of each file by name, and what the files do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Name and text, ready to be written.
    pub files: Vec<(String, String)>,
    /// What the format cannot express, one sentence each.
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

fn nic<'a>(nics: &'a [Nic], dev: &str) -> Option<&'a Nic> {
    nics.iter().find(|n| n.name() == dev)
}

impl Exported {
    /// What no format can express: the goal and the other keys of `[host]` are resolved on the host, and groups follow
    /// programs.
    fn beyond(i: &Intent) -> Self {
        let mut left_out = vec![format!("goal {}: ringwise computes its settings on the host", i.goal)];
        // `interfaces` is in effect already: the settings of other interfaces are not exported.
        let whole = crate::Config::of_intent(i).host;
        let keys = crate::HostPart { goal: None, interfaces: Vec::new(), wishes: Vec::new(), ..whole };
        left_out.extend(crate::print_host_keys(&keys).lines().map(|key| format!("host {key}")));
        left_out.extend(i.dev_goals.iter().map(|(dev, goal)| format!("{dev} goal {goal}")));
        left_out.extend(i.policies.iter().map(|p| format!("policy \"{}\"", p.name)));
        left_out.extend(i.groups.iter().map(|g| format!("{} group \"{}\" ({})", g.dev, g.name, g.by)));
        Self { files: Vec::new(), left_out }
    }

    fn leave(&mut self, w: &Wish) {
        self.leave_out(w, &name(&w.knob));
    }

    /// Records that this part of the wish is left out.
    fn leave_out(&mut self, w: &Wish, what: &str) {
        let dev = w.dev.as_deref().unwrap_or("host");
        self.left_out.push(format!("{dev} {what} ({})", w.by));
    }

    /// Sizes of rings, which the formats have keys for. Other ring parameters are left out.
    fn ring_sizes(&mut self, w: &Wish, values: &RingValues) -> RingValues {
        for (part, _) in values.iter().filter(|(p, _)| p.kind != RingKind::Size) {
            self.leave_out(w, &format!("rings.{}", part.key));
        }
        RingValues::each(|p| p.value(values).filter(|_| p.kind == RingKind::Size))
    }

    fn leave_host(&mut self, i: &Intent) {
        i.wishes.iter().filter(|w| w.dev.is_none()).for_each(|w| self.leave(w));
    }
}

/// The key in the configuration file.
pub(crate) fn name(k: &Knob) -> String {
    match k {
        Knob::Feature { name, .. } => return format!("feature {name}"),
        Knob::Sysctl { name, .. } => return format!("sysctl {name}"),
        Knob::RssFields { flow, .. } => return format!("rss.fields.{flow}"),
        Knob::Coalesce { queues: Some(_), .. } => "coalesce of queues",
        Knob::Coalesce { .. } => "coalesce",
        Knob::Pause { .. } => "pause",
        Knob::Channels { .. } => "channels",
        Knob::Rings { .. } => "rings",
        Knob::LongestRings { .. } => "rings = \"max\"",
        Knob::RssTable { .. } => "rss.table",
        Knob::RssHash { .. } => "rss.key",
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

/// ethtool's short and long words for features, and the kernel's names (`*` stands for anything), as in
/// `ringwise_knob::features::SHORT`.
pub const FEATURE_WORDS: [(&str, &str, &str); 12] = [
    ("rx", "rx-checksumming", "rx-checksum"),
    ("tx", "tx-checksumming", "tx-checksum-*"),
    ("sg", "scatter-gather", "tx-scatter-gather*"),
    ("tso", "tcp-segmentation-offload", "tx-tcp*-segmentation"),
    ("ufo", "udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("gso", "generic-segmentation-offload", "tx-generic-segmentation"),
    ("gro", "generic-receive-offload", "rx-gro"),
    ("lro", "large-receive-offload", "rx-lro"),
    ("rxvlan", "rx-vlan-offload", "rx-vlan-hw-parse"),
    ("txvlan", "tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple", "ntuple-filters", "rx-ntuple-filter"),
    ("rxhash", "receive-hashing", "rx-hashing"),
];

/// The kernel's names for a word on this device. `None`: unknown without the device's list of features.
fn kernel_names(word: &str, nic: Option<&Nic>) -> Option<Vec<String>> {
    let Some((.., pattern)) = FEATURE_WORDS.iter().find(|(s, l, _)| *s == word || *l == word) else {
        return Some(vec![word.to_string()]);
    };
    if !pattern.contains('*') {
        return Some(vec![pattern.to_string()]);
    }
    let all = nic?.features.known()?.iter().filter(|(n, f)| !f.fixed && crate::glob_matches(pattern, n));
    Some(all.map(|(n, _)| n.clone()).collect())
}

/// ethtool's word, if there is one. `None`: the feature is one of several for a word.
fn ethtool_word(word: &str) -> Option<&str> {
    let is = |(s, l, k): &&(&str, &str, &str)| *s == word || *l == word || crate::glob_matches(k, word);
    match FEATURE_WORDS.iter().find(is) {
        None => Some(word),
        Some((short, long, k)) if *short == word || *long == word || !k.contains('*') => Some(short),
        Some(_) => None,
    }
}

/// ethtool's word for a coalescing parameter, if other programs know it too.
fn coalesce_word(p: &str) -> Option<String> {
    match p {
        p if ["cqe", "aggr", "profile"].iter().any(|w| p.contains(w)) => None,
        "rate-sample-interval" => Some("sample-interval".into()),
        p => Some(p.strip_prefix("use-").map_or_else(|| p.replace("-max-frames", "-frames"), str::to_string)),
    }
}

/// Parameters in the words of the format. Those that have no word are recorded as left out.
fn coalesce(out: &mut Exported, w: &Wish, params: &std::collections::BTreeMap<String, u32>) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for (p, v) in params {
        match coalesce_word(p) {
            Some(word) => found.push((word, *v)),
            None => out.leave_out(w, &format!("coalesce.{p}")),
        }
    }
    found
}
