//! Threads of programs that use much of a CPU.
//!
//! Reading every thread twice would cost more than everything else that `check` reads. So processes are compared first, and then
//! only the threads of those that were busy.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_kfmt::ParseError;
use ringwise_kfmt::task::{self, TaskStat};
use ringwise_model::errno::{ENOENT, ESRCH};
use ringwise_model::order::Order;
use ringwise_model::{BusyThread, Fact, PermittedPlaces, Unread};
use ringwise_sys::Host;

/// The part of a CPU, in per cent, from which a process or thread is busy.
pub const BUSY_PERCENT: f64 = 20.0;
/// The kernel counts CPU times in ticks of 10 ms, so a share over a shorter time would be inaccurate.
const SHORTEST: Duration = Duration::from_millis(200);
/// Reading more than this would take longer than the rest of a check.
const MOST_PROCESSES: usize = 32_768;
const MOST_THREADS: usize = 16_384;
/// `USER_HZ` of the architectures that ringwise is built for.
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

type Result<T> = std::result::Result<T, Unread>;

impl ProcessTimes {
    /// Reads `/proc/PID/stat` of each process.
    ///
    /// Errors: a file cannot be read, other than because its process has ended; there are too many processes.
    pub fn read(host: &dyn Host) -> Result<Self> {
        let pids = numbers(host, "/proc")?;
        if pids.len() > MOST_PROCESSES {
            return Err(Unread::new("/proc/PID/stat", None, format!("more than {MOST_PROCESSES} processes")));
        }
        let at = host.since_boot();
        let mut by_pid = BTreeMap::new();
        for pid in pids {
            by_pid.extend(read(host, &format!("/proc/{pid}/stat"), task::stat)?.map(|stat| (pid, stat)));
        }
        Ok(Self { at, by_pid })
    }

    /// Reads the threads of the processes that were busy since these times were read.
    ///
    /// Errors: as `read`; too little time has passed; there are too many threads.
    pub fn busy_threads(&self, host: &dyn Host) -> Result<ThreadTimes> {
        let now = Self::read(host)?;
        let time = long_enough(self.at, now.at)?;
        let at = host.since_boot();
        let mut by_id = BTreeMap::new();
        for (pid, stat) in &now.by_pid {
            let before = self.by_pid.get(pid);
            if before.and_then(|before| percent(before, stat, time)).is_none_or(|p| p < BUSY_PERCENT) {
                continue;
            }
            for tid in threads(host, *pid)? {
                by_id.extend(thread(host, *pid, tid)?.map(|stat| ((*pid, tid), stat)));
            }
            if by_id.len() > MOST_THREADS {
                let why = format!("busy processes have more than {MOST_THREADS} threads");
                return Err(Unread::new("/proc/PID/task/TID/stat", None, why));
            }
        }
        Ok(ThreadTimes { at, by_id })
    }
}

impl ThreadTimes {
    /// The threads that were busy since these times were read, the busiest one first.
    ///
    /// Errors: a file cannot be read, other than because its thread has ended; too little time has passed.
    pub fn busy(&self, host: &dyn Host) -> Result<Vec<BusyThread>> {
        let time = long_enough(self.at, host.since_boot())?;
        let mut out = Vec::new();
        for (&(pid, tid), before) in &self.by_id {
            let Some(now) = thread(host, pid, tid)? else { continue };
            let Some(percent) = percent(before, &now, time).filter(|p| *p >= BUSY_PERCENT) else { continue };
            let cpus = [before.cpu, now.cpu];
            let permitted = Fact::not_requested(status_of(pid, tid));
            out.push(BusyThread { name: now.name, pid, tid, cpus, percent, real_time: now.real_time, permitted });
        }
        out.order_by(|a: &BusyThread, b| b.percent.total_cmp(&a.percent).then(a.tid.cmp(&b.tid)));
        Ok(out)
    }
}

/// Reads which CPUs and memory nodes these threads may use: one small file for each busy thread, of which every CPU has only
/// a few. Where their memory really is, only `/proc/PID/numa_maps` shows, which is not read: the kernel walks all page tables of
/// the process for it, while it holds the lock of its address space (fs/proc/task_mmu.c, `show_numa_map`).
pub fn read_permitted(host: &dyn Host, threads: &mut [BusyThread]) {
    for t in threads {
        let status = status_of(t.pid, t.tid);
        t.permitted = match read(host, &status, permitted) {
            Ok(Some(Some(places))) => Fact::Known(places),
            Ok(_) => Fact::Absent,
            Err(u) => Fact::Unknown(u),
        };
    }
}

