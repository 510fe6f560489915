//! A session: points by states, in blocks and random order, always back to the host as found.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::hash::Hasher as _;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ringwise_bench::design::{Slot, order};
use ringwise_bench::result::{
    Comparison, Design, End, Environment, Limit, Line, LoadResult, Metric, Phase, Point, Port, SCHEMA, Session, Trial,
    VERSION,
};
use ringwise_bench::{compare, file::Results, stats, summary, words};
use ringwise_discover::{Options, Parts};
use ringwise_model::fnv::Fnv;
use ringwise_model::{CpuSet, Fact, NicKind, Snapshot};

use super::meter::{self, Measured, Meter};
use super::states::{self, Switch};
use crate::args::{CaptureArgs, Common, RunArgs};
use crate::cmd::capture;
use crate::cmd::transaction::{can_go_on, confirmed, policy, store};
use crate::cmd::trial::none_waits;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;
use ringwise_text::plural;
use ringwise_text::when;

/// For setting up and taking down a trial, and for a slow machine.
pub(super) const AROUND: Duration = Duration::from_secs(30);

/// What a workload gives for one trial.
pub(super) struct Got {
    pub loads: Vec<LoadResult>,
    pub measured: Measured,
    pub limit: Limit,
    pub doubts: Vec<String>,
}

/// A load and where it is measured.
pub(super) trait Workload {
    fn name(&self) -> &'static str;
    fn driver(&self) -> &'static str;
    fn peer(&self) -> Option<String>;
    /// What the peer says about itself, for the environment.
    fn peer_facts(&self) -> BTreeMap<String, String>;
    fn points(&self) -> Vec<Point>;
    /// Loads and measures once.
    ///
    /// Errors: the peer, the link, a program; the session ends with the host as found.
    fn trial(&mut self, point: &Point, state: &str, cx: &Cx) -> Result<Got>;
    /// What is to be gone before the host is left.
    fn end(&mut self) {}
}

/// Of all trials.
pub(super) struct Cx<'a> {
    pub source: &'a Source,
    pub common: &'a Common,
    /// Interfaces that are counted.
    pub devs: Vec<String>,
    pub a: &'a RunArgs,
    pub seed: u64,
    /// That are not isolated.
    cpus: CpuSet,
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl<'a> Cx<'a> {
    /// Of a look before anything is asked.
    pub(super) fn new(a: &'a RunArgs, devs: Vec<String>, s: &Snapshot, source: &'a Source, common: &'a Common) -> Self {
        Self { source, common, devs, a, seed: 1, cpus: meter::ordinary(s), stop: Default::default() }
    }

    pub(super) fn meter(&self) -> Result<Meter<'_>> {
        Meter::new(self.source, &self.devs, &self.cpus, self.common)
    }

    /// Sleeps, and gives up at a signal.
    pub(super) fn wait(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            self.go_on()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    pub(super) fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Fail::new(Status::PutBack, "stopped by a signal"));
        }
        Ok(())
    }
}

/// Results as they come: what was measured before a crash is kept.
pub(super) struct Sink {
    path: PathBuf,
    file: File,
}

impl Sink {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Fail::error(format!("{} is there already; results are never written over", path.display()))
            }
            _ => Fail::error(format!("{}: {e}", path.display())),
        })?;
        Ok(Self { path: path.into(), file })
    }

    pub(super) fn add(&mut self, line: &Line) -> Result<()> {
        let text = ringwise_bench::file::write(line).map_err(Fail::error)?;
        self.file.write_all(text.as_bytes()).map_err(|e| Fail::error(format!("{}: {e}", self.path.display())))
    }
}

/// What was made ready before anything was touched.
pub(super) struct Ready<'a> {
    pub cx: Cx<'a>,
    pub switch: Switch<'a>,
    pub session: Session,
    pub results: Sink,
    pub begin: Instant,
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
    Err(Fail::error(format!("no place for the results: {}", refused.unwrap_or_default())).next("--results FILE"))
}

