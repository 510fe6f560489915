//! Settings of the host: sysctls of the network core, wake-up latency of CPUs.

use ringwise_model::errno::{EINVAL, ENOENT};
use ringwise_model::{Cause, CpuId, CpuSet, Fact, Host, Snapshot, Unread};

use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, path};

pub(crate) struct HostFamily;

impl Descriptor for HostFamily {
    fn label(&self, address: &Address) -> String {
        match address {
            Address::Sysctl { name } => name.clone(),
            Address::CpuLatency { cpu } => format!("CPU {cpu} resume latency"),
            _ => String::new(),
        }
    }

    fn file(&self, address: &Address) -> Option<String> {
        match address {
            Address::Sysctl { name } => path::sysctl(name),
            Address::CpuLatency { cpu } => Some(path::cpu_latency(*cpu)),
            _ => None,
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::Sysctl { name } => live_sysctl(&s.host, name),
            Address::CpuLatency { cpu } => live_latency(&s.host, *cpu),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::Sysctl { name, value }, Setting::Sysctl { value: got, .. }) => compare_sysctl(name, value, got),
            _ if want == got => Match::Same,
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Sysctl { name, value } => {
                if let (true, Some(mask)) = (is_rps_default_mask(name), mask(value)) {
                    s.host.rps_default_mask = Fact::Known(mask);
                }
                s.host.sysctls.insert(name.clone(), Fact::Known(value.clone()));
            }
            Setting::CpuLatency { cpu, value } => {
                s.host.cpu_latency.insert(*cpu, Fact::Known(value.clone()));
            }
            _ => return Err(NotProjected::OTHER_FAMILY),
        }
        Ok(())
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        match (address, errno?) {
            (Address::Sysctl { .. }, ENOENT) => {
                Some((Reaction::Refused, "this kernel has no such sysctl in this network namespace"))
            }
            (Address::CpuLatency { .. }, ENOENT) => {
                Some((Reaction::Refused, "this kernel cannot limit the resume latency of a CPU"))
            }
            (Address::CpuLatency { .. }, EINVAL) => {
                Some((Reaction::Fail, "expected microseconds, 0 (no limit) or n/a (no latency at all)"))
            }
            _ => None,
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Sysctl { value, .. } | Setting::CpuLatency { value, .. } => value.clone(),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Sysctl { name, value } => Some(sysctl_command(name, value)),
            Setting::CpuLatency { cpu, value } => Some(latency_command(*cpu, value)),
            _ => None,
        }
    }
}

/// sysctls whose value is a mask of CPUs.
const MASKS: &[&str] = &["net.core.flow_limit_cpu_bitmap", RPS_DEFAULT_MASK];

const RPS_DEFAULT_MASK: &str = "net.core.rps_default_mask";

/// Whether the sysctl is the RPS mask that new queues get.
pub(crate) fn is_rps_default_mask(name: &str) -> bool {
    name == RPS_DEFAULT_MASK
}

/// Whether the value of the sysctl is a mask of CPUs.
pub fn is_mask(name: &str) -> bool {
    MASKS.contains(&name)
}

/// A host that was read itself has every value, if only as unknown; recordings of earlier versions and of other programs lack
/// some.
fn not_recorded(what: &str) -> Fact<String> {
    Fact::Unknown(Unread::new(what, None, "not in this capture").because(Cause::NotRecorded))
}

/// The sysctl in this snapshot.
pub fn live_sysctl(host: &Host, name: &str) -> Fact<Setting> {
    let found = host.sysctls.get(name).cloned().unwrap_or_else(|| not_recorded(name));
    found.map(|value| Setting::Sysctl { name: name.to_string(), value })
}

/// The maximum wake-up latency of the CPU in this snapshot.
pub fn live_latency(host: &Host, cpu: CpuId) -> Fact<Setting> {
    let found = match host.cpu_latency.get(&cpu) {
        Some(f) => f.clone(),
        // The latency of all online CPUs was read, so this CPU is offline.
        None if !host.cpu_latency.is_empty() => Fact::Absent,
        None => not_recorded(&format!("pm_qos_resume_latency_us of CPU {cpu}")),
    };
    found.map(|value| Setting::CpuLatency { cpu, value })
}

