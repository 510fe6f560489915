use super::*;
use crate::action::Settled;
use crate::adapter::tests::fewer_and_fewer;
use crate::judge::{KeepReason, RestoreReason};
use crate::load::{CpuLoadSample, LoadSample, QueueSample};
use crate::moves::{BusyFor, Moves};

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// One queue on CPU 0. Without RPS its packets take 90 % of the CPU; with it, 20 % stay and the rest is shared by the mask.
struct Host {
    adapter: Adapter,
    now: Duration,
    mask: BTreeSet<u32>,
    /// A program takes the rest of this CPU.
    program: Option<u32>,
    /// All packets are of one flow: one CPU of the mask gets them.
    one_flow: bool,
    backlog_drops: u64,
    out_of_order: u64,
    readable: bool,
    forbidden: Vec<Forbidden>,
    helpers: Option<BTreeSet<u32>>,
}

impl Host {
    fn new() -> Self {
        Self {
            adapter: Adapter::default(),
            now: s(1000),
            mask: BTreeSet::new(),
            program: None,
            one_flow: false,
            backlog_drops: 0,
            out_of_order: 0,
            readable: true,
            forbidden: Vec::new(),
            helpers: Some((2..8).collect()),
        }
    }

    fn load(&self, cpu: u32) -> f64 {
        let others = if self.one_flow { 1.0 } else { self.mask.len() as f64 };
        let gets = self.mask.contains(&cpu) && (!self.one_flow || self.mask.first() == Some(&cpu));
        match (cpu, self.mask.is_empty()) {
            (0, true) => 90.0,
            (0, false) => 20.0,
            _ if gets => 80.0 / others,
            _ => 0.0,
        }
    }

    fn second(&mut self) -> AdapterAction {
        self.now += s(1);
        let cpu = |cpu: u32| {
            let busy = self.load(cpu);
            let known = CpuLoadSample {
                busy_percent: Some(busy),
                total_percent: Some(if self.program == Some(cpu) { 100.0 } else { busy + 2.0 }),
                other_packets: Some(0),
                core: Some(cpu & !1),
                sibling_percent: Some(0.0),
                backlog_drops: Some(if self.mask.contains(&cpu) { self.backlog_drops } else { 0 }),
                ..CpuLoadSample::default()
            };
            (cpu, known)
        };
        let queue = QueueSample {
            cpu: Some(0),
            packets: Some(1000),
            drops: Some(0),
            excluded: None,
            // It cannot be moved.
            interrupt: None,
        };
        let out_of_order = Some(if self.mask.is_empty() { 0 } else { self.out_of_order });
        let sample = LoadSample {
            at: self.now,
            queues: vec![queue],
            cpus: (0..8).map(cpu).collect(),
            out_of_order,
            ..LoadSample::default()
        };
        let rps = self.readable.then_some(Mask { queue: 0, cpus: &self.mask, helpers: self.helpers.as_ref() });
        let forbidden = &self.forbidden;
        self.adapter.step(self.now, &Signals { sample: Some(&sample), forbidden, rps, ..Signals::default() })
    }

    fn step(&mut self, most: u64) -> Option<RpsMove> {
        (0..most).find_map(|_| match self.second() {
            AdapterAction::Propose(p) => p.moves.rps().cloned(),
            _ => None,
        })
    }

    fn write(&mut self, m: &RpsMove) {
        assert_eq!(self.mask, m.from);
        self.mask.clone_from(&m.to);
        self.adapter.settled(self.now, Settled::Written);
    }

    fn stepped(&mut self, most: u64) -> RpsMove {
        let m = self.step(most).expect("a step");
        self.write(&m);
        m
    }

    fn restored(&mut self) -> RestoreReason {
        let found = (0..8).map(|_| self.second()).find(|a| matches!(a, AdapterAction::Restore { .. }));
        let Some(AdapterAction::Restore { moves: Moves::Rps(m), why }) = found else { panic!("{found:?}") };
        self.write(&m);
        why
    }
}

#[test]
fn rps_is_switched_on_and_stays() {
    let mut h = Host::new();
    let m = h.stepped(20);
    assert_eq!((h.now, m.why, m.to.len()), (s(1006), BusyFor::Queue, 6));
    assert_eq!(h.adapter.changed_mask(), Some(0));
    let kept = (0..10).map(|_| h.second()).find(|a| matches!(a, AdapterAction::Rest(RestReason::Kept(_))));
    assert!(matches!(kept, Some(AdapterAction::Rest(RestReason::Kept(KeepReason::Gained { .. })))), "{kept:?}");
    assert!(h.now >= s(1011));
    assert_eq!(h.step(3600), None);
}

