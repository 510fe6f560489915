//! The states that are compared: what makes each of them, and the way from one to another.
//!
//! Every state is one transaction from the host as found, on trial: a guard puts it back when this process is gone, at the
//! latest when the time ends that its measurement may take. Between two states the host is as found.

use std::time::{Duration, Instant};

use clap::{Args, Command, FromArgMatches};
use ringwise_apply::guard::settle;
use ringwise_apply::{Policy, Request, Store, Verdict, pending, undo_now};
use ringwise_bench::result::State;
use ringwise_discover::Options;
use ringwise_knob::{Setting, compare};
use ringwise_model::{Fact, Title, shell};
use ringwise_plan::Plan;

use crate::args::{Common, IntentArgs, StateArgs};
use crate::cmd::hands::Take;
use crate::cmd::plan::make;
use crate::cmd::transaction::{fail, request, store, who};
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::out;
use crate::source::Source;

/// For a guard to put back, channels and links included.
const BOUND: Duration = Duration::from_secs(120);

/// A state by its name, and the flags that make it; none: the host as found.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub name: String,
    pub flags: Option<String>,
    /// Of a sweep.
    pub value: Option<f64>,
}

/// A state that can be switched to.
pub(super) struct Prepared {
    pub state: State,
    plan: Option<Plan>,
}

impl Prepared {
    /// Settings that are changed for it; `None`: it is the host as found.
    pub(super) fn changes(&self) -> Option<usize> {
        self.plan.as_ref().map(|p| p.steps.len())
    }
}

/// All of them as the command line says, and what a sweep goes along.
pub(super) fn wanted(a: &StateArgs) -> Result<(Vec<Wanted>, Option<String>)> {
    let mut out = vec![match &a.base {
        Some(text) => named(text)?,
        None => Wanted { name: "before".into(), flags: None, value: None },
    }];
    for text in &a.states {
        out.push(named(text)?);
    }
    out.extend(a.goals.iter().map(|g| Wanted {
        name: g.to_string(),
        flags: Some(format!("--goal {g} --allow-disruption")),
        value: None,
    }));
    let swept = a.sweep.as_deref().map(sweep).transpose()?;
    let axis = swept.map(|(key, states)| {
        out.extend(states);
        key
    });
    for (i, w) in out.iter().enumerate() {
        if out[..i].iter().any(|o| o.name == w.name) {
            return Err(Fail::usage(format!("two states are called {}", w.name)));
        }
    }
    Ok((out, axis))
}

fn named(text: &str) -> Result<Wanted> {
    let bad = || Fail::usage(format!("\"{text}\" is no state (right would be e.g. 'tuned=--goal forward')"));
    let (name, flags) = text.split_once('=').ok_or_else(bad)?;
    if name.is_empty() || name.contains(char::is_whitespace) || name.starts_with('-') {
        return Err(bad());
    }
    Ok(Wanted { name: name.into(), flags: Some(flags.trim().into()), value: None })
}

/// `queues=1,2,4` and `eth0.coalesce.rx-usecs=0,10,50`.
fn sweep(text: &str) -> Result<(String, Vec<Wanted>)> {
    let bad = || {
        Fail::usage(format!(
            "\"{text}\" is no sweep (right would be e.g. eth0.coalesce.rx-usecs=0,10,50 or queues=1,2,4)"
        ))
    };
    let (key, values) = text.split_once('=').ok_or_else(bad)?;
    let values: Vec<&str> = values.split(',').map(str::trim).filter(|v| !v.is_empty()).collect();
    if key.is_empty() || values.is_empty() {
        return Err(bad());
    }
    let short = key.rsplit('.').next().unwrap_or(key);
    let one = |v: &&str| Wanted {
        name: format!("{short}={v}"),
        flags: Some(match key {
            "queues" => format!("--queues {v} --allow-disruption"),
            _ => format!("--allow-disruption --set {key}={v}"),
        }),
        value: v.parse().ok(),
    };
    Ok((key.to_string(), values.iter().map(one).collect()))
}

