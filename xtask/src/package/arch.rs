//! The machines that packages exist for, by their names in Rust, Debian and RPM.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::cross;
use crate::cargo_tool::CargoTool;
use crate::{cmd, paths};

const AUDITABLE: CargoTool = CargoTool { name: "cargo-auditable", version: "0.7.7", args: &[] };

/// Crates without I/O, whose tests need nothing of the host.
const PURE: [&str; 8] = ["model", "text", "kfmt", "knob", "plan", "flow", "config", "check"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arch {
    #[default]
    Amd64,
    Arm64,
}

impl Arch {
    pub(crate) fn parse(name: &str) -> Result<Self> {
        match name {
            "amd64" | "x86_64" => Ok(Self::Amd64),
            "arm64" | "aarch64" => Ok(Self::Arm64),
            other => bail!("--arch: expected amd64 or arm64, found {other:?}"),
        }
    }

    pub(crate) fn rust(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    pub(crate) fn rpm(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// What runs programs of this machine here; empty: nothing is needed.
    pub(crate) fn runner(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &[],
            Self::Arm64 => &["qemu-aarch64-static"],
        }
    }

    /// Runs the tests of the crates without I/O, on another machine by qemu-user.
    pub(crate) fn tests(self, root: &Path) -> Result<()> {
        println!("the tests of {} for {}", PURE.join(", "), self.debian());
        let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        c.current_dir(root).env("RUSTFLAGS", "-C target-feature=+crt-static").env("CARGO_INCREMENTAL", "0");
        c.args(["test", "--quiet", "--locked", "--lib", "--target", self.rust(), "--target-dir"]);
        c.arg(paths::target().join("package-build"));
        c.args(PURE.iter().flat_map(|name| ["-p".to_string(), format!("ringwise-{name}")]));
        self.cross(&mut c)?;
        cmd::visible(&mut c)
    }

    /// Compiler, linker and runner for another machine than this one.
    fn cross(self, c: &mut Command) -> Result<()> {
        if self == Self::Arm64 {
            c.env("RUSTC", cross::rustc()?);
            c.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", cmd::need(cross::LINKER)?);
            c.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", self.runner().join(" "));
        }
        Ok(())
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
        // A list of the crates in a section of its own, which scanners read from the binary.
        let mut c = Command::new(AUDITABLE.ensure()?);
        c.arg("auditable").current_dir(root).env("RUSTFLAGS", flags.join(" ")).env("CARGO_INCREMENTAL", "0");
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
        self.cross(&mut c)?;
        cmd::output(&mut c)?;
        Ok(target.join(self.rust()).join("release/ringwise"))
    }
}
