//! A host that behaves like a kernel: it rejects what a kernel rejects, and resets what a driver resets.
//!
//! ```text
//!   Snapshot ─► Sim ── files (files.rs, tree.rs), requests (netlink.rs) ──► discover
//!                ▲
//!   writes ──► fault.rs ──► kernel.rs (what is accepted, rounded, refused) ──► driver.rs (what is reset)
//! ```
//!
//! Each behaviour in it is a fact of a real kernel; the comment beside it names the check of the lab's
//! scenarios `100-facts` and `110-facts-more` that shows it (`lab: "TITLE"`).
//! It forwards no packets: interrupts happen when [`Sim::interrupt`] is called.

mod bonding;
pub mod build;
mod clock;
mod driver;
mod driver_kind;
mod entries;
mod fault;
pub(crate) mod features;
mod files;
mod kernel;
mod moderation;
mod napi;
mod netlink;
mod others;
mod refusal;
mod rss;
mod rules;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringwise_model::{CpuId, CpuSet, Fact, Nic, Snapshot, Topology};
use ringwise_sys::{Clock, CountEntries, Error, Host, Request, Result};

pub use clock::ClockJump;
pub use driver_kind::{Quirk, SimulatedDriver};
pub use entries::{ArrivalQueue, ArrivingPackets};
pub use fault::{At, Killed, SimulatedFault, Times, killed};

use tree::Tree;

/// A simulated host. Share it with `Arc`; every method takes `&self`.
pub struct Sim {
    state: Mutex<State>,
    /// Wakes calls that hang.
    released: Condvar,
}

/// What the model adds to a snapshot.
pub(crate) struct DeviceModel {
    pub driver: SimulatedDriver,
    /// The RSS table was set by a user and not set back to default since (`netif_is_rxfh_configured`).
    pub rss_by_user: bool,
    /// No link before this time.
    pub link_at: Duration,
    /// How often the link went down.
    pub carrier_downs: u32,
    /// Its bond does not use it again.
    pub left_out_by_bond: bool,
    /// See [`Quirk`].
    pub quirks: BTreeSet<Quirk>,
    /// Interrupts that the kernel places itself.
    pub managed: BTreeSet<u32>,
    /// Files of the device, made again when it changes.
    pub tree: Option<Tree>,
}

impl DeviceModel {
    pub(crate) fn link_down_until(&mut self, at: Duration) {
        self.link_at = at;
        self.carrier_downs += 1;
    }
}

pub(crate) struct State {
    pub host: ringwise_model::Host,
    pub topology: Topology,
    pub nics: Vec<Nic>,
    pub extra: Vec<DeviceModel>,
    /// CPUs, nodes and what else does not change.
    pub fixed: Tree,
    pub now: Duration,
    /// By how many seconds the wall clock was set forward.
    pub wall: i64,
    /// What will happen to the clocks, by time since boot.
    pub jumps: Vec<(Duration, ClockJump)>,
    pub next_irq: u32,
    /// CPUs that went offline, with their place.
    pub offline: BTreeMap<CpuId, ringwise_model::Cpu>,
    /// CPUs whose interrupt vectors are used up.
    pub full_cpus: CpuSet,
    /// CPUs where a sleeper does not return; true: their timer interrupts are counted all the same.
    pub late_cpus: BTreeMap<CpuId, bool>,
    /// CPUs that serve no interrupt: queues whose vector is sent there have bytes in flight and complete nothing.
    pub stalled: CpuSet,
    /// Reads of `/proc/interrupts` so far: between two of them every timer has fired.
    pub ticks: u64,
    /// By interrupt: how many reads after a write still show the earlier mask, and that mask.
    pub old_masks: BTreeMap<u32, (usize, Option<CpuSet>)>,
    /// Devices with traffic on every queue whenever time passes.
    pub in_use: Vec<String>,
    pub faults: Vec<SimulatedFault>,
    /// Writes that are counted so far; the first is 0.
    pub writes: usize,
    pub log: Vec<String>,
    pub dead: bool,
    pub release: bool,
    /// Writes of other programs: not counted, no faults.
    pub outside: bool,
    pub hung: BTreeSet<String>,
    pub others: others::Others,
    /// `own PEER PORT ADDRESS PORT`, see `Request::Sessions`.
    pub sessions: Vec<String>,
    pub sessions_unreadable: bool,
    /// Address to the interface that it is reached by.
    pub routes: BTreeMap<std::net::IpAddr, u32>,
    pub entry_counters: entries::Counters,
}

