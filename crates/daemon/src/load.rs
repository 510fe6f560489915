//! The load, second by second: findings are published, and what an earlier service or an event left moved is continued or restored.
//! `load_write` writes.
//!
//! Each move is a transaction with its own guard. Besides it, the guard of tables restores the base if this process dies.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_adapt::Adapter;
use ringwise_apply::{BalancedSetting, Error, Refusal, Request, restore_balanced};
use ringwise_knob::Address;
use ringwise_model::words::with_causes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::act::{WHO, action};
use crate::compared::Compared;
use crate::event::Event;
use crate::evidence::InterfaceEvents;
use crate::follow::{Follow, FollowFinding, LoadFinding, News, Rules};
use crate::followed_groups::LeftGroups;
use crate::move_reason::{Actuator, MoveReason};
use crate::service::Service;
use crate::state::{ActionCause, ActionEnding};

/// What a service leaves to the next one.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Left {
    adapters: BTreeMap<String, Adapter>,
    groups: BTreeMap<String, LeftGroups>,
}

impl Left {
    /// `None`: it cannot be read. A version without groups left the adapters alone.
    fn read(state: Value) -> Option<Self> {
        match state.get("adapters").is_some() && state.get("groups").is_some() {
            true => serde_json::from_value(state).ok(),
            false => Some(Self { adapters: serde_json::from_value(state).ok()?, ..Self::default() }),
        }
    }
}

