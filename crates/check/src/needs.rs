//! Facts that the plan needs for a rule.

/// What a plan is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Which interrupts serve queues, and their CPUs.
    Interrupts,
    /// The interface's node, where there are several.
    Node,
    Rps,
    Rfs,
    Xps,
    Channels,
    Moderation,
    RssTable,
    FlowRules,
}
