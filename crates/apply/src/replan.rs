//! A new plan in the middle of a run. It is needed when the kernel or the driver refused a step of the goal on which the
//! remaining steps depend. The new plan belongs to the same transaction, with the same guard and one rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::sync::Arc;

use ringwise_knob::{Address, CreatedObject, IfRefused, Learned, Setting, SettingMap, Step, goes_with_layout};
use ringwise_model::words::with_causes;
use ringwise_sys::Host;

use crate::ledger::Ledger;
use crate::names::DeviceRenames;
use crate::preflight::preflight;
use crate::record::Record;
use crate::start::start_of;
use crate::store::Disk;
use crate::tx::{Due, Tx, guard_gone};
use crate::{Error, Event, Failure, Request, bond, control, cpu_timers, irqbalance};

/// Maximum number of new plans in one run. Each has to take a refusal into account that the one before did not know.
const MOST: u32 = 8;

/// Plans again for the same intent.
pub trait Planner: Debug + Send + Sync {
    /// Plans for the host as it is now. The host must be read through `host` only, because the guard expects signs of life.
    /// `learned`: what was refused or ignored in this run; `made`: what this run has created for groups of queues so far.
    fn plan_again(&self, host: &Arc<dyn Host>, learned: &[Learned], made: &[CreatedObject]) -> Result<NewPlan, NoPlan>;
}

/// Why there is no new plan.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoPlan {
    /// The policy has no [`Planner`].
    NoPlanner,
    /// An interface was renamed since the beginning.
    Renamed,
    /// The host could not be read again.
    Discover(ringwise_discover::Error),
    /// The planner's own reason.
    Planner(Box<dyn std::error::Error + Send + Sync>),
    /// The new plan would interrupt traffic, but the first plan did not.
    Interrupts {
        /// The first setting whose write interrupts traffic.
        address: Box<Address>,
    },
    /// One of the checks before the first write refuses the new plan.
    Checks(Box<Error>),
}

impl fmt::Display for NoPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlanner => f.write_str("no planner is available"),
            Self::Renamed => f.write_str("an interface was renamed meanwhile"),
            Self::Discover(e) => f.write_str(&with_causes(e)),
            Self::Planner(e) => write!(f, "{e}"),
            Self::Interrupts { address } => {
                write!(f, "it would interrupt traffic ({address}), unlike the first plan")
            }
            Self::Checks(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for NoPlan {}

/// What a [`Planner`] returns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewPlan {
    /// As in [`Request`].
    pub steps: Vec<Step>,
    /// As in [`Request`].
    pub already: Vec<Setting>,
    /// What the goal needs but cannot get on this host.
    pub unmet: Vec<Address>,
}

