//! What happens, as it happens, for those who watch.

use std::time::Duration;

use ringwise_knob::{Address, Match, Setting};

use crate::Failure;

/// Where in the transaction an [`Event`] belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Apply,
    /// Putting right what a step moved without being asked to.
    SideEffect,
    PutBack,
}

/// One thing that happened. A program that renders them must pass over those it does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The journal is on disk; writes follow.
    Begun {
        transaction: u64,
        steps: usize,
    },
    /// A sentence worth showing: an old journal closed, a device that has another name now.
    Note {
        text: String,
    },
    /// A write is about to happen.
    Writing {
        phase: Phase,
        setting: Setting,
    },
    /// Nothing to write: it is so.
    AlreadySo {
        phase: Phase,
        setting: Setting,
    },
    /// Written and read back; `now` is what the kernel kept, `how` how that compares.
    Done {
        phase: Phase,
        setting: Setting,
        now: Setting,
        how: Match,
        took: Duration,
    },
    /// The kernel said no for good and the step allows it.
    Refused {
        phase: Phase,
        setting: Setting,
        failure: Failure,
    },
    /// Accepted, not kept, and the step allows it.
    Ignored {
        phase: Phase,
        setting: Setting,
        now: Option<Setting>,
    },
    Failed {
        phase: Phase,
        failure: Failure,
    },
    LinkWait {
        dev: String,
    },
    LinkBack {
        dev: String,
        took: Duration,
    },
    /// Its link is back; the bond does not use it yet.
    BondWait {
        dev: String,
        bond: String,
    },
    BondBack {
        dev: String,
        bond: String,
        took: Duration,
    },
    /// After refusals the rest was planned again: `steps` are left to do.
    Replanned {
        steps: usize,
    },
    /// The steps are over; everything that was touched is put back.
    PuttingBack {
        why: String,
    },
    /// All was discovered again. `ok` of `of` settings are as they should be.
    Verified {
        phase: Phase,
        ok: usize,
        of: usize,
        pending: Vec<Address>,
    },
}
