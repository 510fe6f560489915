//! Transactions of the service, each with a guard, a journal and a way back like those of `apply`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringwise_apply::{Error, Outcome, Policy, Refusal, Request, RunResult};
use ringwise_discover::Options;
use ringwise_intent::{ManualChangePolicy, Planning, PlanningHost};
use ringwise_knob::{Setting, Step, order};
use ringwise_model::words::with_causes;
use ringwise_model::{DevId, IntentFlags, Requested, Snapshot, Title};
use ringwise_persist::BootRun;

use crate::control::ControlReply;
use crate::event::Event;
use crate::service::{HANGUP, LIVED, Next, Service};
use crate::state::{ACTIONS, ActionCause, ActionEnding, ServiceAction};

pub(crate) const WHO: &str = ringwise_apply::SERVICE;
/// At most this many journals of the service are kept, and about as many that are newer.
const JOURNALS: usize = 10;

/// What one look has to write.
#[derive(Debug)]
pub(crate) struct PendingWrites {
    pub steps: Vec<Step>,
    pub already: Vec<Setting>,
    /// Record `already` even if there are no steps.
    pub record: bool,
    pub cause: ActionCause,
    pub notes: Vec<String>,
}

impl Default for PendingWrites {
    fn default() -> Self {
        Self { steps: Vec::new(), already: Vec::new(), record: false, cause: ActionCause::Reset, notes: Vec::new() }
    }
}

