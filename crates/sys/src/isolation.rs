//! Moves this process off the isolated CPUs before it reads anything else.
//!
//! To do so, it reads three small files on the CPU where the caller happens to run: `isolated` and `nohz_full` below
//! `/sys/devices/system/cpu`, and the isolated partitions of the control groups. They are plain lists that the kernel keeps in
//! memory; no other CPU is involved.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Files in which the kernel lists the CPUs that are kept free of ordinary work.
const LISTS: [&str; 3] =
    ["sys/devices/system/cpu/isolated", "sys/devices/system/cpu/nohz_full", "sys/fs/cgroup/cpuset.cpus.isolated"];

/// The highest CPU number that the kernel supports.
pub(crate) const MAX_CPU: u32 = 8191;

pub(crate) type Cpus = BTreeSet<u32>;

/// What was done about the isolated CPUs. Lists are as the kernel writes them: `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Isolation {
    /// No CPU is isolated, or none of those that this process may use.
    Nothing,
    /// This process and the processes that it starts run only on `to`.
    Left {
        /// All isolated CPUs, by boot parameter, sysfs or cpuset.
        isolated: String,
        /// The remaining CPUs: allowed and not isolated.
        to: String,
    },
    /// Only isolated CPUs are allowed: the user put this process there on purpose.
    Asked {
        /// The affinity of this process (`sched_getaffinity`).
        allowed: String,
    },
    /// The process should have moved, but the call failed.
    Failed {
        /// The call that failed, and the kernel's error.
        why: String,
    },
}

/// Removes the isolated CPUs from those that this thread may use. Threads and children inherit the mask, so call it before the
/// first of them starts.
pub fn leave_isolated() -> Isolation {
    leave(Path::new("/"))
}

fn leave(root: &Path) -> Isolation {
    let mut isolated = Cpus::new();
    for list in LISTS {
        // The file does not exist, or reads `(null)` because the kernel has no such parameter: it isolates nothing.
        if let Ok(text) = std::fs::read_to_string(root.join(list)) {
            isolated.extend(parse(&text));
        }
    }
    if isolated.is_empty() {
        return Isolation::Nothing;
    }
    let failed = |what: &str, e: io::Error| Isolation::Failed { why: format!("{what}: {e}") };
    let allowed = match allowed() {
        Ok(set) => set,
        Err(e) => return failed("sched_getaffinity", e),
    };
    match choose(&allowed, &isolated) {
        Choice::Nothing => Isolation::Nothing,
        Choice::Stay => Isolation::Asked { allowed: format(&allowed) },
        Choice::Move(to) => match allow(&to) {
            Ok(()) => Isolation::Left { isolated: format(&isolated), to: format(&to) },
            Err(e) => failed("sched_setaffinity", e),
        },
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Nothing,
    Stay,
    Move(Cpus),
}

fn choose(allowed: &Cpus, isolated: &Cpus) -> Choice {
    let rest: Cpus = allowed.difference(isolated).copied().collect();
    if rest.len() == allowed.len() {
        Choice::Nothing
    } else if rest.is_empty() {
        Choice::Stay
    } else {
        Choice::Move(rest)
    }
}

/// Parses `0-3,8`; text that is not a list contains no CPU.
fn parse(text: &str) -> Cpus {
    let mut out = Cpus::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            out.extend(first..=last.min(MAX_CPU));
        }
    }
    out
}

fn format(cpus: &Cpus) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &c in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == c => *last = c,
            _ => parts.push((c, c)),
        }
    }
    let text = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

const WORDS: usize = (MAX_CPU as usize + 1) / 64;

/// CPUs that the calling thread may use.
pub(crate) fn allowed() -> io::Result<Cpus> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most the given number of bytes to a live array of that size.
    let rc = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..=MAX_CPU).filter(|c| mask[*c as usize / 64] >> (c % 64) & 1 == 1).collect())
}

pub(crate) fn allow(cpus: &Cpus) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for c in cpus {
        mask[*c as usize / 64] |= 1 << (c % 64);
    }
    // SAFETY: the kernel reads the given number of bytes of a live array of that size.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Cpus {
        parse(text)
    }

    #[test]
    fn lists() {
        assert_eq!(format(&set("0-3,8\n")), "0-3,8");
        assert_eq!(format(&set("3,1,2,7-7")), "1-3,7");
        for none in ["", "\n", "(null)\n", "x-y", "5-3"] {
            assert!(set(none).is_empty(), "{none}");
        }
        assert_eq!(set("0-4294967295").len(), 8192);
    }

    #[test]
    fn what_remains_decides() {
        assert_eq!(choose(&set("0-7"), &set("2,3")), Choice::Move(set("0-1,4-7")));
        assert_eq!(choose(&set("0-1,4-7"), &set("2,3")), Choice::Nothing);
        assert_eq!(choose(&set("2-3"), &set("2,3")), Choice::Stay);
        assert_eq!(choose(&set("3"), &set("2-7")), Choice::Stay);
    }

    /// In a thread of its own, because the mask belongs to the thread.
    #[test]
    fn the_thread_and_what_it_starts_leave() {
        std::thread::spawn(|| {
            let before = allowed().unwrap();
            let Some(first) = before.first().copied().filter(|_| before.len() > 1) else {
                return ringwise_testkit::skipped(
                    "the_thread_and_what_it_starts_leave",
                    "one CPU alone cannot be left",
                );
            };
            let root = std::env::temp_dir().join(format!("ringwise-isolation-{}", std::process::id()));
            let cpu = root.join("sys/devices/system/cpu");
            std::fs::create_dir_all(&cpu).unwrap();
            assert_eq!(leave(&root), Isolation::Nothing);
            std::fs::write(cpu.join("isolated"), format!("{first}\n")).unwrap();
            std::fs::write(cpu.join("nohz_full"), "(null)\n").unwrap();
            let rest: Cpus = before.iter().copied().filter(|c| *c != first).collect();
            let left = Isolation::Left { isolated: first.to_string(), to: format(&rest) };
            assert_eq!(leave(&root), left);
            assert_eq!(allowed().unwrap(), rest);
            assert_eq!(std::thread::spawn(allowed).join().unwrap().unwrap(), rest);
            // Already moved: none of the remaining CPUs is isolated.
            assert_eq!(leave(&root), Isolation::Nothing);
            std::fs::write(cpu.join("nohz_full"), format(&rest)).unwrap();
            assert_eq!(leave(&root), Isolation::Asked { allowed: format(&rest) });
            std::fs::remove_dir_all(root).unwrap();
        })
        .join()
        .unwrap();
    }
}
