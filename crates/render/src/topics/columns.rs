//! Columns and lines of the output that are not the name of a setting.

use super::{Topic, word};

pub(super) const TOPICS: &[Topic] = &[
    word(
        &["remark", "column remark"],
        "status: what is special about an interface",
        "First the connections that depend on the interface, then changed settings, then what costs performance (queues \
         on one CPU, one core, a remote node or isolated CPUs), link down, programs that use its queues.",
        &["See|ringwise help control path, queues on cpu, remote, isolated; ringwise check has the findings"],
    ),
    word(
        &["carries"],
        "show: what is on top of the interface",
        "The number of its addresses, VLANs and other interfaces on top of it, and the bond or bridge that it belongs to.",
        &["Show|ringwise show DEV: line carries"],
    ),
    word(
        &["in use by", "users", "xdp", "af_xdp", "ovs"],
        "show: who else uses the queues of the interface",
        "XDP programs, AF_XDP sockets, RDMA or traffic classes. Such users limit what can be changed: ringwise does not \
         change the number of queues then. On an interface whose device RDMA uses, a change of the channels would restart \
         the device for RDMA too, and goal forward leaves the pause frames on, because RDMA may depend on them.",
        &["Show|ringwise show DEV: line in use by", "See|ringwise help channels, rdma"],
    ),
    word(
        &["rdma", "roce", "iwarp", "infiniband", "mlx5_ib", "irdma", "bnxt_re"],
        "remote direct memory access through the same device",
        "Modules such as mlx5_ib (mlx5_core), irdma (ice, i40e), bnxt_re (bnxt_en) and qedr (qede) offer RDMA on the device \
         of an interface, and are often loaded although no program uses it. While one is loaded, ringwise does not change \
         the number of queues of the interface, and goal forward leaves its pause frames on.",
        &[
            "Show|ringwise show DEV: line in use by; rdma link",
            "Unload|if you do not use RDMA: modprobe -r mlx5_ib. The next boot loads it again, unless a file in \
             /etc/modprobe.d has the line blacklist mlx5_ib.",
            "See|ringwise help in use by, channels, pause",
        ],
    ),
    word(
        &["not movable"],
        "show: interrupts whose affinity cannot be changed",
        "The kernel manages some interrupts itself, and some interrupt controllers cannot move one. The line names them \
         and the reason; plans leave them where they are.",
        &["See|ringwise help pinned, irq"],
    ),
    word(
        &["per cpu"],
        "show: interrupts of queues on each CPU",
        "The last line of the matrix counts the interrupts that are delivered to each CPU. More than 1 means that queues \
         share the CPU. An interrupt that several queues share counts once.",
        &["See|ringwise help matrix, queues on cpu"],
    ),
    word(
        &["empty or 0", "empty"],
        "show: the meaning of a setting that is empty or 0",
        "The lines at the end of ringwise show DEV explain what the kernel does without this setting, for example: \
         RPS off, packets stay on the CPU of the queue's interrupt.",
        &["See|ringwise help rps, rfs, xps"],
    ),
    word(
        &["driver", "count", "name", "link"],
        "show and status: columns about a device and its interrupts",
        "DRIVER is the kernel driver, LINK the speed of the link. With -v, SERVES is the queue of an interrupt, COUNT \
         how often it was raised since boot, NAME what the driver calls it.",
        &["Show|ringwise show DEV -v", "See|ringwise help serves, map, pinned, irq, 8/8, no link"],
    ),
    word(
        &[
            "drivers",
            "mlx5",
            "mlx5_core",
            "mlx4",
            "mlx4_en",
            "igb",
            "igc",
            "e1000e",
            "ixgbe",
            "ixgbevf",
            "i40e",
            "iavf",
            "ice",
            "idpf",
            "bnxt",
            "bnxt_en",
            "tg3",
            "r8169",
            "atlantic",
            "enic",
            "sfc",
            "qede",
            "ena",
            "gve",
            "mana",
            "hv_netvsc",
            "virtio_net",
            "vmxnet3",
        ],
        "single drivers have no topics: ask the host",
        "ringwise reads from each device what its driver supports, and what the driver refused when ringwise tried it. Known \
         side effects of drivers are in the plan, at the setting.",
        &[
            "Show|ringwise show DEV: the settings, and those that the driver does not support; ringwise learned: what it refused",
            "See|ringwise help driver, channels, side effect",
        ],
    ),
    word(
        &["serves", "control", "control interrupt", "idle interrupt"],
        "show -v: the queues that an interrupt is for",
        "TxRx-3, rx-3 or tx-3: queues. control: no queue; the device reports events such as a change of the link, so plans \
         do not move it. idle: no queue uses it now. unknown: it could not be matched to a queue.",
        &["Show|ringwise show DEV -v: column SERVES", "See|rules A08 A18; ringwise help map, irq, control path"],
    ),
    word(
        &["frames", "frame", "max frames", "rx frames", "tx frames"],
        "moderation: packets before an interrupt",
        "A frame is a packet as the NIC sends or receives it. rx 50 us 32 frames: the NIC interrupts 50 us after a packet, or \
         when 32 packets are waiting, whichever comes first.",
        &[
            "Kernel|ethtool -c DEV: rx-frames and tx-frames (rx-max-frames and tx-max-frames in netlink)",
            "Show|ringwise show DEV: line moderation",
            "See|docs/knobs/coalesce.md; ringwise help moderation",
        ],
    ),
    word(
        &["turbo", "governor", "preference", "frequency", "clock rate"],
        "show -v: what decides the clock rate of the CPUs",
        "governor is the kernel's rule for the clock rate, preference the hint to the CPU whether to save energy or time, turbo \
         whether it may exceed its base rate. ringwise reports these values and does not change them.",
        &[
            "Why|A CPU with a low clock rate processes fewer packets. Rates that change make measurements differ.",
            "Kernel|/sys/devices/system/cpu/cpufreq/policyN/scaling_governor and energy_performance_preference; \
             cpufreq/boost or intel_pstate/no_turbo",
            "Show|ringwise show DEV -v: lines governor, preference and turbo",
            "See|rule H08; ringwise help cpu latency",
        ],
    ),
    word(
        &["pcie aspm", "aspm", "pcie"],
        "show -v: power saving of the PCI Express link",
        "Active state power management (ASPM) lets the link to a device sleep when it is idle. Waking it up takes \
         microseconds, which the next packet waits for. PCIe is the speed and width of the link.",
        &[
            "Kernel|/sys/module/pcie_aspm/parameters/policy; lspci -vv: LnkCtl, LnkSta",
            "Show|ringwise show DEV -v: lines PCIe and PCIe ASPM",
            "See|rules H04 H06",
        ],
    ),
    word(
        &["heavy", "heavy flow", "heavy flows", "floor"],
        "explain: flows with a large part of the packets",
        "A queue cannot share the packets of one flow with another queue. A flow that is heavier than a queue's share \
         therefore limits every RSS table: floor is the best max/mean that a table can reach. The lines heavy list the \
         largest flows; with --balance, those that get a rule and a queue of their own.",
        &[
            "Show|ringwise explain --sockets DEV --balance; live: ringwise watch --per-flow DEV",
            "See|docs/explain.md; rule Q23; ringwise help flow, share, flow rules, zipf",
        ],
    ),
    word(
        &["zipf", "skew", "zipf exponent"],
        "explain and bench: how unevenly flows share the packets",
        "In generated traffic, flow number k has a share of the packets in proportion to 1/k^s. s is the exponent: with 0 all \
         flows are equal, with 1 (common in real traffic) a few flows carry most packets.",
        &[
            "Set|ringwise explain --synthetic count=10000,zipf=1.0 DEV; ringwise bench rr --skew 1.0",
            "See|docs/explain.md, docs/bench.md; ringwise help heavy",
        ],
    ),
    word(
        &["confidence", "certain"],
        "check: whether a finding is certain or likely",
        "certain: the problem exists, or for severity info: the condition is met. likely: the condition of the rule is met, and whether it matters depends on the load. \
         In ringwise show, MAP is the confidence of the match between interrupt and queue: sure or likely.",
        &["Show|ringwise check --explain A03; ringwise check -j", "See|ringwise help finding, map"],
    ),
    word(
        &[
            "other ids",
            "rule page",
            "inputs",
            "precondition",
            "condition",
            "impact",
            "confirmation",
            "fix",
            "manual steps",
            "other severity",
            "consequence of",
            "background",
            "source",
            "terms",
        ],
        "check: parts of the page of a rule",
        "Other ids are further names of the same rule, which --explain accepts too. Precondition is where \
         the rule applies, Condition what it reports, Confirmation how to see it without ringwise. Consequence of: if one of \
         these rules is found too, this finding is listed below it.",
        &["Show|ringwise check --explain A03", "See|docs/rules.md; ringwise help finding, confidence"],
    ),
    word(
        &["applied"],
        "status: the last transaction in effect",
        "The last transaction in this boot that changed settings: its number, goal, time and user. The lines now, boot and \
         pending show whether the settings are still the same, what the next boot does, and what needs you.",
        &["See|ringwise help transaction, drift, boot, pending"],
    ),
    word(
        &["settings checked", "nothing to change"],
        "plan: settings that the plan decides, changed or not",
        "\"48 changes, 97 settings checked\": the goal, the configuration file and your options decide 97 settings of the \
         interfaces and the host. 48 of them have another value now, and apply changes these.",
        &["Show|ringwise plan --full: a line for each setting", "See|ringwise help skipped, plan marks"],
    ),
    word(
        &["better", "costs"],
        "plan: numbers before and after",
        "Better lists the numbers that improve with the plan, Costs those that get worse in exchange, with the reason. \
         They come from the layout, not from a measurement.",
        &["See|ringwise help layout, modelled; ringwise bench --help measures"],
    ),
    word(
        &["modelled", "model"],
        "plan: a number that is computed, not measured",
        "\"1.3 times as much traffic before a CPU is full\": each interface has the same load, each entry of the RSS table the \
         same part of it, and two CPUs of a core together carry a third more than one alone, also if one of them is kept free for other work \
         (--reserve). The number compares \
         the fullest CPU before and after.",
        &[
            "Not|It does not count the cost of remote memory, caches, moderation, heavy flows, or the load of programs. \
             Interrupts on a remote node have a line of their own.",
            "Where|plans with goal forward, if the number changes, and the reason of a weighted RSS table",
            "See|rule Q33; ringwise help better, remote, heavy; ringwise bench --help measures",
        ],
    ),
    word(
        &["pps", "avg b", "pkt/s"],
        "watch: packets per second, and their mean size",
        "pps are packets per second of an interface or queue, avg B their mean size in bytes. pkt/s are the packets that \
         a CPU processed in softirqs.",
        &["See|docs/watch.md; ringwise help line"],
    ),
    word(
        &["share", "max/mean", "cv"],
        "watch: how evenly packets spread over queues",
        "share is the part of the interface's packets that a queue had. max/mean is the busiest queue divided by the \
         mean of the queues: 1 is even. CV is their standard deviation divided by the mean: 0 is even.",
        &["See|docs/watch.md; ringwise help hot, rss"],
    ),
    word(
        &["p/irq", "irq/s"],
        "watch: packets per interrupt, interrupts per second",
        "Many packets per interrupt cost less CPU time; few give a lower delay. A pair of queues has one interrupt, so \
         the packets of both directions count.",
        &["See|docs/watch.md; ringwise help moderation"],
    ),
    word(
        &["nd"],
        "watch: NUMA node of a CPU",
        "The node that the CPU belongs to, shortened for a narrow column.",
        &["See|ringwise help node, remote"],
    ),
    word(
        &["softirq+irq+napi"],
        "watch: share of a CPU's time for packets",
        "The heat map of the CPU panel adds the time in softirqs, in interrupts and in NAPI threads (threaded NAPI). A thread \
         counts only where it may run on this CPU alone. report shows the same number.",
        &["See|docs/watch.md; rules D14 H22; ringwise help soft, napi"],
    ),
    word(
        &["ksoft", "ksoftirqd", "stl", "steal", "idle"],
        "watch: other shares of a CPU's time",
        "ksoft is the share that ksoftirqd had: softirqs that were deferred to a thread because there were too many. stl \
         was taken by the host of a virtual machine. idle is unused time.",
        &["See|docs/watch.md; rules D14 H22; ringwise help soft"],
    ),
    word(
        &["rps/s", "blog", "flim"],
        "watch: RPS and the backlog of a CPU",
        "rps/s are interrupts that another CPU sent because RPS gave this one packets. blog is the number of packets in its \
         backlog queue, flim the packets per second that the flow limit dropped there.",
        &["Kernel|/proc/net/softnet_stat", "See|rules D01 D03; ringwise help rps"],
    ),
    word(
        &["drop/s", "nic", "stack", "tx drop", "qdisc", "qdisc drop", "no buf"],
        "watch: lost packets per second, by place",
        "NIC: no free receive descriptor. stack: dropped by the driver or the network stack. TX drop: by the driver or \
         device while sending. qdisc: by the queueing discipline. no buf: no memory for a receive buffer. drop/s is the \
         sum without no buf, whose packets some drivers receive later.",
        &["See|docs/watch.md; rules D04 D05 D07 D13; ringwise help rings"],
    ),
    word(
        &["pause rx/tx", "resets", "counted by"],
        "watch: more columns about an interface",
        "pause rx/tx are pause frames per second in each direction. resets counts counters that went backwards. counted \
         by names the source of the counters of queues; no counters: the driver has none.",
        &["See|docs/watch.md; ringwise help pause, reset"],
    ),
    word(
        &["lost"],
        "watch: where packets are lost",
        "The line LOST lists every place with losses, largest first, in packets per second: NIC, driver or stack, \
         transmission, queueing discipline, backlog or flow limit of a CPU, sockets.",
        &["See|docs/watch.md; rules D04 D01; ringwise help drop/s, rings"],
    ),
    word(
        &["full", "busy", "fine", "bottleneck"],
        "watch: the CPU that limits the throughput",
        "The CPU that spends most of its time in softirqs, interrupts and NAPI threads, and the busiest queue whose interrupts it \
         takes. FULL: 90 % or more, BUSY: 60 % or more, FINE: less. LINK: an interface carries 95 % or more of the bits, \
         or of the packets of 64 bytes, that the link can carry.",
        &["See|docs/watch.md; rule D15; ringwise help soft, queues on cpu"],
    ),
    word(
        &["next"],
        "watch and status: the command to type",
        "watch: the line NEXT names the command that helps with the loss or the bottleneck; in a recording, the page of \
         its rule alone. status: the line Next names the command for what needs you, else ringwise check.",
        &["See|docs/watch.md; ringwise help lost, full"],
    ),
    word(
        &["virtual function", "vf", "vfs", "sr iov", "sriov", "physical function"],
        "a part of a NIC (SR-IOV) that is an interface of its own",
        "A virtual function (VF) has queues and interrupts of its own and shares the NIC with its physical function. If a guest \
         uses it, the host has no interface for it. One that the host keeps is planned like any other interface: its queues \
         get CPUs of the same node, beside those of the physical function.",
        &[
            "Show|ringwise: column REMARK; of the physical function: ringwise show DEV, line VFs",
            "Skip it|Name the other interfaces: ringwise plan eth0 eth1, or interfaces = [\"eth0\", \"eth1\"] in [host] \
             of the file",
            "See|rules F13 and F21; ringwise help match, remote; docs/recipes/virtual-machines.md",
        ],
    ),
];
