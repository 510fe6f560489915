//! The chain queue → NAPI → interrupt → CPU of one device.
//!
//! Sources in this order: the kernel's own links (netdev generic netlink), the MSI vectors of the device with the names
//! that its driver gave them, names alone. What no source shows stays unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use ringwise_kfmt::irq_names::{NameContext, NameMatch, RankedNumbers, classify, count_ntfy_blocks};
use ringwise_kfmt::netdev_nl::{self, NapiInfo, cmd};
use ringwise_kfmt::{ParseError, cpulist, cpumask, interrupts, sysfs};
use ringwise_knob::path;
use ringwise_model::order::Order;
use ringwise_model::{
    Channels, Confidence, CpuSet, Dir, Fact, Immovable, IrqId, MapSource, Movable, NodeId, Role, RxQueue, Subject,
    TxQueue, Unread, User, Vector,
};
use ringwise_sys::{Host, Request};

use crate::device::Device;
use crate::natural;
use crate::neighbours::{Neighbours, address_in};
use crate::parts::{Parts, part};
use crate::read::Reader;
use crate::users;

/// `/proc/interrupts`, read once for all devices, or not at all if the interrupts' own files contain the names.
pub(crate) struct InterruptTable {
    rows: OnceLock<Fact<HashMap<u32, Line>>>,
    /// debugfs shows the kernel's flags of each interrupt (root only, CONFIG_GENERIC_IRQ_DEBUGFS).
    debugfs: bool,
}

struct Line {
    names: Vec<String>,
    /// `None`: the row is cut short.
    total: Option<u64>,
}

pub(crate) const INTERRUPTS: &str = "/proc/interrupts";
const DEBUGFS: &str = "/sys/kernel/debug/irq/irqs";

impl InterruptTable {
    /// Without `now`, the table is read only if the other sources are not enough.
    pub(crate) fn read(r: &mut Reader, now: bool) -> Self {
        if !now {
            return Self { rows: OnceLock::new(), debugfs: false };
        }
        let rows = rows(r.host);
        if rows.is_absent() {
            r.unread.push(Unread::new(INTERRUPTS, Some(2), "not there"));
        }
        if let Fact::Unknown(u) = &rows {
            r.unread.push(u.clone());
        }
        Self { rows: rows.into(), debugfs: r.host.read(&format!("{DEBUGFS}/0")).is_ok() }
    }

    /// Action names: from the table, or without a table from the interrupt's own file.
    pub(crate) fn names(&self, host: &dyn Host, irq: u32) -> Option<Vec<String>> {
        if self.rows.get().is_none()
            && let Some(names) = actions(host, irq)
        {
            return Some(names);
        }
        match self.rows(host) {
            // Rows without an action and without a count are not printed.
            Fact::Known(rows) => Some(rows.get(&irq).map(|l| l.names.clone()).unwrap_or_default()),
            _ => actions(host, irq),
        }
    }

    fn rows(&self, host: &dyn Host) -> &Fact<HashMap<u32, Line>> {
        self.rows.get_or_init(|| rows(host))
    }

    fn total(&self, host: &dyn Host, irq: u32) -> Fact<u64> {
        self.rows(host).as_ref().and_then(|rows| match rows.get(&irq).map(|l| l.total) {
            Some(Some(total)) => Fact::Known(total),
            Some(None) => Fact::unknown(INTERRUPTS, format!("the row of interrupt {irq} has fewer counts than CPUs")),
            None => Fact::Absent,
        })
    }
}

fn rows(host: &dyn Host) -> Fact<HashMap<u32, Line>> {
    match host.read(INTERRUPTS) {
        Ok(bytes) => match interrupts::parse_totals(&bytes) {
            Ok(t) => Fact::Known(
                t.rows
                    .into_iter()
                    .filter_map(|row| Some((row.head.irq?.0, Line { names: row.head.names, total: row.total })))
                    .collect(),
            ),
            Err(e) => Fact::unknown(INTERRUPTS, e.to_string()),
        },
        Err(e) => crate::read::failed(INTERRUPTS, &e),
    }
}

/// Names from the interrupt's own file.
fn actions(host: &dyn Host, irq: u32) -> Option<Vec<String>> {
    let text = host.read_text(&format!("/sys/kernel/irq/{irq}/actions")).ok()?;
    Some(text.split(',').map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).collect())
}

