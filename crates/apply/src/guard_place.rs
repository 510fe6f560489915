//! Finds the program file for the guard: the first one that can really be executed.
//!
//! ```text
//!   installed program ─► copy in the state directory ─► copy in /run/ringwise ─► memory
//!   └─────────────── each is executed once as a test ──────────────┘             └─ cannot be started again
//! ```
//!
//! A process that applies often tests the installed program once: see [`TestedProgram`].
//!
//! The installed program comes first because every host lets its services execute it. Files in `/var/lib` may not be executable
//! (`noexec`, SELinux). An upgrade does not disturb a running guard; a guard that is started again after an upgrade runs the new
//! version, which reads the journals of all earlier ones.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ringwise_sys::{guardian, trust};

use crate::guard_error::{FileFault, GuardError, UnusableFiles};
use crate::guardian::FOR_TABLES;

const EACH: Duration = Duration::from_millis(10);
/// File names of copies start with this.
const PREFIX: &str = "guard-";

/// What is searched for, and where.
pub(crate) struct Search<'a> {
    pub program: &'a Path,
    /// Skip the installed program.
    pub copies_only: bool,
    /// The state directory.
    pub dir: &'a Path,
    /// The next directory to try, in memory on hosts where `/run` is a tmpfs.
    pub run: &'a Path,
    pub transaction: u64,
    /// Deadline for the test run of a program.
    pub end: Instant,
    pub tested: &'a TestedProgram,
}

/// The installed program that passed a test run of this process. It is not tested again while it is the same, unchanged file
/// on a file system that allows execution.
#[derive(Debug, Clone, Default)]
pub struct TestedProgram(Arc<Mutex<Option<FileState>>>);

/// What changes when a file is replaced or written.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    path: PathBuf,
    dev: u64,
    ino: u64,
    size_bytes: u64,
    /// Modification and status change: seconds and nanoseconds.
    times: [(i64, i64); 2],
}

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        let m = fs::metadata(path).ok()?;
        let times = [(m.mtime(), m.mtime_nsec()), (m.ctime(), m.ctime_nsec())];
        Some(Self { path: path.into(), dev: m.dev(), ino: m.ino(), size_bytes: m.size(), times })
    }
}

impl TestedProgram {
    fn passed(&self, path: &Path) -> bool {
        let now = FileState::of(path);
        let executable = guardian::no_exec(path.parent().unwrap_or(path)).is_ok_and(|no| !no);
        now.is_some() && executable && *self.0.lock().unwrap_or_else(PoisonError::into_inner) == now
    }

    fn set(&self, state: Option<FileState>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The next search tests the program again.
    pub(crate) fn forget(&self) {
        self.set(None);
    }

    /// As if this file had passed.
    #[cfg(test)]
    pub(crate) fn pretend(&self, path: &Path) {
        self.set(FileState::of(path));
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Where the guard's program is.
#[derive(Debug)]
pub(crate) enum Place {
    /// The installed program, or a copy that is removed together with the guard.
    File(PathBuf),
    /// A file in memory without a name; `why` no named file can be used.
    Memory { file: File, why: UnusableFiles },
}

impl Search<'_> {
    /// Errors: why no program was found.
    pub(crate) fn find(&self) -> Result<Place, GuardError> {
        self.clean();
        let mut why = Vec::new();
        if !self.copies_only {
            match test_installed(self.program, self.tested, self.end) {
                Ok(path) => return Ok(Place::File(path)),
                Err(fault) => why.push((self.program.to_path_buf(), fault)),
            }
        }
        for path in self.copies() {
            match self.copy_to(&path).and_then(|()| executes(&path, self.end)) {
                Ok(()) => return Ok(Place::File(path)),
                Err(fault) => {
                    let _ = fs::remove_file(&path); // it may be incomplete
                    why.push((path, fault));
                }
            }
        }
        let why = UnusableFiles(why);
        let in_memory = || -> io::Result<File> {
            let mut to = guardian::memory_file("ringwise-guard")?;
            io::copy(&mut File::open(self.program)?, &mut to)?;
            Ok(to)
        };
        match in_memory() {
            Ok(file) => Ok(Place::Memory { file, why }),
            Err(memory) => Err(GuardError::NoProgram { files: why, memory }),
        }
    }

    /// Paths of copies, in the order in which they are tried.
    fn copies(&self) -> Vec<PathBuf> {
        let in_run = name_in_run(self.dir, self.transaction).map(|n| self.run.join(n));
        std::iter::once(copy_path(self.dir, self.transaction)).chain(in_run).collect()
    }

    fn copy_to(&self, path: &Path) -> Result<(), FileFault> {
        if path.parent() == Some(self.run) {
            DirBuilder::new().recursive(true).mode(0o755).create(self.run).map_err(FileFault::Copy)?;
            if let Some(why) = trust::others_write(self.run) {
                return Err(FileFault::OthersWrite(why));
            }
        }
        let copy = || -> io::Result<u64> {
            let mut from = File::open(self.program)?;
            let mut to = File::create_new(path)?;
            to.set_permissions(fs::Permissions::from_mode(0o700))?;
            io::copy(&mut from, &mut to)
        };
        copy().map(|_| ()).map_err(FileFault::Copy)
    }

    /// Removes copies of guards that were killed. The lock is held, so no other guard of this state directory is running.
    pub(crate) fn clean(&self) {
        // The guard of tables runs without the lock.
        let kept = (self.transaction != FOR_TABLES).then_some(FOR_TABLES);
        remove(self.dir, PREFIX, kept);
        if let Some(prefix) = run_prefix(self.dir) {
            remove(self.run, &prefix, kept);
        }
    }
}

/// Tests the installed program ahead of a search. Returns its path.
///
/// Errors: why the guard cannot be started from it.
pub(crate) fn test_installed(program: &Path, tested: &TestedProgram, end: Instant) -> Result<PathBuf, FileFault> {
    let path = installed(program)?;
    passes(&path, tested, end)?;
    Ok(path)
}

/// Tests the program, unless it has passed before.
fn passes(path: &Path, tested: &TestedProgram, end: Instant) -> Result<(), FileFault> {
    if tested.passed(path) {
        return Ok(());
    }
    let state = FileState::of(path); // before the run: a change during it is noticed next time
    executes(path, end)?;
    tested.set(state);
    Ok(())
}

/// Executes the file once: mount options alone do not tell whether it can be executed.
fn executes(path: &Path, end: Instant) -> Result<(), FileFault> {
    let left = end.saturating_duration_since(Instant::now());
    let end = Instant::now() + left / 4;
    let mut c = Command::new(path);
    c.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawn(&mut c).map_err(|error| {
        let noexec = guardian::no_exec(path.parent().unwrap_or(path)).is_ok_and(|no| no);
        FileFault::NotExecutable { noexec, error }
    })?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(FileFault::TestFailed(status)),
            Ok(None) if Instant::now() < end => std::thread::sleep(EACH),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(FileFault::TestTooLong(left / 4));
            }
            Err(e) => return Err(FileFault::TestLost(e)),
        }
    }
}

