//! Why no plan is possible. Each refusal names what was found and what is expected.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet, Goal};
use serde::{Deserialize, Serialize};

use crate::{Mistake, Obstacle, SkippedInterface};

/// No plan. `kind()` is stable for programs, `Display` is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// The user named an interface that does not exist on this host.
    UnknownDevice {
        /// As the user wrote it.
        dev: String,
        /// Interfaces with queues of their own, in natural order; may be empty.
        have: Vec<String>,
    },
    /// The user named an interface that cannot be tuned.
    NotTunable {
        /// As the user wrote it.
        dev: String,
        /// What is missing; in JSON `why`, a text, with `code` and `facts` beside it.
        #[serde(flatten)]
        why: Box<Obstacle>,
    },
    /// No device of the host can be tuned.
    NothingTunable {
        /// Every device with queues of its own; empty: the host has none.
        left_alone: Vec<SkippedInterface>,
    },
    /// `--cpus`, `--reserve` or `--exclude-cpus` names CPUs that do not exist.
    CpuBeyondMachine {
        /// The option as the user typed it, `--cpus`.
        option: String,
        /// The configuration file that has the key of the same name. `None`: the command line has the option.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// CPUs of the option that are not online. CPUs to keep free may be offline, but must exist.
        cpus: CpuSet,
        /// All CPUs of the host that are online.
        online: CpuSet,
    },
    /// No CPU is left for queues.
    NoCandidates {
        /// All CPUs of the host that are online.
        online: CpuSet,
        /// Isolated CPUs, which are not used unless the user names them.
        isolated: CpuSet,
        /// CPUs that `--reserve` and `--exclude-cpus` keep free.
        reserved: CpuSet,
        /// CPUs of `--cpus`. `None`: the option was not given.
        cpus: Option<CpuSet>,
    },
    /// No CPU is near this device, and remote ones are excluded.
    NoNearCandidates {
        /// Interface name.
        dev: String,
        /// CPUs of the device's node; if all of them are offline, those of the nearest nodes.
        near: CpuSet,
        /// CPUs that queues may be placed on; none of them is in `near`.
        candidates: CpuSet,
    },
    /// `--queues` is 0 or above the device's maximum.
    TooManyQueues {
        /// Interface name.
        dev: String,
        /// Queues that the user requested; may be 0.
        asked: u32,
        /// Most queues of the device.
        max: u32,
    },
    /// One interrupt serves queues that are configured for different CPUs.
    Conflict {
        /// Interface name.
        dev: String,
        /// The queue that was placed first, as text: `rx-0`.
        first: String,
        /// Configured CPU of the first queue.
        first_cpu: CpuId,
        /// A queue on the same interrupt.
        second: String,
        /// Configured CPU of the second queue; always differs from that of the first.
        second_cpu: CpuId,
    },
    /// The goal needs something that this host does not have.
    GoalNotPossible {
        /// The goal that the user requested.
        goal: Goal,
        /// What is missing; in JSON `why`, a text, with `code` and `facts` beside it.
        #[serde(flatten)]
        why: Box<Obstacle>,
    },
    /// Configured settings are invalid; lists all of them.
    WrongWishes {
        /// At least one, in the order in which they were found.
        wrong: Vec<InvalidSetting>,
    },
}

/// One invalid configured setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidSetting {
    /// `/etc/ringwise/ringwise.toml line 12`, `--set`.
    pub said: String,
    /// `eth1 moderation rx-usecs-high`
    pub what: String,
    /// Why; in JSON `found` and `right`, both texts, with `code` and `facts` beside them.
    #[serde(flatten)]
    pub mistake: Mistake,
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}; {}", self.said, self.what, self.mistake.found(), self.mistake.right())
    }
}

