//! The page of `watch --once`: interfaces with their queues, CPUs, and losses by place. At most 80 columns wide.

use std::fmt::Write;

use crate::remedy;
use ringwise_model::{CpuCounter, CpuId, Dir, PoolUse};
use ringwise_observe::{Bottleneck, CpuRates, LinkRates, QueueRates, Rates};

use super::{CPU_DROPS, a_second, counted_by, evenness, marked, missing, name_and, percent, whole};
use ringwise_text::when;
use ringwise_text::{Style, Tint};
use ringwise_text::{plural, thousands, visible};

/// The page of one interval, with a line feed at its end.
pub fn page(host: &str, r: &Rates, style: &Style) -> String {
    let host = visible(host);
    let mut out = format!("{host}  {}  over {:.3} s\n\n", when::full(r.unix_time, style.utc), r.seconds);
    out.push_str("INTERFACE       RX pps    Mb/s  line  avg B      TX pps    Mb/s  line   drop/s\n");
    for (name, l) in &r.links {
        out.push_str(&interface(name, l, r.seconds, style));
    }
    for (list, what) in [(&r.gone, "is gone"), (&r.came, "has appeared"), (&r.silent, "does not answer")] {
        for name in list {
            let _ = writeln!(out, "{name} {what}");
        }
    }
    lost(r, style, &mut out);
    for (name, l) in r.links.iter().filter(|(_, l)| !l.queues.is_empty()) {
        queues(name, l, r.seconds, style, &mut out);
    }
    cpus(r, &mut out);
    out
}

fn big(n: Option<f64>, word: &str) -> String {
    n.map_or_else(|| word.to_string(), |n| thousands(n.round() as u64))
}

fn interface(name: &str, l: &LinkRates, seconds: f64, style: &Style) -> String {
    let word = missing(l);
    let mbps = |n: Option<f64>| n.map_or_else(|| word.to_string(), |n| format!("{n:.1}"));
    let total = l.drops.total().filter(|_| l.reset.is_empty());
    let drops = format!("{:>8}", total.map_or_else(|| word.to_string(), |n| thousands(a_second(n, seconds))));
    let drops = if total.is_some_and(|n| n > 0) { style.paint(Tint::Red, &drops) } else { drops };
    format!(
        "{} {:>7} {:>5} {:>6} {:>11} {:>7} {:>5} {drops}\n",
        name_and(name, &big(l.rx.pps, word), 22),
        mbps(l.rx.mbps),
        percent(l.rx.line_percent),
        whole(l.rx.avg_bytes, "-"),
        big(l.tx.pps, word),
        mbps(l.tx.mbps),
        percent(l.tx.line_percent),
    )
}

/// One line for each place where packets were lost.
fn lost(r: &Rates, style: &Style, out: &mut String) {
    let mut lines = Vec::new();
    for (name, l) in &r.links {
        let d = &l.drops;
        for (n, place) in [
            (d.nic, "NIC: no free descriptor (rx_missed_errors)"),
            (d.no_buffer, "no memory for a buffer"),
            (d.stack, "driver or stack (rx_dropped, includes a full backlog)"),
            (d.tx, "transmission (tx_dropped)"),
            (d.qdisc, "queueing discipline"),
            (l.counts.get("rx_fifo_errors").copied(), "NIC: overrun (rx_fifo_errors)"),
            (l.counts.get("rx_crc_errors").copied(), "bad frame checksum (cable or port)"),
        ] {
            if let Some(n) = n.filter(|n| *n > 0) {
                lines.push(format!("{name} {place}: {}", thousands(n)));
            }
        }
        for (counter, what) in [("rx_pause", "received"), ("tx_pause", "sent")] {
            if let Some(n) = l.counts.get(counter).filter(|n| **n > 0) {
                lines.push(format!("{name} pause frames {what}: {}", thousands(*n)));
            }
        }
        if let Some(n) = l.counts.get("tx_pause_storms").filter(|n| **n > 0) {
            lines.push(format!("{name} pause storms: {} (the NIC stopped the link partner for long)", thousands(*n)));
        }
        if let Some(n) = l.counts.get("carrier_changes").filter(|n| **n > 0) {
            lines.push(format!("{name} link went up or down: {}", plural(*n as usize, "time")));
        }
        let stuck: u64 = l.queues.iter().filter_map(|q| q.timeouts).sum();
        if stuck > 0 {
            lines.push(format!(
                "{name} transmit queues found stuck by the watchdog: {}",
                plural(stuck as usize, "time")
            ));
        }
    }
    for (cpu, c) in &r.cpus {
        for (counter, what, setting) in CPU_DROPS {
            if let Some(n) = c.counts.get(counter).filter(|n| *n > 0) {
                lines.push(format!("CPU {cpu} {what} ({setting}): {}", thousands(n)));
            }
        }
    }
    for (name, n) in &r.socket_drops {
        lines.push(format!("sockets {name}: {}", thousands(*n)));
    }
    if lines.is_empty() {
        out.push_str("\nNo loss: no loss counter has increased.\n");
        return;
    }
    let _ = writeln!(out, "\nLOST in {:.3} s", r.seconds);
    for l in lines {
        let _ = writeln!(out, "  {}", style.paint(Tint::Red, &l));
    }
    // The page may be of a recording of another host, so it proposes no plan.
    if let Some(text) = remedy::of(&Bottleneck::of(r)).and_then(|r| r.text(false)) {
        let _ = writeln!(out, "  next: {text}");
    }
}

