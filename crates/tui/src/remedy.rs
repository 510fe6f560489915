//! What helps against a loss or a busy CPU: the rule of `check` that explains it, and the interface to plan for.

use ringwise_model::shell;
use ringwise_model::words::one_line;
use ringwise_observe::{Bottleneck, Load, Place};

/// What to type next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remedy<'a> {
    /// The rule of `check` whose page explains the loss and its fixes.
    pub rule: Option<&'static str>,
    /// The interface whose settings a plan could improve.
    pub plan: Option<&'a str>,
}

/// The rule of `check` about losses at this place.
pub(crate) fn rule(place: &Place) -> Option<&'static str> {
    match place {
        Place::Ring(..) => Some("D04"),
        Place::Stack(_) => Some("D07"),
        Place::Qdisc(_) => Some("D13"),
        Place::NoBuffer(_) => Some("D05"),
        Place::Backlog(_) => Some("D01"),
        Place::FlowLimit(_) => Some("D03"),
        // The kernel's names of the counters, by protocol.
        Place::Socket(counter) => match counter.split_once(':') {
            Some(("Udp" | "Udp6", "RcvbufErrors")) => Some("D10"),
            Some(("TcpExt", "ListenOverflows" | "ListenDrops")) => Some("D11"),
            _ => None,
        },
        Place::Tx(_) => None,
    }
}

/// The remedy for the largest loss that has one, or for the busiest CPU if it is full.
pub(crate) fn of(b: &Bottleneck) -> Option<Remedy<'_>> {
    let queue = b.busiest.as_ref().and_then(|c| c.queue.as_ref()).map(|q| q.link.as_str());
    for loss in &b.lost {
        let plan = match &loss.place {
            Place::Ring(name, _) | Place::NoBuffer(name) => Some(name.as_str()),
            // The interrupts of this interface load the CPUs whose backlogs are full.
            Place::Backlog(_) => queue,
            Place::Stack(_) | Place::Tx(_) | Place::Qdisc(_) | Place::FlowLimit(_) | Place::Socket(_) => None,
        };
        let rule = rule(&loss.place);
        if rule.is_some() || plan.is_some() {
            return Some(Remedy { rule, plan });
        }
    }
    let full = b.busiest.as_ref().is_some_and(|c| c.load == Load::Full);
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
    use ringwise_observe::Loss;

    fn lost(places: Vec<Place>) -> Bottleneck {
        let lost = places.into_iter().map(|place| Loss { place, packets: 1 }).collect();
        Bottleneck { lost, ..Bottleneck::default() }
    }

    #[test]
    fn each_loss_names_what_helps() {
        let b = lost(vec![Place::Ring("eth1".into(), None)]);
        let text = |live| of(&b).and_then(|r| r.text(live));
        assert_eq!(text(true).as_deref(), Some("ringwise plan eth1   (why: ringwise check --explain D04)"));
        // A recording may be of another host.
        assert_eq!(text(false).as_deref(), Some("ringwise check --explain D04"));
        // The next loss, if the first one has no remedy.
        let b = lost(vec![Place::Tx("eth1".into()), Place::Socket("Udp:RcvbufErrors".into())]);
        assert_eq!(of(&b), Some(Remedy { rule: Some("D10"), plan: None }));
        assert_eq!(of(&lost(vec![])), None);
    }

    #[test]
    fn every_rule_has_a_page() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        let name = || "eth1".to_string();
        let places = [
            Place::Ring(name(), None),
            Place::Stack(name()),
            Place::Qdisc(name()),
            Place::NoBuffer(name()),
            Place::Backlog(CpuId(1)),
            Place::FlowLimit(CpuId(1)),
            Place::Socket("Udp:RcvbufErrors".into()),
            Place::Socket("TcpExt:ListenDrops".into()),
        ];
        for id in places.iter().filter_map(rule).chain(["D15"]) {
            assert!(root.join(format!("{id}.md")).exists(), "{id}");
        }
    }
}
