use super::*;
use crate::buckets::ReceivedByEntry;
use crate::judge::KeepReason;
use crate::load::{CpuLoadSample, QueueSample};
use crate::moves::Moves;

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// `second` passes a second and answers proposals with [`Settled::NotWritten`]. It returns whether there was one.
pub(in crate::adapter) fn fewer_and_fewer(second: impl FnMut() -> bool) {
    let proposals = std::iter::repeat_with(second).take(3600).filter(|proposes| *proposes).count();
    assert!((10..=20).contains(&proposals), "{proposals}");
}

/// An interface whose 128 entries have `work` each; queue i is served by CPU i, whose load follows from the table.
struct Host {
    adapter: Adapter,
    now: Duration,
    table: Vec<u32>,
    work: Vec<u64>,
    forbidden: Vec<Forbidden>,
    /// Packets per entry that come by another queue, by method.
    elsewhere: fn(CountMethod) -> u64,
    /// The table is written, but the loads do not change.
    no_effect: Option<Vec<u32>>,
    drops: Option<u64>,
    /// Of the whole interface.
    nic_drops: Option<u64>,
    counting: Option<CountMethod>,
}

impl Host {
    /// CPU 0 has 80 %, the others 40 %.
    fn uneven() -> Self {
        let table: Vec<u32> = (0..128).map(|i| i % 8).collect();
        Self {
            adapter: Adapter::default(),
            now: s(1000),
            work: table.iter().map(|q| if *q == 0 { 500 } else { 250 }).collect(),
            table,
            forbidden: Vec::new(),
            elsewhere: |_| 0,
            no_effect: None,
            drops: Some(0),
            nic_drops: None,
            counting: None,
        }
    }

    fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; 8];
        let table = self.no_effect.as_ref().unwrap_or(&self.table);
        table.iter().zip(&self.work).for_each(|(q, w)| loads[*q as usize] += *w as f64 / 100.0);
        loads
    }

    fn second(&mut self) -> AdapterAction {
        self.now += s(1);
        let drops = self.drops;
        let queue = |cpu| QueueSample { cpu: Some(cpu), packets: Some(1000), drops, ..QueueSample::default() };
        let cpu = |(i, l): (u32, f64)| {
            (i, CpuLoadSample { busy_percent: Some(l), node: Some(0), ..CpuLoadSample::default() })
        };
        let sample = LoadSample {
            at: self.now,
            queues: (0..8).map(queue).collect(),
            cpus: (0..).zip(self.loads()).map(cpu).collect(),
            out_of_order: Some(0),
            nic_drops: self.nic_drops,
            ..LoadSample::default()
        };
        let counts = self.counting.map(|method| EntryEvidence {
            method,
            duration: COUNT,
            entries: self
                .work
                .iter()
                .map(|w| ReceivedByEntry { packets: *w, segments: None, bytes: 0, elsewhere: (self.elsewhere)(method) })
                .collect(),
            unhashed: 0,
            unknown_queue: 0,
        });
        let signals = Signals {
            sample: Some(&sample),
            table: Some(&self.table),
            forbidden: &self.forbidden,
            counts: counts.as_ref(),
            permitted: Permitted::NotRead,
            rps: None,
        };
        let action = self.adapter.step(self.now, &signals);
        self.counting = match action {
            AdapterAction::CountEntries { method, until, .. } if self.now + s(1) >= until => Some(method),
            _ => None,
        };
        action
    }

    /// Seconds until an action matches.
    fn until(&mut self, most: u64, found: impl Fn(&AdapterAction) -> bool) -> AdapterAction {
        for _ in 0..most {
            let action = self.second();
            if found(&action) {
                return action;
            }
        }
        panic!("not within {most} s: {:?}", self.second());
    }

    fn write(&mut self, moves: &Moves) {
        for m in moves.entries() {
            assert_eq!(self.table[m.entry], m.from);
            self.table[m.entry] = m.to;
        }
        self.adapter.settled(self.now, Settled::Written);
    }

    fn proposal(&mut self, most: u64) -> Proposal {
        let AdapterAction::Propose(p) = self.until(most, |a| matches!(a, AdapterAction::Propose(_))) else {
            unreachable!()
        };
        p
    }
}

