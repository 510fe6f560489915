//! The state directory: the lock, the journals, the values as first found, and what devices refused.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use ringwise_knob::Learned;
use ringwise_sys::host_lock::{self, Attempt, ForeignLockName};
use ringwise_sys::io_text;
use ringwise_sys::trust::{self, ReplacementFile};
use serde::{Deserialize, Serialize};

use crate::state_file::{self, SUMMED};
use crate::{Error, Holder, Refusal, SERVICE};

/// Candidates for the state directory: the first one that can be written is used.
const PLACES: [&str; 2] = ["/var/lib/ringwise", "/run/ringwise/state"];
/// Overrides [`PLACES`].
const VARIABLE: &str = "RINGWISE_STATE_DIR";

/// Called with the file's path before each call that writes to the state directory (create, write, sync, rename, sync of the
/// directory). If it returns an error, the call fails with that error as if the disk had failed.
pub type Hook = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

/// Called once with the holder of the lock and the longest time to wait, after a second of waiting for it.
pub type LockWaitHook = Arc<dyn Fn(&Holder, Duration) + Send + Sync>;

/// The state directory. Nothing is created in it before something has to be written.
#[derive(Clone)]
pub struct Store {
    /// In order of preference; journals are read from all of them.
    dirs: Vec<PathBuf>,
    hook: Option<Hook>,
    waiting: Option<LockWaitHook>,
    /// Name of the sockets by which runs with different state directories detect each other.
    socket_name: String,
    /// Journals that were found over (see `unfinished`), as they were then. Shared by all clones.
    pub(crate) over: Arc<Mutex<BTreeSet<JournalFileId>>>,
}

/// A file as it was seen. A journal only grows, so with the same size and time it has the same records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalFileId {
    pub path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

impl JournalFileId {
    pub(crate) fn of(path: PathBuf) -> Self {
        let m = fs::symlink_metadata(&path).ok();
        Self { length: m.as_ref().map_or(0, fs::Metadata::len), modified: m.and_then(|m| m.modified().ok()), path }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("dirs", &self.dirs).finish_non_exhaustive()
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::open(None)
    }
}

/// The file of the lock, in each state directory.
pub(crate) const LOCK: &str = "lock";
/// What the user can do if `learned.json` is damaged.
const FORGET: &str = "run ringwise learned --forget to start a new one";

/// Content of `learned.json`.
#[derive(Serialize, Deserialize)]
struct LearnedFile {
    format: u32,
    learned: Vec<Learned>,
}

/// Where the transaction is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Disk<'a> {
    pub store: &'a Store,
    pub lock: &'a Lock,
}

/// Others that hold the lock so briefly need no message.
const FOR_READERS: Duration = Duration::from_millis(250);
/// After this long, a person wants to know what a command waits for.
const SILENCE: Duration = Duration::from_secs(1);
/// A transaction of the service takes less than a second, unless a link has to come back.
const FOR_SERVICE: Duration = Duration::from_secs(20);

/// How long to wait for this holder of the lock.
fn patience(refusal: &Error) -> Duration {
    match refusal.refusal() {
        Some(Refusal::Locked { holder, .. }) if holder.who.as_deref() == Some(SERVICE) => FOR_SERVICE,
        _ => FOR_READERS,
    }
}

impl Store {
    /// Opens `dir` (`--state-dir`), else `RINGWISE_STATE_DIR`, else `/var/lib/ringwise`, or `/run/ringwise/state` if that cannot
    /// be written. Creates nothing.
    pub fn open(dir: Option<&Path>) -> Self {
        let chosen = dir.map(Path::to_path_buf).or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
        let dirs = chosen.map_or_else(|| PLACES.iter().map(PathBuf::from).collect(), |d| vec![d]);
        Self { dirs, hook: None, waiting: None, socket_name: host_lock::NAME.into(), over: Arc::default() }
    }

    /// For a host other than this one, as in tests: runs for different hosts do not conflict.
    pub fn with_socket_name(mut self, name: impl Into<String>) -> Self {
        self.socket_name = name.into();
        self
    }

    /// Reports when a command waits for a transaction of the service.
    pub fn with_waiting(mut self, waiting: LockWaitHook) -> Self {
        self.waiting = Some(waiting);
        self
    }

