//! Raw counters of one moment: `/proc/interrupts` and `/proc/net/softnet_stat`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use ringwise_kfmt::{ParseError, interrupts, softnet};
use ringwise_model::{CpuId, Fact, IrqId, Unread};
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

const INTERRUPTS: &str = "/proc/interrupts";
const SOFTNET: &str = "/proc/net/softnet_stat";

/// Counters since boot, as the kernel prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since boot (CLOCK_BOOTTIME) just before the reading.
    pub at: Duration,
    /// Interrupts by IRQ and CPU; only the IRQs that were asked for and exist. A CPU that is offline has no column.
    pub irq_counts: BTreeMap<IrqId, BTreeMap<CpuId, u64>>,
    /// By CPU. Unknown where the file cannot be read or (before 5.10) does not name its CPUs.
    pub softnet: Fact<BTreeMap<CpuId, Softnet>>,
}

/// One CPU's row of `softnet_stat`; 32 bits wide in the kernel, they wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    pub processed: u32,
    pub dropped: u32,
    pub time_squeeze: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_rps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_limit: Option<u32>,
}

/// Interrupt counts could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    Read(ringwise_sys::Error),
    Parse(ParseError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(e) => e.fmt(f),
            Self::Parse(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Reads the counters now. IRQs that are not there are left out of the sample, which is no error.
pub fn sample(host: &dyn Host, irqs: &[IrqId]) -> Result<Sample, Error> {
    let at = host.since_boot();
    let bytes = host.read(INTERRUPTS).map_err(Error::Read)?;
    let irq_counts = counts(&bytes, irqs).map_err(Error::Parse)?;
    let softnet = match host.read_text(SOFTNET) {
        Ok(text) => by_cpu(&text),
        Err(e) if e.is_absent() => Fact::Absent,
        Err(e) => Fact::Unknown(Unread::new(SOFTNET, e.errno, e.reason()).because(e.cause)),
    };
    Ok(Sample { at, irq_counts, softnet })
}

/// Columns are matched by the CPU of the header, never by their place.
fn counts(bytes: &[u8], irqs: &[IrqId]) -> Result<BTreeMap<IrqId, BTreeMap<CpuId, u64>>, ParseError> {
    let table = interrupts::parse(bytes)?;
    let wanted: std::collections::BTreeSet<IrqId> = irqs.iter().copied().collect::<BTreeSet<_>>();
    let mut out = BTreeMap::new();
    for row in &table.rows {
        if let Some(irq) = row.head.irq
            && wanted.contains(&irq)
            && table.is_whole(row)
        {
            out.insert(irq, table.cpus.iter().copied().zip(row.counts.iter().copied()).collect::<BTreeMap<_, _>>());
        }
    }
    Ok(out)
}

fn by_cpu(text: &str) -> Fact<BTreeMap<CpuId, Softnet>> {
    let rows = match softnet::parse(text) {
        Ok(rows) => rows,
        Err(e) => return Fact::unknown(SOFTNET, e.to_string()),
    };
    let mut out = BTreeMap::new();
    for r in rows {
        let Some(cpu) = r.cpu else {
            return Fact::unknown(SOFTNET, "this kernel does not name the CPU of a row");
        };
        out.insert(
            cpu,
            Softnet {
                processed: r.processed,
                dropped: r.dropped,
                time_squeeze: r.time_squeeze,
                received_rps: r.received_rps,
                flow_limit: r.flow_limit,
            },
        );
    }
    Fact::Known(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_by_the_cpu_of_the_header() {
        let text = b"           CPU0       CPU2\n 36:        10          7   PCI-MSIX-0000:01:00.0 1-edge eth0-TxRx-0\n 37:  1 2 PCI-MSI 5-edge x\nNMI:          1          2   Non-maskable interrupts\n";
        let c = counts(text, &[IrqId(36), IrqId(99)]).unwrap();
        assert_eq!(c.len(), 1);
        assert_eq!(c[&IrqId(36)], BTreeMap::from([(CpuId(0), 10), (CpuId(2), 7)]));
    }

    #[test]
    fn rows_without_a_cpu_are_not_numbered_by_guess() {
        assert!(by_cpu("1 2 3 0 0 0 0 0 0\n").unread().is_some());
        let thirteen = "a 2 3 0 0 0 0 0 0 1 0 0 00000005\n";
        let known = by_cpu(thirteen);
        assert_eq!(known.known().unwrap()[&CpuId(5)].processed, 10);
    }
}
