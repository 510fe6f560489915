//! A transaction on trial: it is kept only if the user confirms it in time.
//!
//! A rename decides between confirmed and expired; exactly one process can win it:
//!
//! ```text
//!   trial-0014.json ──► confirmed-0014.json   `ringwise confirm`, from any session
//!                  └──► expired-0014.json     the guard at the deadline, or a user who wants it undone now
//! ```
//!
//! The end is then recorded in the journal, and the file is removed. Only the time since boot counts: setting the clock does not
//! move the deadline, and a reboot ends the trial together with the settings.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_sys::Clock;
use serde::{Deserialize, Serialize};

use crate::journal::{Journal, JournalOrigin, Read};
use crate::record::Record;
use crate::trial_file::{Files, Stage, Trial, TrialResult, decide, file};
use crate::{Error, Holder, Refusal, RunResult, Store};

/// A trial as `outcome`, `history`, `verify` and `status` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnTrial {
    /// Length of the trial.
    pub seconds: u64,
    /// Seconds since 1970, on the clock as it was when the trial began.
    pub until_unix: u64,
    /// Milliseconds since boot, including suspend. This clock decides.
    pub until_boot_ms: u64,
    /// Whether it was confirmed or undone.
    pub fate: TrialResult,
}

/// How late a guard may be: it looks five times a second, and may have to wait for a CPU.
const PROMPT: Duration = Duration::from_secs(5);

impl OnTrial {
    /// How long ago the deadline passed, if that is longer than a guard needs to act.
    pub fn overdue(&self, since_boot: Duration) -> Option<Duration> {
        let late = since_boot.checked_sub(Duration::from_millis(self.until_boot_ms))?;
        (self.fate == TrialResult::Pending && late > PROMPT).then_some(late)
    }

    pub(crate) fn new(t: &Trial, fate: TrialResult) -> Self {
        let (until_unix, until_boot_ms) = (t.until_unix, t.until_boot_ms);
        Self { seconds: t.ms.div_ceil(1000), until_unix, until_boot_ms, fate }
    }

    /// The deadline in seconds since 1970, on the clock as it is set now.
    pub fn until(&self, clock: &dyn Clock) -> u64 {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        let left = i64::try_from(self.until_boot_ms).unwrap_or(i64::MAX).saturating_sub(ms(clock.since_boot()));
        clock.unix_time().saturating_add_signed(left.div_euclid(1000))
    }
}

/// A trial that waits for its confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Number of the transaction.
    pub transaction: u64,
    /// Its length and deadline.
    #[serde(flatten)]
    pub trial: OnTrial,
    /// Who applied it.
    pub who: String,
    /// The guard that will restore the settings. `None`: it is gone, and no process will restore them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Holder>,
}

impl Read {
    /// Whether it is on trial now.
    pub(crate) fn on_trial(&self) -> Option<&Trial> {
        let applied = self.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::Applied);
        let (trial, fate) = self.trial.as_ref()?;
        (applied && self.closed.is_none() && *fate == TrialResult::Pending).then_some(trial)
    }
}

/// A journal to which the record of the confirmation could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrecordedConfirmation {
    /// The journal.
    pub path: PathBuf,
    /// The kernel's answer; `None` if the error is not from the kernel.
    pub errno: Option<i32>,
    /// The text of the error.
    pub words: String,
}

impl fmt::Display for UnrecordedConfirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.words)
    }
}

impl std::error::Error for UnrecordedConfirmation {}

