//! A transaction on trial: kept only if somebody confirms it in time.
//!
//! Which of the two it is, is decided by one rename that exactly one can win:
//!
//! ```text
//!   trial-0014.json ──► confirmed-0014.json   `ringwise confirm`, from any session
//!                  └──► expired-0014.json     the guard at the deadline, or somebody who wants it undone now
//! ```
//!
//! The end then stands in the journal, and the file goes. Only the time since boot counts: a clock that is
//! set does not move the deadline, and a reboot ends the trial together with the settings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_sys::{Clock, Host};
use serde::{Deserialize, Serialize};

use crate::journal::{Journal, Read, Record, Whose};
use crate::state_file;
use crate::sum::Sum;
use crate::{Error, Holder, Refusal, Store, Verdict};

/// Content of `trial-NNNN.json`, and of its record in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub ms: u64,
    /// Since boot, suspend included: the one that counts.
    pub until_boot_ms: u64,
    /// The same on the clock as it was when the trial began.
    pub until_unix: u64,
    pub boot_id: Option<String>,
    pub who: String,
    /// It ends with this process, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tied: Option<Keeper>,
}

/// A process, told from a later one with the same number by the time it was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keeper {
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`, ticks since boot.
    pub started: u64,
}

impl Keeper {
    /// This process; none where `/proc` does not tell.
    pub(crate) fn me(host: &dyn Host) -> Option<Self> {
        let pid = std::process::id();
        Some(Self { pid, started: alive_since(host, pid)? })
    }

    /// A process of the machine that this one runs on.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: alive_since(&ringwise_sys::Real::new().ok()?, pid)? })
    }

    /// Only what is known to be gone is.
    pub(crate) fn is_gone(&self, host: &dyn Host) -> bool {
        match host.read_text(&format!("/proc/{}/stat", self.pid)) {
            Ok(text) => started(&text).is_some_and(|(state, at)| at != self.started || state == "Z" || state == "X"),
            Err(e) => e.is_absent() || e.errno == Some(ESRCH),
        }
    }
}

const ESRCH: i32 = 3;

fn alive_since(host: &dyn Host, pid: u32) -> Option<u64> {
    started(&host.read_text(&format!("/proc/{pid}/stat")).ok()?).map(|(_, at)| at)
}

/// State and start of `/proc/PID/stat`. The name before them may hold anything.
fn started(stat: &str) -> Option<(&str, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

impl Trial {
    pub(crate) fn left(&self, since_boot: Duration) -> Duration {
        Duration::from_millis(self.until_boot_ms).saturating_sub(since_boot)
    }
}

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nobody has said anything yet.
    Pending,
    Confirmed {
        /// None: only the file says so; the journal could not be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    Undone {
        /// `timer`, a person, `health command`.
        by: String,
        why: String,
    },
}

/// A trial as `outcome`, `history`, `verify` and `status` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnTrial {
    pub seconds: u64,
    /// Seconds since 1970, on the clock as it was when the trial began.
    pub until_unix: u64,
    /// Milliseconds since boot, suspend included: the one that counts.
    pub until_boot_ms: u64,
    pub fate: Fate,
}

/// A guard looks five times a second, and may have to wait for a CPU.
const PROMPT: Duration = Duration::from_secs(5);

impl OnTrial {
    /// For how long its deadline has passed, where that is longer than a guard takes to act.
    pub fn overdue(&self, since_boot: Duration) -> Option<Duration> {
        let late = since_boot.checked_sub(Duration::from_millis(self.until_boot_ms))?;
        (self.fate == Fate::Pending && late > PROMPT).then_some(late)
    }

    pub(crate) fn new(t: &Trial, fate: Fate) -> Self {
        let (until_unix, until_boot_ms) = (t.until_unix, t.until_boot_ms);
        Self { seconds: t.ms.div_ceil(1000), until_unix, until_boot_ms, fate }
    }

    /// The deadline in seconds since 1970 on the clock as it is set now.
    pub fn until(&self, clock: &dyn Clock) -> u64 {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        let left = i64::try_from(self.until_boot_ms).unwrap_or(i64::MAX).saturating_sub(ms(clock.since_boot()));
        clock.unix_time().saturating_add_signed(left.div_euclid(1000))
    }
}

/// A trial that waits for its confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub transaction: u64,
    #[serde(flatten)]
    pub trial: OnTrial,
    pub who: String,
    /// Who will put it back; none: its guard is gone, nobody will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Holder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Trial,
    Confirmed,
    Expired,
}

pub(crate) fn file(dir: &Path, id: u64, stage: Stage) -> PathBuf {
    let name = match stage {
        Stage::Trial => "trial",
        Stage::Confirmed => "confirmed",
        Stage::Expired => "expired",
    };
    dir.join(format!("{name}-{id:04}.json"))
}

/// Ends the trial in one way; false: somebody else has ended it before.
pub(crate) fn decide(store: &Store, dir: &Path, id: u64, to: Stage) -> io::Result<bool> {
    let to = file(dir, id, to);
    store.before_write(&to)?;
    match fs::rename(file(dir, id, Stage::Trial), &to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// The files beside a journal. Read them before the journal, in this order: what was decided meanwhile is then
/// found in one or the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub trial: Option<(Trial, Sum)>,
    pub confirmed: bool,
    pub expired: bool,
}

impl Files {
    pub(crate) fn read(journal: &Path, id: u64) -> Self {
        let dir = journal.parent().unwrap_or(Path::new("."));
        let trial = file(dir, id, Stage::Trial);
        let there = |p: &Path| fs::symlink_metadata(p).is_ok();
        let (confirmed, expired) = (file(dir, id, Stage::Confirmed), file(dir, id, Stage::Expired));
        let (is_confirmed, is_expired) = (there(&confirmed), there(&expired));
        // Its record in the journal says the same: one that is torn or damaged is not needed.
        let one = [trial, confirmed, expired].iter().find_map(|p| state_file::read_with_sum(p));
        Self { trial: one, confirmed: is_confirmed, expired: is_expired }
    }

    /// Takes away what the journal knows now.
    pub(crate) fn clear(dir: &Path, id: u64) {
        for stage in [Stage::Trial, Stage::Confirmed, Stage::Expired] {
            // One that stays is read together with the journal, and says nothing new.
            let _ = fs::remove_file(file(dir, id, stage));
        }
    }
}

impl Read {
    /// On trial now.
    pub(crate) fn on_trial(&self) -> Option<&Trial> {
        let applied = self.end.as_ref().is_some_and(|(o, _)| o.verdict == Verdict::Applied);
        let (trial, fate) = self.trial.as_ref()?;
        (applied && self.closed.is_none() && *fate == Fate::Pending).then_some(trial)
    }
}

/// What `confirm` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmed {
    /// It is kept. `noted`: why that stands only in a file beside the journal.
    Kept { transaction: u64, noted: Result<(), String> },
    /// Somebody has confirmed it before.
    Already { transaction: u64 },
    /// It is being put back, or was.
    TooLate { transaction: u64, by: String, why: String },
    /// Its deadline has passed for so long, and it is not put back yet. `guard`: who is to do it; none: nobody.
    Overdue { transaction: u64, late: Duration, guard: Option<Holder> },
    /// The last transaction of this boot is no trial.
    Nothing,
}

/// The journal of the last transaction of this boot.
fn last(store: &Store, host: &ringwise_model::Host) -> Result<Option<Read>, Error> {
    Ok(Read::all(store)?.into_iter().rfind(|j| j.whose(host) == Whose::ThisBoot))
}

/// The trial that waits now.
pub fn pending(store: &Store, host: &ringwise_model::Host) -> Result<Option<Pending>, Error> {
    let all = Read::all(store)?;
    Ok(pending_of(&all, store, host))
}

pub(crate) fn pending_of(all: &[Read], store: &Store, host: &ringwise_model::Host) -> Option<Pending> {
    let j = all.iter().rfind(|j| j.whose(host) == Whose::ThisBoot && j.on_trial().is_some())?;
    let t = j.on_trial()?;
    let (trial, who) = (OnTrial::new(t, Fate::Pending), t.who.clone());
    Some(Pending { transaction: j.id, trial, who, guard: store.held() })
}

/// Keeps what is on trial, until its deadline. Needs no lock: the guard holds that until the end.
pub fn confirm(
    store: &Store,
    host: &ringwise_model::Host,
    who: &str,
    clock: &(impl Clock + ?Sized),
) -> Result<Confirmed, Error> {
    // Twice, because somebody else may decide between reading and renaming.
    for _ in 0..2 {
        let Some(j) = last(store, host)? else { return Ok(Confirmed::Nothing) };
        let transaction = j.id;
        match j.trial {
            None => return Ok(Confirmed::Nothing),
            Some((_, Fate::Confirmed { .. })) => return Ok(Confirmed::Already { transaction }),
            Some((_, Fate::Undone { by, why })) => return Ok(Confirmed::TooLate { transaction, by, why }),
            // It is put back for another reason, or was.
            Some(_) if j.end.as_ref().is_some_and(|(o, _)| o.verdict != Verdict::Applied) => {
                return Ok(Confirmed::Nothing);
            }
            Some((trial, Fate::Pending)) => {
                let now = clock.since_boot();
                if trial.left(now).is_zero() {
                    let late = now.saturating_sub(Duration::from_millis(trial.until_boot_ms));
                    return Ok(Confirmed::Overdue { transaction, late, guard: store.held() });
                }
            }
        }
        let dir = j.path.parent().unwrap_or(Path::new("."));
        let fail = |source| Error::State { path: file(dir, transaction, Stage::Confirmed), source };
        if decide(store, dir, transaction, Stage::Confirmed).map_err(fail)? {
            let record = Record::Confirmed { by: who.to_string(), unix_time: clock.unix_time() };
            let noted = note(store, &j.path, &record).map_err(|e| format!("{}: {e}", j.path.display()));
            if noted.is_ok() {
                Files::clear(dir, transaction);
            }
            store.publish(None);
            return Ok(Confirmed::Kept { transaction, noted });
        }
    }
    let transaction = last(store, host)?.map_or(0, |j| j.id);
    Ok(Confirmed::TooLate { transaction, by: "somebody".into(), why: "its trial is over".into() })
}

/// Asks for a trial to be undone now; the guard does it. False: it is over already.
pub fn undo_now(store: &Store, transaction: u64, by: &str, why: &str, unix_time: u64) -> Result<bool, Error> {
    let found = Read::all(store)?.into_iter().rfind(|j| j.id == transaction);
    let Some(j) = found.filter(|j| j.on_trial().is_some()) else {
        return Err(Refusal::NoTransaction { why: format!("transaction {transaction} is not on trial") }.into());
    };
    let dir = j.path.parent().unwrap_or(Path::new("."));
    let fail = |source| Error::State { path: file(dir, transaction, Stage::Expired), source };
    if !decide(store, dir, transaction, Stage::Expired).map_err(fail)? {
        return Ok(false);
    }
    // Without it the guard knows from the file that it has to, only not why.
    let _ = note(store, &j.path, &Record::TrialOver { by: by.into(), why: why.into(), unix_time });
    store.publish(store.held().as_ref());
    Ok(true)
}

/// One line at the end of a journal that nobody else writes to now, on disk when this returns.
pub(crate) fn note(store: &Store, path: &Path, record: &Record) -> io::Result<()> {
    let mut journal = Journal::resume(store, path)?;
    journal.add_durably(record)?;
    journal.sync_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_start() {
        let tail: String = (4..22).map(|n| format!(" {n}")).collect();
        let stat = format!("7 (a) b) c) S{tail} 4711 0\n");
        assert_eq!(started(&stat), Some(("S", 4711)));
        assert_eq!(started("7 (a"), None);
    }

    #[test]
    fn this_process_is_there_and_an_earlier_one_is_not() {
        let host = ringwise_sys::Real::new().unwrap();
        let me = Keeper::me(&host).unwrap();
        assert!(!me.is_gone(&host));
        assert!(Keeper { started: me.started + 1, ..me.clone() }.is_gone(&host));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let at = alive_since(&host, child.id()).unwrap();
        let other = Keeper { pid: child.id(), started: at };
        assert!(!other.is_gone(&host));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone(&host));
    }
}
