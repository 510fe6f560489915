//! Which QEMU boots the guests, and how it runs their CPUs.
//!
//! QEMU before 11.1 loses MMIO writes of other CPUs while a guest's memory map changes, when each virtual CPU has a
//! thread of its own (`tcg,thread=multi`): a lost write to a local APIC leaves that CPU without timer and interrupts.
//! So a newer QEMU is unpacked into the cache, beside the system's own and with libraries of its own release. If none
//! is available, the older one runs all CPUs in one thread.

use crate::kernel::Ready;
use crate::package::Arch;
use crate::{apt, cmd, image, paths, progress};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program for the guests of a machine, and the package that has it.
fn program(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// The first version that keeps every write.
const SOUND: Version = Version(11, 1);
/// The oldest with igb and L3 caches smaller than a package.
const OLDEST: Version = Version(10, 0);
/// A release and the suite of it that has `SOUND`.
const RELEASE: &str = "trixie";
const SUITE: &str = "trixie-backports";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// How the guest's CPUs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accel {
    Kvm,
    /// Software emulation, a thread for each CPU.
    Threads,
    /// Software emulation, one thread for all: slower, and safe with an old QEMU.
    OneThread,
}

impl Accel {
    /// QEMU's `-accel`.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Threads => "tcg,thread=multi",
            Accel::OneThread => "tcg,thread=single",
        }
    }
}

impl fmt::Display for Accel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Accel::Kvm => "with KVM",
            Accel::Threads => "by software emulation, without KVM",
            Accel::OneThread => "by software emulation in one thread, because this QEMU is older than 11.1",
        })
    }
}

/// A QEMU that starts.
#[derive(Debug, Clone)]
pub(crate) struct Qemu {
    pub version: Version,
    /// The program and the arguments that come before all others.
    words: Vec<String>,
}

impl Qemu {
    /// The words of a command line, to be placed after `setpriv` and similar programs.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    fn command(&self) -> Command {
        let mut c = Command::new(&self.words[0]);
        c.args(&self.words[1..]);
        c
    }
}

/// A QEMU for the lab: the system's own if it is new enough, else the one in the cache, else a new one.
pub(crate) fn ensure(arch: Arch) -> Result<Qemu> {
    if arch == Arch::Amd64
        && let Ok(program) = std::env::var("RINGWISE_LAB_QEMU")
    {
        return qemu_of(vec![program.clone()]).with_context(|| format!("RINGWISE_LAB_QEMU: {program} is not a QEMU"));
    }
    let own = cmd::find(program(arch).0).and_then(|p| qemu_of(vec![p.display().to_string()]));
    if let Some(q) = own.clone().filter(|q| q.version >= SOUND) {
        return Ok(q);
    }
    let dir = paths::cache().join(match arch {
        Arch::Amd64 => "qemu",
        Arch::Arm64 => "qemu-arm64",
    });
    if let Some(q) = unpacked(arch, &dir) {
        return Ok(q);
    }
    match fetch(arch, &dir) {
        Ok(q) => Ok(q),
        // Only what every guest needs is installed on this machine.
        Err(e) if arch != Arch::Amd64 => Err(e),
        Err(e) => {
            println!("setup: no QEMU {SOUND} is available ({e:#})");
            older(own)
        }
    }
}

