//! Runs the steps one after the other, and then brings all settings to their requested values.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{
    Address, Family, IfRefused, Match, Setting, SettingMap, Step, coalesce, compare, diff, features::waits,
    learned::LearnedWrite, live, overlap, rss, rules,
};
use ringwise_model::{Dir, Fact};

use crate::record::Record;
use crate::start::canonical;
use crate::store::Disk;
use crate::tx::{Done, Tx, not_kept};
use crate::write_setting::WriteOutcome;
use crate::{Adjusted, Event, Failure, Ignored, Phase, Refused};

/// How often settings are corrected and the host is read again, before the requested values count as unreachable.
const ROUNDS: u32 = 3;

impl Tx<'_> {
    /// Runs the steps, and then corrects what changed meanwhile. An error means that the settings have to be restored.
    pub(crate) fn forward(&mut self, disk: Disk) -> Done {
        let mut next = 0;
        loop {
            self.check_stop()?;
            if self.replan_due(self.steps.get(next)) {
                next = self.plan_again(disk, next)?;
                continue;
            }
            let Some(step) = self.steps.get(next).cloned() else { break };
            self.refresh(true)?;
            self.step(&step)?;
            next += 1;
        }
        self.settle()
    }

    /// `true`: another value, or a new plan, replaces the step. Errors: nothing replaces it, and the step must not be skipped.
    pub(crate) fn replaced(&mut self, step: &Step, failure: &Failure, learned: bool) -> Result<bool, Box<Failure>> {
        if self.instead(step, failure)? {
            return Ok(true);
        }
        let fails = match step.if_refused {
            IfRefused::PutBack => true,
            IfRefused::Replan => !(learned && self.can_replan()),
            IfRefused::Skip => false,
        };
        if fails {
            self.event(Event::Failed { phase: Phase::Apply, failure: failure.clone() });
            return Err(failure.clone().into());
        }
        if learned {
            self.replan_later(step, failure);
        }
        Ok(false)
    }

    fn step(&mut self, step: &Step) -> Done {
        let setting = &step.setting;
        let Some(address) = setting.address() else { return Ok(()) };
        if compare(setting, &self.now).holds() {
            self.out.already_so.push(setting.clone());
            self.event(Event::AlreadySo { phase: Phase::Apply, setting: setting.clone() });
            return Ok(());
        }
        if self.is_changed_meanwhile(step, &address) {
            self.leave(address);
            return Ok(());
        }
        self.others_carry(setting)?;
        self.record(Record::Step { setting: setting.clone() })?;
        match self.put(Phase::Apply, setting) {
            WriteOutcome::Kept { now, how } => {
                self.out.applied.push(setting.clone());
                if how == Match::Adjusted {
                    self.out.adjusted_by_driver.push(Adjusted { asked: setting.clone(), kept: now.clone() });
                }
                self.record(Record::Done { setting: setting.clone(), now })
            }
            WriteOutcome::Refused(failure) => {
                let words = failure.words.clone();
                let learned = self.learn(setting, LearnedWrite::Refused { errno: failure.errno.unwrap_or(0), words });
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                if self.replaced(step, &failure, learned)? {
                    return Ok(());
                }
                self.event(Event::Refused { phase: Phase::Apply, setting: setting.clone(), failure: failure.clone() });
                self.out.refused.push(Refused { asked: setting.clone(), failure });
                self.given_up.insert(address);
                Ok(())
            }
            WriteOutcome::NotKept { now } => {
                let learned =
                    now.known().is_some_and(|got| self.learn(setting, LearnedWrite::Ignored { got: got.clone() }));
                let failure = not_kept(setting, &now);
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                if self.replaced(step, &failure, learned)? {
                    return Ok(());
                }
                self.event(Event::Ignored { phase: Phase::Apply, setting: setting.clone(), now: now.known().cloned() });
                self.out.ignored.push(Ignored { asked: setting.clone(), now });
                self.given_up.insert(address);
                Ok(())
            }
            WriteOutcome::Failed(failure) => {
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                Err(failure.into())
            }
        }
    }

    /// Whether the setting changed since the caller read it.
    fn is_changed_meanwhile(&mut self, step: &Step, address: &Address) -> bool {
        if !self.keeps_concurrent_changes() {
            return false;
        }
        self.cx.read(&mut self.now, address).is_known()
            && step.from.known().is_some_and(|from| !compare(from, &self.now).holds())
            && !compare(&step.setting, &self.now).holds()
    }

    /// Whether what changes meanwhile is not a side effect of the steps ([`crate::Policy::keep_concurrent_changes`]).
    fn keeps_concurrent_changes(&self) -> bool {
        let layout = |s: &Step| {
            let alone = [Family::Irq, Family::Xps, Family::Rps, Family::Rss].map(Some).contains(&s.setting.family());
            alone && !s.interrupts_traffic
        };
        self.cx.policy.keep_concurrent_changes && self.steps.iter().all(layout)
    }

    /// Leaves the setting as it is now.
    fn leave(&mut self, address: Address) {
        self.note(format!("{address} changed during the transaction, and stays"));
        self.out.applied.retain(|s| s.address().as_ref() != Some(&address));
        self.given_up.insert(address);
    }

    /// The settings that the host should have now: those of the steps, and from the start those that a step may have disturbed.
    fn wanted(&self) -> SettingMap {
        let steps = self.steps.iter().filter_map(|s| s.setting.address().map(|a| (a, s.setting.clone())));
        let mut wanted: SettingMap = steps.filter(|(a, _)| !self.given_up.contains(a)).collect::<BTreeMap<_, _>>();
        let asked: Vec<Setting> = wanted.values().cloned().collect();
        // Two vectors may have become one: the steps take precedence, then the value of the receive queue.
        let mut taken: BTreeSet<Address> = wanted.keys().map(|a| canonical(&self.now, a)).collect();
        for (address, setting) in &self.start {
            let setting = &self.possible(setting);
            if !self.given_up.contains(address)
                && self.fits(address, setting)
                && let Some(setting) = overlap::beside(setting, asked.iter())
                && taken.insert(canonical(&self.now, address))
            {
                wanted.insert(address.clone(), setting);
            }
        }
        wanted
    }

    /// A value from the start, reduced to what the device still supports.
    fn possible(&self, setting: &Setting) -> Setting {
        match setting {
            Setting::Coalesce { dev, params } => {
                let params =
                    self.now.nic(dev).map_or_else(|| params.clone(), |n| coalesce::applicable_params(n, params));
                Setting::Coalesce { dev: dev.clone(), params }
            }
            other => other.clone(),
        }
    }

    /// Whether a value from the start still makes sense: its queue exists, and a table names only queues that exist.
    fn fits(&self, address: &Address, setting: &Setting) -> bool {
        if matches!(live(&self.now, address), Fact::Absent) || waits(&self.now, setting) {
            return false;
        }
        if let Setting::FlowRule { dev, rule: Some(rule), .. } = setting {
            return self.rule_fits(dev, rule);
        }
        let Some(nic) = address.dev().and_then(|d| self.now.nic(d)) else { return true };
        let queues = nic.queues_in_use(Dir::Rx);
        match setting {
            Setting::RssContext { table: Some(table), .. } => within(table, queues),
            Setting::RssTable { dev, table } => {
                let before = self.before.nic(&self.name_before(dev)).and_then(|n| n.queues_in_use(Dir::Rx));
                within(table, queues) && !follows_queues(table, before, queues)
            }
            _ => true,
        }
    }

    /// Whether a flow rule from the start still makes sense: the feature was not switched off, and its target exists.
    fn rule_fits(&self, dev: &str, rule: &ringwise_model::Rule) -> bool {
        let off = |s: &Step| matches!(&s.setting, Setting::Ntuple { dev: d, on: false } if d == dev);
        let Some(nic) = self.now.nic(dev) else { return false };
        let context = |c: u32| nic.rss.known().and_then(|r| r.contexts.known()).is_none_or(|all| all.contains_key(&c));
        !self.steps.iter().any(off)
            && rules::queue(rule).is_none_or(|q| nic.queues_in_use(Dir::Rx).is_none_or(|n| q < n))
            && rule.context.is_none_or(context)
    }

    /// Discovers the host again and corrects what a later step or a driver has changed, until all settings are as requested.
    fn settle(&mut self) -> Done {
        for round in 0..ROUNDS {
            self.refresh(true)?;
            self.look_after_writes()?;
            let mut todo = diff(&self.now, &self.wanted());
            crate::bond::order_changes(&self.now, &mut todo);
            if self.keeps_concurrent_changes() {
                todo.drain(..).filter_map(|c| c.to.address()).for_each(|a| self.leave(a));
            }
            if todo.is_empty() {
                let wanted = self.wanted();
                self.verified(&wanted);
                return Ok(());
            }
            if round + 1 == ROUNDS {
                let c = &todo[0];
                return Err(not_kept(&c.to, &c.from).into());
            }
            for change in todo {
                self.check_stop()?;
                self.refresh(true)?;
                if compare(&change.to, &self.now).holds() {
                    continue;
                }
                self.mend(&change.to)?;
            }
        }
        Ok(())
    }

    fn mend(&mut self, setting: &Setting) -> Done {
        let Some(address) = setting.address() else { return Ok(()) };
        let ours = self.steps.iter().any(|s| s.setting.address().as_ref() == Some(&address));
        let phase = if ours { Phase::Apply } else { Phase::SideEffect };
        self.others_carry(setting)?;
        self.record(Record::Step { setting: setting.clone() })?;
        match self.put(phase, setting) {
            WriteOutcome::Kept { now, .. } => {
                let list = if ours { &mut self.out.applied } else { &mut self.out.side_effects };
                if !list.contains(setting) {
                    list.push(setting.clone());
                }
                self.out.already_so.retain(|s| s != setting);
                self.record(Record::Done { setting: setting.clone(), now })
            }
            // This applies also to settings that were not requested: an earlier value must not be lost silently.
            WriteOutcome::Refused(failure) | WriteOutcome::Failed(failure) => Err(failure.into()),
            WriteOutcome::NotKept { now } => Err(not_kept(setting, &now).into()),
        }
    }

    fn verified(&mut self, wanted: &SettingMap) {
        let mut pending = Vec::new();
        for (address, setting) in wanted {
            if compare(setting, &self.now) == Match::Pending {
                pending.push(address.clone());
            }
        }
        self.out.verified = wanted.len();
        self.out.verified_of = wanted.len();
        self.out.pending = pending.clone();
        self.event(Event::Verified { phase: Phase::Apply, ok: wanted.len(), of: wanted.len(), pending });
    }
}

/// Whether a table names only queues that exist; if their number is unknown, the kernel decides.
fn within(table: &[u32], queues: Option<u32>) -> bool {
    queues.is_none_or(|n| table.iter().all(|q| *q < n))
}

/// A table that spread evenly over all queues was not set by a user: with another number of queues it spreads evenly over those.
fn follows_queues(table: &[u32], before: Option<u32>, now: Option<u32>) -> bool {
    before.zip(now).is_some_and(|(before, now)| before != now && rss::is_even(table, before))
}

#[cfg(test)]
mod tests {
    use super::{follows_queues, within};

    #[test]
    fn a_table_is_judged_by_the_kernel_where_the_number_of_queues_is_unknown() {
        let even = [0, 1, 2, 3, 0, 1, 2, 3];
        assert!(within(&even, Some(4)) && !within(&even, Some(3)) && within(&even, None));
        assert!(follows_queues(&even, Some(4), Some(8)) && !follows_queues(&even, Some(4), Some(4)));
        // If a queue count is unknown, the table does not count as following the queues: it is restored.
        assert!(!follows_queues(&even, None, Some(8)) && !follows_queues(&even, Some(4), None));
        assert!(!follows_queues(&[], None, Some(8)));
    }
}
