//! Checks that every CPU of a guest is alive. `lab/tools/heartbeat.c` counts on each CPU and writes the counts to the
//! share; here they are watched by this machine's clock, because the guest's own may run fast or stand still.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A CPU that has not counted for this time, while the others did, is dead.
const DEAF: Duration = Duration::from_secs(15);
/// The other CPUs must have counted this often meanwhile, because on a slow machine all CPUs are slow.
const OTHERS: u64 = 10;
/// A guest that has written nothing for this time is dead.
const SILENT: Duration = Duration::from_secs(90);

/// What is wrong with a guest's CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dead {
    Cpu(usize),
    All,
}

/// A CPU as last seen.
#[derive(Debug, Clone)]
struct CpuCount {
    /// None: offline.
    count: Option<u64>,
    since: Instant,
    /// The counts of all CPUs together at that time.
    total: u64,
}

/// Watches one guest, from boot to boot.
pub(crate) struct Heartbeat {
    file: PathBuf,
    cpus: Vec<CpuCount>,
    /// When a line last differed from the previous one; `None` before the first line.
    alive: Option<Instant>,
    /// Counted by any CPU, never falling.
    total: u64,
}

impl Heartbeat {
    pub(crate) fn new(share: &Path) -> Heartbeat {
        Heartbeat { file: share.join("results/heartbeat"), cpus: Vec::new(), alive: None, total: 0 }
    }

    /// Checks the guest once.
    pub(crate) fn dead(&mut self) -> Option<Dead> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        self.look(&text, Instant::now())
    }

    /// A guest that reboots has no line for a while.
    pub(crate) fn pause(&mut self) {
        self.cpus.clear();
        self.alive = None;
    }

    fn look(&mut self, text: &str, now: Instant) -> Option<Dead> {
        // A line without its end is still being written.
        if let Some(line) = text.strip_suffix('\n').filter(|l| !l.contains('\n')) {
            let counts: Vec<Option<u64>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
            self.note(&counts, now);
        }
        if self.alive.is_some_and(|a| now - a > SILENT) {
            return Some(Dead::All);
        }
        let deaf = |s: &CpuCount| s.count.is_some() && now - s.since > DEAF && self.others(s) >= OTHERS;
        self.cpus.iter().position(deaf).map(Dead::Cpu)
    }

    /// How often the other CPUs that are online have counted since, each on average.
    fn others(&self, s: &CpuCount) -> u64 {
        let online = self.cpus.iter().filter(|c| c.count.is_some()).count().saturating_sub(1) as u64;
        (self.total - s.total).checked_div(online).unwrap_or(0)
    }

    fn note(&mut self, counts: &[Option<u64>], now: Instant) {
        let fresh = CpuCount { count: None, since: now, total: self.total };
        self.cpus.resize(counts.len(), fresh);
        let mut moved = false;
        for (seen, count) in self.cpus.iter_mut().zip(counts) {
            if seen.count == *count {
                continue;
            }
            moved = true;
            if let (Some(a), Some(b)) = (seen.count, *count) {
                // After a reboot they begin at 0 again.
                self.total += b.saturating_sub(a);
            }
            seen.count = *count;
            seen.since = now;
            seen.total = self.total;
        }
        if moved {
            self.alive = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result if each line is read half a second after the previous one.
    fn after(lines: impl Iterator<Item = String>) -> Option<Dead> {
        let mut h = Heartbeat::new(Path::new("/nowhere"));
        let start = Instant::now();
        let looks = lines.enumerate().map(|(i, l)| h.look(&l, start + Duration::from_millis(500 * i as u64)));
        looks.flatten().next()
    }

    #[test]
    fn a_stuck_cpu_is_found_after_fifteen_seconds_and_not_before() {
        let line = |i: u64| format!("{i} {} {i} {i} \n", i.min(5));
        assert_eq!(after((1..=35).map(line)), None);
        assert_eq!(after((1..=36).map(line)), Some(Dead::Cpu(1)));
    }

    #[test]
    fn an_offline_cpu_is_exempt_and_may_come_back() {
        let line = |i: u64| format!("{i} {} {i} \n", if i < 10 { "9".into() } else { "-".to_string() });
        assert_eq!(after((1..=100).map(line)), None);
        let back = |i: u64| format!("{i} {} {i} \n", if i < 100 { "-".into() } else { (i - 90).to_string() });
        assert_eq!(after((1..=200).map(back)), None);
    }

    #[test]
    fn a_slow_guest_is_not_dead_but_a_silent_one_is() {
        // All CPUs count once in twenty seconds.
        assert_eq!(after((1..=170).map(|i| format!("{0} {0} {0} \n", i / 40))), None);
        assert_eq!(
            after((1..=170).map(|i| format!("{0} {0} {0} \n", i / 40)).chain((1..190).map(|_| "4 4 4 \n".into()))),
            Some(Dead::All)
        );
        // It has not begun yet.
        assert_eq!(after((1..=400).map(|_| String::new())), None);
    }

    #[test]
    fn half_a_line_is_ignored() {
        assert_eq!(after((1..=100).map(|i| if i % 2 == 0 { format!("{i} {i} \n") } else { format!("{i}") })), None);
    }
}
