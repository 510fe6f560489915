//! Findings about settings that the plan would change. Their reasons are those of the plan's steps.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Reason, Setting, Step, VectorName};
use ringwise_model::{CpuId, CpuSet, Dir, Fact, Nic, NicKind, NodeId, Subject};

use crate::finding_sink::FindingSink;
use crate::fix::PlanArguments;
use crate::needs::RequiredFact;
use crate::rule_context::RuleContext;
use crate::severity::Severity;
use crate::wording;

/// The rule of interrupts whose CPU is no fault, where the goal prefers another one.
const PROPOSED: &str = "R0.09";

/// Makes findings from the plan's steps for this rule.
pub(crate) fn judge(rule: &'static str, cx: &RuleContext, say: &mut FindingSink) -> Option<()> {
    let _plan = cx.i.plan.as_ref().ok()?;
    let mut by_dev: BTreeMap<Option<&str>, Vec<&Step>> = BTreeMap::new();
    let steps = cx.planned.get(rule).into_iter().flatten().filter(|s| !follows(rule, &s.reason));
    let addresses: Vec<(Address, &Step)> = steps.filter_map(|s| Some((s.setting.address()?, *s))).collect();
    for (a, s) in &addresses {
        by_dev.entry(a.dev()).or_default().push(s);
    }
    for (dev, steps) in by_dev {
        match dev {
            Some(d) => say.at(d),
            None => say.of_host(),
        }
        let severity = severity(rule, cx, dev, &steps);
        let full = rule == "A03" && !local_cpu_is_free(cx, dev, &steps);
        let undecided = full && cx.plan_shares_for_locality().is_some();
        let about = match (rule, full, undecided) {
            (PROPOSED, ..) => wording::planned_remote(to_remote(cx, dev, &steps)),
            (_, true, false) => wording::NO_LOCAL_CPU_FREE.to_string(),
            (_, true, true) => wording::MEASURE_SHARING.to_string(),
            _ => String::new(),
        };
        let mut f = say.planned(text(rule, &steps) + &about);
        // By the plan's own model its moves may make the host slower, so they are no plain fix.
        // So is the plan that fixes XPS, because it makes these moves too.
        let with_moves = rule == "Q15" && cx.plan_shares_for_locality().is_some();
        f = match (undecided, with_moves) {
            (true, _) => f.severity(Severity::Info),
            (false, true) => f,
            (false, false) => f.fix(cx, PlanArguments::planned()),
        };
        if let Some(s) = severity {
            f = f.severity(s);
        }
        if let ("A03", Some(dev)) = (rule, dev) {
            for ((from, to), d) in distances(cx, dev, &steps) {
                f = f.evidence(format!("distance from node {from} of {dev} to node {to}: {d} (within a node: 10)"));
            }
        }
        for s in steps {
            if !f.0.reasons.contains(&s.reason) {
                f.0.reasons.push(s.reason.clone());
            }
            let Some(a) = s.setting.address() else { continue };
            let from = match &s.from {
                Fact::Known(v) => v.value_text(),
                Fact::Absent => "none".into(),
                Fact::Unknown(u) => format!("unknown ({})", u.why),
            };
            f = f.evidence(format!("{a}: {from}, planned {}: {}", s.setting.value_text(), s.reason));
            if let Some(c) = s.setting.command(cx.s) {
                f.0.by_hand.push(c);
            }
        }
    }
    say.of_host();
    not_known(cx, say);
    Some(())
}

/// Whether the setting only follows from another one with this rule: from another number of queues, or from interrupts that
/// may go to remote CPUs. It is no finding of its own.
fn follows(rule: &str, reason: &Reason) -> bool {
    match reason {
        Reason::Reset { reason, .. } => follows(rule, reason),
        Reason::PlacedForCount { .. } => true,
        Reason::NearestQueue | Reason::QueueWithoutCpu { .. } | Reason::ConfiguredForItsCpu => {
            !matches!(rule, "Q15" | "Q16")
        }
        Reason::RfsShare { .. } => rule != "Q09",
        _ => false,
    }
}

