//! `ringwise bench search`: queue count, ring size, moderation and placement for one workload, by successive halving
//! within a time. The host is left as found; what was found is a configuration file with its evidence.

use std::time::{Duration, Instant};

use ringwise_bench::halving::{Halving, Outcome, Who};
use ringwise_bench::result::{Line, Metric, Phase, Point, Trial};
use ringwise_bench::{compare, design::Slot};
use ringwise_discover::{Options, Parts};
use ringwise_model::{Count, Goal, Snapshot};

use super::forward::Forward;
use super::load::{Kind, Messages};
use super::session::{self, Ready, Workload};
use super::states::{self, Wanted};
use super::{report, sides};
use crate::args::{Among, Common, SearchArgs, SearchFor};
use crate::cmd::{goals, show, wanted};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_text::plural;

pub(super) fn run(a: &SearchArgs, common: &Common) -> Result<Status> {
    let run = &a.run;
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: run.devs.clone(), ..Options::all() }, common)?;
    let (mut load, devs): (Box<dyn Workload>, Vec<String>) = match a.workload {
        SearchFor::Forward => {
            let f = Forward::open(run, &s, &source)?;
            let devs = f.devs();
            (Box::new(f), devs)
        }
        other => {
            let kind = match other {
                SearchFor::Rr => Kind::Rr,
                SearchFor::Burst => Kind::Burst,
                _ => Kind::Stream,
            };
            let dev = run.devs.first().ok_or_else(|| Fail::usage("no interface is named").next("ringwise show"))?;
            show::names_in(&source, &s, &run.devs)?;
            let address = sides::address(run, dev, &s)?;
            (Box::new(Messages::new(kind, run, sides::open(&run.peer)?, address, &s)?), run.devs.clone())
        }
    };
    let points = load.points();
    let [point] = points.as_slice() else {
        return Err(Fail::usage(format!(
            "search is for one point, and these are {}: name one size and one number of threads (--size 256 --threads 4)",
            points.len()
        )));
    };
    let (mut list, _) = states::wanted(&run.states)?;
    // Somebody's own candidates stand beside ours.
    list.extend(candidates(&s, &devs, &a.among, a.allow_disruption));
    let mut ready = session::ready(run, devs.clone(), &source, common, load.as_ref(), &list, None)?;
    let mut trials = Vec::new();
    let mut proof = None;
    let searched = search(a, &mut ready, load.as_mut(), point, &mut trials, &mut proof);
    load.end();
    let states: Vec<String> = ready.session.states.iter().map(|s| s.name.clone()).collect();
    let (outcome, broken) = match searched {
        Ok(o) => (Some(o), None),
        Err(f) => (None, Some(f)),
    };
    // Trials that chose one would flatter it: only those of the proof are compared.
    let comparisons = compare::compare(&ready.session, &trials[proof.unwrap_or(trials.len())..]);
    let (results, status) = session::finish(ready, trials, Vec::new(), comparisons, broken)?;
    if let Some(page) = &run.keep.html {
        report::page(&results, page, common)?;
    }
    let Some(o) = outcome.filter(|_| status == Status::Ok) else { return Ok(status) };
    let words = evidence(&o, &states, metric(a));
    let found = o.winner.map(|w| &list[w + 1]);
    let text = match found {
        None => format!("{words}\nNone of them is better than the host as found.\n"),
        Some(w) => {
            let lines: String = words.lines().map(|l| format!("# {l}\n")).collect();
            format!("{lines}{}", file(w, &devs, &s, common)?)
        }
    };
    match (&a.save, found) {
        (Some(path), Some(w)) => {
            ringwise_sys::store::write_atomic(path, text.as_bytes()).map_err(|e| Fail::error(e.to_string()))?;
            out::answer(&format!(
                "{words}\n{} is in {}: ringwise apply --config {}\n",
                w.name,
                path.display(),
                path.display()
            ))?;
        }
        _ => out::answer(&text)?,
    }
    Ok(status)
}

