//! Replacements for a setting that the kernel refuses or the driver does not keep.

use ringwise_knob::{Match, Setting, Step, compare, learned::LearnedWrite, live};
use ringwise_model::{Fact, Snapshot};

use crate::record::Record;
use crate::tx::{Tx, not_kept};
use crate::write_setting::WriteOutcome;
use crate::{Adjusted, Event, Failure, Instead, Phase};

/// Every setting that the steps may write: their own, and the replacements.
pub(crate) fn settings(steps: &[Step]) -> impl Iterator<Item = &Setting> {
    steps.iter().flat_map(|s| std::iter::once(&s.setting).chain(&s.instead))
}

/// Whether the setting does not exist here and a replacement may be tried.
pub(crate) fn may_be_absent(step: &Step, now: &Snapshot) -> bool {
    let there = |s: &Setting| s.address().is_some_and(|a| live(now, &a).is_known());
    step.instead.iter().any(there)
}

impl Tx<'_> {
    /// Tries the replacements in order. `true`: one of them was kept, and is the step's setting from now on.
    pub(crate) fn instead(&mut self, step: &Step, why: &Failure) -> Result<bool, Box<Failure>> {
        for setting in &step.instead {
            let Some(address) = setting.address() else { continue };
            // Another step writes it, or its present value could not be restored.
            let taken = self
                .steps
                .iter()
                .any(|s| s != step && s.setting != *setting && s.setting.address().as_ref() == Some(&address));
            if taken || !live(&self.now, &address).is_known() {
                continue;
            }
            // A smaller value of the same setting: starts from the value that was there.
            let same = step.setting.address() == Some(address);
            if same {
                self.undo_what_was_not_kept(&step.setting);
            }
            if !self.alternative(setting)? {
                continue;
            }
            if !same {
                self.undo_what_was_not_kept(&step.setting);
                self.given_up.extend(step.setting.address());
            }
            if let Some(s) = self.steps.iter_mut().find(|s| *s == step) {
                s.setting = setting.clone();
                s.instead.clear();
            }
            let taken = Instead { asked: step.setting.clone(), kept: setting.clone(), failure: why.clone() };
            self.out.instead.push(taken);
            return Ok(true);
        }
        Ok(false)
    }

    /// `false`: it is refused or not kept as well.
    fn alternative(&mut self, setting: &Setting) -> Result<bool, Box<Failure>> {
        if compare(setting, &self.now).holds() {
            // Several queues may share it.
            if !self.out.applied.contains(setting) && !self.out.already_so.contains(setting) {
                self.out.already_so.push(setting.clone());
            }
            return Ok(true);
        }
        self.others_carry(setting)?;
        self.record(Record::Step { setting: setting.clone() })?;
        let (failure, what) = match self.put(Phase::Apply, setting) {
            WriteOutcome::Kept { now, how } => {
                self.out.applied.push(setting.clone());
                if how == Match::Adjusted {
                    self.out.adjusted_by_driver.push(Adjusted { asked: setting.clone(), kept: now.clone() });
                }
                self.record(Record::Done { setting: setting.clone(), now })?;
                return Ok(true);
            }
            WriteOutcome::Refused(failure) => {
                let what = LearnedWrite::Refused { errno: failure.errno.unwrap_or(0), words: failure.words.clone() };
                (failure, Some(what))
            }
            WriteOutcome::NotKept { now } => {
                let what = now.known().map(|got| LearnedWrite::Ignored { got: got.clone() });
                self.undo_what_was_not_kept(setting);
                (not_kept(setting, &now), what)
            }
            WriteOutcome::Failed(failure) => {
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                return Err(failure.into());
            }
        };
        self.event(Event::Refused { phase: Phase::Apply, setting: setting.clone(), failure: failure.clone() });
        if let Some(what) = what {
            self.learn(setting, what);
        }
        self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure) })?;
        Ok(false)
    }

    /// Restores the previous value if a driver changed the requested one. If that fails, the next discovery finds and reports it.
    fn undo_what_was_not_kept(&mut self, setting: &Setting) {
        let Some(address) = setting.address() else { return };
        let Some(was) = self.start.get(&address).cloned() else { return };
        if matches!(live(&self.now, &address), Fact::Known(_)) && !compare(&was, &self.now).holds() {
            self.put(Phase::SideEffect, &was);
        }
    }
}
