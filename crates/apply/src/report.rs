//! What `history` and `verify` answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringwise_knob::{Hand, Made, Match, Origin, Setting, Window};
use ringwise_model::{CpuSet, Fact, Requested, Title};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::{OnTrial, Outcome, Pending, rivals};

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What a transaction was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Apply,
    /// To the state before this transaction; 0: as first found since boot.
    Rollback {
        before: u64,
    },
    /// What somebody else had set is wanted from now on; the host was not touched.
    Adopt,
    /// Newer than this program.
    #[serde(other)]
    Other,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Kept,
    PutBack,
    PutBackIncomplete,
    /// Killed half-way in this boot: `ringwise recover`.
    Unfinished,
    /// Under way now, by this process where it could be told.
    Running {
        pid: Option<u32>,
    },
    /// Kept if somebody confirms it until then, seconds since 1970; else put back.
    OnTrial {
        until_unix: u64,
    },
    /// Cut short, and nothing is left of it that could be put back.
    Closed {
        why: String,
    },
}

/// One line of `history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: u64,
    pub kind: Kind,
    #[serde(flatten)]
    pub title: Title,
    pub who: String,
    pub command: String,
    /// What `apply` was run for. `None`: another command, or recorded by a version that did not keep it.
    #[serde(skip)]
    pub requested: Option<Requested>,
    /// The command line word by word. Empty: recorded by a version that kept only the line.
    #[serde(skip)]
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// Whether it belongs to the running boot of this machine; others are only of interest.
    pub this_boot: bool,
    /// Why it says nothing about the host as it is now: another boot, another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Names of its devices at that time.
    pub devices: Vec<String>,
    pub steps: usize,
    pub ending: Ending,
    /// The rollback that undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
    /// It was, or is, to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<OnTrial>,
    /// Queues that stood still after the transaction before, for which the guard rolled it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
    /// Lines of its journal that cannot be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged: usize,
    /// None while unfinished or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Commands that undo it by hand (interrupt numbers as of its start).
    pub undo: Vec<String>,
    pub path: PathBuf,
}

/// A setting that we applied in this boot and that no later transaction or rollback took back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The last transaction that wanted it.
    pub transaction: u64,
    /// When that ended, seconds since 1970.
    #[serde(default)]
    pub unix_time: u64,
    /// It was somebody else's, and that transaction adopted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    pub want: Setting,
    pub now: Fact<Setting>,
    pub how: Match,
    /// When it was changed outside ringwise; none where it holds or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Window>,
}

impl Standing {
    /// Somebody else's value, if this is one: changed since, or adopted. What is gone cannot be kept.
    pub fn hand(&self) -> Option<Hand> {
        let setting = self.now.known()?.clone();
        let origin = match (self.how.holds(), &self.how) {
            (true, _) if self.adopted => Origin::Adopted,
            (false, Match::Differs) => Origin::ByHand,
            _ => return None,
        };
        let (transaction, changed) = (self.transaction, self.changed);
        Some(Hand { origin, setting, applied: self.want.clone(), transaction, changed })
    }
}

/// A transaction of this boot in a format that only a newer version reads, or whose journal is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newer {
    pub transaction: u64,
    /// Who wrote it, in which format.
    pub why: String,
    pub path: PathBuf,
    /// Plain commands that undo it, as it carries them.
    pub undo: Vec<String>,
    /// Its journal is damaged: the commands may be as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// A run that goes on now, or the guard of a trial: from the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u64>,
    /// It is on trial until then, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial_until_unix: Option<u64>,
}

/// Whether the host is still as applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    pub schema: String,
    pub version: u32,
    /// In the order in which they are written. Empty: nothing is in force.
    pub settings: Vec<Standing>,
    /// A transaction of this boot that was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// A transaction is under way; what it has done so far is not in `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Holder>,
    /// A transaction that waits for its confirmation; its settings are in `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Pending>,
    /// What they have set is not in `settings`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<Newer>,
    /// For the next plan: what was made for groups of queues and is still there.
    #[serde(skip)]
    pub made: Vec<Made>,
}

/// The value that a queue or vector is made with: nothing set, and `mask` for interrupts.
fn as_made(now: &Setting, mask: &CpuSet) -> bool {
    match now {
        Setting::IrqCpus { cpus, .. } => cpus == mask,
        Setting::XpsCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } => cpus.is_empty(),
        Setting::RpsFlowCnt { entries, .. } => *entries == 0,
        _ => false,
    }
}

impl Verify {
    pub fn holding(&self) -> usize {
        self.settings.iter().filter(|s| s.how.holds()).count()
    }

    /// Settings that are not as applied.
    pub fn drifted(&self) -> impl Iterator<Item = &Standing> {
        self.settings.iter().filter(|s| !s.how.holds())
    }

    pub fn pending(&self) -> impl Iterator<Item = &Standing> {
        self.settings.iter().filter(|s| s.how == Match::Pending)
    }

    /// Settings that are somebody else's: changed since, or adopted. Not what a device lost by being set up anew.
    pub fn hands(&self) -> Vec<Hand> {
        let ban = |dev: &str| {
            self.settings.iter().find(|s| matches!(&s.want, Setting::IrqbalanceBan { dev: d, .. } if d == dev))
        };
        let nobodys = |s: &&Standing| {
            let address = s.want.address();
            address.is_some_and(|a| rivals::moved_by_it(&a, |dev| ban(dev).is_some_and(|b| !b.how.holds())))
        };
        let anew = self.set_up_anew();
        let reset = |s: &&Standing| {
            let dev = s.want.address().and_then(|a| a.dev().map(str::to_string));
            dev.and_then(|d| anew.get(&d)).is_some_and(|mask| s.now.known().is_some_and(|now| as_made(now, mask)))
        };
        self.settings.iter().filter(|s| !nobodys(s) && !reset(s)).filter_map(Standing::hand).collect()
    }

    /// Devices of which every interrupt that we had placed has the same wide mask now, and that mask: the driver
    /// has made its vectors anew (`ethtool -L`, a reset). Nobody chose these values, so nobody wants to keep them.
    fn set_up_anew(&self) -> BTreeMap<String, CpuSet> {
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

    /// 0 as applied (or nothing in force) · 3 drift, a transaction that was cut short or that we cannot read.
    pub fn exit_status(&self) -> u8 {
        if self.unfinished.is_some()
            || self.trial.is_some()
            || !self.newer.is_empty()
            || self.drifted().next().is_some()
        {
            3
        } else {
            0
        }
    }
}
