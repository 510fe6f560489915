//! Explanations of the rules that plans refer to.

/// A rule behind a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// `A01`, `R0.09`: cited by steps and by the findings of `check`.
    pub id: &'static str,
    /// A few words in lower case, without a full stop.
    pub title: &'static str,
    /// Whole sentences: the cost, and a measurement if there is one.
    pub why: &'static str,
    /// The document that the rule comes from.
    pub source: &'static str,
}

const SCALING: &str = "kernel documentation, networking/scaling";
const MODEL: &str = "a model of ringwise (ringwise help modelled)";
const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";

const RULES: &[RuleText] = &[
    RuleText {
        id: "A01",
        title: "queues share a CPU",
        why: "One CPU that handles many queues limits the whole device while other CPUs are idle: a router lost packets from 558,000 packets per second on, a rate that six CPUs handled without loss.",
        source: ROUTER,
    },
    RuleText {
        id: "A02",
        title: "interrupt may move among CPUs",
        why: "If the mask has several CPUs, the kernel, the interrupt controller or a daemon chooses one of them without regard to queues, and may choose another one when a CPU or the interface goes down and comes back. A layout with one CPU per vector can be checked.",
        source: SCALING,
    },
    RuleText {
        id: "A03",
        title: "interrupt on a remote node",
        why: "The packet's data is in the cache and memory of the device's node. A CPU on another node fetches every cache line over the link between sockets; measurements range from 10 % to a factor of 4.",
        source: SCALING,
    },
    RuleText {
        id: "A04",
        title: "two queues on one physical core",
        why: "Hardware threads share the execution units and first-level caches of one core. While another local or nearby core is idle, a queue performs better there.",
        source: SCALING,
    },
    RuleText {
        id: "A06",
        title: "irqbalance moves pinned interrupts",
        why: "Every ten seconds irqbalance moves interrupts that are not banned, and it does not know that two of them belong to one queue pair.",
        source: "irqbalance(1), API and --policyscript",
    },
    RuleText {
        id: "A08",
        title: "interrupt on an isolated CPU",
        why: "Isolated CPUs are set aside so that nothing disturbs the programs that run there.",
        source: "kernel parameters: isolcpus, nohz_full",
    },
    RuleText {
        id: "A15",
        title: "several interfaces use the same CPUs",
        why: "Two busy devices on the same CPUs compete for them while other CPUs are idle.",
        source: ROUTER,
    },
    RuleText {
        id: "Q01",
        title: "fewer queues than local cores",
        why: "One CPU at a time processes a queue, so cores beyond the number of queues cannot take part.",
        source: ROUTER,
    },
    RuleText {
        id: "Q02",
        title: "more queues than physical cores",
        why: "Every queue costs interrupts and memory; more than one queue per core does not spread the load any further.",
        source: SCALING,
    },
    RuleText {
        id: "Q03",
        title: "more queues than CPUs",
        why: "A second queue on one CPU costs another interrupt and another ring, but does not spread the load.",
        source: ROUTER,
    },
    RuleText {
        id: "Q04",
        title: "one receive queue",
        why: "With one queue, one CPU does all the work. RPS hands packets to CPUs that share its cache.",
        source: SCALING,
    },
    RuleText {
        id: "Q05",
        title: "RPS on top of RSS",
        why: "The device already spreads flows over its queues. RPS moves each burst a second time, with an inter-processor interrupt: removing RPS halved the softirq time of a storage server.",
        source: SCALING,
    },
    RuleText {
        id: "Q07",
        title: "RPS to remote CPUs",
        why: "A CPU that shares no cache with the interrupt's CPU fetches the packet from memory again.",
        source: SCALING,
    },
    RuleText {
        id: "Q09",
        title: "RFS shares do not add up",
        why: "The tables of all queues of an interface together should have as many entries as the host's table, and each size should be a power of two.",
        source: SCALING,
    },
    RuleText {
        id: "Q11",
        title: "RFS without sockets",
        why: "RFS follows the program that reads a socket. A host that forwards has no such program, and a host that binds its programs to the CPUs of the queues needs no lookup.",
        source: SCALING,
    },
    RuleText {
        id: "Q14",
        title: "no XPS",
        why: "Without a map, packets of programs choose their transmit queue by a hash, and CPUs contend for its lock; with a map, each CPU sends through its own queue.",
        source: SCALING,
    },
    RuleText {
        id: "Q15",
        title: "XPS and interrupts disagree",
        why: "The completion of a packet is best handled by the CPU that sent it, or by one that shares its cache.",
        source: SCALING,
    },
    RuleText {
        id: "Q16",
        title: "CPU without a transmit queue",
        why: "A CPU in no XPS mask falls back to the hash over all queues; every online CPU should be in a mask.",
        source: SCALING,
    },
    RuleText {
        id: "Q33",
        title: "RSS table weighted by CPU capacity",
        why: "Two threads share the resources of their core. With an even table their queues overflow while CPUs with a core of their own still have headroom. With shares by capacity, all CPUs are full at the same load. The capacity of two threads is a model: a third more than that of one.",
        source: MODEL,
    },
    RuleText {
        id: "R0.09",
        title: "the CPUs that a goal uses for queues",
        why: "A goal keeps some CPUs free for programs, and spreads the queues of all interfaces over CPUs and L3 caches. If other interfaces need the local CPUs too, a queue can get a CPU of a nearby node (to prevent it: --far-node never). On a forwarding host, queues with the same number of all interfaces share a CPU, so that a forwarded packet stays on it; unless this would leave much of the node's capacity unused, because the interfaces have fewer queues than the node has CPUs.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.11",
        title: "number of queues as requested",
        why: "Queues are created and removed at run time; most drivers restart the device for it.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.12",
        title: "queue pair on one CPU",
        why: "If one CPU handles the receive queue, the transmit queue and their interrupt, a flow stays in one cache.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.13",
        title: "NAPI thread on the CPU of its queue",
        why: "A thread that polls a queue does the work of the queue's interrupt: on another CPU it fetches every packet from another cache, and two such threads may run on one CPU.",
        source: "kernel documentation, networking/napi",
    },
    RuleText {
        id: "R2.03",
        title: "RFS table",
        why: "The kernel processes packets on the CPU where their program runs, so the data is in the right cache.",
        source: SCALING,
    },
    RuleText {
        id: "R2.04",
        title: "accelerated RFS",
        why: "With RFS, the kernel hands a packet on to its program's CPU; with a driver that steers flows, the packet arrives there. The driver needs the ntuple feature, and derives the queue nearest to a CPU from its interrupts.",
        source: SCALING,
    },
    RuleText {
        id: "R3.16",
        title: "fewest queues that carry the load",
        why: "The number of interrupts grows with the number of queues; the best number is the smallest one that does not overflow.",
        source: SCALING,
    },
    RuleText {
        id: "R3.17",
        title: "RPS costs an inter-processor interrupt",
        why: "Handing a packet to another CPU costs an inter-processor interrupt and a wake-up: this is worth it for throughput, but not for latency.",
        source: SCALING,
    },
    RuleText {
        id: "R4.07",
        title: "groups of queues on both nodes",
        why: "Each latency queue shares a core with a bulk queue rather than with another latency queue.",
        source: "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)",
    },
    RuleText {
        id: "R1.10",
        title: "flow rules need ntuple",
        why: "A device accepts flow rules only while the feature is on; switching it off deletes them.",
        source: "ethtool(8)",
    },
    RuleText {
        id: "R4.02",
        title: "adaptive off before fixed values",
        why: "Adaptive moderation chooses the interval itself and overwrites configured values.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.04",
        title: "a policy for each group of queues",
        why: "Small messages need an interrupt at once, streams need few interrupts: one interval for both is bad for one of them.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.05",
        title: "shares of groups in the RSS table",
        why: "A queue that is reserved for named flows stays fast only as long as the RSS table sends no other flow to it.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.06",
        title: "named flows are steered to their group",
        why: "A rule steers a named flow to a queue of its group, or to a context that spreads such flows over all queues of the group. ringwise removes what it created for a group and no flow needs any more: queues that only old rules reach are lost to all other flows.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "H07",
        title: "CPUs in deep sleep states",
        why: "A CPU in a deep C-state needs tens of microseconds to wake up, and the packet waits for it. A limit on single CPUs costs less power than a limit on all CPUs.",
        source: "kernel documentation, power/pm_qos_interface",
    },
    RuleText {
        id: "M01",
        title: "moderation for the goal",
        why: "A short fixed interval gives the lowest latency, a long one gives the highest throughput for the least CPU time, and an adaptive one suits a changing load.",
        source: "Improve network performance by setting per-queue interrupt moderation in Linux (Intel), and for adaptive moderation kernel documentation, networking/net_dim",
    },
    RuleText {
        id: "M10",
        title: "GRO",
        why: "Merged packets of a stream pass through the network stack once instead of many times.",
        source: "kernel documentation, networking/segmentation-offloads",
    },
    RuleText {
        id: "M11",
        title: "LRO on a host that forwards",
        why: "LRO merges packets irreversibly: they cannot be forwarded as they came, so the kernel drops them. GRO can be undone and stays on.",
        source: "kernel source, net/core/dev.c: dev_disable_lro",
    },
    RuleText {
        id: "M14",
        title: "segmentation by the device",
        why: "A long send passes through the network stack once, and the device splits it into packets.",
        source: "kernel documentation, networking/segmentation-offloads",
    },
    RuleText {
        id: "R1.07",
        title: "pause frames off",
        why: "With pause frames, the slowest CPU slows down all others: packets wait in the switch, also those for idle queues. Leave pause frames on for RDMA and lossless storage.",
        source: "Pushing the Limits of Kernel Networking (Duyck, 2015)",
    },
    RuleText {
        id: "W01",
        title: "configured by the user",
        why: "A setting in the configuration file or on the command line overrides the value that the goal would set.",
        source: "the user",
    },
];

/// The text of a rule that a plan refers to; `None` for an unknown id.
pub fn explain_rule(id: &str) -> Option<&'static RuleText> {
    RULES.iter().find(|r| r.id == id)
}

/// The document that a rule comes from; empty for an unknown id.
pub(crate) fn source_of(id: &str) -> String {
    explain_rule(id).map_or_else(String::new, |r| r.source.to_string())
}

/// Every rule that plans may cite, by id.
pub fn rules() -> &'static [RuleText] {
    RULES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_once_and_with_text() {
        for (i, r) in RULES.iter().enumerate() {
            assert!(RULES[..i].iter().all(|o| o.id != r.id), "{} twice", r.id);
            assert!(r.why.ends_with('.') && !r.title.is_empty() && !r.source.is_empty(), "{}", r.id);
        }
    }
}