impl Tx<'_> {
    /// Whether a new plan may still replace the remaining steps.
    pub(crate) fn can_replan(&self) -> bool {
        self.cx.policy.planner.is_some() && self.replan.plans < MOST
    }

    /// Records that a new plan is due: a step was refused or ignored, and that was learned.
    pub(crate) fn replan_later(&mut self, step: &Step, failure: &Failure) {
        let Some(family) = step.setting.address().map(|a| a.family()).filter(|_| self.can_replan()) else { return };
        let or_fail = (step.if_refused == IfRefused::Replan).then(|| failure.clone());
        let before = self.replan.due.take().and_then(|d| d.or_fail);
        self.replan.due = Some(Due { family, or_fail: before.or(or_fail) });
    }

    /// The remaining steps of the refused family are tried first, so that all their refusals are considered in the same new plan.
    pub(crate) fn replan_due(&self, next: Option<&Step>) -> bool {
        let Some(due) = &self.replan.due else { return false };
        let family = next.and_then(|s| s.setting.address()).map(|a| a.family());
        due.or_fail.is_some() || family != Some(due.family)
    }

    /// Replaces the steps from `next` on. Returns the index of the next step.
    pub(crate) fn plan_again(&mut self, disk: Disk, next: usize) -> Result<usize, Box<Failure>> {
        let Some(due) = self.replan.due.take() else { return Ok(next) };
        self.replan.plans += 1;
        self.refresh(true)?;
        // The planner discovers the host again; its plan is checked against an equally recent view.
        self.look()?;
        match self.new_plan() {
            Ok(plan) => self.take_plan(disk, next, plan),
            // Continue with the first plan, without what was refused.
            Err(why) => {
                self.note(format!("no new plan could be made after the refusal: {why}"));
                due.or_fail.map_or(Ok(next), |f| Err(f.into()))
            }
        }
    }

    /// Makes a new plan and checks it like the first one, before any of it is written.
    fn new_plan(&mut self) -> Result<NewPlan, NoPlan> {
        let Some(planner) = self.cx.policy.planner.clone() else { return Err(NoPlan::NoPlanner) };
        let devices: Vec<_> = self.before.nics.iter().map(|n| n.dev.clone()).collect();
        if DeviceRenames::new(&devices, &self.now).changed().next().is_some() {
            return Err(NoPlan::Renamed);
        }
        let plan = planner.plan_again(self.cx.host, &self.learned, &self.made())?;
        let mut request = Request { steps: plan.steps, already: plan.already, ..Request::default() };
        irqbalance::hold_too(&mut request, &self.now);
        bond::order_steps(&self.now, &mut request.steps);
        let approved = self.replan.approved.get_or_insert_with(|| interrupting(&self.steps));
        if let Some(more) = interrupting(&request.steps).difference(approved).next() {
            return Err(NoPlan::Interrupts { address: Box::new(more.clone()) });
        }
        let refused = |e: Error| NoPlan::Checks(Box::new(e));
        let todo: Vec<Step> = request.steps.clone();
        preflight(&self.now, &todo, &[]).map_err(refused)?;
        bond::check(&self.now, &todo).map_err(refused)?;
        control::check(&self.cx, &self.now, &todo).map_err(refused)?;
        cpu_timers::check(&self.cx, &self.now, &todo).map_err(refused)?;
        Ok(NewPlan { steps: request.steps, already: request.already, unmet: plan.unmet })
    }

    /// What the earlier plans created for groups, and the next plan may not need.
    fn made(&self) -> Vec<CreatedObject> {
        let of_groups = |s: &&Step| goes_with_layout(&s.rule) && self.out.applied.contains(&s.setting);
        let made = |s: &Step| {
            let before = self.start.get(&s.setting.address()?)?.clone();
            let (setting, transaction) = (s.setting.clone(), self.out.transaction?);
            (setting != before).then_some(CreatedObject { setting, before, transaction, as_left: true })
        };
        self.steps.iter().filter(of_groups).filter_map(made).collect()
    }

    fn take_plan(&mut self, disk: Disk, next: usize, plan: NewPlan) -> Result<usize, Box<Failure>> {
        // Completed steps stay, unless the new plan has another value for them: a plan does not list every setting that it found
        // right.
        let replaced = |s: &Step| {
            let address = s.setting.address();
            let given_up = address.as_ref().is_none_or(|a| self.given_up.contains(a));
            given_up || plan.steps.iter().any(|p| p.setting.address() == address)
        };
        let mut steps = std::mem::take(&mut self.steps);
        steps.truncate(next);
        steps.retain(|s| !replaced(s));
        let first = steps.len();
        let again = |s: &Setting| plan.steps.iter().any(|p| p.setting.address() == s.address());
        self.out.applied.retain(|s| !again(s));
        self.out.already_so.retain(|s| !again(s));
        // A setting that the driver does not support at all is not something that this host can have.
        let has_no_call = |a: &Address| self.learned.iter().any(|l| l.address == *a && l.what.is_not_supported());
        let refused = self.refused_addresses().into_iter();
        self.replan.not_needed = refused.filter(|a| !plan.unmet.contains(a) || has_no_call(a)).collect::<BTreeSet<_>>();
        for address in plan.steps.iter().filter_map(|s| s.setting.address()) {
            self.given_up.remove(&address);
        }
        let known = |a: &Address| self.start.contains_key(a);
        let more: SettingMap =
            start_of(&self.before, &plan.steps).into_iter().filter(|(a, _)| !known(a)).collect::<BTreeMap<_, _>>();
        steps.extend(plan.steps);
        let mut origin: SettingMap = plan
            .already
            .iter()
            .filter(|s| !steps.iter().any(|p| p.setting == **s))
            .filter_map(|s| Some((s.address()?, s.clone())))
            .collect::<BTreeMap<_, _>>();
        // A value that this run has set itself is not a value as first found.
        origin.retain(|a, _| !self.start.contains_key(a));
        origin.extend(more.clone());
        let already: Vec<Setting> =
            plan.already.into_iter().filter(|s| !steps.iter().any(|p| p.setting == *s)).collect();
        Ledger::read(disk.lock, &self.now.host)
            .and_then(|l| l.note(disk.store, disk.lock, &self.before, &origin))
            .map_err(|e| state_failure(&e))?;
        let record = Record::Replanned {
            steps: steps.clone(),
            already,
            undo: more.values().filter_map(|s| s.command(&self.now)).collect(),
            start: more.values().cloned().collect(),
        };
        self.record(record)?;
        self.journal.sync().map_err(|e| self.journal_failure(&e))?;
        // From now on the guard must be able to undo these steps too.
        if let Some(why) = self.guard.as_mut().and_then(|g| g.begun().err()) {
            return Err(Failure { words: format!("the guard does not answer: {why}"), ..guard_gone() }.into());
        }
        self.event(Event::Replanned { steps: steps.len() - first });
        self.start.extend(more);
        self.steps = steps;
        Ok(first)
    }

    fn refused_addresses(&self) -> BTreeSet<Address> {
        let refused = self.out.refused.iter().map(|r| &r.asked);
        refused.chain(self.out.ignored.iter().map(|i| &i.asked)).filter_map(Setting::address).collect::<BTreeSet<_>>()
    }

    /// What was refused or ignored, was not replaced by another value, and is still needed according to the last plan.
    pub(crate) fn unmet(&self) -> Vec<Address> {
        let has_step = |a: &Address| {
            !self.given_up.contains(a) && self.steps.iter().any(|s| s.setting.address().as_ref() == Some(a))
        };
        let all = self.refused_addresses().into_iter();
        all.filter(|a| !has_step(a) && !self.replan.not_needed.contains(a)).collect()
    }
}

fn interrupting(steps: &[Step]) -> BTreeSet<Address> {
    steps.iter().filter(|s| s.interrupts_traffic).filter_map(|s| s.setting.address()).collect::<BTreeSet<_>>()
}

fn state_failure(e: &Error) -> Failure {
    let source = std::error::Error::source(e);
    Failure {
        setting: None,
        errno: None,
        words: source.map_or_else(|| e.to_string(), |s| format!("{e}: {s}")),
        meaning: "the settings as first found cannot be recorded".into(),
        path: None,
        data: None,
        late: false,
    }
}