    /// Calls a hook before each write, for tests of a full disk or of a crash.
    pub fn with_hook(mut self, hook: Hook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Neither `--state-dir` nor its variable is given.
    pub(crate) fn is_default(&self) -> bool {
        self.dirs.iter().map(PathBuf::as_path).eq(PLACES.iter().map(Path::new))
    }

    /// The directories that are searched for journals, the preferred one first.
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub(crate) fn before_write(&self, path: &Path) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |h| h(path))
    }

    /// Takes the lock of the host, and chooses the directory for the journal. The lock is a file in that directory, and a socket
    /// in the network namespace for runs that see another directory.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        self.lock_with(true)
    }

    /// `host`: the host will be changed, not only the files of the state directory.
    fn lock_with(&self, host: bool) -> Result<Lock, Error> {
        let mut why = None;
        for dir in &self.dirs {
            match self.lock_patiently(dir, host) {
                Ok(lock) => return lock,
                Err(e) => _ = why.get_or_insert((dir.clone(), e)),
            }
        }
        let (path, e) = why.unwrap_or((PathBuf::new(), io::Error::other("no directory is given")));
        let hint = if e.kind() == io::ErrorKind::PermissionDenied { "; needs root" } else { "" };
        Err(Refusal::State { path, why: format!("{}{hint}", io_text(&e)) }.into())
    }

    /// Retries for a moment: a reader that checks whether the lock is held holds it briefly itself, and two runs that start at
    /// the same time with different directories may both give way. A transaction of the service is waited for.
    fn lock_patiently(&self, dir: &Path, host: bool) -> io::Result<Result<Lock, Error>> {
        let begin = Instant::now();
        let mut reported = false;
        loop {
            match self.lock_in(dir, host) {
                Ok(Err(e)) if begin.elapsed() < patience(&e) => {
                    if !reported && begin.elapsed() >= SILENCE {
                        self.report(&e);
                        reported = true;
                    }
                    std::thread::sleep(Duration::from_millis(20 + u64::from(std::process::id() % 7)));
                }
                other => return other,
            }
        }
    }

    fn report(&self, refusal: &Error) {
        if let (Some(waiting), Some(Refusal::Locked { holder, .. })) = (&self.waiting, refusal.refusal()) {
            waiting(holder, FOR_SERVICE);
        }
    }

    fn lock_in(&self, dir: &Path, host: bool) -> io::Result<Result<Lock, Error>> {
        let path = dir.join(LOCK);
        self.before_write(&path)?;
        private(dir)?;
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(trust::NO_LINK);
        let mut file = open.open(&path)?;
        // Earlier versions made the file readable for all users, and any process that can open the lock file can hold the lock.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let holder = Holder::read(&mut file);
                return Ok(Err(Refusal::Locked { pid: holder.pid, path, holder: Box::new(holder) }.into()));
            }
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
        let (socket, notes) = match host.then(|| host_lock::take(&self.socket_name)) {
            None => (None, Vec::new()),
            Some(Ok(Attempt::Held { name, by })) => {
                return Ok(Err(Refusal::Elsewhere { pid: by.pid, uid: by.uid, socket: name }.into()));
            }
            Some(Ok(Attempt::Taken { socket, strangers })) => {
                let notes = about(&strangers, socket.is_some());
                (socket, notes)
            }
            Some(Err(e)) => (None, vec![format!("a unix socket cannot be created ({}): {UNSEEN}", io_text(&e))]),
        };
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Ok(Lock { dir: dir.to_path_buf(), file, socket, notes }))
    }

    /// Which process holds the lock now. Takes the lock for a moment if it is free, so call this only when the answer matters.
    pub(crate) fn held(&self) -> Option<Holder> {
        self.dirs.iter().find_map(|dir| {
            let mut file = match File::open(dir.join(LOCK)) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return self.published_holder(),
                other => other.ok()?,
            };
            match file.try_lock_shared() {
                Err(fs::TryLockError::WouldBlock) => Some(Holder::read(&mut file)),
                _ => None,
            }
        })
    }

    /// The number that the next transaction gets, unless another one comes first.
    ///
    /// Errors: the state directory cannot be read.
    pub fn next_transaction(&self) -> Result<u64, Error> {
        Ok(self.journals()?.last().map_or(0, |(id, _)| *id) + 1)
    }

    /// Paths of all journals by number.
    pub(crate) fn journals(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        let mut out = Vec::new();
        for dir in &self.dirs {
            let entries = match fs::read_dir(dir) {
                Ok(e) => e,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::State { path: dir.clone(), source }),
            };
            for entry in entries {
                let path = entry.map_err(|source| Error::State { path: dir.clone(), source })?.path();
                let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                let id = name.strip_prefix("tx-").and_then(|n| n.strip_suffix(".jsonl")).and_then(|n| n.parse().ok());
                if let Some(id) = id {
                    out.push((id, path));
                }
            }
        }
        out.sort();
        Ok(out)
    }

    /// What devices refused or ignored so far, and writes that took a link down. Empty if nothing was recorded yet.
    pub fn learned(&self) -> Result<Vec<Learned>, Error> {
        for dir in &self.dirs {
            match state_file::read::<LearnedFile>(&dir.join("learned.json"), FORGET) {
                Ok(Some(file)) => return Ok(file.learned),
                Ok(None) => {}
                Err(Error::State { path, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
                    return self.published_learned().ok_or(Error::State { path, source });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Vec::new())
    }

    /// Forgets what these devices refused or ignored (by the names that they had then), or everything if `devs` is empty, and
    /// returns what was forgotten. A damaged file is replaced if everything is to be forgotten.
    ///
    /// Errors: a run holds the lock, or the file cannot be read or written.
    pub fn forget(&self, devs: &[String]) -> Result<Vec<Learned>, Error> {
        let learned = match self.learned() {
            Err(Error::Damaged { .. }) if devs.is_empty() => None,
            other => Some(other?),
        };
        let is_damaged = learned.is_none();
        let (forgotten, left): (Vec<_>, Vec<_>) =
            learned.unwrap_or_default().into_iter().partition(|l| devs.is_empty() || devs.contains(&l.device.name));
        if forgotten.is_empty() && !is_damaged {
            return Ok(forgotten);
        }
        let lock = self.lock_with(false)?;
        self.write_json(&lock.dir.join("learned.json"), &LearnedFile { format: SUMMED, learned: left })?;
        Ok(forgotten)
    }

    /// Adds what the service found after its transactions.
    ///
    /// Errors: a run holds the lock, or the file cannot be read or written.
    pub fn add_learned(&self, new: &[Learned]) -> Result<(), Error> {
        let lock = self.lock_with(false)?;
        self.learn(&lock, new)
    }

    /// Adds entries. An entry about the same setting and of the same kind is replaced.
    pub(crate) fn learn(&self, lock: &Lock, new: &[Learned]) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let mut learned = self.learned()?;
        for n in new {
            learned.retain(|l| !n.replaces(l));
            learned.push(n.clone());
        }
        self.write_json(&lock.dir.join("learned.json"), &LearnedFile { format: SUMMED, learned })
    }

    /// Writes the file with its checksum, syncs it and renames it, so a reader finds either the old or the new content.
    pub(crate) fn write_json<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), Error> {
        let fail = |source| Error::State { path: path.to_path_buf(), source };
        let text = state_file::text(value).map_err(|e| fail(e.into()))?;
        let write = || -> io::Result<()> {
            self.before_write(path)?;
            let mut new = ReplacementFile::create(path, 0o600)?;
            self.before_write(path)?;
            new.file.write_all(&text)?;
            self.before_write(path)?;
            new.file.sync_all()?;
            self.before_write(path)?;
            new.place()?;
            self.before_write(path)?;
            sync_dir(path)
        };
        write().map_err(fail)
    }
}

