//! Prepares a session (plans the states, asks the user, opens the results) and prints its progress.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ringwise_apply::Policy;
use ringwise_bench::file::Results;
use ringwise_bench::result::{Design, Metric, Phase, SCHEMA, Session, VERSION};
use ringwise_bench::{compare, words};
use ringwise_discover::{Options, Parts};
use ringwise_experiment::{
    Event, Experiment, Finished, Prepared, ResultsFile, Switch, TrialContext, Workload, caveat, environment, ports,
};
use ringwise_model::{Snapshot, Title};

use super::states::{self, Wanted};
use crate::args::{CaptureArgs, Common, RunArgs};
use crate::cmd::capture;
use crate::cmd::transaction::{can_go_on, confirmed, policy, request, store, who};
use crate::cmd::trial::none_waits;
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::out;
use crate::source::Source;
use ringwise_text::plural;
use ringwise_text::when;

/// What was prepared before the host is changed.
pub(super) struct Ready<'a> {
    source: &'a Source,
    common: &'a Common,
    cx: TrialContext,
    policy: Policy,
    states: Vec<Prepared>,
    session: Session,
    results: ResultsFile,
    detect: Option<f64>,
    begin: Instant,
}

/// Prepares measurements that precede the question.
pub(super) fn context(a: &RunArgs, devs: &[String], s: &Snapshot, source: &Source) -> TrialContext {
    context_of(a, devs, s, source, 1, Arc::default())
}

fn context_of(
    a: &RunArgs,
    devs: &[String],
    s: &Snapshot,
    source: &Source,
    seed: u64,
    stop: Arc<AtomicBool>,
) -> TrialContext {
    TrialContext::new(&source.host, s, devs, seed, (a.design.warm, a.design.trial), stop)
}

/// Below the state directory, because an unrequested file in the current directory would be a surprise.
fn default_results(source: &Source, common: &Common) -> Result<PathBuf> {
    let time = when::second(source.host.unix_time(), common.utc).replace([' ', ':'], "-");
    let mut refused = None;
    for dir in store(common).dirs() {
        let dir = dir.join("bench");
        match DirBuilder::new().recursive(true).mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir.join(format!("{time}.jsonl"))),
            Err(e) => refused = refused.or(Some(format!("{}: {e}", dir.display()))),
        }
    }
    Err(Fail::error(format!("cannot create a directory for the results: {}", refused.unwrap_or_default()))
        .next("--results FILE"))
}

/// Checks, plans the states, asks, and opens the results. `None`: the user only wanted to see what would be done.
pub(super) fn ready<'a>(
    a: &'a RunArgs,
    devs: Vec<String>,
    source: &'a Source,
    common: &'a Common,
    load: &dyn Workload,
    list: &[Wanted],
    swept: Option<String>,
) -> Result<Option<Ready<'a>>> {
    let begin = Instant::now();
    let changing = list.iter().any(|w| w.flags.is_some());
    if changing {
        can_go_on(&a.write, "bench")?;
        none_waits(source, &store(common), &crate::style::detect(common))?;
    }
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: devs.clone(), ..Options::all() }, common)?;
    let ports = ports(&s, &devs)?;
    let states = states::prepare(list, &devs, source, common)?;
    for p in states.iter().filter(|p| p.changes() == Some(0)) {
        let text =
            format!("ringwise: state {} changes nothing on this host: it equals the host as found", p.state.name);
        out::note(common.quiet, &text);
    }
    let d = &a.design;
    let seed = d.seed.unwrap_or_else(|| source.host.unix_time() ^ u64::from(std::process::id()) << 32);
    let mut session = Session {
        schema: SCHEMA.into(),
        version: VERSION,
        ringwise: env!("CARGO_PKG_VERSION").into(),
        started_unix: source.host.unix_time(),
        title: a.keep.title.clone(),
        workload: load.name().into(),
        driver: load.driver().into(),
        caveat: caveat(&s, &devs),
        ports,
        peer: load.peer(),
        states: states.iter().map(|p| p.state.clone()).collect(),
        swept,
        design: Design {
            seed,
            blocks: d.pairs,
            calibration_blocks: d.calibrate,
            warmup_s: d.warm.as_secs_f64(),
            trial_s: d.trial.as_secs_f64(),
            equivalent_percent: d.within,
            alpha: 0.05,
            weight: Some(a.load.weight),
        },
        environment: environment(source.host.as_ref(), &s, &devs, load),
    };
    announce(a, &session, &states, load, common);
    if a.write.dry_run {
        return Ok(None);
    }
    if changing && !confirmed(&a.write, "Measure? [y/N]", &String::new)? {
        return Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"));
    }
    let policy = Policy { force: a.force, ..policy()? };
    let path = a.keep.results.clone().map_or_else(|| default_results(source, common), Ok)?;
    let capture = match &a.keep.capture {
        Some(p) if p == Path::new("none") => None,
        Some(p) => Some(p.clone()),
        None => Some(path.with_extension("capture.tar")),
    };
    if let Some(file) = capture.as_ref().filter(|f| f.exists() && !path.exists()) {
        return Err(Fail::error(format!("{} exists already; a capture is never overwritten", file.display()))
            .code("file_exists")
            .next("--capture FILE, or --capture none"));
    }
    let results = ResultsFile::create(&path)?;
    if let Some(file) = capture {
        let args = CaptureArgs { file: file.clone(), ..CaptureArgs::default() };
        capture::to_file(&args, &Common { quiet: true, ..common.clone() })?;
        session.environment.capture = Some(file.display().to_string());
    }
    let cx = context_of(a, &devs, &s, source, seed, policy.stop.clone());
    out::note(common.quiet, &format!("ringwise: results are written to {}", path.display()));
    Ok(Some(Ready { source, common, cx, policy, states, session, results, detect: d.detect, begin }))
}

