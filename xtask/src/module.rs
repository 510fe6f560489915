//! The lab's own kernel modules, built against each kernel's headers and kept in the cache.

use crate::kernel::{Kernel, Ready};
use crate::{apt::Apt, cmd, paths};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel module whose sources are in `lab/`.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Its name in messages.
    pub title: &'static str,
    /// The directory of its sources in `lab/`.
    sources: &'static str,
}

pub(crate) const TEST_NIC: Module = Module { name: "mqnic", title: "test NIC", sources: "mqnic" };
pub(crate) const COST_MODEL: Module = Module { name: "labcost", title: "cost model", sources: "cost" };

/// A module for one kernel, or the reason why it does not exist.
#[derive(Debug, Clone)]
pub(crate) enum Built {
    Module(PathBuf),
    No(String),
}

impl Module {
    /// The names of its source files, sorted.
    fn sources(&self) -> Result<Vec<String>> {
        let dir = paths::lab().join(self.sources);
        let mut names = Vec::new();
        for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // A build with make in this directory leaves a .mod.c file.
            let code = (name.ends_with(".c") && !name.ends_with(".mod.c")) || name.ends_with(".h");
            if name == "Kbuild" || code {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The module for this kernel, from the cache or built.
    pub(crate) fn ensure(&self, k: &Kernel, r: &Ready) -> Result<Built> {
        if !k.test_nic {
            return Ok(Built::No("the archive has no headers for this kernel".into()));
        }
        let from = paths::lab().join(self.sources);
        let mut parts: Vec<Vec<u8>> = vec![r.release.clone().into_bytes()];
        let sources = self.sources()?;
        for file in &sources {
            parts.push(format!("\0{file}\0").into_bytes());
            parts.push(fs::read(from.join(file)).with_context(|| format!("lab/{}/{file}", self.sources))?);
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let dir = paths::cache().join("modules");
        let ko = dir.join(format!("{}-{}-{}.ko", self.name, r.release, cmd::hash(&parts)));
        if ko.is_file() {
            return Ok(Built::Module(ko));
        }
        let headers = headers(k, r)?;
        // Another lab may build the same module.
        let work = dir.join(format!("build-{}-{}-{}", self.name, r.release, std::process::id()));
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work)?;
        for file in &sources {
            fs::copy(from.join(file), work.join(file))?;
        }
        println!("setup: building the {} for {}", self.title, r.release);
        let mut make = Command::new("make");
        make.arg("-s")
            .arg("-C")
            .arg(headers.join("usr/src").join(format!("linux-headers-{}", r.release)))
            .arg(format!("M={}", work.display()))
            // The headers require the compiler of their own build, and pahole.
            .arg(format!("CC={}", compiler(&dir)?.display()))
            .args(["HOSTCC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "CONFIG_MODULE_SIG="])
            .arg("modules");
        cmd::output(&mut make).with_context(|| format!("the {} for {}", self.title, r.release))?;
        let fresh = work.join(format!("{}.ko", self.name));
        cmd::output(Command::new("strip").arg("--strip-debug").arg(&fresh))?;
        fs::rename(&fresh, &ko)?;
        fs::remove_dir_all(&work)?;
        Ok(Built::Module(ko))
    }
}

/// The machine's gcc, without the options that only newer versions support.
fn compiler(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("lab-gcc");
    let script = "#!/bin/sh\n\
        for a; do\n\
        \tshift\n\
        \tcase $a in\n\
        \t-fmin-function-alignment=*) a=-falign-functions=${a#*=} ;;\n\
        \t-fno-strict-flex-arrays | -fzero-init-padding-bits=*) continue ;;\n\
        \tesac\n\
        \tset -- \"$@\" \"$a\"\n\
        done\n\
        exec gcc \"$@\"\n";
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// The kernel's headers and build tools, unpacked.
fn headers(k: &Kernel, r: &Ready) -> Result<PathBuf> {
    let dir = k.dir().join("headers");
    if dir.join("ready").is_file() {
        return Ok(dir);
    }
    let _ = fs::remove_dir_all(&dir);
    let apt = k.apt()?;
    let names = apt.names("linux-")?;
    let version = r.release.trim_end_matches("-amd64");
    let series: Vec<&str> = version.split('.').take(2).collect();
    let mut packages = vec![format!("linux-headers-{}", r.release), format!("linux-headers-{version}-common")];
    let kbuild = [format!("linux-kbuild-{version}"), format!("linux-kbuild-{}", series.join("."))];
    let kbuild = kbuild.into_iter().find(|n| names.contains(n));
    packages.push(kbuild.with_context(|| format!("no linux-kbuild for {}", r.release))?);
    // From 7.2 this one holds the configuration.
    let base = format!("linux-base-{}", r.release);
    packages.extend(Some(base).filter(|b| names.contains(b)));
    println!("setup: fetching headers of {}", r.release);
    apt.unpack(&packages, &dir)?;
    if let Some(suite) = &k.tools_suite {
        own_libraries(suite, &dir)?;
    }
    relocate(&dir)?;
    fs::write(dir.join("ready"), "")?;
    Ok(dir)
}

/// Headers refer to each other by paths below /usr, which are replaced by the paths in the cache.
fn relocate(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir.join("usr/src"))?.flatten() {
        for name in ["Makefile", ".kernelvariables"] {
            let file = entry.path().join(name);
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            let here = format!("{}/usr/", dir.display());
            let text = text
                .replace("/usr/src/", &format!("{here}src/"))
                .replace("/usr/lib/linux", &format!("{here}lib/linux"));
            fs::write(&file, text)?;
        }
        for link in ["scripts", "tools"] {
            let path = entry.path().join(link);
            let Ok(to) = fs::read_link(&path) else {
                continue;
            };
            if let Ok(inside) = to.strip_prefix("/") {
                fs::remove_file(&path)?;
                std::os::unix::fs::symlink(dir.join(inside), &path)?;
            }
        }
    }
    Ok(())
}

/// Build tools from a newer release run with that release's C library, through its own loader.
fn own_libraries(suite: &str, dir: &Path) -> Result<()> {
    let apt = Apt::new(&format!("libraries-{suite}"), &[suite])?;
    apt.update()?;
    let root = dir.join("libraries");
    let packages = ["libc6", "libelf1t64", "zlib1g", "libzstd1", "libssl3t64"].map(String::from);
    apt.unpack(&packages, &root)?;
    let lib = root.join("usr/lib/x86_64-linux-gnu");
    let loader = lib.join("ld-linux-x86-64.so.2");
    let tools = fs::read_dir(dir.join("usr/lib"))?.flatten();
    for kbuild in tools.filter(|e| e.file_name().to_string_lossy().starts_with("linux-kbuild")) {
        let mut tools = programs(&kbuild.path())?;
        // tool.real-x86 before tool, which is a selector of it.
        tools.sort_by_key(|t| std::cmp::Reverse(t.as_os_str().len()));
        for tool in tools {
            // Some are only selectors for tool.real-x86 and the like, which they look for by
            // their own name: those are run directly.
            let named = |end: &str| PathBuf::from(format!("{}{end}", tool.display()));
            let moved = named(".elf");
            fs::rename(&tool, &moved)?;
            let real = ["", ".real-x86", ".real-lsb-64"]
                .iter()
                .rev()
                .map(|end| named(&format!("{end}.elf")))
                .find(|p| p.is_file())
                .unwrap_or(moved);
            let script = format!(
                "#!/bin/sh\nexec {} --library-path {} {} \"$@\"\n",
                loader.display(),
                lib.display(),
                real.display()
            );
            fs::write(&tool, script)?;
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Every executable ELF file below a directory.
fn programs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)?.flatten() {
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(programs(&path)?);
        } else if kind.is_file()
            && fs::metadata(&path)?.permissions().mode() & 0o111 != 0
            && fs::read(&path)?.starts_with(b"\x7fELF")
        {
            found.push(path);
        }
    }
    Ok(found)
}
