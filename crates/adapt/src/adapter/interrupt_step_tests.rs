use std::collections::BTreeSet;

use super::*;
use crate::action::Settled;
use crate::adapter::tests::fewer_and_fewer;
use crate::judge::{KeepReason, RestoreReason};
use crate::load::{CpuLoadSample, QueueSample};
use crate::moves::{Crowded, Moves};

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Queues without a table, each of which takes 20 % of its CPU. A program takes the rest of one CPU.
struct Host {
    adapter: Adapter,
    now: Duration,
    /// CPU of each queue.
    cpus: Vec<u32>,
    program: u32,
    /// The program goes to the CPU of queue 0.
    follows: bool,
    permitted: Option<BTreeSet<u32>>,
    forbidden: Vec<Forbidden>,
}

impl Host {
    /// Queue 0 shares CPU 0 with the program; CPUs 2 to 5 have no queue.
    fn new() -> Self {
        Self {
            adapter: Adapter::default(),
            now: s(1000),
            cpus: vec![0, 1],
            program: 0,
            follows: false,
            permitted: Some((0..6).collect()),
            forbidden: Vec::new(),
        }
    }

    fn second(&mut self) -> AdapterAction {
        self.now += s(1);
        let program = if self.follows { self.cpus[0] } else { self.program };
        let queue = |(q, cpu): (u32, &u32)| QueueSample {
            cpu: Some(*cpu),
            packets: Some(1000),
            drops: Some(0),
            excluded: None,
            interrupt: Some(30 + q),
        };
        let cpu = |cpu: u32| {
            let busy = 20.0 * self.cpus.iter().filter(|c| **c == cpu).count() as f64;
            let total = if cpu == program { 100.0 } else { busy + 2.0 };
            let known = CpuLoadSample {
                busy_percent: Some(busy),
                total_percent: Some(total),
                other_packets: Some(0),
                node: Some(0),
                ..CpuLoadSample::default()
            };
            (cpu, known)
        };
        let sample = LoadSample {
            at: self.now,
            queues: (0..).zip(&self.cpus).map(queue).collect(),
            cpus: (0..6).map(cpu).collect(),
            out_of_order: Some(0),
            ..LoadSample::default()
        };
        let permitted = self.permitted.as_ref().map_or(Permitted::Unknown, Permitted::Cpus);
        let forbidden = &self.forbidden;
        self.adapter.step(self.now, &Signals { sample: Some(&sample), forbidden, permitted, ..Signals::default() })
    }

    /// The next move within this time.
    fn moves(&mut self, most: u64) -> Option<InterruptMove> {
        (0..most).find_map(|_| match self.second() {
            AdapterAction::Propose(p) => p.moves.interrupt().cloned(),
            _ => None,
        })
    }

    fn write(&mut self, m: &InterruptMove) {
        for q in &m.queues {
            assert_eq!(self.cpus[*q as usize], m.from);
            self.cpus[*q as usize] = m.to;
        }
        self.adapter.settled(self.now, Settled::Written);
    }

    fn moved(&mut self, most: u64) -> InterruptMove {
        let m = self.moves(most).expect("a move");
        self.write(&m);
        m
    }
}

#[test]
fn a_queue_leaves_the_cpu_of_a_program_and_stays_away() {
    let mut h = Host::new();
    let m = h.moved(20);
    assert_eq!(h.now, s(1006), "six samples");
    assert_eq!((m.queues.as_slice(), m.from, m.to, m.why), (&[0][..], 0, 2, Crowded::Programs { percent: 80.0 }));
    let written = h.now;
    let kept = (0..10).map(|_| h.second()).find(|a| matches!(a, AdapterAction::Rest(RestReason::Kept(_))));
    assert!(matches!(kept, Some(AdapterAction::Rest(RestReason::Kept(KeepReason::Gained { .. })))), "{kept:?}");
    assert!(h.now >= written + s(5));
    assert_eq!(h.adapter.moved_interrupts().collect::<Vec<_>>(), [0]);
    assert_eq!(h.moves(3600), None);
}

