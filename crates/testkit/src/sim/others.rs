//! irqbalance and systemd beside the kernel: the requests they receive, and how they act on them.
//! lab: the checks of `530-irqbalance` and `560-irqbalance-systemd`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ringwise_kfmt::irqbalance::parse_ban_order;
use ringwise_model::errno::{EACCES, ENOENT};
use ringwise_model::{CpuSet, Fact};
use ringwise_sys::{Error, Result};

use super::tree::Tree;
use super::{Sim, State, driver};

const UNIT: &str = "irqbalance.service";

#[derive(Default)]
pub(crate) struct Others {
    pub irqbalance: Option<Daemon>,
    /// Files that were placed, by path.
    pub placed: BTreeMap<String, String>,
    pub reloads: usize,
    /// Programs that listen on one TCP port each, by name.
    pub listening: BTreeMap<String, u16>,
    /// The control group of a listening program, by its name. Others are in the root.
    pub control_groups: BTreeMap<String, String>,
    /// CPUs that a listening program may use, by its name. Others may use all.
    pub allowed: BTreeMap<String, CpuSet>,
    /// The table of TCP sockets cannot be read.
    pub sockets_unreadable: bool,
}

#[derive(Clone)]
pub(crate) struct Daemon {
    pid: u32,
    start: u64,
    /// As systemd starts it, without the addition of ringwise.
    args: Vec<String>,
    /// Those of this run.
    running: Vec<String>,
    banned: BTreeSet<u32>,
    by_systemd: bool,
}

impl Sim {
    /// irqbalance runs from now on, with these arguments. `by_systemd`: as a service.
    pub fn irqbalance(&self, args: &[&str], by_systemd: bool) {
        let args: Vec<String> = args.iter().map(|a| (*a).to_string()).collect();
        let running = args.clone();
        let daemon = Daemon { pid: 900, start: 5, args, running, banned: BTreeSet::new(), by_systemd };
        self.lock().others.irqbalance = Some(daemon.banned_by_arguments());
    }

    /// Another program replaces its list of bans.
    pub fn irqbalance_ban(&self, irqs: &[u32]) {
        if let Some(d) = &mut self.lock().others.irqbalance {
            d.banned = irqs.iter().copied().collect();
        }
    }

    /// The interrupts that it does not move, as it reports them.
    pub fn irqbalance_bans(&self) -> Vec<u32> {
        self.lock().others.irqbalance.iter().flat_map(|d| d.banned.clone()).collect()
    }

    /// Restarts it: it forgets requests from its socket, and its command line applies.
    pub fn irqbalance_restart(&self) {
        let mut s = self.lock();
        let dropin = s.others.placed.get(&dropin()).cloned();
        let reloaded = s.others.reloads > 0;
        if let Some(d) = &mut s.others.irqbalance {
            d.pid += 1;
            d.start += 100;
            d.running = d.args.clone();
            if let Some(text) = dropin.filter(|_| reloaded && d.by_systemd) {
                d.running
                    .extend(text.split_whitespace().filter(|w| w.starts_with("--policyscript=")).map(str::to_string));
            }
            *d = d.clone().banned_by_arguments();
        }
    }

    /// One scan: every interrupt that is not banned moves to CPU 0.
    pub fn irqbalance_scan(&self) {
        let mut s = self.lock();
        let s = &mut *s;
        let Some(d) = &s.others.irqbalance else { return };
        let policy = d.running.iter().any(|a| a.starts_with("--policyscript="));
        let devices = s.others.placed.get("/run/ringwise/irqbalance-devices").cloned().unwrap_or_default();
        let online = s.topology.online.clone();
        for n in &mut s.nics {
            let bus = n.dev.bus_address.clone().unwrap_or_default();
            if policy && devices.lines().any(|l| l == bus) {
                continue;
            }
            for v in n.vectors.iter_mut().filter(|v| !d.banned.contains(&v.irq.0)) {
                v.asked = Fact::Known(CpuSet::range(0, 0));
                driver::settle(v, &online);
            }
        }
        s.stale_all();
    }

    /// This program runs and listens on this TCP port of any IPv4 address. `None`: it ends.
    pub fn listens(&self, program: &str, port: Option<u16>) {
        let listening = &mut self.lock().others.listening;
        match port {
            Some(port) => _ = listening.insert(program.into(), port),
            None => _ = listening.remove(program),
        }
    }

    /// A listening program is in this control group, such as `/system.slice/x.service`.
    pub fn control_group(&self, program: &str, path: &str) {
        self.lock().others.control_groups.insert(program.into(), path.into());
    }

