//! Which interfaces exist and how they are stacked: one RTM_GETLINK dump, or in trees without it the directories of
//! `/sys/class/net`.

use std::collections::{BTreeMap, HashMap, HashSet};

use ringwise_kfmt::ParseError;
use ringwise_kfmt::rtnl::{self, LinkInfo};
use ringwise_model::order::Order;
use ringwise_model::{Fact, IfIndex, QueuelessInterfaces, Unread};
use ringwise_sys::Request;

use crate::natural;
use crate::read::Reader;

pub(crate) const NET: &str = "/sys/class/net";

/// What is known about an interface before its own files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It may be a device with queues.
    Own,
    Loopback,
    /// By its kind: `vlan`, `veth`, …
    Software(String),
}

/// One interface of the namespace.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub name: String,
    pub ifindex: Option<IfIndex>,
    pub sort: Sort,
    pub lower: Vec<IfIndex>,
    pub master: Option<IfIndex>,
    /// From the dump; `None` in trees without one.
    pub info: Option<LinkInfo>,
}

/// Kinds whose IFLA_LINK is the other end of a pair, not an interface below.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Kinds that real devices also have, if no interface is below them.
const HARDWARE: [&str; 2] = ["ipoib", "netdevsim"];

/// Every interface, by name in natural order.
pub(crate) fn ports(r: &mut Reader) -> Vec<Port> {
    let dump = match r.host.kernel(&Request::Links) {
        Ok(reply) => decode(&reply).map_err(|e| ringwise_sys::Error::other("", e.to_string())),
        Err(e) => Err(e),
    };
    let mut ports = match dump {
        Ok(infos) => from_dump(infos),
        Err(e) => {
            r.unread.push(crate::read::unread(&Request::Links.to_string(), &e));
            return from_files(r);
        }
    };
    only_valid(&mut ports, r);
    ports.order_by(|a, b| natural::compare(&a.name, &b.name));
    ports
}

/// The kernel accepts no white space in a name (`dev_valid_name`). A recording with such a name does not come from the
/// kernel, and the name could look like a line of its own in the output.
fn only_valid(ports: &mut Vec<Port>, r: &mut Reader) {
    let wrong = |name: &str| name.contains(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    for p in ports.extract_if(.., |p| wrong(&p.name)) {
        r.unread.push(Unread::new(p.name, None, "not a name that Linux allows for an interface"));
    }
}

/// The same from the directories alone.
pub(crate) fn from_files(r: &mut Reader) -> Vec<Port> {
    let mut ports = from_sysfs(r);
    only_valid(&mut ports, r);
    ports.order_by(|a, b| natural::compare(&a.name, &b.name));
    ports
}

fn decode(reply: &[Vec<u8>]) -> Result<Vec<LinkInfo>, ParseError> {
    reply.iter().map(|m| rtnl::link(m)).collect()
}

fn from_dump(infos: Vec<LinkInfo>) -> Vec<Port> {
    let mut members: HashMap<u32, Vec<IfIndex>> = HashMap::new();
    for l in &infos {
        if let Some(m) = l.master {
            members.entry(m).or_default().push(l.index());
        }
    }
    infos
        .into_iter()
        .map(|l| {
            let below = match &l.kind {
                Some(k) if !PAIRS.contains(&k.as_str()) && !l.link_in_other_netns => {
                    l.link.filter(|i| *i != l.ifindex).map(IfIndex)
                }
                _ => None,
            };
            let mut lower: Vec<IfIndex> = below.into_iter().collect();
            lower.extend(members.get(&l.ifindex).into_iter().flatten());
            lower.sort();
            lower.dedup();
            let sort = match &l.kind {
                _ if l.is_loopback() => Sort::Loopback,
                None => Sort::Own,
                Some(k) if HARDWARE.contains(&k.as_str()) && below.is_none() => Sort::Own,
                Some(k) => Sort::Software(k.clone()),
            };
            Port {
                name: l.name.clone(),
                ifindex: Some(l.index()),
                sort,
                lower,
                master: l.master.map(IfIndex),
                info: Some(l),
            }
        })
        .collect()
}

/// Without the dump: what the directories show. They contain an entry for each interface below and above.
fn from_sysfs(r: &mut Reader) -> Vec<Port> {
    let Fact::Known(names) = r.list(NET) else { return Vec::new() };
    let pure: HashSet<String> = r.host.list("/sys/devices/virtual/net").map(HashSet::from_iter).unwrap_or_default();
    let mut found = Vec::new();
    for name in names {
        // `bonding_masters` is a file among the interfaces.
        let Ok(entries) = r.host.list(&format!("{NET}/{name}")) else { continue };
        let text = |file: &str| r.host.read_text(&format!("{NET}/{name}/{file}")).ok();
        let vars = text("uevent").unwrap_or_default();
        let number = |file: &str| text(file).and_then(|t| t.parse::<u32>().ok());
        let ifindex = number("ifindex").or_else(|| var(&vars, "IFINDEX").and_then(|v| v.parse().ok()));
        let ifindex = ifindex.map(IfIndex);
        let sort = sort_by_files(&name, &entries, &vars, number("type"), pure.contains(&name), || {
            r.host.readlink(&format!("{NET}/{name}")).is_ok_and(|t| t.contains("/virtual/"))
        });
        let below: Vec<String> = entries.iter().filter_map(|e| e.strip_prefix("lower_")).map(str::to_string).collect();
        let master = r.host.readlink(&format!("{NET}/{name}/master")).ok();
        let master = master.and_then(|t| t.rsplit('/').next().map(str::to_string));
        found.push((Port { name, ifindex, sort, lower: Vec::new(), master: None, info: None }, below, master));
    }
    let index: HashMap<String, IfIndex> =
        found.iter().filter_map(|(p, ..)| Some((p.name.clone(), p.ifindex?))).collect();
    found
        .into_iter()
        .map(|(mut p, below, master)| {
            p.lower = below.iter().filter_map(|n| index.get(n).copied()).collect();
            p.lower.sort();
            p.master = master.and_then(|n| index.get(&n).copied());
            p
        })
        .collect()
}

/// Value of a line `KEY=VALUE`.
pub(crate) fn var<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('=')).filter(|v| !v.is_empty())
}

