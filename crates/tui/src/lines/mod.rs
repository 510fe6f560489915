//! The output of `watch`: lines for programs and people, and the page of `--once`.

pub mod flows;
mod interval;
mod json;
mod page;
mod unhashed;

use std::collections::BTreeMap;

use ringwise_model::{CpuCounter, CpuId, CpuSet};
use ringwise_observe::{LinkRates, QueueMark, QueueRates, Rates, Source};

use ringwise_text::Style;
use ringwise_text::visible;
use ringwise_text::when;

pub use json::json;
pub use page::page;

/// The shape of the output for each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One line for each interface.
    Lines,
    /// One line for each queue.
    Queues,
    /// The page of `--once`.
    Page,
    /// One line of JSON, `ringwise.watch`.
    Json,
}

const LINES: &str = "#time    if      rx_pps  rx_Mb/s line   tx_pps  tx_Mb/s line  drop/s  hot\n";
const QUEUES: &str = "#time    if       queue       pps  share   irq/s  pkt/irq  cpu node drop/s  mark\n";

/// The names of the columns.
pub fn columns(shape: Shape) -> &'static str {
    match shape {
        Shape::Lines => LINES,
        Shape::Queues => QUEUES,
        Shape::Page | Shape::Json => "",
    }
}

/// The heading before the first interval: host, date and column titles; empty for the page and JSON.
pub fn head(shape: Shape, host: &str, unix: u64, seconds: f64, style: &Style) -> String {
    if matches!(shape, Shape::Page | Shape::Json) {
        return String::new();
    }
    let day = when::full(unix, style.utc);
    let (date, zone) = (day.get(..10).unwrap_or(&day), day.get(19..).unwrap_or_default());
    let host = visible(host);
    format!("# {host} {date}{zone}  interval {seconds:.3} s  bits: frames without preamble and FCS\n{}", columns(shape))
}

/// What earlier intervals printed, and what is not repeated as long as it holds.
#[derive(Debug, Default)]
pub struct Printed {
    /// Interfaces that do not answer.
    silent: Vec<String>,
    /// By interface: where the counters of its queues come from.
    sources: BTreeMap<String, String>,
}

/// One line for each interface or queue, after the events of the interval.
pub fn lines(shape: Shape, r: &Rates, printed: &mut Printed, style: &Style) -> String {
    let time = when::clock(r.unix_time, style.utc);
    let mut out = String::new();
    let mut say = |text: String| out.push_str(&text);
    let silent = r.silent.iter().filter(|name| !printed.silent.contains(name)).cloned().collect();
    printed.silent.clone_from(&r.silent);
    for (list, what) in [
        (&r.gone, "is gone"),
        (&r.came, "has appeared; counted from the next interval on"),
        (&silent, "does not answer"),
    ] {
        for name in list {
            say(format!("# {time} {name} {what}\n"));
        }
    }
    for (list, what) in [(&r.cpus_gone, "went offline"), (&r.cpus_came, "came online")] {
        for cpu in list {
            say(format!("# {time} CPU {cpu} {what}\n"));
        }
    }
    for (counter, what, _) in CPU_DROPS {
        if let Some(text) = cpu_drops(r, counter, what) {
            say(format!("# {time} {text}\n"));
        }
    }
    for (name, l) in &r.links {
        match shape {
            Shape::Queues => {
                for q in &l.queues {
                    say(queue(&time, name, q, r.seconds));
                }
                say(sum(name, l, printed));
            }
            _ => say(interface(&time, name, l, r)),
        }
    }
    out
}

/// Counters of packets that a CPU dropped, with the cause and its setting.
pub(crate) const CPU_DROPS: [(CpuCounter, &str, &str); 2] = [
    (CpuCounter::SoftnetDropped, "backlog full", "net.core.netdev_max_backlog"),
    (CpuCounter::SoftnetFlowLimit, "flow limit of the backlog", "net.core.flow_limit_cpu_bitmap"),
];

/// `CPUs 0-1 dropped 12 packets/s: flow limit of the backlog`, one line for all CPUs. `None`: no CPU dropped packets for this cause.
fn cpu_drops(r: &Rates, counter: CpuCounter, what: &str) -> Option<String> {
    let by = r.cpus.iter().filter_map(|(cpu, c)| Some((*cpu, c.counts.get(counter).filter(|n| *n > 0)?)));
    let (cpus, lost): (Vec<CpuId>, Vec<u64>) = by.unzip();
    let cpus: CpuSet = cpus.into_iter().collect();
    let which = match cpus.len() {
        0 => return None,
        1 => "CPU",
        _ => "CPUs",
    };
    Some(format!("{which} {cpus} dropped {} packets/s: {what}", a_second(lost.iter().sum(), r.seconds)))
}

/// A whole number, or `otherwise` if it is not known.
pub(crate) fn whole(n: Option<f64>, otherwise: &str) -> String {
    n.map_or_else(|| otherwise.to_string(), |n| format!("{n:.0}"))
}

pub(crate) fn percent(n: Option<f64>) -> String {
    n.map_or_else(|| "-".to_string(), |n| format!("{n:.0}%"))
}

/// The word instead of a number that is not known.
pub(crate) fn missing(l: &LinkRates) -> &'static str {
    if l.reset.is_empty() { "unknown" } else { "reset" }
}

