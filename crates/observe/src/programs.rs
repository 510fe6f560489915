//! Threads of programs that use much of a CPU.
//!
//! Reading every thread twice would cost more than everything else that `check` reads. So processes are compared first, and then
//! only the threads of those that were busy.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_kfmt::procstat::{self, TaskStat};
use ringwise_model::BusyThread;
use ringwise_model::order::Order;
use ringwise_sys::Host;

/// The part of a CPU, in per cent, from which a process or thread is busy.
pub const BUSY_PERCENT: f64 = 20.0;
/// On a host with more processes they are not read, because that would take longer than the rest of a check.
const MOST_PROCESSES: usize = 8192;
/// Threads of busy processes that are read.
const MOST_THREADS: usize = 2048;
/// `USER_HZ` of every architecture that Linux still supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// The times of all processes at one moment.
#[derive(Debug)]
pub struct ProcessTimes {
    at: Duration,
    by_pid: BTreeMap<u32, TaskStat>,
}

/// The times of the threads of busy processes at one moment.
#[derive(Debug)]
pub struct ThreadTimes {
    at: Duration,
    by_id: BTreeMap<(u32, u32), TaskStat>,
}

impl ProcessTimes {
    /// Reads `/proc/PID/stat` of each process. `None`: they cannot be listed, or there are too many.
    pub fn read(host: &dyn Host) -> Option<Self> {
        let pids: Vec<u32> = numbers(host, "/proc")?;
        if pids.len() > MOST_PROCESSES {
            return None;
        }
        let at = host.since_boot();
        let by_pid =
            pids.into_iter().filter_map(|pid| Some((pid, read(host, &format!("/proc/{pid}/stat"))?))).collect();
        Some(Self { at, by_pid })
    }

    /// Reads the threads of the processes that were busy since these times were read. `None`: as `read`, or too many threads.
    pub fn busy_threads(&self, host: &dyn Host) -> Option<ThreadTimes> {
        let now = Self::read(host)?;
        let time = now.at.saturating_sub(self.at);
        let busy = |pid: &u32, now: &TaskStat| {
            self.by_pid.get(pid).is_some_and(|before| percent(before, now, time).is_some_and(|p| p >= BUSY_PERCENT))
        };
        let at = host.since_boot();
        let mut by_id = BTreeMap::new();
        for (pid, _) in now.by_pid.iter().filter(|(pid, t)| busy(pid, t)) {
            // The process may have ended.
            let tids = numbers(host, &format!("/proc/{pid}/task")).unwrap_or_default();
            if by_id.len() + tids.len() > MOST_THREADS {
                return None;
            }
            by_id.extend(tids.into_iter().filter_map(|tid| Some(((*pid, tid), thread(host, *pid, tid)?))));
        }
        Some(ThreadTimes { at, by_id })
    }
}

impl ThreadTimes {
    /// The threads that were busy since these times were read, the busiest one first.
    pub fn busy(&self, host: &dyn Host) -> Vec<BusyThread> {
        let time = host.since_boot().saturating_sub(self.at);
        let thread = |(&(pid, tid), before): (&(u32, u32), &TaskStat)| {
            let now = thread(host, pid, tid)?;
            let percent = percent(before, &now, time).filter(|p| *p >= BUSY_PERCENT)?;
            let cpus = [before.cpu, now.cpu];
            Some(BusyThread { name: now.name, pid, tid, cpus, percent, real_time: now.real_time })
        };
        let mut out: Vec<BusyThread> = self.by_id.iter().filter_map(thread).collect();
        out.order_by(|a, b| b.percent.total_cmp(&a.percent).then(a.tid.cmp(&b.tid)));
        out
    }
}

/// `None`: another task, a thread of the kernel, or no time has passed.
fn percent(before: &TaskStat, now: &TaskStat, time: Duration) -> Option<f64> {
    if now.of_kernel || before.began_ticks != now.began_ticks || time.is_zero() {
        return None;
    }
    let ticks = now.ticks.checked_sub(before.ticks)?;
    Some(ticks as f64 * 100.0 / TICKS_PER_SECOND / time.as_secs_f64())
}

