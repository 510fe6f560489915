//! Counters at two moments and what happened between them.
//!
//! [`sample()`] reads; [`Delta::between`] is pure. `ringwise verify --for 5s` is made of both: later
//! interrupts of a queue are counted on the planned CPU and on no other.
//!
//! `ringwise watch` sees more: a [`Sampler`] reads [`Counters`] along a [`Layout`], and [`Rates::between`] is what
//! happened between two of them. `sampler` (with `device`, `idle` and `worker`) and `sample` read; the rest is pure.
#![forbid(unsafe_code)]

mod bottleneck;
mod compare;
mod counters;
mod delta;
mod device;
mod flat;
mod flows;
mod idle;
mod layout;
mod polled;
mod queues;
mod rates;
mod sample;
mod sampler;
mod stalls;
mod together;
mod worker;

pub use bottleneck::{Bottleneck, Busiest, Full, HotQueue, Load, Loss, Place};
pub use compare::{Comparison, Figure};
pub use counters::{Counters, Counts, Link, Source, more, more_32};

pub use delta::{Counted, Delta, IrqDelta, SoftnetDelta};
pub use flows::{Flows, HELD, Heavy, QueueFlows};
pub use layout::{Layout, Wiring};
pub use polled::{PolledOn, polled_on};
pub use queues::{Balance, Mark, QueueRates};
pub use rates::{CpuRates, Drops, Flow, LinkRates, Rates};
pub use sample::{Error, Sample, Softnet, sample};
pub use sampler::Sampler;
pub use stalls::{How, STUCK_MS, Stalls, Stuck};
