//! Queues, and how the device spreads flows over them.

use std::fmt;

use ringwise_model::CpuId;
use ringwise_model::words::plural;
use ringwise_plan::Obstacle;
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum RssFound {
    /// `busy_percent` of `cpu`, which serves one of the queues.
    FewQueuesBusy {
        queues: u32,
        near_cores: u32,
        cpu: CpuId,
        busy_percent: f64,
    },
    MoreQueuesThanCores {
        queues: u32,
        near_cores: u32,
    },
    MoreQueuesThanCpus {
        queues: u32,
        cpus: u32,
    },
    MoreQueuesThanNearCpus {
        queues: u32,
        near_cpus: u32,
    },
    UdpByAddresses {
        udp_percent: f64,
    },
    TableUneven {
        queue: u32,
        entries: u32,
        of: u32,
        /// That the table names.
        queues: u32,
    },
    QueuesWithoutEntries {
        queues: Vec<u32>,
        of: u32,
        named: u32,
    },
    TableSmall {
        entries: u32,
        queues: u32,
    },
    /// As the plan says it.
    FewerRefused {
        obstacle: Obstacle,
    },
    /// The busiest one, in times of the mean.
    FlowsUneven {
        times: f64,
        queues: u32,
    },
    KeyOfZeros,
    KeyRepeats {
        bytes: String,
    },
    TwoQueuesAConnection {
        tracked: u64,
    },
    RulesConfiguredFeatureOff,
    RulesFeatureOff {
        rules: u32,
    },
    RuleToGoneContext {
        location: u32,
        flow: String,
        context: u32,
    },
    RuleToGoneQueue {
        location: u32,
        flow: String,
        queue: u32,
        of: u32,
    },
    OwnSteeringReorders {
        per_second: f64,
    },
    FunctionFewQueues {
        most: u32,
        cpus: u32,
    },
}

impl fmt::Display for RssFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |n: &u32, what: &str| plural(*n as usize, what);
        match self {
            Self::FewQueuesBusy { queues, near_cores, cpu, busy_percent } => write!(
                f,
                "{} for {}, and CPU {cpu} is {busy_percent:.0} % busy with them",
                some(queues, "queue"),
                some(near_cores, "near core")
            ),
            Self::MoreQueuesThanCores { queues, near_cores } => {
                write!(f, "{queues} queues for {}", some(near_cores, "near physical core"))
            }
            Self::MoreQueuesThanCpus { queues, cpus } => write!(f, "{queues} queues for {}", some(cpus, "CPU")),
            Self::MoreQueuesThanNearCpus { queues, near_cpus } => {
                write!(f, "{queues} queues for {}", some(near_cpus, "near CPU"))
            }
            Self::UdpByAddresses { udp_percent } => {
                write!(f, "UDP is hashed by addresses only; {udp_percent:.0} % of packets are UDP")
            }
            Self::TableUneven { queue, entries, of, queues } => write!(
                f,
                "queue {queue} has {entries} of {of} entries, {:.0} % instead of {:.0} %",
                f64::from(*entries) * 100.0 / f64::from(*of),
                100.0 / f64::from(*queues)
            ),
            Self::QueuesWithoutEntries { queues: idle, of, named } => {
                let get = if idle.len() == 1 { "gets" } else { "get" };
                write!(f, "{} of {of} {get} no flows: the table names only {named}", queues(idle))
            }
            Self::TableSmall { entries, queues } => write!(f, "{entries} entries for {queues} queues"),
            Self::FewerRefused { obstacle } => obstacle.fmt(f),
            Self::FlowsUneven { times, queues } => {
                write!(f, "the busiest receive queue has {times:.1} times the mean of {queues}")
            }
            Self::KeyOfZeros => f.write_str("the hash key is all zeros: every flow goes to one queue"),
            Self::KeyRepeats { bytes } => write!(f, "the hash key repeats {bytes}: it is symmetric"),
            Self::TwoQueuesAConnection { tracked } => write!(
                f,
                "{} connections are tracked, and the hash does not bring their two directions together",
                count(*tracked)
            ),
            Self::RulesConfiguredFeatureOff => f.write_str("flow rules are laid down, but the feature ntuple is off"),
            Self::RulesFeatureOff { rules } => {
                write!(f, "{} although the feature ntuple is off", some(rules, "flow rule"))
            }
            Self::RuleToGoneContext { location, flow, context } => {
                write!(f, "rule {location} leads {flow} to context {context}, which was deleted")
            }
            Self::RuleToGoneQueue { location, flow, queue, of } => {
                write!(f, "rule {location} leads {flow} to queue {queue} of {of}")
            }
            Self::OwnSteeringReorders { per_second } => {
                write!(f, "{per_second:.0} TCP segments/s come out of order while the driver steers flows by itself")
            }
            Self::FunctionFewQueues { most, cpus } => {
                write!(f, "{} at most for {cpus} CPUs", some(most, "queue"))
            }
        }
    }
}
