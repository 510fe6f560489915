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
    /// The group that already has the queue.
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
    /// The two targets may be the same.
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
            Self::NoCpuLeft { cpus } => format!("reserve or exclude_cpus excludes every CPU in cpus ({cpus})"),
            Self::ArticleAndGoal { goal } => {
                format!("pair_as_article and goal {goal} place queues differently")
            }
            Self::BeyondChannels { what, queue, left } => {
                format!("{what} names queue {queue}, but channels sets only {left}")
            }
            Self::GroupBeyondChannels { group, queue, left } => {
                format!("group \"{group}\" names queue {queue}, but channels sets only {left}")
            }
            Self::GroupsWantMore { wanted, left } => {
                format!("the groups need {wanted} queues, but channels sets only {left}")
            }
            Self::QueueOfTwoGroups { queue, group } => format!("queue {queue} belongs to group \"{group}\" already"),
            Self::GroupOnKeptCpus { group, cpus, kept } => {
                format!("group \"{group}\" uses CPUs {cpus}, which {kept} keeps free")
            }
            Self::GroupOutsideCpus { group, cpus } => {
                format!("group \"{group}\" uses CPUs {cpus}, which are not in host.cpus")
            }
            Self::GroupAndInterrupts { group, cpus, interrupts } => {
                format!("group \"{group}\" uses CPUs {cpus}, but irq_cpus uses {interrupts}")
            }
            Self::TableAndWeights => "the RSS table is set here, but weights of groups set it too".into(),
            Self::FeatureOnAndOff { name, on, before, was } => format!("{name} = {on} contradicts {before} = {was}"),
            Self::LroAndForward => "LRO is on, but merged packets cannot be forwarded unchanged".into(),
            Self::NtupleOff => "ntuple is off, but flow rules need it".into(),
            Self::HalfOfSymmetric { flow, fields } => {
                format!("{flow} = \"{fields}\" hashes one direction only, but symmetric is set")
            }
            Self::FlowTwice { flow, first, to } if first == to => format!("{flow} is configured twice ({to})"),
            Self::FlowTwice { flow, first, to } => format!("{flow} is steered to {first} and to {to}"),
            Self::NoContext { context } => format!("the rule uses context {context}, which is not configured here"),
        }
    }

    pub(crate) fn right(&self) -> String {
        match self {
            Self::NoCpuLeft { .. } => "at least one CPU in cpus that neither of them names".into(),
            Self::ArticleAndGoal { .. }
            | Self::GroupAndInterrupts { .. }
            | Self::FeatureOnAndOff { .. }
            | Self::FlowTwice { .. } => "only one of them".into(),
            Self::BeyondChannels { left, .. } | Self::GroupBeyondChannels { left, .. } => {
                format!("queues 0 to {}, or more channels", left.saturating_sub(1))
            }
            Self::GroupsWantMore { left, .. } => format!("at most {left} in total"),
            Self::QueueOfTwoGroups { .. } => "each queue in one group".into(),
            Self::GroupOnKeptCpus { kept, .. } => format!("other CPUs, or {kept} without these CPUs"),
            Self::GroupOutsideCpus { .. } => "CPUs in host.cpus, or host.cpus with these CPUs".into(),
            Self::TableAndWeights => "either the table or the weights".into(),
            Self::LroAndForward => "lro = false, or another goal".into(),
            Self::NtupleOff => "ntuple = true, or no rules and flows".into(),
            Self::HalfOfSymmetric { .. } => "\"sd\", \"sdfn\", or symmetric = \"none\"".into(),
            Self::NoContext { context } => format!("also rss.context.{context} = \"equal 2\""),
        }
    }
}
