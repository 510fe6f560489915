//! Our own files (lock, journal, state): durable, and outside the [`Host`](crate::Host) seam,
//! because a recorded or simulated host keeps its journal on the real disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::host::{Error, Result};
use crate::real::io_error;

fn failed(verb: &str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    let verb = verb.to_string();
    move |e| io_error(&verb, &path, &e)
}

/// An exclusive lock, held until it is dropped (and by any child that inherited the descriptor).
#[derive(Debug)]
pub struct LockGuard {
    file: File,
}

impl LockGuard {
    /// Lets the lock pass through `exec`: the lock belongs to the open file, so a helper that inherits
    /// the descriptor holds it after this process is gone.
    pub fn set_inheritable(&self, on: bool) -> Result<()> {
        let flags = if on { 0 } else { libc::FD_CLOEXEC };
        // SAFETY: an open descriptor and an integer argument.
        let rc = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFD, flags) };
        if rc < 0 { Err(io_error("inherit", "lock", &io::Error::last_os_error())) } else { Ok(()) }
    }
}

impl AsFd for LockGuard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Takes the lock at once or fails: EAGAIN with the process id of the holder in the words.
/// The file is made when it is not there, and stays.
pub fn lock_file(path: &Path) -> Result<LockGuard> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed("lock", path))?;
    // SAFETY: an open descriptor and an integer argument.
    let rc = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if rc < 0 {
        let mut error = failed("lock", path)(io::Error::last_os_error());
        if error.errno == Some(libc::EAGAIN) {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder); // an unreadable note is told below as unknown
            error.words = Some(match holder.trim().parse::<u32>() {
                Ok(pid) => format!("held by process {pid}"),
                Err(_) => "held by a process that left no number".to_string(),
            });
        }
        return Err(error);
    }
    let note = format!("{}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(note.as_bytes()))
        .map_err(failed("lock", path))?;
    Ok(LockGuard { file })
}

/// The directory and those above it; no error when it is there.
pub fn create_dir_all(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(failed("mkdir", path))
}

/// Makes names in a directory durable.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|d| d.sync_all()).map_err(failed("fsync", path))
}

/// Old content or new content, never a mixture, also after a power cut: temporary file, fsync, rename, fsync of the directory.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = match path.parent() {
        Some(p) if p.as_os_str().is_empty() => Path::new("."),
        Some(p) => p,
        None => return Err(Error::other(format!("write {}", path.display()), "not a file name")),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temp = dir.join(format!(".{name}.{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)
        .and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()))
        .and_then(|()| fs::rename(&temp, path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temp); // the first error is the one to tell
        return Err(failed("write", path)(e));
    }
    sync_dir(dir)
}

/// Opens for appending, made when it is not there (its name is durable then too).
pub fn open_append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(failed("open", path))?;
    if let Some(dir) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        sync_dir(dir)?;
    }
    Ok(file)
}

/// Appends and waits until it is on the disk. `path` is for the message only.
/// When it fails (full disk) a part of `bytes` may be at the end: the reader must bear a torn last record.
pub fn append_fsync(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).and_then(|()| file.sync_data()).map_err(failed("append", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-store-{name}-{}", std::process::id()));
        create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn the_second_taker_hears_who_holds_it() {
        let dir = dir("lock");
        let path = dir.join("lock");
        let held = lock_file(&path).unwrap();
        let error = lock_file(&path).unwrap_err();
        assert_eq!(error.errno, Some(libc::EAGAIN));
        assert_eq!(error.words, Some(format!("held by process {}", std::process::id())));
        drop(held);
        lock_file(&path).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn atomic_and_appended() {
        let dir = dir("write");
        let path = dir.join("state.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mut journal = open_append(&dir.join("journal")).unwrap();
        append_fsync(&mut journal, &path, b"a\n").unwrap();
        append_fsync(&mut journal, &path, b"b\n").unwrap();
        assert_eq!(fs::read(dir.join("journal")).unwrap(), b"a\nb\n");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "no temporary file is left");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_with_its_errno() {
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = append_fsync(&mut full, Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(error.errno, Some(libc::ENOSPC));
        assert_eq!(write_atomic(Path::new("/nonesuch/x"), b"").unwrap_err().errno, Some(libc::ENOENT));
    }
}