/// The path of a program that stays available as long as the host runs.
///
/// Errors: why the program cannot be relied on.
fn installed(program: &Path) -> Result<PathBuf, FileFault> {
    let gone = |e: io::Error| FileFault::Replaced { error: Some(e) };
    let running = fs::metadata(program).map_err(|error| FileFault::Unread { path: program.into(), error })?;
    let path = program.canonicalize().map_err(gone)?;
    let there = fs::metadata(&path).map_err(gone)?;
    let id = |m: &Metadata| (m.dev(), m.ino());
    if id(&running) != id(&there) {
        return Err(FileFault::Replaced { error: None });
    }
    if let Some(why) = trust::others_write(&path) {
        return Err(FileFault::OthersWrite(why));
    }
    // Without these two no program works any more. Any other file system may be unmounted, or be reached over the network.
    let stays = ["/", "/usr"].iter().any(|p| fs::metadata(p).is_ok_and(|m| m.dev() == there.dev()));
    if stays { Ok(path) } else { Err(FileFault::NotPermanent(path)) }
}

pub(crate) fn copy_path(dir: &Path, transaction: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{transaction:04}"))
}

/// A prefix for this state directory: several state directories may have copies in the same directory.
fn run_prefix(dir: &Path) -> Option<String> {
    let m = fs::metadata(dir).ok()?;
    Some(format!("{PREFIX}{:x}-{:x}-", m.dev(), m.ino()))
}

fn name_in_run(dir: &Path, transaction: u64) -> Option<String> {
    Some(format!("{}{transaction:04}", run_prefix(dir)?))
}

fn remove(dir: &Path, prefix: &str, kept: Option<u64>) {
    let kept = kept.map(|id| format!("{prefix}{id:04}"));
    let own = |name: &str| name.starts_with(prefix) && !kept.as_ref().is_some_and(|k| name.starts_with(k));
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    for path in names.filter(|p| p.file_name().is_some_and(|n| own(&n.to_string_lossy()))) {
        let _ = fs::remove_file(path); // the next run tries again to remove it
    }
}

/// Removes the copy that this guard runs from.
pub fn remove_copy(dir: &Path, transaction: u64) {
    let _ = fs::remove_file(copy_path(dir, transaction)); // the next run removes it
    let exe = fs::read_link("/proc/self/exe").unwrap_or_default();
    let name = name_in_run(dir, transaction);
    if name.is_some_and(|n| exe.file_name().is_some_and(|e| *e == *n)) {
        let _ = fs::remove_file(exe); // as above
    }
}

impl Place {
    /// `process`: `self`, or this process's PID if another process executes the path.
    pub(crate) fn path(&self, process: &str) -> PathBuf {
        match self {
            Self::File(p) => p.clone(),
            Self::Memory { file, .. } => format!("/proc/{process}/fd/{}", file.as_raw_fd()).into(),
        }
    }

    /// Why the program can be started only once.
    pub(crate) fn only_once(&self) -> Option<&UnusableFiles> {
        match self {
            Self::File(_) => None,
            Self::Memory { why, .. } => Some(why),
        }
    }
}

/// Starts a child, and retries while the file is busy: a child that another thread is starting at this moment may still hold a
/// copy open for writing (ETXTBSY).
pub(crate) fn spawn(c: &mut Command) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        match c.spawn() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && tries < 40 => tries += 1,
            other => return other,
        }
        std::thread::sleep(EACH);
    }
}

#[cfg(test)]
#[path = "guard_place_tests.rs"]
mod tests;
