//! What to do when the kernel refuses a call of bpf(2).

use crate::proc::has_capability;

/// `CAP_BPF`, since 5.8; earlier kernels want `CAP_SYS_ADMIN`, which suffices on every kernel.
const CAP_BPF: u32 = 39;
const CAP_SYS_ADMIN: u32 = 21;

const NO_CAPABILITY: &str = "CAP_BPF is needed (before Linux 5.8 CAP_SYS_ADMIN; root has both)";

/// The advice for this errno. `None`: only the errno is known.
pub(super) fn advice(errno: i32) -> Option<String> {
    match errno {
        libc::EPERM => {
            let capable = [CAP_BPF, CAP_SYS_ADMIN].iter().any(|c| has_capability(*c) == Some(true));
            Some(not_permitted(capable, locked_memory_bytes()))
        }
        libc::ENOSYS => Some("this kernel was built without CONFIG_BPF_SYSCALL".into()),
        libc::ENOMEM => Some("the kernel has too little memory for the counters".into()),
        _ => None,
    }
}

/// `limit_bytes` is that of locked memory; `None`: unlimited.
fn not_permitted(capable: bool, limit_bytes: Option<u64>) -> String {
    match (capable, limit_bytes) {
        (false, _) => NO_CAPABILITY.into(),
        (true, Some(bytes)) => format!(
            "before Linux 5.11 the memory of maps and programs counts as locked memory, of which this process may have {} kB: \
             raise the limit (LimitMEMLOCK=infinity in the unit, `ulimit -l unlimited` in a shell); on later kernels a user \
             namespace or a filter of system calls is the reason",
            bytes / 1024
        ),
        (true, None) => format!("{NO_CAPABILITY}; a user namespace or a filter of system calls can withhold it"),
    }
}

/// `RLIMIT_MEMLOCK` of this process. `None`: unlimited.
fn locked_memory_bytes() -> Option<u64> {
    // SAFETY: all-zero is a valid rlimit (plain integers).
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is a live rlimit. If the call fails, which it never does for this resource, the limit stays 0.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_locked_memory_is_named_only_where_it_can_be_the_reason() {
        let limited = not_permitted(true, Some(64 << 10));
        assert!(limited.contains("64 kB") && limited.contains("LimitMEMLOCK"), "{limited}");
        let unlimited = not_permitted(true, None);
        assert!(unlimited.contains("namespace") && !unlimited.contains("MEMLOCK"), "{unlimited}");
        assert_eq!(not_permitted(false, Some(64 << 10)), NO_CAPABILITY);
    }

    #[test]
    fn an_errno_without_advice_has_none() {
        assert_eq!(advice(libc::EINVAL), None);
        assert!(advice(libc::ENOSYS).unwrap().contains("CONFIG_BPF_SYSCALL"));
    }
}
