//! `/proc/stat` (fs/proc/stat.c), in particular its lines of single CPUs, and `stat` and `schedstat` of tasks.

use ringwise_model::{CpuCounter, CpuId};

use crate::ParseError;

const WHAT: &str = "/proc/stat";

/// Columns of a `cpuN` line in their order, in ticks of `USER_HZ` (100 per second).
pub const COLUMNS: [CpuCounter; 8] = [
    CpuCounter::User,
    CpuCounter::Nice,
    CpuCounter::System,
    CpuCounter::Idle,
    CpuCounter::Iowait,
    CpuCounter::Irq,
    CpuCounter::Softirq,
    CpuCounter::Steal,
];

/// The times of each online CPU. Guest times are parts of `user` and `nice`, and omitted.
pub fn cpus(text: &str) -> Result<Vec<(CpuId, [u64; 8])>, ParseError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        // The CPUs come first; the rest may be long.
        let Some(rest) = line.strip_prefix("cpu") else { break };
        if rest.starts_with(' ') {
            continue;
        }
        let bad = || ParseError::at(WHAT, i + 1, line, "cpuN and 8 numbers or more");
        let mut words = rest.split_ascii_whitespace();
        let id = words.next().and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        let mut times = [0; 8];
        for t in &mut times {
            *t = words.next().and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        }
        out.push((CpuId(id), times));
    }
    if out.is_empty() { Err(ParseError::new(WHAT, "none", "lines of CPUs")) } else { Ok(out) }
}

/// How often each interrupt was raised, by its number; 0 for unused numbers. Empty: the file does not contain it.
pub fn interrupts(text: &str) -> Vec<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("intr "));
    // The first number is the sum of all.
    let words = line.unwrap_or_default().split_ascii_whitespace().skip(1);
    words.map_while(|w| w.parse().ok()).collect()
}

/// Nanoseconds that a task has run: the first number of its `schedstat`.
pub fn run_ns(schedstat: &str) -> Result<u64, ParseError> {
    let first = schedstat.split_ascii_whitespace().next().and_then(|w| w.parse().ok());
    first.ok_or_else(|| ParseError::new("schedstat of a task", schedstat, "nanoseconds on the CPU"))
}

/// A line of `/proc/PID/stat` or `/proc/PID/task/TID/stat` (fs/proc/array.c, `do_task_stat`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Its name. It may contain any character.
    pub name: String,
    /// A thread of the kernel (`PF_KTHREAD`).
    pub of_kernel: bool,
    /// Time on a CPU since it began, in ticks of `USER_HZ` (100 per second). For a process, that of all its threads.
    pub ticks: u64,
    /// When it began, in ticks since boot. Distinguishes tasks that had the same number one after the other.
    pub began_ticks: u64,
    /// The CPU on which it runs, or ran last. For a process, that of its first thread.
    pub cpu: CpuId,
    /// Its policy is `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub real_time: bool,
}

/// Reads the line of one task.
pub fn task(text: &str) -> Result<TaskStat, ParseError> {
    const PF_KTHREAD: u64 = 0x0020_0000;
    const REAL_TIME: [u64; 3] = [1, 2, 6];
    let bad = || ParseError::new("stat of a task", text, "a number, a name in parentheses and 50 fields");
    let (before, after) = text.rsplit_once(')').ok_or_else(bad)?;
    let (_, name) = before.split_once('(').ok_or_else(bad)?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    // Numbered as in proc_pid_stat(5); the first one after the name is the third.
    let number = |n: usize| fields.get(n - 3).and_then(|f| f.parse::<u64>().ok()).ok_or_else(bad);
    Ok(TaskStat {
        name: name.to_string(),
        of_kernel: number(9)? & PF_KTHREAD != 0,
        ticks: number(14)? + number(15)?,
        began_ticks: number(22)?,
        cpu: CpuId(u32::try_from(number(39)?).map_err(|_| bad())?),
        real_time: REAL_TIME.contains(&number(41)?),
    })
}

/// CPU of a ksoftirqd, by the task's name (`ksoftirqd/12`).
pub fn ksoftirqd(comm: &str) -> Option<CpuId> {
    comm.trim_end().strip_prefix("ksoftirqd/")?.parse().ok().map(CpuId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_by_its_number() {
        let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 1 2 3 4 5 6 70 8 0 0\nintr 5 0 0\n";
        let all = cpus(text).unwrap();
        assert_eq!((all.len(), all[1].0, all[1].1[6], all[0].1[3]), (2, CpuId(12), 70, 4));
        for bad in ["", "intr 1\n", "cpu  1 2\n", "cpu0 1 2 3\n", "cpux 1 2 3 4 5 6 7 8\n"] {
            assert!(cpus(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sums_by_number() {
        assert_eq!(interrupts("cpu  1\nintr 12 5 0 7\nctxt 9\n"), [5, 0, 7]);
        assert_eq!((interrupts("cpu  1\n"), interrupts("intr 1 2 x 3")), (vec![], vec![2]));
    }

    #[test]
    fn a_task_whose_name_has_parentheses() {
        // Linux 6.12: a thread of a program, with another name.
        let line = "812 (a) R (b) S 1 812 812 0 -1 4194560 340 0 5 0 1200 34 0 0 20 0 3 0 4711 12345 678 18446744073709551615 \
                    1 1 0 0 0 0 0 4096 1 0 0 0 17 6 50 1 0 0 0 0 0 0 0 0 0 0 0\n";
        let t = task(line).unwrap();
        assert_eq!((t.name.as_str(), t.ticks, t.began_ticks, t.cpu), ("a) R (b", 1234, 4711, CpuId(6)));
        assert!(t.real_time && !t.of_kernel);
        let thread = "15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 9 0 0 20 0 1 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 \
                      0 0 0 0 0 0 0 0 0 0 0\n";
        let t = task(thread).unwrap();
        assert!(t.of_kernel && !t.real_time);
        for bad in ["", "1 (a", "1 (a) S 1 2 3", "1 a S"] {
            assert!(task(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn time_of_a_thread() {
        assert_eq!(run_ns("123456789 42 7\n").unwrap(), 123_456_789);
        assert!(run_ns("").is_err());
        assert_eq!(
            (ksoftirqd("ksoftirqd/12\n"), ksoftirqd("ksoftirqd"), ksoftirqd("kswapd0")),
            (Some(CpuId(12)), None, None)
        );
    }
}
