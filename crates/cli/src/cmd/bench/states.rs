//! The states that are compared. Each is described by flags of `plan`, or by a plan file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches};
use ringwise_bench::forward::redhat_rules;
use ringwise_bench::result::State;
use ringwise_discover::Options;
use ringwise_experiment::{Candidate, ForwardSpec, Prepared, Recipe, SOURCES};
use ringwise_intent::ManualChangePolicy;
use ringwise_model::{Snapshot, shell};
use ringwise_plan::Plan;

use crate::args::{Common, IntentArgs, StateArgs};
use crate::cmd::plan::{make, planning};
use crate::cmd::{apply, transaction};
use crate::exit::{Fail, Result};
use crate::out;
use crate::source::Source;

/// A state by its name, and the flags that make it. No flags: the host as found.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub name: String,
    pub flags: Option<String>,
    /// The value of a sweep.
    pub value: Option<f64>,
    /// The number of queues, where the state is one of a sweep over it.
    pub queues: Option<u32>,
    /// The CPU of the receiver, where the state is a place of it.
    pub receiver: Option<u32>,
}

/// The host as found, with the receiver at each of these places.
pub(super) fn of_places(places: &[(String, u32)]) -> Vec<Wanted> {
    let one = |(name, cpu): &(String, u32)| Wanted { receiver: Some(*cpu), ..Wanted::found(name) };
    places.iter().map(one).collect()
}

impl Wanted {
    fn found(name: &str) -> Self {
        Self { name: name.into(), flags: None, value: None, queues: None, receiver: None }
    }
}

/// All states of the command line, and the name of the swept setting.
pub(super) fn wanted(a: &StateArgs) -> Result<(Vec<Wanted>, Option<String>)> {
    let mut out = vec![match &a.base {
        Some(text) => named(text)?,
        None => Wanted::found("before"),
    }];
    for text in &a.states {
        out.push(named(text)?);
    }
    out.extend(
        a.goals
            .iter()
            .map(|g| Wanted { flags: Some(format!("--goal {g} --allow-disruption")), ..Wanted::found(&g.to_string()) }),
    );
    let swept = a.sweep.as_deref().map(sweep).transpose()?;
    let axis = swept.map(|(key, states)| {
        out.extend(states);
        key
    });
    for (i, w) in out.iter().enumerate() {
        if out[..i].iter().any(|o| o.name == w.name) {
            return Err(Fail::usage(format!("two states have the name {}", w.name)));
        }
    }
    Ok((out, axis))
}

fn named(text: &str) -> Result<Wanted> {
    let bad = || Fail::usage(format!("\"{text}\" is not a state: expected NAME=FLAGS, e.g. 'tuned=--goal forward'"));
    let (name, flags) = text.split_once('=').ok_or_else(bad)?;
    if name.is_empty() || name.contains(char::is_whitespace) || name.starts_with('-') {
        return Err(bad());
    }
    Ok(Wanted { flags: Some(flags.trim().into()), ..Wanted::found(name) })
}

/// `queues=1,2,4` and `eth0.coalesce.rx-usecs=0,10,50`.
fn sweep(text: &str) -> Result<(String, Vec<Wanted>)> {
    let bad = || {
        Fail::usage(format!(
            "\"{text}\" is not a sweep: expected KEY=VALUES, e.g. eth0.coalesce.rx-usecs=0,10,50 or queues=1,2,4"
        ))
    };
    let (key, values) = text.split_once('=').ok_or_else(bad)?;
    let values: Vec<&str> = values.split(',').map(str::trim).filter(|v| !v.is_empty()).collect();
    if key.is_empty() || values.is_empty() {
        return Err(bad());
    }
    let short = key.rsplit('.').next().unwrap_or(key);
    let one = |v: &&str| Wanted {
        flags: Some(match key {
            "queues" => format!("--queues {v} --allow-disruption"),
            _ => format!("--allow-disruption --set {key}={v}"),
        }),
        value: v.parse().ok(),
        queues: v.parse().ok().filter(|_| key == "queues"),
        ..Wanted::found(&format!("{short}={v}"))
    };
    Ok((key.to_string(), values.iter().map(one).collect()))
}

