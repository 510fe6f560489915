//! Interrupts, and where they are delivered.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum IrqFound {
    AllOnOneCpu {
        interrupts: u32,
        cpu: CpuId,
    },
    RpsReachesIsolated {
        queues: Vec<u32>,
        isolated: CpuSet,
    },
    /// `of`: `rps_cpus`, `xps_cpus` or `irq_cpus`.
    OfflineCpu {
        of: String,
        queues: Vec<u32>,
        cpus: CpuSet,
    },
    Elsewhere {
        interrupts: Vec<Misdelivered>,
    },
    HintsUnused {
        interrupts: u32,
    },
    /// The busiest one, in times of the mean.
    OneVectorBusy {
        vectors: u32,
        times: f64,
    },
    ManyInterrupts {
        cpu: CpuId,
        per_second: f64,
    },
    InterruptAPacket {
        per_second: f64,
        packets_per_second: f64,
    },
    LongBatches {
        packets: f64,
        queue: u32,
        ring: u32,
    },
    /// Each in words: address, what was applied and what is there.
    Drift {
        settings: Vec<String>,
    },
    Immovable {
        interrupts: u32,
        of: u32,
    },
    /// `unknown`: vectors of the interface of which the purpose is unknown.
    NoInterruptKnown {
        queues: Vec<u32>,
        unknown: u32,
    },
    ThreadsAnywhere {
        queues: Vec<u32>,
    },
    PairsApart {
        queues: Vec<u32>,
    },
}

/// An interrupt that is delivered elsewhere than it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misdelivered {
    /// `None`: it has none.
    pub name: Option<String>,
    pub asked: CpuSet,
    pub goes_to: CpuSet,
}

impl fmt::Display for Misdelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("?");
        write!(f, "{name} asked for CPU {}, goes to {}", self.asked, self.goes_to)
    }
}

impl fmt::Display for IrqFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllOnOneCpu { interrupts, cpu } => {
                write!(f, "{interrupts} queue interrupts, all left to CPU {cpu}")
            }
            Self::RpsReachesIsolated { queues: q, isolated } => {
                write!(f, "RPS of {} reaches isolated CPUs {isolated}", queues(q))
            }
            Self::OfflineCpu { of, queues: q, cpus } => {
                write!(f, "{of} of {} names CPU {cpus}, which is offline", queues(q))
            }
            Self::Elsewhere { interrupts } => {
                let go = if interrupts.len() == 1 { "goes" } else { "go" };
                write!(f, "{} of its interrupts {go} elsewhere than asked: ", interrupts.len())?;
                interrupts.first().map_or(Ok(()), |first| first.fmt(f))
            }
            Self::HintsUnused { interrupts } => {
                let have = if *interrupts == 1 { "has" } else { "have" };
                write!(f, "{} {have} a hint of the driver, none has a CPU", plural(*interrupts as usize, "interrupt"))
            }
            Self::OneVectorBusy { vectors, times } => {
                write!(f, "one of {vectors} active vectors takes {times:.1} times their mean")
            }
            Self::ManyInterrupts { cpu, per_second } => {
                write!(f, "CPU {cpu} takes {} interrupts/s of queues", count(*per_second as u64))
            }
            Self::InterruptAPacket { per_second, packets_per_second } => {
                write!(f, "{per_second:.0} interrupts/s for {packets_per_second:.0} packets/s")
            }
            Self::LongBatches { packets, queue, ring } => {
                write!(f, "{packets:.0} packets an interrupt on queue {queue}, with a ring of {ring}")
            }
            Self::Drift { settings } => match settings.as_slice() {
                [] => Ok(()),
                [one] => f.write_str(one),
                [first, ..] => write!(f, "{} settings differ from what was applied: {first}, …", settings.len()),
            },
            Self::Immovable { interrupts, of } => write!(f, "{interrupts} of {of} queue interrupts cannot be moved"),
            Self::NoInterruptKnown { queues: q, .. } => write!(f, "no interrupt is known for {}", queues(q)),
            Self::ThreadsAnywhere { queues: q } => write!(f, "the NAPI threads of {} may run on all CPUs", queues(q)),
            Self::PairsApart { queues: q } => {
                write!(f, "receive and transmit interrupts of {} are on different cores", queues(q))
            }
        }
    }
}

impl IrqFound {
    pub(super) fn evidence(&self) -> Vec<String> {
        match self {
            Self::Elsewhere { interrupts } => interrupts.iter().map(Misdelivered::to_string).collect(),
            Self::Drift { settings } => settings.clone(),
            Self::NoInterruptKnown { unknown, .. } => {
                vec![format!("{} of unknown purpose", plural(*unknown as usize, "vector"))]
            }
            _ => Vec::new(),
        }
    }
}