/// Losses per second, never rounded down to 0.
pub(crate) fn a_second(n: u64, seconds: f64) -> u64 {
    (n as f64 / seconds).ceil() as u64
}

/// A name at the left and a number at the right of this many columns, with at least one space between them.
pub(crate) fn name_and(name: &str, number: &str, columns: usize) -> String {
    let room = columns.saturating_sub(name.chars().count() + 1);
    format!("{name} {number:>room$}")
}

fn interface(time: &str, name: &str, l: &LinkRates, r: &Rates) -> String {
    let word = missing(l);
    let mbps = |n: Option<f64>| n.map_or_else(|| word.to_string(), |n| format!("{n:.1}"));
    let drops = l.drops.total().filter(|_| l.reset.is_empty());
    let drops = drops.map_or_else(|| word.to_string(), |n| a_second(n, r.seconds).to_string());
    let hot = r.busiest(l).map_or_else(|| "-".to_string(), |(cpu, n)| format!("cpu{cpu}={n:.0}%"));
    format!(
        "{time} {} {:>8} {:>4} {:>8} {:>8} {:>4} {drops:>7}  {hot}\n",
        name_and(name, &whole(l.rx.pps, word), 14),
        mbps(l.rx.mbps),
        percent(l.rx.line_percent),
        whole(l.tx.pps, word),
        mbps(l.tx.mbps),
        percent(l.tx.line_percent),
    )
}

fn queue(time: &str, name: &str, q: &QueueRates, seconds: f64) -> String {
    let unknown = if q.mark == Some(QueueMark::Reset) { "reset" } else { "unknown" };
    let rate = |n: Option<u64>| whole(n.map(|n| n as f64 / seconds), unknown);
    format!(
        "{time} {name:<8} {:<5} {:>9} {:>6} {:>7} {:>8} {:>4} {:>4} {:>6}  {}\n",
        format!("{}{}", q.dir, q.queue),
        rate(q.packets),
        q.share_percent.map_or_else(|| "-".into(), |n| format!("{n:.1}%")),
        whole(q.interrupts.map(|n| n as f64 / seconds), if q.irq.is_some() { "unknown" } else { "-" }),
        q.packets_per_interrupt.map_or_else(|| "-".into(), |n| format!("{n:.1}")),
        q.cpu.map_or_else(|| "-".into(), |c| c.to_string()),
        q.node.map_or_else(|| "-".into(), |n| n.to_string()),
        q.drops.map_or_else(|| "-".into(), |n| a_second(n, seconds).to_string()),
        q.mark.map_or("", marked),
    )
    .trim_end()
    .to_string()
        + "\n"
}

/// The word for a mark.
pub(crate) fn marked(mark: QueueMark) -> &'static str {
    match mark {
        QueueMark::Hot => "hot",
        QueueMark::Reset => "reset",
        QueueMark::Came => "new",
        QueueMark::Gone => "gone",
    }
}

fn sum(name: &str, l: &LinkRates, printed: &mut Printed) -> String {
    let rx = l.queues.iter().filter(|q| q.dir == ringwise_model::Dir::Rx).filter_map(|q| q.packets).sum::<u64>();
    let by = counted_by(l);
    let source = match printed.sources.insert(name.to_string(), by.clone()) {
        Some(before) if before == by => String::new(),
        _ => format!("; {by}"),
    };
    format!("# {name} received {rx}{}{source}\n", evenness(l))
}

/// How evenly the receive queues share the packets, as text.
pub(crate) fn evenness(l: &LinkRates) -> String {
    match &l.rx_balance {
        Some(b) => format!("; max/mean {:.2}, variation {:.2}", b.max_over_mean, b.variation),
        None => String::new(),
    }
}

/// `by qstats`, or `no counters`, for a heading.
pub(crate) fn counted_by(l: &LinkRates) -> String {
    match l.source {
        Source::Nothing => source(l),
        _ => format!("by {}", source(l)),
    }
}

pub(crate) fn source(l: &LinkRates) -> String {
    match (&l.driver, l.source) {
        (Some(d), Source::Ethtool) => format!("ethtool -S ({})", visible(d)),
        (_, s) => s.text().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_printed_once() {
        let silent = |names: &[&str]| {
            let links = [("eth0".to_string(), LinkRates::default())].into();
            Rates { seconds: 1.0, links, silent: names.iter().map(|n| n.to_string()).collect(), ..Rates::default() }
        };
        let mut printed = Printed::default();
        let mut page = |names: &[&str]| lines(Shape::Queues, &silent(names), &mut printed, &Style::plain(None));
        let first = page(&["eth1"]);
        assert!(first.contains(" eth1 does not answer\n") && first.ends_with("; no counters\n"), "{first}");
        assert_eq!(page(&["eth1"]), "# eth0 received 0\n");
        assert!(!page(&[]).contains("answer"));
        assert!(page(&["eth1"]).contains(" eth1 does not answer\n"), "it answered in between");
    }

    #[test]
    fn a_name_and_a_number_never_touch() {
        assert_eq!(name_and("eth1", "2312995", 14), "eth1   2312995");
        assert_eq!(name_and("enp65s0", "2312995", 14), "enp65s0 2312995");
    }
}
