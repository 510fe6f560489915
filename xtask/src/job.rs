//! One boot of the lab: its scenarios, their results, and a second guest if one is needed.

use crate::boot::{Guest, Lost, Mode};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::module::Built;
use crate::mutants::Checked;
use crate::scenario::{self, Scenario, Score};
use crate::times::Times;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// One boot: a host on a kernel with the scenarios that share it.
pub(crate) struct Job<'a> {
    pub host: &'a Host,
    pub kernel: &'a Kernel,
    pub scenarios: Vec<&'a Scenario>,
    /// The directory for files that scenarios keep; `None`: that of the boot's other files.
    pub keep: Option<&'a Path>,
    /// Run it for `mutants`, see `Options`.
    pub once: Option<&'a Path>,
    /// The scenarios take as long as their line `# long:` allows.
    pub long: bool,
}

/// The results of all boots.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub score: Score,
    /// Checks that failed twice.
    pub wrong: Vec<String>,
    /// Checks that failed in one guest and passed in the next one.
    pub unsteady: Vec<String>,
    /// Scenarios that failed in their first guest.
    pub retried: usize,
    /// Guests that QEMU lost.
    pub lost: Vec<String>,
    /// Checks that passed in an earlier run and were not run again.
    pub unchanged: u32,
    pub times: Times,
}

/// Times that a boot is tried, as long as QEMU loses it.
const BOOTS: usize = 6;

/// The result of one boot.
#[derive(Debug, Default)]
struct Report<'a> {
    text: String,
    parts: Vec<(&'a Scenario, Score)>,
    /// Seconds of the guest's clock for each scenario that ended.
    seconds: Vec<(String, f64)>,
    /// Scenarios that do not run on this kernel.
    skipped: u32,
    /// Lines that a healthy kernel never logs.
    complaints: Vec<String>,
    /// How the guest ended, if not well.
    fate: Option<String>,
    /// Why QEMU lost the guest, and after which time.
    lost: Option<(Lost, Duration)>,
    /// Messages about guests that were booted again.
    again: Vec<String>,
}

/// A boot and its resources.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub job: &'a Job<'a>,
    pub guest: &'a Guest<'a>,
    pub ringwise: &'a Path,
    pub keep: bool,
    /// The deadline of all boots.
    pub end: Option<Instant>,
}

