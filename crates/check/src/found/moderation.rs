//! Moderation, rings and offloads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::words::{bytes, list, queues, rate};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum ModerationFound {
    AdaptiveOverwrites,
    QueuesDiffer {
        rx_usecs: Vec<u32>,
    },
    InterruptAFrame {
        rx_usecs: u32,
    },
    DeferralWithoutTime {
        defer_hard_irqs: u32,
    },
    TimeWithoutDeferral {
        gro_flush_timeout_ns: u64,
    },
    SuspensionWithoutDeferral {
        queues: Vec<u32>,
    },
    RingTooSmall {
        lost_per_second: f64,
        ring: u32,
        most: u32,
    },
    RingsLargerThanCache {
        queues: u64,
        ring: u32,
        buffers_bytes: u64,
        cache_bytes: u64,
    },
    GroOff,
    LroOn,
    /// Names of the kernel.
    OffloadsOff {
        features: Vec<String>,
    },
    NoCacheCopy,
    DataSplit,
    PauseFramesOn {
        rx: bool,
        tx: bool,
    },
}

impl fmt::Display for ModerationFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdaptiveOverwrites => {
                f.write_str("rx-usecs is laid down, but adaptive moderation is on and goes over it")
            }
            Self::QueuesDiffer { rx_usecs } => write!(f, "rx-usecs differs by queue: {} us", list(rx_usecs)),
            Self::InterruptAFrame { rx_usecs } => {
                write!(f, "rx-frames is 1, so rx-usecs {rx_usecs} never comes to pass")
            }
            Self::DeferralWithoutTime { defer_hard_irqs } => {
                write!(f, "napi_defer_hard_irqs is {defer_hard_irqs}, gro_flush_timeout is 0: it has no effect")
            }
            Self::TimeWithoutDeferral { gro_flush_timeout_ns } => write!(
                f,
                "gro_flush_timeout is {gro_flush_timeout_ns} ns, napi_defer_hard_irqs is 0: no interrupt is deferred"
            ),
            Self::SuspensionWithoutDeferral { queues: q } => {
                write!(f, "irq-suspend-timeout is set on {} without deferral", queues(q))
            }
            Self::RingTooSmall { lost_per_second, ring, most } => write!(
                f,
                "{} packets/s lost with a ring of {ring} (at most {most}), and no CPU is busy",
                rate(*lost_per_second)
            ),
            Self::RingsLargerThanCache { queues, ring, buffers_bytes, cache_bytes } => write!(
                f,
                "{queues} rings of {ring} share a cache: {} of buffers in {}",
                bytes(*buffers_bytes),
                bytes(*cache_bytes)
            ),
            Self::GroOff => f.write_str("GRO is off: each packet of a stream goes through the stack alone"),
            Self::LroOn => f.write_str("LRO is on: packets that it joined are dropped instead of forwarded"),
            Self::OffloadsOff { features } => write!(f, "{} off", features.join(", ")),
            Self::NoCacheCopy => f.write_str("tx-nocache-copy is on"),
            Self::DataSplit => f.write_str("tcp-data-split is on"),
            Self::PauseFramesOn { rx, tx } => {
                let word = |on: bool| if on { "on" } else { "off" };
                write!(f, "pause frames rx {}, tx {}: a router that pauses slows its neighbour", word(*rx), word(*tx))
            }
        }
    }
}
