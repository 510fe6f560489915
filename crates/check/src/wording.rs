//! Texts of findings about steps of the plan. The reason of a step describes the future, a finding describes the
//! present.

use ringwise_knob::{MoveCause, Reason};
use ringwise_model::words::plural;

/// How many different reasons one line shows. `-v` and JSON list all of them as evidence.
const SHOWN: usize = 2;

/// Follows the finding of rule A03 where the plan makes queues share CPUs.
pub(crate) const NO_LOCAL_CPU_FREE: &str =
    ", but every local CPU has a queue already: the plan shows what sharing them costs";

/// Follows the finding of rule R0.09 where the plan moves interrupts to CPUs of other nodes.
pub(crate) fn planned_remote(interrupts: usize) -> String {
    match interrupts {
        0 => String::new(),
        1 => "; 1 of the planned CPUs is on a remote node (to prevent it: plan --far-node never)".into(),
        n => format!("; {n} of the planned CPUs are on remote nodes (to prevent it: plan --far-node never)"),
    }
}

/// The subject of a finding about interrupts that the plan would move although their CPU is no fault.
pub(crate) fn would_move(what: &str, several: bool) -> String {
    format!("{} of {what} would move", if several { "interrupts" } else { "interrupt" })
}

/// Follows the finding of rule A03 where the plan carries less traffic by its model, so that a measurement has to decide.
pub(crate) const MEASURE_SHARING: &str = ", but every local CPU has a queue already: only a measurement shows whether sharing \
                                          them is faster (ringwise bench forward --help)";

/// The reason of one or several steps as a finding about `what` (`queues 4-5`).
pub(crate) fn finding(reason: &Reason, what: &str, several: bool) -> String {
    use Reason as R;
    let by = |one: &'static str, more: &'static str| if several { more } else { one };
    match reason {
        R::FreeToMove { among, arrived, .. } => {
            let chance = if *arrived {
                by(", and is on the planned one at the moment", ", and each is on the planned one at the moment")
            } else {
                ""
            };
            format!("{} of {what} may move among CPUs {among}{chance}", by("the interrupt", "the interrupts"))
        }
        R::PinAsOnOtherPorts { among } => format!(
            "{} of {what} may move among CPUs {among}, and {} not on the CPU of the same queue number on other ports",
            by("the interrupt", "the interrupts"),
            by("is", "are")
        ),
        R::FarNode { dev, node } => {
            let node = node.map_or_else(|| "unknown".to_string(), |n| n.to_string());
            format!("{what} {} node {node}, remote from {dev}", by("interrupts a CPU on", "interrupt CPUs on"))
        }
        R::QueuesShareCore => {
            format!(
                "{what} {} with other queues, although another local or nearby core has none",
                by("shares its core", "share cores")
            )
        }
        R::RemoteRequested => format!(
            "{what} {} local CPUs with other queues, although remote CPUs are permitted (--far-node ok)",
            by("shares", "share")
        ),
        R::CrowdedCpu => format!(
            "{what} {} queues of other interfaces too, although a local CPU has fewer",
            by("is on a CPU that handles", "are on CPUs that handle")
        ),
        R::CrowdedCache { dev } => format!(
            "{what}: {} more queues of {dev} than {}",
            by("its L3 cache serves", "their L3 caches serve"),
            by("that of the planned CPU", "those of the planned CPUs")
        ),
        R::CpuOfOtherInterface { other, .. } => format!(
            "{what}: the plan gives {} to {other}, and no other local CPU that --smt allows is free",
            by("its CPU", "their CPUs")
        ),
        R::NearestQueue => {
            format!("XPS of {what} does not name the CPUs nearest to {}", by("its interrupt", "their interrupts"))
        }
        R::NoXps { queues } => format!("no XPS on {queues} transmit queues"),
        // The reason names the planned CPU of the interrupt, which is not in effect yet, so the finding leaves it out.
        R::OneQueue { helpers, .. } => {
            let help = match helpers.len() {
                1 => format!("CPU {helpers} could help, the nearest one"),
                _ => format!("CPUs {helpers} could help, the nearest ones"),
            };
            format!("one receive queue: one CPU handles all received packets; {help} outside its own core")
        }
        R::QueuesCoverCores { queues, cores } => format!(
            "{queues} queues already spread over {}; RPS adds an inter-processor interrupt for each packet burst",
            if *cores == 1 { "the local core".into() } else { format!("all {cores} local cores") }
        ),
        R::RfsManyConnections { entries } | R::RfsLongFlows { entries } => {
            format!("the RFS socket table does not have the {entries} entries that this goal needs")
        }
        R::RfsShare { entries, queues } => {
            let share = "does not have its share of the RFS entries";
            let shares = "do not have their share of the RFS entries";
            let queues = plural(*queues as usize, "queue");
            format!("{what} {} ({entries} divided among {queues})", by(share, shares))
        }
        R::RfsOff => format!("{what} {} RFS entries; this goal sets none", by("has", "have")),
        R::Adaptive { .. } => {
            "adaptive moderation is off; for requests that arrive singly and in bursts, it adapts the interval to the load"
                .into()
        }
        // These reasons name their subject themselves.
        R::MostOnOneCpu { .. } | R::QueuesShareCpu { .. } | R::DeviceSpreads { .. } => reason.to_string(),
        _ if what.is_empty() => reason.to_string(),
        _ => format!("{what}: {reason}"),
    }
}

