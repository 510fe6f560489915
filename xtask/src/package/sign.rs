//! Signatures by minisign, which a user can check with the public key of the releases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cmd;

/// Signs every file with a secret key that has no password of its own: the file system protects it. The signature of
/// `FILE` is `FILE.minisig`.
pub(crate) fn all(files: &[PathBuf], key: &Path, version: &str) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for file in files {
        let to = PathBuf::from(format!("{}.minisig", file.display()));
        let mut c = Command::new(cmd::need("minisign")?);
        c.args(["-S", "-s"])
            .arg(key)
            .arg("-x")
            .arg(&to)
            .args(["-t", &format!("ringwise {version}")])
            .arg("-m")
            .arg(file);
        cmd::output(&mut c)?;
        out.push(to);
    }
    Ok(out)
}

/// Whether the signature beside a file is one of the public key.
pub(crate) fn is_valid(file: &Path, public: &Path) -> Result<bool> {
    let mut c = Command::new(cmd::need("minisign")?);
    c.args(["-V", "-q", "-p"]).arg(public).arg("-m").arg(file);
    Ok(c.output().context("minisign")?.status.success())
}

/// A key pair for tests: secret and public file in `dir`.
pub(crate) fn test_key(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    fs::create_dir_all(dir)?;
    let (secret, public) = (dir.join("test.key"), dir.join("test.pub"));
    let mut c = Command::new(cmd::need("minisign")?);
    c.args(["-G", "-f", "-W", "-p"]).arg(&public).arg("-s").arg(&secret);
    cmd::output(&mut c)?;
    Ok((secret, public))
}
