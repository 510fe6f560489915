//! Settings that are files, as lines of the script.

use ringwise_knob::{Setting, host, rfs};
use ringwise_model::{CpuId, CpuSet, NapiValues};

use super::quote;
use crate::render::text::mask;

/// None: not a file.
pub(super) fn lines(setting: &Setting) -> Option<String> {
    Some(match setting {
        Setting::XpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("tx-{queue}"), "xps_cpus", "mask", &mask(cpus))
        }
        Setting::XpsRxqs { dev, queue, rxqs } => {
            let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
            queue_file(dev, &format!("tx-{queue}"), "xps_rxqs", "mask", &mask(&set))
        }
        Setting::RpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_cpus", "mask", &mask(cpus))
        }
        Setting::RpsFlowCnt { dev, queue, entries } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_flow_cnt", "number", &rfs::kept(*entries).to_string())
        }
        Setting::RfsEntries { entries } => {
            let path = "/proc/sys/net/core/rps_sock_flow_entries";
            value("RFS socket table", path, "number", &rfs::kept(*entries).to_string())
        }
        Setting::NapiDevice { dev, values } => napi(dev, values),
        Setting::Sysctl { name, value: v } => {
            let kind = if host::is_mask(name) { "mask" } else { "words" };
            value(name, &format!("/proc/sys/{}", name.replace('.', "/")), kind, v.trim())
        }
        Setting::CpuLatency { cpu, value: v } => {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            value(&format!("CPU {cpu} resume latency"), &path, "number", v.trim())
        }
        _ => return None,
    })
}

fn value(what: &str, path: &str, kind: &str, value: &str) -> String {
    format!("value {} {} {kind} {}", quote(what), quote(path), quote(value))
}

fn queue_file(dev: &str, queue: &str, file: &str, kind: &str, v: &str) -> String {
    value(&format!("{dev} {queue} {file}"), &format!("/sys/class/net/{dev}/queues/{queue}/{file}"), kind, v)
}

fn napi(dev: &str, v: &NapiValues) -> String {
    let files = [
        ("napi_defer_hard_irqs", v.defer_hard_irqs.map(u64::from)),
        ("gro_flush_timeout", v.gro_flush_timeout_ns),
        ("threaded", v.threaded.map(u64::from)),
    ];
    let each = files.iter().filter_map(|(file, n)| {
        let path = format!("/sys/class/net/{dev}/{file}");
        n.map(|n| value(&format!("{dev} {file}"), &path, "number", &n.to_string()))
    });
    let all: Vec<String> = each.collect();
    if all.is_empty() { format!(": {} has no NAPI files", quote(dev)) } else { all.join("\n  ") }
}