impl Run<'_> {
    fn name(&self) -> String {
        format!("{} on {}", self.job.host.name, self.guest.ready.release)
    }

    fn left(&self) -> Duration {
        self.end.map_or(Duration::MAX, |e| e.saturating_duration_since(Instant::now()))
    }

    /// One job. Scenarios that fail are run once more in a fresh guest, and both runs are reported: under emulation a
    /// link may take longer than a scenario waits. Scenarios that fail twice, or during which the kernel complained,
    /// have failed.
    pub(crate) fn all(&self) -> Outcome {
        let mut out = Outcome::default();
        if self.left().is_zero() {
            println!("{}: not booted: the time for all boots has passed", self.name());
            out.wrong.push(format!("not booted, {} scenarios not run: the time had passed", self.job.scenarios.len()));
            out.score.failed = 1;
            return out;
        }
        println!("{}: booting", self.name());
        let first = self.boots(&self.job.scenarios);
        print!("{}", first.text);
        let retry = |n: &Score| n.failed > 0 && self.job.once.is_none();
        let again: Vec<&Scenario> = first.parts.iter().filter(|(_, n)| retry(n)).map(|(s, _)| *s).collect();
        if let Some(file) = self.job.once {
            let checked: Vec<Checked> = first.parts.iter().map(|(s, n)| Checked::new(&s.name, n)).collect();
            if let Err(e) = serde_json::to_vec(&checked).map_err(Into::into).and_then(|json| fs::write(file, json)) {
                out.wrong.push(format!("{}: {e}", file.display()));
            }
        }
        for (_, n) in first.parts.iter().filter(|(_, n)| !retry(n)) {
            out.score.add(n);
        }
        out.score.skipped += first.skipped;
        out.retried = again.len();
        out.times.scenarios = first.seconds;
        out.wrong.extend(first.complaints);
        out.lost.extend(first.again);
        let mut failed = Vec::new();
        for (s, n) in &first.parts {
            failed.extend(n.wrong.iter().map(|w| format!("{}: {w}", s.name)));
        }
        failed.extend(first.fate);
        if again.is_empty() {
            out.wrong.extend(failed);
        } else {
            let names: Vec<&str> = again.iter().map(|s| s.name.as_str()).collect();
            println!("{}: running again in a fresh guest: {}", self.name(), names.join(" "));
            self.guest.put_aside();
            let second = self.boots(&again);
            print!("{}", second.text);
            out.unsteady.extend(failed);
            for (s, n) in &second.parts {
                out.score.add(n);
                out.wrong.extend(n.wrong.iter().map(|w| format!("{}: {w}", s.name)));
            }
            out.wrong.extend(second.complaints);
            out.wrong.extend(second.fate);
            out.lost.extend(second.again);
        }
        // Each failure has its line, including failures outside of checks.
        out.score.failed = u32::try_from(out.wrong.len()).unwrap_or(u32::MAX);
        out
    }

    /// One boot. If QEMU lost the guest, this is reported and the boot is repeated (see lab/README.md).
    /// Scenarios that had ended are not run again.
    fn boots<'s>(&self, scenarios: &[&'s Scenario]) -> Report<'s> {
        let mut again = Vec::new();
        loop {
            let r = self.once(scenarios, !again.is_empty());
            match &r.lost {
                Some((why, took)) if again.len() + 1 < BOOTS && !self.left().is_zero() => {
                    let said = format!("{why} after {:.0} s", took.as_secs_f64());
                    println!("{}: {said}, booting it again", self.name());
                    again.push(said);
                }
                _ => return Report { again, ..r },
            }
        }
    }

    /// One boot from share directory to score; its report is printed in one piece.
    fn once<'s>(&self, scenarios: &[&'s Scenario], again: bool) -> Report<'s> {
        let Run { job, guest, keep, .. } = *self;
        let title = format!("{} ({})", self.name(), job.host.about);
        let mut r = Report::default();
        let mut run = Vec::new();
        for s in scenarios {
            let needed = [(&guest.test_nic, s.needs_mqnic), (&guest.cost_model, s.needs_cost)];
            let missing = needed.into_iter().find_map(|(built, needed)| match built {
                // This is declared in lab/kernels.toml, so it is not a failure.
                Built::No(why) if needed && !job.kernel.test_nic => Some(why),
                _ => None,
            });
            match missing {
                Some(why) => {
                    r.skipped += 1;
                    r.text += &format!("  {:24} skipped: {why}\n", s.name);
                }
                None => run.push(*s),
            }
        }
        let full = Duration::from_secs(job.host.boot_limit + run.iter().map(|s| s.timeout).sum::<u64>());
        let limit = full.min(self.left());
        let filled = if again { guest.go_on(&run) } else { guest.fill(self.ringwise, Mode::Scenarios, &run) };
        let filled = filled.and_then(|()| {
            let mut env = File::options().append(true).open(guest.share().join("host.env"))?;
            if job.once.is_some() {
                // lib.sh ends a scenario at its first failed check then.
                env.write_all(b"ONCE=1\n")?;
            }
            if job.long {
                env.write_all(b"LONG=1\n")?;
            }
            Ok(())
        });
        let booted = filled.and_then(|()| guest.run(Mode::Scenarios, limit));
        let ended = match booted {
            Ok(e) => e,
            Err(e) => {
                r.text = format!("{title}: FAILED to boot: {e:#}\n");
                r.fate = Some(format!("FAILED to boot: {e:#}"));
                return r;
            }
        };
        r.lost = ended.lost.clone().map(|l| (l, ended.took));
        let results = guest.share().join("results");
        let dmesg = read(&results.join("dmesg"));
        let console = read(&guest.dir.join("console.log"));
        let _ = fs::write(guest.dir.join("dmesg"), &dmesg);
        let mut said: Vec<&str> = dmesg.lines().chain(console.lines()).filter(|l| kernel_complaint(l)).collect();
        said.sort_unstable();
        said.dedup();
        for s in &run {
            let out = read(&results.join(format!("{}.out", s.name)));
            let rc = read(&results.join(format!("{}.rc", s.name)));
            let mut words = rc.split_whitespace();
            let status = words.next().and_then(|w| w.parse().ok());
            let times: Vec<f64> = words.filter_map(|w| w.parse().ok()).collect();
            let mut score = scenario::score(s, &out, status);
            let spent = match times[..] {
                [from, to] => {
                    r.seconds.push((s.name.clone(), to - from));
                    format!("{:.1} s", to - from)
                }
                _ => "no end".into(),
            };
            said.retain(|line| {
                let provoked = s.provokes.as_ref().is_some_and(|p| line.contains(p.as_str()));
                if provoked && within(line, &times) {
                    return false;
                }
                let here = EMULATION.iter().any(|e| line.contains(e)) && within(line, &times);
                if here {
                    score.fail(format!("kernel: {line}"));
                }
                !here
            });
            r.text += &format!(
                "  {:24} {} passed, {} failed, {} skipped ({spent})\n",
                s.name, score.passed, score.failed, score.skipped
            );
            if score.failed > 0 {
                for w in &score.wrong {
                    r.text += &format!("    {w}\n");
                }
                for line in out.lines() {
                    r.text += &format!("    | {line}\n");
                }
            }
            r.parts.push((s, score));
            let _ = fs::copy(results.join(format!("{}.out", s.name)), guest.dir.join(format!("{}.out", s.name)));
        }
        // Files that scenarios keep.
        for file in fs::read_dir(results.join("keep")).into_iter().flatten().flatten() {
            let _ = fs::copy(file.path(), job.keep.unwrap_or(&guest.dir).join(file.file_name()));
        }
        for line in said.iter().take(5) {
            r.text += &format!("  kernel: {line}\n");
            r.complaints.push(format!("kernel: {line}"));
        }
        match ended.guest_status() {
            Some(0) => {}
            Some(n) => r.fate = Some(format!("FAILED: the guest reported {n}")),
            None => {
                let log = guest.dir.join("console.log");
                let qemu = read(&guest.dir.join("qemu.log"));
                let tail: Vec<&str> = console.lines().chain(qemu.lines()).collect();
                for line in tail.iter().skip(tail.len().saturating_sub(15)) {
                    r.text += &format!("    | {line}\n");
                }
                let how = match ended.status {
                    Some(_) => "it exited without a status".to_string(),
                    None if limit < full => "the time for all boots had passed".into(),
                    None => format!("no end within {} s", limit.as_secs()),
                };
                r.fate = Some(format!("FAILED: {how}, see {}", log.display()));
            }
        }
        let fate = r.fate.as_ref().map_or(String::new(), |f| format!(", {f}"));
        let healthy = r.fate.is_none() && r.complaints.is_empty() && r.parts.iter().all(|(_, n)| n.failed == 0);
        if !keep && healthy {
            let _ = fs::remove_dir_all(guest.share());
        }
        r.text = format!("{title}: {:.1} s{fate}\n", ended.took.as_secs_f64()) + &r.text;
        r
    }
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The time since boot of a line of the kernel's log: `[   17.738049] ...`.
fn seconds(line: &str) -> Option<f64> {
    line.strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

/// Whether a line of the kernel's log was written while a scenario ran, between these two times.
fn within(line: &str, times: &[f64]) -> bool {
    matches!((times, seconds(line)), ([from, to], Some(at)) if (*from..=*to + 1.0).contains(&at))
}

/// Complaints that emulation causes now and then. Each counts as a failed check of the running scenario. On a slow
/// machine a CPU that goes offline may still have a task.
const EMULATION: &[&str] = &["sched_cpu_dying"];

/// A line that a healthy kernel never logs.
pub(crate) fn kernel_complaint(line: &str) -> bool {
    const SIGNS: &[&str] = &[
        "WARNING: CPU:",
        "WARNING: at",
        "WARNING: possible",
        "BUG: ",
        "Oops",
        "general protection",
        "Kernel panic",
        "blocked for more than",
        "self-detected stall",
        "detected stalls",
        "soft lockup",
        "NETDEV WATCHDOG",
    ];
    SIGNS.iter().any(|s| line.contains(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_seen_and_talk_is_not() {
        assert!(kernel_complaint("[ 1.0] WARNING: CPU: 1 PID: 2 at net/core/dev.c:1"));
        assert_eq!(seconds("[   17.738049] igb 0000:21:00.0 eth0: NETDEV WATCHDOG: CPU: 2"), Some(17.738049));
        assert_eq!(seconds("lab: up"), None);
        assert!(!kernel_complaint("[ 1.0] mqnic: loading out-of-tree module taints kernel."));
    }
}
