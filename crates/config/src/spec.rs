//! Every key of the file: its type, its limits, its meaning. Checks, schema and reference are made from this table.

use ringwise_model::{RingKind, RingPart};

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub enum ValueKind {
    /// `true` or `false`.
    Bool,
    /// Smallest and largest.
    Int(u64, u64),
    /// Any string.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A goal.
    Goal,
    /// `"0-3,8"` or `[0, 1]`.
    Cpus,
    /// The same, for queues.
    Queues,
    /// An RSS table in ethtool's syntax.
    RssTable,
    /// Hex bytes.
    Key,
    /// Six hexadecimal bytes with colons.
    Mac,
    /// A number of things: `16`, `">= 16"`, `"<= 8"`, `"8-16"`.
    CountRange,
    /// A table with these keys.
    Table(&'static Spec),
    /// A table with any keys.
    Map(&'static ValueKind),
    /// A table whose keys are lists of numbers.
    ByNumber(&'static ValueKind),
    /// An array of these.
    List(&'static ValueKind),
    /// One of these.
    Any(&'static [ValueKind]),
}

/// Keys of one table.
#[derive(Debug)]
pub struct Spec {
    /// The name in messages.
    pub name: &'static str,
    /// In the order of the reference.
    pub keys: &'static [Key],
}

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value may be.
    pub kind: ValueKind,
    /// The table is wrong without the key.
    pub required: bool,
    /// What the key means, for the reference and the schema.
    pub about: &'static str,
    /// What a message expects in place of an absent required key: `policy = "latency"`. `None`: an example of its kind.
    pub if_absent: Option<&'static str>,
}

const fn key(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, kind, required: false, about, if_absent: None }
}

const fn must(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, kind, required: true, about, if_absent: None }
}

impl Key {
    const fn if_absent(self, expected: &'static str) -> Self {
        Self { if_absent: Some(expected), ..self }
    }
}

const U32: ValueKind = ValueKind::Int(0, u32::MAX as u64);
const COUNT: ValueKind = ValueKind::Int(1, 4096);

/// The top level of the file.
pub static FILE: Spec = Spec {
    name: "the file",
    keys: &[
        must("version", ValueKind::Int(1, 1), "version of the file format: 1"),
        key("host", ValueKind::Table(&HOST), "settings of every interface and of the host itself"),
        key(
            "interface",
            ValueKind::List(&ValueKind::Table(&INTERFACE)),
            "settings of one interface, or of several that match",
        ),
        key("policy", ValueKind::List(&ValueKind::Table(&POLICY)), "interrupt moderation for the queues of a group"),
        key(
            "host_group",
            ValueKind::Map(&ValueKind::Table(&HOST_GROUP)),
            "settings of the hosts that match, by name of the group",
        ),
    ],
};

/// `[host_group.NAME]`: settings of some of the hosts that use the file.
pub static HOST_GROUP: Spec = Spec {
    name: "[host_group.NAME]",
    keys: &[
        must(
            "match",
            ValueKind::Table(&HOST_MATCH),
            "which hosts; all criteria must match, and what is unknown never does",
        )
        .if_absent("match = { name = \"edge*\" }"),
        key("host", ValueKind::Table(&HOST), "keys of [host] that override those of the top level"),
        key(
            "interface",
            ValueKind::List(&ValueKind::Table(&INTERFACE)),
            "settings of interfaces that override those of the top level, key by key",
        ),
    ],
};

const TEXTS: ValueKind = ValueKind::Any(&[ValueKind::Text, ValueKind::List(&ValueKind::Text)]);

/// `match` of a host group; all criteria must match.
pub static HOST_MATCH: Spec = Spec {
    name: "match of a host group",
    keys: &[
        key(
            "name",
            TEXTS,
            "host name (/proc/sys/kernel/hostname), or a pattern with * and ?; of a list, one must match",
        ),
        key("driver", TEXTS, "kernel driver that an interface of the host has; of a list, one must match"),
        key("cpu_count", ValueKind::CountRange, "number of CPUs that are present"),
        key("node_count", ValueKind::CountRange, "number of NUMA nodes with CPUs"),
    ],
};

/// `[host]`: what holds for every interface, and settings of the host itself.
pub static HOST: Spec = Spec {
    name: "[host]",
    keys: &[
        key("goal", ValueKind::Goal, "purpose of the host; default: balanced"),
        key(
            "interfaces",
            ValueKind::List(&ValueKind::Text),
            "use only these interfaces; default: all that have a driver, queues of their own and a link",
        ),
        key("cpus", ValueKind::Cpus, "use only these CPUs, including isolated ones among them"),
        key("reserve", ValueKind::Cpus, "keep these CPUs free of queues for other work"),
        key("exclude_cpus", ValueKind::Cpus, "further CPUs without queues, in addition to reserve"),
        key("queues", COUNT, "number of queues per interface"),
        key("smt", ValueKind::Word(&["one-per-core", "all"]), "hardware threads of a core that may handle queues"),
        key(
            "far_node",
            ValueKind::Word(&["never", "last", "ok"]),
            "CPUs of remote nodes: never use them, use them last, or like local CPUs (ok)",
        ),
        key("allow_disruption", ValueKind::Bool, "include steps that interrupt traffic"),
        key(
            "pair_as_article",
            ValueKind::Bool,
            "create groups of latency and bulk queues, with half of the queues on a remote node",
        ),
        key(
            "latency_queues",
            COUNT,
            "number of queues in the latency group with goal mixed; default: a third of the queues",
        ),
        key(
            "act_on_load",
            ValueKind::List(&ValueKind::Text),
            "on these interfaces the service changes the RSS table, moves interrupts and changes groups of queues as the load requires; default: it only reports",
        ),
        key("strict", ValueKind::Bool, "fail if the device or kernel does not support a setting"),
        key(
            "rfs_entries",
            U32,
            "entries in the host's RFS flow table (net.core.rps_sock_flow_entries); 0 turns RFS off",
        ),
        key(
            "sysctl",
            ValueKind::Map(&ValueKind::Any(&[ValueKind::Int(0, i64::MAX as u64), ValueKind::Text])),
            "sysctls by name, such as net.core.netdev_budget",
        ),
        key(
            "cpu_latency",
            ValueKind::ByNumber(&ValueKind::Any(&[ValueKind::Int(0, i32::MAX as u64), ValueKind::Word(&["n/a"])])),
            "longest wake-up latency of CPUs in microseconds, by CPU; 0: no limit, \"n/a\": no latency at all",
        ),
    ],
};

/// `[[interface]]`: one interface, or several alike.
pub static INTERFACE: Spec = Spec {
    name: "[[interface]]",
    keys: &[
        must("match", ValueKind::Table(&MATCH), "which interfaces; all criteria must match"),
        key("goal", ValueKind::Goal, "goal of the interface, if it differs from the host's"),
        key("features", ValueKind::Map(&ValueKind::Bool), "offloads, by the kernel's names or ethtool's short names"),
        key("pause", ValueKind::Table(&PAUSE), "pause frames"),
        key(
            "channels",
            ValueKind::Any(&[COUNT, ValueKind::Table(&CHANNELS)]),
            "number of combined queues, or a table with the number of each kind",
        ),
        key("rings", ValueKind::Table(&RINGS), "ring sizes in descriptors"),
        key(
            "coalesce",
            ValueKind::Any(&[ValueKind::Table(&COALESCE), ValueKind::List(&ValueKind::Table(&COALESCE))]),
            "interrupt moderation of the device, or of single queues",
        ),
        key("rss", ValueKind::Table(&RSS), "how flows are spread over receive queues"),
        key(
            "napi",
            ValueKind::Any(&[ValueKind::Table(&NAPI), ValueKind::List(&ValueKind::Table(&NAPI))]),
            "NAPI polling of the device, or of single queues",
        ),
        key(
            "irq_cpus",
            ValueKind::Any(&[ValueKind::Cpus, ValueKind::ByNumber(&ValueKind::Cpus)]),
            "CPUs of the queue interrupts: of all queues, or a table by queue",
        ),
        key(
            "xps_cpus",
            ValueKind::Any(&[ValueKind::Cpus, ValueKind::ByNumber(&ValueKind::Cpus)]),
            "CPUs that send through a transmit queue (XPS)",
        ),
        key(
            "xps_rxqs",
            ValueKind::Any(&[ValueKind::Queues, ValueKind::ByNumber(&ValueKind::Queues)]),
            "receive queues whose flows are sent through a transmit queue (XPS)",
        ),
        key(
            "rps_cpus",
            ValueKind::Any(&[ValueKind::Cpus, ValueKind::ByNumber(&ValueKind::Cpus)]),
            "CPUs that process packets of a receive queue (RPS)",
        ),
        key(
            "rps_flow_cnt",
            ValueKind::Any(&[U32, ValueKind::ByNumber(&U32)]),
            "entries in the RFS flow table of a receive queue",
        ),
        key(
            "rule",
            ValueKind::List(&ValueKind::Any(&[ValueKind::Text, ValueKind::Table(&RULE)])),
            "flow steering rules in ethtool's syntax",
        ),
        key("group", ValueKind::List(&ValueKind::Table(&GROUP)), "queues with their own policy, CPUs and flows"),
    ],
};

/// `match` of an interface; all criteria must match.
pub static MATCH: Spec = Spec {
    name: "match",
    keys: &[
        key("name", ValueKind::Text, "name of the interface, or a pattern with * and ?"),
        key("driver", ValueKind::Text, "kernel driver of the interface"),
        key("bus", ValueKind::Text, "bus address of the interface, such as 0000:03:00.0"),
        key("mac", ValueKind::Mac, "permanent MAC address of the interface"),
        key("label", ValueKind::Text, "ifalias or an alternative name of the interface"),
    ],
};

/// `pause`: pause frames (`ethtool -A`).
pub static PAUSE: Spec = Spec {
    name: "pause",
    keys: &[
        key("autoneg", ValueKind::Bool, "negotiate pause frames with the link partner"),
        key("rx", ValueKind::Bool, "obey received pause frames"),
        key("tx", ValueKind::Bool, "send pause frames"),
    ],
};

/// `channels`: channel counts (`ethtool -L`).
pub static CHANNELS: Spec = Spec {
    name: "channels",
    keys: &[
        key("combined", ValueKind::Int(0, 4096), "queues that receive and send"),
        key("rx", ValueKind::Int(0, 4096), "queues that only receive"),
        key("tx", ValueKind::Int(0, 4096), "queues that only send"),
    ],
};

/// `rings`: ring parameters (`ethtool -G`), of the table in `model`.
pub static RINGS: Spec = Spec { name: "rings", keys: &RING_KEYS };

const RING_SIZE: ValueKind = ValueKind::Any(&[ValueKind::Int(1, u32::MAX as u64), ValueKind::Word(&[LONGEST])]);
/// A ring as long as the device and the memory of its node allow.
pub const LONGEST: &str = "max";

const RING_KEYS: [Key; RingPart::ALL.len()] = {
    let mut out = [key("", ValueKind::Bool, ""); RingPart::ALL.len()];
    let mut i = 0;
    while i < out.len() {
        let part = &RingPart::ALL[i];
        let kind = match part.kind {
            RingKind::Size => RING_SIZE,
            RingKind::Number(least) => ValueKind::Int(least as u64, u32::MAX as u64),
            RingKind::Switch | RingKind::Mode => ValueKind::Bool,
        };
        out[i] = key(part.key, kind, part.about);
        i += 1;
    }
    out
};

/// A parameter that is a number, one that is on or off.
const USECS: ValueKind = ValueKind::Int(0, u32::MAX as u64);
const SWITCH: ValueKind = ValueKind::Any(&[ValueKind::Bool, ValueKind::Int(0, 1)]);

/// `coalesce`: interrupt moderation (`ethtool -C`).
pub static COALESCE: Spec = Spec {
    name: "coalesce",
    keys: &[
        key("queues", ValueKind::Queues, "only these queues; default: the device"),
        key("rx-usecs", USECS, "microseconds that a received frame may wait for an interrupt"),
        key("rx-max-frames", USECS, "received frames after which the device raises the interrupt at once"),
        key("rx-usecs-irq", USECS, "rx-usecs while an interrupt is being handled"),
        key("rx-max-frames-irq", USECS, "rx-max-frames while an interrupt is being handled"),
        key("tx-usecs", USECS, "microseconds that a sent frame may wait for an interrupt"),
        key("tx-max-frames", USECS, "sent frames after which the device raises the interrupt at once"),
        key("tx-usecs-irq", USECS, "tx-usecs while an interrupt is being handled"),
        key("tx-max-frames-irq", USECS, "tx-max-frames while an interrupt is being handled"),
        key("stats-block-usecs", USECS, "microseconds between updates of statistics"),
        key("use-adaptive-rx", SWITCH, "the driver chooses the receive values from the load (adaptive moderation)"),
        key("use-adaptive-tx", SWITCH, "the driver chooses the transmit values from the load (adaptive moderation)"),
        key("pkt-rate-low", USECS, "packets per second below which the -low values apply"),
        key("rx-usecs-low", USECS, "rx-usecs at low packet rates"),
        key("rx-max-frames-low", USECS, "rx-max-frames at low packet rates"),
        key("tx-usecs-low", USECS, "tx-usecs at low packet rates"),
        key("tx-max-frames-low", USECS, "tx-max-frames at low packet rates"),
        key("pkt-rate-high", USECS, "packets per second above which the -high values apply"),
        key("rx-usecs-high", USECS, "rx-usecs at high packet rates"),
        key("rx-max-frames-high", USECS, "rx-max-frames at high packet rates"),
        key("tx-usecs-high", USECS, "tx-usecs at high packet rates"),
        key("tx-max-frames-high", USECS, "tx-max-frames at high packet rates"),
        key("rate-sample-interval", USECS, "seconds between samples of the packet rate"),
        key("use-cqe-mode-rx", SWITCH, "restart the rx-usecs timer with each completion"),
        key("use-cqe-mode-tx", SWITCH, "restart the tx-usecs timer with each completion"),
        key("tx-aggr-max-bytes", USECS, "largest transmit aggregate in bytes"),
        key("tx-aggr-max-frames", USECS, "largest number of frames in a transmit aggregate"),
        key("tx-aggr-time-usecs", USECS, "microseconds until the device sends a transmit aggregate"),
        key("rx-cqe-frames", USECS, "largest number of received frames that share a completion"),
        key("rx-cqe-nsecs", USECS, "nanoseconds after which the device writes a shared completion with fewer frames"),
        key("rx-profile", PROFILE, "values from which adaptive moderation chooses for reception: up to five steps"),
        key("tx-profile", PROFILE, "values from which adaptive moderation chooses for transmission: up to five steps"),
    ],
};

/// `NET_DIM_PARAMS_NUM_PROFILES` of the kernel.
pub const PROFILE_STEPS: usize = 5;
const PROFILE: ValueKind = ValueKind::List(&ValueKind::Table(&PROFILE_STEP));
/// The kernel keeps 16 bits and drops higher ones.
const U16: ValueKind = ValueKind::Int(0, u16::MAX as u64);

/// One step of a moderation profile (`ETHTOOL_A_COALESCE_RX_PROFILE`, since 6.11).
pub static PROFILE_STEP: Spec = Spec {
    name: "a step of a profile",
    keys: &[
        key("usec", U16, "microseconds until the interrupt; omitted members keep their values"),
        key("pkts", U16, "packets after which the device raises the interrupt at once"),
        key("comps", U16, "completions after which the device raises the interrupt at once"),
    ],
};

/// ethtool's words for parameters that have another name in the kernel.
pub const COALESCE_WORDS: [(&str, &str); 6] = [
    ("adaptive-rx", "use-adaptive-rx"),
    ("adaptive-tx", "use-adaptive-tx"),
    ("rx-frames", "rx-max-frames"),
    ("tx-frames", "tx-max-frames"),
    ("cqe-mode-rx", "use-cqe-mode-rx"),
    ("cqe-mode-tx", "use-cqe-mode-tx"),
];

/// `rss_hash_func_strings` of the kernel.
pub const HASH_FUNCTIONS: [&str; 3] = ["toeplitz", "xor", "crc32"];

/// `rss`: table, key and fields of receive-side scaling (`ethtool -X`).
pub static RSS: Spec = Spec {
    name: "rss",
    keys: &[
        key("table", ValueKind::RssTable, "\"equal 4\", \"weight 3 1\", \"default\", or the queue of each entry"),
        key("context", ValueKind::ByNumber(&ValueKind::RssTable), "tables of further RSS contexts, by number"),
        key("function", ValueKind::Text, "hash function: toeplitz, xor, crc32"),
        key("key", ValueKind::Key, "hash key as hexadecimal bytes"),
        key(
            "symmetric",
            ValueKind::Word(&["none", "symmetric-xor", "symmetric-or-xor"]),
            "hash both directions of a flow to one queue",
        ),
        key(
            "fields",
            ValueKind::Map(&ValueKind::Text),
            "hashed fields by flow type, in ethtool's letters: udp4 = \"sdfn\"",
        ),
    ],
};

/// `napi`: polling parameters of a device or of single instances.
pub static NAPI: Spec = Spec {
    name: "napi",
    keys: &[
        key("queues", ValueKind::Queues, "only these receive queues; default: the device"),
        key(
            "defer_hard_irqs",
            ValueKind::Int(0, i32::MAX as u64),
            "number of empty polls before the interrupt is enabled again",
        ),
        key(
            "gro_flush_timeout_ns",
            ValueKind::Int(0, i64::MAX as u64),
            "nanoseconds until the next poll while the interrupt is deferred",
        ),
        key(
            "irq_suspend_timeout_ns",
            ValueKind::Int(0, i64::MAX as u64),
            "longest time without interrupts in nanoseconds while a program busy-polls",
        ),
        key(
            "threaded",
            ValueKind::Any(&[ValueKind::Bool, ValueKind::Int(0, 2)]),
            "poll in a kernel thread; 2: busy polling",
        ),
    ],
};

/// `[[interface.rule]]`: a flow steering rule (`ethtool -N`).
pub static RULE: Spec = Spec {
    name: "[[interface.rule]]",
    keys: &[
        must("flow", ValueKind::Text, "in ethtool's syntax: \"tcp4 dst-port 443 action 2\""),
        key("location", U32, "location in the rule table; default: the next free one"),
    ],
};

/// `[[interface.group]]`: queues with a policy of their own.
pub static GROUP: Spec = Spec {
    name: "[[interface.group]]",
    keys: &[
        must("name", ValueKind::Text, "name of the group"),
        must("policy", ValueKind::Text, "latency, bulk, cpu, or a policy of this file")
            .if_absent("policy = \"latency\", \"bulk\", \"cpu\" or the name of a [[policy]]"),
        key(
            "queues",
            ValueKind::Any(&[COUNT, ValueKind::List(&ValueKind::Int(0, 4095)), ValueKind::Text]),
            "number of queues, or a list of queues (\"0-3\" or [0, 1]), or \"auto\": the goal divides the queues",
        ),
        key("cpus", ValueKind::Cpus, "CPUs of the group's queues"),
        key(
            "weight",
            U32,
            "share of the RSS table relative to the other groups; 0: the queues receive only the group's flows",
        ),
        key("context", ValueKind::Bool, "use an RSS context for the group instead of a share of the RSS table"),
        key(
            "flows",
            ValueKind::List(&ValueKind::Any(&[ValueKind::Text, ValueKind::Table(&FLOW)])),
            "flows that belong to the group",
        ),
    ],
};

/// A flow of a group that is not written as a rule.
pub static FLOW: Spec = Spec {
    name: "a flow",
    keys: &[
        key("program", ValueKind::Text, "flows to the ports on which processes of this name listen"),
        key("unit", ValueKind::Text, "flows to the ports on which processes of this systemd unit listen"),
    ],
};

/// `[[policy]]`: moderation of the queues of a group.
pub static POLICY: Spec = Spec {
    name: "[[policy]]",
    keys: &[
        must("name", ValueKind::Text, "name of the policy; overrides a built-in policy of that name"),
        key("coalesce", ValueKind::Table(&POLICY_COALESCE), "interrupt moderation of the group's queues"),
        key(
            "napi",
            ValueKind::Table(&POLICY_NAPI),
            "NAPI values to use if the device has no moderation of single queues",
        ),
        key("when", ValueKind::Text, "a sentence that describes when to use the policy"),
    ],
};

/// `coalesce` of a policy: [`COALESCE`] without its queues.
pub static POLICY_COALESCE: Spec = Spec { name: "coalesce", keys: COALESCE.keys.split_at(1).1 };
/// `napi` of a policy: [`NAPI`] without its queues.
pub static POLICY_NAPI: Spec = Spec { name: "napi", keys: NAPI.keys.split_at(1).1 };

impl Spec {
    /// The key of this name, or of the one that `name` is an alias for.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        let name = self.alias(name);
        self.keys.iter().find(|k| k.name == name)
    }

    /// The name under which a key is known.
    pub fn alias<'a>(&self, name: &'a str) -> &'a str {
        let words = self.name == "coalesce";
        let found = COALESCE_WORDS.iter().find(|(short, _)| words && *short == name);
        found.map_or(name, |(_, full)| full)
    }
}
