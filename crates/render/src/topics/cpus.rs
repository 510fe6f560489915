//! CPUs, cores and nodes of a host, and which of them queues may use.

use crate::knob_values::KnobValues;

use super::{Topic, word};

pub(super) const TOPICS: &[Topic] = &[
    Topic {
        names: &["remote", "far", "!", "remote node", "far node", "other node", "nearby", "nearby node"],
        title: "on another NUMA node than the interface",
        body: "A CPU is remote (far, marked with !) if it is on another NUMA node than the interface. It fetches every \
         part of a packet over the link between the nodes.",
        parts: &[
            "Why|A queue on a remote CPU loses speed: rule A03 reports it where the plan uses a local one.",
            "Kernel|/sys/class/net/DEV/device/numa_node and /sys/devices/system/node/nodeN/cpulist",
            "Set|ringwise plan --far-node HOW; configuration key far_node in [host]. last (default of every goal): first each \
             local CPU that --smt allows gets a queue, then CPUs of nearby nodes, then queues share these CPUs. Goal forward \
             uses idle cores of nearby nodes before local second threads (to prevent it: never). CPUs of \
             other sockets get queues only if no nearer CPU may be used (--cpus, --reserve, --exclude-cpus, isolated CPUs). \
             Goal mixed alone uses them before queues share a CPU.",
            "Never|no queue on a CPU of another node: without a usable local CPU the plan is refused; goal mixed shares local CPUs",
            "Ok|remote CPUs count like local ones: each core of the host gets a queue before any second thread does, \
             the nearest node first",
            "Nodes|Nearby are other nodes of the same socket, or at a distance of at most 12. With --smt one-per-core (default \
             of rpc, stream and latency) they get queues while local second threads are idle: --far-node never or --smt all \
             keeps more queues local.",
            "See|rules A03 Q07; ringwise help local, numa",
        ],
        knob: Some(KnobValues::RemoteQueues),
    },
    Topic {
        names: &["local", "near", "local node", "near node", "local cpu", "local core"],
        title: "on the NUMA node of the interface",
        body: "A CPU is local (near) if it is on the NUMA node of the interface: memory and cache that the NIC writes to \
         are close. Plans use nearby nodes (of the same socket) only after every local CPU that --smt allows has a queue. Goal \
         forward uses them earlier: once every local core has one, before local second threads. Plans use other sockets by default only if no nearer CPU may be used.",
        parts: &[
            "Kernel|/sys/class/net/DEV/device/local_cpulist",
            "Set|ringwise plan --far-node HOW: ringwise help far-node",
            "See|rule A03; ringwise help remote, smt",
        ],
        knob: Some(KnobValues::RemoteQueues),
    },
    Topic {
        names: &["isolated", "isolated cpu", "isolcpus", "nohz full"],
        title: "CPUs that are kept free of other work",
        body: "Isolated CPUs are named by isolcpus or nohz_full at boot, by an isolated cgroup partition, or by a kubelet \
         that gave them to one container. Where a kubelet does so, the CPUs missing in /proc/irq/default_smp_affinity count \
         too. Plans put no interrupt there, unless --cpus names them. ringwise also keeps \
         off the CPUs that the kernel isolates while it runs.",
        parts: &["Kernel|/sys/devices/system/cpu/isolated and nohz_full", "See|rule A08; ringwise help cpus"],
        knob: Some(KnobValues::Cpus),
    },
    Topic {
        names: &["numa", "node", "numa node", "l3", "topology"],
        title: "NUMA node: CPUs and memory that are close to each other",
        body: "A machine with several CPU sockets has several nodes, and some CPUs have several nodes themselves. A device \
         belongs to one node. Cores that share a last-level cache (L3) are close to each other within a node.",
        parts: &[
            "Kernel|/sys/devices/system/node, /sys/devices/system/cpu/cpuN/cache",
            "Show|first line of ringwise; ringwise show DEV",
            "See|rules A03 H13; ringwise help local, remote",
        ],
        knob: Some(KnobValues::Cpus),
    },
    Topic {
        names: &[
            "core",
            "cores",
            "physical core",
            "core number",
            "more than one queue",
            "cores with more than one queue",
        ],
        title: "one physical core, with one CPU or several",
        body: "show and explain number the cores over the whole host, from 0, in the order of their first CPU. The \
         kernel's core_id is another number: it repeats in each package.",
        parts: &[
            "Several|\"4 cores with more than one queue, as the goal intends\": the interface has more queues than its node has cores, \
             and goals balanced and forward then use second threads. Without these words several queues share a CPU, or you \
             configured the CPUs; fewer queues: ringwise help channels.",
            "Kernel|/sys/devices/system/cpu/cpuN/topology/core_id and thread_siblings_list",
            "Show|ringwise show DEV: line core; ringwise explain FLOW",
            "See|rules A04 Q08; ringwise help smt, matrix",
        ],
        knob: Some(KnobValues::Cpus),
    },
    Topic {
        names: &["smt", "sibling", "siblings", "hardware thread", "hardware threads", "second thread", "one per core"],
        title: "two CPUs (hardware threads) of one physical core",
        body: "With SMT a physical core has two CPUs that share its resources: two queues on one core slow each other \
         down. The option --smt decides which threads take the interrupts of queues.",
        parts: &[
            "Set|ringwise plan --smt one-per-core or --smt all; configuration key smt in [host]",
            "Single|one-per-core: only the first usable thread of each core takes interrupts. Queues beyond the number of \
             local cores get a core of a nearby node (to prevent it: --far-node never), else they share these threads; \
             the second threads still take none. Default of rpc, stream \
             and latency; if only one core may be used, these goals use both of its threads.",
            "Both|all: second threads take interrupts too, after every local core has a queue. Queues share a CPU only after \
             every local thread, and every CPU of a nearby node, has one. Default of balanced, forward and mixed. Goal forward \
             uses idle cores of nearby nodes before second threads; to prevent it: --far-node never.",
            "Sending|XPS is not limited by --smt: every CPU has a transmit queue",
            "Number|Goal rpc keeps at most one queue per physical core of the node; with --smt all, one per CPU. \
             The numbers of the other goals do not depend on it.",
            "Kernel|/sys/devices/system/cpu/cpuN/topology/thread_siblings_list",
            "See|rules A04 Q08; ringwise help local, remote",
        ],
        knob: Some(KnobValues::Cpus),
    },
    Topic {
        names: &["cpus", "reserve", "exclude cpus", "usable", "usable cpu"],
        title: "which CPUs a plan may use",
        body: "By default all online CPUs that are not isolated. Options and keys of [host] restrict them.",
        parts: &[
            "Set|ringwise plan --cpus 0-7: only these, isolated ones included. --reserve 0: keep these free of \
             queues. --exclude-cpus 8-15 keeps CPUs free in addition to those of --reserve, which may be in a file.",
            "Programs|CPUs that are kept free (--reserve) are for programs that must not share CPUs with interrupts: start \
             them there with CPUAffinity=LIST. Reserve whole cores, both hardware threads of each. With --reserve, the \
             CPUAffinity= line of a plan has these CPUs; its comments have those for other programs, which are the CPUs \
             of the interrupts and of their node. --cpus limits the interrupts and the CPUs for other programs.",
            "Isolated|Isolated CPUs that --cpus does not name are not recommended for programs.",
            "Keys|cpus, reserve, exclude_cpus in [host]",
            "See|docs/config.md; ringwise help isolated, smt, remote",
        ],
        knob: Some(KnobValues::Cpus),
    },
    word(
        &["offline", "offline cpu"],
        "a CPU that is switched off",
        "An offline CPU takes no interrupt and runs no program; in a matrix its column is -. When a CPU goes offline, the \
         kernel moves its interrupts to other CPUs, and does not move them back. A rollback that needs an offline CPU \
         waits for it: ringwise exits with status 3 until ringwise recover has restored the rest.",
        &["Show|lscpu; /sys/devices/system/cpu/offline", "See|ringwise help service, effective"],
    ),
];
