//! `cargo xtask shellcheck`: every shell script of the lab and of the Helm chart, by the rules of the nearest
//! `.shellcheckrc`.

use crate::{cmd, paths};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(other) = args.first() {
        bail!("shellcheck: expected no argument, found {other:?}");
    }
    let program = cmd::need("shellcheck")?;
    let mut files = Vec::new();
    for dir in ["lab", "contrib/helm"] {
        scripts(&paths::root().join(dir), &mut files)?;
    }
    files.sort();
    let status = Command::new(program).arg("--format=gcc").args(&files).current_dir(paths::root()).status();
    if !status.context("shellcheck")?.success() {
        bail!(
            "fix the findings above, or disable one at its line with the reason: `# shellcheck disable=SC1234 # why`"
        );
    }
    println!("shellcheck: {} scripts, nothing found", files.len());
    Ok(ExitCode::SUCCESS)
}

/// The `.sh` files below `dir`, relative to the repository.
fn scripts(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "sh") {
            found.push(path.strip_prefix(paths::root()).map(Path::to_path_buf).unwrap_or(path));
        }
    }
    Ok(())
}
