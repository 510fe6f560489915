//! Three answers instead of two: known, absent, unknown.
//!
//! An unknown value carries the reason, and is never replaced with a default.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::visible;

/// One value read from the host.
///
/// In JSON: `{"known": VALUE}`, `"absent"`, or `{"unknown": {"what": …, "errno": …, "why": …}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// Read, and this is the value.
    Known(T),
    /// Requested, and the kernel reports that it does not exist (ENOENT, EOPNOTSUPP).
    Absent,
    /// Not read, or the answer was not available.
    Unknown(Unread),
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unread {
    /// The file or the request, e.g. `/proc/irq/30/smp_affinity_list` or `channels-get eth1`.
    pub what: String,
    /// The kernel's errno, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The reason as text: `needs root`, `not in this capture`, `no answer within 2 s`, or the kernel's own words.
    pub why: String,
    /// The same for programs, where a decision depends on it.
    #[serde(default, skip_serializing_if = "Cause::is_other")]
    pub cause: Cause,
    /// Which part of an interface is unknown as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
}

/// Why something is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", rename_all = "snake_case")]
pub enum Cause {
    /// None of the others; the text has the reason.
    #[default]
    Other,
    /// The command did not need it.
    NotAsked,
    /// Skipped because of `--passive`.
    Passive,
    /// The recording does not contain it.
    NotRecorded,
    /// No answer before the deadline.
    Late,
}

impl Cause {
    fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// A cause that only a later version knows is [`Cause::Other`].
impl From<String> for Cause {
    fn from(name: String) -> Self {
        match name.as_str() {
            "not_asked" => Self::NotAsked,
            "passive" => Self::Passive,
            "not_recorded" => Self::NotRecorded,
            "late" => Self::Late,
            _ => Self::Other,
        }
    }
}

/// What is unknown about an interface as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Everything: the device did not answer.
    Device,
    /// Which queues it has.
    Queues,
    /// Which interrupts serve its queues.
    QueueInterrupts,
}

impl Unread {
    /// `what` names the value, `why` the reason; the cause is [`Cause::Other`], without a subject.
    pub fn new(what: impl Into<String>, errno: Option<i32>, why: impl Into<String>) -> Self {
        Self { what: what.into(), errno, why: why.into(), cause: Cause::Other, subject: None }
    }

    /// Something that the command did not need.
    pub fn not_requested(what: impl Into<String>) -> Self {
        Self::new(what, None, "not read").because(Cause::NotAsked)
    }

    /// No answer within this time.
    pub fn late(what: impl Into<String>, within: Duration) -> Self {
        Self::new(what, None, format!("no answer within {} s", within.as_secs_f64())).because(Cause::Late)
    }

    /// The same with this cause.
    pub fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// The same with this subject.
    pub fn of(self, subject: Subject) -> Self {
        Self { subject: Some(subject), ..self }
    }
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", visible(&self.what), visible(&self.why))
    }
}

impl<T> Fact<T> {
    /// Something that the command did not need.
    pub fn not_requested(what: impl Into<String>) -> Self {
        Self::Unknown(Unread::not_requested(what))
    }

    /// No answer within this time.
    pub fn late(what: impl Into<String>, within: Duration) -> Self {
        Self::Unknown(Unread::late(what, within))
    }

    /// `what` names the value, `why` the reason.
    pub fn unknown(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unknown(Unread::new(what, None, why))
    }

    /// The value. `None`: absent or unknown.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(v) => Some(v),
            _ => None,
        }
    }

    /// Whether there is a value; false of absent and unknown.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Whether it was looked for and does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Why it is unknown. `None`: known or absent.
    pub fn unread(&self) -> Option<&Unread> {
        match self {
            Self::Unknown(u) => Some(u),
            _ => None,
        }
    }

    /// The value through `f`; absent and unknown stay.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(v) => Fact::Known(f(v)),
            Self::Absent => Fact::Absent,
            Self::Unknown(u) => Fact::Unknown(u),
        }
    }

    /// The value through `f`, which may not know; absent and unknown stay.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(v) => f(v),
            Self::Absent => Fact::Absent,
            Self::Unknown(u) => Fact::Unknown(u),
        }
    }

    /// The same fact about a reference; the reason of an unknown one is copied.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(v) => Fact::Known(v),
            Self::Absent => Fact::Absent,
            Self::Unknown(u) => Fact::Unknown(u.clone()),
        }
    }
}
