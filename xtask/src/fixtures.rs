//! `cargo xtask fixtures`: the archives of the hand-written hosts, and captures of the lab hosts.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::paths;

/// Without arguments `tree.tar.gz` from every `host.toml`; `--from-lab` copies what `900-capture` left.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let hosts = paths::root().join("fixtures/hosts");
    match args {
        [] => write_trees(&hosts),
        [flag] if flag == "--from-lab" => from_lab(&hosts),
        _ => bail!("usage: cargo xtask fixtures [--from-lab]"),
    }
}

fn write_trees(hosts: &Path) -> Result<ExitCode> {
    // This is a separate program, so that xtask builds even if the other crates do not.
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "ringwise-testkit", "--example", "fixtures", "--"])
        .arg(hosts)
        .current_dir(paths::root())
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn from_lab(hosts: &Path) -> Result<ExitCode> {
    let lab = paths::target().join("lab");
    let entries = std::fs::read_dir(&lab).with_context(|| format!("{}: run cargo xtask lab first", lab.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry?;
        let capture = dir.path().join("capture.tar.gz");
        if !capture.is_file() {
            continue;
        }
        // A second run at the same time has a folder with a number; the name is that of the host and kernel.
        let name = std::fs::read_to_string(dir.path().join("capture.name"))
            .with_context(|| format!("{}: no file `name` in the directory of the capture", dir.path().display()))?;
        let name = format!("lab-{}", name.trim());
        let to = hosts.join(&name);
        std::fs::create_dir_all(&to)?;
        std::fs::copy(&capture, to.join("capture.tar.gz"))?;
        found.push(name);
    }
    if found.is_empty() {
        bail!("no capture in {}: cargo xtask lab --scenario 900-capture makes them", lab.display());
    }
    found.sort();
    println!("{}", found.join("\n"));
    println!("add a line for each to hosts.rs of discover and cli, run cargo xtask bless, and review the changes");
    Ok(ExitCode::SUCCESS)
}
