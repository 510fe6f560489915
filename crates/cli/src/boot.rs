//! Keeping settings over a reboot: where its files lie, and the mark by which a boot that did not live is known.
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

use ringwise_model::{Boot, shell, words::visible};
use ringwise_sys::trust;
use serde::{Deserialize, Serialize};

/// Of the mark.
const FORMAT: u32 = 1;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Below the root of the system.
pub const SERVICE: &str = "etc/systemd/system/ringwise.service";
pub const LATE: &str = "etc/systemd/system/ringwise@.service";
pub const LIVED: &str = "etc/systemd/system/ringwise-lived.service";
pub const TIMER: &str = "etc/systemd/system/ringwise-lived.timer";
pub const RULES: &str = "etc/udev/rules.d/81-ringwise.rules";
pub const WANTS: &str = "etc/systemd/system/multi-user.target.wants/ringwise.service";
/// First words of the line in the service that says which file is applied.
const APPLIES: &str = "Environment=RINGWISE_CONFIG=";

/// How the last application at a boot went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Writes were about to begin, and nothing was heard since.
    Applying,
    /// The host was there five minutes later, or was shut down in order.
    Lived,
    /// A later boot did not apply because of it. Stays until somebody runs `ringwise persist`.
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    format: u32,
    pub boot_id: String,
    pub unix_time: u64,
    pub fate: Fate,
}

pub fn mark_file(state_dir: &Path) -> PathBuf {
    state_dir.join("boot.json")
}

fn boot_id() -> Result<String, String> {
    let text = std::fs::read_to_string(BOOT_ID).map_err(|e| format!("{BOOT_ID}: {e}"))?;
    Ok(text.trim().to_string())
}

pub fn read_mark(state_dir: &Path) -> Result<Option<Mark>, String> {
    let path = mark_file(state_dir);
    let text = match std::fs::read(&path) {
        Ok(t) => t,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("{}: {e}", path.display())),
    };
    let mark: Mark = serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    if mark.format > FORMAT { Err(format!("{} is of a newer version", path.display())) } else { Ok(Some(mark)) }
}

fn write_mark(state_dir: &Path, mark: &Mark) -> Result<(), String> {
    std::fs::create_dir_all(state_dir).map_err(|e| format!("{}: {e}", state_dir.display()))?;
    let text = serde_json::to_vec(mark).map_err(|e| e.to_string())?;
    ringwise_sys::store::write_atomic(&mark_file(state_dir), &text).map_err(|e| e.to_string())
}

/// Whether this boot may apply. A mark that cannot be read or written is no leave: the next boot could not know.
pub fn may_apply(state_dir: &Path) -> Result<(), String> {
    decide(state_dir, &boot_id()?)
}

fn decide(state_dir: &Path, now: &str) -> Result<(), String> {
    let Some(mark) = read_mark(state_dir)? else { return Ok(()) };
    match mark.fate {
        Fate::Lived => Ok(()),
        // A late interface, or once more by hand.
        Fate::Applying if mark.boot_id == now => Ok(()),
        Fate::Applying | Fate::Skipped => {
            write_mark(state_dir, &Mark { fate: Fate::Skipped, ..mark })?;
            Err("an earlier boot ended within five minutes of tuning and was not shut down in order".into())
        }
    }
}

/// Just before the first write.
pub fn applying(state_dir: &Path, unix_time: u64) -> Result<(), String> {
    write_mark(state_dir, &Mark { format: FORMAT, boot_id: boot_id()?, unix_time, fate: Fate::Applying })
}

/// The host was there long enough, or everything was put back.
pub fn lived(state_dir: &Path) -> Result<(), String> {
    match read_mark(state_dir)? {
        Some(mark) if mark.fate == Fate::Applying => write_mark(state_dir, &Mark { fate: Fate::Lived, ..mark }),
        _ => Ok(()),
    }
}

/// Somebody wants it tried again.
pub fn forget(state_dir: &Path) -> Result<(), String> {
    match std::fs::remove_file(mark_file(state_dir)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(format!("{}: {e}", mark_file(state_dir).display())),
        _ => Ok(()),
    }
}

/// How long one `--boot` waits for another: shorter than `TimeoutStartSec=` of the units, so that the message is logged.
pub const ALONE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One `--boot` at a time; the lock is released when the file is closed. Waits for another one, no longer than `within`.
pub fn alone(state_dir: &Path, within: Duration) -> Result<File, String> {
    let path = state_dir.join("boot.lock");
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(state_dir).map_err(failed)?;
    let mut open = OpenOptions::new();
    open.create(true).read(true).write(true).truncate(false).mode(0o600).custom_flags(trust::NO_LINK);
    let mut file = open.open(&path).map_err(failed)?;
    // Earlier versions made it for all to read, and whoever may read a lock may hold it.
    file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    let end = Instant::now() + within;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                return Err(format!(
                    "another ringwise apply --boot holds {} ({}); gave up after {} s, nothing was touched",
                    path.display(),
                    holder(&mut file),
                    within.as_secs()
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_EVERY),
        }
    }
    let command = shell::join(std::env::args_os().map(|a| a.to_string_lossy().into_owned()));
    // For the message above only: a note that could not be written is no reason to stop.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}\n{command}", std::process::id()));
    Ok(file)
}

