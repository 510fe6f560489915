//! The live host, or a recording of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwise_discover::Options;
use ringwise_model::errno::{EACCES, EPERM};
use ringwise_model::shell::quote;
use ringwise_model::{Cause, Nic, Snapshot};
use ringwise_sys::{Captured, Host, Real, proc};

use crate::args::{Common, SourceArgs};
use crate::exit::{Fail, Result};
use crate::out;
use ringwise_text::plural;
use ringwise_text::{RecordedBy, RecordingName};

pub(crate) struct Source {
    pub host: Arc<dyn Host>,
    /// The host is a recording.
    pub recorded: bool,
    /// `--passive`: only files in /proc and /sys are read.
    pub passive: bool,
    /// The directory of the recording, if it is below the named one.
    pub nested: Option<Nested>,
    /// The file of `--from`, for proposed commands.
    pub recording: RecordingName,
    /// The program that made the recording; `None`: the host is not a recording.
    pub recorded_by: Option<RecordedBy>,
}

/// What a directory of `--from` holds, if it is not a recording itself.
#[derive(Debug)]
pub(crate) enum Nested {
    /// One capture, directly in it.
    Capture(PathBuf),
    /// One tree, in it or deeper.
    Tree(PathBuf),
}

impl Nested {
    fn note(&self) -> String {
        match self {
            Self::Capture(path) => format!("ringwise: reading {}, the only capture in that directory", path.display()),
            Self::Tree(path) => format!("ringwise: reading {}, the only tree of proc/ and sys/ below", path.display()),
        }
    }
}

/// Whether a word in the place of an interface is the name of a plan file.
fn is_plan(word: &str) -> bool {
    Path::new(word).is_file() && ringwise_intent::load_plan(Path::new(word)).is_ok()
}

/// Opens the recording of `--from`, or this host.
pub(crate) fn open(from: &SourceArgs) -> Result<Source> {
    match &from.from {
        Some(path) => recording(path).or_else(|e| within(path).unwrap_or_else(|| Err(unreadable(path, &e)))),
        None if from.passive => live().map(Source::by_files_alone),
        None => live(),
    }
}

/// The only capture in a directory of captures, which `check` and `plan` read whole. `None`: it holds none.
fn within(dir: &Path) -> Option<Result<Source>> {
    let mut files = if dir.is_dir() { ringwise_sys::captures(dir) } else { Vec::new() };
    files.retain(|file| file.is_file());
    let first = files.first()?;
    Some(match files.len() {
        1 => match recording(first) {
            Ok(source) => Ok(Source { nested: Some(Nested::Capture(first.clone())), ..source }),
            Err(e) => Err(unreadable(first, &e)),
        },
        n => {
            let words = format!("{} is a directory of {n} captures, and this command reads one", dir.display());
            let words = format!("{words}\nExpected one of them, such as {}", first.display());
            Err(Fail::error(words).code("recording_unreadable").file(dir))
        }
    })
}

fn unreadable(path: &Path, e: &ringwise_sys::Error) -> Fail {
    let fail = |text: String| Fail::error(text).code("recording_unreadable").errno(e.errno).file(path);
    let below = ringwise_sys::directories_of_captures(path);
    let Some(one) = below.first() else {
        return fail(format!("{e}\nExpected {EXPECTED}"));
    };
    let directories = ringwise_text::plural(below.len(), "subdirectory");
    let text = format!(
        "{e}\nringwise check and plan read every capture directly in a directory; this one has {directories} with captures\n\
         Other commands read one capture, such as {}",
        one.display()
    );
    let path = path.display().to_string();
    fail(text).next(format!("ringwise check --from {}/*", quote(path.trim_end_matches('/'))))
}

pub(crate) fn live() -> Result<Source> {
    let real = Real::new().map_err(Fail::from)?;
    let host = Arc::new(real);
    let recording = RecordingName::default();
    Ok(Source { host, recorded: false, passive: false, nested: None, recording, recorded_by: None })
}

/// What [`recording`] opens.
pub(crate) const EXPECTED: &str =
    "a file of ringwise capture, a sos report, or a directory or tar archive with proc/ and sys/ trees";

