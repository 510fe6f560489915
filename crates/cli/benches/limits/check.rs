//! Judging the large machine: the rules alone, and what comes before them.

use std::path::Path;
use std::sync::Arc;

use ringwise_check::{AuditInput, CpuTraffic, GoalOrigin, HostTraffic, LinkTraffic, QueueTraffic, judge};
use ringwise_discover::{Options, Parts, extra, snapshot};
use ringwise_model::{Dir, Intent, Role, Snapshot, Vector};
use ringwise_plan::plan;
use ringwise_sys::{CaptureRecorder, Captured, Host};

use crate::table::Table;
use crate::{Result, machine, median};

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    let everything = Options { parts: Parts::ALL, ..machine::patient() };
    let file = dir.join("checked.tar.gz");
    let recorder = Arc::new(CaptureRecorder::new(machine::simulated(dir, 512, 16, 128)?));
    let host: Arc<dyn Host> = recorder.clone();
    let s = snapshot(&host, &everything)?;
    extra(&host, &s, machine::PATIENCE);
    recorder.finish().write_tar(&file)?;

    let (host, _) = machine::opened(&file, 512, 16, 128)?;
    let s = snapshot(&host, &everything)?;
    let more = extra(&host, &s, machine::PATIENCE);
    let intent = Intent::default();
    let made = plan(&s, &intent, &[]).map_err(|r| r.to_string())?;
    let traffic = traffic(&s);
    let input = AuditInput {
        snapshot: &s,
        extra: &more,
        plan: Ok(&made),
        intent: &intent,
        goal_from: GoalOrigin::Default,
        traffic: Some(&traffic),
        drift: Some(Vec::new()),
        devs: &[],
    };
    let report = judge(&input);
    if report.findings.is_empty() || !report.not_evaluated.is_empty() {
        return Err(format!("{} findings, not evaluated: {:?}", report.findings.len(), report.not_evaluated).into());
    }
    let judged = report.rules - report.not_applied.len();
    let what = format!(
        "check: {} rules ({judged} apply), 512 CPUs, 16 NICs, 2,048 queue interrupts ({} findings)",
        report.rules,
        report.findings.len()
    );
    table.time(&what, 50.0, median(25, || judge(&input)));
    table.note_time("  the plan behind them", median(15, || plan(&s, &intent, &[])));
    table.note_time("  reading all that rules want to know (captured)", {
        median(9, || snapshot(&host, &everything).map(|s| extra(&host, &s, machine::PATIENCE)))
    });
    table.note_time("  opening that archive (captured)", median(3, || Captured::open(&file)));
    Ok(())
}

/// Two samples in which every queue and CPU was busy, the first CPUs of each node most.
fn traffic(s: &Snapshot) -> HostTraffic {
    let links = s.nics.iter().filter(|n| n.has_own_queues()).map(|n| {
        let rx = |v: &'_ Vector| match &v.role {
            Role::Queues { rx, .. } => rx.clone(),
            _ => Vec::new(),
        };
        let queues = n.queue_vectors().flat_map(|v| rx(v).into_iter().map(move |q| (v, q)));
        let one = |(v, queue): (&Vector, u32)| QueueTraffic {
            dir: Dir::Rx,
            queue,
            packets: Some(10_000 + u64::from(queue)),
            bytes: Some(640_000),
            irq: Some(v.irq),
            interrupts: Some(1000),
            packets_per_interrupt: Some(10.0),
            cpu: v.effective.known().and_then(|c| c.first()),
            timeouts: Some(0),
        };
        let link = LinkTraffic {
            rx_packets: Some(1_280_000),
            tx_packets: Some(1_280_000),
            line_percent: Some(40.0),
            queues: queues.map(one).collect(),
            rx_max_over_mean: Some(1.0),
            counts: [("rx_dropped".to_string(), 17), ("rx_missed_errors".to_string(), 4711)].into(),
            ..LinkTraffic::default()
        };
        (n.name().to_string(), link)
    });
    let busy = |softirq| CpuTraffic { softirq: Some(softirq), irq: Some(0.5), steal: Some(0.0), ..Default::default() };
    let cpus = s.topology.online.iter().map(|c| (c, busy(if c.0 % 128 < 4 { 97.0 } else { 2.0 })));
    HostTraffic { seconds: 1.0, links: links.collect(), cpus: cpus.collect(), ..HostTraffic::default() }
}
