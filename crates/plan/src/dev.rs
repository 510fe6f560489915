//! State of one device during planning: its queues, the vectors that they share, and the interrupts that cannot be moved.

use std::collections::{BTreeMap, HashMap};

use ringwise_knob::{Address, Learned, Setting, VectorName};
use ringwise_model::natural::compare as natural;
use ringwise_model::{
    Confidence, ConfiguredBy, CpuSet, Dir, Fact, Goal, GroupWish, Intent, Knob, Movable, Nic, Role, RxQueue, Snapshot,
    TxQueue, Unread, User, Vector,
};

use crate::machine::{Machine, Near};
use crate::{NotPossible, Obstacle};

/// Learned refusals by address.
pub(crate) struct LearnedIndex<'a> {
    by: HashMap<&'a Address, Vec<&'a Learned>>,
    kernel: Option<&'a str>,
}

impl<'a> LearnedIndex<'a> {
    pub(crate) fn new(learned: &'a [Learned], kernel: &'a Fact<String>) -> Self {
        let mut by: HashMap<&Address, Vec<&Learned>> = HashMap::new();
        for l in learned {
            by.entry(&l.address).or_default().push(l);
        }
        Self { by, kernel: kernel.known().map(String::as_str) }
    }

    /// Why this setting is not tried again.
    pub(crate) fn why(&self, nic: &Nic, setting: &Setting) -> Option<Obstacle> {
        if self.by.is_empty() {
            return None;
        }
        let kernel = self.kernel?;
        let address = setting.address()?;
        // All entries are searched only for a renamed device, which is rare, and for flow rules, which may be at any
        // location.
        let rule = matches!(address, Address::FlowRule { .. });
        let direct = self.by.get(&address).into_iter().flatten();
        let others = self.by.values().flatten().filter(|l| rule || l.device.name != nic.dev.name);
        let hit = direct
            .chain(others)
            .find(|l| l.applies(&nic.dev, nic.driver.known().map(String::as_str), kernel, setting))?;
        Some(Obstacle::Learned { what: hit.what.clone() })
    }
}

/// Queues that share one CPU because they share an interrupt.
pub(crate) struct Unit {
    pub queues: Vec<usize>,
    /// `Some`: the interrupt cannot be moved; the inner value is its current CPU, if known.
    pub fixed: Option<Option<usize>>,
}

pub(crate) struct Dev<'a> {
    pub nic: &'a Nic,
    /// The bond, bridge or team that the device is a member of, followed by the master of that.
    pub master: Option<&'a Nic>,
    pub above: Option<&'a Nic>,
    /// Groups that the user configured for it.
    pub groups: Vec<&'a GroupWish>,
    /// Locations of flow rules that the user configured for it.
    pub rules: Vec<u32>,
    pub near: Near,
    pub goal: Goal,
    /// Whether its present layout is the driver's and those of the other ports are not.
    pub late: bool,
    /// By queue: whether it belongs to a latency group (`mixed`).
    pub urgent: Vec<bool>,
    /// Number of queues in use now: a driver may create more directories than it uses. Devices without receive queues are
    /// not planned; `None`: the number of transmit queues is unknown.
    pub rx_now: u32,
    pub tx_now: Option<u32>,
    /// After the plan.
    pub rx: u32,
    pub tx: Option<u32>,
    /// The channel setting that the plan writes.
    pub channels: Option<Setting>,
    /// Why the channel counts could not be read, if the goal would choose another number of queues.
    pub unread_count: Option<Unread>,
    /// Where the user configured it.
    pub configured_by: Option<Vec<ConfiguredBy>>,
    pub units: Vec<Unit>,
    /// By vector: whether it cannot be moved.
    pub stuck: Vec<bool>,
    /// CPU of each queue pair after the plan, by queue number.
    pub cpu: Vec<Option<usize>>,
    /// Whether `--far-node ok` would give its queues more CPUs.
    pub remote_left: bool,
    /// Whether `--smt all` would give its queues more CPUs.
    pub threads_left: bool,
    /// Whether its queues share CPUs although it could have one for each queue: the others have more queues of other
    /// devices.
    pub crowded: bool,
    /// A port of a router whose layout differs from that of the other ports, because together they use more CPUs.
    pub apart: bool,
    /// By queue: whether a sample of the traffic chose its CPU. Empty: none.
    pub by_load: Vec<bool>,
    /// By queue: whether it exchanged its CPU with another queue of the device, because queues of its number are there. Empty: none.
    pub exchanged: Vec<bool>,
    /// Whether its queues were placed by a sample, so that the RSS table has to stay.
    pub table_sampled: bool,
    /// The RSS table that the plan proposes, weighted by the capacity of CPUs.
    pub table: Option<Vec<u32>>,
    rx_vector: Vec<Option<usize>>,
    tx_vector: Vec<Option<usize>>,
    rx_dir: Vec<Option<usize>>,
    tx_dir: Vec<Option<usize>>,
}

