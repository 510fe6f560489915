//! Receive flow steering: the host's table and each queue's share of it.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Match, Reason, Setting, rfs as knob_rfs};
use ringwise_model::{Fact, Intent, Knob, Snapshot};

use crate::dev::{Dev, LearnedIndex};
use crate::goal::{self, Rfs};
use crate::target::{PlanBuilder, StepReason};
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

pub(crate) fn plan(s: &Snapshot, devs: &[Dev], intent: &Intent, learned: &LearnedIndex, out: &mut PlanBuilder) {
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
                settings: 1,
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
    // A configured number replaces that of the goal; each queue gets its share of it.
    let configured = configured_entries(intent).filter(|_| want != Rfs::Off);
    let entries = configured.map_or(entries, knob_rfs::kept);
    for d in devs {
        let mut want = goal::rfs(d.goal);
        if want == Rfs::Keep {
            continue;
        }
        if configured == Some(0) {
            want = Rfs::Off;
        }
        let each = if want == Rfs::Off { 0 } else { share(entries, d.rx) };
        let channels = Address::Channels { dev: d.name().to_string() };
        let recount = out.rule_at(&channels).filter(|_| want != Rfs::Off && entries == found);
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
            let had = d.rx_queue(q).and_then(|r| r.rps_flow_cnt.known()).copied();
            // The share was right for the queues that there are now.
            let recount = recount.filter(|_| had == Some(share(entries, d.rx_now)));
            out.want(Some(d.nic), learned, w, || {
                let why = why_queue(want, entries, d.rx);
                StepReason { rule: recount.unwrap_or(why.rule), ..why }
            });
        }
    }
}

/// The entries of the host's table that the user configured; the last place takes precedence.
fn configured_entries(intent: &Intent) -> Option<u32> {
    intent.wishes.iter().rev().find_map(|w| match w.knob {
        Knob::RfsEntries { entries } => Some(entries),
        _ => None,
    })
}

/// Warns if the user configures one of the two tables and the other one stays empty: RFS needs both, and the kernel reports
/// nothing (rule Q10 of `check`).
pub(crate) fn warn_half(s: &Snapshot, devs: &[Dev], intent: &Intent, out: &mut PlanBuilder) {
    let requested = |of: fn(&Knob) -> bool| intent.wishes.iter().any(|w| of(&w.knob));
    let host = requested(|k| matches!(k, Knob::RfsEntries { entries: 1.. }));
    let queues = requested(|k| matches!(k, Knob::RpsFlowCnt { entries: 1.., .. }));
    if !host && !queues {
        return;
    }
    let planned = |a: &Address| out.entries.get(a).map(|(_, setting, _)| setting);
    let of_host = match planned(&Address::RfsEntries) {
        Some(Setting::RfsEntries { entries }) => Some(*entries),
        _ => s.host.rps_sock_flow_entries.known().copied(),
    };
    // By queue of the interfaces, those outside of the plan included. `None`: unknown.
    let mut of_queues: Vec<(&str, Option<u32>)> = Vec::new();
    for n in &s.nics {
        let rx = devs.iter().find(|d| d.name() == n.name()).map_or(u32::MAX, |d| d.rx);
        for q in n.rx_queues.iter().filter(|q| q.id < rx) {
            let entries = match planned(&Address::RpsFlowCnt { dev: n.name().to_string(), queue: q.id }) {
                Some(Setting::RpsFlowCnt { entries, .. }) => Some(*entries),
                _ => q.rps_flow_cnt.known().copied(),
            };
            of_queues.push((n.name(), entries));
        }
    }
    if queues && of_host == Some(0) {
        let devs: BTreeSet<&str> =
            of_queues.iter().filter(|(_, n)| n.is_some_and(|n| n > 0)).map(|(dev, _)| *dev).collect();
        for dev in devs {
            let text = "its queues have RFS entries (rps_flow_cnt), but the host's RFS socket table has none, so RFS stays \
                        off; it needs both: --set host.rfs_entries=32768";
            out.warnings.about(dev, text);
        }
    }
    if host && of_host.is_some_and(|n| n > 0) && of_queues.iter().all(|(_, n)| *n == Some(0)) {
        let dev = devs.first().map_or("DEV", |d| d.name());
        let each = share(of_host.unwrap_or(0), devs.first().map_or(1, |d| d.rx));
        out.warnings.push(format!(
            "the host's RFS socket table has entries, but no receive queue has any (rps_flow_cnt), so RFS stays off; it needs \
             both, for example: --set {dev}.rps_flow_cnt={each}"
        ));
    }
}

fn why_host(want: Rfs, entries: u32) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason };
    match want {
        Rfs::Off | Rfs::Keep => with("Q11", Reason::RfsNoGain),
        Rfs::On { at_least: true, .. } => with("R2.03", Reason::RfsManyConnections { entries }),
        Rfs::On { .. } => with("R2.03", Reason::RfsLongFlows { entries }),
    }
}

fn why_queue(want: Rfs, entries: u32, queues: u32) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason };
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