#[test]
fn from_the_first_sample_to_an_even_load() {
    let mut h = Host::uneven();
    assert_eq!(h.second(), AdapterAction::Rest(RestReason::TooFewSamples { known: 1 }));
    let p = h.proposal(10);
    assert_eq!(h.now, s(1009), "six samples, then three seconds of counting");
    assert_eq!(p.moves.entries().len(), 4);
    assert_eq!(h.second(), AdapterAction::Rest(RestReason::WritePending));
    h.write(&p.moves);
    let written = h.now;
    assert_eq!(h.second(), AdapterAction::Rest(RestReason::Judging { until: written + s(5) }));
    h.until(4, |a| matches!(a, AdapterAction::Rest(RestReason::Kept(KeepReason::Gained { .. }))));
    assert_eq!(h.now, written + s(5));
    let p = h.proposal(10);
    assert_eq!(h.now, written + s(10), "the counts are ready when the limit allows a step");
    h.write(&p.moves);
    h.until(15, |a| *a == AdapterAction::Rest(RestReason::Even));
    let loads = h.loads();
    assert!(loads.iter().all(|l| *l <= 45.0 * 1.17), "{loads:?}");
    // Half an hour later nothing more has moved.
    (0..1800).for_each(|_| assert_eq!(h.second(), AdapterAction::Rest(RestReason::Even)));
}

#[test]
fn a_step_without_effect_is_restored_and_the_next_one_waits() {
    let mut h = Host::uneven();
    h.no_effect = Some(h.table.clone());
    let base = h.table.clone();
    let p = h.proposal(20);
    h.write(&p.moves);
    let written = h.now;
    let action = h.until(6, |a| matches!(a, AdapterAction::Restore { .. }));
    let AdapterAction::Restore { moves, why: RestoreReason::TooLittle { .. } } = action else { panic!("{action:?}") };
    assert!(h.now <= written + s(5));
    assert!(h.adapter.has_moved_entries());
    h.write(&moves);
    assert_eq!(h.table, base);
    assert!(!h.adapter.has_moved_entries(), "the table is as before the first step");
    let restored = h.now;
    let next = h.proposal(60);
    assert!(h.now >= restored + s(20), "the pause is doubled");
    assert!(
        next.moves.entries().iter().all(|m| p.moves.entries().iter().all(|e| e.entry != m.entry)),
        "its entries are frozen"
    );
}

#[test]
fn more_drops_restore_a_step_that_balances() {
    let mut h = Host::uneven();
    let p = h.proposal(20);
    h.write(&p.moves);
    h.drops = Some(500);
    let action = h.until(6, |a| matches!(a, AdapterAction::Restore { .. }));
    assert!(
        matches!(action, AdapterAction::Restore { why: RestoreReason::Drops { before: 0.0, .. }, .. }),
        "{action:?}"
    );
}

#[test]
fn more_drops_of_the_interface_restore_a_step_if_the_driver_counts_none_by_queue() {
    let mut h = Host::uneven();
    (h.drops, h.nic_drops) = (None, Some(3));
    let p = h.proposal(20);
    h.write(&p.moves);
    h.nic_drops = Some(500);
    let action = h.until(6, |a| matches!(a, AdapterAction::Restore { .. }));
    assert!(
        matches!(action, AdapterAction::Restore { why: RestoreReason::Drops { before: 3.0, .. }, .. }),
        "{action:?}"
    );
    // Unknown before or afterwards is not zero.
    for (before, after) in [(None, Some(500)), (Some(500), None), (None, None)] {
        let mut h = Host::uneven();
        (h.drops, h.nic_drops) = (None, before);
        let p = h.proposal(20);
        h.write(&p.moves);
        h.nic_drops = after;
        h.until(6, |a| matches!(a, AdapterAction::Rest(RestReason::Kept(KeepReason::Gained { .. }))));
    }
}