/// What is known about the device when its vectors are searched.
pub(crate) struct IrqContext<'a> {
    pub name: &'a str,
    pub other_names: &'a [&'a str],
    pub device: &'a Device,
    pub channels: &'a Fact<Channels>,
    pub rx: &'a [RxQueue],
    pub tx: &'a [TxQueue],
    /// It is known to have no link or to be switched off.
    pub down: bool,
    pub neighbours: &'a Neighbours,
}

/// Queues that `queue-get` reports: NAPI instance and interrupt, if the driver links them.
pub(crate) struct Genl {
    /// Whether there was an answer. Absent: the kernel does not have the family.
    pub asked: Fact<()>,
    pub napi: BTreeMap<(Dir, u32), u32>,
    irq: BTreeMap<(Dir, u32), u32>,
    /// Absent: no queue is linked to one.
    pub instances: Fact<Vec<NapiInfo>>,
    /// Users of single queues.
    pub users: Vec<User>,
}

/// Requests the kernel's own links. Empty on kernels before 6.8, and with drivers that report none.
pub(crate) fn genl(r: &mut Reader, dev: &str) -> Genl {
    let dump = |cmd, name| Request::NetdevDump { cmd, name, dev: dev.to_string() };
    let queues = r.ask(&dump(cmd::QUEUE_GET, "queue-get"), |reply| {
        reply.iter().map(|m| netdev_nl::queue(m)).collect::<Result<Vec<_>, _>>()
    });
    let asked = queues.as_ref().map(|_| ());
    let mut out =
        Genl { asked, napi: BTreeMap::new(), irq: BTreeMap::new(), instances: Fact::Absent, users: Vec::new() };
    let Fact::Known(queues) = queues else { return out };
    out.users = users::of_queues(&queues);
    out.napi = queues.iter().filter_map(|q| Some(((q.dir, q.id), q.napi?))).collect::<BTreeMap<_, _>>();
    if out.napi.is_empty() {
        return out;
    }
    let napis = r.ask(&dump(cmd::NAPI_GET, "napi-get"), |reply| {
        reply.iter().map(|m| netdev_nl::napi(m)).collect::<Result<Vec<_>, _>>()
    });
    if let Fact::Known(napis) = &napis {
        let irqs: HashMap<u32, u32> = napis.iter().filter_map(|n| Some((n.id, n.irq?.0))).collect();
        out.irq = out.napi.iter().filter_map(|(q, n)| Some((*q, *irqs.get(n)?))).collect::<BTreeMap<_, _>>();
    }
    if let Fact::Unknown(u) = &napis {
        out.asked = Fact::Unknown(u.clone());
    }
    out.instances = napis;
    out
}

/// Every vector of the device, in the order of the model.
pub(crate) fn vectors(
    r: &mut Reader,
    table: &InterruptTable,
    around: &IrqContext,
    genl: &Genl,
    parts: Parts,
) -> Vec<Vector> {
    let msi = msi_irqs(r, &around.device.dirs);
    let mut names: BTreeMap<u32, Option<Vec<String>>> =
        msi.iter().flatten().map(|irq| (*irq, table.names(r.host, *irq))).collect();
    for irq in genl.irq.values() {
        names.entry(*irq).or_insert_with(|| table.names(r.host, *irq));
    }
    if msi.is_none() {
        by_name_only(r, table, around, &mut names);
        if let Some(irq) = line_irq(r, &around.device.dirs) {
            names.entry(irq).or_insert_with(|| table.names(r.host, irq));
        }
    }
    let mut meanings = meanings(&names, msi.is_some(), around);
    // Ports that share one function list each other's vectors. If no vector belongs to this interface, it was renamed
    // while it was up, and its vectors are kept as unknown.
    let ours = meanings.values().any(|m| matches!(m, NameMatch::Queues { .. }));
    let links = links(genl, &meanings);
    let (mut drafts, mut renamed) = (Vec::new(), false);
    for (irq, names) in names {
        let meaning = meanings.remove(&irq).unwrap_or(NameMatch::Unknown);
        let by_kernel: Vec<(Dir, u32)> = links.iter().filter(|(_, i)| **i == irq).map(|(q, _)| *q).collect();
        if by_kernel.is_empty() && meaning == NameMatch::NotOurs {
            if ours || msi.is_none() || !genl.irq.is_empty() {
                continue;
            }
            renamed = true;
        }
        drafts.push((irq, names, meaning, by_kernel));
    }
    let vectors = drafts
        .into_iter()
        .map(|(irq, names, meaning, by_kernel)| {
            let unnamed = names.is_none();
            let names = names.unwrap_or_default();
            let (role, confidence, source) =
                role(&meaning, &by_kernel, &links, msi.is_some(), names.is_empty() && !unnamed, around);
            let napi = match &role {
                Role::Queues { rx, tx } => {
                    let of = |dir, list: &[u32]| list.iter().find_map(|q| genl.napi.get(&(dir, *q)).copied());
                    of(Dir::Rx, rx).or_else(|| of(Dir::Tx, tx))
                }
                _ => None,
            };
            vector(r, table, irq, names, role, confidence, source, napi, parts)
        })
        .collect::<Vec<_>>();
    say_what_is_missing(r, around, &vectors, renamed);
    sorted(vectors)
}

