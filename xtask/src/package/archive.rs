//! Tarballs with stable bytes, and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::arch::Arch;
use super::stage::Stage;
use crate::cmd;

/// The tree of the packages below one directory, for hosts without either package format.
pub(crate) fn binary(stage: &Stage, to: &Path, name: &str, work: &Path, time: u64) -> Result<()> {
    let plain = work.join("plain.tar");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar", "--create"]);
    tar.arg(format!("--mtime=@{time}")).arg(format!("--transform=s,^\\.,{name},")).arg("--file").arg(&plain);
    tar.arg("-C").arg(&stage.root).arg(".");
    cmd::output(&mut tar)?;
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name", "--stdout"]).arg(&plain);
    fs::write(to, cmd::bytes(&mut gzip)?).with_context(|| to.display().to_string())
}

/// `SHA256SUMS-ARCH`, in the format that `sha256sum --check` reads.
pub(crate) fn sums(out: &Path, files: &[PathBuf], arch: Arch) -> Result<PathBuf> {
    let mut c = Command::new("sha256sum");
    c.current_dir(out).args(files.iter().filter_map(|f| f.file_name()));
    let to = out.join(format!("SHA256SUMS-{}", arch.debian()));
    fs::write(&to, cmd::output(&mut c)?)?;
    Ok(to)
}
