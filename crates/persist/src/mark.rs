//! The mark by which a boot that did not survive its tuning is recognized, and the lock of `apply --boot`.
//!
//! ```text
//!   apply --boot ─► mark "applying" ─► writes ─┬─► five minutes, or an orderly shutdown: mark "lived"
//!                                              └─► the next boot finds "applying" of another boot: "skipped"
//! ```

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringwise_model::words::visible;
use ringwise_sys::trust;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, file};

/// Format of the mark.
const FORMAT: u32 = 1;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What became of the last `apply --boot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fate {
    /// Writes were about to begin. Nothing later is recorded.
    Applying,
    /// The host was up five minutes later, or was shut down in an orderly way.
    Lived,
    /// A later boot did not apply because of it. It stays like this until the user runs `ringwise persist`.
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) format: u32,
    pub(crate) boot_id: String,
    pub(crate) unix_time: u64,
    pub(crate) fate: Fate,
}

pub(crate) fn mark_file(state_dir: &Path) -> PathBuf {
    state_dir.join("boot.json")
}

fn boot_id() -> Result<String> {
    let text = std::fs::read_to_string(BOOT_ID).map_err(file(Path::new(BOOT_ID)))?;
    Ok(text.trim().to_string())
}

pub(crate) fn read_mark(state_dir: &Path) -> Result<Option<Mark>> {
    let path = mark_file(state_dir);
    let text = match std::fs::read(&path) {
        Ok(t) => t,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(file(&path)(e)),
    };
    match serde_json::from_slice::<Mark>(&text) {
        Ok(mark) if mark.format > FORMAT => Err(Error::MarkNewer(path)),
        Ok(mark) => Ok(Some(mark)),
        Err(error) => Err(Error::MarkDamaged { path, error: error.into() }),
    }
}

pub(crate) fn write_mark(state_dir: &Path, mark: &Mark) -> Result<()> {
    std::fs::create_dir_all(state_dir).map_err(file(state_dir))?;
    let text = serde_json::to_vec(mark).map_err(Error::Mark)?;
    Ok(ringwise_sys::store::write_atomic(&mark_file(state_dir), &text)?)
}

/// Whether this boot may apply. It may not if the mark cannot be read or written, because then the next boot would not
/// know about this one.
pub(crate) fn may_apply(state_dir: &Path) -> Result<()> {
    boot_id().and_then(|id| decide(state_dir, &id)).map_err(|e| match e {
        Error::EarlierBootDied => e,
        other => Error::MarkUnreadable(Box::new(other)),
    })
}

fn decide(state_dir: &Path, now: &str) -> Result<()> {
    let Some(mark) = read_mark(state_dir)? else { return Ok(()) };
    match mark.fate {
        Fate::Lived => Ok(()),
        // The same boot: an interface that appeared late, or a manual run.
        Fate::Applying if mark.boot_id == now => Ok(()),
        Fate::Applying | Fate::Skipped => {
            write_mark(state_dir, &Mark { fate: Fate::Skipped, ..mark })?;
            Err(Error::EarlierBootDied)
        }
    }
}

/// Records that this boot is about to write. Called just before the first write.
pub(crate) fn applying(state_dir: &Path, unix_time: u64) -> Result<()> {
    let written = boot_id()
        .and_then(|boot_id| write_mark(state_dir, &Mark { format: FORMAT, boot_id, unix_time, fate: Fate::Applying }));
    written.map_err(|e| Error::NoMark(Box::new(e)))
}

/// Records that the host was up long enough, or that everything was put back.
///
/// Errors: the mark cannot be read or written.
pub fn mark_boot_good(state_dir: &Path) -> Result<()> {
    match read_mark(state_dir)? {
        Some(mark) if mark.fate == Fate::Applying => write_mark(state_dir, &Mark { fate: Fate::Lived, ..mark }),
        _ => Ok(()),
    }
}

/// Whether this boot began to apply, and is not known to have outlived it. A service that is started again then counts the
/// five minutes itself.
///
/// Errors: the mark cannot be read.
pub fn is_boot_unproven(state_dir: &Path) -> Result<bool> {
    let id = boot_id()?;
    Ok(read_mark(state_dir)?.is_some_and(|m| m.fate == Fate::Applying && m.boot_id == id))
}

/// Removes the mark, so that the next boot applies again.
///
/// Errors: the mark cannot be removed.
pub fn forget(state_dir: &Path) -> Result<()> {
    match std::fs::remove_file(mark_file(state_dir)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(file(&mark_file(state_dir))(e)),
        _ => Ok(()),
    }
}

/// How long one `--boot` waits for another: shorter than `TimeoutStartSec=` of the units, so that the message is logged.
pub(crate) const ALONE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One `--boot` at a time; the lock is released when the file is closed. Waits for another one, no longer than `within`.
/// `command`: the command line of this process, for the message of another one.
pub(crate) fn alone(state_dir: &Path, within: Duration, command: &str) -> Result<File> {
    let path = state_dir.join("boot.lock");
    let failed = file(&path);
    std::fs::create_dir_all(state_dir).map_err(&failed)?;
    let mut open = OpenOptions::new();
    open.create(true).read(true).write(true).truncate(false).mode(0o600).custom_flags(trust::NO_LINK);
    let mut lock = open.open(&path).map_err(&failed)?;
    // Earlier versions made the file readable for all users, and any process that can open a lock file can hold the lock.
    lock.set_permissions(Permissions::from_mode(0o600)).map_err(&failed)?;
    let end = Instant::now() + within;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                return Err(Error::Locked { holder: holder(&mut lock), path, seconds: within.as_secs() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_EVERY),
        }
    }
    // The note is only used in the message above, so a failed write does not stop the run.
    let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}\n{command}", std::process::id()));
    Ok(lock)
}

/// The note of the process that holds the lock.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let noted = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(4096).read_to_string(&mut text));
    match (noted, text.split_once('\n')) {
        (Ok(_), Some((pid, command))) if pid.parse::<u32>().is_ok() => {
            format!("process {pid}, \"{}\"", visible(command.trim_end()))
        }
        _ => "process unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-boot-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn a_boot_that_did_not_live_is_not_repeated() {
        let d = dir("mark");
        decide(&d, "one").expect("nothing known");
        let mark = |boot: &str, fate| Mark { format: FORMAT, boot_id: boot.into(), unix_time: 7, fate };
        write_mark(&d, &mark("one", Fate::Applying)).unwrap();
        decide(&d, "one").expect("a late interface of the same boot");
        assert!(decide(&d, "two").is_err(), "the next boot");
        assert_eq!(read_mark(&d).unwrap().unwrap(), mark("one", Fate::Skipped));
        mark_boot_good(&d).unwrap();
        assert!(decide(&d, "three").is_err(), "and every later one, until the user runs persist");
        forget(&d).unwrap();
        decide(&d, "three").unwrap();
        write_mark(&d, &mark("three", Fate::Applying)).unwrap();
        mark_boot_good(&d).unwrap();
        decide(&d, "four").expect("that one lived");
        std::fs::write(mark_file(&d), "{").unwrap();
        assert!(decide(&d, "five").is_err(), "a mark that cannot be read is no leave");
        std::fs::remove_dir_all(d).unwrap();
    }

    #[test]
    fn only_this_boot_has_yet_to_live() {
        let d = dir("yet");
        assert!(!is_boot_unproven(&d).unwrap(), "nothing was applied");
        applying(&d, 7).unwrap();
        assert!(is_boot_unproven(&d).unwrap());
        mark_boot_good(&d).unwrap();
        assert!(!is_boot_unproven(&d).unwrap());
        write_mark(&d, &Mark { format: FORMAT, boot_id: "another".into(), unix_time: 7, fate: Fate::Applying })
            .unwrap();
        assert!(!is_boot_unproven(&d).unwrap(), "that boot is over");
        std::fs::remove_dir_all(d).unwrap();
    }

    #[test]
    fn one_at_a_time_and_with_a_bounded_wait() {
        let d = dir("alone");
        let first = alone(&d, Duration::ZERO, "ringwise apply --boot").unwrap();
        let why = alone(&d, Duration::from_millis(150), "x").unwrap_err().to_string();
        let me = std::process::id();
        assert!(why.contains(&format!("(process {me}, \"ringwise apply --boot\")")), "{why}");
        assert!(why.contains("gave up after 0 s, nothing was touched"), "{why}");
        // Whoever can open the file can hold the lock.
        let mode = |m: u32| std::fs::set_permissions(d.join("boot.lock"), Permissions::from_mode(m)).unwrap();
        mode(0o644);
        drop(first);
        let second = alone(&d, Duration::ZERO, "ringwise apply --boot").unwrap();
        assert_eq!(second.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // A process that waits gets the lock when it is released.
        std::thread::scope(|s| {
            let third = s.spawn(|| alone(&d, Duration::from_secs(60), "x"));
            std::thread::sleep(Duration::from_millis(150));
            drop(second);
            third.join().unwrap().unwrap();
        });
        // The lock is held by a process without a note.
        std::fs::write(d.join("boot.lock"), "").unwrap();
        let other = File::open(d.join("boot.lock")).unwrap();
        other.lock().unwrap();
        assert!(
            alone(&d, Duration::ZERO, "ringwise apply --boot")
                .unwrap_err()
                .to_string()
                .contains("boot.lock (process unknown)")
        );
        std::fs::remove_dir_all(d).unwrap();
    }

    #[test]
    fn one_flipped_bit_of_the_mark_is_never_leave() {
        // The directory is in memory, because each refusal is written and synced.
        let dir = ringwise_testkit::dir::Dir::new();
        let d = dir.0.clone();
        let boots = ["11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"];
        for fate in [Fate::Applying, Fate::Skipped] {
            write_mark(&d, &Mark { format: FORMAT, boot_id: boots[0].into(), unix_time: 7, fate }).unwrap();
            let whole = std::fs::read(mark_file(&d)).unwrap();
            for bit in 0..whole.len() * 8 {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(mark_file(&d), flipped).unwrap();
                assert!(decide(&d, boots[1]).is_err(), "{fate:?}, bit {bit}");
            }
        }
    }
}
