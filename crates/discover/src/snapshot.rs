//! The whole host, or one device of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::cpumask;
use ringwise_model::{Cause, ControlPath, CpuSet, Fact, Host as HostFacts, Nic, Snapshot, Topology, Unread};
use ringwise_sys::{DeviceCall, Host, Request, alone_with_deadline};

use crate::links::{Port, Sort};
use crate::neighbours::Neighbours;
use crate::nics::{self, Common};
use crate::parts::Parts;
use crate::quiet::PassiveHost;
use crate::read::Reader;
use crate::traffic_class::{self, Roots};
use crate::{
    Error, bond, competing_programs, control, cpus, host, informational, irq, links, pool, rps, userspace_drivers,
    without_interface,
};

/// What to read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Interfaces by name or alternative name, with those below them. Empty: all that have queues of their own or carry
    /// others. Unknown names are an error.
    pub devs: Vec<String>,
    /// Further interfaces (with those below them), if they exist: the path to a peer may use one of thousands of VLANs.
    pub follow: Vec<String>,
    /// Deadline for each device of a live host. A late device is in the snapshot with the reason.
    pub deadline: Duration,
    /// Skips the search for competing programs, which reads a file of every process.
    pub skip_rivals: bool,
    /// Skips the paths that must not be interrupted ([`crate::control()`]).
    pub skip_control: bool,
    /// Time limit of that search. What was found until then counts.
    pub rivals_within: Option<Duration>,
    /// Parts to read. Default: everything that a decision depends on.
    pub parts: Parts,
}

/// 2 s, or `RINGWISE_DEVICE_DEADLINE_MS` on slow machines (emulated ones).
fn deadline() -> Duration {
    let named = std::env::var("RINGWISE_DEVICE_DEADLINE_MS").ok().and_then(|s| s.parse().ok());
    Duration::from_millis(named.unwrap_or(2000))
}

impl Default for Options {
    fn default() -> Self {
        Self {
            devs: Vec::new(),
            follow: Vec::new(),
            deadline: deadline(),
            skip_rivals: false,
            rivals_within: None,
            skip_control: false,
            parts: Parts { shown: false, xdp_metadata: false, ..Parts::ALL },
        }
    }
}

impl Options {
    /// All devices, and all parts on which a decision depends; [`Parts::ALL`] has more.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only these devices and the interfaces below them.
    pub fn only(devs: &[String]) -> Self {
        Self { devs: devs.to_vec(), ..Self::default() }
    }

    /// Only which CPU serves each queue of these devices, also while an interrupt has not moved to the CPU of its mask yet, and which
    /// NAPI thread.
    pub fn layout(devs: &[String]) -> Self {
        let parts = Parts { asked: true, napi: true, ..Parts::LEAST };
        Self { skip_rivals: true, skip_control: true, parts, ..Self::only(devs) }
    }
}

enum Part {
    Nic(Box<Nic>),
    Rivals(Box<competing_programs::CompetingPrograms>),
    DefaultMask(Fact<CpuSet>, Vec<Unread>),
}

