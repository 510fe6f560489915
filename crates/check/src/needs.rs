//! Kinds of facts that the plan needs to evaluate a rule.

/// A kind of fact that the plan needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredFact {
    /// Which interrupts serve queues, and their CPUs.
    Interrupts,
    /// The interface's node, on a host with several nodes.
    Node,
    Rps,
    Rfs,
    Xps,
    Channels,
    Moderation,
    RssTable,
    FlowRules,
}
