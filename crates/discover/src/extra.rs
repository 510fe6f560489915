//! What only `check` reads: see [`ringwise_model::CheckOnlyFacts`]. Small files, one dump of queueing disciplines, and two
//! requests for each interface with queues of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::ethtool_nl::msg;
use ringwise_kfmt::{audit, qdisc};
use ringwise_model::{CheckOnlyFacts, DevExtra, Fact, IfIndex, Nic, NicKind, Qdiscs, Snapshot};
use ringwise_sys::{DeviceCall, Host, Request, alone_with_deadline, read_with_deadline};

use crate::ethtool::{first, request};
use crate::pool;
use crate::read::{Reader, failed};

const HOST: &[&str] = &[
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/net/core/netdev_tstamp_prequeue",
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/proc/sys/net/ipv4/conf/all/rp_filter",
    "/proc/net/ip_tables_names",
    "/proc/net/sockstat",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/kernel/debug/swiotlb/io_tlb_used",
];
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
const NET: &str = "/sys/class/net";

/// Reading these files never waits for a device.
const LONG: Duration = Duration::from_secs(3600);

fn host_files(host: &dyn Host, files: Vec<String>) -> CheckOnlyFacts {
    let mut r = Reader::new(host);
    let mut out = CheckOnlyFacts::default();
    HOST.iter().for_each(|path| keep(&mut r, &mut out, (*path).into()));
    lines(&mut r, &mut out);
    if let Ok(names) = r.host.list(VULNERABILITIES) {
        for name in names {
            if let Fact::Known(t) = r.text(&format!("{VULNERABILITIES}/{name}")) {
                out.vulnerabilities.insert(name, t);
            }
        }
    }
    out.free_vectors = Some(crate::free_vectors::free_vectors(r.host));
    out.packet_sockets = Some(r.parse("/proc/net/packet", audit::packet_sockets));
    files.into_iter().for_each(|path| keep(&mut r, &mut out, path));
    out
}