fn slot(v: &mut Vec<Option<usize>>, at: u32, value: usize) {
    let at = at as usize;
    if v.len() <= at {
        v.resize(at + 1, None);
    }
    v[at].get_or_insert(value);
}

impl<'a> Dev<'a> {
    pub(crate) fn new(m: &Machine, nic: &'a Nic, goal: Goal) -> Self {
        let mut d = Self {
            nic,
            master: None,
            above: None,
            groups: Vec::new(),
            rules: Vec::new(),
            near: m.near(nic),
            goal,
            late: false,
            urgent: Vec::new(),
            rx_now: 0,
            tx_now: None,
            rx: 0,
            tx: None,
            channels: None,
            unread_count: None,
            configured_by: None,
            units: Vec::new(),
            stuck: vec![false; nic.vectors.len()],
            cpu: Vec::new(),
            remote_left: false,
            threads_left: false,
            crowded: false,
            apart: false,
            by_load: Vec::new(),
            exchanged: Vec::new(),
            table_sampled: false,
            table: None,
            rx_vector: Vec::new(),
            tx_vector: Vec::new(),
            rx_dir: Vec::new(),
            tx_dir: Vec::new(),
        };
        for (i, v) in nic.vectors.iter().enumerate() {
            if v.confidence == Confidence::None {
                continue;
            }
            v.rx().iter().for_each(|q| slot(&mut d.rx_vector, *q, i));
            v.tx().iter().for_each(|q| slot(&mut d.tx_vector, *q, i));
        }
        nic.rx_queues.iter().enumerate().for_each(|(i, q)| slot(&mut d.rx_dir, q.id, i));
        nic.tx_queues.iter().enumerate().for_each(|(i, q)| slot(&mut d.tx_dir, q.id, i));
        // `select` has refused a device whose receive queues are unknown.
        d.rx_now = nic.queues_in_use(Dir::Rx).unwrap_or(0);
        d.tx_now = nic.queues_in_use(Dir::Tx);
        (d.rx, d.tx) = (d.rx_now, d.tx_now);
        d
    }

