//! Collects the settings of a plan, and creates steps for those that are not in effect.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, FOR_GROUPS, IfRefused, Reason, ResetBy, Setting, Step, features, restarts_for_ntuple};
use ringwise_model::{Fact, Nic, User};

use crate::control;
use crate::dev::LearnedIndex;
use crate::entries::Entries;
use crate::manual_changes::{KeptSettings, MadeByDevice};
use crate::messages::Messages;
use crate::proposals::{CommandScope, Proposals};
use crate::rules::source_of;
use crate::sampled_groups::GroupSizes;
use crate::wanted::RequestedSetting;
use crate::{NotPossible, Obstacle, ProposedChange, SkippedInterface, explain_rule};

/// The rule of a step, and what holds for this step. The source is that of the rule.
pub(crate) struct StepReason {
    pub rule: &'static str,
    pub reason: Reason,
}

/// The reason with a source of its own, and alternatives if the setting is not possible.
pub(crate) struct StepOrigin {
    pub rule: &'static str,
    pub reason: Reason,
    pub source: String,
    pub instead: Vec<Setting>,
    /// The earlier step that makes it necessary to write the setting again.
    pub after: ResetBy,
    /// Whether the user named this setting: without it the plan does not do what was requested.
    pub named: bool,
}

impl From<StepReason> for StepOrigin {
    fn from(w: StepReason) -> Self {
        Self {
            rule: w.rule,
            reason: w.reason,
            source: source_of(w.rule),
            instead: Vec::new(),
            after: ResetBy::Channels,
            named: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct PlanBuilder {
    /// Settings that the user configured, by all of their addresses. They override the goal.
    pub laid: BTreeSet<Address>,
    /// Manual changes that stay.
    pub keep: KeptSettings,
    /// Settings with a manual change, whether it stays or not.
    pub by_hand: BTreeSet<Address>,
    /// Objects that earlier plans created for groups.
    pub made: MadeByDevice,
    pub entries: Entries,
    pub left_out: Proposals,
    /// The command that permits to interrupt traffic; `None`: it is permitted. Settings that interrupt it on some devices
    /// only, the RSS table, are skipped then. The others ask before they are entered.
    pub permission: Option<(String, CommandScope)>,
    /// Numbers of queues that the goal or `--queues` requests, and that are among the skipped changes.
    pub skipped_counts: usize,
    pub left_alone: Vec<SkippedInterface>,
    pub refused: Vec<NotPossible>,
    pub warnings: Messages,
    pub advice: Messages,
    /// Not possible for several devices alike; they become entries of `refused`.
    pub alike: Vec<Alike>,
    /// Sizes of the groups of `mixed`, by device, if a sample was requested.
    pub sizes: BTreeMap<String, GroupSizes>,
}

/// The same obstacle on one or more devices.
pub(crate) struct Alike {
    devs: Vec<String>,
    what: String,
    why: Obstacle,
    needed: bool,
}

impl PlanBuilder {
    /// Records something that is not possible on a device. Devices with the same obstacle share an entry.
    pub(crate) fn cannot(&mut self, dev: &str, what: &str, why: Obstacle, needed: bool) {
        let text = why.to_string();
        match self.alike.iter_mut().find(|a| a.what == what && a.needed == needed && a.why.to_string() == text) {
            Some(a) => a.devs.push(dev.to_string()),
            None => self.alike.push(Alike { devs: vec![dev.to_string()], what: what.to_string(), why, needed }),
        }
    }

    /// All entries of `refused`.
    pub(crate) fn take_refused(&mut self) -> Vec<NotPossible> {
        let mut all = std::mem::take(&mut self.refused);
        all.extend(self.alike.drain(..).map(|a| NotPossible {
            address: None,
            what: format!("{} {}", a.devs.join(" "), a.what),
            why: a.why,
            needed: a.needed,
            blocked_by: None,
            settings: a.devs.len(),
        }));
        all
    }

    /// The rule of the step for this setting, if there is one.
    pub(crate) fn rule_at(&self, address: &Address) -> Option<&'static str> {
        let step = self.entries.get(address)?.2.as_ref()?;
        explain_rule(&step.rule).map(|r| r.id)
    }

    /// Adds a setting of the goal, unless the user configured that setting.
    pub(crate) fn want(
        &mut self,
        nic: Option<&Nic>,
        learned: &LearnedIndex,
        w: RequestedSetting,
        why: impl FnOnce() -> StepReason,
    ) {
        if w.setting.address().is_some_and(|a| self.laid.contains(&a)) {
            return;
        }
        self.enter(nic, learned, w, || why().into());
    }

    /// Whether nothing else decides a setting: neither the configuration, nor an earlier part of the plan, nor a manual change,
    /// which is kept or undone. The goal may leave such a setting out.
    pub(crate) fn is_open(&self, address: &Address) -> bool {
        !self.laid.contains(address) && !self.entries.contains(address) && !self.by_hand.contains(address)
    }

    /// Whether this is a rule that has to wait for the feature `rx-ntuple-filter`, because switching it on would restart the device
    /// and the user does not permit that.
    fn rules_wait(&self, nic: &Nic, setting: &Setting) -> bool {
        matches!(setting, Setting::FlowRule { rule: Some(_), .. }) && self.ntuple_waits(nic)
    }

    /// Whether `rx-ntuple-filter` is off and stays off, because switching it would restart the device and the user does not permit that.
    pub(crate) fn ntuple_waits(&self, nic: &Nic) -> bool {
        let off = || nic.features.known().and_then(|f| f.get(features::NTUPLE)).is_some_and(|f| !f.on && !f.fixed);
        self.permission.is_some() && restarts_for_ntuple(nic) && off()
    }

    /// Adds one setting. Settings that were refused before, cannot be read or do not exist are recorded instead.
    pub(crate) fn enter(
        &mut self,
        nic: Option<&Nic>,
        learned: &LearnedIndex,
        w: RequestedSetting,
        why: impl FnOnce() -> StepOrigin,
    ) {
        let Some(address) = w.setting.address() else { return };
        if let Some(now) = self.keep.instead_of(&address, &w) {
            // If a channel change resets it, apply restores it, like all settings that were set before.
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
            _ => nic.and_then(|n| {
                let waits = || self.rules_wait(n, &w.setting).then_some(Obstacle::RulesNeedRestart);
                reached(n, &w.setting).or_else(|| learned.why(n, &w.setting)).or_else(waits)
            }),
        };
        if let Some(why) = obstacle {
            let what = address.to_string();
            self.refused.push(NotPossible {
                address: Some(address),
                what,
                why,
                needed: w.needed,
                blocked_by: None,
                settings: 1,
            });
            return;
        }
        let restarts = !holds && address.interrupts_traffic_of(nic) && !address.interrupts_traffic();
        if let (true, Some((command, scope))) = (restarts, &self.permission) {
            let (why, outage) = (why(), control::outage(nic.and_then(|n| n.driver.known()).map(String::as_str)));
            let change = ProposedChange {
                setting: w.setting,
                from: w.live,
                rule: why.rule.into(),
                reason: why.reason,
                command: command.clone(),
                outage: outage.to_string(),
            };
            self.left_out.push(change, *scope);
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
                // The table excludes the queues of a group: without its rules they would receive nothing.
                Setting::FlowRule { rule: Some(_), .. } if rule == FOR_GROUPS[1] => IfRefused::Replan,
                // All later steps are planned for the new queues; rules depend on the context and the feature.
                Setting::Channels { .. } | Setting::RssContext { .. } | Setting::Ntuple { .. } => IfRefused::Replan,
                _ => IfRefused::Skip,
            };
            Step {
                setting: w.setting.clone(),
                from: w.live,
                rule: rule.to_string(),
                reason,
                source: why.source,
                interrupts_traffic: address.interrupts_traffic_of(nic),
                if_refused,
                instead: why.instead,
            }
        });
        self.entries.push((address, w.setting, step));
    }
}

/// Users of queues that get packets from the RSS table only by this setting. A program that holds a queue directs its own
/// flows to it (Documentation/networking/devmem.rst, iou-zcrx.rst); the data of other flows would not reach their sockets.
fn reached(nic: &Nic, setting: &Setting) -> Option<Obstacle> {
    let Setting::RssTable { table, .. } = setting else { return None };
    let now = nic.rss.known().map(|r| r.table.as_slice()).unwrap_or_default();
    let new = |u: &&User| u.queue().is_some_and(|q| table.contains(&q) && !now.contains(&q));
    let by: Vec<User> = nic.queue_users().filter(new).cloned().collect();
    (!by.is_empty()).then_some(Obstacle::TableReachesUser { by })
}
