//! What came of a transaction, to the last setting.

use ringwise_knob::{Address, Hand, Setting, live, offline};
use ringwise_model::{CpuSet, Fact, Snapshot};
use serde::{Deserialize, Serialize};

use crate::OnTrial;
use crate::lives::cpus_text;

/// Name and version of the JSON document.
pub(crate) const SCHEMA: &str = "ringwise.outcome";
pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything was so already; nothing was written, there is no journal.
    NothingToDo,
    /// Kept. Single settings may have been refused or ignored where the steps allow it.
    Applied,
    /// Failed or stopped; the host is as before.
    PutBack,
    /// [`crate::recover`]: the host is as it was before the transaction that had been cut short.
    Recovered,
    /// Failed or stopped, and not all of it could be put back.
    PutBackIncomplete,
}

/// A write that did not do, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was to be written. None: stopped from outside, or the journal could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
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
    /// It was given up after its time: the call may still take effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl Failure {
    /// Of no single setting, and without the kernel's word.
    pub(crate) fn new(words: impl Into<String>, meaning: impl Into<String>) -> Self {
        let (words, meaning) = (words.into(), meaning.into());
        Self { setting: None, errno: None, words, meaning, path: None, data: None, late: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjusted {
    pub asked: Setting,
    pub kept: Setting,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub asked: Setting,
    pub failure: Failure,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    pub asked: Setting,
    pub now: Fact<Setting>,
}

/// Something else was set in the place of what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instead {
    pub asked: Setting,
    /// What took its place: in `applied`, or so already.
    pub kept: Setting,
    /// Why it did not do.
    pub failure: Failure,
}

/// A setting that is not as it was at the start, and how to finish by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotPutBack {
    pub address: Address,
    pub was: Setting,
    pub now: Fact<Setting>,
    pub why: String,
    /// None where what it names does not exist now (a queue, a vector).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// CPUs that it names and that are offline: once they are back the rest can be restored.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub offline: CpuSet,
}

impl NotPutBack {
    /// None: no offline CPU is in the way of this setting.
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
    pub schema: String,
    pub version: u32,
    pub verdict: Verdict,
    /// None: there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u64>,
    /// The host is not as before.
    pub changed: bool,
    /// Written by us and as asked, side effects put right not counted.
    pub applied: Vec<Setting>,
    pub already_so: Vec<Setting>,
    /// Accepted; shows at the next interrupt of the queue. Also listed in `applied` or `already_so`.
    pub pending: Vec<Address>,
    /// Kept within the documented rule of the kernel or driver, not to the letter. Also in `applied`.
    pub adjusted_by_driver: Vec<Adjusted>,
    pub refused: Vec<Refused>,
    pub ignored: Vec<Ignored>,
    /// Refused or not kept, and something else stands in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Instead>,
    /// Refused or ignored without anything in its place, and the goal is not fully met without it. A setting that the
    /// driver does not support at all counts only where nobody planned again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Address>,
    /// Somebody else's values that were left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Hand>,
    /// Settings outside the steps that a step had moved and that were put right.
    pub side_effects: Vec<Setting>,
    /// Why it was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
    /// Settings written to get back to the start.
    pub put_back: Vec<Setting>,
    pub put_back_incomplete: Vec<NotPutBack>,
    /// What a rollback could not restore while CPUs are offline; `recover` does it later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<NotPutBack>,
    /// Settings that were discovered again and found as they should be.
    pub verified: usize,
    /// Of how many.
    pub verified_of: usize,
    /// It is to be confirmed in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<OnTrial>,
    /// Sentences that belong to the account: old journals closed, devices renamed.
    pub notes: Vec<String>,
    /// From the lock to the end, milliseconds.
    pub took_ms: u64,
}

impl Outcome {
    pub(crate) fn nothing() -> Self {
        Self {
            schema: SCHEMA.into(),
            version: VERSION,
            verdict: Verdict::NothingToDo,
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

    /// Steps that are as asked now: written, or found so when it was their turn.
    pub fn changes(&self) -> usize {
        self.applied.len() + self.already_so.len()
    }

    /// Nothing of it is in force, and nothing is left to put back.
    pub(crate) fn left_nothing(&self) -> bool {
        matches!(self.verdict, Verdict::PutBack | Verdict::Recovered | Verdict::NothingToDo)
    }

    /// 0 applied, recovered or nothing to do · 3 applied without what was refused, or something of it waits for a CPU · 4
    /// failed and put back · 5 not fully put back.
    pub fn exit_status(&self) -> u8 {
        match self.verdict {
            Verdict::NothingToDo | Verdict::Applied if !(self.unmet.is_empty() && self.waiting.is_empty()) => 3,
            Verdict::NothingToDo | Verdict::Applied | Verdict::Recovered => 0,
            Verdict::PutBack => 4,
            Verdict::PutBackIncomplete => 5,
        }
    }
}
