//! `cargo xtask setup`: what the lab needs, from a machine where nothing was installed by hand.

use crate::{apt, cmd, grafana, host, kernel, module, paths, userland};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// A program that is looked for, and the package that brings it.
const TOOLS: &[(&str, &str)] = &[
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
    ("gzip", "gzip"),
    ("gcc", "gcc"),
    ("strip", "binutils"),
    ("make", "make"),
    ("unshare", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mmdebstrap", "mmdebstrap"),
    ("setpriv", "util-linux"),
    ("chromium", "chromium"),
];

pub fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(other) = args.first() {
        bail!("setup takes no argument {other:?}");
    }
    tools()?;
    rust_components()?;
    let kernels = kernel::table()?;
    for k in &kernels {
        let got = kernel::ensure(k)?;
        let mut modules = Vec::new();
        for m in [module::TEST_NIC, module::COST_MODEL] {
            modules.push(match m.ensure(k, &got)? {
                module::Built::Module(_) => format!("{} built", m.title),
                module::Built::No(why) => format!("no {}: {why}", m.title),
            });
        }
        println!("setup: kernel {:5} {} ({})", k.name, got.release, modules.join(", "));
    }
    if host::all()?.iter().any(|h| h.system == host::System::Systemd) {
        let image = userland::ensure()?;
        println!("setup: userland {}", image.display());
    }
    if let Err(e) = tuned() {
        println!("setup: no tuned ({e:#}): the test that its profiles are read says skipped");
    }
    if let Err(e) = grafana::prometheus() {
        println!("setup: no prometheus ({e:#}): the check of the dashboard fails, promtool in the tests says skipped");
    }
    println!("setup: done, cache {}", paths::cache().display());
    Ok(ExitCode::SUCCESS)
}

/// QEMU's version, if it is there at all.
fn qemu_major() -> Option<u32> {
    let out = cmd::output(Command::new("qemu-system-x86_64").arg("--version")).ok()?;
    let word = out.split("version ").nth(1)?;
    word.split('.').next()?.parse().ok()
}

/// The parts of the Rust toolchain that a minimal installation leaves out.
fn rust_components() -> Result<()> {
    for (tool, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        let there = Command::new(tool).arg("--version").output();
        if there.is_ok_and(|o| o.status.success()) || cmd::find("rustup").is_none() {
            continue;
        }
        println!("setup: installing the Rust component {component}");
        cmd::retried("rustup", || cmd::output(Command::new("rustup").args(["component", "add", component])).map(drop))?;
    }
    Ok(())
}

/// Installs missing programs, and says which.
pub fn tools() -> Result<()> {
    let mut missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| cmd::find(program).is_none()).map(|(_, package)| *package).collect();
    missing.dedup();
    let qemu = qemu_major().is_none_or(|v| v < 8);
    if missing.is_empty() && !qemu {
        return Ok(());
    }
    let release = apt::codename()?;
    let backports = format!("{release}-backports");
    let names = [release.clone(), format!("{release}-updates"), format!("{release}-security"), backports.clone()];
    let mut suites: Vec<&str> = names.iter().map(String::as_str).collect();
    // Before Debian 13 the distribution's own QEMU has neither igb nor small L3 domains.
    let from_backports = qemu && release == "bookworm";
    if !from_backports {
        suites.pop();
    }
    let apt = apt::Apt::new("tools", &suites)?;
    apt.update()?;
    if !missing.is_empty() {
        println!("setup: installing {}", missing.join(" "));
        apt.install(None, &missing)?;
    }
    if qemu {
        let target = from_backports.then_some(backports.as_str());
        println!("setup: installing qemu-system-x86 from {}", target.unwrap_or(&release));
        apt.install(target, &["qemu-system-x86"])?;
    }
    match qemu_major() {
        Some(v) if v >= 8 => Ok(()),
        Some(v) => bail!("QEMU {v} is too old: the lab needs 8.0 or newer"),
        None => bail!("QEMU was installed but does not start"),
    }
}

/// tuned's Python modules, unpacked into the cache: what reads an exported profile in the tests.
fn tuned() -> Result<()> {
    let root = paths::cache().join("tuned");
    if root.join("usr").is_dir() {
        return Ok(());
    }
    println!("setup: fetching tuned");
    let apt = apt::Apt::new("tuned", &[&apt::codename()?])?;
    apt.update()?;
    let tmp = root.with_extension("tmp");
    for dir in [&tmp, &root] {
        let _ = fs::remove_dir_all(dir);
    }
    apt.unpack(&["tuned".to_string()], &tmp)?;
    fs::rename(&tmp, &root).context("tuned")
}

/// A static busybox, unpacked into the cache: the package would replace the machine's own one.
pub fn busybox() -> Result<PathBuf> {
    let root = paths::cache().join("busybox");
    for place in ["bin/busybox", "usr/bin/busybox"] {
        if root.join(place).is_file() {
            return Ok(root.join(place));
        }
    }
    println!("setup: fetching busybox-static");
    let release = apt::codename()?;
    let apt = apt::Apt::new("busybox", &[&release])?;
    apt.update()?;
    let _ = fs::remove_dir_all(&root);
    apt.unpack(&["busybox-static".to_string()], &root)?;
    ["bin/busybox", "usr/bin/busybox"]
        .iter()
        .map(|p| root.join(p))
        .find(|p| p.is_file())
        .context("busybox-static holds no busybox")
}