/// Checks, plans the states, asks, and opens the results.
pub(super) fn ready<'a>(
    a: &'a RunArgs,
    devs: Vec<String>,
    source: &'a Source,
    common: &'a Common,
    load: &dyn Workload,
    list: &[states::Wanted],
    swept: Option<String>,
) -> Result<Ready<'a>> {
    let begin = Instant::now();
    let changing = list.iter().any(|w| w.flags.is_some());
    if changing {
        can_go_on(&a.write, "bench")?;
        none_waits(source, &store(common), &crate::style::detect(common))?;
    }
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: devs.clone(), ..Options::all() }, common)?;
    let ports = ports(source, &s, &devs)?;
    let prepared = states::prepare(list, &devs, source, common)?;
    for p in prepared.iter().filter(|p| p.changes() == Some(0)) {
        let text = format!("ringwise: state {} changes nothing here: it is the host as found", p.state.name);
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
        states: prepared.iter().map(|p| p.state.clone()).collect(),
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
        environment: environment(source, &s, &devs, load),
    };
    announce(a, &session, &prepared, load, common);
    if a.write.dry_run {
        return Err(Fail::new(Status::Ok, ""));
    }
    if changing && !confirmed(&a.write, "Measure? [y/N]", &String::new)? {
        return Err(Fail::refused("not confirmed; nothing was touched"));
    }
    let mut policy = policy()?;
    policy.force = a.force;
    let path = a.keep.results.clone().map_or_else(|| default_results(source, common), Ok)?;
    let capture = match &a.keep.capture {
        Some(p) if p == Path::new("none") => None,
        Some(p) => Some(p.clone()),
        None => Some(path.with_extension("capture.tar")),
    };
    if let Some(file) = capture.as_ref().filter(|f| f.exists() && !path.exists()) {
        return Err(Fail::error(format!("{} is there already; a capture is never written over", file.display()))
            .next("--capture FILE, or --capture none"));
    }
    let mut results = Sink::create(&path)?;
    if let Some(file) = capture {
        let args = CaptureArgs { file: file.clone(), ..CaptureArgs::default() };
        capture::to_file(&args, &Common { quiet: true, ..common.clone() })?;
        session.environment.capture = Some(file.display().to_string());
    }
    results.add(&Line::Session(Box::new(session.clone())))?;
    out::note(common.quiet, &format!("ringwise: results go to {}", path.display()));
    let stop = policy.stop.clone();
    let cx = Cx { seed, stop, ..Cx::new(a, devs, &s, source, common) };
    Ok(Ready { cx, switch: Switch::new(source, common, policy, prepared), session, results, begin })
}