/// Vectors from the first directory that has a list. `None`: no list, which does not prove that there are no vectors.
pub(crate) fn msi_irqs(r: &mut Reader, dirs: &[String]) -> Option<Vec<u32>> {
    let mut why = None;
    for dir in dirs {
        let path = format!("{dir}/msi_irqs");
        match r.host.list(&path) {
            Ok(names) => {
                let irqs = natural::numbers(&names, "");
                if !irqs.is_empty() {
                    return Some(irqs);
                }
            }
            Err(e) if e.is_absent() => {}
            Err(e) => why = why.or(Some(crate::read::unread(&path, &e))),
        }
    }
    r.unread.extend(why);
    None
}

/// The line interrupt (`device/irq`); 0 means that the device has none.
pub(crate) fn line_irq(r: &Reader, dirs: &[String]) -> Option<u32> {
    let texts = dirs.iter().filter_map(|d| r.host.read_text(&format!("{d}/irq")).ok());
    texts.filter_map(|t| sysfs::parse_u32(&t).ok()).find(|n| *n != 0)
}

/// Rows whose name indicates a queue of this device.
fn by_name_only(
    r: &mut Reader,
    table: &InterruptTable,
    around: &IrqContext,
    names: &mut BTreeMap<u32, Option<Vec<String>>>,
) {
    let Fact::Known(rows) = table.rows(r.host) else { return };
    let device = around.device;
    let driver = device.driver.known().map(String::as_str);
    let short = around.name.get(..14).unwrap_or(around.name);
    let marks: Vec<&str> =
        [Some(short), device.bus_address.as_deref(), device.virtio.as_deref()].into_iter().flatten().collect();
    let queues = |line: &Line, ctx: &NameContext| {
        line.names.iter().any(|n| matches!(classify(n, ctx), NameMatch::Queues { .. }))
    };
    let ctx = context(around, None, None);
    let ranked = RankedNumbers::of(rows.values().flat_map(|l| &l.names).map(String::as_str), &ctx);
    let ctx = NameContext { ranked: Some(&ranked), ..ctx };
    let (mut by_address, mut unmarked) = (Vec::new(), Vec::new());
    for (irq, line) in rows {
        let address = line.names.iter().find_map(|n| address_in(n)).filter(|_| device.bus_address.is_none());
        // Xen's names carry the number of the device instead of its name.
        let marked = |n: &String| n.starts_with("vif") || marks.iter().any(|m| n.contains(m));
        if line.names.iter().any(marked) {
            if queues(line, &ctx) {
                names.insert(*irq, Some(line.names.clone()));
            }
        } else if let Some(address) = address.filter(|_| queues(line, &ctx)) {
            by_address.push((*irq, address, line));
        } else if line.names.iter().any(|n| n.starts_with("mlx5_comb")) && queues(line, &ctx) {
            unmarked.push((*irq, line));
        }
    }
    if !by_address.is_empty() {
        let found = by_address.iter().map(|(_, a, _)| a.to_string());
        match around.neighbours.address_of(r.host, around.name, driver, found) {
            Some(ours) => {
                let lines = by_address.iter().filter(|(_, a, _)| *a == ours);
                names.extend(lines.map(|(irq, _, l)| (*irq, Some(l.names.clone()))));
            }
            None => r.unread.push(not_attributed(
                around,
                "their names contain a bus address, but the bus address of the interface is unknown",
            )),
        }
    }
    if !unmarked.is_empty() {
        if around.neighbours.is_only(r.host, around.name, driver) {
            names.extend(unmarked.iter().map(|(irq, l)| (*irq, Some(l.names.clone()))));
        } else {
            r.unread
                .push(not_attributed(around, "several interfaces of the driver may have interrupts of these names"));
        }
    }
    if names.is_empty() {
        // A device with one vector for everything, named like the interface.
        let alone = context(around, Some(1), None);
        let mut named = rows.iter().filter(|(_, l)| l.names.iter().any(|n| n == around.name));
        if let (Some((irq, line)), None) = (named.next(), named.next())
            && queues(line, &alone)
        {
            names.insert(*irq, Some(line.names.clone()));
        }
    }
}

