//! Checks whether CPUs serve timers: a thread that is pinned to each CPU sleeps for a moment.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::tasks;
use crate::host::{Error, Request, Result};
use crate::load::pin;

const SLEEP: Duration = Duration::from_millis(10);
const BOUND: Duration = Duration::from_secs(2);
/// Number of threads at a time.
const AT_ONCE: usize = 64;

enum Said {
    Begun(i32),
    Back,
    Not(Error),
}

/// The reply to [`Request::Sleep`].
///
/// Errors: a thread cannot be started.
pub(super) fn late(request: &Request, cpus: &[u32]) -> Result<Vec<Vec<u8>>> {
    let mut reply = Vec::new();
    for some in cpus.chunks(AT_ONCE) {
        let late = together(request, some)?;
        reply.extend(late.into_iter().map(|(cpu, errno)| [cpu.to_ne_bytes(), errno.to_ne_bytes()].concat()));
    }
    Ok(reply)
}

fn together(request: &Request, cpus: &[u32]) -> Result<BTreeMap<u32, i32>> {
    let (told, said) = mpsc::channel();
    for cpu in cpus.iter().copied() {
        let told = told.clone();
        let sleeper = move || {
            // SAFETY: no arguments, no memory; it cannot fail.
            let tid = unsafe { libc::gettid() };
            let _ = told.send((cpu, Said::Begun(tid)));
            let end = match pin(cpu) {
                Ok(()) => {
                    thread::sleep(SLEEP);
                    Said::Back
                }
                Err(e) => Said::Not(e),
            };
            let _ = told.send((cpu, end));
        };
        let thread = thread::Builder::new().stack_size(64 * 1024).name(format!("sleeper-{cpu}"));
        thread.spawn(sleeper).map_err(|e| match e.raw_os_error() {
            Some(errno) => Error::errno(request.to_string(), errno),
            None => Error::other(request.to_string(), e.to_string()),
        })?;
    }
    let begin = Instant::now();
    let mut out: BTreeMap<u32, Option<i32>> = cpus.iter().map(|c| (*c, None)).collect();
    let mut failed = BTreeMap::new();
    while !out.is_empty() {
        match said.recv_timeout(BOUND.saturating_sub(begin.elapsed())) {
            Ok((cpu, Said::Begun(tid))) => {
                out.insert(cpu, Some(tid));
            }
            Ok((cpu, Said::Back)) => {
                out.remove(&cpu);
            }
            Ok((cpu, Said::Not(e))) => {
                out.remove(&cpu);
                failed.insert(cpu, e.errno.unwrap_or(libc::EINVAL));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    // Otherwise the threads would stay on a CPU that may never run them again, and this process could not end.
    for tid in out.values().flatten().filter_map(|t| u32::try_from(*t).ok()) {
        free(tid);
    }
    failed.extend(out.into_keys().map(|cpu| (cpu, 0)));
    Ok(failed)
}

/// Lets the thread run wherever the calling thread may run.
fn free(tid: u32) {
    if let Ok(cpus) = crate::isolation::allowed() {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        // If this fails, the thread has returned meanwhile.
        let _ = tasks::set_cpus(&Request::ThreadCpus { pid: tid, cpus: cpus.clone() }, tid, &cpus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(cpus: Vec<u32>) -> Result<Vec<Vec<u8>>> {
        late(&Request::Sleep { cpus: cpus.clone() }, &cpus)
    }

    #[test]
    fn cpus_that_serve_timers_are_not_late() {
        let mine: Vec<u32> = crate::isolation::allowed().unwrap().into_iter().collect();
        assert!(!mine.is_empty());
        assert_eq!(ask(mine), Ok(Vec::new()));
        assert_eq!(ask(Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn a_missing_cpu_is_distinguished() {
        let (cpu, errno) = (crate::isolation::MAX_CPU, libc::EINVAL);
        assert_eq!(ask(vec![cpu]), Ok(vec![[cpu.to_ne_bytes(), errno.to_ne_bytes()].concat()]));
    }
}
