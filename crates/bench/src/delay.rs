//! Measures how late an ordinary thread runs that wakes up every ten milliseconds (every millisecond would be a load of
//! its own). This is the effect of interrupts and softirqs on programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringwise_sys::load::{pin, timer_slack};

use crate::error::ThreadError;
use crate::hist::Hist;

const EACH: Duration = Duration::from_millis(10);

/// Why delays are not measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A CPU or a timer that the kernel refused.
    #[error(transparent)]
    Sys(#[from] ringwise_sys::Error),
    /// A thread that could not be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

/// One pinned thread of ordinary priority for each CPU. Dropping this ends them.
pub struct DelayProbe {
    stop: Arc<AtomicBool>,
    threads: Vec<(u32, JoinHandle<Hist>)>,
}

impl DelayProbe {
    /// Errors: a thread cannot be started or cannot be pinned to its CPU, with errno.
    pub fn start(cpus: &[u32]) -> Result<Self, Error> {
        let mut probe = Self { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let (ready, all_ready) = mpsc::channel();
        for &cpu in cpus {
            let (ready, stop) = (ready.clone(), probe.stop.clone());
            let work = move || {
                let here = pin(cpu).and_then(|()| timer_slack(1));
                let good = here.is_ok();
                let _ = ready.send(here);
                drop(ready);
                if good { watch(&stop) } else { Hist::new() }
            };
            let builder = std::thread::Builder::new().name("delay".into()).stack_size(128 << 10);
            let thread = builder.spawn(work).map_err(ThreadError::not_started)?;
            probe.threads.push((cpu, thread));
        }
        drop(ready);
        for _ in cpus {
            all_ready.recv().map_err(|_| ThreadError::EndedEarly { thread: "thread" })??;
        }
        Ok(probe)
    }

    /// CPU, p99 and longest delay in us. CPUs on which the thread never ran are skipped.
    pub fn stop(mut self) -> Vec<(u32, f64, f64)> {
        self.end()
    }

    fn end(&mut self) -> Vec<(u32, f64, f64)> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = |(cpu, thread): (u32, JoinHandle<Hist>)| {
            let latency = thread.join().ok()?.latency(true)?;
            Some((cpu, latency.p99_us, latency.max_us))
        };
        self.threads.drain(..).filter_map(seen).collect()
    }
}

impl Drop for DelayProbe {
    fn drop(&mut self) {
        self.end();
    }
}

/// Each intended wake-up is a sample, including those at which the thread could not run.
fn watch(stop: &AtomicBool) -> Hist {
    let mut hist = Hist::new();
    let mut wanted = Instant::now() + EACH;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(wanted.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        while wanted <= now {
            hist.add((now - wanted).as_nanos() as u64);
            wanted += EACH;
        }
    }
    hist
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_reported_and_a_missing_one_is_refused() {
        let probe = DelayProbe::start(&[0]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let seen = probe.stop();
        assert_eq!((seen.len(), seen[0].0), (1, 0));
        assert!(seen[0].1 > 0.0 && seen[0].2 >= seen[0].1 * 0.99, "{seen:?}");
        let why = DelayProbe::start(&[0, 8190]).err().unwrap().to_string();
        assert!(why.contains("CPU 8190") && why.contains("EINVAL"), "{why}");
    }
}