fn not_attributed(around: &IrqContext, why: &str) -> Unread {
    Unread::new(format!("queue interrupts of {}", around.name), None, why).of(Subject::QueueInterrupts)
}

fn context<'a>(around: &IrqContext<'a>, vectors: Option<u32>, blocks: Option<u32>) -> NameContext<'a> {
    NameContext {
        ifname: around.name,
        other_names: around.other_names,
        driver: around.device.driver.known().map(String::as_str),
        bus_address: around.device.bus_address.as_deref(),
        virtio_name: around.device.virtio.as_deref(),
        rx_queues: Some(ids(around, Dir::Rx).count() as u32),
        tx_queues: Some(ids(around, Dir::Tx).count() as u32),
        vectors,
        ntfy_blocks: blocks,
        ranked: None,
    }
}

/// Existing queues: the directories, but no more than the channels (some kernels show extra directories).
fn ids<'a>(around: &IrqContext<'a>, dir: Dir) -> impl Iterator<Item = u32> + 'a {
    let limit = around.channels.known().map(|c| if dir == Dir::Rx { c.rx_queues() } else { c.tx_queues() });
    let limit = limit.filter(|n| *n != 0).unwrap_or(u32::MAX) as usize;
    let (rx, tx) = match dir {
        Dir::Rx => (around.rx, &[][..]),
        Dir::Tx => (&[][..], around.tx),
    };
    rx.iter().map(|q| q.id).chain(tx.iter().map(|q| q.id)).take(limit)
}

/// The combined meaning of all names of each interrupt.
fn meanings(names: &BTreeMap<u32, Option<Vec<String>>>, msi: bool, around: &IrqContext) -> BTreeMap<u32, NameMatch> {
    // Vectors that have no name now count as well, because the device has them.
    let count = if msi { Some(names.len() as u32) } else { (names.len() == 1).then_some(1) };
    let all = || names.values().flatten().flatten().map(String::as_str);
    let blocks = (around.device.driver.known().map(String::as_str) == Some("gve"))
        .then(|| count_ntfy_blocks(all(), &context(around, count, None)));
    let ctx = context(around, count, blocks);
    let ranked = RankedNumbers::of(all(), &ctx);
    let ctx = NameContext { ranked: Some(&ranked), ..ctx };
    names
        .iter()
        .filter_map(|(irq, list)| Some((irq, list.as_ref()?)))
        .filter(|(_, list)| !list.is_empty())
        .map(|(irq, list)| {
            (*irq, list.iter().map(|n| classify(n, &ctx)).reduce(together).unwrap_or(NameMatch::Unknown))
        })
        .collect::<BTreeMap<_, _>>()
}

/// A vector with several actions: queues are combined; a queue takes precedence over control, and control over the
/// rest.
fn together(a: NameMatch, b: NameMatch) -> NameMatch {
    use NameMatch::{Control, NotOurs, Queues, Unknown, Unused};
    match (a, b) {
        (Queues { rx: mut r1, tx: mut t1, exact_driver: e1 }, Queues { rx: r2, tx: t2, exact_driver: e2 }) => {
            r1.extend(r2);
            t1.extend(t2);
            for list in [&mut r1, &mut t1] {
                list.sort();
                list.dedup();
            }
            Queues { rx: r1, tx: t1, exact_driver: e1 && e2 }
        }
        (q @ Queues { .. }, _) | (_, q @ Queues { .. }) => q,
        (Control, _) | (_, Control) => Control,
        (Unused, _) | (_, Unused) => Unused,
        (Unknown, _) | (_, Unknown) => Unknown,
        (NotOurs, NotOurs) => NotOurs,
    }
}