/// What is about to happen, and how long it takes.
fn announce(a: &RunArgs, s: &Session, prepared: &[states::Prepared], load: &dyn Workload, common: &Common) {
    let points = load.points().len();
    let one = a.design.warm + a.design.trial;
    let trials = points * (prepared.len() * a.design.pairs as usize + 2 * a.design.calibrate as usize);
    let text = format!(
        "{}: {}, {}, {}: {} of {} s, {} at least",
        s.workload,
        plural(prepared.len(), "state"),
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
    for p in prepared {
        let n = p.changes().unwrap_or(0);
        let what =
            if n == 0 { String::new() } else { format!(" ({}, put back after each stretch)", plural(n, "setting")) };
        out::note(common.quiet, &format!("  {:<12} {}{what}", p.state.name, p.state.what));
    }
}

/// `12 s`, `3 min`, `2.5 h`, upwards.
fn span(s: f64) -> String {
    match s {
        s if s < 120.0 => format!("{} s", s.ceil()),
        s if s < 7200.0 => format!("{} min", (s / 60.0).ceil()),
        s => format!("{:.1} h", (s / 360.0).ceil() / 10.0),
    }
}

fn ports(source: &Source, s: &Snapshot, devs: &[String]) -> Result<Vec<Port>> {
    let one = |d: &String| {
        let nic = s.nic(d).ok_or_else(|| source.no_such_device(d, s))?;
        if nic.link.carrier.known() == Some(&false) {
            return Err(Fail::error(format!("{d} has no link")).next(format!("ip link set {d} up")));
        }
        Ok(Port {
            name: d.clone(),
            driver: nic.driver.known().cloned().unwrap_or_else(|| "no driver".into()),
            speed_mbit_per_s: nic.link.speed_mbps.known().map(|s| u64::from(*s)),
        })
    };
    devs.iter().map(one).collect()
}

/// A trial whose links were there to its end. Of what went wrong without a link the link is the first cause.
pub(super) fn measured(load: &mut dyn Workload, p: &Point, state: &str, cx: &Cx) -> Result<Got> {
    let got = load.trial(p, state, cx);
    match (links(cx), got) {
        (Ok(()), got) => got,
        (Err(link), Ok(_)) => Err(link),
        (Err(link), Err(f)) => Err(Fail { message: format!("{}; {}", link.message, f.message), ..f }),
    }
}

/// A link that went down meanwhile makes every number wrong.
pub(super) fn links(cx: &Cx) -> Result<()> {
    for dev in &cx.devs {
        match cx.source.host.read_text(&format!("/sys/class/net/{dev}/carrier")) {
            Ok(t) if t.trim() == "1" => {}
            Ok(_) => return Err(Fail::error(format!("{dev} has lost its link while it was measured"))),
            Err(e) => return Err(Fail::error(format!("{dev} is not there any more, or is down: {e}"))),
        }
    }
    Ok(())
}

/// What the numbers are not about.
fn caveat(s: &Snapshot, devs: &[String]) -> Option<String> {
    let soft: Vec<&str> = devs
        .iter()
        .filter(|d| s.nic(d).is_none_or(|n| matches!(n.kind, NicKind::Software { .. } | NicKind::Loopback)))
        .map(String::as_str)
        .collect();
    if !soft.is_empty() {
        return Some(format!(
            "not a NIC: {} is software; only what lies above the driver is measured",
            soft.join(", ")
        ));
    }
    let known = s.topology.hypervisor.known()?;
    Some(format!(
        "measured in a virtual machine ({known}): rates are those of its host, and caches, NUMA and SMT are not shown"
    ))
}

/// Values of the host under test that no state sets, in words.
fn environment(source: &Source, s: &Snapshot, devs: &[String], load: &dyn Workload) -> Environment {
    let mut facts = meter::facts(source.host.as_ref());
    let mut add = |name: String, f: &Fact<String>| {
        let text = match f {
            Fact::Known(v) => v.clone(),
            Fact::Absent => "none".into(),
            Fact::Unknown(u) => format!("unknown: {}", u.why),
        };
        facts.insert(name, text);
    };
    let h = &s.host;
    add("host".into(), &h.name);
    add("kernel".into(), &h.kernel);
    add("hypervisor".into(), &s.topology.hypervisor);
    add("cpus online".into(), &Fact::Known(s.topology.online.to_string()));
    add("smt".into(), &s.topology.smt_active.as_ref().map(|b| if *b { "on" } else { "off" }.to_string()));
    add(
        "irqbalance and other rivals".into(),
        &h.rivals.as_ref().map(|r| if r.is_empty() { "none".into() } else { r.join(", ") }),
    );
    if let Some(p) = &h.power {
        let words =
            |m: &BTreeMap<String, CpuSet>| m.iter().map(|(k, v)| format!("{k} on {v}")).collect::<Vec<_>>().join(", ");
        add("governor".into(), &p.governor.as_ref().map(words));
        add("aspm".into(), &p.aspm);
    }
    for d in devs {
        let Some(n) = s.nic(d) else { continue };
        add(format!("{d} driver"), &n.driver);
        add(format!("{d} firmware"), &n.firmware);
        add(format!("{d} speed Mbit/s"), &n.link.speed_mbps.as_ref().map(u32::to_string));
        add(format!("{d} mtu"), &n.link.mtu.as_ref().map(u32::to_string));
        add(format!("{d} node"), &n.node.as_ref().map(|n| n.0.to_string()));
        let channels = |c: &ringwise_model::Channels| format!("{} rx, {} tx", c.rx_queues(), c.tx_queues());
        add(format!("{d} queues as found"), &n.channels.as_ref().map(channels));
        let rings = |r: &ringwise_model::Rings| {
            let one = |c: &Option<ringwise_model::Count>| c.as_ref().map_or("-".into(), |c| c.now.to_string());
            format!("{} rx, {} tx", one(&r.rx), one(&r.tx))
        };
        add(format!("{d} rings as found"), &n.rings.as_ref().map(rings));
        let coalesce =
            |c: &ringwise_model::Coalesce| c.0.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ");
        add(format!("{d} moderation as found"), &n.coalesce.as_ref().map(coalesce));
    }
    let peer = load.peer_facts();
    let mut h = Fnv::default();
    facts.iter().chain(&peer).flat_map(|(k, v)| [k, v]).for_each(|t| h.text(t));
    let hash = format!("{:016x}", h.finish());
    Environment { hash, facts, peer, capture: None }
}

/// Everything, to the end: results, comparisons, the host as found. The status says whether it came to that.
pub(super) fn run(mut r: Ready, load: &mut dyn Workload) -> Result<(Results, Status)> {
    let points = load.points();
    let mut trials = Vec::new();
    let broken = trials_of(&mut r, load, &points, &mut trials).err();
    load.end();
    let comparisons = compare::compare(&r.session, &trials);
    finish(r, trials, Vec::new(), comparisons, broken)
}

/// Back to the host as found, the comparisons, the end of the file.
pub(super) fn finish(
    mut r: Ready,
    trials: Vec<Trial>,
    rates: Vec<ringwise_bench::result::Rate>,
    comparisons: Vec<Comparison>,
    broken: Option<Fail>,
) -> Result<(Results, Status)> {
    let mut notes: Vec<String> = broken.iter().map(|f| f.message.clone()).collect();
    let restored = match r.switch.restored() {
        Ok(wrong) => {
            notes.extend(wrong.iter().map(|w| format!("not as found: {w}")));
            wrong.is_empty()
        }
        Err(f) => {
            notes.push(f.message.clone());
            false
        }
    };
    for c in &comparisons {
        r.results.add(&Line::Comparison(Box::new(c.clone())))?;
    }
    let end = End { restored, notes, seconds: r.begin.elapsed().as_secs_f64() };
    r.results.add(&Line::End(end.clone()))?;
    let status = match (restored, &broken) {
        (false, _) => Status::NotPutBack,
        (true, Some(f)) => f.status,
        (true, None) => Status::Ok,
    };
    if let Some(f) = &broken {
        out::error(&f.to_string());
    }
    let results = Results { session: r.session, trials, comparisons, rates, end: Some(end), notes: Vec::new() };
    Ok((results, status))
}

fn trials_of(r: &mut Ready, load: &mut dyn Workload, points: &[Point], trials: &mut Vec<Trial>) -> Result<()> {
    let d = r.session.design.clone();
    let slots = order(r.session.states.len(), points.len(), d.blocks, d.calibration_blocks, d.seed);
    let one = Duration::from_secs_f64(d.warmup_s + d.trial_s) + AROUND;
    let varies = summary::varying(&points.iter().collect::<Vec<_>>());
    let mut checked = false;
    for (i, slot) in slots.iter().enumerate() {
        r.cx.go_on()?;
        if slot.phase == Phase::Measure && !checked {
            checked = true;
            detectable(r, trials)?;
        }
        let same = slots[i..].iter().take_while(|s| s.state == slot.state).count();
        r.switch.go(slot.state, one * u32::try_from(same).unwrap_or(u32::MAX))?;
        let name = r.session.states[slot.state].name.clone();
        let point = &points[slot.point];
        progress(r, slot, i, slots.len(), &name, point, &varies);
        let at_s = r.begin.elapsed().as_secs_f64();
        let got = measured(load, point, &name, &r.cx)?;
        r.switch.holds()?;
        let trial = trial(point.clone(), &name, slot, at_s, got, &r.switch.doubts);
        r.results.add(&Line::Trial(Box::new(trial.clone())))?;
        trials.push(trial);
    }
    Ok(())
}

/// `state_doubts`: of the state in force.
pub(super) fn trial(point: Point, state: &str, slot: &Slot, at_s: f64, got: Got, state_doubts: &[String]) -> Trial {
    Trial {
        point,
        state: state.to_string(),
        phase: slot.phase,
        block: slot.block,
        order: slot.order,
        at_s,
        seconds: got.measured.seconds,
        loads: got.loads,
        host: got.measured.side,
        limit: got.limit,
        doubts: got.doubts.into_iter().chain(state_doubts.iter().cloned()).collect(),
    }
}

/// `varies`: what the points differ in; the rest has been said.
fn progress(r: &Ready, slot: &Slot, i: usize, of: usize, state: &str, point: &Point, varies: &Point) {
    let what = match slot.phase {
        Phase::Calibration => "calibration".to_string(),
        Phase::Measure => format!("block {}", slot.block + 1),
    };
    let left = r.begin.elapsed().as_secs_f64() / (i as f64).max(1.0) * (of - i) as f64;
    let left = if i == 0 { String::new() } else { format!(", {} left", span(left)) };
    let at = words::point(point, varies);
    out::later(r.cx.common.quiet, format!("  {:>4}/{of} {what}: {state} {at}{left}", i + 1));
}

/// `--detect`: refused before anything is switched where so many pairs with this noise could not find it.
fn detectable(r: &Ready, trials: &[Trial]) -> Result<()> {
    let Some(wanted) = r.cx.a.design.detect else { return Ok(()) };
    let metric = compare::primary(&r.session.workload).first().copied().unwrap_or(Metric::Rate);
    let points = compare::points(trials);
    let noise = |p: &&Point| {
        let here: Vec<&Trial> = trials.iter().filter(|t| t.point == **p).collect();
        compare::calibration_noise(&here, metric)
    };
    let Some(noise) = points.iter().filter_map(noise).reduce(f64::max) else {
        return Err(Fail::error("--detect needs --calibrate 2 or more: without it the noise is not known"));
    };
    let (pairs, alpha) = (r.session.design.blocks, r.session.design.alpha);
    let comparisons = points.len() * compare::primary(&r.session.workload).len() * (r.session.states.len() - 1).max(1);
    let can = stats::detectable(noise, pairs, alpha, comparisons);
    if can.is_some_and(|c| c <= wanted) {
        return Ok(());
    }
    let need = stats::pairs_for(wanted, noise, alpha, comparisons);
    let best = can.map_or("none at all".to_string(), |c| format!("{c:.1} % at best"));
    Err(Fail::error(format!(
        "a change of {wanted} % in {} would not be found: the first state measured against itself varies by {noise:.1} %, and \
         {pairs} pairs find {best}",
        metric.name()
    ))
    .next(format!("--pairs {need}, or longer trials (--trial)")))
}
