//! The machines that packages exist for, by their names in Rust, Debian and RPM.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::cmd;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    Amd64,
}

impl Arch {
    pub(crate) fn parse(name: &str) -> Result<Self> {
        match name {
            "amd64" | "x86_64" => Ok(Self::Amd64),
            other => bail!("--arch: expected amd64, found {other:?}"),
        }
    }

    pub(crate) fn rust(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
        }
    }

    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
        }
    }

    pub(crate) fn rpm(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
        }
    }

    /// Builds the static program. Paths of this machine do not get into it.
    pub(crate) fn program(self, root: &Path, target: &Path) -> Result<PathBuf> {
        println!("building the static ringwise for {} in {}", self.debian(), root.display());
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home =
            home.or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo"))).unwrap_or_default();
        let flags = [
            "-C target-feature=+crt-static".to_string(),
            format!("--remap-path-prefix={}=/ringwise", root.display()),
            format!("--remap-path-prefix={}=/cargo", home.display()),
        ];
        let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        c.current_dir(root).env("RUSTFLAGS", flags.join(" ")).env("CARGO_INCREMENTAL", "0");
        c.args([
            "build",
            "--quiet",
            "--locked",
            "--release",
            "-p",
            "ringwise",
            "--target",
            self.rust(),
            "--target-dir",
        ]);
        c.arg(target);
        cmd::output(&mut c)?;
        Ok(target.join(self.rust()).join("release/ringwise"))
    }
}