impl Sim {
    /// A host that discovery finds as `snapshot` describes it. Devices behave by the name of their driver.
    pub fn new(snapshot: &Snapshot) -> Self {
        let extra = snapshot
            .nics
            .iter()
            .map(|n| DeviceModel {
                driver: SimulatedDriver::of(n),
                rss_by_user: false,
                link_at: Duration::ZERO,
                carrier_downs: 0,
                left_out_by_bond: false,
                quirks: BTreeSet::new(),
                managed: driver::managed(n),
                tree: None,
            })
            .collect();
        let next_irq = snapshot.nics.iter().flat_map(|n| &n.vectors).map(|v| v.irq.0 + 1).max().unwrap_or(24);
        Self {
            state: Mutex::new(State {
                host: snapshot.host.clone(),
                topology: snapshot.topology.clone(),
                nics: snapshot.nics.clone(),
                extra,
                fixed: files::fixed(&snapshot.topology),
                now: Duration::from_secs(1000),
                wall: 0,
                jumps: Vec::new(),
                next_irq,
                offline: BTreeMap::new(),
                full_cpus: CpuSet::new(),
                late_cpus: BTreeMap::new(),
                stalled: CpuSet::new(),
                ticks: 0,
                old_masks: BTreeMap::new(),
                in_use: Vec::new(),
                faults: Vec::new(),
                writes: 0,
                log: Vec::new(),
                dead: false,
                release: false,
                outside: false,
                hung: BTreeSet::new(),
                others: others::Others::default(),
                sessions: Vec::new(),
                sessions_unreadable: false,
                routes: BTreeMap::new(),
                entry_counters: entries::Counters::default(),
            }),
            released: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A simulated kill unwinds through the lock; the state is as it was left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault.
    pub fn fault(&self, fault: SimulatedFault) {
        self.lock().faults.push(fault);
    }

    /// Removes all faults, allows calls again after a simulated kill, and releases calls that hang.
    pub fn clear_faults(&self) {
        let mut s = self.lock();
        s.faults.clear();
        s.dead = false;
        s.release = true;
        s.hung.clear();
        self.released.notify_all();
    }

    /// The process was killed; nothing it does after that counts.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Ends the process here, as SIGKILL would.
    pub fn kill(&self) -> ! {
        self.lock().dead = true;
        std::panic::panic_any(Killed)
    }

    /// The writes of the tested program so far: `PATH <- DATA`, with the errno if refused.
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// Writes and changing kernel requests since the last [`Sim::forget_writes`], those that failed included.
    pub fn writes(&self) -> usize {
        self.lock().writes
    }

    /// Counts writes from 0 again and forgets the log.
    pub fn forget_writes(&self) {
        let mut s = self.lock();
        s.writes = 0;
        s.log.clear();
    }

    /// Another program changes this host: no faults occur, and the writes are not counted.
    pub fn outside<T>(&self, f: impl FnOnce(&dyn Host) -> T) -> T {
        self.lock().outside = true;
        let out = f(self);
        self.lock().outside = false;
        out
    }

    /// Another program runs `ethtool -L dev combined n`.
    pub fn ethtool_l(&self, dev: &str, combined: u32) -> Result<()> {
        kernel::set_channels(&mut self.lock(), dev, &BTreeMap::from([(kernel::COMBINED_COUNT, combined)]))
    }

    /// Another program runs `ethtool -X dev` with this table.
    pub fn ethtool_x(&self, dev: &str, table: &[u32]) -> Result<()> {
        rss::set_table(&mut self.lock(), dev, Some(table))
    }

    /// Another program creates an RSS context with this table. Returns its number.
    pub fn ethtool_x_new(&self, dev: &str, table: &[u32]) -> Result<u32> {
        rss::make_context(&mut self.lock(), dev, table)
    }

    /// Another program runs `ethtool -N dev flow-type WORDS`.
    pub fn ethtool_n(&self, dev: &str, words: &str) -> Result<()> {
        rules::insert_from_text(&mut self.lock(), dev, words)
    }

    /// A packet raises this interrupt: it is counted on the CPU that handles it, and a mask that was written before takes effect.
    /// lab: "but takes effect only at the next interrupt"
    pub fn interrupt(&self, irq: u32) {
        let mut s = self.lock();
        let online = s.topology.online.clone();
        for v in s.nics.iter_mut().flat_map(|n| &mut n.vectors).filter(|v| v.irq.0 == irq) {
            driver::settle(v, &online);
            if let Fact::Known(c) = &mut v.count {
                *c += 1;
            }
        }
        s.stale_all();
    }

    /// The number of reads after the next write that show the mask from before, as between `irqd_clr_move_pending` and
    /// `irq_do_set_affinity` of `irq_move_masked_irq` (kernel/irq/migration.c), which a reader does not wait for.
    /// Not shown in the lab: the window cannot be hit on purpose.
    pub fn old_mask(&self, irq: u32, reads: usize) {
        self.lock().old_masks.insert(irq, (reads, None));
    }

    /// Every interrupt of the device occurs once.
    pub fn traffic(&self, dev: &str) {
        let irqs: Vec<u32> = {
            let s = self.lock();
            s.nics.iter().filter(|n| n.dev.name == dev).flat_map(|n| &n.vectors).map(|v| v.irq.0).collect()
        };
        irqs.into_iter().for_each(|i| self.interrupt(i));
    }

    /// From now on every interrupt of the device occurs whenever time passes.
    pub fn in_use(&self, dev: &str) {
        self.lock().in_use.push(dev.into());
    }

    /// Time passes until every link is back.
    pub fn sleep_past_link(&self) {
        let latest = self.lock().extra.iter().map(|e| e.link_at).max().unwrap_or_default();
        let now = self.lock().now;
        Clock::sleep(self, latest.saturating_sub(now));
    }

    /// A user is logged in from this address, which is reached through this interface.
    pub fn ssh_from(&self, peer: &str, by: &str) {
        let mut s = self.lock();
        let index = s.index(by).and_then(|i| s.nics[i].dev.ifindex).map_or(0, |i| i.0);
        s.sessions.push(format!("own {peer} 51234 192.0.2.1 22"));
        if let Ok(peer) = peer.parse() {
            s.routes.insert(peer, index);
        }
    }

    /// Sockets of other users cannot be read.
    pub fn sessions_unreadable(&self, yes: bool) {
        self.lock().sessions_unreadable = yes;
    }

    /// The cable is unplugged, or plugged in again.
    pub fn cable(&self, dev: &str, there: bool) {
        let mut s = self.lock();
        if let Some(i) = s.index(dev) {
            s.extra[i].carrier_downs += u32::from(!there && s.nics[i].link.carrier == Fact::Known(true));
            s.nics[i].link.carrier = Fact::Known(there);
            s.nics[i].link.operstate = Fact::Known(if there { "up" } else { "down" }.into());
            s.stale_all();
        }
    }

    /// The bond of this member does not use it from now on, though its link is there.
    pub fn bond_leaves_out(&self, dev: &str, yes: bool) {
        let mut s = self.lock();
        if let Some(i) = s.index(dev) {
            s.extra[i].left_out_by_bond = yes;
            s.stale_all();
        }
    }

    /// The device gets another name.
    pub fn rename(&self, dev: &str, new: &str) {
        let mut s = self.lock();
        for n in &mut s.nics {
            if n.dev.name == dev {
                for v in &mut n.vectors {
                    v.names.iter_mut().for_each(|x| *x = x.replace(dev, new));
                }
                n.dev.name = new.to_string();
            }
        }
        s.stale_all();
    }

    /// The device is pulled.
    pub fn unplug(&self, dev: &str) {
        self.lock().unplug(dev);
    }

    /// The device misbehaves from now on. For those that ignore, are busy or run out of something: [`SimulatedFault`].
    pub fn quirk(&self, dev: &str, quirk: Quirk) {
        let mut s = self.lock();
        if let Some(i) = s.index(dev) {
            s.extra[i].quirks.insert(quirk);
        }
    }

    /// No interrupt vector is left on these CPUs.
    pub fn fill_cpus(&self, cpus: CpuSet) {
        self.lock().full_cpus = cpus;
    }

    /// A sleep on the CPU does not return: it serves no timer, or (`busy`) something else runs there all the time.
    /// lab: "a CPU that serves no timer is refused", "a busy CPU is not"
    pub fn late_cpu(&self, cpu: CpuId, busy: bool) {
        self.lock().late_cpus.insert(cpu, busy);
    }

    /// From now on the CPU serves no interrupt, while every queue has something to send.
    /// lab: "a queue on a CPU that serves nothing completes nothing"
    pub fn stalled_cpu(&self, cpu: CpuId) {
        let mut s = self.lock();
        s.stalled.insert(cpu);
        s.stale_all();
    }

    /// The CPU goes offline: the affinity of interrupts without another CPU becomes every online CPU.
    /// lab: "offline: the interrupt leaves the CPU"
    pub fn cpu_offline(&self, cpu: CpuId) {
        let mut s = self.lock();
        s.topology.online.remove(cpu);
        if let Some(place) = s.topology.cpus.remove(&cpu) {
            s.offline.insert(cpu, place);
        }
        let online = s.topology.online.clone();
        for v in s.nics.iter_mut().flat_map(|n| &mut n.vectors) {
            if v.asked.known().is_some_and(|a| !a.intersects(&online)) {
                v.asked = Fact::Known(online.clone());
            }
            driver::settle(v, &online);
        }
        s.fixed = files::fixed(&s.topology);
        s.stale_all();
    }

    /// The CPU comes online again. No interrupt moves back to it. lab: "offline: it does not come back"
    pub fn cpu_online(&self, cpu: CpuId) {
        let mut s = self.lock();
        let Some(place) = s.offline.remove(&cpu) else { return };
        s.topology.cpus.insert(cpu, place);
        s.topology.online.insert(cpu);
        s.fixed = files::fixed(&s.topology);
        s.stale_all();
    }

    /// `/proc` and `/sys` are mounted read-only from now on.
    pub fn read_only(&self, yes: bool) {
        self.lock().host.read_only = Fact::Known(yes);
    }

    /// The machine was booted again: other boot id; nothing else is simulated.
    pub fn boot_id(&self, id: &str) {
        self.lock().host.boot_id = Fact::Known(id.to_string());
    }

    /// It cannot be read, as in some containers.
    pub fn boot_id_unreadable(&self) {
        self.lock().host.boot_id = Fact::Absent;
    }

    /// Replaces the content of `/etc/machine-id`, as if this were another host.
    pub fn machine_id(&self, id: &str) {
        self.lock().host.machine_id = Fact::Known(id.to_string());
    }

    /// The present model, for tests that do not read the files.
    pub fn nic(&self, dev: &str) -> Option<Nic> {
        self.lock().nics.iter().find(|n| n.dev.name == dev).cloned()
    }
}

impl State {
    pub(crate) fn index(&self, dev: &str) -> Option<usize> {
        self.nics.iter().position(|n| n.dev.name == dev)
    }

    pub(crate) fn link_is_back(&self, i: usize) -> bool {
        self.now >= self.extra[i].link_at
    }

    pub(crate) fn stale_all(&mut self) {
        self.extra.iter_mut().for_each(|e| e.tree = None);
    }

    pub(crate) fn stale(&mut self, i: usize) {
        if self.nics[i].master.is_some() {
            return self.stale_all();
        }
        self.extra[i].tree = None;
    }

    pub(crate) fn unplug(&mut self, dev: &str) {
        if let Some(i) = self.index(dev) {
            self.entry_counters.device_is_gone(self.nics[i].dev.ifindex);
            self.nics.remove(i);
            self.extra.remove(i);
        }
    }
}

impl Host for Sim {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let mut s = self.alive();
        if let Some(old) = kernel::old_mask(&mut s, path) {
            return Ok(old);
        }
        files::read(&mut s, path)
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(data).into_owned();
        let what = format!("write {path}");
        self.faulted(&what, Some(&text), |s| kernel::write(s, path, &text)).map_err(|mut e| {
            e.what = what;
            e.data = Some(text.clone());
            e
        })
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        files::list(&mut self.alive(), path)
    }

    fn readlink(&self, path: &str) -> Result<String> {
        files::readlink(&mut self.alive(), path)
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let named = |mut e: Error| {
            e.what = request.to_string();
            e
        };
        let lacks = self.lacks_the_call(&request.to_string());
        if let Some(answer) = netlink::support(&self.alive(), request, lacks) {
            return answer.map_err(named);
        }
        if request.writes() {
            let mut reply = Vec::new();
            let act = |s: &mut State| netlink::set(s, request).map(|r| reply = r);
            self.faulted(&request.to_string(), None, act).map_err(named)?;
            Ok(reply)
        } else {
            netlink::get(&self.alive(), request).map_err(named)
        }
    }

    fn count_entries(&self, dev: &str, table: &[u32]) -> Result<Box<dyn CountEntries>> {
        entries::open(&mut self.alive(), dev, table)
    }
}
