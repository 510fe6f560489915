//! The present values of one setting, for the pages of `ringwise help`: a line for each group of interfaces with the same
//! values.

use std::collections::BTreeMap;

use ringwise_model::{CpuSet, Fact, Feature, Nic, Snapshot, Vector};

use super::{competing, facts, misplaced, moderation, rules, show, steering};
use ringwise_text::{self as text, Style};
use ringwise_text::{hang, len, numbers, pad, plural, sentence, set};

/// The most lines that the values take.
const MOST_LINES: usize = 6;
/// The most columns that the names of a group of interfaces take.
const NAMES: usize = 24;

/// A setting, or a property of the layout, whose present values can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobValues {
    /// Competing programs, and what they would change.
    Irqbalance,
    /// Features that matter for the path of packets.
    Features,
    /// Features by the kernel's names.
    Feature(&'static [&'static str]),
    /// Number of queues.
    Channels,
    /// Sizes of the rings.
    Rings,
    /// Pause frames.
    Pause,
    /// Moderation of the device and of single queues.
    Moderation,
    /// Table, function and fields of receive side scaling.
    Rss,
    /// Flow steering rules.
    FlowRules,
    /// CPUs of the queue interrupts.
    Interrupts,
    /// CPUs that send on a queue.
    Xps,
    /// CPUs that help a receive queue.
    Rps,
    /// Tables of receive flow steering.
    Rfs,
    /// NAPI settings of the device and of queues.
    Napi,
    /// Byte queue limits of the transmit queues.
    ByteQueueLimits,
    /// Settings of the network core (`net.core`).
    NetworkCore,
    /// Limits of the time that CPUs take to wake up.
    WakeUp,
    /// CPUs, nodes, threads, isolated CPUs.
    Cpus,
    /// Queues whose interrupt is delivered to a remote node.
    RemoteQueues,
    /// The CPU with the most queues.
    QueuesPerCpu,
}

impl KnobValues {
    /// The values of a host, each line indented by two columns.
    pub fn text(self, s: &Snapshot, style: &Style) -> String {
        if let Some(text) = self.of_host(s, style) {
            return clipped(&text, MOST_LINES);
        }
        let mut alike: Vec<(Vec<&str>, String)> = Vec::new();
        for n in s.nics.iter().filter(|n| text::is_listed(n) && n.has_own_queues()) {
            let value = self.of_interface(s, n, style);
            match alike.iter_mut().find(|(_, v)| *v == value) {
                Some((names, _)) => names.push(n.name()),
                None => alike.push((vec![n.name()], value)),
            }
        }
        if alike.is_empty() {
            return "  no interface has queues of its own\n".into();
        }
        groups(&alike, style)
    }

    /// `None`: each interface has its own value.
    fn of_host(self, s: &Snapshot, style: &Style) -> Option<String> {
        let line = |text: &str| hang("  ", text, style.width);
        Some(match self {
            Self::Irqbalance => line(&competing::line(s)),
            Self::Cpus => line(text::host_line(s, None).trim_end()),
            Self::NetworkCore => {
                let known = s.host.sysctls.iter().filter(|(_, f)| !f.is_absent());
                let value = |f: &Fact<String>| text::word(f, String::clone);
                let all: Vec<String> =
                    known.map(|(k, f)| format!("{} {}", k.trim_start_matches("net.core."), value(f))).collect();
                line(&listed(&all, style))
            }
            Self::WakeUp => {
                let mut by: BTreeMap<&str, CpuSet> = BTreeMap::new();
                for (cpu, value) in &s.host.cpu_latency {
                    by.entry(value.known().map_or("unknown", String::as_str)).or_default().insert(*cpu);
                }
                let one = |(value, cpus): (&str, &CpuSet)| match value {
                    "0" => format!("CPUs {cpus}: no limit"),
                    "unknown" | "n/a" => format!("CPUs {cpus}: {value}"),
                    us => format!("CPUs {cpus}: {us} us"),
                };
                let all: Vec<String> = by.iter().map(|(value, cpus)| one((value, cpus))).collect();
                line(&listed(&all, style))
            }
            _ => return None,
        })
    }

