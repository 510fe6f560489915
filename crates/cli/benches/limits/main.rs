//! What must hold for speed and size, measured: `cargo bench -p ringwise`.
//!
//! Prints a table and fails when a limit is missed: status 1, or 2 when by more than half of it (or nothing was
//! measured). `BENCH_WRITE=1` writes BENCHMARKS.md besides.
#![forbid(unsafe_code)]

mod apply;
mod check;
mod daemon;
mod discover;
mod irqbalance;
mod links;
mod machine;
mod plan;
mod program;
mod status;
mod table;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let after = |flag: &str| args.iter().position(|a| a == flag).map(|i| args.get(i + 1).map_or("", String::as_str));
    let done = match (after("--child"), after("--links")) {
        (Some(file), _) => discover::child(file).map(|()| Table::default()),
        (_, Some(program)) => links::child(program).map(|()| Table::default()),
        _ if args.iter().any(|a| a == "--status") => only(status::measure),
        _ if args.iter().any(|a| a == "--daemon") => only(daemon::measure),
        _ if args.iter().any(|a| a == "--watch") => only_watch(),
        _ if args.iter().any(|a| a == "--check") => only(check::measure),
        _ => all(),
    };
    match done {
        Ok(table) => {
            let missed = table.missed();
            missed.iter().for_each(|m| eprintln!("limits: missed: {m}"));
            match (missed.is_empty(), table.far()) {
                (true, _) => ExitCode::SUCCESS,
                (_, false) => ExitCode::from(1),
                (_, true) => ExitCode::from(2),
            }
        }
        Err(e) => {
            eprintln!("limits: nothing measured: {e}");
            ExitCode::from(2)
        }
    }
}

fn all() -> Result<Table> {
    let mut table = Table::default();
    let dir = std::env::temp_dir().join(format!("ringwise-limits-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = discover::measure(&mut table, &dir)
        .and_then(|()| plan::measure(&mut table, &dir))
        .and_then(|()| check::measure(&mut table, &dir))
        .and_then(|()| daemon::measure(&mut table, &dir))
        .and_then(|()| apply::measure(&mut table, &dir))
        .and_then(|()| status::measure(&mut table, &dir))
        .and_then(|()| watch::measure(&mut table))
        .and_then(|()| program::measure(&mut table));
    std::fs::remove_dir_all(&dir)?;
    done?;
    print!("{}", table.text());
    if std::env::var_os("BENCH_WRITE").is_some_and(|v| v == "1") {
        let file = machine::root().join("BENCHMARKS.md");
        // The sections below the first are measured elsewhere, in the lab.
        let old = std::fs::read_to_string(&file).unwrap_or_default();
        let rest = old.find("\n## ").map_or("", |at| &old[at..]);
        std::fs::write(&file, table.page()? + rest)?;
        eprintln!("{} written", file.display());
    }
    Ok(table)
}

/// Its rows alone, while one works on them.
fn only(measure: fn(&mut Table, &Path) -> Result<()>) -> Result<Table> {
    let mut table = Table::default();
    let dir = std::env::temp_dir().join(format!("ringwise-limits-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = measure(&mut table, &dir);
    std::fs::remove_dir_all(&dir)?;
    done?;
    print!("{}", table.text());
    Ok(table)
}

fn only_watch() -> Result<Table> {
    let mut table = Table::default();
    watch::measure(&mut table)?;
    print!("{}", table.text());
    Ok(table)
}

/// Duration of a run, and its CPU time: user and system time of this process and of the programs that it started, on
/// average, because the kernel reports it in ticks of 10 ms. If other programs use the machine, the CPU time is more reliable.
#[derive(Clone, Copy)]
struct Timed {
    wall: Duration,
    cpu: Duration,
}

impl Timed {
    fn beyond(self, other: Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }

    fn times(self, other: Self) -> f64 {
        self.wall.as_secs_f64() / other.wall.as_secs_f64()
    }
}

/// Middle of `n` runs. What `f` returns is dropped outside the time on the clock.
fn median<T>(n: usize, f: impl FnMut() -> T) -> Timed {
    let before = cpu();
    let times = sorted(n, f);
    Timed { wall: times[times.len() / 2], cpu: cpu().saturating_sub(before) / u32::try_from(n).unwrap_or(u32::MAX) }
}

/// Shortest of `n` runs: for curves, where one disturbed point would bend them.
fn shortest<T>(n: usize, f: impl FnMut() -> T) -> Duration {
    sorted(n, f)[0]
}

/// Of this process and of its children that have ended; zero where the kernel does not tell.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after.split_whitespace().skip(11).take(4).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn sorted<T>(n: usize, mut f: impl FnMut() -> T) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..n)
        .map(|_| {
            let begin = Instant::now();
            let value = f();
            let time = begin.elapsed();
            drop(value);
            time
        })
        .collect();
    times.sort_unstable();
    times
}