/// Opens a recording. The error names the file.
pub(crate) fn recording(path: &Path) -> ringwise_sys::Result<Source> {
    let captured = Captured::open(path)?;
    let nested = captured.nested().map(|below| Nested::Tree(path.join(below)));
    let recorded_by = match captured.is_foreign() {
        true => RecordedBy::Other,
        false => RecordedBy::Ringwise { version: captured.info().tool.clone() },
    };
    let host = ringwise_discover::sos::report(Arc::new(captured));
    let recording = RecordingName::of(Some(path));
    Ok(Source { host, recorded: true, passive: false, nested, recording, recorded_by: Some(recorded_by) })
}

/// Stable name of an error of discovery, for programs. A plan that names an unknown interface has the same.
pub(crate) fn code(e: &ringwise_discover::Error) -> &'static str {
    match e {
        ringwise_discover::Error::NoSuchDevice { .. } => "unknown_device",
        ringwise_discover::Error::NothingReadable { .. } => "host_unreadable",
    }
}

impl std::convert::From<ringwise_discover::Error> for Fail {
    fn from(e: ringwise_discover::Error) -> Self {
        Self::error(e.to_string()).code(code(&e))
    }
}

impl Source {
    /// `--passive`
    pub(crate) fn by_files_alone(self) -> Self {
        Self { host: ringwise_discover::passive(self.host), passive: true, ..self }
    }

    /// The last line of a page: why the recording lacks values of these causes. Empty where it lacks none of them.
    pub(crate) fn remark(&self, mut causes: impl Iterator<Item = Cause>, width: Option<usize>) -> String {
        let by = self.recorded_by.as_ref().filter(|_| causes.any(|c| c == Cause::NotRecorded));
        by.map_or_else(String::new, |by| by.remark(width))
    }

    /// [`Self::remark`] for a page about these interfaces.
    pub(crate) fn remark_on<'a>(&self, nics: impl IntoIterator<Item = &'a Nic>, width: Option<usize>) -> String {
        let unread = |n: &'a Nic| {
            let own = [n.napi.unread(), n.features.unread(), n.rules.unread(), n.channels.unread()];
            n.unread.iter().chain(own.into_iter().flatten()).map(|u| u.cause)
        };
        self.remark(nics.into_iter().filter(|n| n.has_own_queues()).flat_map(unread), width)
    }

    pub(crate) fn cannot_read(&self, e: &ringwise_discover::Error) -> Fail {
        let fail = Fail::error(e.to_string()).code(code(e));
        match e {
            ringwise_discover::Error::NoSuchDevice { name, .. } if is_plan(name) => {
                fail.next(self.recording.there(format!("ringwise apply {}", quote(name))))
            }
            ringwise_discover::Error::NoSuchDevice { name, .. } => fail.next(match ringwise_check::find(name) {
                Some(rule) => format!("ringwise check --explain {}", rule.id),
                None => self.recording.reads("ringwise show --all"),
            }),
            ringwise_discover::Error::NothingReadable { .. } => fail,
        }
    }

    /// The error for a named interface that is not in the snapshot, with the same text as that of discovery.
    pub(crate) fn no_such_device(&self, name: &str, s: &Snapshot) -> Fail {
        self.cannot_read(&ringwise_discover::Error::not_in(s, name))
    }

    /// Reads the host, and reports on stderr how many values need root.
    pub(crate) fn snapshot(&self, options: &Options, common: &Common) -> Result<Snapshot> {
        if let Some(nested) = &self.nested {
            out::note(common.quiet, &nested.note());
        }
        let s = ringwise_discover::snapshot(&self.host, options).map_err(|e| self.cannot_read(&e))?;
        if !self.recorded {
            let denied = s.unread.iter().chain(s.nics.iter().flat_map(|n| &n.unread));
            let denied = denied.filter(|u| matches!(u.errno, Some(EPERM | EACCES))).count();
            if denied > 0 && proc::euid() != 0 {
                out::note(
                    common.quiet,
                    &format!(
                        "ringwise: {} could not be read without root, and are shown as unknown",
                        plural(denied, "value")
                    ),
                );
            }
        }
        if self.passive {
            let n = ringwise_discover::left_out(&s).count();
            let text =
                format!("ringwise: --passive skipped {} to the kernel; their values are unknown", plural(n, "request"));
            out::note(common.quiet, &text);
        }
        Ok(s)
    }
}
