//! Counters at two moments, and what happened between them.
//!
//! A [`Sampler`] reads [`Counters`] along a [`Layout`], and [`Rates::between`] computes the rates between two readings.
//! `watch`, `export`, `check`, `bench` and `verify --for` are built on these two. Only `sampler` (with `device`, `idle`
//! and `worker`), `programs` and `live` read from the host; all other modules are pure.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bottleneck;
mod compare;
mod counters;
mod device;
mod flat;
mod flows;
mod idle;
mod interrupts;
mod layout;
mod live;
mod polled;
mod programs;
mod queues;
mod rates;
mod sampler;
mod sampling;
mod shared_reader;
mod stalls;
mod traffic;
mod unhashed;
mod worker;

pub use bottleneck::{Bottleneck, BottleneckPlace, Busiest, CpuLoadLevel, FullLink, HotQueue, PacketLoss};
pub use compare::{ComparedFigure, WindowComparison};
pub use counters::{Counters, Counts, CpuSample, INTERRUPTS, LinkCounters, Source, increase, kind_of};
pub use flows::{ClassCount, Flows, HELD, QueueFlows, TopFlow};
pub use interrupts::Interrupts;
pub use layout::{Layout, NapiThread, Wiring};
pub use live::{LiveCounters, interfaces, stale};
pub use polled::{PolledOn, polled_on};
pub use programs::{BUSY_PERCENT, ProcessTimes, ThreadTimes, read_permitted};
pub use queues::{Balance, QueueMark, QueueRates};
pub use rates::{CpuRates, DirectionRates, Drops, LinkRates, Rates};
pub use sampler::{Sampler, cpu_times};
pub use sampling::sampling_divisor;
pub use stalls::{STUCK_MS, StallDetector, StallKind, Stuck};
pub use traffic::traffic;
pub use unhashed::{
    AvailableRemedies, ClassTotal, FlowRules, LISTED_PERCENT, Remedy, RuleKey, Tunnel, TunnelKind, percent, remedies,
};
