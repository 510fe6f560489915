//! The static `ringwise` that goes into the guests.

use crate::package::Arch;
use crate::{cmd, paths, progress};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The shipped program stays below this size.
const LARGEST_BYTES: u64 = 12_000_000;

/// Build profiles. Both abort on a panic, as the shipped program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The shipped program.
    Release,
    /// The same code without optimisation across crates: built in a third of the time.
    Lab,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Lab => "lab",
        }
    }
}

/// Builds the program for the guests of a machine. For another machine than this one it is always the shipped program,
/// which the packages contain too.
pub(crate) fn for_guests(arch: Arch, profile: Profile) -> Result<PathBuf> {
    match arch {
        Arch::Amd64 => build(profile),
        Arch::Arm64 => arch.program(&paths::root(), &paths::target().join("package-build")),
    }
}

/// Builds the program. It needs no libraries of the guest, and runs on any x86-64.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // It may take a while, and also waits for other builds in this tree.
    println!("building the static ringwise (profile {})", profile.name());
    let all = crates(&cargo);
    let mut c = Command::new(cargo);
    c.current_dir(paths::root()).env("RUSTFLAGS", "-C target-feature=+crt-static").args([
        "build",
        "--quiet",
        "--profile",
        profile.name(),
        "--target",
        TARGET,
        "--message-format=json-render-diagnostics",
        "-p",
        "ringwise",
    ]);
    let mut child = c.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let _child = progress::child(child.id());
    let out = child.stdout.take().context("cargo's messages")?;
    let mut done = 0;
    for line in BufReader::new(out).lines() {
        let line = line?;
        // Build scripts are compiled as well; the list of crates does not count them.
        if line.contains("\"reason\":\"compiler-artifact\"") && !line.contains("\"kind\":[\"custom-build\"]") {
            done += 1;
            progress::set(
                "building",
                all.map_or(format!("{done} crates"), |n| format!("{} of {n} crates", done.min(n))),
            );
        }
    }
    let status = child.wait()?;
    progress::end("building");
    if !status.success() {
        bail!("building the static ringwise: cargo exited with {status}");
    }
    let file = paths::target().join(TARGET).join(profile.name()).join("ringwise");
    if profile == Profile::Release {
        check_size(&file)?;
    }
    Ok(file)
}

/// Fails if the shipped program became too large.
pub(crate) fn check_size(file: &Path) -> Result<()> {
    let size = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
    if size >= LARGEST_BYTES {
        bail!("{} has {size} bytes; expected less than {LARGEST_BYTES} (12 MB)", file.display());
    }
    Ok(())
}

/// The number of crates to build, if cargo reports it.
fn crates(cargo: &std::ffi::OsStr) -> Option<usize> {
    let mut c = Command::new(cargo);
    c.current_dir(paths::root()).args(["tree", "-p", "ringwise", "-e", "normal,build", "--prefix", "none", "--locked"]);
    let text = cmd::output(&mut c).ok()?;
    let all: std::collections::BTreeSet<&str> = text.lines().filter_map(|l| l.split(" (").next()).collect();
    (all.len() > 1).then_some(all.len())
}