/// What the one that holds the lock has noted.
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

/// `Environment=` of the service: which file it applies.
pub fn names(config: &str) -> String {
    format!("{APPLIES}{config}")
}

/// What is kept, from the files below `root`.
pub fn kept(root: &Path, state_dir: &Path) -> Boot {
    let wants = root.join(WANTS);
    match std::fs::symlink_metadata(&wants) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Boot::Nothing,
        Err(e) => return Boot::Unknown { why: format!("{}: {e}", wants.display()) },
    }
    let service = root.join(SERVICE);
    let text = match std::fs::read_to_string(&service) {
        Ok(t) => t,
        Err(e) => return Boot::Unknown { why: format!("{}: {e}", service.display()) },
    };
    let Some(config) = text.lines().find_map(|l| l.strip_prefix(APPLIES)) else {
        return Boot::Unknown { why: format!("{} was not written by ringwise persist", service.display()) };
    };
    let config = config.to_string();
    match read_mark(state_dir) {
        Ok(Some(Mark { fate: Fate::Skipped, unix_time, .. })) => return Boot::Skipped { unix_time },
        Err(why) => return Boot::Unknown { why },
        Ok(_) => {}
    }
    let there = root.join(config.trim_start_matches('/')).exists();
    if there { Boot::Applies { config } } else { Boot::Missing { config } }
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
        assert_eq!(decide(&d, "one"), Ok(()), "nothing known");
        let mark = |boot: &str, fate| Mark { format: FORMAT, boot_id: boot.into(), unix_time: 7, fate };
        write_mark(&d, &mark("one", Fate::Applying)).unwrap();
        assert_eq!(decide(&d, "one"), Ok(()), "a late interface of the same boot");
        assert!(decide(&d, "two").is_err(), "the next boot");
        assert_eq!(read_mark(&d).unwrap().unwrap(), mark("one", Fate::Skipped));
        lived(&d).unwrap();
        assert!(decide(&d, "three").is_err(), "and every later one, until somebody looks");
        forget(&d).unwrap();
        assert_eq!(decide(&d, "three"), Ok(()));
        write_mark(&d, &mark("three", Fate::Applying)).unwrap();
        lived(&d).unwrap();
        assert_eq!(decide(&d, "four"), Ok(()), "that one lived");
        std::fs::write(mark_file(&d), "{").unwrap();
        assert!(decide(&d, "five").is_err(), "a mark that cannot be read is no leave");
        std::fs::remove_dir_all(d).unwrap();
    }

    #[test]
    fn one_at_a_time_and_nobody_waits_for_ever() {
        let d = dir("alone");
        let first = alone(&d, Duration::ZERO).unwrap();
        let why = alone(&d, Duration::from_millis(150)).unwrap_err();
        let (me, program) = (std::process::id(), std::env::args().next().unwrap());
        assert!(why.contains(&format!("(process {me}, \"{program}")), "{why}");
        assert!(why.contains("gave up after 0 s, nothing was touched"), "{why}");
        // Whoever may open it may hold it.
        let mode = |m: u32| std::fs::set_permissions(d.join("boot.lock"), Permissions::from_mode(m)).unwrap();
        mode(0o644);
        drop(first);
        let second = alone(&d, Duration::ZERO).unwrap();
        assert_eq!(second.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // One that waits gets it when it is released.
        std::thread::scope(|s| {
            let third = s.spawn(|| alone(&d, Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(150));
            drop(second);
            third.join().unwrap().unwrap();
        });
        // Held by something that has noted nothing.
        std::fs::write(d.join("boot.lock"), "").unwrap();
        let other = File::open(d.join("boot.lock")).unwrap();
        other.lock().unwrap();
        assert!(alone(&d, Duration::ZERO).unwrap_err().contains("boot.lock (process unknown)"));
        std::fs::remove_dir_all(d).unwrap();
    }

    #[test]
    fn one_flipped_bit_of_the_mark_is_never_leave() {
        // In memory: each refusal is written down and synced.
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

    #[test]
    fn what_is_kept_is_read_from_the_files() {
        let root = dir("root");
        let state = root.join("var/lib/ringwise");
        assert_eq!(kept(&root, &state), Boot::Nothing);
        for f in [SERVICE, WANTS, "etc/x.toml"] {
            std::fs::create_dir_all(root.join(f).parent().unwrap()).unwrap();
            std::fs::write(root.join(f), format!("[Service]\n{}\n", names("/etc/x.toml"))).unwrap();
        }
        let config = "/etc/x.toml".to_string();
        assert_eq!(kept(&root, &state), Boot::Applies { config: config.clone() });
        write_mark(&state, &Mark { format: 1, boot_id: "a".into(), unix_time: 7, fate: Fate::Skipped }).unwrap();
        assert_eq!(kept(&root, &state), Boot::Skipped { unix_time: 7 });
        forget(&state).unwrap();
        std::fs::remove_file(root.join("etc/x.toml")).unwrap();
        assert_eq!(kept(&root, &state), Boot::Missing { config });
        std::fs::write(root.join(SERVICE), "[Service]\n").unwrap();
        assert!(matches!(kept(&root, &state), Boot::Unknown { .. }));
        std::fs::remove_dir_all(root).unwrap();
    }
}
