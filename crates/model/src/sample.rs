//! What a sample of the traffic showed. A plan assigns CPUs to queues by it, and chooses the policy of bulk queues
//! and the sizes of groups.

use serde::{Deserialize, Serialize};

use crate::CpuId;

/// The sample that a plan was requested with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// Counted.
    Taken(TrafficSample),
    /// Not counted, for this reason.
    NotTaken(NotSampled),
}

/// Why there is no sample although one was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSampled {
    /// The host is a recording without counters of two moments.
    NotRecorded,
    /// `--passive`: the counters need requests to the kernel.
    Passive,
    /// No interface has queues of its own.
    #[serde(alias = "no_mixed_goal")]
    NoInterface,
    /// The clock did not advance between the two readings, for example because the host was restarted between two
    /// recordings.
    NoTimePassed,
    /// A later version knows the reason.
    #[serde(other)]
    Unknown,
}

/// Increases between two readings of the counters. `None`: not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficSample {
    /// Time between the readings.
    pub duration_ms: u64,
    /// CPUs that were online in both readings.
    pub cpus: Vec<SampledCpu>,
    /// Interfaces that were there in both readings.
    pub interfaces: Vec<SampledInterface>,
}

/// One CPU, in thousandths of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledCpu {
    /// CPU in question.
    pub cpu: CpuId,
    /// Not idle. Waiting for I/O counts as idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_permille: Option<u32>,
    /// In interrupt handlers and softirqs; a part of `busy_permille`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_permille: Option<u32>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledInterface {
    /// Name of the interface.
    pub dev: String,
    /// Frames received and sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Bytes of these frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Receive queues.
    #[serde(default)]
    pub queues: Vec<SampledQueue>,
}

/// One receive queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledQueue {
    /// Number of the queue.
    pub queue: u32,
    /// Packets received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Bytes received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Interrupts of its vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<u64>,
    /// The CPU that handled most of its interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuId>,
}

impl TrafficSample {
    /// What was counted on this CPU.
    pub fn cpu(&self, cpu: CpuId) -> Option<&SampledCpu> {
        self.cpus.iter().find(|c| c.cpu == cpu)
    }

    /// What was counted on this interface.
    pub fn interface(&self, dev: &str) -> Option<&SampledInterface> {
        self.interfaces.iter().find(|i| i.dev == dev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_this_and_of_later_versions_are_read() {
        let taken = Sample::Taken(TrafficSample {
            duration_ms: 5000,
            cpus: vec![SampledCpu { cpu: CpuId(3), busy_permille: Some(125), interrupt_permille: None }],
            interfaces: vec![SampledInterface { dev: "eth0".into(), frames: Some(10), ..SampledInterface::default() }],
        });
        let json = serde_json::to_value(&taken).unwrap();
        assert_eq!(json["taken"]["cpus"][0], serde_json::json!({ "cpu": 3, "busy_permille": 125 }));
        assert_eq!(serde_json::from_value::<Sample>(json).unwrap(), taken);
        let not = Sample::NotTaken(NotSampled::NotRecorded);
        assert_eq!(serde_json::to_value(&not).unwrap(), serde_json::json!({ "not_taken": "not_recorded" }));
        let later: Sample = serde_json::from_value(serde_json::json!({ "not_taken": "a_later_one" })).unwrap();
        assert_eq!(later, Sample::NotTaken(NotSampled::Unknown));
    }
}
