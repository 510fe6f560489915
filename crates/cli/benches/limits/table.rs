//! Limits beside what was measured.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Result;

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    /// None: shown for comparison, nothing is asked of it.
    limit: Option<String>,
    measured: String,
    ok: bool,
}

impl Table {
    pub fn time(&mut self, what: &str, limit_ms: f64, measured: Duration) {
        let ms = measured.as_secs_f64() * 1e3;
        self.row(what, Some(format!("< {limit_ms} ms")), format!("{ms:.2} ms"), ms < limit_ms);
    }

    /// A number with a unit that must be below the limit.
    pub fn below(&mut self, what: &str, limit: f64, measured: f64, unit: &str) {
        self.row(what, Some(format!("< {limit:.1} {unit}")), format!("{measured:.2} {unit}"), measured < limit);
    }

    pub fn exactly(&mut self, what: &str, limit: usize, measured: usize) {
        self.row(what, Some(limit.to_string()), measured.to_string(), limit == measured);
    }

    pub fn note(&mut self, what: &str, measured: String) {
        self.row(what, None, measured, true);
    }

    pub fn note_time(&mut self, what: &str, measured: Duration) {
        self.note(what, format!("{:.2} ms", measured.as_secs_f64() * 1e3));
    }

    /// Could not be measured here: no pass.
    pub fn missing(&mut self, what: &str, why: &str) {
        self.row(what, Some("measured".into()), format!("not measured: {why}"), false);
    }

    fn row(&mut self, what: &str, limit: Option<String>, measured: String, ok: bool) {
        self.rows.push(Row { what: what.to_string(), limit, measured, ok });
    }

    pub fn holds(&self) -> bool {
        self.rows.iter().all(|r| r.ok)
    }

    fn cells(r: &Row) -> [&str; 4] {
        let verdict = match (&r.limit, r.ok) {
            (None, _) => "",
            (_, true) => "ok",
            (_, false) => "NOT OK",
        };
        [&r.what, r.limit.as_deref().unwrap_or("-"), &r.measured, verdict]
    }

    pub fn text(&self) -> String {
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
    pub fn page(&self) -> Result<String> {
        let mut out = String::from(
            "# Benchmarks\n\nLimits of speed and size, and what was measured. Written by `BENCH_WRITE=1 cargo bench -p ringwise`;\n\
             the same command without the variable fails when a limit is missed. Each time is the median of several runs;\n\
             growth and differences are those of the shortest runs. Absolute times belong to the machine below; growth and\n\
             ratios are each taken within one run.\n\n",
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
            "Machine: {}, {} CPUs{}, {} MB of memory, Linux {}. Build: release profile (thin LTO).\n",
            value("model name").unwrap_or_else(|| "unknown processor".into()),
            cpuinfo.lines().filter(|l| l.starts_with("processor")).count(),
            if guest { " of a virtual machine" } else { "" },
            kb.map_or_else(|| "unknown".into(), |k| (k / 1024).to_string()),
            read("/proc/sys/kernel/osrelease")?.trim(),
        );
        out.push_str("| what | limit | measured | |\n|---|---:|---:|---|\n");
        for r in &self.rows {
            let [a, b, c, d] = Self::cells(r);
            let _ = writeln!(out, "| {a} | {b} | {c} | {d} |");
        }
        Ok(out)
    }
}
