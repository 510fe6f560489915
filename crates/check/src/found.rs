//! Findings that rules make themselves, as data: a code with its facts. Each family of rules has one enum. The file of
//! the family formats text and evidence; it decides nothing.

mod drops;
mod forward;
mod host;
mod irq;
mod moderation;
mod programs;
mod rss;
mod soft;
mod steer;
pub(crate) mod words;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use drops::{DropFound, GrownCounter};
pub use forward::ForwardFound;
pub use host::HostFound;
pub use irq::{IrqFound, Misdelivered};
pub use moderation::ModerationFound;
pub use programs::{ProgramFound, RemoteMemory, RemoteThread, ThreadAt};
pub use rss::RssFound;
pub use soft::SoftFound;
pub use steer::SteerFound;

/// What a rule found, by family of rules. No code is used by two families. In JSON it is `code` and `facts`;
/// [`fmt::Display`] is the text of the finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FindingDetails {
    /// Losses, `D01` and following.
    Drop(DropFound),
    /// RSS: number of queues, table, key and flow rules.
    Rss(Box<RssFound>),
    /// The software path: queueing disciplines, backlogs, busy polling.
    Soft(SoftFound),
    /// PCIe, memory, power and other properties of the host.
    Host(HostFound),
    /// Forwarding: connection tracking, bridges, VLANs, bonds.
    Forward(ForwardFound),
    /// Steering in software: RPS, RFS and XPS.
    Steer(SteerFound),
    /// Interrupt moderation, rings, offloads and pause frames.
    Moderation(ModerationFound),
    /// Interrupts and their CPUs.
    Irq(IrqFound),
    /// Threads of programs and the CPUs of interrupts.
    Program(ProgramFound),
    /// A finding of a later version of ringwise, kept as it was read.
    Other {
        /// The code, unknown to this version.
        code: String,
        /// The facts as they were read; null if there were none.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        facts: Value,
    },
}

impl fmt::Display for FindingDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop(x) => x.fmt(f),
            Self::Rss(x) => x.fmt(f),
            Self::Soft(x) => x.fmt(f),
            Self::Host(x) => x.fmt(f),
            Self::Forward(x) => x.fmt(f),
            Self::Steer(x) => x.fmt(f),
            Self::Moderation(x) => x.fmt(f),
            Self::Irq(x) => x.fmt(f),
            Self::Program(x) => x.fmt(f),
            Self::Other { code, .. } => f.write_str(code),
        }
    }
}

impl FindingDetails {
    /// The facts behind the finding, one line each.
    pub(crate) fn evidence(&self) -> Vec<String> {
        match self {
            Self::Drop(x) => x.evidence(),
            Self::Irq(x) => x.evidence(),
            Self::Program(x) => x.evidence(),
            Self::Forward(_)
            | Self::Host(_)
            | Self::Moderation(_)
            | Self::Rss(_)
            | Self::Soft(_)
            | Self::Steer(_)
            | Self::Other { .. } => Vec::new(),
        }
    }
}

impl From<DropFound> for FindingDetails {
    fn from(x: DropFound) -> Self {
        Self::Drop(x)
    }
}

impl From<RssFound> for FindingDetails {
    fn from(x: RssFound) -> Self {
        Self::Rss(Box::new(x))
    }
}

impl From<SoftFound> for FindingDetails {
    fn from(x: SoftFound) -> Self {
        Self::Soft(x)
    }
}

impl From<IrqFound> for FindingDetails {
    fn from(x: IrqFound) -> Self {
        Self::Irq(x)
    }
}

impl From<ModerationFound> for FindingDetails {
    fn from(x: ModerationFound) -> Self {
        Self::Moderation(x)
    }
}

impl From<ProgramFound> for FindingDetails {
    fn from(x: ProgramFound) -> Self {
        Self::Program(x)
    }
}

impl From<SteerFound> for FindingDetails {
    fn from(x: SteerFound) -> Self {
        Self::Steer(x)
    }
}

impl From<ForwardFound> for FindingDetails {
    fn from(x: ForwardFound) -> Self {
        Self::Forward(x)
    }
}

impl From<HostFound> for FindingDetails {
    fn from(x: HostFound) -> Self {
        Self::Host(x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_code_its_facts_and_a_text() {
        let found: FindingDetails = DropFound::Ksoftirqd { cpu: ringwise_model::CpuId(3), percent: 71.4 }.into();
        let json = json!({ "code": "ksoftirqd", "facts": { "cpu": 3, "percent": 71.4 } });
        assert_eq!(
            (found.to_string().as_str(), &serde_json::to_value(&found).unwrap()),
            ("ksoftirqd/3 runs 71 % of the time", &json)
        );
        assert_eq!(serde_json::from_value::<FindingDetails>(json).unwrap(), found);
    }

    #[test]
    fn what_a_later_version_found_is_kept() {
        for json in [json!({ "code": "later", "facts": { "cpu": 3 } }), json!({ "code": "later" })] {
            let found: FindingDetails = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(found.to_string(), "later");
            assert_eq!(serde_json::to_value(&found).unwrap(), json);
        }
    }
}
