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

/// A public key.
pub(crate) struct PublicKey {
    pub(crate) file: PathBuf,
    /// Its second line, by which people compare keys.
    pub(crate) text: String,
}

/// The public key that belongs to a secret key without a password, written into `dir`.
pub(crate) fn public(secret: &Path, dir: &Path) -> Result<PublicKey> {
    fs::create_dir_all(dir)?;
    let file = dir.join("release.pub");
    let mut c = Command::new(cmd::need("minisign")?);
    c.args(["-R", "-f", "-s"]).arg(secret).arg("-p").arg(&file);
    cmd::output(&mut c).with_context(|| format!("--key {}", secret.display()))?;
    let text = fs::read_to_string(&file)?;
    let text = text.lines().nth(1).context("minisign wrote no public key")?.to_string();
    Ok(PublicKey { file, text })
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