/// The flags of a state as `plan` understands them.
pub(super) fn intent(w: &Wanted, flags: &str) -> Result<IntentArgs> {
    let bad = |why: String| Fail::usage(format!("state {}: {why}", w.name));
    let words = shell::split(flags).ok_or_else(|| bad(format!("a quote in \"{flags}\" has no end")))?;
    let command = IntentArgs::augment_args(Command::new("state").no_binary_name(true).disable_help_flag(true));
    let found = command.try_get_matches_from(words).and_then(|m| IntentArgs::from_arg_matches(&m));
    let intent = found.map_err(|e| bad(e.to_string().trim().trim_start_matches("error: ").into()))?;
    if intent.print_config {
        return Err(bad("--print-config makes no state".into()));
    }
    Ok(intent)
}

/// Plans every state from the host as it is.
pub(super) fn prepare(list: &[Wanted], devs: &[String], source: &Source, common: &Common) -> Result<Vec<Prepared>> {
    let mut out = Vec::new();
    for w in list {
        let Some(flags) = &w.flags else {
            let state = State { name: w.name.clone(), what: "as found".into(), value: None };
            out.push(Prepared { state, plan: None });
            continue;
        };
        let state = State { name: w.name.clone(), what: shown(flags), value: w.value };
        out.push(Prepared { plan: Some(plan(w, &intent(w, flags)?, devs, source, common)?), state });
    }
    Ok(out)
}

/// Flags for people: of a long list of rules how many they are.
fn shown(flags: &str) -> String {
    let (mut out, mut rest) = (String::new(), flags);
    while let Some((before, list)) = rest.split_once(".rule=[") {
        let (rules, after) = list.split_once(']').unwrap_or((list, ""));
        let n = rules.matches("\",\"").count() + 1;
        out.push_str(before);
        out.push_str(&if n > 4 { format!(".rule=[{n} rules]") } else { format!(".rule=[{rules}]") });
        rest = after;
    }
    out + rest
}

fn plan(w: &Wanted, i: &IntentArgs, devs: &[String], source: &Source, common: &Common) -> Result<Plan> {
    let made =
        make(source, devs, i, false, common).and_then(|m| m.plan(if i.take_over { Take::Over } else { Take::Keep }));
    let plan = made.map_err(|f| Fail { message: format!("state {}: {}", w.name, f.message), ..f })?;
    for r in &plan.refused {
        out::note(common.quiet, &format!("ringwise: state {}: not possible here: {}: {}", w.name, r.what, r.why));
    }
    Ok(plan)
}

/// The host, from state to state.
pub(super) struct Switch<'a> {
    source: &'a Source,
    common: &'a Common,
    pub policy: Policy,
    store: Store,
    pub states: Vec<Prepared>,
    at: usize,
    transaction: Option<u64>,
    /// When the guard puts it back.
    until: Instant,
    /// What the states' steps found; it must be so in the end.
    start: Vec<Setting>,
    /// What the state that is in force is not, although it was asked for.
    pub doubts: Vec<String>,
    /// Where it could not be put back as it was.
    pub not_back: Vec<String>,
}

/// Not any state.
const NOWHERE: usize = usize::MAX;

impl<'a> Switch<'a> {
    pub(super) fn new(source: &'a Source, common: &'a Common, policy: Policy, states: Vec<Prepared>) -> Self {
        let mut s = Self {
            source,
            common,
            policy,
            store: store(common),
            states: Vec::new(),
            at: NOWHERE,
            transaction: None,
            until: Instant::now(),
            start: Vec::new(),
            doubts: Vec::new(),
            not_back: Vec::new(),
        };
        states.into_iter().for_each(|p| s.add(p));
        s
    }

    pub(super) fn add(&mut self, p: Prepared) {
        for step in p.plan.iter().flat_map(|p| &p.steps) {
            if let Fact::Known(from) = &step.from
                && !self.start.contains(from)
            {
                self.start.push(from.clone());
            }
        }
        self.states.push(p);
    }