impl Service<'_> {
    /// Reads the load of the last second, reports what is new about it, and writes tables and interrupts.
    pub(crate) fn follow_load(&mut self) {
        self.check_links();
        if !self.moved().is_empty() {
            if !self.state.paused && !self.knows_all_journals() {
                // A transaction of a person since the last move is no change outside ringwise.
                self.look(false);
            }
            // A guard that was killed is replaced, because nothing would restore the table.
            if let Err(e) = self.guard_of_tables() {
                self.note_once(format!("what was moved because of the load has no guard: {}", with_causes(&e)));
            }
        }
        let Some(mut follow) = self.follow.take() else { return };
        let news = match self.state.paused {
            true => follow.skip(self.now()),
            false => {
                let (left_alone, acts) = (&self.pauses.names(), &|dev: &str| self.acts_on(dev));
                let no_table = &|dev: &str| self.link_losses.forbids_table(dev);
                let (permitted, machine) = (&self.permitted, &self.machine);
                follow.second(self.host, Rules { left_alone, acts, no_table, permitted, machine })
            }
        };
        self.follow = Some(follow);
        self.act_on_news(news);
    }

    /// What was moved because of the load, by interface.
    pub(crate) fn moved(&self) -> BTreeMap<String, BTreeSet<Address>> {
        let mut all = self.follow.as_ref().map(Follow::moved).unwrap_or_default();
        for (dev, addresses) in self.groups.moved() {
            all.entry(dev.clone()).or_default().extend(addresses.iter().cloned());
        }
        all
    }

    /// What is in effect on this interface is the base of further moves.
    fn begin_again(&mut self, dev: &str) {
        self.follow.as_mut().into_iter().for_each(|f| f.begin_again(dev));
        self.groups.begin_again(dev);
    }

    /// Reports findings, and writes tables and interrupts.
    pub(crate) fn act_on_news(&mut self, news: News) {
        for text in news.notes {
            self.log(&Event::Note(text));
        }
        let mut changed = false;
        for (interface, finding) in news.findings {
            changed |= self.found(interface, finding);
        }
        for write in news.writes {
            self.write_move(&write);
            changed = true;
        }
        if changed {
            self.publish_state();
        }
    }

    /// Whether the table and the interrupts of this interface are written when the load is uneven.
    pub(crate) fn acts_on(&self, dev: &str) -> bool {
        self.may_act_on(dev) && !self.rolled_back.contains(dev)
    }

    /// Whether the user requested it.
    fn may_act_on(&self, dev: &str) -> bool {
        let mut patterns = self.setup.act_on_load.iter().chain(&self.act_on_load);
        self.setup.follow && patterns.any(|p| ringwise_intent::names(p, dev))
    }

    /// Interfaces whose last transaction is a rollback are only observed. This is logged where the user requested more.
    pub(crate) fn notice_rollbacks(&mut self, undone: &BTreeSet<String>) {
        let new: Vec<String> = undone.difference(&self.rolled_back).filter(|d| self.may_act_on(d)).cloned().collect();
        self.rolled_back.clone_from(undone);
        for interface in new {
            self.log(&Event::OnlyObserved { interface });
        }
    }

    /// Publishes a finding, if it is news.
    pub(crate) fn found(&mut self, interface: String, finding: FollowFinding) -> bool {
        // Groups and loads change at another pace: each has a last finding of its own.
        let same = |l: &LoadFinding| l.finding.is_about_groups() == finding.is_about_groups();
        let at = self.state.loads.iter().position(|l| l.interface == interface && same(l));
        if !finding.is_news_after(at.and_then(|i| self.state.loads.get(i)).map(|l| &l.finding)) {
            return false;
        }
        at.map(|i| self.state.loads.remove(i));
        match &finding {
            FollowFinding::WouldMove { .. } => self.state.totals.better_tables += 1,
            FollowFinding::Moved { moves, .. } => self.state.totals.moved_entries += moves.len() as u64,
            FollowFinding::TakenBack { .. } => self.state.totals.taken_back += 1,
            FollowFinding::WouldMoveInterrupt { .. } => self.state.totals.better_interrupts += 1,
            FollowFinding::MovedInterrupt { .. } => self.state.totals.moved_interrupts += 1,
            FollowFinding::InterruptTakenBack { .. } => self.state.totals.interrupts_taken_back += 1,
            FollowFinding::WouldChangeMask { .. } => self.state.totals.better_masks += 1,
            FollowFinding::ChangedMask { .. } => self.state.totals.changed_masks += 1,
            FollowFinding::MaskTakenBack { .. } => self.state.totals.masks_taken_back += 1,
            FollowFinding::WouldRegroup { .. } => self.state.totals.better_groups += 1,
            FollowFinding::Regrouped { .. } => self.state.totals.changed_groups += 1,
            FollowFinding::GroupsTakenBack { .. } => self.state.totals.groups_taken_back += 1,
            _ => {}
        }
        let load = LoadFinding { interface, unix_time: self.host.unix_time(), finding };
        self.log(&Event::Load(load.clone()));
        if !matches!(load.finding, FollowFinding::Even | FollowFinding::GroupsSuit) {
            self.state.loads.push(load);
        }
        true
    }

    /// Starts the guard of tables, unless it is there.
    pub(crate) fn guard_of_tables(&mut self) -> Result<(), Error> {
        if self.table_guard.as_mut().is_some_and(|g| g.is_there()) {
            return Ok(());
        }
        self.table_guard = None;
        let Some(guardian) = &self.setup.guard else { return Ok(()) };
        self.table_guard = Some(ringwise_apply::arm_for_tables(&self.setup.store, guardian.as_ref())?);
        Ok(())
    }

    /// At the start: what an earlier service has moved is taken over, or restored.
    pub(crate) fn take_over_tables(&mut self) {
        let tables = match self.compare() {
            Ok(seen) => seen.map(|s| s.balanced).unwrap_or_default(),
            // The guard of the earlier service restores them.
            Err(why) => return self.report_problem(&why),
        };
        if tables.is_empty() {
            // A transaction of a user may have replaced everything. While the file is there, the guard of the earlier service waits, and
            // would then restore what this service has moved meanwhile.
            let _ = ringwise_apply::take_tables(&self.setup.store, self.host.as_ref()); // nothing in it is in effect
            return;
        }
        // The guard of the earlier service leaves as soon as the tables are taken.
        let guarded = tables.iter().all(|t| self.acts_on(&t.dev))
            && match self.guard_of_tables() {
                Ok(()) => true,
                Err(e) => {
                    self.note_once(format!("what was moved because of the load is restored: {}", with_causes(&e)));
                    false
                }
            };
        let left = ringwise_apply::take_tables(&self.setup.store, self.host.as_ref());
        match (left.and_then(Left::read).filter(|_| guarded), &mut self.follow) {
            (Some(left), Some(follow)) => {
                follow.take_over(self.host, left.adapters);
                self.groups.take_over(left.groups);
                self.balanced = tables;
            }
            _ => devices(&tables).iter().for_each(|dev| self.restore_moves(dev, MoveReason::NotContinued)),
        }
    }

    /// Restores the base of what was moved on interfaces that were set up again, whose CPUs have changed, which an earlier service has
    /// left, or on which the service no longer acts. Returns whether anything may have been written.
    pub(crate) fn end_moves(&mut self, seen: &Compared) -> bool {
        let mut written = false;
        self.balanced.clone_from(&seen.balanced);
        let moved = self.moved();
        let resting = self.pauses.names();
        let all = devices(&seen.balanced);
        self.link_losses.given_up.retain(|dev, _| all.contains(dev));
        self.link_losses.went_down.retain(|dev| all.contains(dev));
        let given_up =
            |dev: &String| self.link_losses.given_up.get(dev).is_some_and(|acted| !acted || self.acts_on(dev));
        let left = |dev: &String| !resting.contains(dev) && !given_up(dev);
        for dev in all.into_iter().filter(left).collect::<Vec<_>>() {
            let own: Vec<&BalancedSetting> = seen.balanced.iter().filter(|t| t.dev == dev).collect();
            // XPS follows interrupts.
            let followed = |all: &BTreeSet<Address>| all.iter().any(|a| matches!(a, Address::IrqCpus { .. }));
            let by_adapter = |t: &&BalancedSetting| match t.address {
                Address::XpsCpus { .. } if moved.get(&dev).is_some_and(followed) => true,
                _ => moved.get(&dev).is_some_and(|all| all.contains(&t.address)),
            };
            // Another run held the lock when it was to be restored.
            let left = !own.iter().all(by_adapter);
            let heard = self.hear_interruption(seen, &dev).may_reset();
            let in_effect = own.iter().any(|t| t.is_in_effect(&seen.now));
            let why = match () {
                () if !in_effect => None,
                () if !self.acts_on(&dev) => Some(MoveReason::NotContinued),
                () if (left || heard) && self.link_losses.went_down.contains(&dev) => Some(MoveReason::LinkWentDown),
                () if heard => Some(MoveReason::InterfaceChanged),
                () if self.evidence.cpus => Some(MoveReason::CpusChanged),
                () if left => Some(MoveReason::NotContinued),
                () => None,
            };
            if let Some(why) = why {
                self.restore_moves(&dev, why);
                written = true;
            }
        }
        // A person's transaction, or a reset, has replaced what was moved: it is the new base.
        let replaced = |all: &BTreeSet<Address>| all.iter().any(|a| !seen.balanced.iter().any(|t| t.address == *a));
        for dev in moved.iter().filter(|(_, all)| replaced(all)).map(|(dev, _)| dev) {
            self.hear_interruption(seen, dev);
            self.begin_again(dev);
        }
        written
    }

    /// What was heard about this interface. What is in effect after a change of its link is a new base of the adapter.
    fn hear_interruption(&mut self, seen: &Compared, dev: &str) -> InterfaceEvents {
        let heard = seen.now.nic(dev).map(|n| self.evidence.heard(&n.dev)).unwrap_or_default();
        if heard.link || heard.bound {
            self.follow.as_mut().into_iter().for_each(|f| f.begin_again(dev));
        }
        heard
    }

    pub(crate) fn restore_moves(&mut self, dev: &str, why: MoveReason) {
        let groups = self.groups.moved().any(|(moved, _)| moved == dev);
        let result = restore_balanced(self.host, &self.setup.store, Some(dev), &by_service(), &self.policy());
        let result = match result {
            Ok(None) => return,
            // The next look tries again.
            Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => return self.retry = true,
            Ok(Some(o)) => Ok(o),
            Err(e) => Err(e),
        };
        let action = action(self.host.unix_time(), ActionCause::LoadRestored, vec![dev.into()], &result);
        if action.ending == ActionEnding::Kept {
            let applied = result.as_ref().map(|o| o.applied.as_slice()).unwrap_or_default();
            for actuator in Actuator::of_settings(applied, groups) {
                self.state.count_move(dev, actuator, why);
            }
            self.begin_again(dev);
            self.balanced.retain(|t| t.dev != dev);
        } else {
            self.failed(&action);
            if result.is_ok() && self.link_losses.contains(dev) {
                let acted = self.acts_on(dev);
                self.link_losses.given_up.insert(dev.into(), acted);
            }
        }
        self.log(&Event::Acted(action.clone()));
        self.remember(action);
    }

    /// At the end: the next service may continue; otherwise the guard restores what was moved.
    pub(crate) fn leave_tables(&mut self) {
        self.check_links();
        let seen = self.compare();
        if let Ok(Some(seen)) = &seen {
            self.note_link_losses(&seen.now);
        }
        let tables = seen.map(|seen| seen.map(|s| s.balanced).unwrap_or_default());
        let state = self.left();
        let left = match (&tables, state) {
            (Ok(tables), Some(state)) if !tables.is_empty() => {
                let done = ringwise_apply::hand_over(&self.setup.store, self.host.as_ref(), state);
                let restored = "what was moved because of the load is restored";
                done.map_err(|e| self.note_once(format!("{restored}: {}", with_causes(&e)))).is_ok()
            }
            _ => false,
        };
        let known = tables.as_ref().is_ok_and(Vec::is_empty);
        let released = match self.table_guard.take() {
            Some(mut guard) if left || known => guard.done(left).is_ok(),
            // Without a word the guard takes this process for dead, and restores the tables.
            Some(_) => true,
            None => false,
        };
        if !released {
            // No guard is left. The next service must not take over what is restored now.
            let _ = ringwise_apply::take_tables(&self.setup.store, self.host.as_ref()); // it exists only after a hand-over
            let all = devices(&tables.unwrap_or_default());
            all.iter().for_each(|dev| self.restore_moves(dev, MoveReason::NotContinued));
        }
    }

    /// For the next service.
    pub(crate) fn left(&self) -> Option<Value> {
        let adapters = self.follow.as_ref()?.states().into_iter().map(|(dev, a)| (dev.clone(), a.clone())).collect();
        serde_json::to_value(Left { adapters, groups: self.groups.left() }).ok()
    }

    pub(crate) fn note_once(&mut self, text: String) {
        if self.noted_moves.as_ref() != Some(&text) {
            self.log(&Event::Note(text.clone()));
            self.noted_moves = Some(text);
        }
    }
}

/// Interfaces of these settings.
fn devices(list: &[BalancedSetting]) -> BTreeSet<String> {
    list.iter().map(|t| t.dev.clone()).collect()
}

pub(crate) fn by_service() -> Request {
    Request { who: WHO.into(), argv: vec!["ringwise".into(), "daemon".into()], ..Request::default() }
}