/// The interrupt of each queue by the kernel's own links, without those that belong to another queue according to the
/// names.
///
/// A NAPI instance holds one interrupt. e1000e has an interrupt for each direction and one instance: the kernel links
/// the transmit queue to the receive interrupt (`e1000e_open` from 6.13 on; seen on 7.3).
fn links(genl: &Genl, meanings: &BTreeMap<u32, NameMatch>) -> BTreeMap<(Dir, u32), u32> {
    let names = |irq: &u32, dir, q: u32| match meanings.get(irq) {
        Some(NameMatch::Queues { rx, tx, exact_driver: true }) => {
            Some(if dir == Dir::Rx { rx.contains(&q) } else { tx.contains(&q) })
        }
        _ => None,
    };
    let elsewhere = |(dir, q): (Dir, u32), irq: u32| {
        names(&irq, dir, q) == Some(false) && meanings.keys().any(|i| names(i, dir, q) == Some(true))
    };
    genl.irq.iter().filter(|(queue, irq)| !elsewhere(**queue, **irq)).map(|(queue, irq)| (*queue, *irq)).collect()
}

fn role(
    meaning: &NameMatch,
    by_kernel: &[(Dir, u32)],
    links: &BTreeMap<(Dir, u32), u32>,
    msi: bool,
    no_names: bool,
    around: &IrqContext,
) -> (Role, Confidence, MapSource) {
    let of = |dir| by_kernel.iter().filter(move |(d, _)| *d == dir).map(|(_, q)| *q).collect::<Vec<u32>>();
    let (mut rx, mut tx) = (of(Dir::Rx), of(Dir::Tx));
    let by_name = matches!(meaning, NameMatch::Queues { .. });
    if let NameMatch::Queues { rx: r, tx: t, .. } = meaning {
        // If the kernel links a queue itself, the link counts, not the name.
        let free = |dir, q: u32| !links.contains_key(&(dir, q));
        rx.extend(r.iter().copied().filter(|q| free(Dir::Rx, *q) && ids(around, Dir::Rx).any(|i| i == *q)));
        tx.extend(t.iter().copied().filter(|q| free(Dir::Tx, *q) && ids(around, Dir::Tx).any(|i| i == *q)));
    }
    for list in [&mut rx, &mut tx] {
        list.sort();
        list.dedup();
    }
    if rx.is_empty() && tx.is_empty() {
        let source = if msi { MapSource::MsiAndName } else { MapSource::Name };
        return match meaning {
            NameMatch::Control => (Role::Control, Confidence::Likely.max(sure_if(msi)), source),
            NameMatch::Unused => (Role::Idle, sure_if(msi), source),
            // It is unknown which queues exist; every interface has some.
            _ if by_name && around.rx.is_empty() && around.tx.is_empty() => {
                (Role::Unknown, Confidence::None, MapSource::Nothing)
            }
            // Queues that do not exist now: a spare vector.
            _ if by_name => (Role::Idle, Confidence::Likely, source),
            _ if no_names => (Role::Idle, Confidence::None, MapSource::Nothing),
            _ => (Role::Unknown, Confidence::None, MapSource::Nothing),
        };
    }
    let role = Role::Queues { rx, tx };
    match meaning {
        _ if !by_kernel.is_empty() => (role, Confidence::Sure, MapSource::NetdevGenl),
        NameMatch::Queues { exact_driver: true, .. } if msi => (role, Confidence::Sure, MapSource::MsiAndName),
        _ if msi => (role, Confidence::Likely, MapSource::MsiAndName),
        _ => (role, Confidence::Likely, MapSource::Name),
    }
}

fn sure_if(msi: bool) -> Confidence {
    if msi { Confidence::Sure } else { Confidence::Likely }
}