impl Service<'_> {
    pub(crate) fn policy(&self) -> Policy {
        Policy { guard: self.setup.guard.clone(), differs: true, ..Policy::default() }
    }

    /// Runs a transaction after which the next correction waits.
    fn transact(&mut self, request: &Request, policy: &Policy) -> Result<Outcome, Error> {
        let result = self.run(request, policy);
        let now = self.now();
        self.schedule.wrote(now);
        result
    }

    /// Runs a transaction. A signal ends it before the next step, and the watchdog hears of each step.
    pub(crate) fn run(&mut self, request: &Request, policy: &Policy) -> Result<Outcome, Error> {
        let (signals, manager, log) = (self.signals, &self.manager, &mut *self.log);
        ringwise_apply::run(self.host, request, &self.setup.store, policy, &mut |e| {
            manager.alive();
            if signals.raised().is_some_and(|s| s != HANGUP) {
                policy.stop.store(true, Ordering::SeqCst);
            }
            log(&Event::Step(Box::new(e.clone())));
        })
    }

    /// Writes again what was lost. What interrupts traffic is left out if the way in would be cut.
    pub(crate) fn act(&mut self, work: PendingWrites, now: &Snapshot) -> Result<Next, String> {
        let mut steps = work.steps;
        order(&mut steps, |s| (&s.from, &s.setting));
        let interfaces = names(steps.iter().map(|s| &s.setting).chain(work.already.iter().filter(|_| work.record)));
        let mut request = Request {
            title: match work.cause {
                ActionCause::Appeared => Title::SetUp { devs: interfaces.clone() },
                _ => Title::Keep { devs: interfaces.clone() },
            },
            devices: devices(&interfaces, now),
            steps,
            already: work.already,
            who: WHO.into(),
            argv: vec!["ringwise".into(), "daemon".into()],
            ..Request::default()
        };
        let policy = Policy { record: work.record, keep_concurrent_changes: true, ..self.policy() };
        let mut result = self.transact(&request, &policy);
        if let Err(e) = &result
            && matches!(e.refusal(), Some(Refusal::ControlPath { .. } | Refusal::LastMember { .. }))
        {
            self.log(&Event::Note(format!("{e}; the other settings are written")));
            request.steps.retain(|s| !s.interrupts_traffic);
            if request.steps.is_empty() && !work.record {
                return Ok(Next::Done);
            }
            result = self.transact(&request, &policy);
        }
        self.ended(work.cause, interfaces, result)
    }

    fn ended(
        &mut self,
        cause: ActionCause,
        interfaces: Vec<String>,
        result: Result<Outcome, Error>,
    ) -> Result<Next, String> {
        // Another run holds the lock, or the host changed between the look and the write.
        if result.as_ref().is_err_and(|e| e.refusal().is_some_and(Refusal::is_temporary)) {
            return Ok(Next::Later);
        }
        if result.as_ref().is_ok_and(|o| o.verdict == RunResult::NothingToDo) {
            return Ok(Next::Done);
        }
        let action = action(self.host.unix_time(), cause, interfaces, &result);
        if action.ending == ActionEnding::Kept {
            self.state.totals.kept += 1;
            self.state.totals.settings += action.settings as u64;
        } else {
            self.failed(&action);
        }
        self.log(&Event::Acted(action.clone()));
        self.remember(action);
        Ok(Next::Done)
    }

    /// Counts it, and pauses its interfaces.
    pub(crate) fn failed(&mut self, action: &ServiceAction) {
        self.state.totals.failed += 1;
        let (moment, why) = (self.moment(), action.why.clone().unwrap_or_default());
        action.interfaces.iter().for_each(|d| self.pauses.failed(d, &why, moment));
    }

    /// Publishes an action, and removes old ones.
    pub(crate) fn remember(&mut self, action: ServiceAction) {
        self.prune(&action);
        self.state.actions.push(action);
        let many = self.state.actions.len().saturating_sub(ACTIONS);
        self.state.actions.drain(..many);
    }

    /// Old journals of the service go from time to time.
    fn prune(&mut self, action: &ServiceAction) {
        if action.transaction.is_none_or(|id| id % JOURNALS as u64 != 0) {
            return;
        }
        let (host, _) = ringwise_discover::host_without_rivals(self.host.as_ref());
        if let Err(e) = ringwise_apply::prune_service(&self.setup.store, &host, JOURNALS) {
            // Another run may hold the lock; the next time is soon.
            self.log(&Event::Note(format!("old journals are not removed: {}", with_causes(&e))));
        }
    }

    /// Whether one of the last actions wrote to this interface.
    pub(crate) fn wrote_to(&self, dev: &str) -> bool {
        let kept = |a: &&ServiceAction| a.ending == ActionEnding::Kept && a.cause == ActionCause::Irqbalance;
        self.state.actions.iter().filter(kept).any(|a| a.interfaces.iter().any(|d| d == dev))
    }

    /// Applies the configuration once in a boot, unless a person has decided something.
    pub(crate) fn configure_once(&mut self) -> Result<Next, String> {
        let file = self.wanted.as_ref().and_then(|w| w.file());
        if file.is_none() || (!self.reloaded && self.has_transaction_of_a_person()?) {
            self.configured = true;
            return Ok(Next::Done);
        }
        self.configure()
    }

    /// Applies the configuration.
    pub(crate) fn configure(&mut self) -> Result<Next, String> {
        let Some(wanted) = self.wanted.clone() else { return Ok(Next::Done) };
        let mut boot = BootRun::begin(&self.state_dir(), WHO).map_err(|e| e.to_string())?;
        let options = Options { follow: wanted.named(), ..Options::all() };
        let s = ringwise_discover::snapshot(self.host, &options).map_err(|e| e.to_string())?;
        let (intent, notes) = wanted.intent(&s).map_err(|e| e.to_string())?;
        // An interface that appeared since the file was read may have made a host group apply.
        self.act_on_load = wanted.act_on_load(|| Ok::<_, String>(s.clone()))?;
        let v = ringwise_apply::verify_in(&s, &self.setup.store).map_err(|e| with_causes(&e))?;
        if v.running.is_some() || v.trial.is_some() {
            return Ok(Next::Later);
        }
        let learned = self.setup.store.learned().map_err(|e| with_causes(&e))?;
        let late = ringwise_intent::interfaces_without_settings(&s, &v);
        let host = PlanningHost { options, snapshot: s, learned, hands: v.manual_changes(), made: v.made, late };
        let planning = Planning::new(self.host.as_ref(), host, intent, false, true).map_err(|e| e.to_string())?;
        let mut planning = planning.at_boot(&self.setup.store);
        if planning.nothing_yet() {
            return Ok(Next::Done);
        }
        let missing = planning.missing.iter().map(|m| format!("{m}; its flows are skipped until it listens"));
        for text in notes.into_iter().chain(missing) {
            self.log(&Event::Note(text));
        }
        let mut plan = planning.plan(ManualChangePolicy::Keep).map_err(|e| e.to_string())?;
        if let Some(cut) = plan.cuts.first() {
            // Without a trial the whole plan would be refused.
            let ways = cut.ways.join("; ");
            self.log(&Event::Note(format!(
                "{} would interrupt {ways}: the changes that interrupt traffic are skipped",
                cut.address
            )));
            planning.without_disruption();
            plan = planning.plan(ManualChangePolicy::Keep).map_err(|e| e.to_string())?;
        }
        self.configured = true;
        let config = wanted.file().map(|f| f.display().to_string());
        let flags = IntentFlags { config, ..IntentFlags::default() };
        let requested = Requested { flags: Some(flags), intent: planning.requested.clone() };
        let by = Request {
            title: Title::Goal { goal: plan.intent.goal },
            who: WHO.into(),
            argv: vec!["ringwise".into(), "daemon".into()],
            ..Request::default()
        };
        let request = ringwise_intent::request(&plan, requested, true).by(&by);
        let policy = Policy {
            planner: Some(Arc::new(planning.planner(ManualChangePolicy::Keep, true))),
            differs: !plan.steps.is_empty(),
            ..self.policy()
        };
        boot.applying(self.host.unix_time()).map_err(|e| e.to_string())?;
        let interfaces = names(request.steps.iter().map(|s| &s.setting));
        let result = self.transact(&request, &policy);
        let stays = result.as_ref().is_ok_and(|o| o.verdict == RunResult::Applied);
        if stays {
            self.boot_good_at = Some(self.now() + LIVED);
        } else {
            boot.mark_nothing_in_effect().map_err(|e| e.to_string())?;
        }
        let next = self.ended(ActionCause::Configuration, interfaces, result)?;
        self.configured = next == Next::Done;
        self.reloaded = !self.configured;
        Ok(next)
    }

    /// A transaction of the service that was interrupted is restored; one of a person is left to that person.
    pub(crate) fn recover(&mut self, id: u64, now: &Snapshot) -> Result<Next, String> {
        let list = ringwise_apply::history(&self.setup.store, &now.host).map_err(|e| with_causes(&e))?;
        if !list.iter().any(|e| e.id == id && e.who == WHO) {
            return Err(format!("transaction {id} was interrupted: run ringwise recover"));
        }
        let policy = self.policy();
        let (store, log) = (&self.setup.store, &mut *self.log);
        let events = &mut |e: &ringwise_apply::Event| log(&Event::Step(Box::new(e.clone())));
        ringwise_apply::recover(self.host, store, &policy, events).map_err(|e| with_causes(&e))?;
        Ok(Next::Later)
    }

    /// `stop --restore`: every setting as first found since boot.
    pub(crate) fn restore(&mut self) -> Result<ControlReply, Error> {
        let request = Request {
            title: Title::Rollback { of: 0 },
            who: WHO.into(),
            argv: ["ringwise", "daemon", "stop", "--restore"].map(Into::into).into(),
            ..Request::default()
        };
        let policy = self.policy();
        let (store, log) = (&self.setup.store, &mut *self.log);
        let events = &mut |e: &ringwise_apply::Event| log(&Event::Step(Box::new(e.clone())));
        let o = ringwise_apply::rollback(self.host, store, 0, &request, &policy, events)?;
        let status = Some(o.exit_status());
        let error = match o.verdict {
            RunResult::Applied | RunResult::NothingToDo => None,
            _ => Some(o.failed.map_or_else(|| "not everything could be restored".into(), |f| f.words)),
        };
        Ok(ControlReply { error, transaction: o.transaction, status })
    }
}

