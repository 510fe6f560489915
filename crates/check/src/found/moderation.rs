//! Findings about interrupt moderation, rings and offloads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::words::{bytes, list, queues, rate};

/// What the rules about moderation, rings and offloads found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum ModerationFound {
    /// `rx-usecs` is configured, but adaptive moderation overrides it.
    AdaptiveOverwrites,
    /// The queues of an interface have different values of `rx-usecs`.
    QueuesDiffer {
        /// The values that occur, in microseconds.
        rx_usecs: Vec<u32>,
    },
    /// `rx-frames` is 1: each frame raises an interrupt, whatever `rx-usecs` is.
    InterruptAFrame {
        /// `rx-usecs`, in microseconds.
        rx_usecs: u32,
    },
    /// Interrupts are to be deferred, but without a time the deferral has no effect.
    DeferralWithoutTime {
        /// `napi_defer_hard_irqs`.
        defer_hard_irqs: u32,
    },
    /// A time for deferral is set, but no interrupt is deferred.
    TimeWithoutDeferral {
        /// `gro_flush_timeout`, in nanoseconds.
        gro_flush_timeout_ns: u64,
    },
    /// A time for suspension is set on queues whose interrupts are not deferred.
    SuspensionWithoutDeferral {
        /// Numbers of the queues.
        queues: Vec<u32>,
    },
    /// The NIC loses packets at a ring that could be larger, while no CPU is busy.
    RingTooSmall {
        /// Packets lost (`rx_missed_errors`).
        lost_per_second: f64,
        /// Descriptors of the receive ring.
        ring: u32,
        /// The largest ring of the device.
        most: u32,
    },
    /// The receive buffers do not fit into a cache that their queues share.
    RingsLargerThanCache {
        /// Receive queues that share the cache.
        queues: u64,
        /// Descriptors of each ring.
        ring: u32,
        /// Their buffers together, as estimated from ring and MTU.
        buffers_bytes: u64,
        /// Size of the cache.
        cache_bytes: u64,
    },
    /// Generic receive offload is off.
    GroOff,
    /// Large receive offload is on, on a host that forwards.
    LroOn,
    /// Offloads are off that the device supports.
    OffloadsOff {
        /// The features that are off.
        features: Vec<String>,
    },
    /// Copies of sent data bypass the cache (`tx-nocache-copy`).
    NoCacheCopy,
    /// Headers and data of received packets are in separate buffers (`tcp-data-split`).
    DataSplit,
    /// Pause frames are on, on a router.
    PauseFramesOn {
        /// Received pause frames are obeyed.
        rx: bool,
        /// Pause frames are sent.
        tx: bool,
    },
}

impl fmt::Display for ModerationFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdaptiveOverwrites => {
                f.write_str("rx-usecs is configured, but adaptive moderation is on and overrides it")
            }
            Self::QueuesDiffer { rx_usecs } => write!(f, "rx-usecs differs by queue: {} us", list(rx_usecs)),
            Self::InterruptAFrame { rx_usecs } => {
                write!(f, "rx-frames is 1, so rx-usecs {rx_usecs} has no effect")
            }
            Self::DeferralWithoutTime { defer_hard_irqs } => {
                write!(
                    f,
                    "napi_defer_hard_irqs is {defer_hard_irqs}, but gro_flush_timeout is 0: no interrupt is deferred"
                )
            }
            Self::TimeWithoutDeferral { gro_flush_timeout_ns } => write!(
                f,
                "gro_flush_timeout is {gro_flush_timeout_ns} ns, but napi_defer_hard_irqs is 0: no interrupt is deferred"
            ),
            Self::SuspensionWithoutDeferral { queues: q } => {
                write!(f, "irq-suspend-timeout is set on {}, but deferral is off", queues(q))
            }
            Self::RingTooSmall { lost_per_second, ring, most } => write!(
                f,
                "{} packets/s lost with a ring of {ring} descriptors (at most {most}), while no CPU is busy",
                rate(*lost_per_second)
            ),
            Self::RingsLargerThanCache { queues, ring, buffers_bytes, cache_bytes } => write!(
                f,
                "{queues} rings of {ring} need {} of buffers, but share a cache of {}",
                bytes(*buffers_bytes),
                bytes(*cache_bytes)
            ),
            Self::GroOff => f.write_str("GRO is off: each packet of a stream goes through the stack separately"),
            Self::LroOn => f.write_str("LRO is on: packets that it merged are dropped instead of forwarded"),
            Self::OffloadsOff { features } => write!(f, "offloads are off: {}", features.join(", ")),
            Self::NoCacheCopy => f.write_str("tx-nocache-copy is on"),
            Self::DataSplit => f.write_str("tcp-data-split is on"),
            Self::PauseFramesOn { rx, tx } => {
                let word = |on: bool| if on { "on" } else { "off" };
                write!(
                    f,
                    "pause frames rx {}, tx {}: one slow queue makes the NIC send pause frames, which stop the whole link; a router should drop packets instead",
                    word(*rx),
                    word(*tx)
                )
            }
        }
    }
}
