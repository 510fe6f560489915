//! A plan as a unified diff of `path = value` lines, for code review.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, VectorName};
use ringwise_model::Fact;
use ringwise_plan::Plan;

const CONTEXT: usize = 3;

/// `eth1/rx-3/irq_cpus`: the device, the queue, and the kernel's name of the setting.
pub fn path(a: &Address) -> String {
    match a {
        Address::IrqbalanceRestart { dev } => format!("{dev}/irqbalance_restart"),
        Address::IrqbalanceBan { dev } => format!("{dev}/irqbalance"),
        Address::Channels { dev } => format!("{dev}/channels"),
        Address::Rings { dev } => format!("{dev}/rings"),
        Address::Coalesce { dev } => format!("{dev}/coalesce"),
        Address::RssTable { dev } => format!("{dev}/rss_table"),
        Address::IrqCpus { dev, of: of @ (VectorName::Rx(_) | VectorName::Tx(_) | VectorName::Control(_)) } => {
            format!("{dev}/{of}/irq_cpus")
        }
        Address::XpsCpus { dev, queue } => format!("{dev}/tx-{queue}/xps_cpus"),
        Address::XpsRxqs { dev, queue } => format!("{dev}/tx-{queue}/xps_rxqs"),
        Address::RpsCpus { dev, queue } => format!("{dev}/rx-{queue}/rps_cpus"),
        Address::RpsFlowCnt { dev, queue } => format!("{dev}/rx-{queue}/rps_flow_cnt"),
        Address::RfsEntries => "net.core.rps_sock_flow_entries".into(),
        Address::Feature { dev, name } => format!("{dev}/features/{name}"),
        Address::Pause { dev } => format!("{dev}/pause"),
        Address::QueueCoalesce { dev, queue } => format!("{dev}/queue-{queue}/coalesce"),
        Address::RssHash { dev } => format!("{dev}/rss_hash"),
        Address::RssFields { dev, flow } => format!("{dev}/rss_fields/{flow}"),
        Address::RssContext { dev, context } => format!("{dev}/rss_context/{context}"),
        Address::Ntuple { dev } => format!("{dev}/features/rx-ntuple-filter"),
        Address::FlowRule { dev, location } => format!("{dev}/rules/{location}"),
        Address::NapiDevice { dev } => format!("{dev}/napi"),
        Address::Napi { dev, of } => format!("{dev}/{of}/napi"),
        Address::NapiThread { dev, of } => format!("{dev}/{of}/napi_thread_cpus"),
        Address::Sysctl { name } => name.clone(),
        Address::CpuLatency { cpu } => format!("cpu{cpu}/pm_qos_resume_latency_us"),
    }
}

struct Line {
    old: Option<String>,
    new: String,
}

/// The diff; empty if the plan changes nothing.
pub fn text(plan: &Plan) -> String {
    let from: BTreeMap<Address, &Fact<Setting>> =
        plan.steps.iter().filter_map(|s| Some((s.setting.address()?, &s.from))).collect();
    let lines: Vec<Line> = plan
        .target
        .iter()
        .filter_map(|t| Some((t, t.address()?)))
        .map(|(t, a)| {
            let line = |v: &str| format!("{} = {v}", path(&a));
            let new = line(&t.value_text());
            let old = match from.get(&a) {
                None => Some(new.clone()),
                Some(Fact::Known(f)) => Some(line(&f.value_text())),
                Some(Fact::Absent) => None,
                Some(Fact::Unknown(_)) => Some(line("unknown")),
            };
            Line { old, new }
        })
        .collect();
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, l)| l.old.as_ref() != Some(&l.new)).map(|(i, _)| i).collect();
    let Some(&first) = changed.first() else {
        return String::new();
    };
    // Hunks: runs of changes with the lines around them.
    let mut hunks: Vec<(usize, usize)> = vec![(first.saturating_sub(CONTEXT), first + 1)];
    for &i in &changed[1..] {
        match hunks.last_mut() {
            Some(h) if i <= h.1 + 2 * CONTEXT => h.1 = i + 1,
            _ => hunks.push((i - CONTEXT, i + 1)),
        }
    }
    let mut out = String::from("--- now\n+++ planned\n");
    for (start, end) in hunks {
        let end = (end + CONTEXT).min(lines.len());
        let before = lines[..start].iter().filter(|l| l.old.is_some()).count();
        let (mut body, mut olds) = (String::new(), 0);
        let mut i = start;
        while i < end {
            if lines[i].old.as_ref() == Some(&lines[i].new) {
                body.push_str(&format!(" {}\n", lines[i].new));
                olds += 1;
                i += 1;
                continue;
            }
            let mut j = i;
            while j < end && lines[j].old.as_ref() != Some(&lines[j].new) {
                j += 1;
            }
            for old in lines[i..j].iter().filter_map(|l| l.old.as_ref()) {
                body.push_str(&format!("-{old}\n"));
                olds += 1;
            }
            for l in &lines[i..j] {
                body.push_str(&format!("+{}\n", l.new));
            }
            i = j;
        }
        // In the header of a hunk, the line number of an empty side is that of the line before it.
        let old_at = if olds == 0 { before } else { before + 1 };
        out.push_str(&format!("@@ -{old_at},{olds} +{},{} @@\n{body}", start + 1, end - start));
    }
    out
}