/// The severity where it differs from the rule's.
fn severity(rule: &str, cx: &RuleContext, dev: Option<&str>, steps: &[&Step]) -> Option<Severity> {
    let dev = dev?;
    match rule {
        "A03" if far(cx, dev, steps) && local_cpu_is_free(cx, Some(dev), steps) => Some(Severity::Error),
        // Every interrupt is on a good CPU at the moment, only not pinned.
        "A02" if steps.iter().all(|s| wording::is_on_good_cpu(&s.reason)) => Some(Severity::Info),
        // Without XPS a forwarded packet is sent through the queue with the number of its receive queue (skb_tx_hash).
        "Q14" if cx.s.nic(dev).is_some_and(|n| cx.forwards_or_requested(n)) => Some(Severity::Info),
        // There are enough CPUs for all queues, but not near the interface.
        "Q03" => Some(Severity::Info),
        // Two devices compete only if both carry traffic.
        "A15" if idle(cx, dev) => Some(Severity::Info),
        _ => None,
    }
}

/// Whether samples show that the interface received almost nothing.
fn idle(cx: &RuleContext, dev: &str) -> bool {
    let Some(t) = cx.i.traffic else { return false };
    t.links.get(dev).and_then(|l| l.rx_packets).is_some_and(|n| t.per_second(n) < 1000.0)
}

/// Notes the unknown facts that the rule needs. Without them the plan has no step, although the setting may be wrong.
fn not_known(cx: &RuleContext, say: &mut FindingSink) {
    let of_rule = say.needs;
    let needs = |what: RequiredFact| of_rule.contains(&what);
    let interrupts = needs(RequiredFact::Interrupts);
    let nodes = cx.nodes() > 1 && needs(RequiredFact::Node);
    for n in &cx.nics {
        say.at(n.name());
        let vectors = n.queue_vectors().map(|v| v.effective.unread()).filter(|_| interrupts);
        let facts = [
            nodes.then(|| n.node.unread()),
            needs(RequiredFact::Rps).then(|| n.rx_queues.iter().find_map(|q| q.rps_cpus.unread())),
            needs(RequiredFact::Rfs).then(|| n.rx_queues.iter().find_map(|q| q.rps_flow_cnt.unread())),
            needs(RequiredFact::Xps).then(|| n.tx_queues.iter().find_map(|q| q.xps_cpus.unread())),
            needs(RequiredFact::Channels).then(|| n.channels.unread()),
            needs(RequiredFact::Moderation).then(|| n.coalesce.unread()),
            needs(RequiredFact::RssTable).then(|| n.rss.unread()),
            needs(RequiredFact::FlowRules).then(|| n.rules.unread()),
        ];
        // One unread fact of a kind is enough: the others have the same reason.
        for u in facts.into_iter().flatten().flatten().chain(vectors.flatten().take(1)) {
            say.unread(u);
        }
        for u in n.unread.iter().filter(|u| interrupts && u.subject == Some(Subject::QueueInterrupts)) {
            say.unread(u);
        }
    }
    // A device whose queues are unknown is not judged at all.
    let hardware = |n: &Nic| !matches!(n.kind, NicKind::Software { .. } | NicKind::Loopback);
    let judged = |n: &Nic| cx.is_selected(Some(n.name()));
    for n in cx.s.nics.iter().filter(|n| n.rx_queues.is_empty() && hardware(n) && judged(n)) {
        if let Some(u) = n.queues_unread() {
            say.at(n.name());
            say.unread(u);
        }
    }
    say.of_host();
}

/// Whether an interrupt goes to another CPU socket, not only to another node of the same socket.
fn far(cx: &RuleContext, dev: &str, steps: &[&Step]) -> bool {
    distances(cx, dev, steps).values().any(|d| *d > 20)
}

