//! Goals: what a host is for.

use super::{Topic, word};

pub(super) const TOPICS: &[Topic] = &[
    word(
        &["goal", "goals"],
        "what a host is for; the goal decides the plan",
        "A goal chooses the number of queues, their CPUs and the settings around them. plan and \
         apply use the goal of the configuration file, else balanced, also after apply --goal forward: name the goal \
         each time, or write it into the file. check uses the applied goal. No goal interrupts traffic without --allow-disruption: such changes are skipped, and listed with \
         their command.",
        &[
            "Set|ringwise plan --goal rpc; configuration key goal, in [host] or for one interface",
            "Values|balanced, forward (router), rpc (server), stream (bulk data), latency, mixed (latency and bulk \
             on one interface). Only --goal has auto, too: it chooses by the role of the host",
            "Details|A key of the configuration file or of --set overrides the goal. ringwise plan --goal rpc \
             --print-config prints what a goal sets as a configuration file.",
            "See|ringwise help forward, rpc, ...; ringwise bench --help measures which goal is faster here",
        ],
    ),
    word(
        &["balanced"],
        "the default: spread what is there, never interrupt traffic",
        "Keeps the queues as they are, pins each interrupt to a CPU, one local core for each queue first, and gives \
         each CPU a transmit queue.",
        &[
            "Use it|if you do not know the workload, or no other goal fits",
            "Queues|kept",
            "RPS|set on a device with one queue, switched off on others, except for PPPoE and tunnels (ringwise help pppoe) and where you \
             configure rps_cpus; RFS is kept",
            "Rest|kept; nothing in it interrupts traffic",
            "Try|ringwise plan --goal balanced",
            "See|ringwise help goal, local, irq, xps",
        ],
    ),
    word(
        &["forward", "router", "firewall", "gateway"],
        "routers and firewalls: packets are passed on",
        "Packets leave by the queue of the CPU that received them, so one CPU does all the work for a packet. All \
         ports of a node that are planned together get the same layout, with queue 3 of each on the same CPU. If that would leave \
         much of the node's capacity unused, they get different layouts. A packet that leaves by a port of another node is also sent by the \
         CPU that received it, but an interrupt on that other node completes it.",
        &[
            "Use it|on hosts that pass on more packets than they answer",
            "Queues|one for each local CPU, hardware threads included; changing the number needs --allow-disruption. Nearby \
             nodes: ringwise help remote",
            "Ports|plan all ports in one command. A plan that names one port (plan eth1 --goal forward) neither reads \
             nor changes the layout of the others.",
            "RSS|the table is weighted by the capacity of the CPUs (ringwise help modelled) if that takes 5 % or more off \
             the busiest one. Only queues of interfaces of the plan count. A table that is configured, or was changed \
             outside ringwise, stays.",
            "RPS|set on a device with one queue, on all threads of other cores near it; switched off on others, \
             except for PPPoE and tunnels (ringwise help pppoe) and where you configure rps_cpus. RFS off",
            "Rest|LRO off, and pause frames off except where RDMA uses the device (both with --allow-disruption); \
             moderation is kept",
            "Try|ringwise plan --goal forward",
            "See|rule Q33; ringwise help goal, rss, lro, pause, skipped",
        ],
    ),
    word(
        &["rpc", "server", "database", "dns", "postgres", "postgresql", "request and response"],
        "servers: many small requests and answers",
        "At most one queue for each local physical core, and received packets are processed on the CPU of the \
         program that reads them.",
        &[
            "Use it|for databases, DNS, caches, web servers, proxies",
            "Queues|at most one for each local core; an interface with more queues gets fewer only with ringwise plan \
             --goal rpc --allow-disruption",
            "RFS|on, with ntuple if the driver supports accelerated RFS (bnxt_en: with --allow-disruption)",
            "Rest|adaptive moderation where the driver supports it. The plan names CPUs for the program.",
            "Try|ringwise plan --goal rpc",
            "See|ringwise help goal, rfs, moderation",
        ],
    ),
    word(
        &["stream", "bulk data", "throughput", "storage"],
        "bulk data: few flows with much data",
        "Moderate interrupts and joined packets, so that a flow costs as little CPU time as possible.",
        &[
            "Use it|for backups, media and storage of large objects. Storage with many small requests (virtual disks, Ceph, \
             databases over NFS) answers requests: goal rpc",
            "Queues|one for each local core (with --allow-disruption)",
            "RFS|on",
            "Rest|policy bulk (62 us receive, 122 us transmit), GRO on, TSO on (with --allow-disruption). The \
             plan names other cores of the same L3 cache for the program.",
            "Try|ringwise plan --goal stream",
            "See|ringwise help goal, policy, gro, tso",
        ],
    ),
    word(
        &["latency", "low latency"],
        "the lowest delay, at the price of CPU time",
        "Few queues, short moderation, and CPUs that do not sleep deeply.",
        &[
            "Use it|if single messages must be answered as soon as possible, and CPU time is available",
            "Queues|on half of the local cores, on all if there are fewer than four; never on second threads",
            "RPS|off, RFS too",
            "Rest|policy latency (5 us receive, 10 us transmit); the CPUs of the queues wake up within 5 us",
            "Try|ringwise plan --goal latency",
            "See|ringwise help goal, policy, cpu latency; ringwise hold --help",
        ],
    ),
    word(
        &["mixed"],
        "latency and bulk on one interface, in two groups of queues",
        "Divides the existing queues into a group for latency (a third) and a group for bulk data, each with its own \
         moderation.",
        &[
            "Use it|if short messages and streams share an interface",
            "Queues|kept; --latency-queues N sets the size of the first group, --sample chooses it by the traffic",
            "RFS|kept",
            "Rest|policy latency for one group, bulk for the other (cpu if --sample finds busy CPUs), per queue if the \
             driver supports it. Flows reach a group by rules in the configuration file; without flows, the RSS table \
             spreads them over both.",
            "Try|ringwise plan --goal mixed",
            "See|docs/groups.md; ringwise help group, policy",
        ],
    ),
    word(
        &["auto"],
        "the goal that fits the role of the host",
        "--goal auto looks at the host: one that forwards between several interfaces, or bridges them, gets forward, \
         one with 100 or more TCP sockets gets rpc, any other gets balanced. ringwise prints the goal and the \
         reason.",
        &["Try|ringwise plan --goal auto", "See|ringwise help role, goal"],
    ),
];
