//! The result of a transaction, setting by setting.

use ringwise_knob::{Address, ManualChange, Setting, live, offline};
use ringwise_model::{CpuSet, Fact, Snapshot};
use serde::{Deserialize, Serialize};

use crate::OnTrial;
use crate::cpu_timers::cpus_text;

/// Name and version of the JSON document.
pub(crate) const SCHEMA: &str = "ringwise.outcome";
pub(crate) const VERSION: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// Every setting had its value already. Nothing was written, and there is no journal.
    NothingToDo,
    /// Kept. Single settings may have been refused or ignored where the steps allow that.
    Applied,
    /// It failed or was stopped; the host is as before.
    PutBack,
    /// [`crate::recover`]: the host is as it was before the transaction that had been interrupted.
    Recovered,
    /// It failed or was stopped, and not all of it could be put back.
    PutBackIncomplete,
}

/// A write that failed, with everything that is known about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was to be written. `None`: the run was stopped by a signal, or the journal could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
    /// The errno; `None`: not an error of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The errno's name and the kernel's own words.
    pub words: String,
    /// What it means for this setting.
    pub meaning: String,
    /// The file or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The call exceeded its deadline. It may still take effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl Failure {
    /// A failure of no single setting, and without an errno.
    pub(crate) fn new(words: impl Into<String>, meaning: impl Into<String>) -> Self {
        let (words, meaning) = (words.into(), meaning.into());
        Self { setting: None, errno: None, words, meaning, path: None, data: None, late: false }
    }
}

/// A setting that the driver rounded or limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjusted {
    /// The value that was requested.
    pub asked: Setting,
    /// The value that the driver uses.
    pub kept: Setting,
}

/// A setting that the kernel or driver refused, where the step allows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The value that was requested.
    pub asked: Setting,
    /// What the kernel answered.
    pub failure: Failure,
}

/// A setting that was accepted without an error and is not in effect, where the step allows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// The value that was requested.
    pub asked: Setting,
    /// The value that was read back.
    pub now: Fact<Setting>,
}

/// Another value was set in place of the requested one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instead {
    /// The value that was requested first.
    pub asked: Setting,
    /// The value that took its place. It is in `applied` or was set already.
    pub kept: Setting,
    /// Why the requested value was not kept.
    pub failure: Failure,
}

/// A setting that differs from the start, and the command that restores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotPutBack {
    /// Which setting.
    pub address: Address,
    /// The value at the start.
    pub was: Setting,
    /// The present value.
    pub now: Fact<Setting>,
    /// Why it could not be restored.
    pub why: String,
    /// The command that restores it. `None`: the queue or vector that it names does not exist now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Offline CPUs that the value names. Once they are online, it can be restored.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub offline: CpuSet,
}

impl NotPutBack {
    /// `None`: the setting names no offline CPU.
    pub(crate) fn waiting(was: &Setting, now: &Snapshot) -> Option<Self> {
        let offline = offline::missing(was, now);
        let address = was.address().filter(|_| !offline.is_empty())?;
        let is = if offline.len() == 1 { "is" } else { "are" };
        let why = format!("{} {is} offline", cpus_text(&offline));
        let (is_now, command) = (live(now, &address), was.command(now));
        Some(Self { address, was: was.clone(), now: is_now, why, command, offline })
    }
}

/// The result of [`crate::run`], [`crate::recover`] and [`crate::rollback`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// `ringwise.outcome`.
    pub schema: String,
    /// Version of the document.
    pub version: u32,
    /// How the run ended.
    pub verdict: RunResult,
    /// `None`: there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u64>,
    /// Whether the host differs from what it was before.
    pub changed: bool,
    /// Settings that were written as requested, without restored side effects.
    pub applied: Vec<Setting>,
    /// Settings that had the requested value before.
    pub already_so: Vec<Setting>,
    /// Settings that were accepted and take effect with the next interrupt of the queue. Also listed in `applied` or
    /// `already_so`.
    pub pending: Vec<Address>,
    /// Values that were rounded or limited by a documented rule of the kernel or driver. Also in `applied`.
    pub adjusted_by_driver: Vec<Adjusted>,
    /// Requested settings that were refused, and that no other value replaced.
    pub refused: Vec<Refused>,
    /// Settings that were accepted but are not in effect, and that no other value replaced.
    pub ignored: Vec<Ignored>,
    /// Settings that were refused or not kept, and that another value replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Instead>,
    /// Settings that were refused or ignored without a replacement, so that the goal is not fully met. A setting that the driver
    /// does not support at all counts only if no new plan was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Address>,
    /// Manual changes that were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ManualChange>,
    /// Settings outside the steps that a step had changed and that were restored.
    pub side_effects: Vec<Setting>,
    /// Why the transaction was rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
    /// Settings that were written to restore the values at the start.
    pub put_back: Vec<Setting>,
    /// Settings that could not be put back, each with a command. Empty unless `verdict` is [`RunResult::PutBackIncomplete`].
    pub put_back_incomplete: Vec<NotPutBack>,
    /// What a rollback could not restore while CPUs are offline; `recover` does it later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<NotPutBack>,
    /// Settings that the verification found as expected.
    pub verified: usize,
    /// Settings that the verification compared.
    pub verified_of: usize,
    /// The trial, if the transaction has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<OnTrial>,
    /// Sentences for the user: old journals closed, devices renamed.
    pub notes: Vec<String>,
    /// Duration from taking the lock to the end, in milliseconds.
    pub took_ms: u64,
}

impl Outcome {
    pub(crate) fn nothing() -> Self {
        Self {
            schema: SCHEMA.into(),
            version: VERSION,
            verdict: RunResult::NothingToDo,
            transaction: None,
            changed: false,
            applied: Vec::new(),
            already_so: Vec::new(),
            pending: Vec::new(),
            adjusted_by_driver: Vec::new(),
            refused: Vec::new(),
            ignored: Vec::new(),
            instead: Vec::new(),
            unmet: Vec::new(),
            kept: Vec::new(),
            side_effects: Vec::new(),
            failed: None,
            put_back: Vec::new(),
            put_back_incomplete: Vec::new(),
            waiting: Vec::new(),
            verified: 0,
            verified_of: 0,
            trial: None,
            notes: Vec::new(),
            took_ms: 0,
        }
    }

    /// Steps whose value is as requested, because it was written or was found when the step began.
    pub fn changes(&self) -> usize {
        self.applied.len() + self.already_so.len()
    }

    /// Nothing of it is in effect, and nothing is left to restore.
    pub(crate) fn left_nothing(&self) -> bool {
        matches!(self.verdict, RunResult::PutBack | RunResult::Recovered | RunResult::NothingToDo)
    }

    /// 0: applied, recovered or nothing to do · 3: applied except for what was refused, or some settings wait for a CPU · 4:
    /// failed and restored · 5: not fully restored.
    pub fn exit_status(&self) -> u8 {
        match self.verdict {
            RunResult::NothingToDo | RunResult::Applied if !(self.unmet.is_empty() && self.waiting.is_empty()) => 3,
            RunResult::NothingToDo | RunResult::Applied | RunResult::Recovered => 0,
            RunResult::PutBack => 4,
            RunResult::PutBackIncomplete => 5,
        }
    }
}
