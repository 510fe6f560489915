//! CPUs that containers have for themselves on a node of Kubernetes.

use std::collections::BTreeMap;

use ringwise_kfmt::{ParseError, cpulist, cpumask};
use ringwise_model::{CpuSet, Fact};
use serde::Deserialize;

use crate::read::Reader;

/// The state of the kubelet's CPU manager (kubernetes, `pkg/kubelet/cm/cpumanager/state`). Its directory may be closed to
/// ordinary users.
pub const STATE: &str = "/var/lib/kubelet/cpu_manager_state";

/// Mask of the CPUs that a new interrupt may use (Documentation/core-api/irq/irq-affinity.rst). For the annotation
/// `irq-load-balancing.crio.io: disable`, CRI-O removes the CPUs of the container from it (cri-o,
/// `internal/runtimehandlerhooks/high_performance_hooks_linux.go`).
pub const IRQ_DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// The policy that gives CPUs to single containers; the others give none.
const STATIC: &str = "static";

/// One checkpoint. Other members are of no interest here.
#[derive(Deserialize)]
struct State {
    #[serde(rename = "policyName")]
    policy: String,
    /// Lists of CPUs by pod and container. Absent: no container has CPUs of its own.
    entries: Option<BTreeMap<String, BTreeMap<String, String>>>,
}

/// The CPUs that belong to single containers, and those of `online` that the container runtime keeps free of interrupts.
/// The default affinity alone means nothing: administrators set it for other reasons.
pub(crate) fn read(r: &mut Reader, online: &CpuSet) -> Fact<CpuSet> {
    match r.parse_later(STATE, exclusive) {
        Fact::Known(Some(given)) => {
            let may_use = r.parse_later(IRQ_DEFAULT, cpumask::parse);
            Fact::Known(may_use.known().map_or_else(|| given.clone(), |m| given.union(&online.difference(m))))
        }
        Fact::Known(None) => Fact::Known(CpuSet::new()),
        Fact::Absent => Fact::Absent,
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// The CPUs that belong to single containers; `None`: with this policy, containers have no CPUs of their own.
/// Source: `CPUManagerCheckpoint` in `state_checkpoint.go`.
///
/// Errors: the text is not such a checkpoint, or a list of CPUs in it is wrong.
fn exclusive(text: &str) -> Result<Option<CpuSet>, ParseError> {
    let state: State = serde_json::from_str(text).map_err(|_| {
        ParseError::new("cpu_manager_state", text, "JSON with policyName, and with entries by pod and container")
    })?;
    if state.policy != STATIC {
        return Ok(None);
    }
    let mut all = CpuSet::new();
    for list in state.entries.iter().flat_map(BTreeMap::values).flat_map(BTreeMap::values) {
        all = all.union(&cpulist::parse(list)?);
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_containers_are_exclusive() {
        let text = r#"{"policyName":"static","defaultCpuSet":"0,4-7","entries":
            {"0a-1b":{"app":"1-2"},"2c-3d":{"db":"3","sidecar":"8,10"}},"checksum":1353318690}"#;
        assert_eq!(exclusive(text).unwrap().unwrap().to_string(), "1-3,8,10");
    }

    #[test]
    fn without_the_static_policy_or_without_containers_there_are_none() {
        let other = r#"{"policyName":"none","defaultCpuSet":"","entries":{"a":{"b":"1"}},"checksum":1}"#;
        assert_eq!(exclusive(other).unwrap(), None);
        for text in [
            r#"{"policyName":"static","defaultCpuSet":"0-7","checksum":1}"#,
            r#"{"policyName":"static","defaultCpuSet":"0-7","entries":{},"checksum":1}"#,
        ] {
            assert!(exclusive(text).unwrap().unwrap().is_empty(), "{text}");
        }
    }

    #[test]
    fn another_text_is_refused() {
        for text in [
            "",
            "{}",
            r#"{"policyName":"static","entries":{"a":{"b":"1-"}}}"#,
            r#"{"policyName":"static","entries":[1]}"#,
        ] {
            assert!(exclusive(text).is_err(), "{text}");
        }
    }
}
