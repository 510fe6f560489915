//! The distribution's irqbalance, for a guest to compare with: unpacked into the cache together
//! with its libraries, never installed.

use crate::{apt, cmd, paths};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked package: `usr/sbin/irqbalance` and its libraries below it.
pub(crate) fn ensure() -> Result<PathBuf> {
    let root = paths::cache().join("irqbalance");
    if program(&root).is_file() {
        return Ok(root);
    }
    println!("setup: fetching irqbalance");
    let release = apt::codename()?;
    let apt = apt::Apt::new("irqbalance", &[&release])?;
    apt.update()?;
    let packages = apt.with_libraries("irqbalance")?;
    let tmp = root.with_extension("tmp");
    for dir in [&tmp, &root] {
        let _ = fs::remove_dir_all(dir);
    }
    apt.unpack(&packages, &tmp)?;
    fs::rename(&tmp, &root)?;
    if !program(&root).is_file() {
        bail!("the package irqbalance contains no usr/sbin/irqbalance");
    }
    Ok(root)
}

/// Puts the program into `share/irqbalance/`, what it links to beside it in `lib/`.
pub(crate) fn put(share: &Path) -> Result<()> {
    let root = ensure()?;
    let to = share.join("irqbalance");
    fs::create_dir_all(to.join("lib"))?;
    fs::copy(program(&root), to.join("irqbalance"))?;
    let dirs = library_dirs(&root)?;
    let listed = cmd::output(Command::new("ldd").arg(program(&root)).env("LD_LIBRARY_PATH", dirs))?;
    for line in listed.lines() {
        if line.contains("not found") {
            bail!("irqbalance: a library is missing: {}", line.trim());
        }
        let Some(file) = line.split_whitespace().find(|w| w.starts_with('/')).map(Path::new) else {
            continue;
        };
        let name = file.file_name().context("a library has a name")?;
        fs::copy(file, to.join("lib").join(name)).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn program(root: &Path) -> PathBuf {
    root.join("usr/sbin/irqbalance")
}

/// Every directory below `root` that holds a shared library, as a search path.
fn library_dirs(root: &Path) -> Result<String> {
    let mut dirs = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                todo.push(entry.path());
            } else if entry.file_name().to_string_lossy().contains(".so.") && !dirs.contains(&dir) {
                dirs.push(dir.clone());
            }
        }
    }
    Ok(dirs.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(":"))
}
