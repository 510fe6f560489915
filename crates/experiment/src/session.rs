//! A session: points by states, in blocks and in random order. At the end the host is restored.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringwise_bench::design::{Slot, order};
use ringwise_bench::file::Results;
use ringwise_bench::result::{Comparison, End, Metric, Phase, Point, Rate, ResultLine, Session, Trial};
use ringwise_bench::{compare, file, stats, summary};

use crate::context::{Event, Measurement, TrialContext, Workload};
use crate::error::{Error, Result};
use crate::states::Switch;

/// Extra time for setting up and ending a trial, and for slow machines.
const AROUND: Duration = Duration::from_secs(30);

/// Writes each result at once, so that a crash loses none.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Errors: the file exists, or cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Error::ResultsExist(path.into()),
            _ => Error::Results { path: path.into(), error: e },
        })?;
        Ok(Self { path: path.into(), file })
    }

    fn add(&mut self, line: &ResultLine) -> Result<()> {
        let text = file::write(line)?;
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Error::Results { path: self.path.clone(), error })
    }
}

/// A session whose states are planned and whose results have a file.
pub struct Experiment<'a> {
    pub(crate) cx: TrialContext,
    pub(crate) switch: Switch<'a>,
    pub(crate) session: Session,
    results: ResultsFile,
    /// Refuse to switch states unless a change of this many per cent would be found in 80 of 100 cases.
    detect: Option<f64>,
    pub(crate) begin: Instant,
    pub(crate) tell: &'a mut dyn FnMut(&Event),
}

/// The outcome of a session.
#[derive(Debug)]
pub struct Finished {
    /// The results, with their end record.
    pub results: Results,
    /// The host is as it was found.
    pub restored: bool,
    /// Why the session ended early.
    pub broken: Option<Error>,
}

impl<'a> Experiment<'a> {
    /// Writes `session` to `results`. `begin`: the origin of all times. `tell` is called for each event.
    ///
    /// Errors: the results cannot be written.
    pub fn new(
        cx: TrialContext,
        switch: Switch<'a>,
        session: Session,
        mut results: ResultsFile,
        detect: Option<f64>,
        begin: Instant,
        tell: &'a mut dyn FnMut(&Event),
    ) -> Result<Self> {
        results.add(&ResultLine::Session(Box::new(session.clone())))?;
        Ok(Self { cx, switch, session, results, detect, begin, tell })
    }

    /// Runs the whole session: trials, comparisons, restoring the host.
    ///
    /// Errors: the results cannot be written. All other errors are in [`Finished::broken`].
    pub fn run(mut self, load: &mut dyn Workload) -> Result<Finished> {
        let points = load.points();
        let mut trials = Vec::new();
        let broken = self.trials(load, &points, &mut trials).err();
        load.end();
        let comparisons = compare::compare(&self.session, &trials);
        self.finish(trials, Vec::new(), comparisons, broken)
    }

    /// Restores the host, compares, and completes the file.
    pub(crate) fn finish(
        mut self,
        trials: Vec<Trial>,
        rates: Vec<Rate>,
        comparisons: Vec<Comparison>,
        broken: Option<Error>,
    ) -> Result<Finished> {
        let mut notes: Vec<String> = broken.iter().map(Error::to_string).collect();
        let restored = match self.switch.restored() {
            Ok(wrong) => {
                notes.extend(wrong.iter().map(|w| format!("not restored: {w}")));
                wrong.is_empty()
            }
            Err(e) => {
                notes.push(e.to_string());
                false
            }
        };
        for c in &comparisons {
            self.results.add(&ResultLine::Comparison(Box::new(c.clone())))?;
        }
        let end = End { restored, notes, seconds: self.begin.elapsed().as_secs_f64() };
        self.results.add(&ResultLine::End(end.clone()))?;
        let results = Results { session: self.session, trials, comparisons, rates, end: Some(end), notes: Vec::new() };
        Ok(Finished { results, restored, broken })
    }

