//! Copies of the sources, which a task changes and builds without a change to the repository.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Result;

/// Makes `to` the same as `from`. A file that is the same is not written, so that only crates with a difference are built
/// again.
pub(crate) fn mirror(from: &Path, to: &Path) -> Result<()> {
    if from.is_symlink() {
        let there = fs::read_link(from)?;
        if fs::read_link(to).ok().as_ref() != Some(&there) {
            remove(to)?;
            symlink(there, to)?;
        }
        return Ok(());
    }
    if from.is_file() {
        if fs::read(to).ok() != Some(fs::read(from)?) {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::copy(from, to)?;
        }
        return Ok(());
    }
    fs::create_dir_all(to)?;
    let mut kept = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        mirror(&from.join(&name), &to.join(&name))?;
        kept.insert(name);
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !kept.contains(&entry.file_name()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_the_same_again() {
        let dir = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let (from, to) = (dir.join("from"), dir.join("to"));
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/same"), "1").unwrap();
        fs::write(from.join("a/other"), "2").unwrap();
        symlink("..", from.join("a/up")).unwrap();
        mirror(&from, &to).unwrap();
        let written = |name: &str| fs::metadata(to.join("a").join(name)).unwrap().modified().unwrap();
        let before = written("same");
        fs::write(to.join("a/other"), "changed").unwrap();
        fs::create_dir_all(to.join("b/c")).unwrap();
        fs::remove_file(to.join("a/up")).unwrap();
        fs::create_dir_all(to.join("a/up/c")).unwrap();
        mirror(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/other")).unwrap(), "2");
        assert_eq!(fs::read_link(to.join("a/up")).unwrap(), Path::new(".."));
        assert!(!to.join("b").exists());
        assert_eq!(written("same"), before);
        fs::remove_dir_all(&dir).unwrap();
    }
}
