//! Findings about interrupts and the CPUs that handle them.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{count, cpus, queues};

/// What the rules about interrupts found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum IrqFound {
    /// All queue interrupts may move among CPUs, and one CPU handles all of them.
    AllOnOneCpu {
        /// Queue interrupts of the interface.
        interrupts: u32,
        /// The CPU that handles them.
        cpu: CpuId,
    },
    /// RPS sends packets to isolated CPUs.
    RpsReachesIsolated {
        /// Receive queues whose RPS mask contains isolated CPUs.
        queues: Vec<u32>,
        /// The isolated CPUs.
        isolated: CpuSet,
    },
    /// A setting names offline CPUs. `of`: `rps_cpus`, `xps_cpus` or `irq_cpus`.
    OfflineCpu {
        /// Name of the setting in `--set`.
        of: String,
        /// Queues whose setting names offline CPUs.
        queues: Vec<u32>,
        /// The offline CPUs.
        cpus: CpuSet,
    },
    /// Interrupts go to other CPUs than configured.
    Elsewhere {
        /// Each of these interrupts.
        interrupts: Vec<Misdelivered>,
        /// Why it is unknown how many vectors the CPUs have left. `None`: it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        free_vectors_unknown: Option<String>,
    },
    /// The driver proposes CPUs (`affinity_hint`), and no interrupt is pinned.
    HintsUnused {
        /// Interrupts with a hint.
        interrupts: u32,
    },
    /// One vector raises far more interrupts than the others.
    OneVectorBusy {
        /// Vectors with more than 10 interrupts per second.
        vectors: u32,
        /// Interrupts of the busiest vector, divided by their mean.
        times: f64,
    },
    /// A CPU handles very many queue interrupts.
    ManyInterrupts {
        /// The CPU.
        cpu: CpuId,
        /// Its interrupts.
        per_second: f64,
    },
    /// There is at least one interrupt for each packet.
    InterruptAPacket {
        /// Interrupts of the receive queues.
        per_second: f64,
        /// Packets received and sent.
        packets_per_second: f64,
    },
    /// So many packets arrive between two interrupts that the ring may overflow.
    LongBatches {
        /// Packets for each interrupt of this queue.
        packets: f64,
        /// Number of the receive queue.
        queue: u32,
        /// Descriptors of its ring.
        ring: u32,
    },
    /// Settings differ from what was applied.
    Drift {
        /// One text for each setting: its address, the applied value, the present value.
        settings: Vec<String>,
    },
    /// The kernel refuses to move interrupts (managed, or without affinity).
    Immovable {
        /// Interrupts that cannot be moved.
        interrupts: u32,
        /// All queue interrupts of the interface.
        of: u32,
    },
    /// Receive queues have no known interrupt.
    NoInterruptKnown {
        /// Receive queues without a known interrupt.
        queues: Vec<u32>,
        /// Vectors of the interface whose purpose is unknown.
        unknown: u32,
    },
    /// The NAPI threads of queues are not pinned.
    ThreadsAnywhere {
        /// Numbers of the queues.
        queues: Vec<u32>,
    },
    /// Receive and transmit interrupt of a queue number are handled by different cores.
    PairsApart {
        /// Numbers of the queues.
        queues: Vec<u32>,
    },
}

/// An interrupt that goes to another CPU than configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misdelivered {
    /// Its name in `/proc/interrupts`. `None`: it has none.
    pub name: Option<String>,
    /// CPUs that were configured (`smp_affinity`).
    pub asked: CpuSet,
    /// CPUs that handle it (`effective_affinity`).
    pub goes_to: CpuSet,
    /// Vectors that the configured CPUs have left together. `None`: unknown, or another number counts for this interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_vectors: Option<u32>,
}

impl fmt::Display for Misdelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("?");
        let asked = cpus(&self.asked);
        write!(f, "{name} configured for {asked}, goes to {}", cpus(&self.goes_to))?;
        let has = if self.asked.len() == 1 { "has" } else { "have" };
        match self.free_vectors {
            None => Ok(()),
            Some(0) => write!(f, "; {asked} {has} no free vector"),
            Some(n) => write!(f, "; {asked} {has} {}", plural(n as usize, "free vector")),
        }
    }
}

impl fmt::Display for IrqFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllOnOneCpu { interrupts, cpu } => {
                write!(f, "all {interrupts} queue interrupts go to CPU {cpu}, and none is pinned")
            }
            Self::RpsReachesIsolated { queues: q, isolated } => {
                write!(f, "RPS of {} overlaps isolated {}", queues(q), cpus(isolated))
            }
            Self::OfflineCpu { of, queues: q, cpus: offline } => {
                write!(f, "{of} of {} names offline {}", queues(q), cpus(offline))
            }
            Self::Elsewhere { interrupts, .. } => {
                write!(f, "{} not on the configured CPU: ", plural(interrupts.len(), "interrupt"))?;
                interrupts.first().map_or(Ok(()), |first| first.fmt(f))
            }
            Self::HintsUnused { interrupts } => {
                write!(
                    f,
                    "the driver hints at CPUs for {}, but none is pinned",
                    plural(*interrupts as usize, "interrupt")
                )
            }
            Self::OneVectorBusy { vectors, times } => {
                write!(f, "one of {vectors} active vectors has {times:.1} times the mean interrupt rate")
            }
            Self::ManyInterrupts { cpu, per_second } => {
                write!(f, "CPU {cpu} handles {} queue interrupts/s", count(*per_second as u64))
            }
            Self::InterruptAPacket { per_second, packets_per_second } => {
                write!(f, "{per_second:.0} interrupts/s for {packets_per_second:.0} packets/s")
            }
            Self::LongBatches { packets, queue, ring } => {
                write!(f, "{packets:.0} packets per interrupt on queue {queue}, with a ring of {ring} descriptors")
            }
            Self::Drift { settings } => match settings.as_slice() {
                [] => Ok(()),
                [one] => f.write_str(one),
                [first, ..] => write!(f, "{} settings changed since apply: {first}, …", settings.len()),
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
            Self::Elsewhere { interrupts, free_vectors_unknown: why } => {
                let unknown = why.iter().map(|why| format!("free vectors of the CPUs: unknown ({why})"));
                interrupts.iter().map(Misdelivered::to_string).chain(unknown).collect()
            }
            Self::Drift { settings } => settings.clone(),
            Self::NoInterruptKnown { unknown, .. } => {
                vec![format!("{} of unknown purpose", plural(*unknown as usize, "vector"))]
            }
            _ => Vec::new(),
        }
    }
}