/// From the node of the interface to those of the CPUs that handle these interrupts now.
fn distances(cx: &RuleContext, dev: &str, steps: &[&Step]) -> BTreeMap<(NodeId, NodeId), u32> {
    let Some((n, home)) = cx.s.nic(dev).and_then(|n| Some((n, *n.node.known()?))) else { return BTreeMap::new() };
    let distance = |s: &&Step| {
        let v = match s.setting.address()? {
            Address::IrqCpus { of: VectorName::Rx(q), .. } => n.vector_of(Dir::Rx, q),
            Address::IrqCpus { of: VectorName::Tx(q), .. } => n.vector_of(Dir::Tx, q),
            _ => None,
        };
        let to = v.and_then(|v| cx.at(v)).and_then(|c| cx.s.topology.node_of(c)).filter(|to| *to != home)?;
        Some(((home, to), cx.s.topology.distance(home, to)?))
    };
    steps.iter().filter_map(distance).collect::<BTreeMap<_, _>>()
}

/// How many of these interrupts the plan moves to CPUs of another node than the interface's.
fn to_remote(cx: &RuleContext, dev: Option<&str>, steps: &[&Step]) -> usize {
    let home = dev.and_then(|d| cx.s.nic(d)).and_then(|n| n.node.known());
    let Some(home) = home else { return 0 };
    let remote = |c: CpuId| cx.s.topology.node_of(c).is_some_and(|n| n != *home);
    let moves = |s: &&&Step| matches!(&s.setting, Setting::IrqCpus { cpus, .. } if cpus.iter().all(remote));
    steps.iter().filter(moves).count()
}

/// Whether a usable CPU of the interface's node has none of its interrupts of the direction that these steps are about.
fn local_cpu_is_free(cx: &RuleContext, dev: Option<&str>, steps: &[&Step]) -> bool {
    let Some(n) = dev.and_then(|d| cx.s.nic(d)) else { return false };
    let is_tx = |s: &&Step| matches!(s.setting.address(), Some(Address::IrqCpus { of: VectorName::Tx(_), .. }));
    let sends = steps.iter().all(is_tx);
    let serves = |v: &&ringwise_model::Vector| if sends { !v.tx().is_empty() } else { !v.rx().is_empty() };
    let busy: CpuSet = n.queue_vectors().filter(serves).filter_map(|v| cx.at(v)).collect();
    !cx.usable_near(n).difference(&busy).is_empty()
}

/// Describes the present state, one part for each problem. Findings of R0.09 are no problem at present, so they begin with what
/// the plan would do.
fn text(rule: &str, steps: &[&Step]) -> String {
    let mut parts: Vec<(&Reason, Vec<&Step>)> = Vec::new();
    for s in steps {
        match parts.iter_mut().find(|(r, _)| wording::is_same_problem(r, &s.reason)) {
            Some((_, list)) => list.push(s),
            None => parts.push((&s.reason, vec![s])),
        }
    }
    let proposed = rule == PROPOSED;
    wording::joined(parts.into_iter().map(|(reason, list)| part(reason, &list, proposed)).collect())
}

/// `reason` is that of one of the steps, which have the same problem.
fn part(reason: &Reason, steps: &[&Step], proposed: bool) -> String {
    let (mut what, several) = subject(&steps.iter().filter_map(|s| s.setting.address()).collect::<Vec<_>>());
    if proposed && !what.is_empty() {
        what = wording::would_move(&what, several);
    }
    let arrived = steps.iter().filter(|s| wording::is_on_planned_cpu(&s.reason)).count();
    let other = steps.iter().map(|s| &s.reason).find(|r| !wording::is_on_planned_cpu(r));
    match other {
        Some(other) if arrived > 0 => wording::finding(other, &what, several) + &wording::some_on_planned_cpu(arrived),
        _ => wording::finding(reason, &what, several),
    }
}

