//! Families of kernel settings, and single ones that have a name of their own.

use crate::knob_values::KnobValues;

use super::Topic;

pub(super) const TOPICS: &[Topic] = &[
    Topic {
        names: &["irqbalance", "competing program", "competing programs", "competing", "ban list", "banned", "tuned"],
        title: "competing programs that change the same settings",
        body: "irqbalance, tuned, udev .link files and scripts can change what ringwise has set. ringwise \
         configures irqbalance to ignore the interrupts that ringwise pins. The others are listed, with what they set, \
         and are not changed.",
        parts: &[
            "Why|irqbalance moves interrupts in each of its intervals and does not know which queues belong \
             together, so a layout lasts only if irqbalance ignores these interrupts.",
            "Kernel|none: it is a list of banned interrupts inside irqbalance, which its socket \
             /run/irqbalance/irqbalancePID.sock shows and changes. It is lost when irqbalance restarts, so ringwise \
             also adds a policy script to its unit.",
            "Show|ringwise status, and every plan",
            "Set|automatically: every plan that pins interrupts adds them to the list",
            "See|docs/knobs/competing-programs.md; rules A06 A07; ringwise help drift",
        ],
        knob: Some(KnobValues::Irqbalance),
    },
    Topic {
        names: &["features", "feature", "offload", "offloads"],
        title: "work that the NIC or the network stack does for a packet",
        body: "Joining and splitting packets, checksums, hashing, VLAN tags: work besides carrying packets, done by the \
         NIC or by the kernel's network stack. A fixed feature cannot be changed on this device.",
        parts: &[
            "Why|Joined packets cost fewer passes through the stack. A router must not use LRO. Flow rules and \
             accelerated RFS need ntuple.",
            "Kernel|ethtool -k DEV shows, ethtool -K DEV changes",
            "Show|ringwise show DEV: line features; -v lists all",
            "Set|ringwise plan --goal GOAL --set eth1.features.gro=true; configuration key features, by the kernel's names or \
             ethtool's short ones. Most features restart the device, so they need --allow-disruption.",
            "Goals|forward proposes LRO off; stream sets GRO on and proposes TSO on; rpc sets ntuple on if the driver \
             supports accelerated RFS",
            "See|docs/knobs/features.md; rules M10 M11 M14 F08; ringwise help gro, lro, tso",
        ],
        knob: Some(KnobValues::Features),
    },
    Topic {
        names: &["gro", "generic receive offload", "rx gro", "rx gro hw"],
        title: "generic receive offload: the kernel joins received packets",
        body: "GRO joins consecutive packets of a flow into one before the network stack processes them. rx-gro is done by \
         the kernel, rx-gro-hw by the NIC. Joined packets can be split again, so GRO is safe for a router.",
        parts: &[
            "Why|Fewer passes through the stack save CPU time for streams. Switch it off where every packet must be \
             seen one by one.",
            "Kernel|features rx-gro and rx-gro-hw: ethtool -k DEV, ethtool -K DEV gro on",
            "Show|ringwise show DEV: line features",
            "Set|ringwise plan --goal GOAL --set eth1.features.gro=true; configuration key features.gro. rx-gro does not \
             interrupt traffic.",
            "Goals|stream sets it on; no other goal changes it",
            "See|docs/knobs/features.md; rule M10; ringwise help lro",
        ],
        knob: Some(KnobValues::Feature(&["rx-gro", "rx-gro-hw"])),
    },
    Topic {
        names: &["lro", "large receive offload", "rx lro"],
        title: "large receive offload: the NIC joins received packets",
        body: "LRO joins packets of a flow in the NIC or its driver. A joined packet cannot be split into the original \
         ones again, so a host that forwards or bridges must not use it: the kernel switches LRO off when forwarding \
         is switched on.",
        parts: &[
            "Why|Off on routers and bridges. On servers GRO does nearly the same.",
            "Kernel|feature rx-lro: ethtool -k DEV, ethtool -K DEV lro off",
            "Show|ringwise show DEV: line features",
            "Set|ringwise plan --goal GOAL --set eth1.features.lro=false --allow-disruption; configuration key features.lro",
            "Goals|forward proposes LRO off",
            "See|docs/knobs/features.md; rule M11; ringwise help gro",
        ],
        knob: Some(KnobValues::Feature(&["rx-lro"])),
    },
    Topic {
        names: &["tso", "gso", "segmentation", "tx tcp segmentation", "tx generic segmentation"],
        title: "TCP segmentation offload: the NIC splits what is sent",
        body: "With TSO the kernel gives the NIC one large TCP packet, and the NIC splits it into frames. GSO is the same \
         in the kernel, just before the driver. TSO is off while the checksum by the device or scatter-gather is \
         off; GSO needs scatter-gather.",
        parts: &[
            "Why|Sending large amounts of data costs far fewer passes through the stack.",
            "Kernel|features tx-tcp-segmentation and tx-generic-segmentation: ethtool -k DEV, ethtool -K DEV tso on",
            "Show|ringwise show DEV: line features",
            "Set|ringwise plan --goal GOAL --set eth1.features.tso=true --allow-disruption; configuration key features.tso",
            "Goals|stream proposes TSO on",
            "See|docs/knobs/features.md; rule M14",
        ],
        knob: Some(KnobValues::Feature(&["tx-tcp-segmentation", "tx-generic-segmentation"])),
    },
    Topic {
        names: &["channels", "channel", "queues", "number of queues", "combined"],
        title: "the number of queues of a device",
        body: "Drivers call a queue or a pair of queues a channel. A combined channel receives and transmits; some drivers \
         have separate rx and tx channels. Each queue has its own ring and is processed by one CPU at a time.",
        parts: &[
            "Why|More queues let more CPUs process packets. More queues than CPUs only cost interrupts and memory.",
            "Kernel|ethtool -l DEV shows the numbers and their maximum, ethtool -L DEV combined N changes them. A \
             change can take the link down for seconds and reset affinity, RSS and XPS.",
            "Show|ringwise: column QUEUES, for example 8/8; ringwise show DEV: first line",
            "Set|ringwise plan eth1 --queues 4 --allow-disruption, or ringwise plan --goal GOAL --set eth1.channels.combined=4 \
             --allow-disruption; configuration keys queues and channels",
            "Goals|forward, rpc, stream and latency propose a number; balanced and mixed keep it",
            "See|docs/knobs/channels.md; rules Q01 Q02 Q03; ringwise help 8/8",
        ],
        knob: Some(KnobValues::Channels),
    },
    Topic {
        names: &[
            "rings",
            "ring",
            "ring parameters",
            "descriptors",
            "rx buf len",
            "tcp data split",
            "hds thresh",
            "header split",
            "cqe size",
            "tx push",
            "rx push",
        ],
        title: "the number of packets that a queue can hold",
        body: "A ring is the list of descriptors of a queue. Receive descriptors hold packets until a CPU processes them; \
         transmit descriptors are packets that wait to be sent.",
        parts: &[
            "Why|A short receive ring loses packets in bursts. A very long one pushes recent packets out of the CPU \
             cache, so use the smallest size that loses nothing.",
            "Kernel|ethtool -g DEV shows the sizes and their maximum, ethtool -G DEV rx N changes them. A change \
             loses the packets in the rings.",
            "Show|ringwise show DEV: line rings",
            "Set|ringwise plan --goal GOAL --set eth1.rings.rx=1024 --allow-disruption (rx=max: the longest that the driver and the memory of the \
             node allow); configuration key rings, also for \
             receive buffers (rx_buf_len), header split (tcp_data_split, hds_thresh), completions (cqe_size) and push modes",
            "Goals|no goal changes rings",
            "See|docs/knobs/rings.md; rules M08 M09 M22 D04",
        ],
        knob: Some(KnobValues::Rings),
    },
    Topic {
        names: &["pause", "pause frames", "flow control", "autoneg"],
        title: "Ethernet flow control: the NIC asks the switch to wait",
        body: "With tx on, a NIC whose ring runs full sends pause frames; with rx on, it stops sending while the other end \
         asks it to. With autoneg on, both ends negotiate these two values; this is not the autonegotiation of the link's speed.",
        parts: &[
            "Why|Off where one slow receiver must not stop all others, as on a router. On where a lost packet costs \
             more than a wait (RDMA, storage without loss).",
            "Kernel|ethtool -a DEV shows, ethtool -A DEV autoneg off rx off tx off changes. The link is negotiated \
             again.",
            "Show|ringwise show DEV: line pause",
            "Set|ringwise plan --goal GOAL --set eth1.pause.autoneg=false --set eth1.pause.rx=false --set eth1.pause.tx=false \
             --allow-disruption; configuration key pause",
            "Goals|forward proposes it off, unless RDMA runs on the interface",
            "See|docs/knobs/pause.md; rules R1.07 D16",
        ],
        knob: Some(KnobValues::Pause),
    },
    Topic {
        names: &[
            "moderation",
            "coalesce",
            "coalescing",
            "interrupt moderation",
            "adaptive",
            "adaptive moderation",
            "rx usecs",
            "tx usecs",
            "dim",
            "adaptive-rx",
            "use-adaptive-rx",
            "use-adaptive-tx",
        ],
        title: "how long a NIC waits before it raises an interrupt",
        body: "Interrupt moderation, also called coalescing: the NIC waits some microseconds (rx-usecs, tx-usecs) or for \
         some frames, and raises one interrupt for all of them. With adaptive moderation the driver chooses the \
         values by load.",
        parts: &[
            "Why|A short wait answers sooner and costs CPU time. A long wait carries more packets for the same CPU \
             time. If you do not know the workload, leave adaptive moderation on.",
            "Kernel|ethtool -c DEV shows, ethtool -C DEV adaptive-rx off rx-usecs 62 changes; some drivers have \
             values for each queue (ethtool --per-queue)",
            "Drivers|igb, igc, e1000 and e1000e have no switch for it: rx-usecs 1 and 3 (e1000 and e1000e: also 4) select modes \
             in which the driver adapts, 10 to 10000 are fixed; igb with one interrupt for both directions has rx-usecs only",
            "Show|ringwise show DEV: line moderation",
            "Set|ringwise plan --goal GOAL --set eth1.coalesce.adaptive-rx=false --set eth1.coalesce.rx-usecs=62; configuration \
             key coalesce",
            "Goals|rpc: adaptive; stream: policy bulk; latency: policy latency; mixed: a policy for each group; \
             others keep it",
            "See|docs/knobs/coalesce.md; rules M01 M02 M03 M04; ringwise help policy, napi",
        ],
        knob: Some(KnobValues::Moderation),
    },
    Topic {
        names: &[
            "rss",
            "receive side scaling",
            "rss table",
            "indirection table",
            "weight",
            "weighted rss table",
            "hash",
            "hash key",
            "hash fields",
            "hash function",
            "toeplitz",
            "rss contexts",
            "rss context",
            "context",
            "table",
            "fields",
            "function",
            "key",
            "symmetric",
            "udp",
            "udp4",
            "udp6",
        ],
        title: "receive side scaling: the NIC spreads flows over queues",
        body: "The NIC computes a hash over fields of a packet (addresses, ports) and uses it to look up the queue in a \
         table. All packets of a flow have the same hash, so they stay in one queue. Most NICs use the hash function \
         toeplitz, others also xor or crc32. A context is a second table \
         with its own queues, for the flows that a rule sends to it.",
        parts: &[
            "Why|An uneven table overloads some queues. UDP is often hashed by addresses only, so one peer uses one \
             queue.",
            "Kernel|ethtool -x DEV shows the table, ethtool -X DEV equal 4 changes it; ethtool -n DEV rx-flow-hash \
             udp4 shows the fields",
            "Show|ringwise show DEV: line RSS",
            "Set|ringwise plan --goal GOAL --set 'eth1.rss.table=equal 4' --set eth1.rss.fields.udp4=sdfn; configuration key rss",
            "Goals|forward weights the table by the capacity of CPUs (help forward); mixed may divide it among groups",
            "See|docs/knobs/rss.md; rules Q18 Q19 Q20 Q21 Q33; ringwise explain shows the queue of a flow",
        ],
        knob: Some(KnobValues::Rss),
    },
    Topic {
        names: &[
            "flow rules",
            "flow rule",
            "rule of ethtool",
            "rule",
            "steering rule",
            "ntuple",
            "rx ntuple filter",
            "location",
        ],
        title: "rules in the NIC that send chosen flows to a queue",
        body: "A flow steering rule matches fields of a packet (protocol, addresses, ports) and sends the packet to a \
         queue or an RSS context, or drops it, before RSS decides. Most drivers need the feature ntuple for it.",
        parts: &[
            "Why|A service gets its own queues and CPUs, or unwanted packets are dropped before they cost CPU time.",
            "Kernel|ethtool -n DEV shows, ethtool -N DEV flow-type tcp4 dst-port 443 action 2 adds a rule, ethtool \
             -K DEV ntuple on switches the feature on",
            "Show|ringwise show DEV: line flow rules; -v lists them",
            "Set|ringwise plan --goal GOAL --set 'eth1.rule=tcp4 dst-port 443 action 2'; configuration key rule",
            "Goals|mixed, and groups of the configuration file, create rules for their flows; rpc sets ntuple on if the driver \
             supports accelerated RFS",
            "See|docs/knobs/rules.md, docs/groups.md; rules Q27 Q28 R1.10; the rules of check: ringwise help rules",
        ],
        knob: Some(KnobValues::FlowRules),
    },
    Topic {
        names: &[
            "irq",
            "affinity",
            "irq cpus",
            "irq affinity",
            "interrupt affinity",
            "interrupt cpu",
            "rx interrupt cpu",
            "tx interrupt cpu",
            "interrupt",
            "interrupts",
            "smp affinity",
            "effective",
            "effective cpu",
            "vector",
        ],
        title: "interrupt affinity: the CPUs that may take an interrupt",
        body: "A NIC interrupts a CPU when a queue has packets, and that CPU processes them. The affinity is the set of \
         CPUs that may take the interrupt; the effective CPU is the one that the kernel has chosen from it. An \
         interrupt with one CPU in its set is pinned. A plan that changes the number of queues lists rx and tx interrupts \
         apart: the driver may pair them in another way.",
        parts: &[
            "Why|Pinned to different local CPUs, queues share no CPU and their packets stay in a near cache. Every \
             goal sets it.",
            "Kernel|/proc/irq/N/smp_affinity_list, effective_affinity_list. The number N changes with the channels, \
             so ringwise names the queue instead.",
            "Show|ringwise show DEV: the matrix; -v adds the numbers",
            "Set|ringwise plan --goal GOAL --set 'eth1.irq_cpus.3=4'; configuration key irq_cpus",
            "See|docs/knobs/irq.md; rules A01 A02 A03 A08 A17; ringwise help matrix, pending, irqbalance",
        ],
        knob: Some(KnobValues::Interrupts),
    },
    Topic {
        names: &["xps", "xps cpus", "xps rxqs", "transmit packet steering"],
        title: "transmit packet steering: on which queue a CPU sends",
        body: "XPS maps CPUs to transmit queues: a CPU sends on the queues whose xps_cpus contain it. For a CPU that no queue \
         lists, a hash of the flow chooses the queue, and for forwarded packets the number of their receive queue. xps_rxqs \
         does the same by receive queue and takes precedence if both are set.",
        parts: &[
            "Why|CPUs that send on their own queue do not contend for its lock, and the completion interrupt arrives \
             nearby.",
            "Kernel|/sys/class/net/DEV/queues/tx-N/xps_cpus and xps_rxqs, as hexadecimal masks; empty: no CPU. A \
             device with one transmit queue has no XPS.",
            "Show|ringwise show DEV: line XPS",
            "Set|ringwise plan --goal GOAL --set 'eth1.xps_cpus.0=0,4'; configuration keys xps_cpus and xps_rxqs",
            "Goals|each CPU gets the queue with the nearest interrupt; with balanced and forward also its other queues",
            "See|docs/knobs/xps.md; rules Q14 Q15 Q16 Q17",
        ],
        knob: Some(KnobValues::Xps),
    },
    Topic {
        names: &["rps", "rps cpus", "receive packet steering", "one queue", "one receive queue", "single queue"],
        title: "receive packet steering: one receive queue, several CPUs",
        body: "RPS spreads the packets of one receive queue over several CPUs in software: the CPU that took the interrupt \
         passes packets to the CPUs in the mask. Each packet that is passed on costs an interrupt between CPUs. With \
         an empty mask RPS is off, and the CPU of the interrupt does all the work.",
        parts: &[
            "Why|Set it if a device has one queue, or fewer queues than local cores, or for traffic that the NIC \
             cannot hash. With one queue per CPU it only costs time.",
            "Kernel|/sys/class/net/DEV/queues/rx-N/rps_cpus, a hexadecimal mask; for new queues \
             /proc/sys/net/core/rps_default_mask",
            "Show|ringwise show DEV: line RPS",
            "Set|ringwise plan --goal GOAL --set eth1.rps_cpus=1-3. Choose CPUs of the NIC's node, without the core \
             of the interrupt; configuration key rps_cpus",
            "Goals|they set it only on a device with one queue (latency: never), and switch it off on one with several, \
             unless you configure rps_cpus, or PPPoE or a tunnel may run over it (ringwise help pppoe)",
            "See|docs/knobs/rps.md; rules Q04 Q05 Q07 Q08 R3.17; ringwise help rfs",
        ],
        knob: Some(KnobValues::Rps),
    },
    Topic {
        names: &[
            "rfs",
            "rps flow cnt",
            "rfs entries",
            "rfs socket table",
            "socket flow table",
            "receive flow steering",
            "arfs",
            "accelerated rfs",
        ],
        title: "receive flow steering: packets go to their program's CPU",
        body: "RFS is RPS that sends a flow to the CPU where its program last read. It has one table for the host (the RFS socket \
         table) and one for each receive queue; if one of them is 0, RFS is off. The first table records the CPU on which a \
         program last read a flow, the second the CPU that handles the flow now. A flow moves only when none of its packets is queued on \
         its previous CPU, so its packets stay in order. With accelerated RFS the NIC itself delivers the flow to the right queue.",
        parts: &[
            "Why|For servers: packet and program share a cache. Never for forwarding, which has no sockets.",
            "Kernel|/proc/sys/net/core/rps_sock_flow_entries and /sys/class/net/DEV/queues/rx-N/rps_flow_cnt; both \
             are rounded up to a power of two",
            "Show|ringwise show DEV: line RFS",
            "Set|ringwise plan --goal GOAL --set host.rfs_entries=32768 --set eth1.rps_flow_cnt=4096; configuration keys \
             rfs_entries and rps_flow_cnt",
            "Goals|rpc and stream switch it on, forward and latency off; balanced and mixed keep it. rpc also switches \
             ntuple on if the driver supports accelerated RFS.",
            "See|docs/knobs/rfs.md; rules Q09 Q10 Q11 Q12 Q13 R2.03; ringwise help rps",
        ],
        knob: Some(KnobValues::Rfs),
    },
    Topic {
        names: &[
            "napi",
            "napi thread",
            "napi threads",
            "threaded",
            "deferral",
            "deferred interrupts",
            "defer hard irqs",
            "gro flush timeout",
            "irq suspend timeout",
            "gro_flush_timeout_ns",
            "irq_suspend_timeout_ns",
        ],
        title: "how the kernel polls a queue after its interrupt",
        body: "NAPI: after an interrupt the kernel polls the queue until it is empty. defer_hard_irqs and \
         gro_flush_timeout make it poll again by a timer instead of taking the next interrupt. With threaded NAPI a \
         kernel thread polls instead of a softirq. irq_suspend_timeout keeps interrupts off while a program polls.",
        parts: &[
            "Why|Deferral spaces out polls if a driver has no moderation for single queues. Threads can be scheduled \
             like programs.",
            "Kernel|/sys/class/net/DEV/napi_defer_hard_irqs, gro_flush_timeout, threaded; for one instance the \
             netlink request napi-set",
            "Show|ringwise show DEV: line NAPI, if something is set",
            "Set|ringwise plan --goal GOAL --set eth1.napi.defer_hard_irqs=2 --set eth1.napi.gro_flush_timeout_ns=200000; \
             configuration key napi",
            "Goals|every plan pins NAPI threads to the CPU of their queue's interrupt",
            "See|docs/knobs/napi.md; rules A19 M05 M06 R0.13",
        ],
        knob: Some(KnobValues::Napi),
    },
    Topic {
        names: &["bql", "byte queue limits", "byte queue limit"],
        title: "byte queue limits: bytes given to the device at a time",
        body: "BQL limits how many bytes a transmit queue may have given to the device and not seen completed. The kernel \
         adapts the limit by itself, between limit_min and limit_max.",
        parts: &[
            "Why|The kernel's values are fine, unless limit_max is below a few frames: then the queue runs dry \
             between two completions.",
            "Kernel|/sys/class/net/DEV/queues/tx-N/byte_queue_limits/limit_max, limit, inflight; only if the driver \
             supports it",
            "Show|ringwise watch: column BQL, bytes in flight and limit; the mark bql: at its limit",
            "Set|not by ringwise; rule M18 has the command",
            "See|rule M18; docs/watch.md. After apply, ringwise uses BQL to detect a transmit queue that completes \
             nothing: ringwise help stuck",
        ],
        knob: Some(KnobValues::ByteQueueLimits),
    },
    Topic {
        names: &[
            "sysctl",
            "sysctls",
            "host",
            "netdev budget",
            "netdev max backlog",
            "backlog",
            "busy poll",
            "busy read",
            "dev weight",
            "flow limit",
            "rps default mask",
            "net.core",
        ],
        title: "settings of the host's network core (net.core)",
        body: "These values hold for all interfaces: the packets and the time of one round of the receive softirq \
         (netdev_budget, netdev_budget_usecs), the packets that may wait for a CPU that RPS has chosen \
         (netdev_max_backlog), busy polling, and the flow limit.",
        parts: &[
            "Why|A larger budget helps if softnet_stat counts rounds that were cut short; programs on that CPU then \
             wait longer. Spread the load first.",
            "Kernel|/proc/sys/net/core/NAME, sysctl net.core.NAME",
            "Show|ringwise show DEV -v: line net.core",
            "Set|ringwise plan --goal GOAL --set 'host.sysctl.\"net.core.netdev_budget\"=600'; configuration key sysctl in \
             [host]",
            "Goals|no goal changes them; the table of RFS has its own key, rfs_entries",
            "See|docs/knobs/host.md; rules D01 D02 D03 M07 M19; ringwise help squeeze",
        ],
        knob: Some(KnobValues::NetworkCore),
    },
    Topic {
        names: &[
            "cpu latency",
            "wake up",
            "wake up time",
            "wake up latency",
            "c state",
            "c states",
            "idle states",
            "pm qos",
            "resume latency",
        ],
        title: "how long a CPU may take to wake up",
        body: "An idle CPU sleeps; the deeper it sleeps, the longer it needs to wake up for a packet. A limit in \
         microseconds keeps it out of deep sleep states. For single CPUs 0 means no limit, and n/a means no wait at all: the CPU \
         polls. For ringwise hold, which limits all CPUs, 0 is the opposite: no wait at all.",
        parts: &[
            "Why|For the lowest delay: waking up from a deep state takes tens of microseconds.",
            "Kernel|/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us; for all CPUs /dev/cpu_dma_latency, \
             as long as it is open",
            "Show|ringwise show DEV -v: line wake-up",
            "Set|ringwise plan --goal GOAL --set 'host.cpu_latency.2-5=10'; configuration key cpu_latency in [host]; for the run \
             time of a program: ringwise hold --cpu-latency 0 -- CMD",
            "Goals|latency gives the CPUs of its queues 5 us",
            "See|docs/knobs/host.md; rule H07",
        ],
        knob: Some(KnobValues::WakeUp),
    },
];
