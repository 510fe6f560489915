//! Explanations of the rules that plans refer to.

/// A rule behind a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// `A01`, `R0.09`: cited by steps and by the findings of `check`.
    pub id: &'static str,
    /// A few words in lower case, without a full stop.
    pub title: &'static str,
    /// Whole sentences: what it costs, and the measurement where there is one.
    pub why: &'static str,
    /// The document that the rule comes from.
    pub source: &'static str,
}

const SCALING: &str = "kernel documentation, networking/scaling";
const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";

const RULES: &[RuleText] = &[
    RuleText {
        id: "A01",
        title: "queues share a CPU",
        why: "One CPU that serves many queues is the limit of the whole device while others idle: a router lost packets from 558,000 a second that six CPUs carried without loss.",
        source: ROUTER,
    },
    RuleText {
        id: "A02",
        title: "interrupt may wander",
        why: "With several CPUs in the mask the kernel, the interrupt controller or a daemon chooses one, without knowing of queues, and may choose anew when a CPU or the interface comes and goes. One CPU a vector is a layout that can be checked.",
        source: SCALING,
    },
    RuleText {
        id: "A03",
        title: "interrupt away from the device",
        why: "The packet's data lies in the cache and memory of the device's node. A CPU on another node fetches every line over the link between sockets; measurements range from 10 % to a factor of 4.",
        source: SCALING,
    },
    RuleText {
        id: "A04",
        title: "two queues on one physical core",
        why: "Hardware threads share one core's execution units and first-level caches. While another near core is idle, a queue does better there.",
        source: SCALING,
    },
    RuleText {
        id: "A08",
        title: "interrupt on an isolated CPU",
        why: "Isolated CPUs were set aside so that nothing disturbs what runs there.",
        source: "kernel parameters: isolcpus, nohz_full",
    },
    RuleText {
        id: "A15",
        title: "interfaces pile up on the same CPUs",
        why: "Two busy devices that chose the same CPUs compete there while others idle.",
        source: ROUTER,
    },
    RuleText {
        id: "Q01",
        title: "fewer queues than near cores",
        why: "Each queue is served by one CPU at a time: cores beyond the number of queues cannot take part.",
        source: ROUTER,
    },
    RuleText {
        id: "Q02",
        title: "more queues than physical cores",
        why: "Every queue costs interrupts and memory; beyond one a core there is nothing more to share out.",
        source: SCALING,
    },
    RuleText {
        id: "Q03",
        title: "more queues than CPUs",
        why: "Two queues of one CPU cost a second interrupt and a second ring, and share out nothing.",
        source: ROUTER,
    },
    RuleText {
        id: "Q04",
        title: "one receive queue",
        why: "With one queue one CPU does all the work. RPS hands packets to CPUs that share its cache.",
        source: SCALING,
    },
    RuleText {
        id: "Q05",
        title: "RPS on top of RSS",
        why: "The device spreads flows over its queues already. RPS moves each burst a second time, with an interrupt between CPUs: removing it halved the softirq time of a storage server.",
        source: SCALING,
    },
    RuleText {
        id: "Q07",
        title: "RPS to CPUs that are far",
        why: "A packet handed to a CPU outside the cache of the interrupt's CPU is fetched again from memory.",
        source: SCALING,
    },
    RuleText {
        id: "Q09",
        title: "RFS shares do not add up",
        why: "The tables of the queues together should hold as many flows as the host's table, each a power of two.",
        source: SCALING,
    },
    RuleText {
        id: "Q11",
        title: "RFS without sockets",
        why: "RFS follows the program that reads a socket. A host that forwards has none, and one that binds programs to queues needs no lookup.",
        source: SCALING,
    },
    RuleText {
        id: "Q14",
        title: "no XPS",
        why: "Without a map CPUs choose transmit queues by a hash and contend for their locks; with it each sends on its own.",
        source: SCALING,
    },
    RuleText {
        id: "Q15",
        title: "XPS and interrupts disagree",
        why: "A packet's completion is best handled by the CPU that sent it, or one that shares its cache.",
        source: SCALING,
    },
    RuleText {
        id: "Q16",
        title: "CPU without a transmit queue",
        why: "A CPU in no XPS mask falls back to the hash over all queues; every online CPU belongs in exactly one.",
        source: SCALING,
    },
    RuleText {
        id: "Q33",
        title: "the RSS table by what CPUs carry",
        why: "Two threads of a core share it. With an even table their queues overflow while CPUs that have a core to themselves still have room. Shares by capacity fill all CPUs at the same load. The capacity of two threads is a model: a third more than that of one.",
        source: SCALING,
    },
    RuleText {
        id: "R0.09",
        title: "the CPUs that a goal uses for queues",
        why: "A goal keeps some CPUs free for programs. On a forwarding host, queues with the same number of all interfaces share a CPU, so that a forwarded packet stays on it.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.11",
        title: "number of queues as asked",
        why: "Queues are made and removed at run time; most drivers restart the device for it.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.12",
        title: "a pair on one CPU",
        why: "The receive queue, the transmit queue and their interrupt on one CPU keep a flow in one cache.",
        source: ROUTER,
    },
    RuleText {
        id: "R0.13",
        title: "NAPI thread with its queue",
        why: "A thread that polls a queue does the work that its interrupt would do: elsewhere it fetches every packet from another cache, and two of them may come to one CPU.",
        source: "kernel documentation, networking/napi",
    },
    RuleText {
        id: "R2.03",
        title: "RFS table",
        why: "Packets are processed on the CPU where their program runs, so its data is in the right cache.",
        source: SCALING,
    },
    RuleText {
        id: "R2.04",
        title: "accelerated RFS",
        why: "With RFS a packet is handed on to its program's CPU; with a driver that steers, it arrives there. The driver needs the ntuple feature, and knows which queue is nearest to a CPU by its interrupts.",
        source: SCALING,
    },
    RuleText {
        id: "R3.16",
        title: "fewest queues that carry the load",
        why: "Interrupts grow with the number of queues; the best is the smallest number that does not overflow.",
        source: SCALING,
    },
    RuleText {
        id: "R3.17",
        title: "RPS costs an interrupt between CPUs",
        why: "Handing a packet to another CPU takes an inter-processor interrupt and a wake-up: worth it for throughput, not for latency.",
        source: SCALING,
    },
    RuleText {
        id: "R4.07",
        title: "groups of queues on both nodes",
        why: "Each latency queue shares a core with a bulk queue rather than with its like.",
        source: "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)",
    },
    RuleText {
        id: "R1.10",
        title: "rules need ntuple",
        why: "A device takes flow rules only with the feature on; switching it off drops them.",
        source: "ethtool(8)",
    },
    RuleText {
        id: "R4.02",
        title: "adaptive off before fixed values",
        why: "Adaptive moderation chooses the interval itself, over whatever was set.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.04",
        title: "a policy for each group of queues",
        why: "Small messages want an interrupt at once, streams want few: with one interval for all, one of them loses.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.05",
        title: "groups share the table",
        why: "A queue that is kept for named flows stays quick only as long as no other flow is spread over it.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "R4.06",
        title: "named flows reach their group",
        why: "A rule leads a named flow to a queue of its group, or to a context that spreads it over all of them. What was made for a group and leads nothing to it any more goes: queues that only old rules reach are lost to all other flows.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "H07",
        title: "CPUs that sleep deeply",
        why: "A CPU in a deep C-state takes tens of microseconds to wake up, and the packet waits for it. A limit on single CPUs costs less power than one for the machine.",
        source: "kernel documentation, power/pm_qos_interface",
    },
    RuleText {
        id: "M01",
        title: "moderation as the goal wants it",
        why: "A short fixed interval answers soonest, a long one carries most for the least CPU time, and an adaptive one suits load that comes and goes.",
        source: crate::policies::SOURCE,
    },
    RuleText {
        id: "M10",
        title: "GRO",
        why: "Packets of a stream that are joined go through the stack once instead of many times.",
        source: "kernel documentation, networking/segmentation-offloads",
    },
    RuleText {
        id: "M11",
        title: "LRO on a host that forwards",
        why: "LRO joins packets for good: what is sent on is not what came, so the kernel drops it. GRO can be undone and stays.",
        source: "kernel source, net/core/dev.c: dev_disable_lro",
    },
    RuleText {
        id: "M14",
        title: "segmentation by the device",
        why: "A long send goes through the stack once and is cut into packets by the device.",
        source: "kernel documentation, networking/segmentation-offloads",
    },
    RuleText {
        id: "R1.07",
        title: "pause frames off",
        why: "With pause frames the slowest CPU decides for all: packets wait in the switch, also those of idle queues. Off is wrong below RDMA and lossless storage.",
        source: "Pushing the Limits of Kernel Networking (Duyck, 2015)",
    },
    RuleText {
        id: "W01",
        title: "laid down by the user",
        why: "A setting in the configuration file or on the command line goes before what the goal would have there.",
        source: "the user",
    },
];

/// The text of a rule that a plan refers to; `None` for an unknown id.
pub fn explain_rule(id: &str) -> Option<&'static RuleText> {
    RULES.iter().find(|r| r.id == id)
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
