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
    pub loads: Vec<LoadResult>,
    pub measured: Measured,
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
    pub host: Arc<dyn Host>,
    /// Interfaces that are counted.
    pub devs: Vec<String>,
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
    /// `stop`: set by a signal; the session ends then.
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
        state: &'a str,
    },
    Apply(&'a ringwise_apply::Event),
    /// What the state in effect is not, although it was requested.
    Doubt(&'a str),
    /// Trial `number` of `of` begins. `varies`: what the points of the session differ in. `left`: estimated seconds.
    Trial {
        number: usize,
        of: usize,
        slot: &'a Slot,
        state: &'a str,
        point: &'a Point,
        varies: &'a Point,
        left: Option<f64>,
    },
    /// A trial of the search for the highest rate has ended.
    Rate {
        slot: &'a Slot,
        state: &'a str,
        point: &'a Point,
        per_s: f64,
        lost_percent: f64,
    },
    /// A trial of `search` has ended.
    Candidate {
        trial: &'a Trial,
    },
    /// It is out of the search; the host was restored.
    CandidateFailed(&'a Error),
}
