//! The states that are compared, and the way from one to another.
//!
//! Every state is one transaction from the host as found, on trial: a guard restores the host when this process is
//! gone, at the latest when the time limit of the measurement expires. Between two states the host is as found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringwise_apply::guard::settle;
use ringwise_apply::{NotPutBack, Policy, Request, RunResult, Store, pending, undo_now};
use ringwise_bench::result::State;
use ringwise_discover::Options;
use ringwise_knob::{Setting, Step, compare};
use ringwise_model::{DevId, Fact, Title};
use ringwise_sys::Host;

use crate::context::Event;
use crate::error::{Error, Result, left_text};

/// Time for the guard to restore everything, including channels and links.
const BOUND: Duration = Duration::from_secs(120);

/// A state that can be switched to.
#[derive(Debug)]
pub struct Prepared {
    /// The state as results name it.
    pub state: State,
    /// The devices of the steps, and the steps from the host as found. None: the host as found.
    pub plan: Option<(Vec<DevId>, Vec<Step>)>,
}

impl Prepared {
    /// Number of settings that the state changes. `None`: the host as found.
    pub fn changes(&self) -> Option<usize> {
        self.plan.as_ref().map(|(_, steps)| steps.len())
    }
}

/// Switches the host between states.
pub struct Switch<'a> {
    host: &'a Arc<dyn Host>,
    policy: Policy,
    store: Store,
    /// The user who switches; each state adds its title and steps.
    request: Request,
    states: Vec<Prepared>,
    at: usize,
    transaction: Option<u64>,
    /// When the guard restores the host.
    until: Instant,
    /// The values before the first state; at the end the host must have them again.
    start: Vec<Setting>,
    /// Requested settings that are not in effect in the present state.
    pub(crate) doubts: Vec<String>,
    /// Settings that could not be restored.
    not_back: Vec<NotPutBack>,
}

/// The index of no state.
const NOWHERE: usize = usize::MAX;

impl<'a> Switch<'a> {
    /// `policy`: must have a guard; its stop signal ends the session. `request`: the user who switches, without steps.
    pub fn new(host: &'a Arc<dyn Host>, store: Store, policy: Policy, request: Request, states: Vec<Prepared>) -> Self {
        let mut start: Vec<Setting> = Vec::new();
        for step in states.iter().filter_map(|p| p.plan.as_ref()).flat_map(|(_, steps)| steps) {
            if let Fact::Known(from) = &step.from
                && !start.contains(from)
            {
                start.push(from.clone());
            }
        }
        let (doubts, not_back) = Default::default();
        let until = Instant::now();
        Self { host, policy, store, request, states, at: NOWHERE, transaction: None, until, start, doubts, not_back }
    }

    /// Switches to a state, which stays in effect for at least `hold`. A measurement that takes longer loses it,
    /// because the guard restores the host.
    ///
    /// Errors: the transaction was refused, or could not be applied or restored.
    pub fn go(&mut self, to: usize, hold: Duration, tell: &mut dyn FnMut(&Event)) -> Result<()> {
        // The state is in effect already. It is applied again only if its trial would expire too early.
        if self.at == to && (self.transaction.is_none() || Instant::now() + hold <= self.until) {
            return Ok(());
        }
        self.back("another state is measured")?;
        let Prepared { state, plan } = &self.states[to];
        let Some((devices, steps)) = plan.as_ref().filter(|(_, steps)| !steps.is_empty()) else {
            self.at = to;
            return Ok(());
        };
        let mut policy = self.policy.clone();
        // The guard counts from the end of the verification, so its deadline is a little later.
        self.until = Instant::now() + hold;
        (policy.trial, policy.tied) = (Some(hold), true);
        policy.differs = !steps.is_empty();
        let request = Request {
            devices: devices.clone(),
            steps: steps.clone(),
            title: Title::Bench { state: Some(state.name.clone()) },
            ..self.request.clone()
        };
        let name = &state.name;
        tell(&Event::Switching { state: name });
        let mut event = |e: &ringwise_apply::Event| tell(&Event::Apply(e));
        let done = ringwise_apply::run(self.host, &request, &self.store, &policy, &mut event);
        let o = done.map_err(|error| Error::Apply { state: Some(name.clone()), error })?;
        match o.verdict {
            RunResult::Applied => self.transaction = o.trial.as_ref().and(o.transaction),
            RunResult::NothingToDo => {}
            verdict => {
                let put_back = verdict != RunResult::PutBackIncomplete;
                return Err(Error::NotApplied { state: name.clone(), failure: o.failed.map(Box::new), put_back });
            }
        }
        let asked = |s: &Setting| s.address().map_or_else(|| s.value_text(), |a| format!("{a} {}", s.value_text()));
        let ignored = o.ignored.iter().map(|i| format!("accepted but not applied: {}", asked(&i.asked)));
        let refused = o.refused.iter().map(|r| format!("refused: {}: {}", asked(&r.asked), r.failure.words));
        let instead = o.instead.iter().map(|i| format!("{} instead of {}", asked(&i.kept), asked(&i.asked)));
        self.doubts = ignored.chain(refused).chain(instead).map(|d| format!("state {name}: {d}")).collect();
        for d in &self.doubts {
            tell(&Event::Doubt(d));
        }
        self.at = to;
        Ok(())
    }

    /// Fails if the present state is no longer in effect, because its trial expired or another program ended it.
    pub(crate) fn holds(&self) -> Result<()> {
        let Some(id) = self.transaction else { return Ok(()) };
        let (host, _) = ringwise_discover::host(self.host.as_ref());
        match pending(&self.store, &host)? {
            Some(p) if p.transaction == id => Ok(()),
            _ => Err(Error::TrialEnded(id)),
        }
    }

    /// Restores the host as found.
    fn back(&mut self, why: &str) -> Result<()> {
        self.doubts.clear();
        let Some(id) = self.transaction else { return Ok(()) };
        self.at = NOWHERE;
        if let Err(e) = undo_now(&self.store, id, "bench", why, self.host.unix_time())
            && e.refusal().is_none()
        {
            return Err(e.into());
        }
        // A stop signal must not interrupt restoring.
        let patient = Policy { guard: self.policy.guard.clone(), ..Policy::default() };
        let o = settle(self.host, &self.store, id, BOUND, &patient, &mut |_| {})?;
        let Some(o) = o else {
            return Err(Error::StillPuttingBack(id));
        };
        self.transaction = None;
        if o.verdict == RunResult::PutBackIncomplete {
            self.not_back.extend(o.put_back_incomplete);
            return Err(Error::PutBackIncomplete { transaction: id, left: self.not_back.clone() });
        }
        Ok(())
    }

    /// Restores the host as found and compares. Returns the settings that differ, as text.
    pub(crate) fn restored(&mut self) -> Result<Vec<String>> {
        self.back("the measurement has ended")?;
        let mut wrong: Vec<String> = std::mem::take(&mut self.not_back).iter().map(left_text).collect();
        if !self.start.is_empty() {
            let options = Options { skip_rivals: false, ..Options::all() };
            let now = ringwise_discover::snapshot(self.host, &options)?;
            for s in self.start.iter().filter(|s| !compare(s, &now).holds()) {
                let what = s.address().map(|a| a.to_string()).unwrap_or_default();
                wrong.push(format!("{what} was {}", s.value_text()));
            }
        }
        Ok(wrong)
    }
}
