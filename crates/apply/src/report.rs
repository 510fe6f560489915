//! The results of `history` and `verify`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringwise_knob::{ChangeWindow, CreatedObject, ManualChange, Match, Origin, Setting};
use ringwise_model::{CpuSet, Fact, Requested, Title};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::{OnTrial, Outcome, Pending, irqbalance};

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What a transaction was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionKind {
    /// An `apply`.
    Apply,
    /// A rollback to the state before transaction `before`; 0: to the state first found since boot.
    Rollback {
        /// Number of that transaction.
        before: u64,
    },
    /// Manual changes belong to ringwise from now on; the host was not changed.
    Adopt,
    /// A kind that only a later version knows.
    #[serde(other)]
    Other,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Its settings are in effect, unless a later transaction changed them.
    Kept,
    /// It failed or was undone, and the host is as before.
    PutBack,
    /// It failed, and not all of it could be put back.
    PutBackIncomplete,
    /// Killed before its end in this boot. `ringwise recover` puts it back.
    Unfinished,
    /// It is running now.
    Running {
        /// That process; `None`: not known.
        pid: Option<u32>,
    },
    /// Kept if it is confirmed until then, in seconds since 1970; otherwise put back.
    OnTrial {
        /// On the clock as it was when the trial began.
        until_unix: u64,
    },
    /// Interrupted, and nothing is left of it that could be put back.
    Closed {
        /// Why nothing can be put back, for example because the host was rebooted.
        why: String,
    },
}

/// One line of `history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Number of the transaction.
    pub id: u64,
    /// What kind of command it was.
    pub kind: TransactionKind,
    /// What the transaction was for.
    #[serde(flatten)]
    pub title: Title,
    /// Who ran it: `root (sudo: anna)`.
    pub who: String,
    /// The command line, as one text.
    pub command: String,
    /// What `apply` was run for. `None`: another command, or recorded by a version that did not keep it.
    #[serde(skip)]
    pub requested: Option<Requested>,
    /// The command line word by word. Empty: recorded by a version that kept only the line.
    #[serde(skip)]
    pub argv: Vec<String>,
    /// The text of `--reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// Whether it belongs to the current boot of this machine. Other transactions have no effect on the host now.
    pub this_boot: bool,
    /// Why it has no effect on the host now, for example because it belongs to another boot or another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Names of its devices at that time.
    pub devices: Vec<String>,
    /// Steps of the request.
    pub steps: usize,
    /// How it ended.
    pub ending: Ending,
    /// The rollback that undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
    /// The trial, if it had or has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<OnTrial>,
    /// Transmit queues that were stuck after the transaction `before`, which the guard therefore rolled back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
    /// Lines of its journal that cannot be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged: usize,
    /// `None` while it is unfinished or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Commands that undo it, with the interrupt numbers of its start.
    pub undo: Vec<String>,
    /// Its journal.
    pub path: PathBuf,
}

impl HistoryEntry {
    /// Whether it was kept in this boot, and no rollback has undone it.
    pub fn is_in_effect(&self) -> bool {
        self.this_boot && self.ending == Ending::Kept && self.undone_by.is_none()
    }

    /// Whether the service wrote again what was lost, applied what was requested to another interface, or followed the load. It
    /// requests nothing new.
    pub fn is_of_service(&self) -> bool {
        matches!(self.title, Title::Keep { .. } | Title::SetUp { .. } | Title::Balance { .. })
    }
}

/// A setting that ringwise applied in this boot and that no later transaction or rollback replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingInEffect {
    /// The last transaction that requested it.
    pub transaction: u64,
    /// When that transaction ended, in seconds since 1970.
    #[serde(default)]
    pub unix_time: u64,
    /// It was changed outside ringwise, and that transaction adopted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The value that was applied.
    pub want: Setting,
    /// The present value.
    pub now: Fact<Setting>,
    /// How the two compare.
    pub how: Match,
    /// When it was changed outside ringwise; `None` where it matches or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangeWindow>,
}

impl SettingInEffect {
    /// The manual change, if this is one: changed since, or adopted. A setting that does not exist any more does not count.
    pub fn manual_change(&self) -> Option<ManualChange> {
        let setting = self.now.known()?.clone();
        let origin = match (self.how.holds(), &self.how) {
            (true, _) if self.adopted => Origin::Adopted,
            (false, Match::Differs) => Origin::ByHand,
            _ => return None,
        };
        let (transaction, changed) = (self.transaction, self.changed);
        Some(ManualChange { origin, setting, applied: self.want.clone(), transaction, changed })
    }
}

/// A transaction of this boot whose journal is damaged, or in a format that only a later version reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newer {
    /// Number of the transaction.
    pub transaction: u64,
    /// Which version wrote it in which format, or what is damaged.
    pub why: String,
    /// Its journal.
    pub path: PathBuf,
    /// Commands that undo it, as its first line carries them.
    pub undo: Vec<String>,
    /// The journal is damaged, so the commands may be damaged as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// Who runs the transactions of the service, in the lock file and in journals.
pub const SERVICE: &str = "ringwise daemon";

/// The process that holds the lock: a run, or the guard of a trial. It is read from the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process; `None`: not known, for example while the note is being written.
    pub pid: Option<u32>,
    /// Who ran it: `root (sudo: anna)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Its command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Number of its transaction, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u64>,
    /// End of its trial, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial_until_unix: Option<u64>,
}

