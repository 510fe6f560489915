//! What a workload sees of the session around it, and what it gives back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringwise_bench::design::Slot;
use ringwise_bench::result::{Limit, LoadResult, Point, Trial};
use ringwise_model::{CpuSet, Snapshot};
use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::meter::{Measured, Meter, ordinary};

/// One trial of a workload.
#[derive(Debug)]
pub struct Measurement {
    /// One result for each group of load threads.
    pub loads: Vec<LoadResult>,
    /// What the host under test counted meanwhile.
    pub measured: Measured,
    /// What kept it from being more.
    pub limit: Limit,
    /// Why the numbers may not mean what they should, in words.
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
    /// Loads and measures once.
    ///
    /// Errors: the peer, the link, a program; the session ends with the host as found.
    fn trial(&mut self, point: &Point, state: &str, cx: &TrialContext) -> Result<Measurement>;
    /// Ends what was started at either end.
    fn end(&mut self) {}
}

/// The same for all trials of a session.
pub struct TrialContext {
    /// The host under test.
    pub host: Arc<dyn Host>,
    /// Interfaces that are counted.
    pub devs: Vec<String>,
    /// Of the random choice of flows.
    pub seed: u64,
    /// Loaded before each trial and not counted.
    pub warmup: Duration,
    /// Measured each time.
    pub time: Duration,
    /// That are not isolated.
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

    /// Sleeps, and gives up at a signal.
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

    /// A link that went down meanwhile makes every number wrong.
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
    /// The next events of `apply` belong to the transaction that makes this state.
    Switching {
        /// Its name.
        state: &'a str,
    },
    /// Of the transaction that makes a state.
    Apply(&'a ringwise_apply::Event),
    /// What the state in effect is not, although it was requested.
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
        /// Offered packets a second.
        per_s: f64,
        /// Of what was sent, 0 to 100.
        lost_percent: f64,
    },
    /// A trial of `search` has ended.
    Candidate {
        /// As it was written to the results.
        trial: &'a Trial,
    },
    /// It is out of the search; the host was restored.
    CandidateFailed(&'a Error),
}
