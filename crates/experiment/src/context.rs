//! What a workload knows about its session, and what it returns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringwise_bench::design::Slot;
use ringwise_bench::result::{Limit, LoadResult, Point, Trial};
use ringwise_model::{CpuSet, Snapshot};
use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::meter::{Meter, MeterReading, ordinary};

/// One trial of a workload.
#[derive(Debug)]
pub struct Measurement {
    /// One result for each group of load threads.
    pub loads: Vec<LoadResult>,
    /// What the host under test counted during the trial.
    pub measured: MeterReading,
    /// What limited the result.
    pub limit: Limit,
    /// Why the numbers may be misleading, as text.
    pub doubts: Vec<String>,
}

/// A load and where it is measured.
pub trait Workload {
    /// As in [`ringwise_bench::result::Session::workload`].
    fn name(&self) -> &'static str;
    /// As in [`ringwise_bench::result::Session::driver`].
    fn driver(&self) -> &'static str;
    /// The name of the other end.
    fn peer(&self) -> Option<String>;
    /// What the peer reports about itself, for the environment.
    fn peer_facts(&self) -> BTreeMap<String, String>;
    /// Every combination of the axes, in the order in which results are shown.
    fn points(&self) -> Vec<Point>;
    /// Runs the load and measures once.
    ///
    /// Errors: the peer, the link or a program fails. The session then ends and restores the host.
    fn trial(&mut self, point: &Point, state: &str, cx: &TrialContext) -> Result<Measurement>;
    /// Ends what was started at both ends.
    fn end(&mut self) {}
}

/// Values that are the same for all trials of a session.
pub struct TrialContext {
    /// The host under test.
    pub host: Arc<dyn Host>,
    /// Interfaces that are counted.
    pub devs: Vec<String>,
    /// Seed of the random choice of flows.
    pub seed: u64,
    /// How long the load runs before each trial without being counted.
    pub warmup: Duration,
    /// Measured time of each trial.
    pub time: Duration,
    /// CPUs that are not isolated.
    cpus: CpuSet,
    stop: Arc<AtomicBool>,
}

impl TrialContext {
    /// Times are the warm-up and the measured time of each trial. `stop`: set by a signal; the session ends then.
    pub fn new(
        host: &Arc<dyn Host>,
        s: &Snapshot,
        devs: &[String],
        seed: u64,
        (warmup, time): (Duration, Duration),
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { host: host.clone(), devs: devs.to_vec(), seed, warmup, time, cpus: ordinary(s), stop }
    }

    pub(crate) fn meter(&self) -> Result<Meter<'_>> {
        Meter::new(&self.host, &self.devs, &self.cpus)
    }

    /// Sleeps. Returns an error when a signal arrives.
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
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

    pub(crate) fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Fails if a link went down during the trial, because then every number is wrong.
    pub(crate) fn links(&self) -> Result<()> {
        for dev in &self.devs {
            match self.host.read_text(&format!("/sys/class/net/{dev}/carrier")) {
                Ok(t) if t.trim() == "1" => {}
                Ok(_) => return Err(Error::LinkLost { dev: dev.clone() }),
                Err(error) => return Err(Error::LinkGone { dev: dev.clone(), error }),
            }
        }
        Ok(())
    }
}

/// What a session reports while it runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A state is about to be applied; the next `Apply` events belong to its transaction.
    Switching {
        /// Its name.
        state: &'a str,
    },
    /// An event of the transaction that applies a state.
    Apply(&'a ringwise_apply::Event),
    /// A requested setting that is not in effect, although its state is.
    Doubt(&'a str),
    /// A trial begins.
    Trial {
        /// Counted from 1.
        number: usize,
        /// Trials of the session.
        of: usize,
        /// Its place in the order of the session.
        slot: &'a Slot,
        /// Name of the state that is measured.
        state: &'a str,
        /// What is loaded.
        point: &'a Point,
        /// What the points of the session differ in.
        varies: &'a Point,
        /// Estimated seconds to the end of the session; none before the first trial has ended.
        left: Option<f64>,
    },
    /// A trial of the search for the highest rate has ended.
    Rate {
        /// Its place in the order of the session.
        slot: &'a Slot,
        /// Name of the state that is measured.
        state: &'a str,
        /// What is loaded, without the rate.
        point: &'a Point,
        /// Offered packets per second.
        per_s: f64,
        /// Of what was sent, 0 to 100.
        lost_percent: f64,
    },
    /// A trial of `search` has ended.
    Candidate {
        /// As it was written to the results.
        trial: &'a Trial,
    },
    /// A candidate dropped out of the search; the host was restored.
    CandidateFailed(&'a Error),
}