fn status_of(pid: u32, tid: u32) -> String {
    format!("/proc/{pid}/task/{tid}/status")
}

/// `None`: a kernel without cpusets.
fn permitted(status: &str) -> std::result::Result<Option<PermittedPlaces>, ParseError> {
    let cpus = task::cpus_allowed(status)?;
    Ok(task::memory_nodes_allowed(status)?.map(|memory_nodes| PermittedPlaces { cpus, memory_nodes }))
}

fn long_enough(before: Duration, now: Duration) -> Result<Duration> {
    let time = now.saturating_sub(before);
    if time < SHORTEST {
        return Err(Unread::new("/proc/PID/stat", None, "the two samples are too close together (--for 400ms)"));
    }
    Ok(time)
}

/// `None`: another task, or a thread of the kernel.
fn percent(before: &TaskStat, now: &TaskStat, time: Duration) -> Option<f64> {
    if now.of_kernel || before.began_ticks != now.began_ticks {
        return None;
    }
    let ticks = now.ticks.checked_sub(before.ticks)?;
    Some(ticks as f64 * 100.0 / TICKS_PER_SECOND / time.as_secs_f64())
}

fn numbers(host: &dyn Host, directory: &str) -> Result<Vec<u32>> {
    let names = host.list(directory).map_err(|e| Unread::new(directory, e.errno, e.reason()))?;
    Ok(names.iter().filter_map(|n| n.parse().ok()).collect())
}

/// Numbers of the threads of a process; none if it has ended.
fn threads(host: &dyn Host, pid: u32) -> Result<Vec<u32>> {
    let directory = format!("/proc/{pid}/task");
    numbers(host, &directory).or_else(|u| if has_ended(u.errno) { Ok(Vec::new()) } else { Err(u) })
}

fn thread(host: &dyn Host, pid: u32, tid: u32) -> Result<Option<TaskStat>> {
    read(host, &format!("/proc/{pid}/task/{tid}/stat"), task::stat)
}

/// `None`: it has ended.
fn read<T>(
    host: &dyn Host,
    path: &str,
    parse: impl FnOnce(&str) -> std::result::Result<T, ParseError>,
) -> Result<Option<T>> {
    match host.read_text(path) {
        Ok(text) => parse(&text).map(Some).map_err(|e| Unread::new(path, None, e.to_string())),
        Err(e) if has_ended(e.errno) => Ok(None),
        Err(e) => Err(Unread::new(path, e.errno, e.reason())),
    }
}