/// Reads the host. Devices are read in parallel, each with its own deadline.
///
/// Errors: nothing can be read, or an interface of `options.devs` does not exist.
pub fn snapshot(host: &Arc<dyn Host>, options: &Options) -> Result<Snapshot, Error> {
    readable(host.as_ref())?;
    let deadline = time_for(host.as_ref(), options.deadline);
    let mut r = Reader::new(host.as_ref());
    let ports = Arc::new(ports(host, &mut r, deadline));
    let (named, follow) = names(&ports, options)?;
    let common = Arc::new(common(host, &mut r, &ports, deadline, options.parts));
    let chosen = links::choose(&ports, &named, &follow);

    let read: Vec<usize> = chosen.listed.iter().copied().filter(|i| ports[*i].sort == Sort::Own).collect();
    let tasks = tasks(host, options, &ports, &common, &read, deadline);
    // The host's other files cannot hang under the network lock, so they are read here in the meantime.
    let devices = { std::thread::Builder::new().name("devices".into()).spawn(move || pool::run(tasks, deadline)) };
    let (topology, mut facts) = facts(host, &mut r, options.parts);
    let mut done = match devices.map(std::thread::JoinHandle::join) {
        Ok(Ok(parts)) => parts,
        Ok(Err(_)) => Vec::new(),
        Err(e) => {
            r.unread.push(Unread::new(
                "devices",
                e.raw_os_error(),
                format!("no thread could be started: {}", ringwise_sys::io_text(&e)),
            ));
            Vec::new()
        }
    };
    done.resize_with(read.len() + 2, || None);
    facts.rps_default_mask = match done.pop() {
        Some(Some(Part::DefaultMask(f, unread))) => {
            r.unread.extend(unread);
            f
        }
        _ => r.note(Fact::late(rps::DEFAULT_MASK, deadline)),
    };
    if options.parts.host && !facts.sysctls.is_empty() {
        let mask = facts.rps_default_mask.as_ref().map(|m| cpumask::format(m, None));
        facts.sysctls.insert("net.core.rps_default_mask".into(), mask);
    }
    let found = match done.pop() {
        Some(Some(Part::Rivals(f))) => *f,
        _ => competing_programs::CompetingPrograms::not(&Unread::late("", deadline)),
    };
    (facts.rivals, facts.rival_details, facts.irqbalance) = (found.names, found.details, found.irqbalance);
    if let (Fact::Unknown(u), false) = (&facts.rivals, options.skip_rivals) {
        r.unread.push(u.clone());
    }
    let late: Vec<usize> = read.iter().zip(&done).filter(|(_, d)| d.is_none()).map(|(i, _)| *i).collect();
    let mut without = quietly(host, &common, &ports, &late, deadline);
    let mut done = done.into_iter();
    let nics = chosen
        .listed
        .iter()
        .map(|&i| match ports[i].sort {
            Sort::Own => match done.next() {
                Some(Some(Part::Nic(nic))) => *nic,
                _ => without.remove(&i).unwrap_or_else(|| nics::late(&common, &ports[i], deadline)),
            },
            _ => {
                let mut nic = nics::listed(&common, &ports[i]);
                nic.bond = bond::is_bond(&ports[i]).then(|| bond::read(&mut r, &ports[i].name)).flatten();
                nic
            }
        })
        .collect::<Vec<Nic>>();
    let control = match options.skip_control {
        true => Fact::unknown("control path", "not read"),
        false => control_paths(host, &ports, deadline),
    };
    let without_interface = without_interface::functions(host.as_ref(), &common.table, &ports, &nics);
    let without_interface = match without_interface {
        Fact::Known(list) => list,
        Fact::Absent => Vec::new(),
        // A recording of an earlier version has no list. Its page ends with the advice to make a new one.
        Fact::Unknown(u) if u.cause == Cause::NotRecorded => Vec::new(),
        Fact::Unknown(u) => {
            r.unread.push(u);
            Vec::new()
        }
    };
    Ok(Snapshot {
        host: facts,
        topology,
        nics,
        bystanders: chosen.bystanders,
        control,
        held: userspace_drivers::held(host.as_ref()),
        without_interface,
        unread: r.unread,
    })
}

/// What may wait for the network lock, one task for each device of `read`, then competing programs and the default mask.
fn tasks(
    host: &Arc<dyn Host>,
    options: &Options,
    ports: &Arc<Vec<Port>>,
    common: &Arc<Common>,
    read: &[usize],
    deadline: Duration,
) -> Vec<pool::Task<Part>> {
    let mut tasks: Vec<pool::Task<Part>> = Vec::new();
    for &i in read {
        let (host, ports, common) = (host.clone(), ports.clone(), common.clone());
        tasks.push(Box::new(move || {
            let _alone = DeviceCall::new(&host, of_device(&ports[i].name), deadline)?;
            let kind = nics::master_kind(&ports, ports[i].master);
            Some(Part::Nic(Box::new(nics::read(&host, &common, &ports[i], kind.as_deref()))))
        }));
    }
    // irqbalance is always read, because the interrupts that it skips are a setting.
    let (rivals_host, skip, time) = (host.clone(), options.skip_rivals, options.rivals_within);
    tasks.push(Box::new(move || {
        let host = rivals_host.as_ref();
        let found =
            if skip { competing_programs::irqbalance_alone(host) } else { competing_programs::find_within(host, time) };
        Some(Part::Rivals(Box::new(found)))
    }));
    let host = host.clone();
    tasks.push(Box::new(move || {
        let _alone = DeviceCall::new(&host, rps::DEFAULT_MASK, deadline)?;
        let mut r = Reader::new(host.as_ref());
        Some(Part::DefaultMask(rps::default_mask(&mut r), r.unread))
    }));
    tasks
}

