//! Labels of values that all renderers share.

use ringwise_model::words::{hang, len, one_line, plural};
use ringwise_model::{Cause, Confidence, CpuSet, Dir, Fact, MapSource, Nic, NicKind, Snapshot, User, Vector};

/// Number of queue interrupts that are delivered to another node than the device's; `None`: the node is unknown.
pub fn far_queues(s: &Snapshot, n: &Nic) -> Option<usize> {
    let node = n.node.known()?;
    let far = |v: &&ringwise_model::Vector| {
        v.effective.known().is_some_and(|e| e.iter().any(|c| s.topology.node_of(c).is_some_and(|m| m != *node)))
    };
    Some(n.queue_vectors().filter(far).count())
}

/// `8 queues`, by the driver's count if it reports one.
pub fn queues(n: &Nic) -> String {
    match n.queues_in_use(Dir::Rx) {
        Some(used) => plural(used as usize, "queue"),
        None if n.queues_unread().is_some() => "queues unknown".into(),
        None => plural(0, "queue"),
    }
}

/// A list of CPUs as the kernel writes it, or `none`.
pub fn set(c: &CpuSet) -> String {
    if c.is_empty() { "none".into() } else { c.to_string() }
}

/// The value, `-` if it does not exist on this host, or `unknown` if it could not be read.
pub fn word<T>(f: &Fact<T>, show: impl FnOnce(&T) -> String) -> String {
    match f {
        Fact::Known(v) => one_line(&show(v)).into_owned(),
        Fact::Absent => "-".into(),
        Fact::Unknown(_) => "unknown".into(),
    }
}

/// Like [`word`], with the reason after `unknown`.
pub fn sentence<T>(f: &Fact<T>, absent: &str, show: impl FnOnce(&T) -> String) -> String {
    match f {
        Fact::Known(v) => one_line(&show(v)).into_owned(),
        Fact::Absent => absent.into(),
        Fact::Unknown(u) => format!("unknown ({})", u.why),
    }
}

/// Queue numbers as a list: `0-3,8`.
pub fn numbers(ids: impl IntoIterator<Item = u32>) -> String {
    ids.into_iter().map(ringwise_model::CpuId).collect::<CpuSet>().to_string()
}

/// The queues of a vector: `TxRx-0`, `rx-3`, `tx-1`, `rx-0,2`.
pub fn vector_label(v: &Vector) -> String {
    match (v.rx(), v.tx()) {
        ([], []) => format!("irq {}", v.irq),
        (rx, tx) if rx == tx => format!("TxRx-{}", numbers(rx.iter().copied())),
        (rx, []) => format!("rx-{}", numbers(rx.iter().copied())),
        ([], tx) => format!("tx-{}", numbers(tx.iter().copied())),
        (rx, tx) => format!("rx-{} tx-{}", numbers(rx.iter().copied()), numbers(tx.iter().copied())),
    }
}

/// How certain the mapping of a vector to queues is, in one word.
pub fn confidence(c: Confidence) -> &'static str {
    match c {
        Confidence::Sure => "sure",
        Confidence::Likely => "likely",
        Confidence::None => "unknown",
    }
}

/// Where the mapping of vectors to queues was found.
pub fn source(s: MapSource) -> &'static str {
    match s {
        MapSource::NetdevGenl => "the kernel's own table (netdev netlink)",
        MapSource::MsiAndName => "MSI vectors and names",
        MapSource::Name => "names in /proc/interrupts alone",
        MapSource::Nothing => "no source of information",
    }
}

/// The label of a user of a queue or an interface other than the kernel's own stack.
pub fn user(u: &User) -> String {
    match u {
        User::Xdp { mode, .. } => format!("XDP program ({mode})"),
        User::AfXdp { queue } => format!("AF_XDP socket on queue {queue}"),
        User::Rdma { device } => format!("RDMA device {device}"),
        User::Userspace { driver } => format!("user-space driver {driver}"),
        User::Ovs => "Open vSwitch".into(),
        User::Dmabuf { queue, id } => format!("DMA buffer {id} on queue {queue}"),
        User::IoUring { queue } => format!("io_uring zero copy on queue {queue}"),
        User::Lease { queue, ifindex, leased_as, netns } => {
            let netns = netns.map_or_else(String::new, |id| format!(" in network namespace {id}"));
            format!("lease of queue {queue} as queue {leased_as} of interface {}{netns}", ifindex.0)
        }
    }
}

/// `1G`, `2.5G`, `100M`, `up`, `down`, `unknown`.
pub fn link(n: &Nic) -> String {
    if let Some(&mbps) = n.link.speed_mbps.known()
        && mbps > 0
        && n.link.carrier.known() != Some(&false)
    {
        return if mbps >= 1000 {
            let (g, rest) = (mbps / 1000, mbps % 1000 / 100);
            if rest == 0 { format!("{g}G") } else { format!("{g}.{rest}G") }
        } else {
            format!("{mbps}M")
        };
    }
    match (n.link.carrier.known(), n.link.operstate.known().map(String::as_str)) {
        (_, Some("down" | "lowerlayerdown" | "notpresent")) | (Some(false), _) => "down".into(),
        (Some(true), _) | (_, Some("up")) => "up".into(),
        _ => "unknown".into(),
    }
}