fn sort_by_files(
    name: &str,
    entries: &[String],
    vars: &str,
    link_type: Option<u32>,
    in_virtual: bool,
    link_is_virtual: impl FnOnce() -> bool,
) -> Sort {
    let has = |e: &str| entries.iter().any(|x| x == e);
    if link_type == Some(u32::from(rtnl::ARPHRD_LOOPBACK)) || name == "lo" {
        return Sort::Loopback;
    }
    if has("device") {
        return Sort::Own;
    }
    if let Some(kind) = var(vars, "DEVTYPE") {
        return Sort::Software(kind.to_string());
    }
    for (entry, kind) in [("bonding", "bond"), ("bridge", "bridge"), ("tun_flags", "tun")] {
        if has(entry) {
            return Sort::Software(kind.to_string());
        }
    }
    if in_virtual || link_is_virtual() || entries.iter().any(|e| e.starts_with("lower_")) {
        return Sort::Software("other".to_string());
    }
    Sort::Own
}

/// Software interfaces that are stacked on others, and are few enough to be listed.
const FEW_STACKED: usize = 32;
/// Bonds, bridges and teams: their members are needed to follow traffic down to the hardware.
const FEW_MASTERS: usize = 64;

/// How each interface is handled.
pub(crate) struct Chosen {
    /// Indices into the ports: those to be read, and those to be listed.
    pub listed: Vec<usize>,
    pub bystanders: QueuelessInterfaces,
}

/// `named`: only these (with what lies below them); empty: all that have queues or carry others.
/// `follow`: listed in any case, with the interfaces below them.
pub(crate) fn choose(ports: &[Port], named: &[usize], follow: &[usize]) -> Chosen {
    let at: HashMap<IfIndex, usize> = ports.iter().enumerate().filter_map(|(i, p)| Some((p.ifindex?, i))).collect();
    let is_master: HashSet<IfIndex> = ports.iter().filter_map(|p| p.master).collect();
    let soft = |p: &Port| matches!(p.sort, Sort::Software(_));
    let master = |p: &Port| soft(p) && p.ifindex.is_some_and(|i| is_master.contains(&i));
    let stacked = |p: &Port| soft(p) && !p.lower.is_empty() && !master(p);
    let mut listed: HashSet<usize> = HashSet::new();
    if named.is_empty() {
        let masters = ports.iter().filter(|p| master(p)).count() <= FEW_MASTERS;
        let stacks = ports.iter().filter(|p| stacked(p)).count() <= FEW_STACKED;
        listed.extend((0..ports.len()).filter(|i| {
            let p = &ports[*i];
            !soft(p) || (masters && master(p)) || (stacks && stacked(p))
        }));
    }
    let mut todo: Vec<usize> = named.iter().chain(follow).copied().collect();
    let mut seen: HashSet<usize> = HashSet::new();
    while let Some(i) = todo.pop() {
        if seen.insert(i) {
            todo.extend(ports[i].lower.iter().filter_map(|l| at.get(l).copied()));
        }
    }
    listed.extend(seen);
    let mut listed: Vec<usize> = listed.into_iter().collect();
    listed.sort();
    let bystanders = bystanders(ports, &listed);
    Chosen { listed, bystanders }
}

fn bystanders(ports: &[Port], listed: &[usize]) -> QueuelessInterfaces {
    let listed: HashSet<usize> = listed.iter().copied().collect();
    let mut out = QueuelessInterfaces::default();
    for (i, p) in ports.iter().enumerate() {
        let Sort::Software(kind) = &p.sort else { continue };
        if listed.contains(&i) {
            continue;
        }
        *out.count.entry(kind.clone()).or_default() += 1;
        for below in &p.lower {
            let kinds: &mut BTreeMap<String, u32> = out.above.entry(*below).or_default();
            *kinds.entry(kind.clone()).or_default() += 1;
        }
    }
    out
}