    /// The host is in this state when it returns, for `hold` at least; what measures longer is put back meanwhile.
    pub(super) fn go(&mut self, to: usize, hold: Duration) -> Result<()> {
        // It stays, unless its time would be over before.
        if self.at == to && (self.transaction.is_none() || Instant::now() + hold <= self.until) {
            return Ok(());
        }
        self.back("another state is measured")?;
        let Prepared { state, plan } = &self.states[to];
        let Some(plan) = plan.as_ref().filter(|p| !p.steps.is_empty()) else {
            self.at = to;
            return Ok(());
        };
        let mut policy = self.policy.clone();
        // Counted from the end of the verification, so it is a little later.
        self.until = Instant::now() + hold;
        (policy.trial, policy.tied) = (Some(hold), true);
        policy.differs = !plan.steps.is_empty();
        let request = Request {
            devices: plan.devices.clone(),
            steps: plan.steps.clone(),
            ..request(Title::Bench { state: Some(state.name.clone()) }, None)
        };
        let mut log = Logbook::open(&who(), None);
        let done = ringwise_apply::run(&self.source.host, &request, &self.store, &policy, &mut |e| log.event(e));
        let name = &state.name;
        let o = done.map_err(|e| {
            let f = fail(&e);
            Fail { message: format!("state {name}: {}", f.message), ..f }
        })?;
        match o.verdict {
            Verdict::Applied => self.transaction = o.trial.as_ref().and(o.transaction),
            Verdict::NothingToDo => {}
            verdict => {
                let why = o.failed.map(|f| format!("{}: {}", f.meaning, f.words)).unwrap_or_default();
                let status = if verdict == Verdict::PutBackIncomplete { Status::NotPutBack } else { Status::PutBack };
                return Err(Fail::new(status, format!("state {name} could not be applied and was put back: {why}")));
            }
        }
        let asked = |s: &Setting| s.address().map_or_else(|| s.value_text(), |a| format!("{a} {}", s.value_text()));
        let ignored = o.ignored.iter().map(|i| format!("accepted and not done: {}", asked(&i.asked)));
        let refused = o.refused.iter().map(|r| format!("refused: {}: {}", asked(&r.asked), r.failure.words));
        let instead = o.instead.iter().map(|i| format!("{} instead of {}", asked(&i.kept), asked(&i.asked)));
        self.doubts = ignored.chain(refused).chain(instead).map(|d| format!("state {name}: {d}")).collect();
        for d in &self.doubts {
            out::note(self.common.quiet, &format!("ringwise: {d}"));
        }
        self.at = to;
        Ok(())
    }

    /// Whether the state that was switched to is in force still: its trial has not been ended by the clock or somebody.
    pub(super) fn holds(&self) -> Result<()> {
        let Some(id) = self.transaction else { return Ok(()) };
        let (host, _) = ringwise_discover::host(self.source.host.as_ref());
        match pending(&self.store, &host).map_err(|e| fail(&e))? {
            Some(p) if p.transaction == id => Ok(()),
            _ => Err(Fail::new(
                Status::PutBack,
                format!("transaction {id} was ended while its state was measured (by the clock, or by somebody)"),
            )),
        }
    }

    /// To the host as found.
    pub(super) fn back(&mut self, why: &str) -> Result<()> {
        self.doubts.clear();
        let Some(id) = self.transaction else { return Ok(()) };
        self.at = NOWHERE;
        if let Err(e) = undo_now(&self.store, id, "bench", why, self.source.host.unix_time())
            && e.refusal().is_none()
        {
            return Err(fail(&e));
        }
        // A stop that was asked for must not stop what puts back.
        let patient = Policy { guard: self.policy.guard.clone(), ..Policy::default() };
        let o = settle(&self.source.host, &self.store, id, BOUND, &patient, &mut |_| {}).map_err(|e| fail(&e))?;
        let Some(o) = o else {
            let text = format!("transaction {id} is still being put back");
            return Err(Fail::new(Status::NotPutBack, text).next(format!("ringwise history {id}")));
        };
        self.transaction = None;
        if o.verdict == Verdict::PutBackIncomplete {
            self.not_back.extend(o.put_back_incomplete.iter().map(|n| format!("{}: {}", n.was.value_text(), n.why)));
            let text = format!("transaction {id} could not be put back whole: {}", self.not_back.join("; "));
            return Err(Fail::new(Status::NotPutBack, text).next("ringwise recover"));
        }
        Ok(())
    }