    fn trials(&mut self, load: &mut dyn Workload, points: &[Point], trials: &mut Vec<Trial>) -> Result<()> {
        let d = self.session.design.clone();
        let slots = order(self.session.states.len(), points.len(), d.blocks, d.calibration_blocks, d.seed);
        let one = self.one();
        let varies = summary::varying(&points.iter().collect::<Vec<_>>());
        let mut checked = false;
        for (i, slot) in slots.iter().enumerate() {
            self.cx.go_on()?;
            if slot.phase == Phase::Measure && !checked {
                checked = true;
                self.detectable(trials)?;
            }
            let same = slots[i..].iter().take_while(|s| s.state == slot.state).count();
            self.go(slot.state, one * u32::try_from(same).unwrap_or(u32::MAX))?;
            let state = self.state(slot);
            let point = &points[slot.point];
            let (number, of) = (i + 1, slots.len());
            let left = (i > 0).then(|| self.begin.elapsed().as_secs_f64() / i as f64 * (of - i) as f64);
            (self.tell)(&Event::Trial { number, of, slot, state: &state, point, varies: &varies, left });
            let at_s = self.begin.elapsed().as_secs_f64();
            let got = self.measured(load, point, &state)?;
            let trial = self.keep(point.clone(), slot, at_s, got)?;
            trials.push(trial);
        }
        Ok(())
    }

    /// The longest time of one trial, with setup and cleanup.
    pub(crate) fn one(&self) -> Duration {
        self.cx.warmup + self.cx.time + AROUND
    }

    pub(crate) fn state(&self, slot: &Slot) -> String {
        self.session.states[slot.state].name.clone()
    }

    /// See [`Switch::go`].
    pub(crate) fn go(&mut self, state: usize, hold: Duration) -> Result<()> {
        self.switch.go(state, hold, self.tell)
    }

    /// Runs a trial and checks its links. If a link was lost, it is reported as the cause of other errors.
    pub(crate) fn measured(&self, load: &mut dyn Workload, p: &Point, state: &str) -> Result<Measurement> {
        let got = load.trial(p, state, &self.cx);
        match (self.cx.links(), got) {
            (Ok(()), got) => got,
            (Err(link), Ok(_)) => Err(link),
            (Err(link), Err(error)) => Err(Error::WithoutLink { link: Box::new(link), error: Box::new(error) }),
        }
    }

    /// Stores a trial if its state was in effect until now.
    pub(crate) fn keep(&mut self, point: Point, slot: &Slot, at_s: f64, got: Measurement) -> Result<Trial> {
        self.switch.holds()?;
        let trial = Trial {
            point,
            state: self.state(slot),
            phase: slot.phase,
            block: slot.block,
            order: slot.order,
            at_s,
            seconds: got.measured.seconds,
            loads: got.loads,
            host: got.measured.side,
            limit: got.limit,
            doubts: got.doubts.into_iter().chain(self.switch.doubts.iter().cloned()).collect(),
        };
        self.results.add(&ResultLine::Trial(Box::new(trial.clone())))?;
        Ok(trial)
    }

    pub(crate) fn keep_rate(&mut self, rate: &Rate) -> Result<()> {
        self.results.add(&ResultLine::Rate(Box::new(rate.clone())))
    }

    /// Refuses before any switch if this number of pairs could not find the change with this noise.
    fn detectable(&self, trials: &[Trial]) -> Result<()> {
        let Some(wanted) = self.detect else { return Ok(()) };
        let metric = compare::primary(&self.session.workload).first().copied().unwrap_or(Metric::Rate);
        let points = compare::points(trials);
        let noise = |p: &&Point| {
            let here: Vec<&Trial> = trials.iter().filter(|t| t.point == **p).collect();
            compare::calibration_noise(&here, metric)
        };
        let noise = points.iter().filter_map(noise).reduce(f64::max).ok_or(Error::NoiseUnknown)?;
        let (pairs, alpha) = (self.session.design.blocks, self.session.design.alpha);
        let primary = compare::primary(&self.session.workload).len();
        let comparisons = points.len() * primary * (self.session.states.len() - 1).max(1);
        let can = stats::detectable(noise, pairs, alpha, comparisons);
        if can.is_some_and(|c| c <= wanted) {
            return Ok(());
        }
        let need = stats::pairs_for(wanted, noise, alpha, comparisons);
        Err(Error::NotDetectable { wanted, metric: metric.name(), noise, pairs, can, need })
    }
}