/// Reads everything, with this deadline for each interface.
pub fn extra(host: &Arc<dyn Host>, s: &Snapshot, deadline: Duration) -> CheckOnlyFacts {
    let mut files: Vec<String> = s.nics.iter().flat_map(dev_files).collect();
    let first = s.topology.online.first();
    files.extend(first.map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/size")));
    let (of_host, read) = (host.clone(), files.clone());
    let mut out = read_with_deadline(LONG, move || host_files(of_host.as_ref(), read)).unwrap_or_else(|| {
        let none =
            |path: String| (path.clone(), Fact::unknown(path, "the thread that reads it ended without an answer"));
        let text = HOST.iter().map(|p| p.to_string()).chain(files).map(none).collect();
        CheckOnlyFacts { text, ..CheckOnlyFacts::default() }
    });
    let own: Vec<(String, String)> = s
        .nics
        .iter()
        .filter(|n| n.has_own_queues())
        .map(|n| {
            // By its address: for virtio the function is above the device.
            let of_bus = |a: &String| format!("/sys/bus/pci/devices/{a}");
            let dir = n.dev.bus_address.as_ref().map_or_else(|| format!("{NET}/{}/device", n.name()), of_bus);
            (n.name().to_string(), dir)
        })
        .collect();
    // Requests take the network lock, which an unresponsive device may hold.
    let asked = host.clone();
    let all = move || Reader::new(asked.as_ref()).ask(&Request::Qdiscs, qdiscs);
    let qdiscs = alone_with_deadline(host, "qdiscs", deadline, all);
    out.qdiscs = Some(qdiscs.unwrap_or_else(|| Fact::late(Request::Qdiscs.to_string(), deadline)));
    let task = |(name, dir): &(String, String)| -> pool::Task<DevExtra> {
        let (host, name, dir) = (host.clone(), name.clone(), dir.clone());
        Box::new(move || {
            let _alone = DeviceCall::new(&host, format!("details of {name}"), deadline)?;
            Some(dev(&mut Reader::new(host.as_ref()), &name, &dir))
        })
    };
    let told = pool::run(own.iter().map(task).collect(), deadline);
    let told = told.into_iter().map(|d| d.unwrap_or_else(|| late(deadline)));
    out.devs = own.into_iter().map(|(name, _)| name).zip(told).collect::<BTreeMap<_, _>>();
    out
}

/// The result for a device that does not answer.
fn late(deadline: Duration) -> DevExtra {
    DevExtra {
        pci: Some(Fact::late("PCI configuration space", deadline)),
        eee: Some(Fact::late("eee-get", deadline)),
        tcp_data_split: Some(Fact::late("rings-get", deadline)),
    }
}

fn keep(r: &mut Reader, out: &mut CheckOnlyFacts, path: String) {
    let fact = r.text(&path);
    out.text.insert(path, fact);
}

/// One line each of long files.
fn lines(r: &mut Reader, out: &mut CheckOnlyFacts) {
    type Line = fn(&str) -> Option<String>;
    let of: [(&str, Line); 3] = [
        ("/proc/cpuinfo", |t| audit::cpu_flags(t).map(str::to_string)),
        ("/proc/modules", |t| Some(audit::modules(t))),
        ("/proc/meminfo", |t| audit::mem_total_kb(t).map(|n| n.to_string())),
    ];
    for (path, line) in of {
        let fact = r.text(path).and_then(|t| line(&t).map_or(Fact::Absent, Fact::Known));
        out.text.insert(path.into(), fact);
    }
}

fn dev_files(n: &Nic) -> Vec<String> {
    let name = n.name();
    if n.kind == NicKind::Loopback {
        return Vec::new();
    }
    let mut files = vec![
        format!("{NET}/{name}/flags"),
        format!("{NET}/{name}/tx_queue_len"),
        format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"),
    ];
    if n.has_own_queues() {
        files.push(format!("{NET}/{name}/device/iommu_group/type"));
        files.push(format!("{NET}/{name}/queues/tx-0/tx_maxrate"));
        if let Fact::Known(d) = &n.driver {
            files.push(format!("/sys/module/{d}/taint"));
        }
    } else if n.bond.is_some() || !n.lower.is_empty() {
        // Steering on something without queues of its own is a second step.
        files.push(format!("{NET}/{name}/queues/rx-0/rps_cpus"));
        files.push(format!("{NET}/{name}/bonding/xmit_hash_policy"));
    }
    files
}

fn dev(r: &mut Reader, name: &str, dir: &str) -> DevExtra {
    let eee = r.ask(&request(name, audit::EEE_GET, "eee-get"), |reply| audit::eee(first(reply)?));
    let split = r.ask(&request(name, msg::RINGS_GET, "rings-get"), |reply| audit::tcp_data_split(first(reply)?));
    let path = format!("{dir}/config");
    let pci = match r.host.read(&path) {
        Err(e) => failed(&path, &e),
        Ok(bytes) => match audit::pci_control(&bytes) {
            Some(c) => Fact::Known(c),
            // Without root, the kernel shows only the first 64 bytes.
            None if bytes.len() <= 64 => Fact::unknown(path, "needs root"),
            None => Fact::Absent,
        },
    };
    let split = split.and_then(|s| s.map_or(Fact::Absent, Fact::Known));
    DevExtra { pci: Some(pci), eee: Some(eee), tcp_data_split: Some(split) }
}

fn qdiscs(reply: &[Vec<u8>]) -> Result<BTreeMap<IfIndex, Qdiscs>, ringwise_kfmt::ParseError> {
    let all: Vec<qdisc::Qdisc> = reply.iter().map(|m| qdisc::qdisc(m)).collect::<Result<_, _>>()?;
    let mut out: BTreeMap<IfIndex, Qdiscs> = BTreeMap::new();
    for root in all.iter().filter(|q| q.is_root()) {
        let mut q = Qdiscs { root: root.kind.clone(), ..Qdiscs::default() };
        for leaf in all.iter().filter(|l| l.queue_of(root).is_some()) {
            *q.leaves.entry(leaf.kind.clone()).or_default() += 1;
        }
        out.insert(IfIndex(root.ifindex), q);
    }
    Ok(out)
}
