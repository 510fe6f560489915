//! One interface, with everything that is read about it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::rtnl;
use ringwise_kfmt::sysfs;
use ringwise_knob::path;
use ringwise_model::errno::EINVAL;
use ringwise_model::nic::Link;
use ringwise_model::{Cause, DevId, Fact, IfIndex, Nic, NicKind, Subject, Unread};
use ringwise_sys::{Host, Request};

use crate::links::{NET, Port, Sort};
use crate::neighbours::Neighbours;
use crate::parts::{Parts, part};
use crate::read::Reader;
use crate::traffic_class::{self, Roots};
use crate::{
    channels, coalesce, device, features, informational, irq, napi, pause, queues, rings, rss, rules, shapers, users,
    virtual_functions, xdp,
};

/// What all devices share; read once.
pub(crate) struct Common {
    pub table: irq::InterruptTable,
    pub addresses: Fact<HashMap<u32, Vec<String>>>,
    pub roots: Roots,
    pub parts: Parts,
    pub neighbours: Neighbours,
}

/// Addresses of all interfaces by index, from one dump.
pub(crate) fn addresses(r: &mut Reader) -> Fact<HashMap<u32, Vec<String>>> {
    r.ask(&Request::Addrs, |reply| {
        let mut out: HashMap<u32, Vec<String>> = HashMap::new();
        for m in reply {
            if let Some(a) = rtnl::addr(m)? {
                out.entry(a.ifindex).or_default().push(a.address);
            }
        }
        Ok(out)
    })
}

/// Reads a device with queues of its own, as far as ringwise can see: every file and request.
pub(crate) fn read(host: &Arc<dyn Host>, common: &Common, port: &Port, master_kind: Option<&str>) -> Nic {
    let mut r = Reader::new(host.as_ref());
    let (name, parts) = (port.name.as_str(), common.parts);
    let dir = format!("{NET}/{name}");
    let link = link(&mut r, &dir, port);
    let mut device = device::device(&mut r, name);
    if r.host.list(&dir).is_err_and(|e| e.is_absent()) {
        // Everything below would be absent, which would look like a device without queues and settings.
        device.kind = NicKind::Unknown;
        let why = "it vanished while it was read, or /sys shows another network namespace";
        r.unread.push(Unread::new(dir.clone(), Some(2), why));
    }
    let (rx_queues, tx_queues) = queues::queues(&mut r, name, parts.steering);
    let channels = channels::channels(&mut r, name);
    let genl = irq::genl(&mut r, name);
    let alternative: Vec<&str> = port.info.iter().flat_map(|i| i.altnames.iter().map(String::as_str)).collect();
    let around = irq::IrqContext {
        name,
        other_names: &alternative,
        device: &device,
        channels: &channels,
        rx: &rx_queues,
        tx: &tx_queues,
        down: is_down(&link, port),
        neighbours: &common.neighbours,
    };
    let vectors = irq::vectors(&mut r, &common.table, &around, &genl, parts);
    let count = coalesce::queue_count(&channels, rx_queues.len(), tx_queues.len());
    let coalesce = part(parts.coalesce || parts.queue_coalesce, "coalesce-get", || coalesce::coalesce(&mut r, name));
    let queue_coalesce =
        part(parts.queue_coalesce, "moderation of queues", || coalesce::of_queues(&mut r, name, count, &coalesce));
    let users = r.note(users::users(port, master_kind, &genl.users, &device.rdma));
    let dev = DevId {
        name: name.to_string(),
        ifindex: port.ifindex,
        bus_address: device.bus_address.clone(),
        permanent_mac: permanent_mac(&r, &dir, port),
    };
    Nic {
        dev,
        kind: device.kind,
        driver: device.driver,
        node: device.node,
        local_cpus: device.local_cpus,
        link,
        labels: labels(port),
        lower: port.lower.clone(),
        master: port.master,
        bond: None,
        channels,
        rx_queues,
        tx_queues,
        vectors,
        rss: part(parts.rss, "rss-get", || rss::rss(&mut r, name)),
        rings: part(parts.rings, "rings-get", || rings::rings(&mut r, name)),
        coalesce,
        pause: part(parts.pause, "pause-get", || pause::pause(&mut r, name)),
        features: part(parts.features, "features-get", || features::features(&mut r, name)),
        private_flags: part(parts.features, "privflags-get", || features::private_flags(&mut r, name)),
        firmware: part(parts.shown, "ETHTOOL_GDRVINFO", || informational::firmware(&mut r, name)),
        pcie: part(parts.shown, "PCIe link", || informational::pcie(&mut r, &device.dirs)),
        virtual_functions: part(parts.shown, "virtual functions", || virtual_functions::read(&mut r, &dir)),
        queue_coalesce,
        rules: part(parts.rules, "flow rules", || rules::rules(&mut r, name)),
        napi: part(parts.napi, "NAPI", || napi::napi(&mut r, name, &genl)),
        shapers: part(parts.steering, "net-shaper-get", || shapers::shapers(&mut r, name)),
        classes: traffic_class::classes(&common.roots, port),
        xdp_metadata: part(parts.xdp_metadata, "dev-get", || xdp::metadata(&mut r, name)),
        users,
        addresses: own_addresses(common, port),
        unread: r.unread,
    }
}

