//! What the adapter wants next, and why. Texts are in `text.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::buckets::{CountMethod, Unusable};
use crate::judge::{KeepReason, RestoreReason};
use crate::limits::LimitReached;
use crate::load::SuspectReason;
use crate::moves::Moves;
use crate::propose::{Elephant, NoProposal, Proposal};

/// What the caller does until the next step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterAction {
    /// Nothing.
    Rest(RestReason),
    /// Nothing yet, although the load is uneven.
    Suspect {
        /// Why the load is suspect.
        why: SuspectReason,
        /// What the adapter waits for.
        waiting: StepWait,
    },
    /// Count the packets of each table entry, and pass the counts with the signals.
    CountEntries {
        /// How.
        method: CountMethod,
        /// Why the load is suspect.
        why: SuspectReason,
        /// Until when, since boot.
        until: Duration,
    },
    /// Move these entries, or this interrupt, or change this RPS mask, and call `settled`.
    Propose(Proposal),
    /// Move them back, and call `settled`.
    Restore {
        /// The moves of the step, the other way round.
        moves: Moves,
        /// Why.
        why: RestoreReason,
    },
    /// Tell the user about this entry: no table can split it.
    Named {
        /// The entry.
        elephant: Elephant,
    },
    /// Nothing is moved on this interface.
    Off {
        /// Until when, since boot. `None`: until [`crate::Adapter::resume`].
        until: Option<Duration>,
        /// Why.
        why: OffReason,
    },
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestReason {
    /// The loads are known in too few samples.
    TooFewSamples {
        /// In so many.
        known: u32,
    },
    /// The load is even, or too low to matter.
    Even,
    /// The table must not be written, and the load is unknown.
    Forbidden(Forbidden),
    /// The table is unknown.
    TableUnknown,
    /// A CPU that serves queues is busy. Which CPUs may serve them was not read yet.
    CpusNotRead,
    /// A CPU that serves queues is busy. The times of the CPUs that may serve them are known in too few samples.
    TooFewTimes {
        /// In so many.
        known: u32,
    },
    /// A CPU that serves queues is busy, and no interrupt moves now.
    NoInterruptMoves,
    /// A CPU that processes the packets of the only queue is busy, and the RPS mask stays now.
    MaskStays,
    /// The caller has not reported yet whether it wrote.
    WritePending,
    /// The last step is judged soon.
    Judging {
        /// When, since boot.
        until: Duration,
    },
    /// The last step was judged, and stays.
    Kept(KeepReason),
}

/// What an adapter with a suspect load waits for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepWait {
    /// A limit allows no step.
    Limit(LimitReached),
    /// The table must not be written.
    Forbidden(Forbidden),
    /// The counts were not used.
    Unusable {
        /// Why.
        why: Unusable,
        /// When entries are counted again, since boot.
        until: Duration,
    },
    /// No step was worth it.
    NoStep {
        /// Why.
        why: NoProposal,
        /// When entries are counted again, since boot.
        until: Duration,
    },
    /// The caller did not write the last step: it only observes, or the write was refused.
    NotWritten {
        /// When entries are counted again, since boot.
        until: Duration,
    },
}

/// A fact that forbids to write the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forbidden {
    /// The driver resets the device when the table is written.
    WriteResetsDevice,
    /// It is unknown whether the driver does.
    ResetUnknown,
    /// The device does not hash packets.
    HashOff,
    /// RPS moves the packets to other CPUs.
    Rps,
    /// Rules select the queue of flows.
    Rules,
    /// Accelerated RFS selects the queue of flows.
    Rfs,
    /// One of these facts is unknown.
    Unknown,
}

/// Why an interface is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffReason {
    /// Two entries, or two interrupts, moved to and fro.
    ToAndFro,
    /// Two steps were restored within an hour.
    Restored,
    /// Another program or a user changed the table, an interrupt or an RPS mask after a step.
    ChangedOutside,
    /// Writes failed.
    WriteRefused,
    /// A write took the link down.
    LinkInterrupted,
}

/// What became of a proposal, or of a restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// The table has these entries now, the interrupt this CPU, or the queue this RPS mask.
    Written,
    /// The write failed; all is as before.
    Refused,
    /// The table, the interrupt or the mask was not as expected, so nothing was written.
    ChangedOutside,
    /// Nothing was written, because the caller only observes or another interface has a step under way.
    NotWritten,
}
