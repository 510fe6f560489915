//! The numbers of free interrupt vectors, for errors about exhausted ones (ENOSPC).

use std::collections::BTreeMap;

use ringwise_knob::path::FREE_VECTORS;
use ringwise_knob::{Address, Setting};
use ringwise_model::errno::ENOSPC;
use ringwise_model::{CpuId, CpuSet, Fact};

use crate::host_access::HostAccess;

/// The numbers of the CPUs that the setting names and of the others, or why they are unknown. `None`: the error has another cause, or the file
/// lists no CPU.
pub(crate) fn numbers(cx: &HostAccess, setting: &Setting, errno: Option<i32>) -> Option<String> {
    if errno != Some(ENOSPC) {
        return None;
    }
    let named = match (setting, setting.address()) {
        (Setting::IrqCpus { cpus, .. }, _) => Some(cpus),
        (_, Some(Address::Channels { .. })) => None,
        _ => return None,
    };
    Some(match cx.reading(ringwise_discover::free_vectors) {
        Some(Fact::Known(by_cpu)) => text(&by_cpu, named)?,
        Some(Fact::Absent) => format!("this kernel does not show how many are left ({FREE_VECTORS} does not exist)"),
        Some(Fact::Unknown(u)) => format!("how many are left is unknown: {}: {}", u.what, u.why),
        None => format!("how many are left is unknown: {FREE_VECTORS} was not read in time"),
    })
}

/// `CPU 2 has none left, the other online CPUs have 147 to 202 each`. `None`: the file lists no CPU.
fn text(by_cpu: &BTreeMap<CpuId, u32>, named: Option<&CpuSet>) -> Option<String> {
    let is_named = |cpu: &CpuId| named.is_some_and(|cpus| cpus.contains(*cpu));
    let (named, others): (Vec<_>, Vec<_>) = by_cpu.iter().map(|(c, n)| (*c, *n)).partition(|(c, _)| is_named(c));
    let others_are = if named.is_empty() { "the online CPUs" } else { "the other online CPUs" };
    let of_named = match named.as_slice() {
        [] => None,
        [(cpu, 0)] => Some(format!("CPU {cpu} has none left")),
        [(cpu, n)] => Some(format!("CPU {cpu} has {n} left")),
        all => range(all).map(|range| {
            let cpus: CpuSet = all.iter().map(|(c, _)| *c).collect();
            format!("CPUs {cpus} have {range} left each")
        }),
    };
    let of_others = range(&others).map(|range| format!("{others_are} have {range} left each"));
    let parts: Vec<String> = of_named.into_iter().chain(of_others).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `147 to 202`. `None`: there are no CPUs.
fn range(all: &[(CpuId, u32)]) -> Option<String> {
    let (least, most) = (all.iter().map(|(_, n)| n).min()?, all.iter().map(|(_, n)| n).max()?);
    Some(if least == most { most.to_string() } else { format!("{least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_cpus_come_first() {
        let by_cpu = [(0, 147), (1, 0), (2, 0), (3, 202)].map(|(c, n)| (CpuId(c), n)).into();
        let of = |cpus: &str| text(&by_cpu, Some(&cpus.parse().unwrap())).unwrap();
        assert_eq!(of("2"), "CPU 2 has none left, the other online CPUs have 0 to 202 left each");
        assert_eq!(of("1-2"), "CPUs 1-2 have 0 left each, the other online CPUs have 147 to 202 left each");
        assert_eq!(of("0-3"), "CPUs 0-3 have 0 to 202 left each");
        assert_eq!(of("9"), "the online CPUs have 0 to 202 left each");
        assert_eq!(text(&by_cpu, None).unwrap(), "the online CPUs have 0 to 202 left each");
        assert_eq!(text(&BTreeMap::new(), Some(&"2".parse().unwrap())), None, "no CPU is listed");
    }
}