/// A device that did not answer, read without requests that may hang. The missing answer is the first unread value, and
/// represents the others.
pub(crate) fn read_quiet(
    quiet: &Arc<dyn Host>,
    common: &Common,
    port: &Port,
    master_kind: Option<&str>,
    within: Duration,
) -> Nic {
    let mut nic = read(quiet, common, port, master_kind);
    nic.link = Link { speed_mbps: nic.link.speed_mbps, duplex: nic.link.duplex, ..listed(common, port).link };
    nic.unread.retain(|u| u.cause != Cause::Late);
    nic.unread.insert(0, no_answer(port, within));
    nic
}

/// A software interface or loopback: only data of the dumps, no files of its own.
pub(crate) fn listed(common: &Common, port: &Port) -> Nic {
    let kind = match &port.sort {
        Sort::Loopback => NicKind::Loopback,
        Sort::Software(kind) => NicKind::Software { kind: kind.clone() },
        Sort::Own => NicKind::Unknown,
    };
    let info = port.info.as_ref();
    let told = |what: &str| Unread::new(format!("{what} of {}", port.name), None, "not in the link dump");
    let link = Link {
        operstate: match info.and_then(|i| i.operstate) {
            Some(s) => Fact::Known(s.to_string()),
            None => Fact::Unknown(told("operstate")),
        },
        carrier: match info.and_then(|i| i.carrier) {
            Some(c) => Fact::Known(c),
            None => Fact::Unknown(told("carrier")),
        },
        speed_mbps: Fact::Absent,
        duplex: Fact::Absent,
        mtu: match info.and_then(|i| i.mtu) {
            Some(m) => Fact::Known(m),
            None => Fact::Unknown(told("mtu")),
        },
    };
    Nic {
        users: users::users(port, None, &[], &[]),
        link,
        addresses: own_addresses(common, port),
        ..bare(port, kind, None)
    }
}

/// A device that could not be read in time: only data of the dumps.
pub(crate) fn late(common: &Common, port: &Port, within: Duration) -> Nic {
    let u = no_answer(port, within);
    let mut nic = bare(port, NicKind::Unknown, Some(&u));
    nic.dev.bus_address = port.info.as_ref().and_then(|i| i.parent_dev.clone());
    nic.dev.permanent_mac = port.info.as_ref().and_then(|i| i.perm_mac.clone());
    let link = listed(common, port).link;
    nic.link = Link { speed_mbps: Fact::Unknown(u.clone()), duplex: Fact::Unknown(u.clone()), ..link };
    nic.users = Fact::Unknown(u.clone());
    nic.addresses = own_addresses(common, port);
    nic.unread.push(u);
    nic
}

fn no_answer(port: &Port, within: Duration) -> Unread {
    Unread::late(port.name.clone(), within).of(Subject::Device)
}

/// Absent, or unknown with the same reason for everything.
fn because<T>(late: Option<&Unread>, what: &str) -> Fact<T> {
    match late {
        Some(u) => Fact::Unknown(Unread { what: format!("{what} of {}", u.what), subject: None, ..u.clone() }),
        None => Fact::Absent,
    }
}

