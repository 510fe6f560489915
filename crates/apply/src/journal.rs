//! One transaction on disk, as JSON lines. The header is the first line. It contains everything that is needed to restore the
//! host, and is on disk before the first write. The later lines record what happened.
//!
//! Each line carries a checksum (see `sum`), and a line with a wrong checksum is never used. A torn last line is skipped. Lines
//! after the header are written at once but not synced one by one: after a power failure they are not needed, because the
//! kernel's settings are lost as well.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ringwise_knob::Setting;
use ringwise_model::{Host, Title};
use ringwise_sys::trust;
use serde::{Deserialize, Serialize};

use crate::checksum::{self, Sum};
use crate::newer::{Head, elsewhere};
use crate::record::{BEFORE_SUMS, Header, Record};
use crate::store::{Lock, Store, sync_dir};
use crate::trial_file::{Files, Trial, TrialResult, UndoneBy};
use crate::{Error, Newer, Outcome, Refusal, RunResult};

/// A line of a journal. The two large records are parsed directly as their own types: with an internally tagged enum, serde would
/// first buffer a copy of everything in them.
enum Line {
    Begin(Box<Header>),
    End(Box<End>),
    /// A record of a single step. Its content is not used; the line only has to be complete.
    Account,
    Other(Box<Record>),
}

#[derive(Deserialize)]
struct End {
    outcome: Outcome,
    after: Vec<Setting>,
}

impl Line {
    fn read(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(borrow)]
            record: Cow<'a, str>,
        }
        // ringwise writes the tag first, so the two lines that have megabytes need not be parsed twice for it.
        if line.starts_with(br#"{"record":"begin","#) {
            return Ok(Self::Begin(serde_json::from_slice(line)?));
        }
        if line.starts_with(br#"{"record":"end","#) {
            return Ok(Self::End(serde_json::from_slice(line)?));
        }
        Ok(match serde_json::from_slice::<Tag<'_>>(line)?.record.as_ref() {
            "begin" => Self::Begin(serde_json::from_slice(line)?),
            "end" => Self::End(serde_json::from_slice(line)?),
            "step" | "done" => Self::Account,
            _ => Self::Other(serde_json::from_slice(line)?),
        })
    }
}

/// A journal that is being written.
pub(crate) struct Journal {
    /// Or why there is no file.
    file: Result<File, String>,
    path: PathBuf,
    store: Store,
    /// Length of the file up to the end of the last complete line.
    length: u64,
}

impl Journal {
    /// Creates a journal with its header. File and directory entry are on disk when this returns.
    ///
    /// Errors: of the disk. No file is left then.
    pub(crate) fn begin(store: &Store, lock: &Lock, header: Header) -> Result<Self, Refusal> {
        let path = lock.dir.join(format!("tx-{:04}.jsonl", header.transaction));
        let refuse = |e: io::Error| Refusal::State { path: path.clone(), why: e.to_string() };
        Self::create(store, &path, header).map_err(refuse)
    }

    fn create(store: &Store, path: &Path, header: Header) -> io::Result<Self> {
        store.before_write(path)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        let mut journal = Self { file: Ok(file), path: path.to_path_buf(), store: store.clone(), length: 0 };
        let written = journal.add(&Record::Begin(Box::new(header))).and_then(|()| journal.sync());
        if let Err(e) = written.and_then(|()| journal.sync_dir()) {
            // Nothing was changed, so an empty or torn journal would be misleading. The disk's error is what counts.
            let _ = std::fs::remove_file(&journal.path);
            return Err(e);
        }
        Ok(journal)
    }

    /// Opens an existing journal to append to it.
    pub(crate) fn resume(store: &Store, path: &Path) -> io::Result<Self> {
        store.before_write(path)?;
        let torn = std::fs::read(path)?.last().is_some_and(|b| *b != b'\n');
        let mut file = OpenOptions::new().append(true).custom_flags(trust::NO_LINK).open(path)?;
        if torn {
            file.write_all(b"\n")?;
        }
        let length = file.metadata()?.len();
        Ok(Self { file: Ok(file), path: path.to_path_buf(), store: store.clone(), length })
    }

    /// A journal that cannot be written.
    pub(crate) fn lost(store: &Store, path: &Path, why: &io::Error) -> Self {
        Self { file: Err(why.to_string()), path: path.to_path_buf(), store: store.clone(), length: 0 }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().map_err(|why| io::Error::other(why.clone()))
    }

    /// Appends a whole line, or removes what was written of it: otherwise the next line would continue a partial one.
    pub(crate) fn add(&mut self, record: &Record) -> io::Result<()> {
        let mut line = checksum::add(serde_json::to_vec(record)?);
        line.push(b'\n');
        let written = self.store.before_write(&self.path).and_then(|()| self.file()?.write_all(&line));
        match written {
            Ok(()) => self.length += line.len() as u64,
            Err(_) => self.cut(self.length),
        }
        written
    }

