//! sysctls of the network core, wake-up time of CPUs.

use ringwise_kfmt::cpumask;
use ringwise_model::{CpuId, CpuSet, Snapshot};
use ringwise_sys::{Error, Result};

use crate::cx::Cx;

const DEFAULT_MASK: &str = "net.core.rps_default_mask";

/// None: no name of a sysctl.
fn path(name: &str) -> Option<String> {
    let good =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    name.split('.').all(good).then(|| format!("/proc/sys/{}", name.replace('.', "/")))
}

pub(crate) fn write_sysctl(cx: &Cx, name: &str, value: &str) -> Result<()> {
    let path =
        path(name).ok_or_else(|| Error::other(name, "no name of a sysctl (right would be net.core.netdev_budget)"))?;
    cx.write(&path, format!("{value}\n"))
}

fn latency_path(cpu: CpuId) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")
}

pub(crate) fn write_latency(cx: &Cx, cpu: CpuId, value: &str) -> Result<()> {
    cx.write(&latency_path(cpu), format!("{value}\n"))
}

/// Reads the one file again.
pub(crate) fn read_sysctl(cx: &Cx, now: &mut Snapshot, name: &str) {
    let Some(path) = path(name) else { return };
    if name == DEFAULT_MASK {
        // Never written, it is an empty line.
        let empty = |t: &str| if t.trim().is_empty() { Ok(CpuSet::new()) } else { cpumask::parse(t) };
        now.host.rps_default_mask = cx.fact(&path, empty);
        let text = now.host.rps_default_mask.as_ref().map(|m| cpumask::format(m, None));
        now.host.sysctls.insert(name.to_string(), text);
        return;
    }
    now.host.sysctls.insert(name.to_string(), cx.fact(&path, |t| Ok(t.to_string())));
}

pub(crate) fn read_latency(cx: &Cx, now: &mut Snapshot, cpu: CpuId) {
    now.host.cpu_latency.insert(cpu, cx.fact(&latency_path(cpu), |t| Ok(t.to_string())));
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_lead_to_files_below_proc_sys_only() {
        assert_eq!(path("net.core.netdev_budget").unwrap(), "/proc/sys/net/core/netdev_budget");
        for bad in ["", ".", "net..core", "net/core", "net.core.../x", "net.core.a b", "net.core.\n"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }
}
