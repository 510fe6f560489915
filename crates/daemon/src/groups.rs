//! Groups of queues follow the traffic: every 30 s a sample of the counters, what a plan would choose by it, and, where the user requested
//! it, a change of the sizes of the groups or of the policy of the bulk queues. `ringwise_adapt::groups` decides; `group_plan` plans.

use ringwise_adapt::Settled;
use ringwise_adapt::groups::{EVERY, GroupChange, Groups, Suggested, judge};
use ringwise_adapt::judge::AFTER;
use ringwise_knob::Reason;
use ringwise_model::TrafficSample;
use ringwise_model::words::with_causes;
use ringwise_observe::{Rates, traffic};

use crate::change::Change;
use crate::follow::{Finding, GroupsChanged};
use crate::followed_groups::{Judging, counted_of, layout};
use crate::group_plan::{is_similar, suggested};
use crate::service::Service;
use crate::state::Cause;

impl Service<'_> {
    /// Reads the counters of interfaces where it is time, and changes groups.
    pub(crate) fn follow_groups(&mut self) {
        if !self.state.paused && !self.knows_all_journals() {
            // A transaction of a person may have replaced the groups.
            self.look(false);
        }
        let (now, resting) = (self.now(), self.pauses.names());
        let due: Vec<String> =
            self.groups.interfaces.iter().filter(|(_, f)| f.due <= now).map(|(dev, _)| dev.clone()).collect();
        for dev in due {
            let skip = self.state.paused || resting.contains(&dev) || self.rolled_back.contains(&dev);
            let host = self.host.clone();
            let Some(f) = self.groups.interfaces.get_mut(&dev) else { continue };
            f.due = now + EVERY;
            if skip {
                (f.before, f.judging) = (None, None);
                continue;
            }
            let rates = f.count(&host, &dev);
            self.groups_of(&dev, rates);
        }
        self.tell();
    }

    /// `rates`: since the last reading.
    pub(crate) fn groups_of(&mut self, dev: &str, rates: Option<Rates>) {
        if let Some(judging) = self.groups.interfaces.get_mut(dev).and_then(|f| f.judging.take()) {
            return self.judge_groups(dev, &judging, rates);
        }
        let Some(rates) = rates else { return };
        match self.group_step(dev, &rates) {
            Ok(()) => {}
            // The host was in a transaction, or could not be read: the next sample is soon.
            Err(why) => self.note_once(format!("{dev}: its groups stay as they are: {why}")),
        }
    }

    fn group_step(&mut self, dev: &str, rates: &Rates) -> Result<(), String> {
        let sample = traffic(rates, &[dev.to_string()]);
        let known =
            self.groups.interfaces.get(dev).and_then(|f| f.last.as_ref()).filter(|(s, _)| is_similar(s, &sample));
        let found = match known.map(|(_, suggested)| *suggested) {
            Some(found) => found,
            None => {
                let Some(found) = self.suggestion(dev, &sample)? else { return Ok(()) };
                found
            }
        };
        let now = self.now();
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return Ok(()) };
        f.last = Some((sample, found));
        let Some(state) = f.state.as_mut() else { return Ok(()) };
        let Some(change) = state.step(now, found) else {
            if state.suits() {
                self.found(dev.into(), Finding::GroupsSuit);
            }
            return Ok(());
        };
        if !self.acts_on(dev) {
            let groups = self.describe(dev, change, found);
            self.found(dev.into(), Finding::WouldRegroup { groups, why_not: None });
            return Ok(());
        }
        self.regroup(dev, change, found, rates)
    }

    /// What a plan would choose by this sample. `None`: nothing can be planned now, or the goal makes no groups here.
    fn suggestion(&mut self, dev: &str, sample: &TrafficSample) -> Result<Option<Suggested>, String> {
        if self.groups.interfaces.get(dev).is_some_and(|f| f.state.is_none()) {
            let Some(base) = self.requested_groups(dev)? else { return Ok(None) };
            self.groups.interfaces.get_mut(dev).into_iter().for_each(|f| f.state = Some(Groups::new(base)));
        }
        Ok(self.plan_for_sample(dev, sample)?.map(|plan| suggested(&plan, dev)))
    }

    fn describe(&self, dev: &str, change: GroupChange, found: Suggested) -> GroupsChanged {
        let queues = self.queue_counts.get(dev).map_or(0, |[rx, _]| *rx as u32);
        GroupsChanged::of(change, queues, found.busy_percent)
    }

    fn regroup(&mut self, dev: &str, change: GroupChange, found: Suggested, rates: &Rates) -> Result<(), String> {
        let now = self.now();
        if !self.follow.as_mut().is_none_or(|f| f.take_turn(dev, now)) {
            return Ok(());
        }
        let single = |service: &Self| service.follow.as_ref().is_some_and(|f| f.moved().contains_key(dev));
        if single(self) {
            // Both write tables and interrupts.
            self.restore_moves(dev);
            let present = self.groups.interfaces.get(dev).and_then(|f| f.state.as_ref()).map(Groups::present);
            if single(self) || present != Some(change.from) {
                return Ok(());
            }
        }
        let groups = self.describe(dev, change, found);
        let planned = match self.changes_of_groups(dev, change)? {
            Some(Ok(planned)) => planned,
            Some(Err(why_not)) => {
                self.delay_groups(dev);
                self.found(dev.into(), Finding::WouldRegroup { groups, why_not: Some(why_not) });
                return Ok(());
            }
            None => return Ok(()),
        };
        let reason = Reason::GroupsFollowTraffic {
            latency_queues: change.to.latency_queues,
            policy: change.to.policy.name().into(),
        };
        let settled = match self.guard_of_tables() {
            Ok(()) => {
                let steps = planned.changes.iter().map(|c| (c.clone(), reason.clone())).collect();
                self.write_changes(dev, Cause::Load, steps)
            }
            Err(e) => {
                self.note_once(format!("{dev}: its groups stay as they are: {}", with_causes(&e)));
                Settled::Refused
            }
        };
        if settled != Settled::Written {
            self.delay_groups(dev);
            return Ok(());
        }
        let host = self.host.clone();
        let Some(f) = self.groups.interfaces.get_mut(dev) else { return Ok(()) };
        f.state.iter_mut().for_each(|s| s.written(now, change));
        f.wrote(&planned.changes);
        f.last = None;
        // Interrupts may have other CPUs now.
        f.layout = layout(&host, dev);
        f.before = None;
        f.count(&host, dev);
        let before = counted_of(rates, dev, &planned.bulk);
        f.judging = Some(Judging { change, written: planned.changes, bulk: planned.bulk, before });
        f.due = host.since_boot() + AFTER;
        // Its table and its interrupts are a new base of single moves.
        self.new_base(dev);
        self.found(dev.into(), Finding::Regrouped { groups });
        Ok(())
    }

    /// Single moves begin with what is in effect now, as soon as they are allowed.
    fn new_base(&mut self, dev: &str) {
        self.follow.as_mut().into_iter().for_each(|f| f.new_base(dev));
    }

    fn delay_groups(&mut self, dev: &str) {
        let now = self.now();
        self.groups.interfaces.get_mut(dev).and_then(|f| f.state.as_mut()).into_iter().for_each(|s| s.delay(now));
        self.follow.as_mut().into_iter().for_each(|f| f.end_turn(dev));
    }

    /// `rates`: since the change was written.
    fn judge_groups(&mut self, dev: &str, j: &Judging, rates: Option<Rates>) {
        let now = self.now();
        let after = rates.map(|r| counted_of(&r, dev, &j.bulk)).unwrap_or_default();
        self.follow.as_mut().into_iter().for_each(|f| f.end_turn(dev));
        let Err(why) = judge(j.change, &j.before, &after) else { return };
        let back: Vec<Change> = j.written.iter().map(Change::back).collect();
        let steps = back.iter().map(|c| (c.clone(), Reason::MoveTakenBack)).collect();
        if self.write_changes(dev, Cause::LoadRestored, steps) != Settled::Written {
            return self.restore_moves(dev);
        }
        if let Some(f) = self.groups.interfaces.get_mut(dev) {
            f.state.iter_mut().for_each(|s| s.restored(now, j.change));
            f.wrote(&back);
            f.read_again();
        }
        self.new_base(dev);
        self.found(dev.into(), Finding::GroupsTakenBack { why: why.to_string() });
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
