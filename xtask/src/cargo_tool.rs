//! Tools that cargo builds from their released source into the cache, with their own lock file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cmd, paths};

/// One such tool. Its crate and its program have the same name.
pub(crate) struct CargoTool {
    /// Name of the crate and of the program.
    pub(crate) name: &'static str,
    /// The exact release.
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`, such as features.
    pub(crate) args: &'static [&'static str],
}

impl CargoTool {
    /// The program in the cache, built on first use.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        let Self { name, version, args } = self;
        let root = paths::cache().join(format!("{name}-{version}"));
        let program = root.join("bin").join(name);
        if program.is_file() {
            return Ok(program);
        }
        println!("setup: building {name} {version} into the cache");
        let tmp = root.with_extension("tmp");
        let _ = fs::remove_dir_all(&tmp);
        let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        c.args(["install", "--quiet", "--locked", "--version", version, "--root"]).arg(&tmp).args(*args).arg(name);
        c.env_remove("CARGO_TARGET_DIR");
        cmd::retried("cargo install", || cmd::output(&mut c).map(drop))?;
        let _ = fs::remove_dir_all(&root);
        fs::rename(&tmp, &root).with_context(|| root.display().to_string())?;
        Ok(program)
    }
}
