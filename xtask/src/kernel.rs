//! The lab's kernels: found in the archive, unpacked into the cache, made bootable.

use crate::package::Arch;
use crate::{apt::Apt, cmd, paths};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    pub name: String,
    prefix: String,
    suffix: String,
    suites: Vec<String>,
    #[serde(default)]
    pub arch: Arch,
    #[serde(default = "yes")]
    pub test_nic: bool,
    pub tools_suite: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Table {
    kernel: Vec<Kernel>,
}

/// A kernel on disk.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub arch: Arch,
    pub release: String,
    /// Holds `lib/modules/RELEASE`.
    pub root: PathBuf,
    /// What QEMU boots: the ELF, or the compressed image where it could not be unpacked.
    pub image: PathBuf,
}

/// `lab/kernels.toml`.
pub(crate) fn table() -> Result<Vec<Kernel>> {
    let path = paths::lab().join("kernels.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let table: Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(table.kernel)
}

impl Kernel {
    pub(crate) fn dir(&self) -> PathBuf {
        paths::cache().join("kernels").join(&self.name)
    }

    /// An apt that sees this kernel's suites; lists are read once for each.
    pub(crate) fn apt(&self) -> Result<Apt> {
        let suites: Vec<&str> = self.suites.iter().map(String::as_str).collect();
        let name = format!("kernel-{}", self.name);
        let apt = match self.arch {
            Arch::Amd64 => Apt::new(&name, &suites)?,
            other => Apt::for_machine(&name, &suites, other.debian())?,
        };
        apt.update()?;
        Ok(apt)
    }
}

/// The kernel, from the cache or fetched.
pub(crate) fn ensure(k: &Kernel) -> Result<Ready> {
    let dir = k.dir();
    let stamp = dir.join("release");
    if let Ok(release) = fs::read_to_string(&stamp) {
        return ready(k.arch, &dir, release.trim());
    }
    let _ = fs::remove_dir_all(&dir);
    let apt = k.apt()?;
    let (release, packages) = choose(k, &apt.names("linux-")?)?;
    println!("setup: fetching kernel {} ({})", k.name, packages.join(" "));
    let root = dir.join("root");
    apt.unpack(&packages, &root)?;
    tidy(&root, &release)?;
    let vmlinuz = vmlinuz(&root, &release)?;
    match extract(&vmlinuz) {
        // Only an x86 kernel is an ELF file in a compressed image.
        _ if k.arch != Arch::Amd64 => drop(fs::copy(&vmlinuz, dir.join("vmlinuz"))?),
        Ok(elf) => fs::write(dir.join("vmlinux"), elf)?,
        Err(e) => {
            println!("setup: kernel {}: booting the compressed image ({e:#})", k.name);
            fs::copy(&vmlinuz, dir.join("vmlinuz"))?;
        }
    }
    cmd::output(Command::new(cmd::need("depmod")?).arg("-b").arg(&root).arg(&release))?;
    fs::write(&stamp, &release)?;
    ready(k.arch, &dir, &release)
}

fn ready(arch: Arch, dir: &Path, release: &str) -> Result<Ready> {
    let image = ["vmlinux", "vmlinuz"]
        .iter()
        .map(|n| dir.join(n))
        .find(|p| p.is_file())
        .with_context(|| format!("{} contains no kernel: delete it and run cargo xtask setup", dir.display()))?;
    Ok(Ready { arch, release: release.to_string(), root: dir.join("root"), image })
}

/// Numbers of a version compare as numbers.
fn version_key(v: &str) -> Vec<u64> {
    v.split(|c: char| !c.is_ascii_digit()).filter_map(|p| p.parse().ok()).collect()
}

/// The newest matching release, and its packages.
fn choose(k: &Kernel, names: &[String]) -> Result<(String, Vec<String>)> {
    let has = |n: &str| names.iter().any(|m| m == n);
    let mut best: Option<(Vec<u64>, String, Vec<String>)> = None;
    for name in names {
        // (release, packages)
        let (rest, split) = if let Some(r) = name.strip_prefix("linux-image-") {
            (r, false)
        } else if let Some(r) = name.strip_prefix("linux-binary-unsigned-") {
            (r, true)
        } else if let Some(r) = name.strip_prefix("linux-binary-") {
            (r, true)
        } else {
            continue;
        };
        let fits = rest.starts_with(&k.prefix)
            && rest.ends_with(&k.suffix)
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && ["-cloud", "-rt", "dbg"].iter().all(|bad| !rest.contains(bad));
        if !fits {
            continue;
        }
        let modules = format!("linux-modules-{rest}");
        let mut packages = vec![name.clone()];
        match (split, has(&modules)) {
            (_, true) => packages.push(modules),
            // A split package whose modules are missing cannot be used.
            (true, false) if !has(&format!("linux-image-{rest}")) => continue,
            (true, false) => packages = vec![format!("linux-image-{rest}")],
            (false, false) => {}
        }
        // From 7.2 on, an image package only depends on the two halves.
        if !split && has(&format!("linux-binary-{rest}")) && packages.len() > 1 {
            packages[0] = format!("linux-binary-{rest}");
        }
        let key = version_key(rest);
        if best.as_ref().is_none_or(|(b, _, _)| key > *b) {
            best = Some((key, rest.to_string(), packages));
        }
    }
    best.map(|(_, release, packages)| (release, packages))
        .with_context(|| format!("no package for kernel {} in {:?}", k.name, k.suites))
}

/// Newer packages keep modules below `usr/`: depmod and modprobe look in `lib/`.
fn tidy(root: &Path, release: &str) -> Result<()> {
    let new = root.join("usr/lib/modules");
    if new.join(release).is_dir() {
        fs::create_dir_all(root.join("lib"))?;
        fs::rename(&new, root.join("lib/modules"))?;
    }
    if !root.join("lib/modules").join(release).is_dir() {
        bail!("the packages contain no modules for {release}");
    }
    Ok(())
}

fn vmlinuz(root: &Path, release: &str) -> Result<PathBuf> {
    let modules = root.join("lib/modules").join(release);
    [root.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz"), modules.join("vmlinuz.unsigned")]
        .into_iter()
        .find(|p| p.is_file())
        .with_context(|| format!("the packages of {release} contain no vmlinuz"))
}

/// Unpacks the ELF from a bzImage: it boots almost a second faster through PVH.
fn extract(path: &Path) -> Result<Vec<u8>> {
    let data = fs::read(path)?;
    let word = |at: usize| -> Result<usize> {
        let b = data.get(at..at + 4).context("too short for a kernel")?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
    };
    if data.get(0x202..0x206) != Some(b"HdrS") {
        bail!("no boot header");
    }
    let setup = match data[0x1f1] {
        0 => 4,
        n => usize::from(n),
    };
    let start = (setup + 1) * 512 + word(0x248)?;
    // The last four bytes are the unpacked size, for the boot stub only.
    let end = start + word(0x24c)? - 4;
    let payload = data.get(start..end).context("the payload lies outside")?;
    let tool: &[&str] = match payload {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => &["zstd", "-dc"],
        [0xfd, b'7', b'z', b'X', ..] => &["xz", "-dc"],
        [0x1f, 0x8b, ..] => &["gzip", "-dc"],
        _ => bail!("unknown compression"),
    };
    let tmp = path.with_extension("payload");
    fs::write(&tmp, payload)?;
    let elf = cmd::bytes(Command::new(tool[0]).args(&tool[1..]).arg(&tmp).env("LC_ALL", "C"));
    // zstd and gzip require a suffix unless they read standard input.
    let elf = match elf {
        Ok(e) => e,
        Err(_) => {
            let out = Command::new(tool[0]).args(&tool[1..]).stdin(fs::File::open(&tmp)?).output()?;
            out.stdout
        }
    };
    fs::remove_file(&tmp)?;
    if !elf.starts_with(b"\x7fELF") {
        bail!("what was unpacked is not an ELF file");
    }
    Ok(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(prefix: &str, suffix: &str) -> Kernel {
        Kernel {
            name: "k".into(),
            prefix: prefix.into(),
            suffix: suffix.into(),
            suites: vec![],
            arch: Arch::Amd64,
            test_nic: true,
            tools_suite: None,
        }
    }

    #[test]
    fn the_newest_release_wins_by_number() {
        let names: Vec<String> = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-image-6.1.0-57-amd64-unsigned",
            "linux-image-6.1.0-58-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64",
        ]
        .map(String::from)
        .to_vec();
        let (release, packages) = choose(&kernel("6.1.0-", "-amd64"), &names).unwrap();
        assert_eq!(release, "6.1.0-56-amd64");
        assert_eq!(packages, ["linux-image-6.1.0-56-amd64"]);
    }

    #[test]
    fn split_packages_bring_their_modules() {
        let names: Vec<String> = [
            "linux-image-7.2.12+deb13-amd64",
            "linux-binary-7.2.12+deb13-amd64",
            "linux-modules-7.2.12+deb13-amd64",
            "linux-binary-unsigned-7.3.4+deb13-amd64",
            "linux-modules-7.3.4+deb13-amd64",
        ]
        .map(String::from)
        .to_vec();
        let (release, packages) = choose(&kernel("", "+deb13-amd64"), &names).unwrap();
        assert_eq!(release, "7.3.4+deb13-amd64");
        assert_eq!(packages, ["linux-binary-unsigned-7.3.4+deb13-amd64", "linux-modules-7.3.4+deb13-amd64"]);
    }
}
