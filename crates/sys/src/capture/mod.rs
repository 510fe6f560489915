//! Recorded hosts: made by [`CaptureRecorder`], kept as [`Recording`], read back as [`Captured`].
//!
//! ```text
//! Recorder<Real> ── finish ─► Recording ── write_tar ─► host.tar.gz:  manifest.json  what was asked, with each errno
//!                                 ▲                                   kernel.json    raw replies by request
//!                             redact()                                fs/proc/…      contents, under the path asked
//!
//! Captured::open(directory | .tar | .tar.gz)  ◄─ the above, or a tree of another program with proc/ and sys/ in it
//! ```
//!
//! There are three kinds of answers: present (content), absent (the errno at recording time), and *not in this capture* (no
//! errno), which means unknown, not absent.

mod archive;
mod json;
mod load;
mod path;
mod recorder;
mod recording;
mod tree;
mod write;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::host::{Clock, Error, Host, Request, Result};
use load::Loaded;
use path::{not_held, resolve};
use tree::Tree;

pub use load::{captures, directories_of_captures, has_capture_name};
pub use recorder::CaptureRecorder;
pub use recording::{Info, RecordedAnswer, RecordedRefusal, RecordedReply, Recording, Redacted, RequestKey};
pub(crate) use recording::{from_hex, to_hex};

/// A recorded host, read only.
#[derive(Debug)]
pub struct Captured {
    /// Made by ringwise: complete answers. Foreign: only its `kernel` and `info` are used.
    recording: Recording,
    foreign: Option<Tree>,
    nested: Option<String>,
}

impl Captured {
    /// Opens a directory, a `.tar` or a `.tar.gz` (detected by content, not by name). Errors name the file and what is wrong with
    /// it: missing, damaged, truncated, not a capture.
    pub fn open(path: &Path) -> Result<Self> {
        let (loaded, nested) = load::load(path)?;
        let (recording, foreign) = match loaded {
            Loaded::Ours(recording) => (recording, None),
            Loaded::Foreign { tree, kernel, info } => (Recording { info, kernel, ..Recording::default() }, Some(tree)),
        };
        Ok(Self { recording, foreign, nested })
    }

    /// The subdirectory in which the host was found. `None`: in the given directory itself, or in an archive.
    pub fn nested(&self) -> Option<&str> {
        self.nested.as_deref()
    }

    /// Where and when the host was recorded; for a tree of another program only what its files contain.
    pub fn info(&self) -> &Info {
        &self.recording.info
    }

    /// Whether another program made it: what is not in it is unknown.
    pub fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// The answer that was recorded for `path`, or for the path to which recorded links lead.
    fn find<'a, T>(
        &self,
        what: String,
        path: &str,
        follow: bool,
        all: &'a BTreeMap<String, RecordedAnswer<T>>,
    ) -> Result<&'a T> {
        let mut answer = all.get(path);
        if answer.is_none() {
            let link = |resolved: &str, asked: &str| {
                let links = &self.recording.links;
                links.get(asked).or_else(|| links.get(resolved))?.as_ref().ok().cloned()
            };
            answer = resolve(path, follow, link).ok().and_then(|at| all.get(&at));
        }
        match answer {
            Some(Ok(value)) => Ok(value),
            Some(Err(refusal)) => Err(refusal.clone().into_error(what)),
            None => Err(not_held(what)),
        }
    }
}

impl From<Recording> for Captured {
    fn from(recording: Recording) -> Self {
        Self { recording, foreign: None, nested: None }
    }
}

impl Host for Captured {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match &self.foreign {
            Some(tree) => tree.read(path),
            None => self.find(format!("read {path}"), path, true, &self.recording.files).cloned(),
        }
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        let data = Some(String::from_utf8_lossy(data).into_owned());
        Err(Error { data, ..Error::other(format!("write {path}"), "this host is a recording") })
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        match &self.foreign {
            Some(tree) => tree.list(path),
            None => self.find(format!("list {path}"), path, true, &self.recording.dirs).cloned(),
        }
    }

    fn readlink(&self, path: &str) -> Result<String> {
        match &self.foreign {
            Some(tree) => tree.readlink(path),
            None => self.find(format!("readlink {path}"), path, false, &self.recording.links).cloned(),
        }
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let what = request.to_string();
        let Some(asked) = RequestKey::of(request) else {
            return Err(Error::other(what, "this host is a recording"));
        };
        match self.recording.kernel.get(&asked).map(|reply| &reply.answer) {
            Some(Ok(messages)) => Ok(messages.clone()),
            Some(Err(refusal)) => Err(refusal.clone().into_error(what)),
            None => Err(not_held(what)),
        }
    }

    fn is_recorded(&self) -> bool {
        true
    }
}

/// The time of the recording, which stands still.
impl Clock for Captured {
    fn since_boot(&self) -> Duration {
        self.recording.info.since_boot
    }

    fn unix_time(&self) -> u64 {
        self.recording.info.unix_time
    }

    fn sleep(&self, _: Duration) {}
}