/// The flags of a state as `plan` understands them.
pub(super) fn intent(w: &Wanted, flags: &str) -> Result<IntentArgs> {
    let bad = |why: String| Fail::usage(format!("state {}: {why}", w.name));
    let words = shell::split(flags).ok_or_else(|| bad(format!("a quote in \"{flags}\" is not closed")))?;
    let command = IntentArgs::augment_args(Command::new("state").no_binary_name(true).disable_help_flag(true));
    let found = command.try_get_matches_from(words).and_then(|m| IntentArgs::from_arg_matches(&m));
    let intent = found.map_err(|e| bad(crate::args::usage_error::message(&e)))?;
    if intent.print_config {
        return Err(bad("--print-config cannot be used in a state".into()));
    }
    if intent.sample.is_some() {
        let why = "--sample cannot be used in a state, because a state must be the same in every trial; sample first, and name the \
                   plan file as the state";
        return Err(bad(format!("{why}: {}=FILE", w.name)).next("ringwise plan DEV --sample --out FILE"));
    }
    Ok(intent)
}

/// The candidates of a search, as states.
pub(super) fn of_candidates(list: &[Candidate], devs: &[String], disruption: bool) -> Vec<Wanted> {
    let each = |key: &str, value: u32| -> String { devs.iter().map(|d| format!(" --set {d}.{key}={value}")).collect() };
    let one = |c: &Candidate| {
        let (name, flags) = match *c {
            Candidate::Goal(g) => (g.to_string(), format!("--goal {g}")),
            Candidate::RxUsecs(n) => (format!("rx-usecs={n}"), each("coalesce.rx-usecs", n)),
            Candidate::Queues(n) => (format!("queues={n}"), format!("--queues {n}")),
            Candidate::RxRing(n) => (format!("ring={n}"), each("rings.rx", n)),
            Candidate::Bulk { ring, usecs } => {
                let sets = each("rings.rx", ring) + &each("coalesce.rx-usecs", usecs);
                ("bulk-large".into(), format!("--goal stream{sets}"))
            }
        };
        let disrupt = if disruption { " --allow-disruption" } else { "" };
        Wanted { flags: Some(format!("{flags}{disrupt}")), ..Wanted::found(&name) }
    };
    list.iter().map(one).collect()
}

/// Adds rules to the flags of every state that steer each source to one queue, in turn over the queues that the state
/// has.
pub(super) fn lead(list: &mut [Wanted], f: &ForwardSpec, s: &Snapshot) -> Result<()> {
    if f.recipe != Recipe::Turn {
        return Err(Fail::usage("--lead needs --recipe turn: random sources are too many for rules"));
    }
    let sources = f.flows.iter().copied().max().unwrap_or(SOURCES);
    for w in list {
        let mut flags = w.flags.take().unwrap_or_default();
        if plan_file(&flags).is_some() {
            return Err(Fail::usage(format!("state {}: --lead adds rules to flags, not to a plan file", w.name)));
        }
        for dev in &f.into {
            let now = s.nic(dev).and_then(|n| n.channels.known()).map(|c| c.rx_queues()).filter(|n| *n > 0);
            let now = now.ok_or_else(|| Fail::error(format!("{dev}: the number of its queues is unknown")))?;
            let queues = w.queues.unwrap_or(now);
            let rules: Vec<String> = redhat_rules(sources, queues, f.addresses)
                .iter()
                .map(|r| format!("\"{}\"", r.trim_start_matches("flow-type ")))
                .collect();
            flags.push_str(&format!(" --set '{dev}.rule=[{}]'", rules.join(",")));
        }
        w.flags = Some(flags.trim().to_string());
    }
    Ok(())
}

/// Plans every state from the host as it is.
pub(super) fn prepare(list: &[Wanted], devs: &[String], source: &Source, common: &Common) -> Result<Vec<Prepared>> {
    let mut out = Vec::new();
    for w in list {
        let Some(flags) = &w.flags else {
            let what = w.receiver.map_or("as found".into(), |cpu| format!("as found, receiver on CPU {cpu}"));
            let place = w.receiver.map(|_| w.name.clone());
            let state = State { name: w.name.clone(), what, place, ..State::default() };
            out.push(Prepared { state, plan: None });
            continue;
        };
        let state = State { name: w.name.clone(), what: shown(flags), value: w.value, place: None };
        let plan = match plan_file(flags) {
            Some(file) => plan_of_file(w, &file, devs, source, common)?,
            None => plan(w, &intent(w, flags)?, devs, source, common)?,
        };
        out.push(Prepared { plan: Some((plan.devices, plan.steps)), state });
    }
    Ok(out)
}