    fn of_interface(self, s: &Snapshot, n: &Nic, style: &Style) -> String {
        match self {
            Self::Features => facts::features(n).unwrap_or_else(|| unread(&n.features)),
            Self::Feature(names) => {
                let all = names.iter().map(|name| feature(n, name)).collect::<Vec<_>>();
                all.join(", ")
            }
            Self::Channels => show::queues(n),
            Self::Rings => steering::rings(n),
            Self::Pause => steering::pause(n),
            Self::Moderation => {
                let device = steering::moderation(&n.driver, &n.coalesce);
                moderation::of_queues(n).map_or_else(|| device.clone(), |q| format!("{device}; queues {q}"))
            }
            Self::Rss => steering::rss(&n.rss),
            Self::FlowRules => rules::line(n).unwrap_or_else(|| unread(&n.rules)),
            Self::Interrupts => interrupts(n),
            Self::Xps => steering::xps(n, style),
            Self::Rps => steering::rps(n, style),
            Self::Rfs => steering::rfs(n, &s.host),
            Self::Napi => match &n.napi {
                Fact::Known(_) => moderation::napi(n).unwrap_or_else(|| "nothing is set".into()),
                f => unread(f),
            },
            Self::ByteQueueLimits => byte_limits(n),
            Self::RemoteQueues => remote(s, n),
            Self::QueuesPerCpu => match misplaced::stacked(n) {
                Some(s) => {
                    format!("up to {} on one CPU ({})", plural(s.queues, "queue"), misplaced::list_of(&s.cpus))
                }
                None if delivered(n) > 0 => "no CPU takes several queues".into(),
                None => "unknown: the CPUs of the interrupts could not be read".into(),
            },
            Self::Irqbalance | Self::NetworkCore | Self::WakeUp | Self::Cpus => String::new(),
        }
    }
}

/// The values as a list, or why the list is empty.
fn listed(all: &[String], style: &Style) -> String {
    match (all.is_empty(), style.recording.is_one()) {
        (false, _) => all.join(", "),
        (true, true) => "unknown (not in this recording)".into(),
        (true, false) => "unknown (the kernel does not show these values here)".into(),
    }
}

/// The first lines of a text that has too many.
fn clipped(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() > most {
        true => format!("{}\n  ...\n", lines[..most - 1].join("\n")),
        false => text.to_string(),
    }
}

fn groups(alike: &[(Vec<&str>, String)], style: &Style) -> String {
    let heads: Vec<String> = alike.iter().map(|(names, _)| label(names)).collect();
    let width = heads.iter().map(|h| len(h)).max().unwrap_or(0);
    let (mut out, mut used) = (String::new(), 0);
    for (i, ((_, value), head)) in alike.iter().zip(&heads).enumerate() {
        // A line stays free for the number of interfaces that are not shown.
        let last = i + 1 == alike.len();
        let free = if last { MOST_LINES - used } else { MOST_LINES - 1 - used };
        let mut block = hang(&format!("  {}  ", pad(head, width)), value, style.width);
        if i == 0 {
            block = clipped(&block, free);
        } else if block.lines().count() > free {
            let interfaces: usize = alike[i..].iter().map(|(names, _)| names.len()).sum();
            out.push_str(&format!("  and {} with other values\n", plural(interfaces, "interface")));
            break;
        }
        used += block.lines().count();
        out.push_str(&block);
    }
    out
}

/// `eth0 eth1`, or `eth0 eth1 and 6 more`.
fn label(names: &[&str]) -> String {
    let all = names.join(" ");
    if len(&all) <= NAMES {
        return all;
    }
    let mut shown = names[0].to_string();
    let mut n = 1;
    while n < names.len() && len(&shown) + 1 + len(names[n]) + " and 999 more".len() <= NAMES {
        shown = format!("{shown} {}", names[n]);
        n += 1;
    }
    if n < names.len() { format!("{shown} and {} more", names.len() - n) } else { shown }
}

fn unread<T>(f: &Fact<T>) -> String {
    sentence(f, "not supported by the driver or the kernel", |_| String::new())
}

/// `rx-lro off (fixed)`
fn feature(n: &Nic, name: &str) -> String {
    let word = |f: &Feature| {
        let fixed = if f.fixed { " (fixed)" } else { "" };
        format!("{}{fixed}", if f.on { "on" } else { "off" })
    };
    match &n.features {
        Fact::Known(all) => format!("{name} {}", all.get(name).map_or("not reported".into(), word)),
        f => format!("{name} {}", unread(f)),
    }
}

/// Number of queue interrupts whose CPU is known.
fn delivered(n: &Nic) -> usize {
    n.queue_vectors().filter(|v| v.effective.known().is_some_and(|e| !e.is_empty())).count()
}