fn has_ended(errno: Option<i32>) -> bool {
    matches!(errno, Some(ENOENT | ESRCH))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ringwise_model::errno::{EACCES, EPERM};
    use ringwise_model::{CpuId, NodeId};
    use ringwise_sys::{Clock, Error, Request};

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
        fn read(&self, path: &str) -> ringwise_sys::Result<Vec<u8>> {
            let text = self.files.lock().unwrap().get(path).cloned();
            match text.ok_or_else(|| Error::errno(path, ENOENT))? {
                t if t.is_empty() => Err(Error::errno(path, EACCES)),
                t => Ok(t.into_bytes()),
            }
        }
        fn write(&self, path: &str, _: &[u8]) -> ringwise_sys::Result<()> {
            Err(Error::errno(path, EPERM))
        }
        fn list(&self, path: &str) -> ringwise_sys::Result<Vec<String>> {
            let files = self.files.lock().unwrap();
            let below = files.keys().filter_map(|f| f.strip_prefix(&format!("{path}/"))?.split('/').next());
            Ok(below.map(str::to_string).chain(["self".to_string()]).collect())
        }
        fn readlink(&self, path: &str) -> ringwise_sys::Result<String> {
            Err(Error::errno(path, ENOENT))
        }
        fn kernel(&self, request: &Request) -> ringwise_sys::Result<Vec<Vec<u8>>> {
            Err(Error::errno(request.to_string(), EPERM))
        }
    }

    impl Fake {
        fn put(&self, path: &str, name: &str, ticks: u64, began: u64, cpu: u32, (flags, policy): (u32, u32)) {
            let line = format!(
                "1 ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {began} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 {policy}"
            );
            self.files.lock().unwrap().insert(format!("/proc/{path}/stat"), line);
        }
    }

    #[test]
    fn only_threads_of_busy_programs_are_read() {
        let host = Fake { now: Mutex::default(), files: Mutex::default() };
        let second = Duration::from_secs(1);
        for pid in ["10", "11", "12", "13"] {
            host.put(pid, "x", 1000, 5, 0, (0, 0));
        }
        let before = ProcessTimes::read(&host).unwrap();
        host.sleep(second);
        // A program with two threads, an idle one, a new one with the number of an old one, and a thread of the kernel.
        host.put("10", "nginx", 1090, 5, 0, (0, 0));
        host.put("11", "sshd", 1001, 5, 0, (0, 0));
        host.put("12", "other", 1090, 6, 0, (0, 0));
        host.put("13", "ksoftirqd/0", 1090, 5, 0, (0x0020_0000, 0));
        for (tid, ticks) in [("10", 500), ("20", 590), ("21", 1)] {
            host.put(&format!("10/task/{tid}"), "nginx", ticks, 5, 3, (0, 0));
        }
        host.put("11/task/11", "sshd", 7, 5, 0, (0, 0));
        let threads = before.busy_threads(&host).unwrap();
        assert_eq!(threads.by_id.keys().copied().collect::<Vec<_>>(), [(10, 10), (10, 20), (10, 21)]);
        host.sleep(second);
        host.put("10/task/10", "nginx", 510, 5, 3, (0, 0));
        host.put("10/task/20", "worker", 650, 5, 4, (0, 2));
        host.put("10/task/21", "nginx", 81, 5, 3, (0, 0));
        let busy = threads.busy(&host).unwrap();
        let named: Vec<_> = busy.iter().map(|t| (t.name.as_str(), t.tid, t.percent, t.cpus, t.real_time)).collect();
        let cpus = |a, b| [CpuId(a), CpuId(b)];
        assert_eq!(named, [("nginx", 21, 80.0, cpus(3, 3), false), ("worker", 20, 60.0, cpus(3, 4), true)]);
    }

    #[test]
    fn permitted_places_of_busy_threads() {
        let host = Fake { now: Mutex::default(), files: Mutex::default() };
        let mut files = host.files.lock().unwrap();
        let cpus = "Name:\tx\nCpus_allowed_list:\t0-3\n";
        files.insert("/proc/10/task/20/status".into(), format!("{cpus}Mems_allowed_list:\t1\n"));
        files.insert("/proc/10/task/21/status".into(), cpus.into());
        files.insert("/proc/10/task/22/status".into(), String::new());
        files.insert("/proc/10/task/23/status".into(), "Mems_allowed_list:\t1\n".into());
        drop(files);
        let thread = |tid| {
            let (cpus, permitted) = ([CpuId(0); 2], Fact::not_requested("status"));
            BusyThread { name: "x".into(), pid: 10, tid, cpus, percent: 50.0, real_time: false, permitted }
        };
        let mut threads = [20, 21, 22, 23, 24].map(thread);
        read_permitted(&host, &mut threads);
        let [known, no_cpusets, hidden, odd, ended] = threads.map(|t| t.permitted);
        let places = PermittedPlaces { cpus: "0-3".parse().unwrap(), memory_nodes: [NodeId(1)].into() };
        assert_eq!((known, no_cpusets, ended), (Fact::Known(places), Fact::Absent, Fact::Absent));
        assert!(matches!(hidden, Fact::Unknown(u) if u.errno == Some(EACCES)));
        assert!(matches!(odd, Fact::Unknown(_)), "without its CPUs, the file is not understood");
    }

    #[test]
    fn what_cannot_be_read_is_not_idle() {
        let host = Fake { now: Mutex::default(), files: Mutex::default() };
        host.put("10", "x", 0, 5, 0, (0, 0));
        let before = ProcessTimes::read(&host).unwrap();
        assert!(before.busy_threads(&host).is_err(), "no time has passed");
        host.sleep(Duration::from_secs(1));
        host.put("10", "x", 90, 5, 0, (0, 0));
        assert!(before.busy_threads(&host).unwrap().by_id.is_empty(), "it ended before its threads were read");
        host.files.lock().unwrap().insert("/proc/11/stat".into(), String::new());
        assert_eq!(before.busy_threads(&host).unwrap_err().errno, Some(EACCES));
    }
}
