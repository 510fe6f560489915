//! Groups of queues follow the traffic: every 30 s a sample of the counters, what a plan would choose by it, and, where the user requested
//! it, a change of the sizes of the groups or of the policy of the bulk queues. `ringwise_adapt::groups` decides; `group_plan` plans.

use std::time::Duration;

use ringwise_adapt::Settled;
use ringwise_adapt::groups::{Counted, EVERY, GroupChange, Groups, SuggestedGroups, judge};
use ringwise_adapt::judge::{AFTER, RestoreReason};
use ringwise_knob::Reason;
use ringwise_model::TrafficSample;
use ringwise_model::words::with_causes;
use ringwise_observe::{Rates, traffic};

use crate::follow::{FollowFinding, GroupsChanged};
use crate::followed_groups::{Judging, counted_of};
use crate::group_plan::{PlannedGroups, is_similar, suggested};
use crate::move_reason::{Actuator, MoveReason};
use crate::service::Service;
use crate::setting_move::SettingMove;
use crate::state::ActionCause;

/// Readings without a comparison after which a change is restored unjudged.
const MISSES: u32 = 3;
/// How soon a restoration is tried again.
const AGAIN: Duration = Duration::from_secs(1);

impl Service<'_> {
    /// Reads the counters of interfaces where it is time, and changes groups.
    pub(crate) fn follow_groups(&mut self) {
        if !self.state.paused && !self.knows_all_journals() {
            // A transaction of a person may have replaced the groups.
            self.look(false);
        }
        if !self.moved().is_empty()
            && let Err(e) = self.guard_of_tables()
        {
            self.note_once(format!("what was moved because of the load has no guard: {}", with_causes(&e)));
        }
        let (now, resting) = (self.now(), self.pauses.names());
        for dev in self.groups.due(now) {
            let skip = self.state.paused || resting.contains(&dev) || self.rolled_back.contains(&dev);
            let host = self.host.clone();
            let Some(f) = self.groups.interfaces.get_mut(&dev) else { continue };
            f.due = now + EVERY;
            if skip {
                // What is not judged yet is judged after the pause.
                f.before = None;
                continue;
            }
            let rates = f.count(&host, &dev);
            self.groups_of(&dev, rates);
        }
        self.publish_state();
    }

    /// `rates`: since the last reading.
    pub(crate) fn groups_of(&mut self, dev: &str, rates: Option<Rates>) {
        let queues = self.queue_counts.get(dev).map_or(0, |[rx, _]| *rx);
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return };
        if f.restoring.is_some() {
            return self.restore_groups(dev);
        }
        if let Some(judging) = f.judging.take() {
            return self.judge_groups(dev, judging, rates);
        }
        f.has_queues(queues);
        let Some(rates) = rates else { return };
        let now = self.now();
        let done = self.group_step(dev, &rates);
        if let Some(f) = self.groups.interfaces.get_mut(dev) {
            match done {
                Ok(true) => f.planned(),
                _ => f.wait_longer(now),
            }
        }
        self.note_groups(dev, done.err());
    }

    /// Logs once why the groups of an interface stay as they are.
    fn note_groups(&mut self, dev: &str, why: Option<String>) {
        let Some(f) = self.groups.interfaces.get_mut(dev).filter(|f| f.noted != why) else { return };
        f.noted.clone_from(&why);
        if let Some(why) = why {
            self.log(&crate::event::Event::Note(format!("{dev}: its groups stay as they are: {why}")));
        }
    }

    /// `false`: nothing can be planned now, or the goal makes no groups here.
    fn group_step(&mut self, dev: &str, rates: &Rates) -> Result<bool, String> {
        let sample = traffic(rates, &[dev.to_string()]);
        let known = self.groups.interfaces.get(dev).and_then(|f| f.last.as_ref());
        let found = match known.filter(|(planned, _)| is_similar(planned, &sample)) {
            Some((_, suggested)) => *suggested,
            None => {
                let Some(found) = self.suggestion(dev, &sample)? else { return Ok(false) };
                if let Some(f) = self.groups.interfaces.get_mut(dev) {
                    f.last = Some((sample, found));
                }
                found
            }
        };
        let now = self.now();
        let Some(state) = self.groups.interfaces.get_mut(dev).and_then(|f| f.state.as_mut()) else { return Ok(false) };
        let Some(change) = state.step(now, found) else {
            if state.suits() {
                self.found(dev.into(), FollowFinding::GroupsSuit);
            }
            return Ok(true);
        };
        if !self.acts_on(dev) {
            let groups = self.describe(dev, change, found);
            self.found(dev.into(), FollowFinding::WouldRegroup { groups, why_not: None });
            return Ok(true);
        }
        if !self.follow.as_mut().is_none_or(|f| f.take_turn(&turn_of_groups(dev), now)) {
            return Ok(true);
        }
        let done = self.regroup(dev, change, found, rates);
        if self.groups.interfaces.get(dev).is_none_or(|f| f.judging.is_none()) {
            self.end_turn_of_groups(dev);
        }
        done
    }

    /// What a plan would choose by this sample. `None`: nothing can be planned now, or the goal makes no groups here.
    fn suggestion(&mut self, dev: &str, sample: &TrafficSample) -> Result<Option<SuggestedGroups>, String> {
        if self.groups.interfaces.get(dev).is_some_and(|f| f.stale || f.state.is_none()) {
            if self.groups.moved().any(|(moved, _)| moved == dev) {
                // Another request, or another number of queues: a look restores what does not belong to it.
                self.restore_moves(dev, MoveReason::Replaced);
                if self.groups.moved().any(|(moved, _)| moved == dev) {
                    // Another run holds the lock.
                    return Ok(None);
                }
            }
            let Some(base) = self.requested_groups(dev)? else { return Ok(None) };
            if let Some(f) = self.groups.interfaces.get_mut(dev) {
                match &mut f.state {
                    Some(state) => state.begin_again(base),
                    state => *state = Some(Groups::new(base)),
                }
                f.stale = false;
            }
        }
        Ok(self.plan_for_sample(dev, sample)?.map(|plan| suggested(&plan, dev)))
    }

    fn describe(&self, dev: &str, change: GroupChange, found: SuggestedGroups) -> GroupsChanged {
        let queues = self.queue_counts.get(dev).map_or(0, |[rx, _]| *rx as u32);
        GroupsChanged::of(change, queues, found.busy_percent)
    }

    /// `false`: nothing can be planned now.
    fn regroup(
        &mut self,
        dev: &str,
        change: GroupChange,
        found: SuggestedGroups,
        rates: &Rates,
    ) -> Result<bool, String> {
        let single = |service: &Self| service.follow.as_ref().is_some_and(|f| f.moved().contains_key(dev));
        if single(self) {
            // Both write tables and interrupts.
            let before = self.groups.changed_choices().get(dev).copied();
            self.restore_moves(dev, MoveReason::Replaced);
            if single(self) || before.is_some() {
                return Ok(true);
            }
        }
        let now = self.now();
        let groups = self.describe(dev, change, found);
        let PlannedGroups { changes, bulk } = match self.changes_of_groups(dev, change)? {
            Some(Ok(planned)) => planned,
            Some(Err(why_not)) => {
                self.delay_groups(dev);
                self.found(dev.into(), FollowFinding::WouldRegroup { groups, why_not: Some(why_not) });
                return Ok(true);
            }
            None => return Ok(false),
        };
        let reason = Reason::GroupsFollowTraffic {
            latency_queues: change.to.latency_queues,
            policy: change.to.policy.name().into(),
        };
        let settled = match self.guard_of_tables() {
            Ok(()) => {
                let steps = changes.iter().map(|c| (c.clone(), reason.clone())).collect();
                self.write_changes(dev, ActionCause::Load, steps)
            }
            Err(e) => {
                self.delay_groups(dev);
                return Err(with_causes(&e));
            }
        };
        if settled != Settled::Written {
            self.delay_groups(dev);
            return Ok(true);
        }
        let host = self.host.clone();
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return Ok(true) };
        f.state.iter_mut().for_each(|s| s.written(now, change));
        f.wrote(&changes);
        f.last = None;
        // Interrupts may have other CPUs now.
        f.count_from_now(&host, dev);
        let before = counted_of(rates, dev, &bulk);
        f.judging = Some(Judging { change, written: changes, bulk, before, misses: 0 });
        f.due = host.since_boot() + AFTER;
        // Its table and its interrupts are a new base of single moves.
        self.new_base(dev);
        self.state.count_move(dev, Actuator::Groups, MoveReason::of_groups(change));
        self.found(dev.into(), FollowFinding::Regrouped { groups });
        Ok(true)
    }

    /// Single moves begin with what is in effect now, as soon as they are allowed.
    fn new_base(&mut self, dev: &str) {
        self.follow.as_mut().into_iter().for_each(|f| f.new_base(dev));
    }

    fn delay_groups(&mut self, dev: &str) {
        let now = self.now();
        self.groups.interfaces.get_mut(dev).and_then(|f| f.state.as_mut()).into_iter().for_each(|s| s.delay(now));
    }

    fn end_turn_of_groups(&mut self, dev: &str) {
        self.follow.as_mut().into_iter().for_each(|f| f.end_turn(&turn_of_groups(dev)));
    }

    /// `rates`: since the change was written, or since the last reading. `None`: unknown.
    fn judge_groups(&mut self, dev: &str, j: Judging, rates: Option<Rates>) {
        let now = self.now();
        // An interface that did not answer in time is missing in the rates.
        let after: Option<Counted> = rates.filter(|r| r.links.contains_key(dev)).map(|r| counted_of(&r, dev, &j.bulk));
        let verdict = after.map_or(Err(RestoreReason::NotMeasured), |after| judge(j.change, &j.before, &after));
        if verdict == Err(RestoreReason::NotMeasured) && j.misses + 1 < MISSES {
            if let Some(f) = self.groups.interfaces.get_mut(dev) {
                f.judging = Some(Judging { misses: j.misses + 1, ..j });
                f.due = now + AFTER;
            }
            return;
        }
        self.end_turn_of_groups(dev);
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return };
        match verdict {
            Ok(()) => f.state.iter_mut().for_each(Groups::kept),
            Err(why) => {
                f.restoring = Some((j, why));
                self.restore_groups(dev);
            }
        }
    }

    /// Restores the groups from before the last change. While another run holds the lock, it is tried again each second.
    fn restore_groups(&mut self, dev: &str) {
        let now = self.now();
        let Some((j, why)) = self.groups.interfaces.get_mut(dev).and_then(|f| f.restoring.take()) else { return };
        let back: Vec<SettingMove> = j.written.iter().map(SettingMove::back).collect();
        let steps = back.iter().map(|c| (c.clone(), Reason::MoveTakenBack)).collect();
        let settled = self.write_changes(dev, ActionCause::LoadRestored, steps);
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return };
        match settled {
            Settled::NotWritten => {
                f.restoring = Some((j, why));
                f.due = now + AGAIN;
                return;
            }
            Settled::Written => {
                f.state.iter_mut().for_each(|s| s.restored(now, j.change));
                f.wrote(&back);
                f.last = None;
                f.read_again();
                self.state.count_move(dev, Actuator::Groups, why.into());
            }
            // Something else has changed one of these settings, or one cannot be written: the base of the others is restored.
            Settled::Refused | Settled::ChangedOutside => {
                f.state.iter_mut().for_each(|s| s.restored(now, j.change));
                self.restore_moves(dev, why.into());
            }
        }
        self.new_base(dev);
        self.found(dev.into(), FollowFinding::GroupsTakenBack { why: why.to_string() });
    }
}

/// A name of its own: the adapter of the same interface must not end the turn.
fn turn_of_groups(dev: &str) -> String {
    format!("groups of {dev}")
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