/// The version that `--version` prints.
fn qemu_of(words: Vec<String>) -> Option<Qemu> {
    let mut c = Command::new(words.first()?);
    let out = cmd::output(c.args(&words[1..]).arg("--version")).ok()?;
    Some(Qemu { version: version(&out)?, words })
}

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split("version ").nth(1)?.split(|c: char| !c.is_ascii_digit());
    Some(Version(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The QEMU in the cache, started by the loader of its own release.
fn unpacked(arch: Arch, dir: &Path) -> Option<Qemu> {
    if !dir.join("ready").is_file() {
        return None;
    }
    let root = dir.join("root");
    let path = |p: &str| root.join(p).display().to_string();
    let libraries = path("usr/lib/x86_64-linux-gnu");
    let words = vec![
        format!("{libraries}/ld-linux-x86-64.so.2"),
        "--library-path".into(),
        libraries,
        path(&format!("usr/bin/{}", program(arch).0)),
        "-L".into(),
        path("usr/share/qemu"),
        "-L".into(),
        path("usr/share/seabios"),
    ];
    qemu_of(words).filter(|q| q.version >= SOUND)
}

fn fetch(arch: Arch, dir: &Path) -> Result<Qemu> {
    // Another lab may fetch the same QEMU.
    let tmp = dir.with_extension(format!("tmp-{}", std::process::id()));
    let _tmp = progress::temporary(&tmp);
    let _ = fs::remove_dir_all(&tmp);
    let apt = apt::Apt::new("qemu", &[RELEASE, SUITE])?;
    apt.update()?;
    let package = program(arch).1;
    println!("setup: fetching {package} from {SUITE} (40 MB, into the cache: nothing is installed)");
    apt.unpack_whole(package, SUITE, &tmp.join("root"))?;
    fs::write(tmp.join("ready"), "")?;
    let _ = fs::remove_dir_all(dir);
    fs::rename(&tmp, dir).context("QEMU into the cache")?;
    match unpacked(arch, dir) {
        Some(q) => Ok(q),
        None => bail!("the QEMU of {SUITE} does not start here, or is older than {SOUND}"),
    }
}

/// The system's QEMU for this machine's guests, which is installed if it is missing.
fn older(own: Option<Qemu>) -> Result<Qemu> {
    let new_enough = |q: &Qemu| q.version >= OLDEST;
    if let Some(q) = own.filter(new_enough) {
        return Ok(q);
    }
    let release = apt::codename()?;
    let backports = format!("{release}-backports");
    // Debian 12's own QEMU is too old.
    let target = (release == "bookworm").then_some(backports.as_str());
    let (program, package) = program(Arch::Amd64);
    println!("setup: installing {package} from {}", target.unwrap_or(&release));
    let suites: Vec<&str> = [release.as_str()].into_iter().chain(target).collect();
    let apt = apt::Apt::new("tools", &suites)?;
    apt.update()?;
    apt.install(target, &[package])?;
    let own = cmd::find(program).and_then(|p| qemu_of(vec![p.display().to_string()]));
    own.filter(new_enough).with_context(|| format!("QEMU was installed, but it is not {OLDEST} or newer"))
}

/// How this machine runs guests. KVM is used only if a test guest booted with it, because the device file alone proves
/// little.
pub(crate) fn accel(q: &Qemu, ready: &Ready) -> Result<Accel> {
    match std::env::var("RINGWISE_LAB_ACCEL").as_deref() {
        Ok("kvm") => return Ok(Accel::Kvm),
        Ok("multi") => return Ok(Accel::Threads),
        Ok("single") => return Ok(Accel::OneThread),
        Ok(other) => bail!("RINGWISE_LAB_ACCEL: expected kvm, multi or single, found {other:?}"),
        Err(_) => {}
    }
    let emulated = if q.version >= SOUND { Accel::Threads } else { Accel::OneThread };
    if ready.arch != Arch::Amd64 || fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(emulated);
    }
    let about = |path: &str| fs::read(path).unwrap_or_default();
    let cpu = String::from_utf8_lossy(&about("/proc/cpuinfo")).lines().take(9).collect::<String>();
    let key = cmd::hash(&[&about("/proc/version"), cpu.as_bytes(), q.version.to_string().as_bytes()]);
    let answer = paths::cache().join(format!("kvm-{key}"));
    let kvm = match fs::read_to_string(&answer) {
        Ok(text) => text.trim() == "yes",
        Err(_) => {
            println!("setup: /dev/kvm exists; booting a test guest with it");
            let works = boots_with_kvm(q, ready)?;
            println!("setup: KVM {}", if works { "works" } else { "cannot boot a guest here, so it is not used" });
            fs::write(&answer, if works { "yes\n" } else { "no\n" })?;
            works
        }
    };
    Ok(if kvm { Accel::Kvm } else { emulated })
}

/// What the guest's first process answers to `lab.probe` (lab/init.sh), as QEMU's exit status.
const PROBE: i32 = 42 << 1 | 1;

fn boots_with_kvm(q: &Qemu, ready: &Ready) -> Result<bool> {
    let log = paths::cache().join(format!("kvm-{}.log", std::process::id()));
    let err = fs::File::create(&log)?;
    let mut child = q
        .command()
        .args(["-accel", "kvm", "-machine", "q35", "-cpu", "Nehalem", "-smp", "2", "-m", "512M"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x4", "-append", "lab.probe quiet panic=-1"])
        .arg("-kernel")
        .arg(&ready.image)
        .arg("-initrd")
        .arg(image::ensure(ready)?)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(err)
        .spawn()
        .context("cannot start QEMU")?;
    let end = Instant::now() + Duration::from_secs(30);
    // After an error of KVM, QEMU stops the guest but does not exit.
    let broken = || fs::read_to_string(&log).is_ok_and(|t| t.contains("KVM internal error") || t.contains("EFER="));
    let status = loop {
        if let Some(s) = child.try_wait()? {
            break s.code();
        }
        if Instant::now() > end || broken() {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let _ = fs::remove_file(&log);
    Ok(status == Some(PROBE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        let of = |t: &str| version(t).unwrap();
        let new = of("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1~bpo13+1)\nCopyright");
        assert_eq!(new, Version(11, 1));
        assert!(new >= SOUND && of("QEMU emulator version 10.0.13") < SOUND);
        assert!(of("QEMU emulator version 9.2.0") < OLDEST);
        assert_eq!(version("no QEMU"), None);
    }
}