#[allow(clippy::too_many_arguments, reason = "one argument for each field of the value")]
fn vector(
    r: &mut Reader,
    table: &InterruptTable,
    irq: u32,
    names: Vec<String>,
    role: Role,
    confidence: Confidence,
    source: MapSource,
    napi: Option<u32>,
    parts: Parts,
) -> Vector {
    let asked = part(parts.asked, "smp_affinity", || affinity(r, irq, "smp_affinity"));
    let movable = match &asked {
        Fact::Absent if r.host.list(&format!("/proc/irq/{irq}")).is_ok() => Movable::No(Immovable::NoAffinityFile),
        // Without the directory nothing is known, because some containers hide it.
        Fact::Absent => {
            r.unread.push(Unread::new(format!("/proc/irq/{irq}"), Some(2), "not there"));
            Movable::UnknownUntilTried
        }
        _ if table.debugfs && managed(r.host, irq) => Movable::No(Immovable::Managed),
        _ => Movable::UnknownUntilTried,
    };
    Vector {
        irq: IrqId(irq),
        names,
        role,
        confidence,
        source,
        napi,
        asked,
        effective: affinity(r, irq, "effective_affinity"),
        hint: part(parts.counts, "affinity_hint", || {
            r.parse(&format!("/proc/irq/{irq}/affinity_hint"), cpumask::parse)
        }),
        node: part(parts.counts, "node", || node(r, irq)),
        movable,
        count: part(parts.counts, INTERRUPTS, || table.total(r.host, irq)),
    }
}

/// The list form. Trees of other programs often contain only the mask.
fn affinity(r: &mut Reader, irq: u32, file: &str) -> Fact<CpuSet> {
    let list = path::of_irq(IrqId(irq), &format!("{file}_list"));
    let why = match r.host.read_text(&list) {
        Ok(t) => match cpulist::parse(&t) {
            Ok(set) => return Fact::Known(set),
            Err(e) => Fact::unknown(&list, e.to_string()),
        },
        Err(e) => crate::read::failed(&list, &e),
    };
    if let Ok(t) = r.host.read_text(&path::of_irq(IrqId(irq), file))
        && let Ok(set) = cpumask::parse(&t)
    {
        return Fact::Known(set);
    }
    r.note(why)
}

/// The requested CPUs of one interrupt, and where it is delivered.
pub(crate) fn one(r: &mut Reader, irq: IrqId) -> (Fact<CpuSet>, Fact<CpuSet>) {
    (affinity(r, irq.0, "smp_affinity"), affinity(r, irq.0, "effective_affinity"))
}

/// The CPUs to which an interrupt is delivered now.
pub fn effective(host: &dyn Host, irq: IrqId) -> Fact<CpuSet> {
    affinity(&mut Reader::new(host), irq.0, "effective_affinity")
}

/// How often an interrupt was raised since boot, over all CPUs.
pub fn raised(host: &dyn Host, irq: IrqId) -> Fact<u64> {
    let path = format!("/sys/kernel/irq/{irq}/per_cpu_count");
    let sum = |t: &str| t.split(',').map(|c| c.trim().parse::<u64>().ok()).sum::<Option<u64>>();
    Reader::new(host).parse(&path, |t| sum(t).ok_or_else(|| ParseError::new("per_cpu_count", t, "counts with commas")))
}

fn node(r: &mut Reader, irq: u32) -> Fact<NodeId> {
    let path = format!("/proc/irq/{irq}/node");
    r.parse(&path, sysfs::parse_numa_node).and_then(|n| match n {
        Some(n) => Fact::Known(n),
        None => Fact::unknown(path, "the kernel reports no node (-1)"),
    })
}

fn managed(host: &dyn Host, irq: u32) -> bool {
    host.read_text(&format!("{DEBUGFS}/{irq}")).is_ok_and(|t| t.contains("IRQD_AFFINITY_MANAGED"))
}

fn say_what_is_missing(r: &mut Reader, around: &IrqContext, vectors: &[Vector], renamed: bool) {
    let missing = |why| not_attributed(around, why);
    if renamed {
        r.unread.push(missing("their names are those of another interface: was it renamed while it was up?"));
    } else if !vectors.is_empty() && vectors.iter().all(|v| v.names.is_empty() && !v.is_queue()) {
        let why = if around.down {
            "drivers name their interrupts only while the interface is up"
        } else {
            "the vectors have no names"
        };
        r.unread.push(missing(why));
    }
}

/// Queues by number (receive before transmit), control, idle, unknown; then by interrupt number.
fn sorted(mut vectors: Vec<Vector>) -> Vec<Vector> {
    let key = |v: &Vector| {
        let (rx, tx) = (v.rx().iter().min().copied(), v.tx().iter().min().copied());
        let rank = match v.role {
            Role::Queues { .. } => 0,
            Role::Control => 1,
            Role::Idle => 2,
            Role::Unknown => 3,
        };
        (rank, rx.or(tx), rx.is_none(), v.irq)
    };
    vectors.order_by_key(key);
    vectors
}
