//! Limits beside what was measured.

use std::fmt::Write as _;
use std::time::Duration;

use crate::{Result, Timed};

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// More wants to run than there are CPUs: then the clock measures the others, and what counts is the CPU time.
fn busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
    load > std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64)
}

/// Times a limit.
const FAR: f64 = 1.5;

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    /// None: shown for comparison, without a limit.
    limit: Option<String>,
    measured: String,
    ok: bool,
    /// The measured value divided by the limit; None: there is no such ratio.
    times: Option<f64>,
}

impl Table {
    pub(crate) fn time(&mut self, what: &str, limit_ms: f64, measured: Timed) {
        let (wall, cpu) = (ms(measured.wall), ms(measured.cpu));
        let by_cpu = wall >= limit_ms && measured.cpu > Duration::ZERO && cpu < limit_ms && busy();
        let text = format!("{wall:.2} ms, CPU {cpu:.2} ms{}", if by_cpu { ", machine busy" } else { "" });
        let ok = wall < limit_ms || by_cpu;
        self.row(what, Some(format!("< {limit_ms} ms")), text, ok, Some(wall / limit_ms));
    }

    /// A number with a unit that must be below the limit.
    pub(crate) fn below(&mut self, what: &str, limit: f64, measured: f64, unit: &str) {
        let (asked, found) = (format!("< {limit:.1} {unit}"), format!("{measured:.2} {unit}"));
        self.row(what, Some(asked), found, measured < limit, Some(measured / limit));
    }

    pub(crate) fn exactly(&mut self, what: &str, limit: usize, measured: usize) {
        self.row(what, Some(limit.to_string()), measured.to_string(), limit == measured, None);
    }

    pub(crate) fn note(&mut self, what: &str, measured: String) {
        self.row(what, None, measured, true, None);
    }

    pub(crate) fn note_time(&mut self, what: &str, measured: Timed) {
        self.note(what, format!("{:.2} ms, CPU {:.2} ms", ms(measured.wall), ms(measured.cpu)));
    }

    /// Could not be measured here: no pass.
    pub(crate) fn missing(&mut self, what: &str, why: &str) {
        self.row(what, Some("measured".into()), format!("not measured: {why}"), false, None);
    }

    fn row(&mut self, what: &str, limit: Option<String>, measured: String, ok: bool, times: Option<f64>) {
        // The whole takes minutes, and a run that is cut short has said this much.
        eprintln!("{}: {measured}", what.trim());
        self.rows.push(Row { what: what.to_string(), limit, measured, ok, times });
    }

    /// What is missed, a line each.
    pub(crate) fn missed(&self) -> Vec<String> {
        let line = |r: &Row| {
            let times = r.times.filter(|t| t.is_finite()).map(|t| format!(", {t:.1} times that")).unwrap_or_default();
            format!("{}: {}, asked {}{times}", r.what.trim(), r.measured, r.limit.as_deref().unwrap_or("-"))
        };
        self.rows.iter().filter(|r| !r.ok).map(line).collect()
    }

    /// Missed by so much that other work of the machine is no excuse, or not measured at all.
    pub(crate) fn far(&self) -> bool {
        self.rows.iter().any(|r| !r.ok && r.times.is_none_or(|t| t > FAR))
    }

    fn cells(r: &Row) -> [&str; 4] {
        let verdict = match (&r.limit, r.ok) {
            (None, _) => "",
            (_, true) => "ok",
            (_, false) => "NOT OK",
        };
        [&r.what, r.limit.as_deref().unwrap_or("-"), &r.measured, verdict]
    }

    pub(crate) fn text(&self) -> String {
        let head = ["what", "limit", "measured", ""];
        let rows: Vec<[&str; 4]> = std::iter::once(head).chain(self.rows.iter().map(Self::cells)).collect();
        let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
        let (a, b, c) = (width(0), width(1), width(2));
        let mut out = String::new();
        for r in &rows {
            let line = format!("{:a$}  {:>b$}  {:>c$}  {}", r[0], r[1], r[2], r[3]);
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// BENCHMARKS.md: the machine, then the table.
    pub(crate) fn page(&self) -> Result<String> {
        let mut out = String::from(
            "# Benchmarks\n\nLimits of speed and size, and what was measured. Written by `BENCH_WRITE=1 cargo bench -p ringwise`;\n\
             the same command without the variable fails when a limit is missed: with status 1 by up to half of it, which a\n\
             busy machine can do, else with 2. Each time is the median of several runs and belongs to the machine below; CPU is\n\
             user and system time of all threads, on average, and decides where more wants to run than there are CPUs. Growth\n\
             is that of the shortest runs; growth and ratios are each taken within one run.\n\n",
        );
        let read = |p: &str| std::fs::read_to_string(p);
        let cpuinfo = read("/proc/cpuinfo")?;
        let value = |key: &str| {
            let line = cpuinfo.lines().find(|l| l.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = read("/proc/meminfo")?;
        let kb = memory.lines().next().and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
        let guest = value("flags").is_some_and(|f| f.split(' ').any(|w| w == "hypervisor"));
        let _ = writeln!(
            out,
            "Machine: {}, {} CPUs{}, {} MB of memory, Linux {}, load average {} at the\n\
             end. Build: release profile.\n",
            value("model name").unwrap_or_else(|| "unknown processor".into()),
            cpuinfo.lines().filter(|l| l.starts_with("processor")).count(),
            if guest { " of a virtual machine" } else { "" },
            kb.map_or_else(|| "unknown".into(), |k| (k / 1024).to_string()),
            read("/proc/sys/kernel/osrelease")?.trim(),
            read("/proc/loadavg")?.split(' ').take(2).collect::<Vec<_>>().join(" "),
        );
        out.push_str("| what | limit | measured | |\n|---|---:|---:|---|\n");
        for r in &self.rows {
            let [a, b, c, d] = Self::cells(r);
            let _ = writeln!(out, "| {a} | {b} | {c} | {d} |");
        }
        Ok(out)
    }
}