/// CPUs and settings of the host, from files that cannot hang under the network lock.
fn facts(host: &Arc<dyn Host>, r: &mut Reader<'_>, parts: Parts) -> (Topology, HostFacts) {
    let (topology, more) = cpus::parts_of(host.as_ref(), parts.cores);
    r.unread.extend(more);
    let (mut facts, more) = host::host_without_rivals(host.as_ref());
    r.unread.extend(more);
    if parts.host {
        let (sysctls, more) = host::sysctls(host.as_ref());
        r.unread.extend(more);
        let (latency, more) = host::cpu_latency(host.as_ref(), &topology.online);
        r.unread.extend(more);
        (facts.sysctls, facts.cpu_latency) = (sysctls, latency);
    }
    if parts.shown {
        facts.power = Some(informational::power(r, &topology));
    }
    (topology, facts)
}

/// A recording does not hang, and may need time for thousands of queues. The limit is for recordings on a file system
/// that hangs.
const RECORDING: Duration = Duration::from_secs(600);

fn time_for(host: &dyn Host, deadline: Duration) -> Duration {
    if host.is_recorded() { deadline.max(RECORDING) } else { deadline }
}

/// The name under which a device is read, by one thread at a time.
fn of_device(name: &str) -> String {
    format!("device {name}")
}

/// Requests routes, and so takes the network lock.
fn control_paths(host: &Arc<dyn Host>, ports: &Arc<Vec<Port>>, deadline: Duration) -> Fact<Vec<ControlPath>> {
    let (h, p) = (host.clone(), ports.clone());
    let found = alone_with_deadline(host, "control path", deadline, move || control::paths(h.as_ref(), &p));
    found.map_or_else(|| control::late(deadline), Fact::Known)
}

/// Reads late devices from files only. An unresponsive device with the network lock makes every other device wait, but
/// their files still show driver, node, queues and interrupts. A device that is late again is missing from the result.
fn quietly(
    host: &Arc<dyn Host>,
    common: &Arc<Common>,
    ports: &Arc<Vec<Port>>,
    late: &[usize],
    deadline: Duration,
) -> BTreeMap<usize, Nic> {
    if late.is_empty() || host.is_recorded() {
        return BTreeMap::new();
    }
    let quiet: Arc<dyn Host> = Arc::new(PassiveHost { host: host.clone(), why: Unread::late("", deadline) });
    let task = |i: usize| -> pool::Task<Nic> {
        let (host, quiet, common, ports) = (host.clone(), quiet.clone(), common.clone(), ports.clone());
        Box::new(move || {
            let _alone = DeviceCall::new(&host, format!("files of {}", ports[i].name), deadline)?;
            let kind = nics::master_kind(&ports, ports[i].master);
            Some(nics::read_quiet(&quiet, &common, &ports[i], kind.as_deref(), deadline))
        })
    };
    let parts = pool::run(late.iter().map(|i| task(*i)).collect(), deadline);
    late.iter().zip(parts).filter_map(|(i, nic)| Some((*i, nic?))).collect::<BTreeMap<_, _>>()
}

/// Reads one device again: its links, its own files and requests, and `/proc/interrupts`.
///
/// Errors: the device does not exist (any more).
pub fn device(host: &Arc<dyn Host>, name: &str, deadline: Duration) -> Result<Nic, Error> {
    let deadline = time_for(host.as_ref(), deadline);
    let mut r = Reader::new(host.as_ref());
    let ports = ports(host, &mut r, deadline);
    let i = find(&ports, name)?;
    let common = Arc::new(common(host, &mut r, &ports, deadline, Parts::ALL));
    let port = ports[i].clone();
    if port.sort != Sort::Own {
        return Ok(nics::listed(&common, &port));
    }
    let kind = nics::master_kind(&ports, port.master);
    let task = {
        let (host, common, port) = (host.clone(), common.clone(), port.clone());
        move || nics::read(&host, &common, &port, kind.as_deref())
    };
    let mut nic = match alone_with_deadline(host, &of_device(&port.name), deadline, task) {
        Some(nic) => nic,
        None => {
            let mut without = quietly(host, &common, &Arc::new(ports), &[i], deadline);
            without.remove(&i).unwrap_or_else(|| nics::late(&common, &port, deadline))
        }
    };
    nic.unread.extend(r.unread);
    Ok(nic)
}

