//! Checks whether other users can write where ringwise does: directories of other users, links that they create, names that they
//! can guess.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::proc::euid;

const STICKY: u32 = 0o1000;
/// For `OpenOptions::custom_flags`: a link at the name is an error (ELOOP).
pub const NO_LINK: i32 = libc::O_NOFOLLOW;

/// Why a user other than root and this user can change what is at `path`: the file or directory itself, or a parent directory. If
/// it does not exist yet, the nearest existing directory counts. In a directory with the sticky bit (`/tmp`) other users cannot
/// replace files that they do not own; that does not help if `path` itself is such a directory.
pub fn others_write(path: &Path) -> Option<String> {
    let mut there = path.to_path_buf();
    while fs::symlink_metadata(&there).is_err() {
        there = there.parent()?.to_path_buf();
    }
    // A link is judged by its target; its directory shows who could replace the link.
    let unknown =
        |p: &Path, e: io::Error| Some(format!("who can write to {} is unknown: {}", p.display(), crate::io_text(&e)));
    let real = match fs::canonicalize(&there) {
        Ok(real) => real,
        Err(e) => return unknown(&there, e),
    };
    let through_link = (real != there).then(|| there.parent().map(Path::to_path_buf)).flatten();
    let chain = real.ancestors().map(Path::to_path_buf).chain(through_link);
    for (n, p) in chain.enumerate() {
        let m = match fs::metadata(&p) {
            Ok(m) => m,
            Err(e) => return unknown(&p, e),
        };
        // 65534: in a user namespace, every user that is not mapped there, including root of the host.
        if m.uid() != 0 && m.uid() != euid() && m.uid() != 65534 {
            return Some(format!("{} belongs to user {}", p.display(), m.uid()));
        }
        let itself = n == 0 && real == path.canonicalize().unwrap_or_default();
        if m.mode() & STICKY != 0 && m.is_dir() && !itself {
            continue;
        }
        if m.mode() & 0o002 != 0 {
            return Some(format!("every user can write to {}", p.display()));
        }
        // Debian gives /usr/local to the group staff, whose members are trusted with programs of root.
        if m.mode() & 0o020 != 0 && m.gid() != 0 && !p.starts_with("/usr/local") {
            return Some(format!("group {} can write to {}", m.gid(), p.display()));
        }
    }
    None
}

/// A new file beside another, under a name that cannot be guessed. In the end it replaces the other file, or is removed.
#[derive(Debug)]
pub struct ReplacementFile {
    /// Open for writing, empty at first, with the mode that [`ReplacementFile::create`] was given.
    pub file: File,
    temp: PathBuf,
    to: PathBuf,
    done: bool,
}

impl ReplacementFile {
    /// Errors: the directory does not exist or cannot be written. A link at the name is never followed.
    pub fn create(to: &Path, mode: u32) -> io::Result<Self> {
        let name = to.file_name().ok_or_else(|| io::Error::other("not a file name"))?;
        for _ in 0..8 {
            let temp = to.with_file_name(format!(".{}.{:016x}", name.to_string_lossy(), u64::from_ne_bytes(random()?)));
            match OpenOptions::new().write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW).open(&temp)
            {
                Ok(file) => return Ok(Self { file, temp, to: to.to_path_buf(), done: false }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Syncs the file and renames it: a reader finds the old or the new content, never a part.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.place()
    }

    /// The same without a sync, for files that a power failure may lose.
    pub fn place(mut self) -> io::Result<()> {
        fs::rename(&self.temp, &self.to)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for ReplacementFile {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.temp); // the earlier error is the one to report
        }
    }
}

/// Bytes that cannot be guessed.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-trust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_others_write_is_named() {
        let dir = dir("others");
        assert_eq!(others_write(&dir), None);
        assert_eq!(others_write(&dir.join("a/b")), None, "judged by what is there");
        mode(&dir, 0o777);
        let said = others_write(&dir.join("a/b")).unwrap();
        assert_eq!(said, format!("every user can write to {}", dir.display()));
        mode(&dir, 0o1777);
        fs::create_dir(dir.join("mine")).unwrap();
        assert_eq!(others_write(&dir.join("mine")), None, "no other user can remove it");
        assert!(others_write(&dir).is_some(), "but they can put files there");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_link_is_what_its_target_is_and_who_could_replace_it() {
        let dir = dir("link");
        fs::create_dir(dir.join("open")).unwrap();
        mode(&dir.join("open"), 0o777);
        symlink("open", dir.join("to")).unwrap();
        assert!(others_write(&dir.join("to")).is_some());
        symlink("/etc", dir.join("open/planted")).unwrap();
        assert!(others_write(&dir.join("open/planted")).is_some());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_planted_is_not_written_through() {
        let dir = dir("beside");
        let (to, victim) = (dir.join("out.tar"), dir.join("victim"));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &to).unwrap();
        let mut b = ReplacementFile::create(&to, 0o600).unwrap();
        b.file.write_all(b"new").unwrap();
        b.finish().unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&to).unwrap()), (b"mine".to_vec(), b"new".to_vec()));
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        drop(ReplacementFile::create(&to, 0o600).unwrap());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing is left of what was not finished");
        fs::remove_dir_all(&dir).unwrap();
    }
}
