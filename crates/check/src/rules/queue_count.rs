//! Rules that compare the number of queues with cores and CPUs.

use std::collections::BTreeSet;

use ringwise_model::{Dir, Goal};

use crate::fix::PlanArguments;
use crate::found::RssFound;
use crate::needs::RequiredFact;
use crate::planned;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::Severity;

const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";

/// Interfaces for which the plan skipped the change of channels that this rule proposes.
fn skipped<'a>(cx: &RuleContext<'a>, rule: &str) -> BTreeSet<&'a str> {
    let all = cx.i.plan.iter().flat_map(|p| &p.left_out).filter(|l| l.rule == rule);
    all.filter_map(|l| l.setting.dev()).collect::<BTreeSet<_>>()
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "Q01",
        title: "fewer queues than local cores",
        reads: "channels, topology, /proc/stat",
        needs: &[RequiredFact::Channels],
        guard: "the driver supports more queues",
        condition: "there are fewer queues than local physical cores, and the CPU of one queue is above 80 % interrupt time",
        confirm: "ethtool -l DEV; mpstat -P ALL 1",
        rates: true,
        ours: Some("--queues N --allow-disruption"),
        judge: |cx, say| {
            planned::judge("Q01", cx, say);
            if !say.findings.is_empty() {
                return Some(());
            }
            cx.each_rate(say, |n, l, t, say| {
                let c = say.get(&n.channels)?;
                let max = c.combined.or(c.rx)?.max;
                let cores = cx.cores(&cx.near(n)) as u32;
                let now = cx.rx_queues(n);
                if now >= max.min(cores) {
                    return Some(());
                }
                let hot = l
                    .of(Dir::Rx)
                    .filter_map(|q| q.cpu)
                    .find_map(|c| Some((c, t.cpus.get(&c)?.busy()?)).filter(|(_, b)| *b > 80.0));
                if let Some((cpu, busy)) = hot {
                    let want = max.min(cores);
                    say.found(RssFound::FewQueuesBusy { queues: now, near_cores: cores, cpu, busy_percent: busy })
                        .fix(cx, PlanArguments::queues(n.name(), want).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q02",
        title: "more queues than physical cores",
        reads: "channels, topology",
        needs: &[RequiredFact::Channels],
        guard: "the goal uses one queue per core (rpc, stream, latency)",
        condition: "there are more receive queues than local physical cores that are not isolated",
        confirm: "ethtool -l DEV; lscpu -e shows the cores of each node",
        severity: Severity::Info,
        ours: Some("--goal GOAL --allow-disruption"),
        also: &["R0.07"],
        more: "How many queues help depends on the work: on hosts that only forward, both threads of a core together process more packets than one; beside programs, queues use one thread of each core. Since 5.18 the kernel's own default is half of the physical cores, for drivers that use it.",
        judge: |cx, say| {
            if !matches!(cx.goal(), Goal::Rpc | Goal::Stream | Goal::Latency) {
                return None;
            }
            planned::judge("Q02", cx, say);
            if !say.findings.is_empty() {
                return Some(());
            }
            let skipped = skipped(cx, "Q02");
            cx.each(say, |n, say| {
                let c = say.get(&n.channels)?;
                c.combined.or(c.rx)?;
                let (now, cores) = (cx.rx_queues(n), cx.cores(&cx.usable_near(n)) as u32);
                if now > cores && skipped.contains(n.name()) {
                    say.found(RssFound::MoreQueuesThanCores { queues: now, near_cores: cores })
                        .fix(cx, PlanArguments::planned().disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q03",
        title: "more queues than CPUs",
        other_severity: "info if the CPUs of the whole host are enough",
        reads: "channels, cpu/online",
        needs: &[RequiredFact::Channels],
        guard: "the driver reports the number of channels",
        condition: "there are more receive queues than online CPUs; with goal forward, more than there are usable CPUs on the local node (without isolated, reserved and excluded ones)",
        confirm: "ethtool -l DEV; cat /sys/devices/system/cpu/online",
        why: "Two queues on one CPU cost a second interrupt and a second ring, and spread no work.",
        source: ROUTER,
        ours: Some("DEV --queues N --allow-disruption"),
        also: &["R0.06"],
        under: &["Q02"],
        judge: |cx, say| {
            planned::judge("Q03", cx, say);
            if !say.findings.is_empty() {
                return Some(());
            }
            let skipped_here = skipped(cx, "Q03");
            // The plan has a number of its own for these.
            let fewer_cores = skipped(cx, "Q02");
            cx.each(say, |n, say| {
                let c = say.get(&n.channels)?;
                c.combined.or(c.rx)?;
                let (now, cpus) = (cx.rx_queues(n), cx.s.topology.online.len() as u32);
                if now > cpus {
                    let usable = cpus.min(cx.usable_near(n).len() as u32).max(1);
                    let planned = skipped_here.contains(n.name()) || fewer_cores.contains(n.name());
                    let args = if planned { PlanArguments::planned() } else { PlanArguments::queues(n.name(), usable) };
                    say.found(RssFound::MoreQueuesThanCpus { queues: now, cpus }).fix(cx, args.disruptive());
                } else if skipped_here.contains(n.name()) {
                    let near_cpus = cx.usable_near(n).len() as u32;
                    say.found(RssFound::MoreQueuesThanNearCpus { queues: now, near_cpus })
                        .fix(cx, PlanArguments::planned().disruptive())
                        .severity(Severity::Info);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
];