/// The name of what the steps change, such as `queues 4-5` or `receive and transmit queue 0`, and whether it is plural.
fn subject(at: &[Address]) -> (String, bool) {
    let (mut queues, mut tx_queues) = (CpuSet::new(), CpuSet::new());
    for a in at {
        match a {
            Address::IrqCpus { of: VectorName::Control(_), .. } => return (String::new(), false),
            Address::IrqCpus { of: VectorName::Rx(queue), .. }
            | Address::RpsCpus { queue, .. }
            | Address::RpsFlowCnt { queue, .. }
            | Address::QueueCoalesce { queue, .. } => queues.insert(CpuId(*queue)),
            Address::IrqCpus { of: VectorName::Tx(queue), .. }
            | Address::XpsCpus { queue, .. }
            | Address::XpsRxqs { queue, .. } => tx_queues.insert(CpuId(*queue)),
            Address::Feature { name, .. } => return (ringwise_knob::features::short_name(name).to_string(), false),
            _ => return (String::new(), false),
        }
    }
    let named = |kind: &str, set: &CpuSet| format!("{kind}{} {set}", if set.len() == 1 { "" } else { "s" });
    let what = match (queues.is_empty(), tx_queues.is_empty()) {
        (true, true) => String::new(),
        (false, true) => named("queue", &queues),
        (true, false) => named("transmit queue", &tx_queues),
        (false, false) if queues == tx_queues => named("receive and transmit queue", &queues),
        (false, false) => format!("{} and {}", named("queue", &queues), named("transmit queue", &tx_queues)),
    };
    (what, queues.len() + tx_queues.len() > 1)
}

#[cfg(test)]
mod tests {
    use ringwise_knob::{IfRefused, MoveCause};

    use super::*;

    fn step(of: VectorName, reason: Reason) -> Step {
        let setting = Setting::IrqCpus { dev: "eth0".into(), of, cpus: "3".parse().unwrap(), on: None };
        Step {
            setting,
            from: Fact::Absent,
            rule: "A02".into(),
            reason,
            source: String::new(),
            interrupts_traffic: false,
            if_refused: IfRefused::Skip,
            instead: Vec::new(),
        }
    }

    /// Where the plan moves the queues to differs, but the finding is about the present and states it once.
    #[test]
    fn one_part_for_each_problem() {
        let other = |queue, node| {
            let node = Some(NodeId(node));
            step(VectorName::Rx(queue), Reason::CpuOfOtherInterface { other: "eth1".into(), node })
        };
        let steps = [other(4, 4), other(5, 4), other(12, 6)];
        let shown = text("A02", &steps.iter().collect::<Vec<_>>());
        let free = "the plan gives their CPUs to eth1, and no other local CPU that --smt allows is free";
        assert_eq!(shown, format!("queues 4-5,12: {free}"));

        let shown = text(PROPOSED, &steps.iter().collect::<Vec<_>>());
        assert_eq!(shown, format!("interrupts of queues 4-5,12 would move: {free}"));

        let free = |of, arrived, moved| step(of, Reason::FreeToMove { among: "0-3".parse().unwrap(), arrived, moved });
        let moved = Some(MoveCause::BothDirections);
        let steps = [free(VectorName::Rx(0), true, None), free(VectorName::Tx(0), false, moved)];
        assert_eq!(
            text("A02", &steps.iter().collect::<Vec<_>>()),
            "the interrupts of receive and transmit queue 0 may move among CPUs 0-3; 1 of them is on its planned CPU at \
             the moment"
        );
        let steps = [free(VectorName::Rx(0), false, moved), free(VectorName::Rx(1), false, None)];
        assert_eq!(
            text("A02", &steps.iter().collect::<Vec<_>>()),
            "the interrupts of queues 0-1 may move among CPUs 0-3"
        );
        let steps = [free(VectorName::Tx(2), true, None), free(VectorName::Rx(1), true, None)];
        assert_eq!(
            text("A02", &steps.iter().collect::<Vec<_>>()),
            "the interrupts of queue 1 and transmit queue 2 may move among CPUs 0-3, and each is on the planned one at the \
             moment"
        );
    }
}