/// One line for each queue number with both directions, because they mostly share a vector.
fn queues(name: &str, l: &LinkRates, seconds: f64, style: &Style, out: &mut String) {
    let node = l.node.map_or_else(|| "node unknown".to_string(), |n| format!("node {n}"));
    let _ = write!(out, "\nQUEUES OF {name} ({node}) {}{}\n", counted_by(l), evenness(l));
    out.push_str("queue     RX pps  share      TX pps    irq/s  pkt/irq   cpu node  drop/s  mark\n");
    let mut ids: Vec<u32> = l.queues.iter().map(|q| q.queue).collect();
    ids.sort();
    ids.dedup();
    let find = |dir, id| l.queues.iter().find(|q| q.dir == dir && q.queue == id);
    for id in ids {
        let (rx, tx) = (find(Dir::Rx, id), find(Dir::Tx, id));
        let rate = |q: Option<&QueueRates>| match q {
            Some(q) => big(q.packets.map(|n| n as f64 / seconds), if q.mark.is_none() { "unknown" } else { "-" }),
            None => "-".into(),
        };
        let any = rx.or(tx);
        // There are two interrupts if each direction has its own vector.
        let mut vectors: Vec<&QueueRates> = [rx, tx].into_iter().flatten().filter(|q| q.irq.is_some()).collect();
        vectors.dedup_by_key(|q| q.irq);
        let irqs: Option<u64> = vectors.iter().map(|q| q.interrupts).sum();
        let mut cpus: Vec<String> = vectors.iter().filter_map(|q| q.cpu).map(|c| c.to_string()).collect();
        cpus.dedup();
        let mark = [rx, tx].into_iter().flatten().find_map(|q| q.mark);
        let line = format!(
            "{id:<5} {:>10} {:>6} {:>11} {:>8} {:>8} {:>5} {:>4} {:>7}  {}",
            rate(rx),
            rx.and_then(|q| q.share_percent).map_or_else(|| "-".into(), |n| format!("{n:.1}%")),
            rate(tx),
            if vectors.is_empty() { "-".into() } else { big(irqs.map(|n| n as f64 / seconds), "unknown") },
            any.and_then(|q| q.packets_per_interrupt).map_or_else(|| "-".into(), |n| format!("{n:.1}")),
            if cpus.is_empty() { "-".into() } else { cpus.join(",") },
            any.and_then(|q| q.node).map_or_else(|| "-".into(), |n| n.to_string()),
            rx.and_then(|q| q.drops).map_or_else(|| "-".into(), |n| a_second(n, seconds).to_string()),
            style.paint(Tint::Yellow, mark.map_or("", marked)),
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let full = |q: &&QueueRates| q.bql_limit.zip(q.bql_inflight).is_some_and(|(l, n)| l > 0 && n >= l);
    let full: Vec<String> = l.queues.iter().filter(full).map(|q| q.queue.to_string()).collect();
    if !full.is_empty() {
        let _ = writeln!(out, "transmit queues at their byte limit: {}", full.join(" "));
    }
    for line in l.queues.iter().filter_map(|q| pool_line(q.queue, &q.pool?)) {
        let _ = writeln!(out, "{line}");
    }
}

/// What the page pool of a receive queue could not recycle, and how often it had no page left to give.
fn pool_line(queue: u32, p: &PoolUse) -> Option<String> {
    let mut parts = Vec::new();
    if p.lost() > 0 {
        let (lost, ring, used) = (thousands(p.lost()), thousands(p.ring_full), thousands(p.in_use));
        parts.push(format!("{lost} not recycled (pool ring full {ring}, still in use {used})"));
    }
    if p.slow > 0 {
        parts.push(format!("slow allocations {}", thousands(p.slow)));
    }
    (!parts.is_empty()).then(|| format!("pages of receive queue {queue}: {}", parts.join(", ")))
}

/// The CPUs that processed packets or handled interrupts; one line sums up the others.
fn cpus(r: &Rates, out: &mut String) {
    let count = |c: &CpuRates, counter| c.counts.get(counter).unwrap_or(0);
    // Older kernels print fewer columns of softnet_stat.
    let shown = |c: &CpuRates, counter| c.counts.get(counter).map_or_else(|| "-".to_string(), |n| n.to_string());
    let works = |c: &CpuRates| {
        c.interrupts > 0 || count(c, CpuCounter::SoftnetProcessed) > 0 || c.busy_percent().is_some_and(|n| n >= 1.0)
    };
    out.push_str("\nCPU node soft  irq steal idle ksoft   irq/s packets/s drops   squ  rps flim blog\n");
    let (mut quiet, mut busiest): (Vec<CpuId>, f64) = (Vec::new(), 0.0);
    for (id, c) in &r.cpus {
        if !works(c) {
            quiet.push(*id);
            busiest = busiest.max(100.0 - c.idle_percent.unwrap_or(100.0));
            continue;
        }
        let _ = writeln!(
            out,
            "{id:<3} {:>4} {:>4} {:>4} {:>5} {:>4} {:>5} {:>7} {:>9} {:>5} {:>5} {:>4} {:>4} {:>4}",
            c.node.map_or_else(|| "-".into(), |n| n.to_string()),
            percent(c.softirq_percent),
            percent(c.irq_percent),
            percent(c.steal_percent),
            percent(c.idle_percent),
            percent(c.ksoftirqd_percent),
            thousands((c.interrupts as f64 / r.seconds).round() as u64),
            thousands((count(c, CpuCounter::SoftnetProcessed) as f64 / r.seconds).round() as u64),
            shown(c, CpuCounter::SoftnetDropped),
            shown(c, CpuCounter::SoftnetSqueezed),
            shown(c, CpuCounter::SoftnetRps),
            shown(c, CpuCounter::SoftnetFlowLimit),
            c.backlog.map_or_else(|| "-".into(), |n| n.to_string()),
        );
    }
    if !quiet.is_empty() {
        let list: ringwise_model::CpuSet = quiet.into_iter().collect();
        let _ = writeln!(out, "no packets on CPU {list}; the busiest of these was {busiest:.0} % busy");
    }
    for (id, c) in r.cpus.iter().filter(|(_, c)| works(c) && !c.idle_states.is_empty()) {
        let states: Vec<String> = c.idle_states.iter().map(|(s, n)| format!("{s} {n:.0}%")).collect();
        let _ = writeln!(out, "CPU {id} idle states: {}", states.join(", "));
    }
    for (list, what) in [(&r.cpus_gone, "went offline"), (&r.cpus_came, "came online")] {
        for cpu in list {
            let _ = writeln!(out, "CPU {cpu} {what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_allocations_are_shown_also_where_all_pages_are_recycled() {
        let line = |slow, ring_full| pool_line(3, &PoolUse { fast: 90_000, slow, ring_full, in_use: 2 * ring_full });
        assert_eq!(line(0, 0), None);
        assert_eq!(line(1200, 0).unwrap(), "pages of receive queue 3: slow allocations 1,200");
        let both = "pages of receive queue 3: 12 not recycled (pool ring full 4, still in use 8), slow allocations 5";
        assert_eq!(line(5, 4).unwrap(), both);
    }
}
