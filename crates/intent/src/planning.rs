//! A host as read, and what is wanted of it: the plan, and who plans again.

use ringwise_apply::{Planner, Store};
use ringwise_check::RoleGuess;
use ringwise_discover::Options;
use ringwise_knob::{Hand, Learned, Made};
use ringwise_model::{Cause, Intent, Snapshot};
use ringwise_plan::{Hands, Plan, Refusal};
use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::flows::{self, Missing};
use crate::goals;
use crate::manual_changes::{Take, hands};
use crate::replan::Replanner;

/// The host as read, and what earlier transactions know about it.
#[derive(Debug)]
pub struct PlanningHost {
    /// With which it was read.
    pub options: Options,
    pub snapshot: Snapshot,
    /// What its devices refuse or ignore.
    pub learned: Vec<Learned>,
    /// What was changed outside ringwise.
    pub hands: Vec<Hand>,
    /// What only groups of queues needed.
    pub made: Vec<Made>,
}

/// The host, and what is wanted of it.
#[derive(Debug)]
pub struct Planning {
    pub host: PlanningHost,
    /// As merged from flags and file; programs in it are looked up in `intent`.
    pub requested: Intent,
    /// What flows belong to groups that are not known now.
    pub missing: Vec<Missing>,
    intent: Intent,
    /// The guessed role, where neither a flag nor a file names a goal.
    role: Option<RoleGuess>,
}

impl Planning {
    /// `goal_given`: by a flag. `at_boot`: programs may start later, and their flows are left out until then.
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

    /// None of the interfaces that are wanted is here, or has a link.
    pub fn nothing_yet(&self) -> bool {
        // One that did not answer in time is there: that is an error, not nothing to do.
        let s = &self.host.snapshot;
        if s.nics.iter().any(|n| n.unread.iter().any(|u| u.cause == Cause::Late)) {
            return false;
        }
        let refusal = ringwise_plan::plan_around(s, &self.intent, &self.host.learned, &Hands::default()).err();
        matches!(
            refusal,
            Some(Refusal::NothingTunable { .. } | Refusal::UnknownDevice { .. } | Refusal::NotTunable { .. })
        )
    }

    /// Nobody is asked at boot: a device that was set up anew since ringwise wrote to it gets what the file says, because
    /// its driver chose what differs.
    #[must_use]
    pub fn at_boot(mut self, store: &Store) -> Self {
        let anew = ringwise_apply::set_up_anew(store, &self.host.snapshot).unwrap_or_default();
        let of = |h: &Hand| h.address().and_then(|a| a.dev().map(str::to_string));
        self.host.hands.retain(|h| !of(h).is_some_and(|d| anew.contains(&d)));
        self
    }

    fn hands(&self, take: Take) -> Hands {
        // What leads flows that are not known now may be wanted still.
        let known =
            |m: &&Made| m.address().is_none_or(|a| !self.missing.iter().any(|x| a.dev() == Some(x.dev.as_str())));
        hands(&self.host.hands, self.host.made.iter().filter(known).cloned().collect(), take)
    }

    /// Who plans the same again when a step of it is refused.
    pub fn planner(&self, take: Take, at_boot: bool) -> impl Planner + 'static {
        Replanner {
            options: self.host.options.clone(),
            intent: self.intent.clone(),
            hands: self.hands(take),
            learned: self.host.learned.clone(),
            at_boot,
        }
    }

    /// Errors: there is nothing to plan for, or it cannot be planned.
    pub fn plan(&self, take: Take) -> Result<Plan> {
        let h = &self.host;
        let mut plan = ringwise_plan::plan_around(&h.snapshot, &self.intent, &h.learned, &self.hands(take))
            .map_err(Error::Plan)?;
        plan.refused.extend(self.missing.iter().map(Missing::not_possible));
        if let Some((role, goal)) = self.role.as_ref().and_then(|r| Some((r, r.goal()?))) {
            plan.advice.push(format!("this host {}: ringwise plan --goal {goal} is made for that", role.words()));
        }
        Ok(plan)
    }
}
