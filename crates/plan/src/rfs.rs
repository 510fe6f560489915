//! Receive flow steering: the host's table and each queue's share of it.

use std::collections::BTreeSet;

use ringwise_knob::{Match, Reason, Setting, rfs as knob_rfs};
use ringwise_model::{Fact, Snapshot};

use crate::dev::{Dev, LearnedIndex};
use crate::goal::{self, Rfs};
use crate::target::{PlanBuilder, SCALING, StepReason};
use crate::wanted::RequestedSetting;
use crate::{NotPossible, Obstacle};

/// The largest power of two not above `entries / queues`, at least 1.
pub(crate) fn share(entries: u32, queues: u32) -> u32 {
    let part = (entries / queues.max(1)).max(1);
    1 << part.ilog2()
}

/// The use of the host's table if devices have different goals: the most demanding goal decides.
fn of_host(devs: &[Dev]) -> Rfs {
    let most = |a: Rfs, b: Rfs| match (a, b) {
        (Rfs::On { entries: x, at_least: l }, Rfs::On { entries: y, at_least: k }) => {
            Rfs::On { entries: x.max(y), at_least: l || k }
        }
        (on @ Rfs::On { .. }, _) | (_, on @ Rfs::On { .. }) => on,
        (Rfs::Off, _) | (_, Rfs::Off) => Rfs::Off,
        _ => Rfs::Keep,
    };
    devs.iter().map(|d| goal::rfs(d.goal)).fold(Rfs::Keep, most)
}

pub(crate) fn plan(s: &Snapshot, devs: &[Dev], learned: &LearnedIndex, out: &mut PlanBuilder) {
    let want = of_host(devs);
    if want == Rfs::Keep {
        return;
    }
    let considered = devs.iter().filter(|d| goal::rfs(d.goal) != Rfs::Keep).map(Dev::name).collect::<BTreeSet<_>>();
    // The table belongs to the host: other interfaces may depend on it.
    let others: Vec<&str> = s
        .nics
        .iter()
        .filter(|n| !considered.contains(n.name()))
        .filter(|n| n.rx_queues.iter().any(|q| q.rps_flow_cnt.known().is_some_and(|c| *c > 0)))
        .map(|n| n.name())
        .collect();
    let found = match &s.host.rps_sock_flow_entries {
        Fact::Known(n) => *n,
        other => {
            let why = match other {
                Fact::Unknown(u) => Obstacle::not_readable(u),
                _ => Obstacle::NoRps,
            };
            let what = ringwise_knob::Address::RfsEntries.to_string();
            out.refused.push(NotPossible {
                address: Some(ringwise_knob::Address::RfsEntries),
                what,
                why,
                needed: want != Rfs::Off,
                blocked_by: None,
            });
            return;
        }
    };
    let entries = match want {
        Rfs::Off if others.is_empty() => 0,
        Rfs::On { entries, at_least } if at_least || !others.is_empty() => entries.max(knob_rfs::kept(found)),
        Rfs::On { entries, .. } => entries,
        Rfs::Off | Rfs::Keep => found,
    };
    let write_host = want != Rfs::Off || others.is_empty();
    if write_host {
        let setting = Setting::RfsEntries { entries };
        let live = knob_rfs::live_entries(&s.host);
        let matched = knob_rfs::compare(entries, found);
        let needed = want != Rfs::Off;
        out.want(None, learned, RequestedSetting { setting, live, matched, anew: false, needed }, || {
            why_host(want, entries)
        });
    } else {
        out.warnings.push(format!(
            "the host's RFS table stays unchanged: interfaces outside this plan use it ({})",
            others.join(" ")
        ));
    }
    for d in devs {
        let want = goal::rfs(d.goal);
        if want == Rfs::Keep {
            continue;
        }
        let each = if want == Rfs::Off { 0 } else { share(entries, d.rx) };
        for q in 0..d.rx {
            let dev = d.name().to_string();
            let live = d.rx_queue(q).map_or(Fact::Absent, |r| {
                r.rps_flow_cnt.as_ref().map(|n: &u32| Setting::RpsFlowCnt { dev: dev.clone(), queue: q, entries: *n })
            });
            let exists = d.rx_queue(q).is_some();
            if live.is_absent() && (exists || each == 0) {
                continue;
            }
            let matched = match &live {
                Fact::Known(Setting::RpsFlowCnt { entries: got, .. }) => knob_rfs::compare(each, *got),
                _ => Match::Gone,
            };
            let setting = Setting::RpsFlowCnt { dev, queue: q, entries: each };
            let anew = d.channels.is_some() && !exists;
            let w = RequestedSetting { setting, live, matched, anew, needed: want != Rfs::Off };
            out.want(Some(d.nic), learned, w, || why_queue(want, entries, d.rx));
        }
    }
}

fn why_host(want: Rfs, entries: u32) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason, source: SCALING };
    match want {
        Rfs::Off | Rfs::Keep => with("Q11", Reason::RfsNoGain),
        Rfs::On { at_least: true, .. } => with("R2.03", Reason::RfsManyConnections { entries }),
        Rfs::On { .. } => with("R2.03", Reason::RfsLongFlows { entries }),
    }
}

fn why_queue(want: Rfs, entries: u32, queues: u32) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason, source: SCALING };
    match want {
        Rfs::Off | Rfs::Keep => with("Q11", Reason::RfsOff),
        Rfs::On { .. } => with("Q09", Reason::RfsShare { entries, queues }),
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_power_of_two_not_above_the_share() {
        assert_eq!(share(32_768, 8), 4096);
        assert_eq!(share(32_768, 5), 4096);
        assert_eq!(share(32_768, 6), 4096);
        assert_eq!(share(32_768, 1), 32_768);
        assert_eq!(share(2, 8), 1);
    }
}