/// Creates the directory; refuses it if another user can write to it or to a parent. A directory given by `--state-dir` also
/// holds the published file, so other users may traverse it; the other files in it are private.
fn private(dir: &Path) -> io::Result<()> {
    let ours = PLACES.iter().any(|p| Path::new(p) == dir);
    if let Some(above) = dir.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    fs::DirBuilder::new().recursive(true).mode(if ours { 0o700 } else { 0o711 }).create(dir)?;
    if let Some(why) = trust::others_write(dir) {
        let text = format!("{why}, and could change what ringwise restores from it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    // Earlier versions created the directory with wider permissions.
    let m = fs::metadata(dir)?;
    if m.mode() & 0o077 != 0 && ours {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// A new name is on disk only after its directory has been synced.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |d| File::open(d)?.sync_all())
}

const UNSEEN: &str = "another ringwise with another state directory, as in a container, would go unnoticed";

/// Names of the lock's sockets that other users hold. `some`: at least one was free for us.
fn about(strangers: &[ForeignLockName], some: bool) -> Vec<String> {
    let one = |s: &ForeignLockName| match &s.uid {
        Ok(uid) => format!("{} (user {uid})", s.name),
        Err(why) => format!("{} (user unknown: {why})", s.name),
    };
    let list = strangers.iter().map(one).collect::<Vec<_>>().join(", ");
    match (strangers.is_empty(), some) {
        (true, true) => Vec::new(),
        (false, true) => vec![format!("another user holds socket names of ringwise's lock: {list}")],
        (false, false) => vec![format!("other users hold all socket names of ringwise's lock, {list}: {UNSEEN}")],
        (true, false) => {
            vec![format!("all socket names of ringwise's lock are taken, but no process listens on them: {UNSEEN}")]
        }
    }
}

/// Held while anything is changed. The kernel releases it when the process ends, for whatever reason.
#[derive(Debug)]
pub(crate) struct Lock {
    pub dir: PathBuf,
    pub file: File,
    /// `None`: not needed, or no name was free; `notes` reports the latter.
    socket: Option<OwnedFd>,
    pub notes: Vec<String>,
}

/// The open files of the lock, to be shared with the guard.
#[derive(Debug)]
pub struct OpenLock<F> {
    /// The lock file.
    pub file: F,
    /// The socket that serves as the lock of the network namespace. `None`: the host is not changed, or no socket could be made.
    pub socket: Option<F>,
}

impl OpenLock<BorrowedFd<'_>> {
    /// Duplicates the open files for another process.
    pub fn try_clone(&self) -> io::Result<OpenLock<OwnedFd>> {
        let socket = self.socket.map(|s| s.try_clone_to_owned()).transpose()?;
        Ok(OpenLock { file: self.file.try_clone_to_owned()?, socket })
    }
}

impl Lock {
    /// The lock that another process has handed over as open files.
    pub(crate) fn handed(dir: &Path, open: OpenLock<OwnedFd>) -> Self {
        Self { dir: dir.to_path_buf(), file: open.file.into(), socket: open.socket, notes: Vec::new() }
    }

    pub(crate) fn open(&self) -> OpenLock<BorrowedFd<'_>> {
        OpenLock { file: self.file.as_fd(), socket: self.socket.as_ref().map(AsFd::as_fd) }
    }

    /// Writes who holds the lock, for runs that find it locked. This is only informative, and the lock file exists already, so
    /// errors do not matter.
    pub(crate) fn note(&self, holder: &Holder) {
        let Ok(json) = serde_json::to_string(holder) else { return };
        let text = format!("{}\n{json}\n", holder.pid.map(|p| p.to_string()).unwrap_or_default());
        let written = self.file.write_all_at(text.as_bytes(), 0).and_then(|()| self.file.set_len(text.len() as u64));
        // A partial note is read as no note.
        drop(written);
    }
}

impl Holder {
    /// The first line is the number alone, as all versions write it.
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let _ = file.read_to_string(&mut text); // what cannot be read is reported as unknown
        let mut lines = text.lines();
        let pid = lines.next().and_then(|l| l.trim().parse().ok());
        let noted: Option<Self> = lines.next().and_then(|l| serde_json::from_slice(l.as_bytes()).ok());
        Self { pid, ..noted.filter(|h| h.pid == pid).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_place_is_taken_where_the_first_cannot_be_written() {
        let dir = std::env::temp_dir().join(format!("ringwise-store-{}", std::process::id()));
        let store = |dirs| Store {
            dirs,
            hook: None,
            waiting: None,
            socket_name: format!("ringwise-test-store-{}", std::process::id()),
            over: Arc::default(),
        };
        let nowhere = store(vec!["/proc/none/ringwise".into()]);
        let store = store(vec!["/proc/none/ringwise".into(), dir.clone()]);
        assert!(store.journals().unwrap().is_empty());
        assert!(!dir.exists());
        let lock = store.lock().unwrap();
        assert_eq!(lock.dir, dir);
        assert_eq!(store.held(), Some(Holder { pid: Some(std::process::id()), ..Holder::default() }));
        let more = Holder { pid: Some(7), command: Some("ringwise apply".into()), ..Holder::default() };
        lock.note(&more);
        assert_eq!(store.held(), Some(more));
        let e = store.lock().unwrap_err();
        assert!(matches!(e.refusal(), Some(Refusal::Locked { pid: Some(_), .. })), "{e}");
        drop(lock);
        assert_eq!(store.held(), None);
        fs::remove_dir_all(&dir).unwrap();
        let e = nowhere.lock().unwrap_err();
        assert_eq!(e.exit_status(), 6);
        assert!(e.to_string().starts_with("/proc/none/ringwise cannot be written"), "{e}");
    }

    #[test]
    fn a_transaction_of_the_service_is_waited_for_and_others_are_not() {
        let dir = ringwise_testkit::dir::Dir::new();
        let name = format!("ringwise-test-wait{}", dir.0.display());
        let reports = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        let waiting: LockWaitHook = Arc::new(move |holder, most| sink.lock().unwrap().push((holder.pid, most)));
        let store = Store::open(Some(&dir.0)).with_socket_name(name).with_waiting(waiting);
        let hold = |who: &str| {
            let lock = store.lock().unwrap();
            lock.note(&Holder { pid: Some(7), who: Some(who.into()), ..Holder::default() });
            lock
        };
        let lock = hold("root");
        assert!(matches!(store.lock().unwrap_err().refusal(), Some(Refusal::Locked { .. })));
        drop(lock);
        let lock = hold(SERVICE);
        let (begun, waits) = std::sync::mpsc::channel();
        std::thread::scope(|s| {
            let person = s.spawn(|| {
                begun.send(()).unwrap();
                store.lock().map(drop)
            });
            waits.recv().unwrap();
            // Longer than the time after which others are refused.
            std::thread::sleep(FOR_READERS * 4);
            assert!(!person.is_finished());
            while reports.lock().unwrap().is_empty() && !person.is_finished() {
                std::thread::sleep(FOR_READERS);
            }
            drop(lock);
            person.join().unwrap().unwrap();
        });
        assert_eq!(*reports.lock().unwrap(), [(Some(7), FOR_SERVICE)], "once, and not for others");
    }

    #[test]
    fn strangers_are_named_and_what_is_lost_with_them() {
        let s = |n: u32, uid| ForeignLockName { name: format!("@ringwise-lock-{n}"), uid };
        assert_eq!(about(&[], true), Vec::<String>::new());
        let one = about(&[s(0, Ok(1000))], true);
        assert_eq!(one, ["another user holds socket names of ringwise's lock: @ringwise-lock-0 (user 1000)"]);
        let all = about(&[s(0, Ok(1000)), s(1, Err("EACCES".into()))], false).concat();
        assert!(all.contains("-1 (user unknown: EACCES)") && all.ends_with(UNSEEN), "{all}");
        assert!(about(&[], false).concat().ends_with(UNSEEN));
    }

    #[test]
    fn a_broken_file_is_an_error_and_not_an_empty_one() {
        let dir = std::env::temp_dir().join(format!("ringwise-broken-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("learned.json"), "{").unwrap();
        let store = Store::open(Some(&dir));
        let e = store.learned().unwrap_err();
        assert_eq!(e.exit_status(), 1);
        assert!(e.to_string().contains("learned.json is damaged"), "{e}");
        assert!(store.forget(&["eth0".into()]).is_err());
        assert_eq!(store.forget(&[]).unwrap(), []);
        assert_eq!(store.learned().unwrap(), []);
        fs::remove_dir_all(&dir).unwrap();
    }
}
