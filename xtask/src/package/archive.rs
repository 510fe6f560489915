//! Tarballs with stable bytes, and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cmd;

/// A directory as a tar whose bytes depend on its content only. `name`: a directory that holds everything.
pub(crate) fn tar(dir: &Path, to: &Path, name: Option<&str>, time: u64) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar", "--create"]);
    tar.arg(format!("--mtime=@{time}")).arg("--file").arg(to);
    tar.args(name.map(|n| format!("--transform=s,^\\.,{n},")));
    tar.arg("-C").arg(dir).arg(".");
    cmd::output(&mut tar).map(drop)
}

/// A directory as a compressed tar, below one directory.
pub(crate) fn compressed(dir: &Path, to: &Path, name: &str, work: &Path, time: u64) -> Result<()> {
    let plain = work.join("plain.tar");
    tar(dir, &plain, Some(name), time)?;
    gzip(&plain, to)?;
    fs::remove_file(&plain).with_context(|| plain.display().to_string())
}

fn gzip(plain: &Path, to: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name", "--stdout"]).arg(plain);
    fs::write(to, cmd::bytes(&mut gzip)?).with_context(|| to.display().to_string())
}

/// The configuration of cargo that `cargo vendor` only prints, and with `--quiet` not even that.
const VENDORED: &str = "\
[source.crates-io]
replace-with = \"vendored-sources\"

[source.vendored-sources]
directory = \"vendor\"
";

/// The source of a commit with the sources of all dependencies, and a configuration by which cargo uses these: it builds
/// without a network.
pub(crate) fn source(root: &Path, to: &Path, name: &str, work: &Path, time: u64) -> Result<()> {
    let dir = work.join("source");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let committed = work.join("committed.tar");
    let mut git = Command::new("git");
    cmd::output(git.arg("-C").arg(root).args(["archive", "--format=tar", "--output"]).arg(&committed).arg("HEAD"))?;
    cmd::output(Command::new("tar").arg("-xf").arg(&committed).arg("-C").arg(&dir))?;
    let mut vendor = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    vendor.current_dir(&dir).args(["vendor", "--quiet", "--locked", "--versioned-dirs", "vendor"]);
    cmd::output(&mut vendor)?;
    let file = dir.join(".cargo/config.toml");
    let own = fs::read_to_string(&file).unwrap_or_default();
    fs::create_dir_all(dir.join(".cargo"))?;
    fs::write(&file, format!("{own}\n{VENDORED}"))?;
    compressed(&dir, to, name, work, time)?;
    fs::remove_file(&committed)?;
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
}

/// The checksums of files in `out`, in the format that `sha256sum --check` reads.
pub(crate) fn sums(out: &Path, files: &[PathBuf], name: &str) -> Result<PathBuf> {
    let mut c = Command::new("sha256sum");
    c.current_dir(out).args(files.iter().filter_map(|f| f.file_name()));
    let to = out.join(name);
    fs::write(&to, cmd::output(&mut c)?)?;
    Ok(to)
}