fn numbers(host: &dyn Host, directory: &str) -> Option<Vec<u32>> {
    let names = host.list(directory).ok()?;
    Some(names.iter().filter_map(|n| n.parse().ok()).collect())
}

fn thread(host: &dyn Host, pid: u32, tid: u32) -> Option<TaskStat> {
    read(host, &format!("/proc/{pid}/task/{tid}/stat"))
}

fn read(host: &dyn Host, path: &str) -> Option<TaskStat> {
    procstat::task(&host.read_text(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ringwise_model::CpuId;
    use ringwise_model::errno::{ENOENT, EPERM};
    use ringwise_sys::{Clock, Error, Request, Result};

    use super::*;

    /// Files of `/proc` and a clock that the test sets.
    struct Fake {
        now: Mutex<Duration>,
        files: Mutex<BTreeMap<String, String>>,
    }

    impl Clock for Fake {
        fn since_boot(&self) -> Duration {
            *self.now.lock().unwrap()
        }
        fn unix_time(&self) -> u64 {
            0
        }
        fn sleep(&self, time: Duration) {
            *self.now.lock().unwrap() += time;
        }
    }

    impl Host for Fake {
        fn read(&self, path: &str) -> Result<Vec<u8>> {
            let text = self.files.lock().unwrap().get(path).cloned();
            text.map(String::into_bytes).ok_or_else(|| Error::errno(path, ENOENT))
        }
        fn write(&self, path: &str, _: &[u8]) -> Result<()> {
            Err(Error::errno(path, EPERM))
        }
        fn list(&self, path: &str) -> Result<Vec<String>> {
            let files = self.files.lock().unwrap();
            let below = files.keys().filter_map(|f| f.strip_prefix(&format!("{path}/"))?.split('/').next());
            Ok(below.map(str::to_string).chain(["self".to_string()]).collect())
        }
        fn readlink(&self, path: &str) -> Result<String> {
            Err(Error::errno(path, ENOENT))
        }
        fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
            Err(Error::errno(request.to_string(), EPERM))
        }
    }

    impl Fake {
        fn put(&self, path: &str, name: &str, ticks: u64, began: u64, cpu: u32, flags: u32) {
            let line = format!(
                "1 ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {began} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0"
            );
            self.files.lock().unwrap().insert(format!("/proc/{path}/stat"), line);
        }
    }

    #[test]
    fn only_threads_of_busy_programs_are_read() {
        let host = Fake { now: Mutex::default(), files: Mutex::default() };
        let second = Duration::from_secs(1);
        for pid in ["10", "11", "12", "13"] {
            host.put(pid, "x", 1000, 5, 0, 0);
        }
        let before = ProcessTimes::read(&host).unwrap();
        host.sleep(second);
        // A program with two threads, an idle one, a new one with the number of an old one, and a thread of the kernel.
        host.put("10", "nginx", 1090, 5, 0, 0);
        host.put("11", "sshd", 1001, 5, 0, 0);
        host.put("12", "other", 1090, 6, 0, 0);
        host.put("13", "ksoftirqd/0", 1090, 5, 0, 0x0020_0000);
        for (tid, ticks) in [("10", 500), ("20", 590), ("21", 1)] {
            host.put(&format!("10/task/{tid}"), "nginx", ticks, 5, 3, 0);
        }
        host.put("11/task/11", "sshd", 7, 5, 0, 0);
        let threads = before.busy_threads(&host).unwrap();
        assert_eq!(threads.by_id.keys().copied().collect::<Vec<_>>(), [(10, 10), (10, 20), (10, 21)]);
        host.sleep(second);
        host.put("10/task/10", "nginx", 510, 5, 3, 0);
        host.put("10/task/20", "worker", 650, 5, 4, 0);
        host.put("10/task/21", "nginx", 81, 5, 3, 0);
        let busy = threads.busy(&host);
        let named: Vec<_> = busy.iter().map(|t| (t.name.as_str(), t.tid, t.percent, t.cpus)).collect();
        let cpus = |a, b| [CpuId(a), CpuId(b)];
        assert_eq!(named, [("nginx", 21, 80.0, cpus(3, 3)), ("worker", 20, 60.0, cpus(3, 4))]);
    }
}