#[test]
fn a_manual_change_stops_it() {
    let mut h = Host::uneven();
    // Before the first step it is only another table.
    (0..3).for_each(|_| _ = h.second());
    h.table.swap(0, 1);
    let p = h.proposal(20);
    h.write(&p.moves);
    h.second();
    h.table.swap(2, 3);
    let off = AdapterAction::Off { until: None, why: OffReason::ChangedOutside };
    assert_eq!(h.second(), off);
    (0..100).for_each(|_| assert_eq!(h.second(), off));
    h.adapter.resume();
    h.proposal(20);
    // The caller found the change before it wrote.
    h.adapter.settled(h.now, Settled::ChangedOutside);
    assert_eq!(h.second(), off);
}

#[test]
fn forbidden_writes_are_not_proposed() {
    let all = [
        Forbidden::WriteResetsDevice,
        Forbidden::ResetUnknown,
        Forbidden::HashOff,
        Forbidden::Rps,
        Forbidden::Rules,
        Forbidden::Rfs,
        Forbidden::Unknown,
    ];
    for forbidden in all {
        let mut h = Host::uneven();
        h.forbidden = vec![forbidden];
        let mut last = h.second();
        for _ in 0..59 {
            let nothing =
                matches!(last, AdapterAction::Rest(_) | AdapterAction::Suspect { waiting: StepWait::Forbidden(_), .. });
            assert!(nothing, "{last:?}");
            last = h.second();
        }
        let AdapterAction::Suspect { waiting, .. } = last else { panic!("the load is uneven: {last:?}") };
        assert_eq!(waiting, StepWait::Forbidden(forbidden));
    }
}

#[test]
fn counts_that_disagree_are_counted_another_way_and_then_not_used() {
    let mut h = Host::uneven();
    h.elsewhere = |method| if method == CountMethod::Filter { 100 } else { 0 };
    h.until(12, |a| matches!(a, AdapterAction::CountEntries { method: CountMethod::SampledHeaders, .. }));
    h.proposal(5);
    let mut h = Host::uneven();
    h.elsewhere = |_| 100;
    let mut unusable = 0;
    for _ in 0..600 {
        match h.second() {
            AdapterAction::Suspect { waiting: StepWait::Unusable { why: Unusable::Elsewhere { .. }, .. }, .. } => {
                unusable += 1
            }
            AdapterAction::Propose(p) => panic!("{p:?}"),
            _ => {}
        }
    }
    assert!(unusable > 500, "{unusable}");
}

#[test]
fn writes_that_fail_switch_it_off_for_longer_each_time() {
    let mut h = Host::uneven();
    for _ in 0..3 {
        h.proposal(300);
        h.adapter.settled(h.now, Settled::Refused);
    }
    let AdapterAction::Off { until: Some(until), why: OffReason::WriteRefused } = h.second() else { panic!() };
    assert_eq!(until, h.now - s(1) + s(1800));
    h.until(1800, |a| !matches!(a, AdapterAction::Off { .. }));
    assert_eq!(h.now, until);
    h.proposal(5000);
}

#[test]
fn a_caller_that_observes_sees_fewer_and_fewer_proposals() {
    let mut h = Host::uneven();
    fewer_and_fewer(|| {
        let proposes = matches!(h.second(), AdapterAction::Propose(_));
        if proposes {
            h.adapter.settled(h.now, Settled::NotWritten);
        }
        proposes
    });
}

#[test]
fn an_elephant_is_named_once() {
    let mut h = Host::uneven();
    // Entry 0 takes 75 % of CPU 0 alone.
    h.work[0] = 7500;
    (8..128).step_by(8).for_each(|i| h.work[i] = 0);
    let (mut named, mut moved) = (0, 0);
    for _ in 0..3600 {
        match h.second() {
            AdapterAction::Named { elephant } => {
                assert_eq!((elephant.entry, elephant.cpu), (0, 0));
                named += 1;
            }
            AdapterAction::Propose(_) => moved += 1,
            _ => {}
        }
    }
    assert_eq!((named, moved), (1, 0));
}