/// What `confirm` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmed {
    /// It is kept.
    Kept {
        /// Number of that transaction.
        transaction: u64,
        /// `Err`: why the journal could not be written.
        noted: Result<(), UnrecordedConfirmation>,
    },
    /// It was confirmed before.
    Already {
        /// Number of that transaction.
        transaction: u64,
    },
    /// It is being restored, or was.
    TooLate {
        /// Number of that transaction.
        transaction: u64,
        /// What ended the trial: the timer, a person, a health command.
        by: String,
        /// The reason.
        why: String,
    },
    /// The deadline passed this long ago, and the settings are not restored yet. `guard`: the guard that should restore them;
    /// `None`: it is gone.
    Overdue {
        /// Number of that transaction.
        transaction: u64,
        /// How long ago the deadline was.
        late: Duration,
        /// The guard that holds the lock.
        guard: Option<Holder>,
    },
    /// The last transaction of this boot is not on trial.
    Nothing,
}

/// The journal of the last transaction of this boot.
fn last(store: &Store, host: &ringwise_model::Host) -> Result<Option<Read>, Error> {
    Ok(Read::all(store)?.into_iter().rfind(|j| j.whose(host) == JournalOrigin::ThisBoot))
}

/// The trial that is waiting for confirmation now.
pub fn pending(store: &Store, host: &ringwise_model::Host) -> Result<Option<Pending>, Error> {
    let all = Read::all(store)?;
    Ok(pending_of(&all, store, host))
}

pub(crate) fn pending_of(all: &[Read], store: &Store, host: &ringwise_model::Host) -> Option<Pending> {
    let j = all.iter().rfind(|j| j.whose(host) == JournalOrigin::ThisBoot && j.on_trial().is_some())?;
    let t = j.on_trial()?;
    let (trial, who) = (OnTrial::new(t, TrialResult::Pending), t.who.clone());
    Some(Pending { transaction: j.id, trial, who, guard: store.held() })
}

/// Confirms the transaction that is on trial, before its deadline. Needs no lock: the guard holds it until the end.
pub fn confirm(
    store: &Store,
    host: &ringwise_model::Host,
    who: &str,
    clock: &(impl Clock + ?Sized),
) -> Result<Confirmed, Error> {
    // Twice, because another process may decide between the read and the rename.
    for _ in 0..2 {
        let Some(j) = last(store, host)? else { return Ok(Confirmed::Nothing) };
        let transaction = j.id;
        match j.trial {
            None => return Ok(Confirmed::Nothing),
            Some((_, TrialResult::Confirmed { .. })) => return Ok(Confirmed::Already { transaction }),
            Some((_, TrialResult::Undone { by, why })) => {
                return Ok(Confirmed::TooLate { transaction, by: by.to_string(), why });
            }
            // It failed and was restored, or is being restored, for another reason than the trial.
            Some(_) if j.end.as_ref().is_some_and(|(o, _)| o.verdict != RunResult::Applied) => {
                return Ok(Confirmed::Nothing);
            }
            Some((trial, TrialResult::Pending)) => {
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
            let (path, record) =
                (j.path.clone(), Record::Confirmed { by: who.to_string(), unix_time: clock.unix_time() });
            let noted = note(store, &j.path, &record);
            let noted = noted.map_err(|e| UnrecordedConfirmation {
                path,
                errno: e.raw_os_error(),
                words: ringwise_sys::io_text(&e),
            });
            if noted.is_ok() {
                Files::clear(dir, transaction);
            }
            store.publish(None);
            return Ok(Confirmed::Kept { transaction, noted });
        }
    }
    let transaction = last(store, host)?.map_or(0, |j| j.id);
    Ok(Confirmed::TooLate { transaction, by: "another process".into(), why: "its trial is over".into() })
}

/// Requests that a trial be undone now; the guard does it. `false`: the trial is over already.
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
    // Without this record the guard still knows from the file that it has to restore, but not why.
    let _ = note(store, &j.path, &Record::TrialOver { by: by.into(), why: why.into(), unix_time });
    store.publish(store.held().as_ref());
    Ok(true)
}

/// Appends one line to a journal that no other process writes to now. The line is on disk when this returns.
pub(crate) fn note(store: &Store, path: &Path, record: &Record) -> io::Result<()> {
    let mut journal = Journal::resume(store, path)?;
    journal.add_durably(record)?;
    journal.sync_dir()
}
