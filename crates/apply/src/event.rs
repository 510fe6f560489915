//! What happens during a transaction, as it happens.

use std::time::Duration;

use ringwise_knob::{Address, Match, Setting};

use crate::Failure;

/// Where in the transaction an [`Event`] belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The steps of the request.
    Apply,
    /// Restoring settings that a step changed as a side effect.
    SideEffect,
    /// Restoring the settings to their values at the start.
    PutBack,
}

/// A report about the progress of a transaction. A program that shows events must ignore those that it does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The journal is on disk; writes follow.
    Begun {
        /// Number of the transaction.
        transaction: u64,
        /// Steps that follow.
        steps: usize,
    },
    /// A sentence for the user, for example that an old journal was closed or a device has another name now.
    Note {
        /// The sentence, without a full stop.
        text: String,
    },
    /// A write is about to happen.
    Writing {
        /// Where in the transaction this happens.
        phase: Phase,
        /// What is written.
        setting: Setting,
    },
    /// The setting has this value already, so nothing is written.
    AlreadySo {
        /// Where in the transaction this happens.
        phase: Phase,
        /// The present value.
        setting: Setting,
    },
    /// The setting was written and read back.
    Done {
        /// Where in the transaction this happens.
        phase: Phase,
        /// What was written.
        setting: Setting,
        /// What was read back.
        now: Setting,
        /// How the two compare.
        how: Match,
        /// Time from the write until the value was read back.
        took: Duration,
    },
    /// The kernel refused the value for good, and the step allows this.
    Refused {
        /// Where in the transaction this happens.
        phase: Phase,
        /// What was to be written.
        setting: Setting,
        /// What the kernel answered.
        failure: Failure,
    },
    /// The value was accepted but is not in effect, and the step allows this.
    Ignored {
        /// Where in the transaction this happens.
        phase: Phase,
        /// What was written.
        setting: Setting,
        /// What was read back; `None`: not known.
        now: Option<Setting>,
    },
    /// A write failed, and all settings are restored.
    Failed {
        /// Where in the transaction this happens.
        phase: Phase,
        /// What the kernel answered.
        failure: Failure,
    },
    /// A step took down the link, and the transaction waits for it.
    LinkWait {
        /// Name of the interface.
        dev: String,
    },
    /// The link is up again.
    LinkBack {
        /// Name of the interface.
        dev: String,
        /// How long the wait took.
        took: Duration,
    },
    /// The link is up again, but the bond does not use it yet.
    BondWait {
        /// Name of the member.
        dev: String,
        /// Name of the bond.
        bond: String,
    },
    /// The bond uses its member again.
    BondBack {
        /// Name of the member.
        dev: String,
        /// Name of the bond.
        bond: String,
        /// How long the wait took.
        took: Duration,
    },
    /// The remaining steps were planned again after refusals.
    Replanned {
        /// Number of steps that follow.
        steps: usize,
    },
    /// The steps have ended, and all settings that were changed are being restored.
    PuttingBack {
        /// The failure or the signal.
        why: String,
    },
    /// The host was discovered again and compared.
    Verified {
        /// Where in the transaction this happens.
        phase: Phase,
        /// Settings that match.
        ok: usize,
        /// Settings that were compared.
        of: usize,
        /// Settings that the kernel accepted and that take effect with the next interrupt. They count as matching.
        pending: Vec<Address>,
    },
}