impl<'a> Ready<'a> {
    /// Runs the session and prints its events.
    pub(super) fn run<T>(self, how: impl FnOnce(Experiment) -> ringwise_experiment::Result<T>) -> Result<T> {
        let mut log = None;
        let quiet = self.common.quiet;
        let mut tell = |e: &Event| match e {
            Event::Switching { .. } => log = Some(Logbook::open(&who(), None)),
            Event::Apply(e) => {
                if let Some(log) = &mut log {
                    log.event(e);
                }
            }
            Event::Doubt(text) => out::note(quiet, &format!("ringwise: {text}")),
            Event::CandidateFailed(e) => out::note(quiet, &format!("ringwise: {e}")),
            other => {
                if let Some(line) = line(other) {
                    out::later(quiet, line);
                }
            }
        };
        let switch = Switch::new(
            &self.source.host,
            store(self.common),
            self.policy,
            request(Title::Bench { state: None }, None),
            self.states,
        );
        let experiment =
            Experiment::new(self.cx, switch, self.session, self.results, self.detect, self.begin, &mut tell)?;
        Ok(how(experiment)?)
    }
}

/// The results and the exit status. If the session ended early, the reason is printed.
pub(super) fn ended(done: Finished) -> (Results, Status) {
    let fail = done.broken.map(Fail::from);
    if let Some(f) = &fail {
        out::fail(f);
    }
    let status = match (done.restored, fail) {
        (false, _) => Status::NotPutBack,
        (true, Some(f)) => f.status,
        (true, None) => Status::Ok,
    };
    (done.results, status)
}

/// An event as a line.
fn line(e: &Event) -> Option<String> {
    Some(match e {
        Event::Trial { number, of, slot, state, point, varies, left } => {
            let what = match slot.phase {
                Phase::Calibration => "calibration".to_string(),
                Phase::Measure => format!("block {}", slot.block + 1),
            };
            let left = left.map(|s| format!(", {} left", span(s))).unwrap_or_default();
            format!("  {number:>4}/{of} {what}: {state} {}{left}", words::point(point, varies))
        }
        Event::Rate { slot, state, point, per_s, lost_percent } => format!(
            "  block {}: {state} {}: {per_s:.0} packets/s, {lost_percent:.2} % lost",
            slot.block + 1,
            words::point(point, point)
        ),
        Event::Candidate { trial } => {
            let rate = compare::value(trial, Metric::Rate).unwrap_or(0.0);
            let p99 = compare::value(trial, Metric::LatencyP99).map(|v| format!(", p99 {v:.0} us"));
            format!("  {:>5.0} s  {}: {rate:.0}/s{}", trial.at_s, trial.state, p99.unwrap_or_default())
        }
        _ => return None,
    })
}

/// Prints what is about to happen, and how long it takes.
fn announce(a: &RunArgs, s: &Session, states: &[Prepared], load: &dyn Workload, common: &Common) {
    let points = load.points().len();
    let one = a.design.warm + a.design.trial;
    let trials = points * (states.len() * a.design.pairs as usize + 2 * a.design.calibrate as usize);
    let text = format!(
        "{}: {}, {}, {}: {} of {} s, at least {}",
        s.workload,
        plural(states.len(), "state"),
        plural(points, "point"),
        plural(a.design.pairs as usize, "block"),
        plural(trials, "trial"),
        one.as_secs_f64(),
        span(one.as_secs_f64() * trials as f64),
    );
    out::note(common.quiet, &text);
    if let Some(c) = &s.caveat {
        out::note(common.quiet, &format!("  {c}"));
    }
    for p in states {
        let n = p.changes().unwrap_or(0);
        let what = if n == 0 { String::new() } else { format!(" ({}, restored after each run)", plural(n, "setting")) };
        out::note(common.quiet, &format!("  {:<12} {}{what}", p.state.name, p.state.what));
    }
}

/// `12 s`, `3 min`, `2.5 h`, rounded up.
fn span(s: f64) -> String {
    match s {
        s if s < 120.0 => format!("{} s", s.ceil()),
        s if s < 7200.0 => format!("{} min", (s / 60.0).ceil()),
        s => format!("{:.1} h", (s / 360.0).ceil() / 10.0),
    }
}