#[test]
fn the_state_survives_a_restart_between_write_and_judgement() {
    let mut h = Host::uneven();
    h.no_effect = Some(h.table.clone());
    let p = h.proposal(20);
    h.write(&p.moves);
    h.second();
    let stored = serde_json::to_string(&h.adapter).unwrap();
    h.adapter = serde_json::from_str(&stored).unwrap();
    // The new process needs 20 s to start.
    h.now += s(20);
    h.until(5, |a| matches!(a, AdapterAction::Restore { why: RestoreReason::TooLittle { .. }, .. }));
}

#[test]
fn seconds_without_samples_do_not_count_as_idle() {
    let mut h = Host::uneven();
    let p = h.proposal(20);
    h.write(&p.moves);
    for n in 1..=10 {
        h.now += s(1);
        let signals = Signals { table: Some(&h.table), ..Signals::default() };
        let action = h.adapter.step(h.now, &signals);
        match n {
            10 => {
                assert!(matches!(action, AdapterAction::Restore { why: RestoreReason::NotMeasured, .. }), "{action:?}")
            }
            _ => assert!(matches!(action, AdapterAction::Rest(RestReason::Judging { .. })), "{action:?}"),
        }
    }
}

#[test]
fn a_restoration_that_could_not_be_written_is_requested_again() {
    let mut h = Host::uneven();
    h.no_effect = Some(h.table.clone());
    let p = h.proposal(20);
    h.write(&p.moves);
    let first = h.until(6, |a| matches!(a, AdapterAction::Restore { .. }));
    assert_eq!(h.second(), AdapterAction::Rest(RestReason::WritePending));
    h.adapter.settled(h.now, Settled::NotWritten);
    assert_eq!(h.second(), first);
    let AdapterAction::Restore { moves, .. } = first else { unreachable!() };
    h.write(&moves);
    assert!(matches!(h.second(), AdapterAction::Suspect { .. }));
}

#[test]
fn the_next_process_finds_out_whether_a_step_was_written() {
    let proposed = || {
        let mut h = Host::uneven();
        let p = h.proposal(20);
        (h, p.moves)
    };
    // The process ended before the write.
    let (mut h, _) = proposed();
    h.adapter.handed_over(h.now, Some(&h.table), &|_| None, &|_| None);
    assert!(matches!(h.second(), AdapterAction::Suspect { waiting: StepWait::NotWritten { .. }, .. }));
    // After it.
    let (mut h, moves) = proposed();
    moves.entries().iter().for_each(|m| h.table[m.entry] = m.to);
    h.adapter.handed_over(h.now, Some(&h.table), &|_| None, &|_| None);
    assert!(matches!(h.second(), AdapterAction::Rest(RestReason::Judging { .. })));
    h.until(6, |a| matches!(a, AdapterAction::Rest(RestReason::Kept(_))));
    // Another program wrote meanwhile.
    let (mut h, moves) = proposed();
    let first = moves.entries()[0];
    h.table[first.entry] = 7 - first.to;
    h.adapter.handed_over(h.now, Some(&h.table), &|_| None, &|_| None);
    assert_eq!(h.second(), AdapterAction::Off { until: None, why: OffReason::ChangedOutside });
    // The table cannot be read: the step is not waited for, and does not count as moved, so the service restores the base.
    let (mut h, _) = proposed();
    h.adapter.handed_over(h.now, None, &|_| None, &|_| None);
    assert!(matches!(h.second(), AdapterAction::Suspect { waiting: StepWait::NotWritten { .. }, .. }));
    let (mut h, moves) = proposed();
    moves.entries().iter().for_each(|m| h.table[m.entry] = m.to);
    h.adapter.handed_over(h.now, None, &|_| None, &|_| None);
    assert_ne!(h.second(), AdapterAction::Rest(RestReason::WritePending));
    assert!(!h.adapter.has_moved_entries());
    // Nothing to find out.
    let mut h = Host::uneven();
    h.adapter.handed_over(h.now, Some(&h.table), &|_| None, &|_| None);
    h.proposal(20);
}
