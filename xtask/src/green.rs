//! Boots of the quick lab that passed and whose inputs have not changed since, so that they need not run again.

use crate::boot::Guest;
use crate::job::{Job, Outcome};
use crate::paths;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// How results of earlier runs are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Results are neither read nor saved.
    Ignored,
    /// Every boot runs, and its result replaces the earlier one.
    Replaced,
    /// A boot that was green and is unchanged does not run.
    Trusted,
}

/// The boots that passed. They are recorded below `target/`, so a clean clone has none.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Green {
    /// A hash of all that the boot depends on.
    inputs: u64,
    pub passed: u32,
}

/// The record of one boot, and its present inputs.
pub(crate) struct Record {
    path: PathBuf,
    inputs: u64,
}

impl Record {
    /// # Errors
    /// A file that the boot depends on cannot be read.
    pub(crate) fn of(job: &Job, guest: &Guest, ringwise: &Path) -> Result<Record> {
        let path = paths::target().join("lab").join(format!("green-{}-{}.json", job.host.name, job.kernel.name));
        let mut all = DefaultHasher::new();
        (&guest.ready.release, guest.qemu.words(), guest.accel.option()).hash(&mut all);
        job.scenarios.iter().for_each(|s| s.name.hash(&mut all));
        // The files of this program that are not files of the lab.
        for file in [ringwise, &std::env::current_exe()?, &guest.ready.image] {
            hash_file(file, &mut all)?;
        }
        hash_dir(&paths::lab(), &mut all)?;
        Ok(Record { path, inputs: all.finish() })
    }

    /// The last green run, if nothing that it depends on is different now.
    pub(crate) fn holds(&self) -> Option<Green> {
        let green: Green = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (green.inputs == self.inputs).then_some(green)
    }

    /// Records a run in which everything passed in the first guest; any other run removes the record.
    pub(crate) fn keep(&self, o: &Outcome) -> Result<()> {
        if o.score.failed > 0 || o.retried > 0 || !o.lost.is_empty() || o.score.passed == 0 {
            return match fs::remove_file(&self.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
                _ => Ok(()),
            };
        }
        let green = Green { inputs: self.inputs, passed: o.score.passed };
        fs::write(&self.path, serde_json::to_vec(&green)?).with_context(|| self.path.display().to_string())
    }
}

/// Name, length and modification time: a file that is rewritten counts as changed.
fn hash_file(path: &Path, all: &mut DefaultHasher) -> Result<()> {
    let meta = fs::metadata(path).with_context(|| path.display().to_string())?;
    (path, meta.len(), meta.modified()?).hash(all);
    Ok(())
}

fn hash_dir(dir: &Path, all: &mut DefaultHasher) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut paths = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_dir(&path, all)?;
        } else if path.extension().is_none_or(|e| e != "md") {
            hash_file(&path, all)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Score;

    #[test]
    fn only_a_run_without_any_failure_is_kept() {
        let path = std::env::temp_dir().join(format!("ringwise-green-{}", std::process::id()));
        let record = Record { path: path.clone(), inputs: 7 };
        let outcome = |failed, retried| Outcome {
            score: Score { passed: 5, failed, ..Score::default() },
            retried,
            ..Outcome::default()
        };
        record.keep(&outcome(0, 0)).unwrap();
        assert_eq!(record.holds().map(|g| g.passed), Some(5));
        assert!(Record { path: path.clone(), inputs: 8 }.holds().is_none(), "something has changed");
        record.keep(&outcome(0, 1)).unwrap();
        assert!(record.holds().is_none(), "a retried scenario");
        record.keep(&outcome(0, 0)).unwrap();
        record.keep(&outcome(1, 0)).unwrap();
        assert!(record.holds().is_none(), "a failed check");
        record.keep(&outcome(1, 0)).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_changed_file_changes_the_inputs() {
        let dir = std::env::temp_dir().join(format!("ringwise-inputs-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub")).unwrap();
        let now = || {
            let mut all = DefaultHasher::new();
            hash_dir(&dir, &mut all).unwrap();
            all.finish()
        };
        fs::write(dir.join("sub/a.sh"), "1").unwrap();
        let before = now();
        assert_eq!(now(), before);
        fs::write(dir.join("README.md"), "words").unwrap();
        assert_eq!(now(), before, "documents do not count");
        fs::write(dir.join("sub/a.sh"), "22").unwrap();
        assert_ne!(now(), before);
        fs::remove_dir_all(dir).unwrap();
    }
}
