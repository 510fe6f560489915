//! Kernel threads in procfs.

use ringwise_model::CpuSet;

use crate::{ParseError, cpulist};

/// CPUs that a task may run on, from `/proc/PID/status`.
pub fn cpus_allowed(status: &str) -> Result<CpuSet, ParseError> {
    let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let list = line.ok_or_else(|| ParseError::new("status of a task", "no such line", "Cpus_allowed_list"))?;
    cpulist::parse(list.trim())
}

/// Whether a task of this name (`/proc/PID/comm`, at most 15 bytes) polls for a device: `napi/eth0-8193`.
pub fn is_napi_thread(comm: &str) -> bool {
    comm.trim().starts_with("napi/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_task() {
        let text = "Name:\tnapi/eth0-8193\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,7\nMems_allowed:\t1\n";
        assert_eq!(cpus_allowed(text).unwrap().to_string(), "0-2,7");
        assert!(cpus_allowed("Name:\tx\n").is_err() && cpus_allowed("Cpus_allowed_list:\tx\n").is_err());
        assert!(is_napi_thread("napi/eth0-8193\n") && !is_napi_thread("ksoftirqd/0"));
    }
}