fn readable(host: &dyn Host) -> Result<(), Error> {
    let (Err(proc), Err(sys)) = (host.list("/proc"), host.list("/sys")) else { return Ok(()) };
    // Captures need not contain the listings of the root directories.
    let any = ["/proc/interrupts", "/proc/stat", "/sys/devices/system/cpu/online"];
    if any.iter().any(|p| host.read(p).is_ok()) || host.list(links::NET).is_ok() {
        return Ok(());
    }
    Err(Error::NothingReadable { proc: proc.reason(), sys: sys.reason() })
}

/// The dump takes the network lock, which an unresponsive device may hold.
fn ports(host: &Arc<dyn Host>, r: &mut Reader, deadline: Duration) -> Vec<Port> {
    let h = host.clone();
    let found = alone_with_deadline(host, "links", deadline, move || {
        let mut r = Reader::new(h.as_ref());
        (links::ports(&mut r), r.unread)
    });
    match found {
        Some((ports, unread)) => {
            r.unread.extend(unread);
            ports
        }
        None => {
            r.unread.push(Unread::late(Request::Links.to_string(), deadline));
            links::from_files(r)
        }
    }
}

fn common(host: &Arc<dyn Host>, r: &mut Reader, ports: &[Port], deadline: Duration, parts: Parts) -> Common {
    let h = host.clone();
    let found = alone_with_deadline(host, "addresses", deadline, move || {
        let mut r = Reader::new(h.as_ref());
        (nics::addresses(&mut r), r.unread)
    });
    let addresses = match found {
        Some((addresses, unread)) => {
            r.unread.extend(unread);
            addresses
        }
        None => {
            let what = Request::Addrs.to_string();
            r.note(Fact::late(what, deadline))
        }
    };
    let own = ports.iter().filter(|p| p.sort == Sort::Own).map(|p| p.name.clone()).collect();
    Common {
        table: irq::InterruptTable::read(r, parts.counts),
        addresses,
        roots: roots(host, r, ports, deadline),
        parts,
        neighbours: Neighbours::new(own),
    }
}

/// Root queueing disciplines, if an interface has one with traffic classes.
fn roots(host: &Arc<dyn Host>, r: &mut Reader, ports: &[Port], deadline: Duration) -> Roots {
    if !traffic_class::needed(ports) {
        return None;
    }
    let h = host.clone();
    let found = alone_with_deadline(host, "qdiscs", deadline, move || {
        let mut r = Reader::new(h.as_ref());
        (r.ask(&Request::Qdiscs, traffic_class::roots), r.unread)
    });
    Some(match found {
        Some((roots, unread)) => {
            r.unread.extend(unread);
            roots
        }
        None => r.note(Fact::late(Request::Qdiscs.to_string(), deadline)),
    })
}

fn names(ports: &[Port], options: &Options) -> Result<(Vec<usize>, Vec<usize>), Error> {
    let named = options.devs.iter().map(|d| find(ports, d)).collect::<Result<_, _>>()?;
    let follow = options.follow.iter().filter_map(|d| find(ports, d).ok()).collect();
    Ok((named, follow))
}

/// On hosts with more software interfaces than this, their names are not listed.
const FEW: usize = 50;

fn find(ports: &[Port], name: &str) -> Result<usize, Error> {
    let alternative = |p: &Port| p.info.as_ref().is_some_and(|i| i.altnames.iter().any(|a| a == name));
    let found = ports.iter().position(|p| p.name == name).or_else(|| ports.iter().position(alternative));
    found.ok_or_else(|| {
        let few = ports.len() <= FEW;
        let existing = ports.iter().filter(|p| p.sort == Sort::Own || few && p.sort != Sort::Loopback);
        Error::no_such_device(name, existing.map(|p| p.name.clone()).collect())
    })
}