fn bare(port: &Port, kind: NicKind, late: Option<&Unread>) -> Nic {
    Nic {
        dev: DevId { name: port.name.clone(), ifindex: port.ifindex, bus_address: None, permanent_mac: None },
        kind,
        driver: because(late, "driver"),
        node: because(late, "numa_node"),
        local_cpus: because(late, "local_cpulist"),
        link: Link {
            operstate: because(late, "operstate"),
            carrier: because(late, "carrier"),
            speed_mbps: because(late, "speed"),
            duplex: because(late, "duplex"),
            mtu: because(late, "mtu"),
        },
        labels: labels(port),
        lower: port.lower.clone(),
        master: port.master,
        bond: None,
        channels: because(late, "channels-get"),
        rx_queues: Vec::new(),
        tx_queues: Vec::new(),
        vectors: Vec::new(),
        rss: because(late, "rss-get"),
        rings: because(late, "rings-get"),
        coalesce: because(late, "coalesce-get"),
        pause: because(late, "pause-get"),
        features: because(late, "features-get"),
        private_flags: because(late, "privflags-get"),
        firmware: because(late, "ETHTOOL_GDRVINFO"),
        pcie: because(late, "PCIe link"),
        virtual_functions: because(late, "virtual functions"),
        queue_coalesce: because(late, "moderation of queues"),
        rules: because(late, "flow rules"),
        napi: because(late, "NAPI"),
        shapers: because(late, "net-shaper-get"),
        classes: because(late, "traffic classes"),
        xdp_metadata: because(late, "dev-get"),
        users: because(late, "users"),
        addresses: because(late, "addresses"),
        unread: Vec::new(),
    }
}

/// Labels that users gave it, from the link dump.
fn labels(port: &Port) -> Vec<String> {
    port.info.iter().flat_map(|i| i.alias.iter().chain(&i.altnames)).cloned().collect()
}

fn own_addresses(common: &Common, port: &Port) -> Fact<Vec<String>> {
    match (&common.addresses, port.ifindex) {
        (Fact::Known(all), Some(i)) => Fact::Known(all.get(&i.0).cloned().unwrap_or_default()),
        (Fact::Known(_), None) => Fact::unknown(format!("addresses of {}", port.name), "its index is unknown"),
        (other, _) => other.as_ref().and_then(|_| Fact::Absent),
    }
}

fn link(r: &mut Reader, dir: &str, port: &Port) -> Link {
    // EINVAL: the device is switched off, or does not support it.
    let speed = r.parse_or_absent(&format!("{dir}/speed"), &[EINVAL], sysfs::parse_speed);
    let duplex = match r.parse_or_absent(&format!("{dir}/duplex"), &[EINVAL], |t| Ok(t.to_string())) {
        Fact::Known(d) if d == "unknown" => Fact::Absent,
        other => other,
    };
    let mut link = Link {
        operstate: r.text(&format!("{dir}/operstate")),
        carrier: r.parse_or_absent(&format!("{dir}/carrier"), &[EINVAL], sysfs::parse_bool),
        speed_mbps: speed.and_then(|s| s.map_or(Fact::Absent, Fact::Known)),
        duplex,
        mtu: r.parse(&format!("{dir}/mtu"), sysfs::parse_u32),
    };
    // The dump contains the same if the files cannot be read.
    if let Some(info) = &port.info {
        if let (Fact::Unknown(_), Some(s)) = (&link.operstate, info.operstate) {
            link.operstate = Fact::Known(s.to_string());
        }
        if let (Fact::Unknown(_), Some(m)) = (&link.mtu, info.mtu) {
            link.mtu = Fact::Known(m);
        }
    }
    link
}

/// Whether the link is up. Unknown with EINVAL while the interface is down.
pub fn carrier(host: &dyn Host, dev: &str) -> Fact<bool> {
    Reader::new(host).parse(&path::of_device(dev, "carrier"), sysfs::parse_bool)
}

fn is_down(link: &Link, port: &Port) -> bool {
    port.info.as_ref().is_some_and(|i| !i.is_up())
        || link.operstate.known().is_some_and(|s| s == "down" || s == "notpresent" || s == "lowerlayerdown")
}

/// From the dump. In trees without one, the address file, if it is marked as permanent.
fn permanent_mac(r: &Reader, dir: &str, port: &Port) -> Option<String> {
    match &port.info {
        Some(i) if i.perm_mac.is_some() => return i.perm_mac.clone(),
        _ => {}
    }
    // NET_ADDR_PERM: 0. Devices without IFLA_PERM_ADDRESS (kernels before 5.6) are read in the same way.
    let text = |file: &str| r.host.read_text(&format!("{dir}/{file}")).ok();
    (text("addr_assign_type")? == "0").then(|| text("address").map(|a| a.to_lowercase())).flatten()
}

/// Index of the master's kind by interface index.
pub(crate) fn master_kind(ports: &[Port], master: Option<IfIndex>) -> Option<String> {
    let master = ports.iter().find(|p| p.ifindex.is_some() && p.ifindex == master)?;
    match &master.sort {
        Sort::Software(kind) => Some(kind.clone()),
        _ => None,
    }
}