/// What one can do about an interface, each alone, and the most likely together.
fn candidates(s: &Snapshot, devs: &[String], among: &[Among], disruption: bool) -> Vec<Wanted> {
    let of = |kind: Among| among.is_empty() || among.contains(&kind);
    let mut out: Vec<Wanted> = Vec::new();
    let mut add = |name: String, flags: String| {
        let disrupt = if disruption { " --allow-disruption" } else { "" };
        out.push(Wanted { name, flags: Some(format!("{flags}{disrupt}")), value: None });
    };
    let goals = [Goal::Balanced, Goal::Forward, Goal::Rpc, Goal::Stream, Goal::Latency];
    for g in goals.into_iter().filter(|_| of(Among::Placement)) {
        add(g.to_string(), format!("--goal {g}"));
    }
    let each =
        |key: &str, value: String| -> String { devs.iter().map(|d| format!(" --set {d}.{key}={value}")).collect() };
    for usecs in [0, 20, 62, 125].into_iter().filter(|_| of(Among::Moderation)) {
        add(format!("rx-usecs={usecs}"), each("coalesce.rx-usecs", usecs.to_string()));
    }
    if !disruption {
        return out;
    }
    let nic = devs.first().and_then(|d| s.nic(d));
    let most = nic.and_then(|n| n.channels.known()).and_then(|c| c.combined.as_ref()).map_or(0, |c: &Count| c.max);
    let cores = u32::try_from(s.topology.online.iter().count()).unwrap_or(1);
    let mut n = 1;
    while n <= most.min(cores) && of(Among::Queues) {
        add(format!("queues={n}"), format!("--queues {n}"));
        n *= 2;
    }
    let ring = nic.and_then(|n| n.rings.known()).and_then(|r| r.rx.as_ref()).map(|c: &Count| (c.now, c.max));
    if let Some((now, max)) = ring.filter(|_| of(Among::Rings)) {
        for n in [now * 4, max, now / 2] {
            if n != now && (64..=max).contains(&n) {
                add(format!("ring={n}"), each("rings.rx", n.to_string()));
            }
        }
        let usecs = each("coalesce.rx-usecs", "62".into());
        add("bulk-large".into(), format!("--goal stream{}{usecs}", each("rings.rx", max.to_string())));
    }
    out
}

/// What a candidate is measured by.
fn metric(a: &SearchArgs) -> Metric {
    match a.workload {
        SearchFor::Rr => Metric::LatencyP99,
        _ => Metric::Rate,
    }
}

/// Higher is better.
fn score(t: &Trial, metric: Metric) -> Option<f64> {
    let v = compare::value(t, metric).filter(|v| *v > 0.0)?;
    Some(if metric.higher_is_better() { v } else { 1e9 / v })
}

fn search(
    a: &SearchArgs,
    r: &mut Ready,
    load: &mut dyn Workload,
    p: &Point,
    trials: &mut Vec<Trial>,
    proof: &mut Option<usize>,
) -> Result<Outcome> {
    let metric = metric(a);
    let hold = a.run.design.warm + a.run.design.trial + session::AROUND;
    let begin = Instant::now();
    // What one takes here, switching and putting back included, nobody knows before.
    let candidates = r.session.states.len() - 1;
    if candidates == 0 {
        return Err(Fail::error("there is no candidate"));
    }
    one(r, load, p, (Phase::Calibration, 1, 0, 0), hold, trials)?;
    let each = begin.elapsed().max(Duration::from_millis(1));
    trials.clear();
    let budget = (a.budget.saturating_sub(begin.elapsed()).as_secs_f64() / each.as_secs_f64()) as u32;
    let d = &r.session.design;
    let mut h = Halving::new(candidates, budget, d.alpha, d.equivalent_percent, d.seed).map_err(|e| {
        let need = (each.as_secs_f64() * f64::from(e.needed) / 60.0).ceil();
        Fail::error(format!("{e}; one takes {:.1} s here", each.as_secs_f64()))
            .next(format!("--budget {need}m, or a shorter --trial"))
    })?;
    let mut block = 0;
    loop {
        let asked = h.ask().to_vec();
        if asked.is_empty() || begin.elapsed() > a.budget {
            break;
        }
        // The last one and the start: the proof.
        if asked.len() == 2 {
            proof.get_or_insert(trials.len());
        }
        let mut scores = Vec::new();
        for (order, who) in (0..).zip(&asked) {
            let state = match who {
                Who::Start => 0,
                Who::Candidate(c) => c + 1,
            };
            let n = trials.len();
            let done = one(r, load, p, (Phase::Measure, state, block, order), hold, trials);
            match done {
                Ok(()) => scores.push(trials.get(n).and_then(|t| score(t, metric))),
                // A candidate that cannot be had here is out; the host was put back.
                Err(f) if f.status == Status::PutBack && state != 0 && r.cx.go_on().is_ok() => {
                    out::note(r.cx.common.quiet, &format!("ringwise: {}", f.message));
                    scores.push(None);
                }
                Err(f) => return Err(f),
            }
        }
        h.saw(&scores);
        block += 1;
    }
    h.outcome().ok_or_else(|| {
        Fail::error("the time was over before one was proved better").next("a longer --budget, or a shorter --trial")
    })
}