/// Whether two steps have the same problem at present. Where the plan moves an interrupt to, and why, is left out.
pub(crate) fn is_same_problem(a: &Reason, b: &Reason) -> bool {
    use Reason as R;
    match (a, b) {
        (R::FreeToMove { among: a, .. }, R::FreeToMove { among: b, .. }) => a == b,
        (R::CpuOfOtherInterface { other: a, .. }, R::CpuOfOtherInterface { other: b, .. }) => a == b,
        _ => a == b,
    }
}

/// Whether the interrupt is on the planned CPU, although it may move.
pub(crate) fn is_on_planned_cpu(reason: &Reason) -> bool {
    matches!(reason, Reason::FreeToMove { arrived: true, .. })
}

/// The same, or it moves only because queues of its number are on its CPU.
pub(crate) fn is_on_good_cpu(reason: &Reason) -> bool {
    is_on_planned_cpu(reason) || matches!(reason, Reason::FreeToMove { moved: Some(MoveCause::QueuesOfOneNumber), .. })
}

/// Follows a finding about interrupts of which only some are on the planned CPU.
pub(crate) fn some_on_planned_cpu(interrupts: usize) -> String {
    match interrupts {
        1 => "; 1 of them is on its planned CPU at the moment".into(),
        n => format!("; {n} of them are on their planned CPUs at the moment"),
    }
}

/// Joins several texts in one line.
pub(crate) fn joined(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(SHOWN);
    if more < 2 {
        return all.join("; ");
    }
    all.truncate(SHOWN);
    format!("{}; {more} more like this", all.join("; "))
}

#[cfg(test)]
mod tests {
    use ringwise_model::{CpuId, NodeId};

    use super::*;

    #[test]
    fn describes_the_present() {
        let check =
            |reason: Reason, what: &str, want: &str| assert_eq!(finding(&reason, what, what.contains("queues")), want);
        let among = "0-7".parse().unwrap();
        check(
            Reason::FreeToMove { among, arrived: false, moved: None },
            "queues 0-2",
            "the interrupts of queues 0-2 may move among CPUs 0-7",
        );
        check(
            Reason::FreeToMove { among: "0-7".parse().unwrap(), arrived: true, moved: None },
            "queue 3",
            "the interrupt of queue 3 may move among CPUs 0-7, and is on the planned one at the moment",
        );
        check(
            Reason::FarNode { dev: "eth1".into(), node: Some(NodeId(1)) },
            "queues 4-5",
            "queues 4-5 interrupt CPUs on node 1, remote from eth1",
        );
        check(Reason::NoXps { queues: 8 }, "transmit queues 0-7", "no XPS on 8 transmit queues");
        let shared = Reason::QueuesShareCpu { dev: "eth1".into(), cpu: CpuId(0), queues: 4, pending: None };
        check(shared, "queues 0-3", "4 queues of eth1 share CPU 0");
        let set = |pending| Reason::MostOnOneCpu { dev: "eth0".into(), cpu: CpuId(0), queues: 8, of: 8, pending };
        check(set(None), "queues 0-7", "CPU 0 handles 8 of eth0's 8 queue interrupts");
        let handles = |n: u32| format!("CPU 0 handles {n} of eth0's 8 queue interrupts, and");
        let set_to = |n: &str| format!("{n} set to it but not delivered there yet");
        check(set(Some(7)), "queues 0-7", &format!("{} {}", handles(1), set_to("7 more are")));
        check(set(Some(1)), "queues 0-7", &format!("{} {}", handles(7), set_to("1 more is")));
        let all = "8 of eth0's 8 queue interrupts are set to CPU 0, but not delivered there yet";
        check(set(Some(8)), "queues 0-7", all);
        let shared = Reason::QueuesShareCpu { dev: "eth1".into(), cpu: CpuId(0), queues: 4, pending: Some(1) };
        let text = "4 queues of eth1 share CPU 0 (1 of them set to it, but not delivered there yet)";
        check(shared, "queues 0-3", text);
        check(
            Reason::OneQueue { cpu: Some(CpuId(0)), helpers: "1".parse().unwrap() },
            "queue 0",
            "one receive queue: one CPU handles all received packets; CPU 1 could help, the nearest one outside its own core",
        );
        let other = |node| Reason::CpuOfOtherInterface { other: "eth0v0".into(), node };
        check(
            other(Some(NodeId(4))),
            "queues 4-5",
            "queues 4-5: the plan gives their CPUs to eth0v0, and no other local CPU that --smt allows is free",
        );
        check(
            Reason::CrowdedCache { dev: "eth0".into() },
            "queue 4",
            "queue 4: its L3 cache serves more queues of eth0 than that of the planned CPU",
        );
        let share = Reason::RfsShare { entries: 32768, queues: 7 };
        let text = "queues 0-6 do not have their share of the RFS entries (32768 divided among 7 queues)";
        check(share, "queues 0-6", text);
        check(Reason::RulesNeedFeature, "ntuple", "ntuple: flow rules need it");
        let all: Vec<String> = (0..5).map(|i| format!("{i}")).collect();
        assert_eq!(joined(all.clone()), "0; 1; 3 more like this");
        assert_eq!(joined(all[..3].to_vec()), "0; 1; 2");
        assert!(is_same_problem(&other(Some(NodeId(4))), &other(None)));
        let free = |among: &str, arrived| Reason::FreeToMove { among: among.parse().unwrap(), arrived, moved: None };
        assert!(is_same_problem(&free("0-7", true), &free("0-7", false)));
        assert!(!is_same_problem(&free("0-7", true), &free("0-6", true)));
    }
}
