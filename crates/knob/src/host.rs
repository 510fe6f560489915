//! Settings of the host: sysctls of the network core, wake-up time of CPUs.

use ringwise_model::{CpuId, Fact, Host};

use crate::{Match, Setting};

pub fn live_sysctl(host: &Host, name: &str) -> Fact<Setting> {
    let found = host.sysctls.get(name).cloned().unwrap_or_else(|| Fact::unknown(name, "not asked"));
    found.map(|value| Setting::Sysctl { name: name.to_string(), value })
}

pub fn live_latency(host: &Host, cpu: CpuId) -> Fact<Setting> {
    let what = || format!("pm_qos_resume_latency_us of CPU {cpu}");
    let found = host.cpu_latency.get(&cpu).cloned().unwrap_or_else(|| Fact::unknown(what(), "not asked"));
    found.map(|value| Setting::CpuLatency { cpu, value })
}

/// CPU masks are the same with or without leading zeros.
pub fn compare_sysctl(_name: &str, want: &str, got: &str) -> Match {
    let plain = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(want) == plain(got) { Match::Same } else { Match::Differs }
}

pub fn sysctl_command(name: &str, value: &str) -> String {
    format!("sysctl -w {name}='{value}'")
}

pub fn latency_command(cpu: CpuId, value: &str) -> String {
    format!("echo {value} > /sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")
}