fn one(
    r: &mut Ready,
    load: &mut dyn Workload,
    p: &Point,
    (phase, state, block, order): (Phase, usize, u32, u32),
    hold: Duration,
    trials: &mut Vec<Trial>,
) -> Result<()> {
    r.cx.go_on()?;
    r.switch.go(state, hold)?;
    let name = r.session.states[state].name.clone();
    let at_s = r.begin.elapsed().as_secs_f64();
    let got = session::measured(load, p, &name, &r.cx)?;
    r.switch.holds()?;
    let slot = Slot { phase, block, order, state, point: 0, second: false };
    let trial = session::trial(p.clone(), &name, &slot, at_s, got, &r.switch.doubts);
    let rate = compare::value(&trial, Metric::Rate).unwrap_or(0.0);
    let p99 = compare::value(&trial, Metric::LatencyP99).map(|v| format!(", p99 {v:.0} us")).unwrap_or_default();
    out::later(r.cx.common.quiet, format!("  {:>5.0} s  {name}: {rate:.0}/s{p99}", at_s));
    r.results.add(&Line::Trial(Box::new(trial.clone())))?;
    trials.push(trial);
    Ok(())
}

/// Who was dropped and why, and what the last one is worth.
fn evidence(o: &Outcome, states: &[String], metric: Metric) -> String {
    let name = |c: usize| states.get(c + 1).map_or("?", String::as_str);
    let mut text = {
        let (trials, all) = (plural(o.trials as usize, "trial"), plural(states.len() - 1, "candidate"));
        format!("{trials} of {all}, by {}\n", metric.name())
    };
    for d in &o.dropped {
        let change = d
            .change_percent
            .map(|c| format!(" ({c:+.1} % against the start, of {})", plural(d.blocks as usize, "block")));
        text.push_str(&format!("  round {}: {} out{}\n", d.round + 1, name(d.candidate), change.unwrap_or_default()));
    }
    if let Some(p) = &o.proof {
        let interval = p.low_percent.zip(p.high_percent).map(|(l, h)| format!(" [{l:+.1} ... {h:+.1}]"));
        let change = p.change_percent.map_or("unknown".into(), |c| format!("{c:+.1} %"));
        let who = o.winner.map_or("the last one", name);
        text.push_str(&format!(
            "  proof: {who} against the start: {change}{} of {}\n",
            interval.unwrap_or_default(),
            plural(p.pairs as usize, "pair")
        ));
    }
    for n in &o.notes {
        text.push_str(&format!("  {n}\n"));
    }
    if !metric.higher_is_better() {
        text.push_str("  (its inverse is compared: more is better)\n");
    }
    text
}

/// The configuration that says the same as a state's flags.
fn file(w: &Wanted, devs: &[String], s: &Snapshot, common: &Common) -> Result<String> {
    let intent = states::intent(w, w.flags.as_deref().unwrap_or_default())?;
    let full = wanted::read(devs, &intent, false)?.joined(|| Ok(s.clone()), common)?;
    Ok(ringwise_config::print(&full) + &goals::lay_down(&full))
}