    /// A listening program may use only these CPUs.
    pub fn may_use(&self, program: &str, cpus: &CpuSet) {
        self.lock().others.allowed.insert(program.into(), cpus.clone());
    }

    /// Whether reading `/proc/net/tcp` fails with EACCES.
    pub fn sockets_unreadable(&self, yes: bool) {
        self.lock().others.sockets_unreadable = yes;
    }

    /// The content of a file that was placed.
    pub fn placed(&self, path: &str) -> Option<String> {
        self.lock().others.placed.get(path).cloned()
    }

    /// Paths of all files that were placed.
    pub fn all_placed(&self) -> Vec<String> {
        self.lock().others.placed.keys().cloned().collect()
    }
}

fn dropin() -> String {
    format!("/run/systemd/system/{UNIT}.d/90-ringwise.conf")
}

impl Daemon {
    fn banned_by_arguments(mut self) -> Self {
        self.banned = self.running.iter().filter_map(|a| a.strip_prefix("--banirq=")?.parse().ok()).collect();
        self
    }

    fn socket(&self) -> String {
        format!("/run/irqbalance/irqbalance{}.sock", self.pid)
    }
}

fn daemon<'a>(s: &'a State, socket: &str) -> Result<&'a Daemon> {
    s.others.irqbalance.as_ref().filter(|d| d.socket() == socket).ok_or_else(|| Error::errno("", ENOENT))
}

pub(super) fn ask(s: &State, socket: &str, command: &str) -> Result<Vec<Vec<u8>>> {
    let d = daemon(s, socket)?;
    if command != "setup" {
        return Ok(vec![Vec::new()]);
    }
    let irqs: String = d.banned.iter().map(|n| format!("IRQ {n} LOAD 0 DIFF 0 CLASS 0 ")).collect();
    Ok(vec![format!("SLEEP 10 {irqs}BANNED 00000000,00000000").into_bytes()])
}

pub(super) fn order(s: &mut State, socket: &str, command: &str) -> Result<()> {
    daemon(s, socket)?;
    if let (Some(list), Some(d)) = (parse_ban_order(command), &mut s.others.irqbalance) {
        d.banned = list.into_iter().collect();
    }
    Ok(())
}

pub(super) fn place(s: &mut State, path: &str, content: Option<&str>) {
    match content {
        Some(text) => _ = s.others.placed.insert(path.to_string(), text.to_string()),
        None => _ = s.others.placed.remove(path),
    }
}

pub(super) fn files(s: &State, t: &mut Tree) {
    for (path, text) in &s.others.placed {
        t.file(path, text);
    }
    let mut sockets = String::from("sl local rem st queues timer retransmits uid timeout inode");
    for (i, (name, port)) in s.others.listening.iter().enumerate() {
        let (pid, inode) = (800 + i, 5000 + i);
        t.file(format!("/proc/{pid}/comm"), name);
        let cpus = s.others.allowed.get(name).unwrap_or(&s.topology.online);
        t.file(format!("/proc/{pid}/status"), format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}\n"));
        let group = s.others.control_groups.get(name).map_or("/", String::as_str);
        t.file(format!("/proc/{pid}/cgroup"), format!("0::{group}"));
        t.link(format!("/proc/{pid}/fd/3"), format!("socket:[{inode}]"));
        write!(sockets, "\n{i}: 00000000:{port:04X} 00000000:0000 0A 0:0 0:0 0 0 0 {inode}").expect("a string");
    }
    match s.others.sockets_unreadable {
        true => t.error("/proc/net/tcp", EACCES),
        false => t.file("/proc/net/tcp", sockets),
    }
    let Some(d) = &s.others.irqbalance else { return };
    let p = format!("/proc/{}", d.pid);
    t.file(format!("{p}/comm"), "irqbalance");
    let words = std::iter::once("/usr/sbin/irqbalance").chain(d.running.iter().map(String::as_str));
    t.files.insert(format!("{p}/cmdline"), Ok(words.map(|w| format!("{w}\0")).collect()));
    let group = if d.by_systemd { format!("system.slice/{UNIT}") } else { "user.slice/session-1.scope".into() };
    t.file(format!("{p}/cgroup"), format!("0::/{group}"));
    t.file(format!("{p}/stat"), format!("{} (irqbalance) S 1{} {} 0", d.pid, " 0".repeat(17), d.start));
    t.file(d.socket(), "");
    if d.by_systemd {
        let args: String = d.args.iter().map(|a| format!(" {a}")).collect();
        let text = format!("[Unit]\nDescription=x\n\n[Service]\nExecStart=/usr/sbin/irqbalance{args}\n");
        t.file(format!("/usr/lib/systemd/system/{UNIT}"), text);
    }
}