/// What is published about a transaction, or about one that was refused.
pub(crate) fn action(
    unix_time: u64,
    cause: ActionCause,
    interfaces: Vec<String>,
    result: &Result<Outcome, Error>,
) -> ServiceAction {
    let (transaction, settings, ending, why) = match result {
        Err(e) => (None, 0, ActionEnding::Refused, Some(with_causes(e))),
        Ok(o) => {
            let ending = match o.verdict {
                RunResult::Applied | RunResult::NothingToDo => ActionEnding::Kept,
                RunResult::PutBackIncomplete => ActionEnding::Incomplete,
                RunResult::PutBack | RunResult::Recovered => ActionEnding::Restored,
            };
            let why = o.failed.as_ref().map(|f| f.words.clone()).or_else(|| refused(o));
            (o.transaction, o.applied.len(), ending, why)
        }
    };
    ServiceAction { unix_time, transaction, cause, interfaces, settings, ending, why }
}

/// The settings that a kept transaction could not set. `None`: it set all of them.
fn refused(o: &Outcome) -> Option<String> {
    let first = o.refused.first()?;
    let address = first.asked.address().map(|a| a.to_string()).unwrap_or_default();
    Some(format!("{} refused, the first is {address}: {}", o.refused.len(), first.failure.words))
}

fn names<'a>(settings: impl Iterator<Item = &'a Setting>) -> Vec<String> {
    let all: BTreeSet<&str> = settings.filter_map(Setting::dev).collect();
    all.into_iter().map(str::to_string).collect()
}

fn devices(interfaces: &[String], now: &Snapshot) -> Vec<DevId> {
    now.nics.iter().filter(|n| interfaces.iter().any(|d| d == n.name())).map(|n| n.dev.clone()).collect()
}
