//! Why nothing was changed.

use std::fmt;
use std::path::{Path, PathBuf};

use ringwise_knob::{Address, Setting};
use ringwise_model::words::visible;
use ringwise_model::{CpuSet, Fact, Unread};
use serde::Serialize;

use crate::Holder;
use crate::cpu_timers::cpus_text;

/// A setting that is not what the plan found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedSetting {
    /// Which setting.
    pub address: Address,
    /// The value that the plan found, or that ringwise wrote last.
    pub expected: Fact<Setting>,
    /// The present value; absent where the device or queue does not have the setting.
    pub now: Fact<Setting>,
}

/// Refused before anything was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// Another run holds the lock.
    Locked {
        /// Process that holds the lock; `None`: not known.
        pid: Option<u32>,
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote about itself into the lock file.
        holder: Box<Holder>,
    },
    /// A run with another state directory, or in another mount namespace, changes the interfaces of this network namespace.
    /// `pid`: the process that began; `None`: it is in another PID namespace.
    Elsewhere {
        /// Process that holds the socket.
        pid: Option<u32>,
        /// User of that process.
        uid: u32,
        /// Name of the abstract socket that serves as the lock of this network namespace.
        socket: String,
    },
    /// A transaction waits for its confirmation, and its guard is gone.
    OnTrial {
        /// Number of that transaction.
        transaction: u64,
    },
    /// There is no guard that would put everything back if this process died.
    NoGuard {
        /// Why the guard could not be started or armed.
        why: String,
    },
    /// A run of this boot was killed before its end.
    Unfinished {
        /// Number of that transaction.
        transaction: u64,
    },
    /// A journal of this boot is damaged, or was written by a version whose journals this version cannot read.
    Newer {
        /// Number of that transaction.
        transaction: u64,
        /// Which version wrote it, or what is damaged.
        why: String,
        /// Its journal.
        path: PathBuf,
        /// Commands that undo it, from the journal's first line.
        undo: Vec<String>,
        /// The journal is damaged, so the commands may be damaged as well.
        damaged: bool,
    },
    /// The host is a capture, which cannot be changed.
    Recorded,
    /// A device of the request does not exist.
    Vanished {
        /// The device, as the request names it.
        device: String,
    },
    /// Settings differ from what the plan found.
    Changed {
        /// All such settings.
        moved: Vec<ChangedSetting>,
    },
    /// The present value cannot be read, so it could not be put back.
    Unreadable {
        /// Which setting.
        address: Address,
        /// Why it cannot be read.
        why: String,
    },
    /// The steps name something that does not exist and that no earlier step creates.
    NotThere {
        /// Which setting.
        address: Address,
    },
    /// A setting that only a newer version knows.
    Unknown {
        /// The setting as that version wrote it.
        text: String,
    },
    /// `/proc` or `/sys` cannot be written.
    ReadOnly,
    /// The journal cannot be written. Without a journal nothing is changed.
    State {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// The steps would, or may, interrupt the connection of the user.
    ControlPath {
        /// Settings that would interrupt it.
        addresses: Vec<Address>,
        /// Each interface over which the user is connected, with the reason.
        ways: Vec<String>,
        /// `--force` was given.
        force: bool,
        /// A trial was requested.
        trial: bool,
    },
    /// A sleep of 10 ms on these CPUs did not return within 2 s, and their timer interrupt counts did not increase.
    DeafCpus {
        /// These CPUs.
        cpus: CpuSet,
    },
    /// The steps would take the link of the last member of a bond down.
    LastMember {
        /// The setting that would do so.
        address: Address,
        /// Which bond, and why.
        why: String,
    },
    /// `rollback ID`: there is no transaction with this number.
    UnknownTransaction {
        /// The number that was given.
        transaction: u64,
    },
    /// `rollback ID`, `confirm`: the transaction exists, but there is nothing to undo or to confirm.
    NoTransaction {
        /// What the state of the transaction is instead.
        why: String,
    },
}