#[test]
fn a_program_that_follows_is_not_chased() {
    let mut h = Host::new();
    h.follows = true;
    let m = h.moved(20);
    let written = h.now;
    let restored = (0..6).map(|_| h.second()).find(|a| matches!(a, AdapterAction::Restore { .. }));
    let Some(AdapterAction::Restore { moves, why: RestoreReason::TooLittle { .. } }) = restored else {
        panic!("{restored:?}")
    };
    assert_eq!((h.now, &moves), (written + s(5), &Moves::Interrupt(m).back()));
    h.write(moves.interrupt().unwrap());
    assert_eq!(h.adapter.moved_interrupts().count(), 0, "it is where it was");
    assert_eq!(h.moves(1700), None, "it keeps its CPU for half an hour");
    assert!(h.moves(400).is_some());
}

#[test]
fn to_and_fro_freezes_an_interrupt() {
    let mut h = Host::new();
    h.permitted = Some([0, 2].into());
    assert_eq!(h.moved(20).to, 2);
    let first = h.now;
    assert_eq!(h.moves(8), None, "it is judged and kept");
    h.program = 2;
    let back = h.moved(170);
    assert_eq!((back.to, h.now >= first + s(60), h.now <= first + s(180)), (0, true, true), "it rests for a minute");
    assert_eq!(h.moves(8), None);
    h.program = 0;
    assert_eq!(h.moves(1700), None, "frozen");
    assert!(h.moves(400).is_some());
}

#[test]
fn a_manual_change_stops_it() {
    let mut h = Host::new();
    h.moved(20);
    h.cpus[0] = 5;
    let off = AdapterAction::Off { until: None, why: OffReason::ChangedOutside };
    assert_eq!(h.second(), off);
    assert_eq!(h.moves(600), None);
    h.adapter.resume();
    h.program = 5;
    assert!(h.moves(60).is_some(), "where it is now is the base");
}

#[test]
fn unknown_facts_move_nothing() {
    let mut h = Host::new();
    h.permitted = None;
    assert_eq!(h.moves(600), None);
    h.permitted = Some((0..6).collect());
    assert!(h.moves(600).is_some());
    let mut h = Host::new();
    h.forbidden = vec![Forbidden::Unknown];
    assert_eq!(h.moves(600), None, "it is unknown who uses the queues");
    for forbidden in [Forbidden::WriteResetsDevice, Forbidden::ResetUnknown, Forbidden::Rules, Forbidden::Rps] {
        let mut h = Host::new();
        h.forbidden = vec![forbidden];
        h.moved(20);
        let kept = (0..10).any(|_| matches!(h.second(), AdapterAction::Rest(RestReason::Kept(_))));
        assert!(kept, "what forbids to write the table does not end the judgement");
    }
}

#[test]
fn a_caller_that_observes_sees_fewer_and_fewer_moves() {
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
    let mut h = Host::new();
    h.follows = true;
    let m = h.moves(20).unwrap();
    // It ends before it has reported whether it wrote.
    let stored = serde_json::to_string(&h.adapter).unwrap();
    h.adapter = serde_json::from_str(&stored).unwrap();
    h.cpus[0] = m.to;
    h.adapter.handed_over(h.now, None, &|_| Some(m.to), &|_| None);
    h.now += s(20);
    assert!((0..12).any(|_| matches!(h.second(), AdapterAction::Restore { .. })));
    // A state of a version that moved no interrupts.
    let mut old: serde_json::Value = serde_json::from_str(&stored).unwrap();
    old.as_object_mut().unwrap().remove("interrupts").unwrap();
    old["phase"] = serde_json::json!("Watching");
    assert!(serde_json::from_value::<Adapter>(old).is_ok());
}
