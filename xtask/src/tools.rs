//! Small programs of the lab's own that run in the guests: `lab/tools/NAME.c`, linked statically, kept in the cache.

use crate::{cmd, paths};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds what is not there yet, and puts all into `share`.
pub fn install(share: &Path) -> Result<()> {
    let dir = paths::lab().join("tools");
    for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let source = entry?.path();
        if source.extension().is_some_and(|x| x == "c") {
            let name = source.file_stem().context("a source has a name")?;
            let to = share.join(name);
            fs::copy(build(&source)?, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

fn build(source: &Path) -> Result<PathBuf> {
    let name = source.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let dir = paths::cache().join("tools");
    fs::create_dir_all(&dir)?;
    let program = dir.join(format!("{name}-{}", cmd::hash(&[&fs::read(source)?])));
    if program.is_file() {
        return Ok(program);
    }
    // Another lab may be building the same.
    let tmp = dir.join(format!("{name}-{}.tmp", std::process::id()));
    let mut cc = Command::new(cmd::need("gcc")?);
    cc.args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&tmp).arg(source);
    cmd::output(&mut cc).with_context(|| format!("building {}", source.display()))?;
    fs::rename(&tmp, &program)?;
    Ok(program)
}