/// The plan file that a state names instead of flags. `None`: these are flags.
fn plan_file(flags: &str) -> Option<PathBuf> {
    let words = shell::split(flags)?;
    let [file] = words.as_slice() else { return None };
    (!file.is_empty() && !file.starts_with('-')).then(|| PathBuf::from(file))
}

/// A plan of this host, as it is now, for what the plan file requests; a sample in it is used again. Like a state made of flags, it is
/// for the interfaces that are measured.
fn plan_of_file(w: &Wanted, file: &Path, devs: &[String], source: &Source, common: &Common) -> Result<Plan> {
    let made = apply::load(file, source, common).and_then(|read| {
        let (of, here): (BTreeSet<&String>, BTreeSet<&String>) =
            (read.intent.devs.iter().collect(), devs.iter().collect());
        if of != here {
            let list = |all: &[String]| if all.is_empty() { "all interfaces".into() } else { all.join(" ") };
            let text =
                format!("{} is for {}, and measured are {}", file.display(), list(&read.intent.devs), list(devs));
            return Err(Fail::error(text).next(format!("ringwise plan {} --out FILE", devs.join(" "))));
        }
        let options = Options::all();
        let s = source.snapshot(&options, common)?;
        let learned = transaction::learned(common);
        Ok(planning(source, s, options, learned, read.intent, (true, false), common)?.plan(ManualChangePolicy::Keep)?)
    });
    let plan = made.map_err(|f| Fail { message: format!("state {}: {}", w.name, f.message), ..f })?;
    note_refused(w, &plan, common);
    Ok(plan)
}

/// Flags as they are printed: a long list of rules is replaced by its length.
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
    let take = if i.take_over { ManualChangePolicy::Over } else { ManualChangePolicy::Keep };
    let made = make(source, devs, i, false, common).and_then(|m| Ok(m.plan(take)?));
    let plan = made.map_err(|f| Fail { message: format!("state {}: {}", w.name, f.message), ..f })?;
    note_refused(w, &plan, common);
    Ok(plan)
}

fn note_refused(w: &Wanted, plan: &Plan, common: &Common) {
    for r in &plan.refused {
        out::note(common.quiet, &format!("ringwise: state {}: not possible here: {}: {}", w.name, r.what, r.why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Status;

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
        assert!(wanted(&twice).unwrap_err().message.contains("two states have the name before"));
    }

    #[test]
    fn places_of_a_receiver_are_states_of_the_host_as_found() {
        let list = of_places(&[("same-cpu".into(), 3), ("other-node".into(), 8)]);
        let got: Vec<_> = list.iter().map(|w| (w.name.as_str(), w.flags.as_deref(), w.receiver)).collect();
        assert_eq!(got, [("same-cpu", None, Some(3)), ("other-node", None, Some(8))]);
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
        let w = |f: &str| intent(&Wanted::found("x"), f);
        let i = w("--goal forward --allow-disruption --set 'eth0.rss.table=equal 4'").unwrap();
        assert_eq!((i.goal, i.allow_disruption), (Some(ringwise_model::Goal::Forward.into()), true));
        assert_eq!(i.set, ["eth0.rss.table=equal 4"]);
        let e = w("--goall x").unwrap_err();
        assert!(e.message.starts_with("state x: there is no option --goall; did you mean --goal?"), "{}", e.message);
        assert!(w("--print-config").is_err());
        assert!(w("--sample 1s").is_err());
    }

    #[test]
    fn one_word_without_a_dash_is_a_plan_file() {
        assert_eq!(plan_file("edge.plan"), Some(PathBuf::from("edge.plan")));
        assert_eq!(plan_file("'the edge.plan'"), Some(PathBuf::from("the edge.plan")));
        for flags in ["--goal rpc", "-q", "", "a b", "''"] {
            assert_eq!(plan_file(flags), None, "{flags}");
        }
    }
}
