//! What the files of a release hold, without installing them: versions, checksums, signatures, the packages of another
//! machine, and a build of the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::super::{Packages, VERSION, sign};
use super::{Tally, installed};
use crate::cmd;

/// Both packages carry the version of the workspace and the right machine.
pub(super) fn versions(p: &Packages, t: &mut Tally) -> Result<()> {
    let mut deb = Command::new(cmd::need("dpkg-deb")?);
    deb.args(["--showformat", "${Version} ${Architecture}", "--show"]).arg(&p.deb);
    let found = cmd::output(&mut deb)?;
    t.check("version and machine of the .deb", found == format!("{VERSION}-1 {}", p.arch.debian()));
    let mut rpm = Command::new(cmd::need("rpm")?);
    rpm.args(["--query", "--nosignature", "--queryformat", "%{VERSION}-%{RELEASE} %{ARCH}", "--package"]).arg(&p.rpm);
    let found = cmd::output(&mut rpm)?;
    t.check("version and machine of the .rpm", found == format!("{VERSION}-1 {}", p.arch.rpm()));
    Ok(())
}

/// The packages of a machine that this one can only emulate: both and the tarball are unpacked, and their programs run.
pub(super) fn unpacked(p: &Packages, work: &Path, t: &mut Tally) -> Result<()> {
    println!("package: the files for {}, unpacked; their program by {}", p.arch.debian(), p.arch.runner().join(" "));
    let root = work.join("unpacked");
    let _ = fs::remove_dir_all(&root);
    for (name, file) in [("deb", &p.deb), ("rpm", &p.rpm), ("tar", &p.tree)] {
        let dir = root.join(name);
        fs::create_dir_all(&dir)?;
        match name {
            "deb" => {
                cmd::output(Command::new(cmd::need("dpkg-deb")?).arg("--extract").arg(file).arg(&dir)).map(drop)?
            }
            "rpm" => rpm(file, &dir)?,
            _ => cmd::output(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(file).arg("-C").arg(&dir))
                .map(drop)?,
        }
        installed(&dir, t);
        let program = dir.join("usr/sbin/ringwise");
        let mut words = p.arch.runner().iter().map(std::ffi::OsStr::new).chain([program.as_os_str()]);
        let mut c = Command::new(words.next().context("no program")?);
        let out = c.args(words).arg("--version").stdin(Stdio::null()).output().with_context(|| name.to_string())?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        t.check(&format!("the program of the .{name} runs"), out.status.success() && text.contains(VERSION));
    }
    fs::remove_dir_all(&root).with_context(|| root.display().to_string())
}

/// Its scripts need programs of their machine, so they do not run.
fn rpm(file: &Path, dir: &Path) -> Result<()> {
    let command = |words: &[&str]| {
        let mut c = Command::new(cmd::need("rpm")?);
        cmd::output(c.arg("--root").arg(dir).args(["--dbpath", "/var/lib/rpm"]).args(words))
    };
    command(&["--initdb"])?;
    command(&["--install", "--nodeps", "--ignorearch", "--noscripts", &file.to_string_lossy()]).map(drop)
}

/// The list of checksums fits the files beside it, and not a changed one.
pub(crate) fn sums(list: &Path, t: &mut Tally) -> Result<()> {
    let dir = list.parent().context("a list of checksums is in a directory")?;
    let check = |text: &str| -> Result<bool> {
        let copy = list.with_extension("tried");
        fs::write(&copy, text)?;
        let mut c = Command::new("sha256sum");
        let out = c.current_dir(dir).args(["--check", "--strict", "--quiet"]).arg(&copy).output();
        fs::remove_file(&copy)?;
        Ok(out.context("sha256sum")?.status.success())
    };
    let text = fs::read_to_string(list).with_context(|| list.display().to_string())?;
    t.check("the checksums fit the files", check(&text)?);
    let digit = if text.starts_with('0') { "1" } else { "0" };
    t.check("a wrong checksum is found", !check(&format!("{digit}{}", text.get(1..).unwrap_or_default()))?);
    Ok(())
}

/// A signature is accepted, and not for changed bytes.
pub(crate) fn signatures(file: &Path, work: &Path, t: &mut Tally) -> Result<()> {
    let dir = work.join("test-key");
    let (secret, public) = sign::test_key(&dir)?;
    let copy = dir.join("signed");
    fs::copy(file, &copy)?;
    sign::all(std::slice::from_ref(&copy), &secret, VERSION)?;
    t.check("a signature is valid", sign::is_valid(&copy, &public)?);
    let mut bytes = fs::read(&copy)?;
    bytes.push(0);
    fs::write(&copy, bytes)?;
    t.check("a signature does not fit other bytes", !sign::is_valid(&copy, &public)?);
    Ok(())
}

/// Every file has a signature of this public key.
pub(crate) fn signed(files: &[PathBuf], public: &Path, t: &mut Tally) -> Result<()> {
    for file in files {
        t.check(&format!("signature of {}", file.display()), sign::is_valid(file, public)?);
    }
    Ok(())
}

/// The source builds in a fresh directory with an empty cache of cargo and without a network, as docs/install.md
/// promises; here without optimization. The program runs.
pub(crate) fn source(tarball: &Path, work: &Path, t: &mut Tally) -> Result<()> {
    println!("package: the source, built without a network and with an empty cache of cargo");
    let dir = work.join("source-trial");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("home"))?;
    cmd::output(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(tarball).arg("-C").arg(&dir))?;
    let mut c = Command::new(cmd::need("unshare")?);
    c.arg("--net").arg(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.args(["build", "--quiet", "--offline", "--locked", "-p", "ringwise"]).current_dir(&dir).stdin(Stdio::null());
    c.env("CARGO_HOME", dir.join("home")).env("CARGO_TARGET_DIR", dir.join("target")).env("CARGO_INCREMENTAL", "0");
    for name in ["RUSTFLAGS", "RUSTC"] {
        c.env_remove(name);
    }
    let out = c.output().context("unshare")?;
    t.check("the source builds offline", out.status.success());
    if out.status.success() {
        let version = cmd::output(Command::new(dir.join("target/debug/ringwise")).arg("--version"))?;
        t.check("the program built from the source runs", version.contains(VERSION));
    } else {
        println!("{}", String::from_utf8_lossy(&out.stderr));
    }
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
}
