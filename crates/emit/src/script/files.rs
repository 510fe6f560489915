//! Settings in files, as lines of the script.

use ringwise_knob::{Setting, host, napi, rfs};
use ringwise_model::{CpuId, CpuSet, NapiValues};

use super::call::{Call, File, Kind};
use super::quote;
use ringwise_text::mask;

/// `None`: the setting is not in a file.
pub(super) fn calls(setting: &Setting) -> Option<Vec<Call>> {
    if let Setting::NapiDevice { dev, values } = setting {
        return Some(napi_files(dev, values));
    }
    let path = setting.address()?.file()?;
    let (what, kind, v) = match setting {
        Setting::XpsCpus { dev, queue, cpus } => (format!("{dev} tx-{queue} xps_cpus"), Kind::Mask, mask(cpus)),
        Setting::XpsRxqs { dev, queue, rxqs } => {
            let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
            (format!("{dev} tx-{queue} xps_rxqs"), Kind::Mask, mask(&set))
        }
        Setting::RpsCpus { dev, queue, cpus } => (format!("{dev} rx-{queue} rps_cpus"), Kind::Mask, mask(cpus)),
        Setting::RpsFlowCnt { dev, queue, entries } => {
            (format!("{dev} rx-{queue} rps_flow_cnt"), Kind::Number, rfs::kept(*entries).to_string())
        }
        Setting::RfsEntries { entries } => ("RFS socket table".into(), Kind::Number, rfs::kept(*entries).to_string()),
        Setting::Sysctl { name, value } => {
            (name.clone(), if host::is_mask(name) { Kind::Mask } else { Kind::Words }, value.trim().to_string())
        }
        Setting::CpuLatency { cpu, value } => {
            (format!("CPU {cpu} resume latency"), Kind::Number, value.trim().to_string())
        }
        _ => return None,
    };
    Some(vec![value(&what, &path, kind, &v)])
}

fn value(what: &str, path: &str, kind: Kind, value: &str) -> Call {
    Call::Value(File { what: what.into(), path: path.into(), kind, value: value.into() })
}

fn napi_files(dev: &str, v: &NapiValues) -> Vec<Call> {
    let each = napi::device_files(dev, v).into_iter();
    let each = each
        .filter_map(|(file, path, n)| n.map(|n| value(&format!("{dev} {file}"), &path, Kind::Number, &n.to_string())));
    let all: Vec<Call> = each.collect();
    if all.is_empty() { vec![Call::Nothing(format!("{} has no NAPI files", quote(dev)))] } else { all }
}