/// Whether [`link`] shows `down`: no carrier, or the interface is not up.
pub fn is_down(n: &Nic) -> bool {
    link(n) == "down"
}

/// Why a device was not read, where it did not answer in time; otherwise `None`.
pub fn no_answer(n: &Nic) -> Option<&str> {
    n.unread.iter().find(|u| u.cause == Cause::Late).map(|u| u.why.as_str())
}

/// Whether an interface gets a line of its own without `--all`.
pub fn is_listed(n: &Nic) -> bool {
    !matches!(n.kind, NicKind::Software { .. } | NicKind::Loopback)
}

/// The unmodified host name, for documents. Text for a terminal must pass it through `visible`.
pub fn host_name(s: &Snapshot) -> String {
    match &s.host.name {
        Fact::Known(n) => n.clone(),
        _ => "host of unknown name".into(),
    }
}

/// `edge3  Linux 6.12.48  16 CPUs: node 0 = 0-7, node 1 = 8-15, 2 threads a core`; the CPUs are on a line of their own if
/// both do not fit on one.
pub fn host_line(s: &Snapshot, width: Option<usize>) -> String {
    let head = format!("{}  Linux {}", one_line(&host_name(s)), one_line(&word(&s.host.kernel, String::clone)));
    let (count, parts) = cpus(s);
    let line = format!("{head}  {count}{}", parts.join(", "));
    match width {
        Some(w) if len(&line) > w => format!("{head}\n{}", on_lines(count, &parts, w)),
        _ => line + "\n",
    }
}

/// A line is broken only between the parts. A part that is longer than a line gets lines of its own, and its list is
/// broken after commas.
fn on_lines(mut lead: String, parts: &[String], width: usize) -> String {
    let indent = len(&lead);
    let (mut out, mut row) = (String::new(), Vec::new());
    let mut print = |head: &str, text: &str| {
        out += &hang(&format!("{lead}{head}"), text, Some(width)).replace(NO_BREAK, " ");
        lead = " ".repeat(indent);
    };
    for (i, part) in parts.iter().enumerate() {
        let part = part.clone() + if i + 1 < parts.len() { "," } else { "" };
        match part.rsplit_once(' ') {
            Some((name, list)) if indent + len(&part) > width => {
                if !row.is_empty() {
                    print("", &std::mem::take(&mut row).join(" "));
                }
                print(&format!("{name} "), list);
            }
            _ => row.push(part.replace(' ', NO_BREAK)),
        }
    }
    if !row.is_empty() {
        print("", &row.join(" "));
    }
    out
}

const NO_BREAK: &str = "\u{a0}";

/// The number of CPUs, and what is known about them.
fn cpus(s: &Snapshot) -> (String, Vec<String>) {
    let t = &s.topology;
    let mut parts: Vec<String> = Vec::new();
    match &t.nodes {
        Fact::Known(nodes) => parts.extend(nodes.values().map(|n| format!("node {} = {}", n.id, set(&n.cpus)))),
        Fact::Absent => parts.push("no NUMA nodes".into()),
        Fact::Unknown(_) => parts.push("nodes unknown".into()),
    }
    let threads: Vec<usize> = t.cpus.values().filter_map(|c| c.siblings.known()).map(CpuSet::len).collect();
    parts.push(match (threads.iter().min(), threads.iter().max()) {
        (Some(1), Some(1)) => "1 thread a core".into(),
        (Some(a), Some(b)) if a == b => format!("{a} threads a core"),
        (Some(a), Some(b)) => format!("{a} to {b} threads a core"),
        _ => "threads of cores unknown".into(),
    });
    let isolated = t.isolated_all();
    if !isolated.is_empty() {
        parts.push(format!("isolated {isolated}"));
    }
    if let Some(off) = t.present.known().map(|p| p.difference(&t.online)).filter(|o| !o.is_empty()) {
        parts.push(format!("offline {off}"));
    }
    if let Some(h) = t.hypervisor.known() {
        parts.push(if h == "unnamed" { "a guest".to_string() } else { format!("guest of {h}") });
    }
    (format!("{}: ", plural(t.online.len(), "CPU")), parts)
}

/// `VLANs`, `bridge`: the kind of a software interface for this many.
pub fn kind_name(kind: &str, n: u64) -> String {
    match (kind, n) {
        ("vlan", 1) => "VLAN".into(),
        ("vlan", _) => "VLANs".into(),
        ("bond" | "bridge" | "tunnel", k) if k > 1 => format!("{kind}s"),
        _ => kind.to_string(),
    }
}

/// A mask as the kernel writes it: hexadecimal, in groups of 32 bits separated by commas.
pub fn mask(cpus: &CpuSet) -> String {
    let groups = cpus.last().map_or(1, |l| l.0 / 32 + 1) as usize;
    let mut words = vec![0u32; groups];
    for c in cpus.iter() {
        words[c.0 as usize / 32] |= 1 << (c.0 % 32);
    }
    let mut out = format!("{:x}", words[groups - 1]);
    for w in words[..groups - 1].iter().rev() {
        out.push_str(&format!(",{w:08x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!(mask(&"0,33".parse().unwrap()), "2,00000001");
        assert_eq!(mask(&CpuSet::new()), "0");
    }
}
