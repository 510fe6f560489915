//! Sets the CPUs of a task.

use std::io;

use crate::host::{Error, Request, Result};

/// Limit for CPU numbers, above the kernel's own limit (8,192 CPUs on x86 with `CONFIG_MAXSMP`); larger numbers are refused, not
/// truncated.
const MAX_CPU: u32 = 1 << 16;

/// `sched_setaffinity` with a mask of exactly the size that is needed.
pub(super) fn set_cpus(request: &Request, pid: u32, cpus: &[u32]) -> Result<Vec<Vec<u8>>> {
    let what = request.to_string();
    let last = cpus.iter().copied().max().filter(|c| *c < MAX_CPU);
    let (Some(last), Ok(pid @ 1..)) = (last, libc::pid_t::try_from(pid)) else {
        return Err(Error::other(what, "no such CPU or no such task"));
    };
    // The kernel accepts whole longs only.
    let mut mask = vec![0u64; last as usize / 64 + 1];
    for c in cpus {
        mask[*c as usize / 64] |= 1 << (c % 64);
    }
    // SAFETY: pointer and length describe `mask`, which outlives the call and is only read.
    let rc = unsafe { libc::sched_setaffinity(pid, mask.len() * size_of::<u64>(), mask.as_ptr().cast()) };
    if rc < 0 {
        return Err(Error::errno(what, io::Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pid: u32, cpus: &[u32]) -> Result<Vec<Vec<u8>>> {
        set_cpus(&Request::ThreadCpus { pid, cpus: cpus.to_vec() }, pid, cpus)
    }

    #[test]
    fn refusals_keep_their_errno() {
        // A task that cannot exist: above every pid_max.
        assert_eq!(set(0x7fff_fff0, &[0]).unwrap_err().errno, Some(libc::ESRCH));
        // 0 would be this thread itself.
        for (pid, cpus) in [(0, &[0][..]), (1, &[]), (1, &[MAX_CPU]), (u32::MAX, &[0])] {
            assert_eq!(set(pid, cpus).unwrap_err().errno, None, "{pid} {cpus:?}");
        }
    }
}
