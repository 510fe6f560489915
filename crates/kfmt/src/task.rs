//! Processes and threads in procfs.

use std::collections::BTreeSet;

use ringwise_model::{CpuId, CpuSet, NodeId};

use crate::{ParseError, cpulist};

/// CPUs that a task may run on, from `/proc/PID/status`.
pub fn cpus_allowed(status: &str) -> Result<CpuSet, ParseError> {
    let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let list = line.ok_or_else(|| ParseError::new("status of a task", "no such line", "Cpus_allowed_list"))?;
    cpulist::parse(list.trim())
}

/// Memory nodes that a task may use, from `/proc/PID/status`: those of its cpuset, which may include nodes that the host
/// does not have. A policy of the task itself (set_mempolicy(2)) is not in it. `None`: a kernel without cpusets
/// (kernel/cgroup/cpuset.c, `cpuset_task_status_allowed`).
pub fn memory_nodes_allowed(status: &str) -> Result<Option<BTreeSet<NodeId>>, ParseError> {
    /// Above every `MAX_NUMNODES` (include/linux/numa.h, `NODES_SHIFT` is at most 10).
    const NODES: u32 = 1024;
    let Some(list) = status.lines().find_map(|l| l.strip_prefix("Mems_allowed_list:")) else { return Ok(None) };
    let nodes = cpulist::parse(list.trim())?;
    if nodes.last().is_some_and(|n| n.0 >= NODES) {
        return Err(ParseError::new("status of a task", list, "node numbers below 1024"));
    }
    Ok(Some(nodes.iter().map(|n| NodeId(n.0)).collect()))
}

/// Whether a task of this name (`/proc/PID/comm`, at most 15 bytes) polls for a device: `napi/eth0-8193`.
pub fn is_napi_thread(comm: &str) -> bool {
    comm.trim().starts_with("napi/")
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
pub fn stat(text: &str) -> Result<TaskStat, ParseError> {
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
        ticks: number(14)?.checked_add(number(15)?).ok_or_else(bad)?,
        began_ticks: number(22)?,
        cpu: CpuId(u32::try_from(number(39)?).map_err(|_| bad())?),
        real_time: REAL_TIME.contains(&number(41)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_whose_name_has_parentheses() {
        // Linux 6.12: a thread of a program, with another name.
        let line = "812 (a) R (b) S 1 812 812 0 -1 4194560 340 0 5 0 1200 34 0 0 20 0 3 0 4711 12345 678 18446744073709551615 \
                    1 1 0 0 0 0 0 4096 1 0 0 0 17 6 50 1 0 0 0 0 0 0 0 0 0 0 0\n";
        let t = stat(line).unwrap();
        assert_eq!((t.name.as_str(), t.ticks, t.began_ticks, t.cpu), ("a) R (b", 1234, 4711, CpuId(6)));
        assert!(t.real_time && !t.of_kernel);
        let thread = "15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 9 0 0 20 0 1 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 \
                      0 0 0 0 0 0 0 0 0 0 0\n";
        let t = stat(thread).unwrap();
        assert!(t.of_kernel && !t.real_time);
        for bad in ["", "1 (a", "1 (a) S 1 2 3", "1 a S"] {
            assert!(stat(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn cpus_of_a_task() {
        let text = "Name:\tnapi/eth0-8193\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,7\nMems_allowed:\t1\n";
        assert_eq!(cpus_allowed(text).unwrap().to_string(), "0-2,7");
        assert!(cpus_allowed("Name:\tx\n").is_err() && cpus_allowed("Cpus_allowed_list:\tx\n").is_err());
        let nodes =
            |text: &str| memory_nodes_allowed(text).map(|n| n.map(|n| n.into_iter().map(|n| n.0).collect::<Vec<_>>()));
        let text = "Cpus_allowed_list:\t0-7\nMems_allowed:\t00000000,0000000b\nMems_allowed_list:\t0-1,3\n";
        assert_eq!(nodes(text).unwrap(), Some(vec![0, 1, 3]));
        assert_eq!(nodes("Name:\tx\nCpus_allowed_list:\t0-7\n").unwrap(), None, "a kernel without cpusets");
        assert!(nodes("Mems_allowed_list:\t0-1024\n").is_err() && nodes("Mems_allowed_list:\tx\n").is_err());
        assert!(is_napi_thread("napi/eth0-8193\n") && !is_napi_thread("ksoftirqd/0"));
    }
}
