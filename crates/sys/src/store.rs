//! Files that users request (plans, reports): written completely or not at all. Not part of the trait [`Host`](crate::Host),
//! because they go to the real disk even for a recorded or simulated host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::host::{Error, Result};
use crate::real::io_error;
use crate::trust::{self, ReplacementFile};

fn failed(verb: &str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    let verb = verb.to_string();
    move |e| io_error(&verb, &path, &e)
}

/// Makes names in a directory durable.
fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|d| d.sync_all()).map_err(failed("fsync", path))
}

/// Writes the old or the new content, never a mixture, even after a power failure: temporary file, fsync, rename, fsync of the
/// directory. Only the owner can read the file. The target of a link is replaced, not the link; a pipe or a device is written to.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes, 0o600, false)
}

/// The same with the mode that the user's umask gives, or that of the replaced file.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes, 0o666, true)
}

fn replace(path: &Path, bytes: &[u8], mode: u32, keep_mode: bool) -> Result<()> {
    let path = &target(path).map_err(failed("write", path))?;
    let there = fs::symlink_metadata(path).ok();
    if let Some(m) = there.as_ref().filter(|m| !m.is_symlink()) {
        // A file that the user could not write must not be replaced; for a directory this reports the error.
        let mut f = OpenOptions::new().write(true).open(path).map_err(failed("write", path))?;
        if !m.is_file() {
            return f.write_all(bytes).map_err(failed("write", path));
        }
    }
    let dir = match path.parent() {
        Some(p) if p.as_os_str().is_empty() => Path::new("."),
        Some(p) => p,
        None => return Err(Error::other(format!("write {}", path.display()), "not a file name")),
    };
    let mut new = ReplacementFile::create(path, mode).map_err(failed("write", path))?;
    new.file
        .write_all(bytes)
        .and_then(|()| match &there {
            Some(m) if keep_mode && m.is_file() => new.file.set_permissions(m.permissions()),
            _ => Ok(()),
        })
        .and_then(|()| new.finish())
        .map_err(failed("write", path))?;
    sync_dir(dir)
}

/// The target of a link, if no other user could have put the link there; else the link itself, which is replaced.
pub(crate) fn target(path: &Path) -> io::Result<PathBuf> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_link && trust::others_write(&fs::canonicalize(dir)?).is_none() {
        return fs::canonicalize(path).or_else(|_| Ok(path.to_path_buf()));
    }
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn whole_or_not() {
        let dir = dir("write");
        let path = dir.join("state.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_link_in_a_directory_of_everybody_is_replaced_and_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = dir("planted");
        let (victim, to) = (dir.join("victim"), dir.join("shared/report.html"));
        fs::create_dir_all(dir.join("shared")).unwrap();
        fs::set_permissions(dir.join("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(&victim, "mine").unwrap();
        for write in [write_atomic, write_shared] {
            let _ = fs::remove_file(&to);
            symlink(&victim, &to).unwrap();
            write(&to, b"new").unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"mine");
            assert_eq!(fs::read(&to).unwrap(), b"new");
        }
        // A device is not written to either.
        let _ = fs::remove_file(&to);
        symlink("/dev/full", &to).unwrap();
        write_shared(&to, b"new").unwrap();
        assert!(fs::symlink_metadata(&to).unwrap().is_file());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_error_has_its_errno() {
        assert_eq!(write_atomic(Path::new("/nonesuch/x"), b"").unwrap_err().errno, Some(libc::ENOENT));
    }

    #[test]
    fn a_shared_file_replaces_whole_files_and_follows_links() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = std::env::temp_dir().join(format!("ringwise-shared-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.svg");
        write_shared(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.svg", dir.join("link.svg")).unwrap();
        write_shared(&dir.join("link.svg"), b"two").unwrap();
        assert!(fs::symlink_metadata(dir.join("link.svg")).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing is left beside it");
        assert!(write_shared(&dir, b"x").is_err());
        assert!(write_shared(&dir.join("none/x.svg"), b"x").is_err());
        write_shared(Path::new("/dev/null"), b"x").unwrap();
        write_atomic(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        fs::remove_dir_all(&dir).unwrap();
    }
}