/// The kernel keeps it in ticks, rounded up, and shows milliseconds (net/core/sysctl_net_core.c,
/// `proc_dointvec_ms_jiffies`, since 6.19). A tick is at most 10 ms.
const TXQ_RESELECTION_MS: &str = "net.core.txq_reselection_ms";
const LONGEST_TICK_MS: i64 = 10;

/// Masks with and without leading zeros are equal. The kernel may keep only the housekeeping CPUs of a mask, as for
/// `rps_cpus`. Other values are compared as numbers.
pub fn compare_sysctl(name: &str, want: &str, got: &str) -> Match {
    if is_mask(name) {
        return match (mask(want), mask(got)) {
            (Some(w), Some(g)) if w == g => Match::Same,
            (Some(w), Some(g)) if is_rps_default_mask(name) => crate::rps::compare(&w, &g),
            _ => Match::Differs,
        };
    }
    let plain = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = match (want.trim().parse::<i64>(), got.trim().parse::<i64>()) {
        (Ok(w), Ok(g)) if name == TXQ_RESELECTION_MS && w > 0 && g > w && g - w < LONGEST_TICK_MS => {
            return Match::Adjusted;
        }
        (Ok(w), Ok(g)) => w == g,
        _ => plain(want) == plain(got),
    };
    if same { Match::Same } else { Match::Differs }
}

/// Parses hexadecimal groups of 32 bits, separated by commas, highest first; an empty text is the empty set.
pub(crate) fn mask(text: &str) -> Option<CpuSet> {
    let mut out = CpuSet::new();
    let text = text.trim();
    for (i, group) in text.rsplit(',').enumerate().filter(|_| !text.is_empty()) {
        let bits = u32::from_str_radix(group.trim_start_matches("0x"), 16).ok()?;
        (0..32).filter(|b| bits & (1 << b) != 0).for_each(|b| out.insert(CpuId(i as u32 * 32 + b)));
    }
    Some(out)
}

/// The command that writes the sysctl.
pub fn sysctl_command(name: &str, value: &str) -> String {
    format!("sysctl -w {name}='{value}'")
}

/// The command that writes the maximum wake-up latency.
pub fn latency_command(cpu: CpuId, value: &str) -> String {
    format!("echo {value} > {}", path::cpu_latency(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_without_the_value() {
        let why = |f: Fact<Setting>| f.unread().map(|u| (u.to_string(), u.cause));
        let mut host = ringwise_testkit::machines::ten()[0].snapshot().host;
        host.sysctls.clear();
        host.cpu_latency.clear();
        let sysctl = "net.core.netdev_budget: not in this capture";
        assert_eq!(why(live_sysctl(&host, "net.core.netdev_budget")), Some((sysctl.into(), Cause::NotRecorded)));
        let latency = "pm_qos_resume_latency_us of CPU 3: not in this capture";
        assert_eq!(why(live_latency(&host, CpuId(3))), Some((latency.into(), Cause::NotRecorded)));
    }

    #[test]
    fn values_that_count_as_equal() {
        let c = compare_sysctl;
        assert_eq!(c("net.core.netdev_budget", "600", "600\n"), Match::Same);
        assert_eq!(c("net.core.netdev_budget", "0600", "600"), Match::Same);
        assert_eq!(c("net.core.netdev_budget", "600", "300"), Match::Differs);
        let txq = "net.core.txq_reselection_ms";
        assert_eq!(
            (c(txq, "1", "4"), c(txq, "1001", "1004")),
            (Match::Adjusted, Match::Adjusted),
            "250 ticks a second"
        );
        assert_eq!((c(txq, "0", "4"), c(txq, "1000", "996")), (Match::Differs, Match::Differs));
        let (flow, rps) = ("net.core.flow_limit_cpu_bitmap", "net.core.rps_default_mask");
        assert_eq!(c(flow, "f", "00000000,0000000f"), Match::Same);
        assert_eq!(c(flow, "1,00000000", "00000001,00000000"), Match::Same);
        assert_eq!(c(flow, "0", ""), Match::Same);
        assert_eq!(c(flow, "f", "7"), Match::Differs);
        // Masks are not numbers: 10 and 010 are equal here.
        assert_eq!(c(flow, "10", "16"), Match::Differs);
        assert_eq!(c(rps, "f", "3"), Match::Adjusted);
        assert_eq!(c(rps, "f", "0"), Match::Differs);
        assert_eq!(c(rps, "x", "x"), Match::Differs);
    }
}
