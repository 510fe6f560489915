//! Collects what a plan lays down, and makes steps of what does not hold.

use std::collections::BTreeSet;

use ringwise_knob::{Address, FOR_GROUPS, IfRefused, Reason, ResetBy, Setting, Step};
use ringwise_model::{Fact, Nic};

use crate::dev::LearnedIndex;
use crate::entries::Entries;
use crate::hands::{Keep, MadeByDevice};
use crate::wanted::Wanted;
use crate::{LeftAlone, LeftOut, NotPossible, Obstacle};

/// Rule id, reason, source.
pub(crate) struct Why {
    pub rule: &'static str,
    pub reason: Reason,
    pub source: &'static str,
}

pub(crate) const SCALING: &str = "kernel documentation, networking/scaling";

/// Why, by somebody who is named at run time, and what comes nearest where it cannot be had.
pub(crate) struct By {
    pub rule: &'static str,
    pub reason: Reason,
    pub source: String,
    pub instead: Vec<Setting>,
    /// The step before it for which it is written again.
    pub after: ResetBy,
    /// The user named this very setting: without it the plan is not what was asked for.
    pub named: bool,
}

impl From<Why> for By {
    fn from(w: Why) -> Self {
        Self {
            rule: w.rule,
            reason: w.reason,
            source: w.source.to_string(),
            instead: Vec::new(),
            after: ResetBy::Channels,
            named: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct Out {
    /// What the user laid down, by every name it goes by: the goal has no say there.
    pub laid: BTreeSet<Address>,
    /// What is somebody else's and stays.
    pub keep: Keep,
    /// What earlier plans have made for groups.
    pub made: MadeByDevice,
    pub entries: Entries,
    pub left_out: Vec<LeftOut>,
    pub wanted_counts: Vec<u32>,
    pub left_alone: Vec<LeftAlone>,
    pub refused: Vec<NotPossible>,
    pub warnings: Vec<String>,
    pub advice: Vec<String>,
}

impl Out {
    /// Lays down what the goal wants, unless the user has laid down something there.
    pub(crate) fn want(&mut self, nic: Option<&Nic>, learned: &LearnedIndex, w: Wanted, why: impl FnOnce() -> Why) {
        if w.setting.address().is_some_and(|a| self.laid.contains(&a)) {
            return;
        }
        self.enter(nic, learned, w, || why().into());
    }

    /// Lays down one setting. What was refused before, cannot be read or does not exist is noted instead.
    pub(crate) fn enter(&mut self, nic: Option<&Nic>, learned: &LearnedIndex, w: Wanted, why: impl FnOnce() -> By) {
        let Some(address) = w.setting.address() else { return };
        if let Some(now) = self.keep.instead_of(&address, &w) {
            // A channel change that resets it makes apply put it right, as anything that was set before.
            if let Some(a) = now.address().filter(|a| !self.entries.contains(a)) {
                self.entries.push((a, now, None));
            }
            return;
        }
        let holds = w.matched.holds() && !w.anew;
        let obstacle = match &w.live {
            _ if holds => None,
            Fact::Unknown(u) => Some(Obstacle::not_readable(u)),
            Fact::Absent if !w.anew => Some(Obstacle::NotThere),
            _ => nic.and_then(|n| learned.why(n, &w.setting)),
        };
        if let Some(why) = obstacle {
            let what = address.to_string();
            self.refused.push(NotPossible { address: Some(address), what, why, needed: w.needed, blocked_by: None });
            return;
        }
        let step = (!holds).then(|| {
            let why = why();
            let (reason, rule) = if w.matched.holds() {
                (Reason::Reset { by: why.after, reason: Box::new(why.reason) }, why.rule)
            } else {
                (why.reason, why.rule)
            };
            let if_refused = match &w.setting {
                Setting::RssContext { table: None, .. } => IfRefused::Skip,
                _ if why.named => IfRefused::PutBack,
                // The table leaves the queues of a group out: without its rules nothing would come to them.
                Setting::FlowRule { rule: Some(_), .. } if rule == FOR_GROUPS[1] => IfRefused::Replan,
                // Everything behind it is planned for the new queues; rules build on the context and the feature.
                Setting::Channels { .. } | Setting::RssContext { .. } | Setting::Ntuple { .. } => IfRefused::Replan,
                _ => IfRefused::Skip,
            };
            Step {
                setting: w.setting.clone(),
                from: w.live,
                rule: rule.to_string(),
                reason,
                source: why.source,
                interrupts_traffic: address.interrupts_traffic(),
                if_refused,
                instead: why.instead,
            }
        });
        self.entries.push((address, w.setting, step));
    }
}
