//! What helps against a loss or a busy CPU: the rule of `check` that explains it, and the interface to plan for.

use ringwise_model::shell;
use ringwise_model::words::one_line;
use ringwise_observe::{Bottleneck, BottleneckPlace, CpuLoadLevel};

/// What to type next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remedy<'a> {
    /// The rule of `check` whose page explains the loss and its fixes.
    pub rule: Option<&'static str>,
    /// The interface whose settings a plan could improve.
    pub plan: Option<&'a str>,
}

/// The rule of `check` about losses at this place.
pub(crate) fn rule(place: &BottleneckPlace) -> Option<&'static str> {
    match place {
        BottleneckPlace::Ring(..) => Some("D04"),
        BottleneckPlace::Stack(_) => Some("D07"),
        BottleneckPlace::Qdisc(_) => Some("D13"),
        BottleneckPlace::NoBuffer(_) => Some("D05"),
        BottleneckPlace::Backlog(_) => Some("D01"),
        BottleneckPlace::FlowLimit(_) => Some("D03"),
        // The kernel's names of the counters, by protocol.
        BottleneckPlace::Socket(counter) => match counter.split_once(':') {
            Some(("Udp" | "Udp6", "RcvbufErrors")) => Some("D10"),
            Some(("TcpExt", "ListenOverflows" | "ListenDrops")) => Some("D11"),
            _ => None,
        },
        BottleneckPlace::Tx(_) => None,
    }
}

/// The remedy for the largest loss that has one, or for the busiest CPU if it is full.
pub(crate) fn of(b: &Bottleneck) -> Option<Remedy<'_>> {
    let queue = b.busiest.as_ref().and_then(|c| c.queue.as_ref()).map(|q| q.link.as_str());
    for loss in &b.lost {
        let plan = match &loss.place {
            BottleneckPlace::Ring(name, _) | BottleneckPlace::NoBuffer(name) => Some(name.as_str()),
            // The interrupts of this interface load the CPUs whose backlogs are full.
            BottleneckPlace::Backlog(_) => queue,
            BottleneckPlace::Stack(_)
            | BottleneckPlace::Tx(_)
            | BottleneckPlace::Qdisc(_)
            | BottleneckPlace::FlowLimit(_)
            | BottleneckPlace::Socket(_) => None,
        };
        let rule = rule(&loss.place);
        if rule.is_some() || plan.is_some() {
            return Some(Remedy { rule, plan });
        }
    }
    let full = b.busiest.as_ref().is_some_and(|c| c.load == CpuLoadLevel::Full);
    full.then_some(Remedy { rule: Some("D15"), plan: queue })
}

impl Remedy<'_> {
    /// The commands. `live`: the counters are those of this host, so that a plan for it helps.
    pub(crate) fn text(&self, live: bool) -> Option<String> {
        let plan =
            self.plan.filter(|_| live).map(|name| one_line(&shell::join(["ringwise", "plan", name])).into_owned());
        let why = self.rule.map(|id| format!("ringwise check --explain {id}"));
        match (plan, why) {
            (Some(plan), Some(why)) => Some(format!("{plan}   (why: {why})")),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_model::CpuId;
    use ringwise_observe::PacketLoss;

    fn lost(places: Vec<BottleneckPlace>) -> Bottleneck {
        let lost = places.into_iter().map(|place| PacketLoss { place, packets: 1 }).collect();
        Bottleneck { lost, ..Bottleneck::default() }
    }

    #[test]
    fn each_loss_names_what_helps() {
        let b = lost(vec![BottleneckPlace::Ring("eth1".into(), None)]);
        let text = |live| of(&b).and_then(|r| r.text(live));
        assert_eq!(text(true).as_deref(), Some("ringwise plan eth1   (why: ringwise check --explain D04)"));
        // A recording may be of another host.
        assert_eq!(text(false).as_deref(), Some("ringwise check --explain D04"));
        // The next loss, if the first one has no remedy.
        let b = lost(vec![BottleneckPlace::Tx("eth1".into()), BottleneckPlace::Socket("Udp:RcvbufErrors".into())]);
        assert_eq!(of(&b), Some(Remedy { rule: Some("D10"), plan: None }));
        assert_eq!(of(&lost(vec![])), None);
    }

    #[test]
    fn every_rule_has_a_page() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        let name = || "eth1".to_string();
        let places = [
            BottleneckPlace::Ring(name(), None),
            BottleneckPlace::Stack(name()),
            BottleneckPlace::Qdisc(name()),
            BottleneckPlace::NoBuffer(name()),
            BottleneckPlace::Backlog(CpuId(1)),
            BottleneckPlace::FlowLimit(CpuId(1)),
            BottleneckPlace::Socket("Udp:RcvbufErrors".into()),
            BottleneckPlace::Socket("TcpExt:ListenDrops".into()),
        ];
        for id in places.iter().filter_map(rule).chain(["D15"]) {
            assert!(root.join(format!("{id}.md")).exists(), "{id}");
        }
    }
}
