//! Findings about queues, and how the device spreads flows over them.

use std::fmt;

use ringwise_model::CpuId;
use ringwise_model::words::plural;
use ringwise_plan::Obstacle;
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

/// What the rules about RSS found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum RssFound {
    /// There are fewer queues than near cores, and a CPU that serves one of them is busy.
    FewQueuesBusy {
        /// Receive queues in use.
        queues: u32,
        /// Physical cores on the node of the device.
        near_cores: u32,
        /// The busiest CPU that serves one of the queues.
        cpu: CpuId,
        /// Its share of time in softirqs and interrupts.
        busy_percent: f64,
    },
    /// There are more queues than physical cores near the device.
    MoreQueuesThanCores {
        /// Receive queues in use.
        queues: u32,
        /// Physical cores on the node of the device that are not isolated.
        near_cores: u32,
    },
    /// There are more queues than CPUs.
    MoreQueuesThanCpus {
        /// Receive queues in use.
        queues: u32,
        /// Online CPUs.
        cpus: u32,
    },
    /// There are more queues than CPUs near the device.
    MoreQueuesThanNearCpus {
        /// Receive queues in use.
        queues: u32,
        /// CPUs on the node of the device that are not isolated.
        near_cpus: u32,
    },
    /// Much traffic is UDP, whose ports are not hashed, so that all flows between two hosts share a queue.
    UdpByAddresses {
        /// Share of UDP in the received packets.
        udp_percent: f64,
    },
    /// The RSS table gives a queue clearly more entries than others.
    TableUneven {
        /// The queue with most entries.
        queue: u32,
        /// Its entries.
        entries: u32,
        /// Entries of the table.
        of: u32,
        /// Queues that the table names.
        queues: u32,
    },
    /// The RSS table does not name some of the queues, so they receive no flows.
    QueuesWithoutEntries {
        /// The queues without entries.
        queues: Vec<u32>,
        /// Receive queues in use.
        of: u32,
        /// Queues that the table names.
        named: u32,
    },
    /// The RSS table sends flows to queues whose data only one program can read.
    ReachesHeldQueues {
        /// The queues.
        queues: Vec<u32>,
        /// Entries of the table that name them.
        entries: u32,
        /// Entries of the table.
        of: u32,
    },
    /// The RSS table has few entries for each queue, so it cannot be even.
    TableSmall {
        /// Entries of the table.
        entries: u32,
        /// Receive queues in use.
        queues: u32,
    },
    /// The plan cannot use fewer queues because of a flow rule.
    FewerRefused {
        /// What prevents the plan from reducing the number of queues.
        obstacle: Obstacle,
    },
    /// One receive queue gets far more packets than the others.
    FlowsUneven {
        /// Packets of the busiest queue, divided by the mean.
        times: f64,
        /// Receive queues that were counted.
        queues: u32,
    },
    /// The hash key consists of zeros.
    KeyOfZeros,
    /// The hash key repeats a short pattern, so flows spread less evenly.
    KeyRepeats {
        /// The pattern, in hexadecimal.
        bytes: String,
    },
    /// The hash assigns the two directions of a connection to different queues, on a host that tracks connections.
    TwoQueuesAConnection {
        /// Entries in the connection table.
        tracked: u64,
    },
    /// Flow rules are configured, but the feature `ntuple` is off.
    RulesConfiguredFeatureOff,
    /// The device has flow rules, but the feature `ntuple` is off.
    RulesFeatureOff {
        /// Flow rules of the device.
        rules: u32,
    },
    /// A flow rule names an RSS context that does not exist.
    RuleToGoneContext {
        /// Location of the rule.
        location: u32,
        /// The flow that the rule matches, as text.
        flow: String,
        /// Number of the context.
        context: u32,
    },
    /// A flow rule names a queue that does not exist.
    RuleToGoneQueue {
        /// Location of the rule.
        location: u32,
        /// The flow that the rule matches, as text.
        flow: String,
        /// The queue that the rule names.
        queue: u32,
        /// Receive queues in use.
        of: u32,
    },
    /// The driver steers flows by itself, and TCP segments arrive out of order.
    OwnSteeringReorders {
        /// Segments out of order.
        per_second: f64,
    },
    /// A virtual function can have fewer queues than the host has CPUs.
    FunctionFewQueues {
        /// The largest number of queues.
        most: u32,
        /// Online CPUs.
        cpus: u32,
    },
    /// Virtual functions leave their physical function fewer queues than the host has CPUs.
    FewQueuesBesideFunctions {
        /// Virtual functions that exist.
        functions: u32,
        /// Those without a driver.
        unused: u32,
        /// The largest number of queues.
        most: u32,
        /// Online CPUs.
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
                some(near_cores, "local core")
            ),
            Self::MoreQueuesThanCores { queues, near_cores } => {
                write!(f, "{queues} queues for {}", some(near_cores, "usable local core"))
            }
            Self::MoreQueuesThanCpus { queues, cpus } => write!(f, "{queues} queues for {}", some(cpus, "online CPU")),
            Self::MoreQueuesThanNearCpus { queues, near_cpus } => {
                write!(f, "{queues} queues for {}", some(near_cpus, "usable local CPU"))
            }
            Self::UdpByAddresses { udp_percent } => {
                write!(f, "UDP is hashed by addresses only; {udp_percent:.0} % of packets are UDP")
            }
            Self::TableUneven { queue, entries, of, queues } => write!(
                f,
                "queue {queue} has {entries} of {of} RSS table entries, {:.0} % instead of {:.0} %",
                f64::from(*entries) * 100.0 / f64::from(*of),
                100.0 / f64::from(*queues)
            ),
            Self::QueuesWithoutEntries { queues: idle, of, named } => {
                let get = if idle.len() == 1 { "gets" } else { "get" };
                write!(f, "{} of {of} {get} no flows: the RSS table names only {}", queues(idle), some(named, "queue"))
            }
            Self::ReachesHeldQueues { queues: held, entries, of } => {
                let lists = if held.len() == 1 { "receives" } else { "receive" };
                write!(
                    f,
                    "{} {lists} into memory of a program, and {entries} of {of} entries of the RSS table send flows there",
                    queues(held)
                )
            }
            Self::TableSmall { entries, queues } => {
                write!(f, "the RSS table has {entries} entries for {queues} queues")
            }
            Self::FewerRefused { obstacle } => obstacle.fmt(f),
            Self::FlowsUneven { times, queues } => {
                write!(f, "the busiest of {queues} receive queues gets {times:.1} times the mean")
            }
            Self::KeyOfZeros => f.write_str("the hash key is all zeros: every flow goes to one queue"),
            Self::KeyRepeats { bytes } => write!(f, "the hash key repeats {bytes}: it is symmetric"),
            Self::TwoQueuesAConnection { tracked } => {
                write!(f, "{} connections are tracked, and the hash is not symmetric", count(*tracked))
            }
            Self::RulesConfiguredFeatureOff => f.write_str("flow rules are configured, but the feature ntuple is off"),
            Self::RulesFeatureOff { rules } => {
                write!(f, "{} in the device, but the feature ntuple is off", some(rules, "flow rule"))
            }
            Self::RuleToGoneContext { location, flow, context } => {
                write!(f, "flow rule {location} sends {flow} to RSS context {context}, which does not exist")
            }
            Self::RuleToGoneQueue { location, flow, queue, of } => {
                write!(f, "flow rule {location} sends {flow} to queue {queue}, but only {of} are in use")
            }
            Self::OwnSteeringReorders { per_second } => {
                write!(f, "{per_second:.0} TCP segments/s arrive out of order while the driver steers flows itself")
            }
            Self::FunctionFewQueues { most, cpus } => {
                write!(f, "the virtual function has at most {} for {cpus} CPUs", some(most, "queue"))
            }
            Self::FewQueuesBesideFunctions { functions, unused, most, cpus } => {
                let unused = match unused {
                    0 => String::new(),
                    n => format!(" ({n} without a driver)"),
                };
                let exist = some(functions, "virtual function");
                write!(f, "beside {exist}{unused}, it has at most {} for {cpus} CPUs", some(most, "queue"))
            }
        }
    }
}
