//! `/proc/stat` (fs/proc/stat.c), in particular its lines of single CPUs, and `/proc/PID/schedstat`.

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
    fn time_of_a_thread() {
        assert_eq!(run_ns("123456789 42 7\n").unwrap(), 123_456_789);
        assert!(run_ns("").is_err());
        assert_eq!(
            (ksoftirqd("ksoftirqd/12\n"), ksoftirqd("ksoftirqd"), ksoftirqd("kswapd0")),
            (Some(CpuId(12)), None, None)
        );
    }
}
