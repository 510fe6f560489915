//! `cargo xtask ci`: everything `make test` promises, every step run, one summary line last.

use crate::paths;
use anyhow::Result;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A run that is not over by then would be ended from outside, without a word.
const ALL: Duration = Duration::from_secs(80 * 60);

const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--no-fail-fast"]),
    ("figures", &["xtask", "figures"]),
    ("layering", &["xtask", "layering"]),
    ("grafana", &["xtask", "grafana"]),
    ("lab", &["xtask", "lab"]),
];

pub fn run(_: &[String]) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut failed = Vec::new();
    let begin = Instant::now();
    for (name, args) in STEPS {
        let mut args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
        if *name == "lab" {
            let left = ALL.saturating_sub(begin.elapsed());
            args.push(format!("--minutes={}", left.as_secs() / 60));
        }
        println!("== {name}: cargo {}", args.join(" "));
        let start = Instant::now();
        let status = Command::new(&cargo).current_dir(paths::root()).args(&args).stdin(Stdio::null()).status()?;
        println!("== {name}: {status}, {:.0} s", start.elapsed().as_secs_f64());
        if !status.success() {
            failed.push(*name);
        }
    }
    let passed = STEPS.len() - failed.len();
    if !failed.is_empty() {
        println!("failed: {}", failed.join(" "));
    }
    println!("steps: {passed} passed, {} failed, 0 skipped", failed.len());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
