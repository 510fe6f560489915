//! What must hold for speed and size, measured: `cargo bench -p ringwise`.
//!
//! Prints a table and fails when a limit is missed. `BENCH_WRITE=1` writes BENCHMARKS.md besides.
#![forbid(unsafe_code)]

mod apply;
mod discover;
mod links;
mod machine;
mod plan;
mod program;
mod status;
mod table;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let after = |flag: &str| args.iter().position(|a| a == flag).map(|i| args.get(i + 1).map_or("", String::as_str));
    let done = match (after("--child"), after("--links")) {
        (Some(file), _) => discover::child(file).map(|()| true),
        (_, Some(program)) => links::child(program).map(|()| true),
        _ if args.iter().any(|a| a == "--status") => only_status(),
        _ => all(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("limits: {e}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<bool> {
    let mut table = Table::default();
    let dir = std::env::temp_dir().join(format!("ringwise-limits-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = discover::measure(&mut table, &dir)
        .and_then(|()| plan::measure(&mut table, &dir))
        .and_then(|()| apply::measure(&mut table, &dir))
        .and_then(|()| status::measure(&mut table, &dir))
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
    Ok(table.holds())
}

/// Its rows alone, while one works on them.
fn only_status() -> Result<bool> {
    let mut table = Table::default();
    let dir = std::env::temp_dir().join(format!("ringwise-limits-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = status::measure(&mut table, &dir);
    std::fs::remove_dir_all(&dir)?;
    done?;
    print!("{}", table.text());
    Ok(table.holds())
}

/// Middle of `n` runs. What `f` returns is dropped outside the measured time.
fn median<T>(n: usize, f: impl FnMut() -> T) -> Duration {
    let times = sorted(n, f);
    times[times.len() / 2]
}

/// Shortest of `n` runs: for curves, where one disturbed point would bend them.
fn shortest<T>(n: usize, f: impl FnMut() -> T) -> Duration {
    sorted(n, f)[0]
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