/// Why a host needs attention, according to `verify`. The names in JSON are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// A transaction waits for its confirmation. Alone, nothing is wrong.
    TrialPending,
    /// A setting is not as applied, or does not exist any more.
    SettingsChanged,
    /// A setting cannot be read.
    SettingsUnknown,
    /// A transaction of this boot was interrupted.
    Unfinished,
    /// The journal of a transaction of this boot cannot be read.
    JournalUnreadable,
    /// A queue of `verify --for` has a finding.
    QueueFindings,
}

/// Whether the host is still as applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// `ringwise.verify`.
    pub schema: String,
    /// Version of the document.
    pub version: u32,
    /// In the order in which they are written. Empty: nothing is in effect.
    pub settings: Vec<SettingInEffect>,
    /// A transaction of this boot that was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// A transaction that is running; what it has done so far is not in `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Holder>,
    /// A transaction that waits for its confirmation; its settings are in `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Pending>,
    /// Transactions that cannot be read; what they have set is not in `settings`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<Newer>,
    /// Settings and objects that were created only for groups of queues and still exist, for the next plan.
    #[serde(skip)]
    pub made: Vec<CreatedObject>,
}

/// Whether this is the value of a new queue or vector: nothing set, and `mask` for interrupts.
fn as_made(now: &Setting, mask: &CpuSet) -> bool {
    match now {
        Setting::IrqCpus { cpus, .. } => cpus == mask,
        other => other.is_of_new_queue(),
    }
}

impl Verify {
    /// How many settings match. Settings that take effect with the next interrupt, and rounded ones, count as matching.
    pub fn holding(&self) -> usize {
        self.settings.iter().filter(|s| s.how.holds()).count()
    }

    /// Settings that are not as applied.
    pub fn drifted(&self) -> impl Iterator<Item = &SettingInEffect> {
        self.settings.iter().filter(|s| !s.how.holds())
    }

    /// Settings that take effect with the next interrupt.
    pub fn pending(&self) -> impl Iterator<Item = &SettingInEffect> {
        self.settings.iter().filter(|s| s.how == Match::Pending)
    }

    /// Manual changes: settings changed outside ringwise, and adopted ones, without those that a device lost when it was
    /// set up again.
    pub fn manual_changes(&self) -> Vec<ManualChange> {
        let ban = |dev: &str| {
            self.settings.iter().find(|s| matches!(&s.want, Setting::IrqbalanceBan { dev: d, .. } if d == dev))
        };
        let by_irqbalance = |s: &&SettingInEffect| {
            let address = s.want.address();
            address.is_some_and(|a| irqbalance::moved_by_it(&a, |dev| ban(dev).is_some_and(|b| !b.how.holds())))
        };
        let anew = self.reset_devices();
        let reset = |s: &&SettingInEffect| {
            let dev = s.want.address().and_then(|a| a.dev().map(str::to_string));
            dev.and_then(|d| anew.get(&d)).is_some_and(|mask| s.now.known().is_some_and(|now| as_made(now, mask)))
        };
        self.settings
            .iter()
            .filter(|s| !by_irqbalance(s) && !reset(s))
            .filter_map(SettingInEffect::manual_change)
            .collect()
    }

    /// Devices on which all interrupts that ringwise had pinned now have the same wide mask, each with that mask. The driver has
    /// created its vectors again (`ethtool -L`, a reset), so these values are no manual changes.
    fn reset_devices(&self) -> BTreeMap<String, CpuSet> {
        let mut masks: BTreeMap<String, Vec<Option<&CpuSet>>> = BTreeMap::new();
        for s in &self.settings {
            let Setting::IrqCpus { dev, .. } = &s.want else { continue };
            let moved = match (&s.now, &s.how) {
                (Fact::Known(Setting::IrqCpus { cpus, .. }), Match::Differs) if cpus.len() > 1 => Some(cpus),
                _ => None,
            };
            masks.entry(dev.clone()).or_default().push(moved);
        }
        let all_alike = |(dev, masks): (String, Vec<Option<&CpuSet>>)| match masks[..] {
            [Some(first), _, ..] if masks.iter().all(|m| *m == Some(first)) => Some((dev, first.clone())),
            _ => None,
        };
        masks.into_iter().filter_map(all_alike).collect::<BTreeMap<_, _>>()
    }

    /// Why the host needs attention, each reason once, in the order of [`Attention`]. Empty: it is as applied, or nothing is
    /// in effect.
    pub fn attention(&self) -> Vec<Attention> {
        let unknown = |s: &&SettingInEffect| matches!(s.how, Match::Unknown(_));
        let all = [
            (Attention::TrialPending, self.trial.is_some()),
            (Attention::SettingsChanged, self.drifted().any(|s| !unknown(&s))),
            (Attention::SettingsUnknown, self.drifted().any(|s| unknown(&s))),
            (Attention::Unfinished, self.unfinished.is_some()),
            (Attention::JournalUnreadable, !self.newer.is_empty()),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(why, _)| why).collect()
    }

    /// 0 as applied (or nothing in effect) · 3 drift, a trial, a transaction that was interrupted or that cannot be read.
    pub fn exit_status(&self) -> u8 {
        if self.attention().is_empty() { 0 } else { 3 }
    }
}