impl Refusal {
    /// Name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownDevice { .. } => "unknown_device",
            Self::NotTunable { .. } => "not_tunable",
            Self::NothingTunable { .. } => "nothing_tunable",
            Self::CpuBeyondMachine { .. } => "cpu_beyond_machine",
            Self::NoCandidates { .. } => "no_candidates",
            Self::NoNearCandidates { .. } => "no_near_candidates",
            Self::TooManyQueues { .. } => "too_many_queues",
            Self::Conflict { .. } => "conflict",
            Self::GoalNotPossible { .. } => "goal_not_possible",
            Self::WrongWishes { .. } => "wrong_wishes",
        }
    }
}

/// `none` for the empty set.
fn set(c: &CpuSet) -> String {
    if c.is_empty() { "none".into() } else { c.to_string() }
}

impl Refusal {
    /// The text without what differs between hosts that cannot have a plan for the same reason.
    pub fn without_host(&self) -> String {
        match self {
            Self::UnknownDevice { dev, .. } => format!("there is no interface {dev}"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownDevice { dev, have } if have.is_empty() => {
                write!(f, "there is no interface {dev}, and this host has no interface that could be tuned")
            }
            Self::UnknownDevice { dev, have } => {
                write!(f, "there is no interface {dev}; interfaces with queues of their own are {}", have.join(" "))
            }
            Self::NotTunable { dev, why } => write!(f, "{dev} cannot be tuned: {why}"),
            Self::NothingTunable { left_alone } if left_alone.is_empty() => {
                f.write_str("no interface of this host has a driver and queues of its own")
            }
            Self::NothingTunable { left_alone } => {
                f.write_str("ringwise plans none of this host's interfaces by default: ")?;
                for (i, l) in left_alone.iter().enumerate() {
                    write!(f, "{}{} ({})", if i > 0 { ", " } else { "" }, l.dev, l.why)?;
                }
                f.write_str("; name an interface to plan it")
            }
            Self::CpuBeyondMachine { option, file, cpus, online } => {
                let at = match file {
                    Some(file) => format!("{} in {file}", option.trim_start_matches('-').replace('-', "_")),
                    None => option.clone(),
                };
                let not_online = match cpus.len() {
                    1 => format!("CPU {cpus}, which is not online"),
                    _ => format!("CPUs {cpus}, which are not online"),
                };
                write!(f, "{at} names {not_online}; online CPUs are {}", set(online))
            }
            Self::NoCandidates { online, isolated, reserved, cpus } => {
                write!(
                    f,
                    "no CPU is left for queues: online {}, isolated {}, reserved or excluded {}",
                    set(online),
                    set(isolated),
                    set(reserved)
                )?;
                match cpus {
                    Some(c) => write!(f, ", requested with --cpus, or cpus in the configuration file: {}", set(c)),
                    None => f.write_str("; name the CPUs to use with --cpus, or reserve fewer"),
                }
            }
            Self::NoNearCandidates { dev, near, candidates } => write!(
                f,
                "{dev}: none of the usable CPUs {} is local (local CPUs are {}); --far-node last, or far_node = \"last\" in the configuration file, permits remote ones",
                set(candidates),
                set(near)
            ),
            Self::TooManyQueues { dev, asked, max } => {
                write!(f, "{dev} cannot have {}; expected 1 to {max}", plural(*asked as usize, "queue"))
            }
            Self::Conflict { dev, first, first_cpu, second, second_cpu } => write!(
                f,
                "{dev}: {first} and {second} share one interrupt, but are configured for CPU {first_cpu} and CPU {second_cpu}"
            ),
            Self::GoalNotPossible { goal, why } => write!(f, "goal {goal} is not possible here: {why}"),
            Self::WrongWishes { wrong } => {
                match wrong.len() {
                    1 => f.write_str("one configured setting is not possible:")?,
                    n => write!(f, "{n} configured settings are not possible:")?,
                }
                wrong.iter().try_for_each(|w| write!(f, "\n  {w}"))
            }
        }
    }
}

impl std::error::Error for Refusal {}