impl Refusal {
    /// Whether the same request may succeed a moment later: another run is at work, or the host changed since the request was
    /// made.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Elsewhere { .. } | Self::OnTrial { .. } | Self::Changed { .. })
    }

    /// The settings that it names.
    pub fn addresses(&self) -> Vec<&Address> {
        match self {
            Self::Changed { moved } => moved.iter().map(|m| &m.address).collect(),
            Self::ControlPath { addresses, .. } => addresses.iter().collect(),
            Self::Unreadable { address, .. } | Self::NotThere { address } | Self::LastMember { address, .. } => {
                vec![address]
            }
            _ => Vec::new(),
        }
    }

    /// Number of the transaction on trial that prevents the run, if one does.
    pub fn on_trial(&self) -> Option<u64> {
        match self {
            Self::OnTrial { transaction } => Some(*transaction),
            Self::Locked { holder, .. } => holder.transaction.filter(|_| holder.trial_until_unix.is_some()),
            _ => None,
        }
    }

    /// Another run is at work: the same request may succeed later.
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Elsewhere { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, holder, .. } => locked(f, path, holder),
            Self::Elsewhere { pid, uid, socket } => {
                let pid = pid.map_or("in another PID namespace".into(), |p| p.to_string());
                write!(
                    f,
                    "another ringwise, which has another state directory or runs in a container, is changing the \
                     interfaces of this host (process {pid}, user {uid}, socket {socket})"
                )
            }
            Self::OnTrial { transaction } => write!(
                f,
                "transaction {transaction} is on trial, but its guard is gone: run ringwise confirm to keep it, or \
                 ringwise recover to roll it back"
            ),
            Self::NoGuard { why } => {
                write!(
                    f,
                    "the guard, which restores all settings if ringwise dies, could not be started, so nothing was \
                     changed: {why}"
                )
            }
            Self::Unfinished { transaction } => write!(
                f,
                "transaction {transaction} of this boot was cut short and is half-applied: run ringwise recover"
            ),
            Self::Newer { transaction, why, path, undo, damaged } => {
                let path = path.display();
                let way = if *damaged {
                    "ringwise restores nothing from it; compare the commands below with the host, run those that are \
                     right, then"
                } else {
                    "use that version of ringwise, or restore the earlier settings manually, then"
                };
                write!(
                    f,
                    "the journal of transaction {transaction} of this boot cannot be used: {why}; {way} move {path} \
                     away"
                )?;
                undo.iter().try_for_each(|c| write!(f, "\n  {c}"))
            }
            Self::Recorded => f.write_str("this host is a recording; only a live host can be changed"),
            Self::Vanished { device } => write!(f, "{device} does not exist any more"),
            Self::Changed { moved } => {
                write!(
                    f,
                    "{} since the plan was made:",
                    if moved.len() == 1 { "a setting has changed" } else { "settings have changed" }
                )?;
                for m in moved {
                    write!(f, "\n  {}: was {}, is {}", m.address, fact_text(&m.expected), fact_text(&m.now))?;
                }
                Ok(())
            }
            Self::Unreadable { address, why } => {
                write!(f, "{address} cannot be read, so ringwise could not restore it later: {why}")
            }
            Self::NotThere { address } => write!(f, "{address} does not exist on this host"),
            Self::Unknown { text } => {
                write!(f, "this version of ringwise does not know a setting that a newer version wrote: {text}")
            }
            Self::ReadOnly => f.write_str(
                "/proc or /sys is mounted read-only, as in a container: run ringwise on the host, or in a privileged \
                 container with both mounted writable",
            ),
            Self::State { path, why } => {
                write!(f, "{} cannot be written: {why}; without a journal, ringwise changes nothing", path.display())
            }
            Self::ControlPath { addresses, ways, force, trial } => {
                let list: Vec<String> = addresses.iter().map(Address::to_string).collect();
                write!(f, "changing {} would interrupt {}", list.join(", "), ways.join("; "))?;
                let missing = match (force, trial) {
                    (true, _) => "--force also needs --confirm, which restores everything unless you confirm",
                    (_, true) => "besides --confirm, this needs --force",
                    _ => "this needs --force and --confirm, which restores everything unless you confirm",
                };
                write!(f, ": {missing}; nothing was changed")
            }
            Self::DeafCpus { cpus } => {
                let it = if cpus.len() == 1 { "it" } else { "one of them" };
                write!(
                    f,
                    "timers do not run on {}: a sleep of 10 ms there did not return within 2 s, and a queue whose \
                     interrupt goes to {it} would be stuck; use --exclude-cpus {cpus}; nothing was changed",
                    cpus_text(cpus)
                )
            }
            Self::LastMember { address, why } => {
                write!(f, "changing {address} would take the bond down: {why}; nothing was changed")
            }
            Self::UnknownTransaction { transaction } => write!(f, "there is no transaction {transaction}"),
            Self::NoTransaction { why } => f.write_str(why),
        }
    }
}

