//! A host as read and what is requested: the plan, and the planner for a new plan after a refusal.

use std::collections::BTreeSet;

use ringwise_apply::{Planner, Store};
use ringwise_check::RoleGuess;
use ringwise_discover::Options;
use ringwise_knob::{CreatedObject, Learned, ManualChange};
use ringwise_model::{Cause, Goal, Intent, Snapshot};
use ringwise_plan::{ManualChanges, Plan, Refusal};
use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::flows;
use crate::goals;
use crate::manual_changes::{ManualChangePolicy, manual_changes_for_plan};
use crate::missing::UnsteeredFlow;
use crate::replan::Replanner;

/// The host as read, and what earlier transactions know about it.
#[derive(Debug)]
pub struct PlanningHost {
    /// Which parts were read, and how.
    pub options: Options,
    /// The host; which parts of it were read is in `options`.
    pub snapshot: Snapshot,
    /// What its devices refuse or ignore.
    pub learned: Vec<Learned>,
    /// What was changed outside ringwise.
    pub hands: Vec<ManualChange>,
    /// What ringwise created for groups of queues only; a plan without these groups removes it.
    pub made: Vec<CreatedObject>,
    /// Interfaces without a layout of ringwise: see [`crate::interfaces_without_settings`].
    pub late: BTreeSet<String>,
}

/// A host and what is requested for it.
#[derive(Debug)]
pub struct Planning {
    /// The host to plan for.
    pub host: PlanningHost,
    /// As merged from flags and file. Programs are still names here; in `intent` their flows are filled in.
    pub requested: Intent,
    /// Programs and units that groups name and that do not listen now, so that their flows are not known.
    pub missing: Vec<UnsteeredFlow>,
    intent: Intent,
    /// The guessed role, where neither a flag nor a file names a goal.
    role: Option<RoleGuess>,
}

impl Planning {
    /// `goal_given`: a flag names the goal. `at_boot`: programs may start later; their flows are skipped until then.
    ///
    /// Errors: a program or unit that the configuration names does not listen.
    pub fn new(
        live: &dyn Host,
        host: PlanningHost,
        requested: Intent,
        goal_given: bool,
        at_boot: bool,
    ) -> Result<Self> {
        let mut intent = requested.clone();
        let missing = flows::look_up(live, &mut intent, at_boot)?;
        let named = intent.config.is_some() || goal_given;
        let role = (!named).then(|| goals::role(live, &host.snapshot));
        Ok(Self { host, requested, missing, intent, role })
    }

    /// None of the requested interfaces exists and has a link.
    pub fn nothing_yet(&self) -> bool {
        // A device that did not answer in time exists. That is an error, which is more than nothing to do.
        let s = &self.host.snapshot;
        if s.nics.iter().any(|n| n.unread.iter().any(|u| u.cause == Cause::Late)) {
            return false;
        }
        let refusal = ringwise_plan::plan_around(s, &self.intent, &self.host.learned, &ManualChanges::default()).err();
        matches!(
            refusal,
            Some(Refusal::NothingTunable { .. } | Refusal::UnknownDevice { .. } | Refusal::NotTunable { .. })
        )
    }

    /// No user can be asked at boot. A device that was initialized again since ringwise wrote to it gets what the file
    /// configures, because its driver chose what differs.
    #[must_use]
    pub fn at_boot(mut self, store: &Store) -> Self {
        let initialized = ringwise_apply::reinitialized(store, &self.host.snapshot).unwrap_or_default();
        let of = |h: &ManualChange| h.address().and_then(|a| a.dev().map(str::to_string));
        self.host.hands.retain(|h| !of(h).is_some_and(|d| initialized.contains(&d)));
        self.host.late.extend(initialized);
        self
    }

    /// The goal that fits the role of the host, where nothing names a goal. `None`: the role is not evident.
    pub fn better_goal(&self) -> Option<Goal> {
        self.role.as_ref().and_then(RoleGuess::goal)
    }

    /// Plans without changes that interrupt traffic, even if they were requested.
    pub fn without_disruption(&mut self) {
        self.intent.allow_disruption = false;
    }

    fn manual_changes_for_plan(&self, take: ManualChangePolicy) -> ManualChanges {
        // Rules and contexts for flows that are not known now may still be needed.
        let known = |m: &&CreatedObject| {
            m.address().is_none_or(|a| !self.missing.iter().any(|x| a.dev() == Some(x.dev.as_str())))
        };
        let made = self.host.made.iter().filter(known).cloned().collect();
        ManualChanges { made, late: self.host.late.clone(), ..manual_changes_for_plan(&self.host.hands, take) }
    }

    /// Makes a new plan for the same request when a step of this one is refused.
    pub fn planner(&self, take: ManualChangePolicy, at_boot: bool) -> impl Planner + 'static {
        Replanner {
            options: self.host.options.clone(),
            intent: self.intent.clone(),
            hands: self.manual_changes_for_plan(take),
            learned: self.host.learned.clone(),
            at_boot,
        }
    }

    /// Makes the plan.
    pub fn plan(&self, take: ManualChangePolicy) -> Result<Plan> {
        let h = &self.host;
        let mut plan =
            ringwise_plan::plan_around(&h.snapshot, &self.intent, &h.learned, &self.manual_changes_for_plan(take))
                .map_err(Error::Plan)?;
        plan.refused.extend(self.missing.iter().map(UnsteeredFlow::not_possible));
        if let Some((role, goal)) = self.role.as_ref().zip(self.better_goal()) {
            plan.advice.push(format!(
                "this host {}: goal {goal} is made for that (ringwise plan --goal {goal})",
                role.words()
            ));
        }
        Ok(plan)
    }
}
