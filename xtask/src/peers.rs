//! Monitors of the distribution that show interrupts or queues, for a guest (or a namespace) to compare with: unpacked
//! into one directory with everything they need, in which they run by chroot. They are never installed.

use crate::{apt, cmd, paths};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// sar and mpstat; irqtop of iptables-netflow, a Ruby program that calls a shell and ethtool; lsirq.
const PACKAGES: &[&str] = &[
    "sysstat",
    "irqtop",
    "ruby",
    "ruby-curses",
    "ethtool",
    "dash",
    "hostname",
    "util-linux-extra",
    "libc6",
    "libgcc-s1",
];

/// The directory as a tar file in the cache.
pub(crate) fn ensure() -> Result<PathBuf> {
    let tar = paths::cache().join("peers.tar");
    if tar.is_file() {
        return Ok(tar);
    }
    println!("setup: fetching sysstat and irqtop");
    let apt = apt::Apt::new("peers", &[&apt::codename()?])?;
    apt.update()?;
    let ruby = apt.names("ruby3.")?.into_iter().filter(|n| n[5..].bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let ruby = ruby.max().context("no package of Ruby 3")?;
    let mut packages = Vec::new();
    for p in PACKAGES.iter().copied().chain([ruby.as_str()]) {
        for name in apt.with_libraries(p)? {
            if !packages.contains(&name) {
                packages.push(name);
            }
        }
    }
    let root = paths::cache().join("peers.tmp");
    let _ = fs::remove_dir_all(&root);
    apt.unpack(&packages, &root)?;
    for dir in ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/bash-completion"] {
        let _ = fs::remove_dir_all(root.join(dir));
    }
    for dir in ["proc", "sys", "dev", "tmp", "bin"] {
        fs::create_dir_all(root.join(dir))?;
    }
    // What the packages' own scripts would do.
    for (link, to) in [("bin/sh", "dash"), ("usr/bin/sar", "sar.sysstat")] {
        if !root.join(link).exists() {
            std::os::unix::fs::symlink(to, root.join(link))?;
        }
    }
    let tmp = tar.with_extension("new");
    cmd::output(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tmp).arg("."))?;
    fs::rename(&tmp, &tar)?;
    fs::remove_dir_all(&root)?;
    Ok(tar)
}

/// As `peers.tar` in the share.
pub(crate) fn put(share: &Path) -> Result<()> {
    fs::copy(ensure()?, share.join("peers.tar"))?;
    Ok(())
}