fn locked(f: &mut fmt::Formatter<'_>, path: &Path, h: &Holder) -> fmt::Result {
    let mut who: Vec<String> = h.pid.map(|p| format!("process {p}")).into_iter().collect();
    who.extend(h.who.as_ref().map(|w| visible(w).into_owned()));
    who.extend(h.command.as_ref().map(|c| format!("\"{}\"", visible(c))));
    who.push(format!("lock {}", path.display()));
    let who = who.join(", ");
    match (h.transaction, h.trial_until_unix) {
        (Some(t), Some(_)) => {
            write!(
                f,
                "transaction {t} is on trial ({who}): ringwise confirm keeps it; otherwise it is rolled back when the \
                 trial expires"
            )
        }
        (Some(t), None) => write!(f, "another ringwise is changing this host, transaction {t} ({who})"),
        (None, _) => write!(f, "another ringwise is changing this host ({who})"),
    }
}

/// `8`, `not there`, `unknown (needs root)`.
pub(crate) fn fact_text(fact: &Fact<Setting>) -> String {
    match fact {
        Fact::Known(s) => s.value_text(),
        Fact::Absent => "not there".into(),
        Fact::Unknown(u) => format!("unknown ({})", u.why),
    }
}

/// Why there is no [`crate::Outcome`]. Nothing was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Refused before anything was touched. A later attempt may succeed.
    Refused(Box<Refusal>),
    /// The host could not be read at all.
    Discover(ringwise_discover::Error),
    /// A file of the state directory could not be read.
    State {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The checksum of a file of the state directory is wrong, or its content cannot be parsed. `then`: what the user can do.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, for example its checksum.
        why: String,
        /// What the user can do about it, as a sentence.
        then: &'static str,
    },
}

impl Error {
    /// 6: refused before anything was touched; 1: error, nothing changed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Refused(r) if matches!(**r, Refusal::UnknownTransaction { .. }) => 1,
            Self::Refused(_) => 6,
            Self::Discover(_) | Self::State { .. } | Self::Damaged { .. } => 1,
        }
    }

    /// The refusal, if this is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(r) => Some(r),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(r: Refusal) -> Self {
        Self::Refused(Box::new(r))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(r) => r.fmt(f),
            Self::Discover(_) => f.write_str("the host cannot be read"),
            Self::State { path, source } => write!(f, "{}: {}", path.display(), ringwise_sys::io_text(source)),
            Self::Damaged { path, why, then } => {
                write!(f, "{} is damaged ({why}) and is not used: {then}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The text of the others is complete.
            Self::Refused(_) | Self::State { .. } | Self::Damaged { .. } => None,
            Self::Discover(e) => Some(e),
        }
    }
}

/// Why a setting was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The write failed. Its errno shows why the kernel refused the value.
    Write(ringwise_sys::Error),
    /// A reading that the write needs failed: its errno does not concern the value, so nothing is learned from it.
    Read(Unread),
}

impl From<ringwise_sys::Error> for NotWritten {
    fn from(e: ringwise_sys::Error) -> Self {
        Self::Write(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_the_lock_is_named_in_one_line() {
        let name = "x\nOK: all is well".to_string();
        let holder = Holder { pid: Some(7), who: Some(name.clone()), command: Some(name), ..Holder::default() };
        let text = Refusal::Locked { pid: Some(7), path: "/s/lock".into(), holder: holder.into() }.to_string();
        let twice = "x\\x0aOK: all is well, \"x\\x0aOK: all is well\"";
        assert_eq!(text, format!("another ringwise is changing this host (process 7, {twice}, lock /s/lock)"));
    }
}
