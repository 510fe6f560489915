//! Conflicts between two parts of a configuration, as values. The text of each has two parts: what was found, and
//! what is expected instead.

use ringwise_model::{CpuSet, Goal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// `reserve` and `exclude_cpus` keep all of `cpus` free.
    NoCpuLeft {
        cpus: CpuSet,
    },
    ArticleAndGoal {
        goal: Goal,
    },
    /// `what` is a key, or part of one; `left` the number of queues.
    BeyondChannels {
        what: &'static str,
        queue: u32,
        left: u32,
    },
    GroupBeyondChannels {
        group: String,
        queue: u32,
        left: u32,
    },
    GroupsWantMore {
        wanted: u32,
        left: u32,
    },
    /// `group` has it already.
    QueueOfTwoGroups {
        queue: u32,
        group: String,
    },
    /// `kept` is the key that keeps the CPUs free.
    GroupOnKeptCpus {
        group: String,
        cpus: CpuSet,
        kept: &'static str,
    },
    GroupOutsideCpus {
        group: String,
        cpus: CpuSet,
    },
    GroupAndInterrupts {
        group: String,
        cpus: CpuSet,
        interrupts: CpuSet,
    },
    TableAndWeights,
    FeatureOnAndOff {
        name: String,
        on: bool,
        before: String,
        was: bool,
    },
    LroAndForward,
    /// Flow rules need the feature.
    NtupleOff,
    HalfOfSymmetric {
        flow: String,
        fields: String,
    },
    /// Both places are the same, or not.
    FlowTwice {
        flow: String,
        first: String,
        to: String,
    },
    NoContext {
        context: u32,
    },
}

impl Conflict {
    pub(crate) fn found(&self) -> String {
        match self {
            Self::NoCpuLeft { cpus } => format!("all of cpus {cpus} are kept free by reserve or exclude_cpus"),
            Self::ArticleAndGoal { goal } => {
                format!("pair_as_article lays queues as an article has them, goal {goal} otherwise")
            }
            Self::BeyondChannels { what, queue, left } => {
                format!("{what} names queue {queue}, but channels leaves {left}")
            }
            Self::GroupBeyondChannels { group, queue, left } => {
                format!("group \"{group}\" names queue {queue}, but channels leaves {left}")
            }
            Self::GroupsWantMore { wanted, left } => {
                format!("the groups want {wanted} queues, but channels leaves {left}")
            }
            Self::QueueOfTwoGroups { queue, group } => format!("queue {queue} belongs to group \"{group}\" already"),
            Self::GroupOnKeptCpus { group, cpus, kept } => {
                format!("group \"{group}\" is on CPUs {cpus}, which {kept} keeps free")
            }
            Self::GroupOutsideCpus { group, cpus } => {
                format!("group \"{group}\" is on CPUs {cpus}, which are not among host.cpus")
            }
            Self::GroupAndInterrupts { group, cpus, interrupts } => {
                format!("group \"{group}\" is on CPUs {cpus}, its interrupts by irq_cpus on {interrupts}")
            }
            Self::TableAndWeights => "the table is fixed here, but groups with a weight divide it".into(),
            Self::FeatureOnAndOff { name, on, before, was } => format!("{name} = {on} contradicts {before} = {was}"),
            Self::LroAndForward => "LRO is on, but what was merged cannot be forwarded as it came".into(),
            Self::NtupleOff => "ntuple is off, but flow rules need it".into(),
            Self::HalfOfSymmetric { flow, fields } => {
                format!("{flow} = \"{fields}\" hashes one direction only, the transform is symmetric")
            }
            Self::FlowTwice { flow, first, to } if first == to => format!("{flow} stands there twice ({to})"),
            Self::FlowTwice { flow, first, to } => format!("{flow} is led to {first} and to {to}"),
            Self::NoContext { context } => format!("the rule leads to context {context}, which is not laid down here"),
        }
    }

    pub(crate) fn right(&self) -> String {
        match self {
            Self::NoCpuLeft { .. } => "CPUs that are not".into(),
            Self::ArticleAndGoal { .. }
            | Self::GroupAndInterrupts { .. }
            | Self::FeatureOnAndOff { .. }
            | Self::FlowTwice { .. } => "one of them".into(),
            Self::BeyondChannels { left, .. } | Self::GroupBeyondChannels { left, .. } => {
                format!("queues 0 to {}, or more channels", left.saturating_sub(1))
            }
            Self::GroupsWantMore { left, .. } => format!("{left} in all"),
            Self::QueueOfTwoGroups { .. } => "each queue in one group".into(),
            Self::GroupOnKeptCpus { kept, .. } => format!("other CPUs, or not in {kept}"),
            Self::GroupOutsideCpus { .. } => "CPUs of host.cpus, or more of these".into(),
            Self::TableAndWeights => "the table, or the weights".into(),
            Self::LroAndForward => "lro = false, or another goal".into(),
            Self::NtupleOff => "ntuple = true, or no rules and flows".into(),
            Self::HalfOfSymmetric { .. } => "\"sd\", \"sdfn\", or symmetric = \"none\"".into(),
            Self::NoContext { context } => format!("rss.context.{context} = \"equal 2\" too"),
        }
    }
}