    /// All devices of a plan, in the order of `nics`, each with the facts of the host and the intent for it.
    pub(crate) fn all(s: &'a Snapshot, m: &Machine, nics: &[&'a Nic], intent: &'a Intent) -> Vec<Self> {
        let by_index = s.by_index();
        let above = |n: &Nic| by_index.get(&n.master?).copied();
        let mut groups: BTreeMap<&str, Vec<&GroupWish>> = BTreeMap::new();
        for g in &intent.groups {
            groups.entry(&g.dev).or_default().push(g);
        }
        let mut rules: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for w in &intent.wishes {
            if let (Some(dev), Knob::FlowRule { location: Some(at), .. }) = (w.dev.as_deref(), &w.knob) {
                rules.entry(dev).or_default().push(*at);
            }
        }
        let of = |n: &&'a Nic| {
            let master = above(n);
            Self {
                master,
                above: master.and_then(above),
                groups: groups.remove(n.name()).unwrap_or_default(),
                rules: rules.remove(n.name()).unwrap_or_default(),
                ..Self::new(m, n, intent.goal_of(n.name()))
            }
        };
        nics.iter().map(of).collect()
    }

    /// The bond or team that it is a member of.
    pub(crate) fn bond(&self) -> Option<&'a Nic> {
        self.master.filter(|m| m.bond.is_some())
    }

    /// The key that devices with the same candidate CPUs share.
    pub(crate) fn zone(&self) -> (Near, Goal) {
        // A single queue cannot be divided into groups, so the device needs no other CPU policy.
        let whole = self.goal == Goal::Mixed && self.pairs() < 2;
        (self.near.clone(), if whole { Goal::Balanced } else { self.goal })
    }

    /// The zones that are possible while the number of queues is not decided yet.
    pub(crate) fn possible_zones(&self) -> impl Iterator<Item = (Near, Goal)> {
        let whole = (self.goal == Goal::Mixed).then_some(Goal::Balanced);
        std::iter::once(self.goal).chain(whole).map(|goal| (self.near.clone(), goal))
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.nic.dev.name
    }

    pub(crate) fn vector(&self, dir: Dir, queue: u32) -> Option<&'a Vector> {
        let by = if dir == Dir::Rx { &self.rx_vector } else { &self.tx_vector };
        by.get(queue as usize).copied().flatten().map(|i| &self.nic.vectors[i])
    }

    pub(crate) fn vector_index(&self, of: VectorName) -> Option<usize> {
        match of {
            VectorName::Rx(q) => self.rx_vector.get(q as usize).copied().flatten(),
            VectorName::Tx(q) => self.tx_vector.get(q as usize).copied().flatten(),
            VectorName::Control(_) => None,
        }
    }

    pub(crate) fn rx_queue(&self, queue: u32) -> Option<&'a RxQueue> {
        self.rx_dir.get(queue as usize).copied().flatten().map(|i| &self.nic.rx_queues[i])
    }

    pub(crate) fn tx_queue(&self, queue: u32) -> Option<&'a TxQueue> {
        self.tx_dir.get(queue as usize).copied().flatten().map(|i| &self.nic.tx_queues[i])
    }

    /// Whether the queue of this vector exchanged its CPU because of its number.
    pub(crate) fn is_exchanged(&self, v: &Vector) -> bool {
        let queue = v.rx().first().or(v.tx().first());
        queue.is_some_and(|q| self.exchanged.get(*q as usize) == Some(&true))
    }

    /// Number of queue pairs after the plan: the larger of the two directions that are known.
    pub(crate) fn pairs(&self) -> usize {
        self.rx.max(self.tx.unwrap_or(0)) as usize
    }

    /// Number of queue pairs now.
    pub(crate) fn pairs_now(&self) -> u32 {
        self.rx_now.max(self.tx_now.unwrap_or(0))
    }

    /// The CPU that handles the vector's interrupt now.
    pub(crate) fn now(m: &Machine, v: &Vector) -> Option<usize> {
        let single = |f: &Fact<CpuSet>| f.known().filter(|c| c.len() == 1).and_then(|c| m.at(c.first()?));
        match (&v.effective, v.asked.known()) {
            // The interrupt has a new mask and moves when it occurs next.
            (Fact::Known(e), Some(a)) if a.len() == 1 && !e.is_empty() && !e.intersects(a) => single(&v.asked),
            (Fact::Known(e), _) => e.first().and_then(|c| m.at(c)),
            _ => single(&v.asked),
        }
    }

    /// CPU of a queue pair now: that of its receive interrupt, else of its transmit interrupt.
    pub(crate) fn pair_now(&self, m: &Machine, queue: u32) -> Option<usize> {
        let v = self.vector(Dir::Rx, queue).or_else(|| self.vector(Dir::Tx, queue))?;
        Self::now(m, v)
    }

    /// Splits the queues into units, and records interrupts that cannot be moved.
    pub(crate) fn split(&mut self, m: &Machine, learned: &LearnedIndex, refused: &mut Vec<NotPossible>) {
        let n = self.pairs();
        let mut lead: Vec<usize> = (0..n).collect();
        if self.channels.is_none() {
            // Join all queues of a vector; the lowest number represents them.
            for v in self.nic.queue_vectors().filter(|v| v.confidence != Confidence::None) {
                let all = v.rx().iter().chain(v.tx()).map(|q| *q as usize).filter(|q| *q < n);
                let mut first: Option<usize> = None;
                for q in all {
                    let root = find(&mut lead, q);
                    match first {
                        None => first = Some(root),
                        Some(f) => {
                            let (lo, hi) = (f.min(root), f.max(root));
                            lead[hi] = lo;
                            first = Some(lo);
                        }
                    }
                }
            }
        }
        let mut unit_of: Vec<Option<usize>> = vec![None; n];
        for q in 0..n {
            let root = find(&mut lead, q);
            let u = *unit_of[root].get_or_insert_with(|| {
                self.units.push(Unit { queues: Vec::new(), fixed: None });
                self.units.len() - 1
            });
            self.units[u].queues.push(q);
        }
        self.cpu = vec![None; n];
        for u in 0..self.units.len() {
            let mut fixed = None;
            let mut any = self.channels.is_some();
            for q in self.units[u].queues.clone() {
                for of in [VectorName::Rx(q as u32), VectorName::Tx(q as u32)] {
                    let Some(i) = self.vector_index(of) else { continue };
                    any = true;
                    let v = &self.nic.vectors[i];
                    let Some(what) = self.immovable(v, of, learned) else { continue };
                    // A channel change assigns interrupts again; their CPUs cannot be known.
                    fixed = Some(if self.channels.is_some() { None } else { Self::now(m, v) });
                    if !self.stuck[i] {
                        self.stuck[i] = true;
                        refused.push(what);
                    }
                }
            }
            if !any {
                fixed = Some(None);
            }
            self.units[u].fixed = fixed;
        }
    }

    /// Fixes queues whose interrupt the user pinned; other queues are placed around them.
    pub(crate) fn pin(&mut self, pins: &[(usize, Option<usize>)]) {
        for (queue, at) in pins {
            if let Some(u) = self.units.iter_mut().find(|u| u.queues.contains(queue)) {
                u.fixed = Some(*at);
            }
        }
    }

    /// The users that hold a queue of this vector.
    fn held(&self, v: &Vector) -> Option<Vec<User>> {
        let holds = |u: &&User| u.queue().is_some_and(|q| v.rx().contains(&q) || v.tx().contains(&q));
        let all: Vec<User> = self.nic.queue_users().filter(holds).cloned().collect();
        (!all.is_empty()).then_some(all)
    }

    fn immovable(&self, v: &Vector, of: VectorName, learned: &LearnedIndex) -> Option<NotPossible> {
        let dev = self.name().to_string();
        let of = ringwise_knob::irq::canonical(v).unwrap_or(of);
        let held = self.held(v);
        let needed = held.is_none();
        let why = match (&v.movable, &v.asked, held) {
            (Movable::No(why), ..) => Obstacle::Immovable { why: why.clone() },
            (_, Fact::Unknown(u), _) => Obstacle::not_readable(u),
            (_, Fact::Absent, _) => Obstacle::NoAffinityFile,
            // The program chose the queue together with the CPU that serves it. The goal does not move it.
            (.., Some(by)) => Obstacle::InUse { by },
            _ => {
                let names = v.rx().iter().map(|q| VectorName::Rx(*q)).chain(v.tx().iter().map(|q| VectorName::Tx(*q)));
                names.into_iter().find_map(|of| {
                    let s = Setting::IrqCpus { dev: dev.clone(), of, cpus: CpuSet::new(), on: None };
                    learned.why(self.nic, &s)
                })?
            }
        };
        let address = Address::IrqCpus { dev, of };
        Some(NotPossible {
            what: address.to_string(),
            address: Some(address),
            why,
            needed,
            blocked_by: None,
            settings: 1,
        })
    }

    /// Number of the device's interrupts whose queue is unknown.
    pub(crate) fn unknown_vectors(&self) -> usize {
        self.nic
            .vectors
            .iter()
            .filter(|v| v.role == Role::Unknown || (v.is_queue() && v.confidence == Confidence::None))
            .count()
    }
}

/// The device of this name. `devs` are sorted by name, because they were selected in this order.
pub(crate) fn named<'d, 'a>(devs: &'d [Dev<'a>], name: &str) -> Option<&'d Dev<'a>> {
    devs.binary_search_by(|d| natural(d.name(), name)).ok().and_then(|at| devs.get(at))
}

fn find(lead: &mut [usize], mut q: usize) -> usize {
    while lead[q] != q {
        lead[q] = lead[lead[q]];
        q = lead[q];
    }
    q
}