    /// The end: as found, and looked at. What is not as it was, in words.
    pub(super) fn restored(&mut self) -> Result<Vec<String>> {
        self.back("the measurement has ended")?;
        let mut wrong = std::mem::take(&mut self.not_back);
        if !self.start.is_empty() {
            let options = Options { skip_rivals: false, ..Options::all() };
            let now =
                ringwise_discover::snapshot(&self.source.host, &options).map_err(|e| Fail::error(e.to_string()))?;
            for s in self.start.iter().filter(|s| !compare(s, &now).holds()) {
                let what = s.address().map(|a| a.to_string()).unwrap_or_default();
                wrong.push(format!("{what} was {}", s.value_text()));
            }
        }
        Ok(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_state() {
        assert_eq!(shell::split("--set a.b=1  --goal  x").unwrap(), ["--set", "a.b=1", "--goal", "x"]);
        assert_eq!(shell::split("--set 'a.table=equal 4' \"\"").unwrap(), ["--set", "a.table=equal 4", ""]);
        assert_eq!(shell::split("--set 'a"), None);
    }

    #[test]
    fn states_and_sweeps() {
        let a = StateArgs {
            states: vec!["bulk=--set eth0.coalesce.rx-usecs=62".into()],
            sweep: Some("queues=1,2".into()),
            ..StateArgs::default()
        };
        let (list, axis) = wanted(&a).unwrap();
        let names: Vec<&str> = list.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["before", "bulk", "queues=1", "queues=2"]);
        assert_eq!((axis.as_deref(), list[3].value), (Some("queues"), Some(2.0)));
        assert_eq!(list[1].flags.as_deref(), Some("--set eth0.coalesce.rx-usecs=62"));
        for bad in ["bulk", "=x", "a b=x", "--set=1"] {
            assert_eq!(named(bad).unwrap_err().status, Status::Usage, "{bad}");
        }
        let twice = StateArgs { states: vec!["before=--goal rpc".into()], ..StateArgs::default() };
        assert!(wanted(&twice).unwrap_err().message.contains("two states are called before"));
    }

    #[test]
    fn many_rules_are_shown_as_their_number() {
        let rules: Vec<String> = (0..6).map(|i| format!("\"udp4 src-ip 10.0.0.{i} action 0\"")).collect();
        let flags = format!("--queues 2 --set 'mq0.rule=[{}]' --strict", rules.join(","));
        assert_eq!(shown(&flags), "--queues 2 --set 'mq0.rule=[6 rules]' --strict");
        assert_eq!(shown("--set 'a.rule=[\"x\"]'"), "--set 'a.rule=[\"x\"]'");
        assert_eq!(shown("--goal rpc"), "--goal rpc");
    }

    #[test]
    fn flags_of_a_state_are_those_of_plan() {
        let w = |f: &str| intent(&Wanted { name: "x".into(), flags: None, value: None }, f);
        let i = w("--goal forward --allow-disruption --set 'eth0.rss.table=equal 4'").unwrap();
        assert_eq!((i.goal, i.allow_disruption), (Some(ringwise_model::Goal::Forward.into()), true));
        assert_eq!(i.set, ["eth0.rss.table=equal 4"]);
        let e = w("--goall x").unwrap_err();
        assert!(e.message.starts_with("state x: unexpected argument '--goall'"), "{}", e.message);
        assert!(w("--print-config").is_err());
    }
}
