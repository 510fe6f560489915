//! Settings that are files, as lines of the script.

use ringwise_knob::{Setting, host, rfs};
use ringwise_model::{CpuId, CpuSet, NapiValues};

use super::call::{Call, File, Kind};
use super::quote;
use ringwise_text::mask;

/// None: not a file.
pub(super) fn calls(setting: &Setting) -> Option<Vec<Call>> {
    let one = match setting {
        Setting::XpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("tx-{queue}"), "xps_cpus", Kind::Mask, &mask(cpus))
        }
        Setting::XpsRxqs { dev, queue, rxqs } => {
            let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
            queue_file(dev, &format!("tx-{queue}"), "xps_rxqs", Kind::Mask, &mask(&set))
        }
        Setting::RpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_cpus", Kind::Mask, &mask(cpus))
        }
        Setting::RpsFlowCnt { dev, queue, entries } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_flow_cnt", Kind::Number, &rfs::kept(*entries).to_string())
        }
        Setting::RfsEntries { entries } => {
            let path = "/proc/sys/net/core/rps_sock_flow_entries";
            value("RFS socket table", path, Kind::Number, &rfs::kept(*entries).to_string())
        }
        Setting::NapiDevice { dev, values } => return Some(napi(dev, values)),
        Setting::Sysctl { name, value: v } => {
            let kind = if host::is_mask(name) { Kind::Mask } else { Kind::Words };
            value(name, &format!("/proc/sys/{}", name.replace('.', "/")), kind, v.trim())
        }
        Setting::CpuLatency { cpu, value: v } => {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            value(&format!("CPU {cpu} resume latency"), &path, Kind::Number, v.trim())
        }
        _ => return None,
    };
    Some(vec![one])
}

fn value(what: &str, path: &str, kind: Kind, value: &str) -> Call {
    Call::Value(File { what: what.into(), path: path.into(), kind, value: value.into() })
}

fn queue_file(dev: &str, queue: &str, file: &str, kind: Kind, v: &str) -> Call {
    value(&format!("{dev} {queue} {file}"), &format!("/sys/class/net/{dev}/queues/{queue}/{file}"), kind, v)
}

fn napi(dev: &str, v: &NapiValues) -> Vec<Call> {
    let files = [
        ("napi_defer_hard_irqs", v.defer_hard_irqs.map(u64::from)),
        ("gro_flush_timeout", v.gro_flush_timeout_ns),
        ("threaded", v.threaded.map(u64::from)),
    ];
    let each = files.iter().filter_map(|(file, n)| {
        let path = format!("/sys/class/net/{dev}/{file}");
        n.map(|n| value(&format!("{dev} {file}"), &path, Kind::Number, &n.to_string()))
    });
    let all: Vec<Call> = each.collect();
    if all.is_empty() { vec![Call::Nothing(format!("{} has no NAPI files", quote(dev)))] } else { all }
}
