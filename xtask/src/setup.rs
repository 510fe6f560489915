//! `cargo xtask setup`: installs what the lab needs on a fresh machine.

use crate::package::Arch;
use crate::{apt, cmd, fleet, grafana, host, image, kernel, lab, module, mutate, paths, progress, qemu, userland};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What setup prepares for. Each lane includes the lanes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Demo,
    /// `make test`
    Quick,
    /// `make test-all`
    All,
}

/// A program that is looked for, the package that brings it, and the first lane that needs it.
const TOOLS: &[(&str, &str, Lane)] = &[
    ("cpio", "cpio", Lane::Demo),
    ("depmod", "kmod", Lane::Demo),
    ("modprobe", "kmod", Lane::Demo),
    ("ethtool", "ethtool", Lane::Demo),
    ("ip", "iproute2", Lane::Demo),
    ("tc", "iproute2", Lane::Demo),
    ("xz", "xz-utils", Lane::Demo),
    ("zstd", "zstd", Lane::Demo),
    ("gzip", "gzip", Lane::Demo),
    ("gcc", "gcc", Lane::Demo),
    ("strip", "binutils", Lane::Demo),
    ("unshare", "util-linux", Lane::Demo),
    ("setpriv", "util-linux", Lane::Demo),
    ("make", "make", Lane::Quick),
    ("shellcheck", "shellcheck", Lane::Quick),
    ("mkfs.ext4", "e2fsprogs", Lane::Quick),
    ("mmdebstrap", "mmdebstrap", Lane::Quick),
    ("chromium", "chromium", Lane::Quick),
    ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", Lane::All),
    // The C library for it.
    ("aarch64-linux-gnu-gcc", "libc6-dev-arm64-cross", Lane::All),
    ("qemu-aarch64-static", "qemu-user-static", Lane::All),
    ("lintian", "lintian", Lane::All),
    ("rpm", "rpm", Lane::All),
    ("rpmlint", "rpmlint", Lane::All),
    ("runc", "runc", Lane::All),
    ("ssh", "openssh-client", Lane::All),
    ("ssh-keygen", "openssh-client", Lane::All),
    ("minisign", "minisign", Lane::All),
    ("go", "golang-go", Lane::All),
];

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let lane = match args {
        [] => Lane::All,
        [flag, lane] if flag == "--lane" => match lane.as_str() {
            "demo" => Lane::Demo,
            "quick" => Lane::Quick,
            "all" => Lane::All,
            other => bail!("--lane: expected demo, quick or all, found {other:?}"),
        },
        [other, ..] => bail!("setup: expected only --lane LANE, found {other:?}"),
    };
    progress::catch_signals()?;
    tools(lane)?;
    if lane > Lane::Demo {
        rust_components()?;
    }
    progress::shown(|| fetch(lane))?;
    println!("setup: done, cache {}", paths::cache().display());
    Ok(ExitCode::SUCCESS)
}

/// Fetches into the cache, without installing anything.
pub(crate) fn fetch(lane: Lane) -> Result<()> {
    let boots = lab::boots(lane, Arch::Amd64)?;
    guests(lane, Arch::Amd64, &boots)?;
    if boots.iter().any(|(h, _)| h.system == host::System::Systemd) {
        println!("setup: userland {}", userland::ensure(false)?.display());
    }
    if lane == Lane::All
        && let Err(e) = lab::boots(lane, Arch::Arm64).and_then(|boots| guests(lane, Arch::Arm64, &boots))
    {
        println!("setup: no guests for arm64 ({e:#}): the lab of that machine fails");
    }
    if lane > Lane::Demo
        && let Err(e) = tuned()
    {
        let then = if lane == Lane::All { "fails" } else { "is skipped" };
        println!("setup: no tuned ({e:#}): the test that it reads our profiles {then}");
    }
    if lane == Lane::All
        && let Err(e) = fleet::fetch()
    {
        println!("setup: no Ansible ({e:#}): the plays against guests fail");
    }
    if lane == Lane::All
        && let Err(e) = grafana::prometheus()
    {
        println!("setup: no prometheus ({e:#}): the check of the dashboard and the test that uses promtool fail");
    }
    if lane == Lane::All
        && let Err(e) = mutate::TOOL.ensure()
    {
        println!("setup: no cargo-mutants ({e:#}): `cargo xtask mutate` fails");
    }
    Ok(())
}

/// QEMU, kernels, images and modules of the boots of a machine.
fn guests(lane: Lane, arch: Arch, boots: &[(host::Host, String)]) -> Result<()> {
    let qemu = qemu::ensure(arch)?;
    for k in kernel::table()? {
        let here: Vec<_> = boots.iter().filter(|(_, kernel)| *kernel == k.name).collect();
        if here.is_empty() {
            continue;
        }
        let got = kernel::ensure(&k)?;
        image::ensure(&got)?;
        let mut built = String::new();
        if here.iter().any(|(h, _)| h.has_test_nic()) && lane > Lane::Demo {
            for m in [module::TEST_NIC, module::COST_MODEL] {
                built += &match m.ensure(&k, &got)? {
                    module::Built::Module(_) => format!(", {} built", m.title),
                    module::Built::No(why) => format!(", no {}: {why}", m.title),
                };
            }
        }
        let accel = qemu::accel(&qemu, &got)?;
        println!("setup: kernel {:6} {}{built}; runs in QEMU {} {accel}", k.name, got.release, qemu.version);
    }
    Ok(())
}

/// The parts of the Rust toolchain that a minimal installation leaves out.
pub(crate) fn rust_components() -> Result<()> {
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

/// Installs missing programs, and prints their names.
pub(crate) fn tools(lane: Lane) -> Result<()> {
    let wanted = TOOLS.iter().filter(|t| lane >= t.2);
    let mut missing: Vec<&str> =
        wanted.filter(|(program, ..)| cmd::find(program).is_none()).map(|(_, package, _)| *package).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let release = apt::codename()?;
    let names = [release.clone(), format!("{release}-updates"), format!("{release}-security")];
    let suites: Vec<&str> = names.iter().map(String::as_str).collect();
    let apt = apt::Apt::new("tools", &suites)?;
    println!("setup: installing {} on this machine", missing.join(" "));
    apt.update()?;
    apt.install(None, &missing)
}

/// tuned's Python modules, unpacked into the cache. Tests use them to read an exported profile.
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
pub(crate) fn busybox(arch: Arch) -> Result<PathBuf> {
    let name = match arch {
        Arch::Amd64 => "busybox",
        Arch::Arm64 => "busybox-arm64",
    };
    let root = paths::cache().join(name);
    for place in ["bin/busybox", "usr/bin/busybox"] {
        if root.join(place).is_file() {
            return Ok(root.join(place));
        }
    }
    println!("setup: fetching busybox-static for {}", arch.debian());
    let release = apt::codename()?;
    let apt = match arch {
        Arch::Amd64 => apt::Apt::new(name, &[&release])?,
        Arch::Arm64 => apt::Apt::for_machine(name, &[&release], arch.debian())?,
    };
    apt.update()?;
    let _ = fs::remove_dir_all(&root);
    apt.unpack(&["busybox-static".to_string()], &root)?;
    ["bin/busybox", "usr/bin/busybox"]
        .iter()
        .map(|p| root.join(p))
        .find(|p| p.is_file())
        .context("the package busybox-static contains no busybox")
}