    /// Appends a line that is on disk when this returns. On an error it is not in the file.
    pub(crate) fn add_durably(&mut self, record: &Record) -> io::Result<()> {
        let before = self.length;
        let done = self.add(record).and_then(|()| self.sync());
        if done.is_err() {
            self.cut(before);
        }
        done
    }

    /// Removes what was written last. Needs no space. If this fails, a reader finds the line and skips it if it is damaged.
    fn cut(&mut self, length: u64) {
        if let Ok(file) = &self.file
            && file.set_len(length).is_ok()
        {
            self.length = length;
        }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.store.before_write(&self.path)?;
        self.file()?.sync_data()
    }

    /// The directory entry is on disk when this returns.
    pub(crate) fn sync_dir(&self) -> io::Result<()> {
        self.store.before_write(&self.path)?;
        sync_dir(&self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A journal as it was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Read {
    pub id: u64,
    pub path: PathBuf,
    /// `None`: `headless` holds the reason.
    pub header: Option<Header>,
    pub headless: Option<String>,
    /// The journal's head, if it is damaged or in a format that only a later version reads.
    pub newer: Option<Head>,
    pub end: Option<(Outcome, Vec<Setting>)>,
    pub closed: Option<String>,
    pub trial: Option<(Trial, TrialResult)>,
    /// Why its guard took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Lines in the middle that are not valid records.
    pub damaged: usize,
}

/// To which boot or version a journal belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalOrigin {
    ThisBoot,
    /// Of this boot, but in a format that this version cannot restore, or damaged. Holds the reason.
    Newer(String),
    Other(String),
}

/// Why the first line is not a header that this version knows. Only a journal whose single line is torn proves that nothing was
/// written, because the first step comes after the header is on disk.
fn headless(lines: &[&[u8]], ended: bool) -> String {
    let words = if lines.len() <= 1 && !ended {
        "its journal breaks off before its first step"
    } else {
        "the beginning of its journal is damaged, so its changes are unknown"
    };
    words.into()
}

/// A transaction cannot begin while an earlier one of the same boot has no end or is on trial. If one seems to have begun, a line
/// of the earlier journal is damaged: whether that transaction was kept or restored is unknown.
fn without_end(mut all: Vec<Read>) -> Vec<Read> {
    let boot = |r: &Read| r.header.as_ref().map(|h| (h.machine_id.clone(), h.boot_id.clone()));
    let boots: Vec<_> = all.iter().map(boot).collect();
    for (n, read) in all.iter_mut().enumerate() {
        let is_followed = boots[n].is_some() && boots[n + 1..].contains(&boots[n]);
        if is_followed && (read.unfinished() || read.on_trial().is_some()) && read.newer.is_none() {
            read.newer = read.header.as_ref().map(Head::without_end);
        }
    }
    all
}

/// Whether this is a complete header in the format of version 0.1, which had no checksums.
fn is_before_sums(first: &[u8]) -> bool {
    matches!(Line::read(first), Ok(Line::Begin(h)) if h.format == BEFORE_SUMS)
}

impl Read {
    pub(crate) fn load(id: u64, path: &Path) -> Result<Self, Error> {
        let files = Files::read(path, id);
        let bytes = std::fs::read(path).map_err(|source| Error::State { path: path.to_path_buf(), source })?;
        let mut out = Self {
            id,
            path: path.to_path_buf(),
            header: None,
            headless: None,
            newer: None,
            end: None,
            closed: None,
            trial: None,
            taken: None,
            damaged: 0,
        };
        let mut fate = if files.confirmed { TrialResult::Confirmed { by: None } } else { TrialResult::Pending };
        let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
        let first = lines.first().copied().unwrap_or_default();
        let first_is = checksum::check(first);
        out.newer = Head::read(first).filter(|_| first_is != Sum::Wrong);
        // A single flipped bit does not turn the present format number into the old one.
        let summed = first_is != Sum::None || !is_before_sums(first);
        let mut trial = files.trial.filter(|(_, sum)| !summed || *sum == Sum::Right).map(|(t, _)| t);
        for (n, line) in lines.iter().enumerate() {
            if summed && checksum::check(line) != Sum::Right {
                // A last line that is not complete yet is not damaged.
                let torn = n + 1 == lines.len() && !bytes.ends_with(b"\n");
                out.damaged += usize::from(!torn);
                continue;
            }
            match Line::read(line) {
                Ok(Line::Begin(h)) => out.header = Some(*h),
                // Written by the process from which the guard took over, before that process noticed.
                Ok(Line::End(e)) if out.taken.is_some() && e.outcome.verdict == RunResult::Applied => {}
                Ok(Line::End(e)) => out.end = Some((e.outcome, e.after)),
                Ok(Line::Account) => {}
                Ok(Line::Other(r)) => match *r {
                    Record::Replanned { steps, already, start, undo } => {
                        if let Some(h) = &mut out.header {
                            (h.steps, h.already) = (steps, already);
                            h.start.extend(start);
                            h.undo.extend(undo);
                        }
                    }
                    Record::Closed { why, .. } => out.closed = Some(why),
                    Record::Trial(t) => _ = trial.get_or_insert(t),
                    Record::Confirmed { by, .. } => fate = TrialResult::Confirmed { by: Some(by) },
                    // The records after it describe the restoring; until that has an end, the journal has none.
                    Record::TrialOver { by, why, .. } => {
                        fate = TrialResult::Undone { by: by.into(), why };
                        out.end = None;
                    }
                    Record::TakenOver { why, .. } => {
                        if fate == TrialResult::Pending {
                            fate = TrialResult::Undone { by: UndoneBy::Guard, why: why.clone() };
                        }
                        out.taken = Some(why);
                        out.end = None;
                    }
                    _ => {}
                },
                Err(_) if n + 1 == lines.len() => {}
                Err(_) => out.damaged += 1,
            }
        }
        if files.expired && fate == TrialResult::Pending {
            fate = TrialResult::Undone { by: UndoneBy::Timer, why: "it was not confirmed in time".into() };
            out.end = out.end.filter(|(o, _)| o.verdict != RunResult::Applied);
        }
        out.trial = trial.map(|t| (t, fate));
        if out.header.is_none() {
            out.headless = Some(headless(&lines, bytes.ends_with(b"\n")));
            // The first step comes after the header, so a journal with only a header has changed nothing.
            let is_over = out.end.as_ref().is_some_and(|(o, _)| o.left_nothing());
            if out.newer.is_none() && lines.len() > 1 && !is_over && out.closed.is_none() {
                out.newer = Some(Head::damaged(first));
            }
        }
        Ok(out)
    }

    pub(crate) fn of(store: &Store, id: u64) -> Result<Option<Self>, Error> {
        let found = store.journals()?.into_iter().find(|(i, _)| *i == id);
        found.map(|(id, path)| Self::load(id, &path)).transpose()
    }

    pub(crate) fn all(store: &Store) -> Result<Vec<Self>, Error> {
        let load = |(id, path): (u64, PathBuf)| Self::load(id, &path);
        let all = || store.journals()?.into_iter().map(load).collect::<Result<Vec<Self>, _>>();
        match all().map(without_end) {
            Err(Error::State { path, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
                store.published_journals().ok_or(Error::State { path, source })
            }
            other => other,
        }
    }

    /// The transaction was interrupted, and the journal has no record of its end.
    pub(crate) fn unfinished(&self) -> bool {
        self.end.is_none() && self.closed.is_none()
    }

    pub(crate) fn whose(&self, host: &Host) -> JournalOrigin {
        if let Some(n) = &self.newer {
            return n
                .elsewhere(host)
                .map_or_else(|| JournalOrigin::Newer(n.why()), |why| JournalOrigin::Other(why.into()));
        }
        let Some(h) = &self.header else {
            return JournalOrigin::Other(self.headless.clone().unwrap_or_default());
        };
        elsewhere(&h.machine_id, &h.boot_id, host)
            .map_or(JournalOrigin::ThisBoot, |why| JournalOrigin::Other(why.into()))
    }

    /// The service wrote again what was lost.
    pub(crate) fn is_correction(&self) -> bool {
        self.header.as_ref().is_some_and(|h| matches!(h.title, Title::Keep { .. }))
    }

    /// The service moved entries of an indirection table, or an interrupt, because of the load.
    pub(crate) fn is_balance(&self) -> bool {
        self.header.as_ref().is_some_and(|h| matches!(h.title, Title::Balance { .. }))
    }

    /// What is assumed when it counts as of this boot.
    pub(crate) fn unsure(&self, host: &Host) -> Option<String> {
        let h = self.header.as_ref()?;
        let known = h.boot_id.is_some() && host.boot_id.known().is_some();
        (!known).then(|| {
            format!("the boot ID cannot be read; ringwise assumes that transaction {} is of this boot", self.id)
        })
    }

    /// The journal of this boot that this version cannot read. Nothing can be based on the known journals then.
    pub(crate) fn newer_here(&self, host: &Host) -> Option<Newer> {
        let n = self.newer.as_ref().filter(|n| n.elsewhere(host).is_none())?;
        Some(n.report(self.id, &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_without_a_header_has_a_reason() {
        let of = |text: &str| {
            let lines: Vec<&[u8]> = text.as_bytes().split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
            headless(&lines, text.ends_with('\n'))
        };
        let torn = "its journal breaks off before its first step";
        assert_eq!(of(""), torn);
        assert_eq!(of(r#"{"record":"begin","form"#), torn);
        let damaged = "the beginning of its journal is damaged, so its changes are unknown";
        assert_eq!(of("{\"record\":\"begin\",\n{\"record\":\"step\"}\n"), damaged);
        assert_eq!(of("{\"record\":\"begin\",\n"), damaged);
    }
}