/// `8 interrupts on CPUs 8-15, 2 of them pinned`. A pending interrupt counts on the CPU that it is pinned to, as in the table of `ringwise`.
fn interrupts(n: &Nic) -> String {
    let all: Vec<&Vector> = n.queue_vectors().collect();
    if all.is_empty() {
        return "unknown: no interrupt could be matched to a queue".into();
    }
    let on: CpuSet = all.iter().filter_map(|v| v.taken_by()).fold(CpuSet::new(), |a, e| a.union(e));
    let place = if on.is_empty() { "unknown CPUs".to_string() } else { format!("CPUs {on}") };
    let pinned = all.iter().filter(|v| v.asked.known().is_some_and(|a| a.len() == 1)).count();
    let asked = all.iter().filter(|v| v.asked.is_known()).count();
    let how = match (pinned, asked) {
        (_, 0) => "affinity unknown".to_string(),
        (p, a) if p == a => "each pinned to a CPU".to_string(),
        (0, _) => {
            let may = all.iter().filter_map(|v| v.asked.known()).fold(CpuSet::new(), |all, a| all.union(a));
            format!("none pinned: they may move among CPUs {}", set(&may))
        }
        (p, a) => format!("{p} of {a} pinned to a CPU"),
    };
    format!("{} on {place}, {how}", plural(all.len(), "interrupt"))
}

/// `8 queues: limit now 0-3028 bytes, limit_max 1879048192`
fn byte_limits(n: &Nic) -> String {
    let known: Vec<_> = n.tx_queues.iter().filter_map(|q| Some((q.id, q.bql.known()?))).collect();
    let Some((_, first)) = known.first() else {
        return n.tx_queues.first().map_or_else(|| "no transmit queue".into(), |q| unread(&q.bql));
    };
    let range = |least: u64, most: u64| if least == most { most.to_string() } else { format!("{least}-{most}") };
    let (mut now, mut max) = ((first.limit_bytes, first.limit_bytes), (first.limit_max_bytes, first.limit_max_bytes));
    for (_, b) in &known {
        now = (now.0.min(b.limit_bytes), now.1.max(b.limit_bytes));
        max = (max.0.min(b.limit_max_bytes), max.1.max(b.limit_max_bytes));
    }
    format!(
        "queue{} {}: limit now {} bytes, limit_max {}",
        if known.len() == 1 { "" } else { "s" },
        numbers(known.iter().map(|(q, _)| *q)),
        range(now.0, now.1),
        range(max.0, max.1)
    )
}

/// `node 1: 2 of 4 known interrupts on a remote node`
fn remote(s: &Snapshot, n: &Nic) -> String {
    let node = match &n.node {
        Fact::Known(node) => node,
        Fact::Absent => return "no NUMA node".into(),
        Fact::Unknown(u) => return format!("node unknown ({})", u.why),
    };
    match (text::far_queues(s, n), delivered(n)) {
        (_, 0) | (None, _) => format!("node {node}; the CPUs of its queues are unknown"),
        (Some(0), known) => format!("node {node}: all {} local", plural(known, "known interrupt")),
        (Some(far), known) => format!("node {node}: {far} of {} on a remote node", plural(known, "known interrupt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_interfaces_take_six_lines() {
        let style = Style::plain(Some(80));
        let names: Vec<String> = (0..9).map(|n| format!("eth{n}")).collect();
        let alike: Vec<(Vec<&str>, String)> = names.iter().map(|n| (vec![n.as_str()], format!("{n} on"))).collect();
        let text = groups(&alike, &style);
        assert_eq!(text.lines().count(), MOST_LINES, "{text}");
        assert!(
            text.starts_with("  eth0  eth0 on\n") && text.ends_with("  and 4 interfaces with other values\n"),
            "{text}"
        );
        assert_eq!(groups(&alike[..6], &style).lines().count(), 6);
        let long = vec![(vec!["eth0"], "word ".repeat(200)), (vec!["eth1"], "off".to_string())];
        assert_eq!(groups(&long, &style).lines().count(), MOST_LINES);
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(label(&["eth0", "eth1"]), "eth0 eth1");
        assert_eq!(label(&["eth0", "eth1", "eth2", "eth3", "eth4", "eth5"]), "eth0 eth1 and 4 more");
    }
}
