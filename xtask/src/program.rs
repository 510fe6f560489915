//! The static `ringwise` that goes into the guests.

use crate::{cmd, paths};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds it: nothing of the guest's own libraries is needed, and any x86-64 runs it.
pub fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // It may take a while, and also waits for other builds in this tree.
    eprintln!("building the static ringwise");
    let mut c = Command::new(cargo);
    c.current_dir(paths::root()).env("RUSTFLAGS", "-C target-feature=+crt-static").args([
        "build",
        "--quiet",
        "--release",
        "--target",
        TARGET,
        "-p",
        "ringwise",
    ]);
    cmd::visible(&mut c).context("building the static ringwise")?;
    Ok(paths::target().join(TARGET).join("release/ringwise"))
}
