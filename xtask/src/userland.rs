//! A Debian with systemd as an ext4 image, for hosts with `system = "systemd"`: made once from the
//! machine's own apt sources, kept in the cache, attached to a guest as a snapshot.

use crate::{apt, cmd, paths};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &[&str] = &[
    "systemd-sysv",
    "dbus",
    "libpam-systemd",
    "openssh-server",
    "openssh-client",
    "irqbalance",
    "ethtool",
    "iproute2",
    "kmod",
    "procps",
    "udev",
];

/// What hosts with `python` have in addition.
const FOR_ANSIBLE: &[&str] = &["python3", "sudo"];

/// Only files that guests read are kept.
const LEFT_OUT: &[&str] = &["doc", "man", "locale", "info", "i18n"];

/// The image, from the cache or made. With Python it is another one, so that other hosts stay without it.
pub(crate) fn ensure(python: bool) -> Result<PathBuf> {
    let packages: Vec<&str> = PACKAGES.iter().chain(FOR_ANSIBLE.iter().filter(|_| python)).copied().collect();
    let kind = if python { "python-" } else { "" };
    let hook = paths::lab().join("userland/setup.sh");
    let release = apt::codename()?;
    let key = cmd::hash(&[&fs::read(&hook)?, packages.join(" ").as_bytes(), release.as_bytes(), b"1"]);
    let dir = paths::cache().join("userland");
    let image = dir.join(format!("{kind}{release}-{key}.ext4"));
    if image.is_file() {
        return Ok(image);
    }
    println!("setup: making a Debian {release} with {} (in an image, not on this machine)", packages.join(" "));
    let suites = [release.clone(), format!("{release}-updates"), format!("{release}-security")];
    let suites: Vec<&str> = suites.iter().map(String::as_str).collect();
    let sources = apt::Apt::new("userland", &suites)?.sources();
    let root = dir.join(format!("root-{kind}{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let made = cmd::retried("making the userland", || bootstrap(&release, &packages, &sources, &hook, &root));
    let packed = made.and_then(|()| pack(&root, &image));
    let _ = fs::remove_dir_all(&root);
    packed?;
    for old in fs::read_dir(&dir)?.flatten().map(|e| e.path()) {
        let same_kind = old.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python-") == python);
        if old != image && same_kind && old.extension().is_some_and(|e| e == "ext4") {
            let _ = fs::remove_file(old);
        }
    }
    Ok(image)
}

fn bootstrap(release: &str, packages: &[&str], sources: &Path, hook: &Path, root: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(root);
    // Its mounts are in their own namespace, so nothing stays mounted, however it ends.
    let mut c = Command::new(cmd::need("unshare")?);
    c.arg("-m").arg(cmd::need("mmdebstrap")?);
    c.args(["--mode=root", "--variant=essential", "--format=directory"]);
    c.arg(format!("--include={}", packages.join(",")));
    c.args(["--aptopt=Acquire::Languages \"none\"", "--aptopt=Acquire::Retries \"2\""]);
    for part in LEFT_OUT {
        c.arg(format!("--dpkgopt=path-exclude=/usr/share/{part}/*"));
    }
    c.arg(format!("--customize-hook=sh '{}' \"$1\"", hook.display()));
    c.arg(release).arg(root).arg(sources);
    c.env("LC_ALL", "C");
    cmd::output(&mut c).map(drop)
}

/// A sparse file with space for what scenarios write.
fn pack(root: &Path, image: &Path) -> Result<()> {
    // Another setup may be doing the same.
    let tmp = image.with_extension(format!("tmp-{}", std::process::id()));
    let _ = fs::remove_file(&tmp);
    let mut c = Command::new(cmd::need("mkfs.ext4")?);
    c.args(["-q", "-F", "-L", "lab", "-E", "root_owner=0:0", "-J", "size=8", "-d"]).arg(root).arg(&tmp).arg("768M");
    cmd::output(&mut c)?;
    fs::rename(&tmp, image).with_context(|| image.display().to_string())
}