#[test]
fn one_flow_that_cannot_be_split_ends_it() {
    let mut h = Host::new();
    h.one_flow = true;
    h.stepped(20);
    assert!(matches!(h.restored(), RestoreReason::TooLittle { .. }));
    assert_eq!((h.mask.len(), h.adapter.changed_mask()), (0, None));
    assert_eq!(h.step(1700), None, "half an hour without another try");
    assert!(h.step(400).is_some());
}

#[test]
fn a_full_backlog_or_reordering_restores_the_mask() {
    let mut h = Host::new();
    h.backlog_drops = 50;
    h.stepped(20);
    assert_eq!(h.restored(), RestoreReason::Drops { before: 0.0, after: 300.0 });
    let mut h = Host::new();
    h.out_of_order = 500;
    h.stepped(20);
    assert!(matches!(h.restored(), RestoreReason::OutOfOrder { .. }));
}

#[test]
fn a_busy_cpu_leaves_the_mask_and_does_not_return_at_once() {
    let mut h = Host::new();
    h.stepped(20);
    let first = h.now;
    assert_eq!(h.step(8), None, "it is judged and kept");
    h.program = Some(4);
    let m = h.stepped(200);
    assert!(h.now >= first + s(60), "the mask rests for a minute");
    assert_eq!((m.cpu, m.why, m.to.contains(&4), m.to.len()), (4, BusyFor::Mask, false, 5));
    assert_eq!(h.step(8), None, "it is judged and kept");
    // The program goes to every other CPU in turn.
    let mut steps = 0;
    for second in 0..3600 {
        h.program = Some(2 + second / 30 % 6);
        let moves = match h.second() {
            AdapterAction::Propose(p) => p.moves,
            AdapterAction::Restore { moves, .. } => moves,
            _ => continue,
        };
        h.write(moves.rps().unwrap());
        steps += 1;
    }
    assert!(steps <= 60, "{steps}");
}

#[test]
fn a_manual_change_stops_it() {
    let mut h = Host::new();
    h.stepped(20);
    h.mask = [3].into();
    assert_eq!(h.second(), AdapterAction::Off { until: None, why: OffReason::ChangedOutside });
    assert_eq!(h.step(600), None);
    h.adapter.resume();
    h.mask.clear();
    assert!(h.step(60).is_some(), "what is in effect is the base");
}

#[test]
fn unknown_facts_change_nothing() {
    let mut h = Host::new();
    h.readable = false;
    assert_eq!(h.step(600), None, "the mask must not be changed");
    let mut h = Host::new();
    h.forbidden = vec![Forbidden::Unknown];
    assert_eq!(h.step(600), None);
    let mut h = Host::new();
    h.helpers = None;
    assert!((0..20).any(|_| h.second() == AdapterAction::Rest(RestReason::CpusNotRead)));
    // RPS forbids to write a table, but not to judge the mask.
    let mut h = Host::new();
    h.stepped(20);
    h.forbidden = vec![Forbidden::Rps];
    assert!((0..10).any(|_| matches!(h.second(), AdapterAction::Rest(RestReason::Kept(_)))));
}

#[test]
fn a_caller_that_observes_sees_fewer_and_fewer_steps() {
    let mut h = Host::new();
    fewer_and_fewer(|| {
        let proposes = matches!(h.second(), AdapterAction::Propose(_));
        if proposes {
            h.adapter.settled(h.now, Settled::NotWritten);
        }
        proposes
    });
}

#[test]
fn the_state_is_continued_by_the_next_process() {
    for (written, changed) in [(true, Some(0)), (false, None)] {
        let mut h = Host::new();
        let m = h.step(20).unwrap();
        let stored = serde_json::to_string(&h.adapter).unwrap();
        h.adapter = serde_json::from_str(&stored).unwrap();
        h.mask = if written { m.to.clone() } else { m.from.clone() };
        let now = h.mask.clone();
        h.adapter.handed_over(h.now, None, &|_| None, &|_| Some(now.clone()));
        assert_eq!(h.adapter.changed_mask(), changed);
        // A state of a version that changed no masks.
        let mut old: serde_json::Value = serde_json::from_str(&stored).unwrap();
        old.as_object_mut().unwrap().remove("masks").unwrap();
        old["phase"] = serde_json::json!("Watching");
        assert!(serde_json::from_value::<Adapter>(old).is_ok());
    }
}
