//! The lines that show where packets are lost, what helps, and what limits the throughput.

use ringwise_model::Dir;
use ringwise_observe::{BottleneckPlace, CpuLoadLevel, PacketLoss};

use super::panel::wrapped;
use super::remedy;
use super::table::Cell;
use super::view::{Mode, View};
use ringwise_text::Tint;
use ringwise_text::thousands;

/// The most lines of one headline.
pub(super) const LINES: usize = 2;

/// Losses, the bottleneck, and the command that helps, if there is one.
pub(super) fn headline(v: &View) -> Vec<Cell> {
    let Some(r) = &v.rates else {
        let first = Cell::new("Waiting for the end of the first interval.", None);
        return vec![first, Cell::default()];
    };
    let live = matches!(v.mode, Mode::Live { .. });
    let help = remedy::of(&v.bottleneck).and_then(|r| r.text(live));
    let help = help.map(|text| Cell::new(format!("NEXT  {text}"), Some(Tint::Bold)));
    [losses(v, r.seconds), bottleneck(v)].into_iter().chain(help).collect()
}

/// A loss per second, with its place.
fn loss(v: &View, l: &PacketLoss, seconds: f64) -> String {
    let n = thousands((l.packets as f64 / seconds).ceil() as u64);
    let place = match &l.place {
        BottleneckPlace::Ring(name, Some(q)) => format!("{name} NIC, no free descriptor, mostly on rx{q}"),
        BottleneckPlace::Ring(name, None) => format!("{name} NIC, no free descriptor{}", hot(v, name)),
        BottleneckPlace::Stack(name) => format!("{name} driver or stack"),
        BottleneckPlace::Tx(name) => format!("{name} transmission"),
        BottleneckPlace::Qdisc(name) => format!("{name} queueing discipline"),
        BottleneckPlace::NoBuffer(name) => format!("{name} no memory for a buffer"),
        BottleneckPlace::Backlog(cpu) => format!("CPU {cpu} backlog full"),
        BottleneckPlace::FlowLimit(cpu) => format!("CPU {cpu} flow limit"),
        BottleneckPlace::Socket(name) => format!("sockets, {name}"),
    };
    format!("{n}/s {place}")
}

/// If the driver does not report which queue lost packets, the queue with most packets.
fn hot(v: &View, link: &str) -> String {
    let link = v.rates.as_ref().and_then(|r| r.links.get(link));
    let hot = link.and_then(|l| {
        let id = l.rx_balance?.hot?;
        l.queues.iter().find(|q| q.dir == Dir::Rx && q.queue == id)
    });
    let Some(q) = hot else { return String::new() };
    let cpu = q.cpu.map(|c| format!(" on CPU {c}")).unwrap_or_default();
    format!("; busiest queue rx{}{cpu}", q.queue)
}

fn losses(v: &View, seconds: f64) -> Cell {
    let lost = &v.bottleneck.lost;
    if lost.is_empty() {
        // A total of 0 is only known if every watched interface reports its losses.
        let told = |l: &ringwise_observe::LinkRates| l.reset.is_empty() && l.drops.total().is_some();
        let Some(r) = &v.rates else { return Cell::default() };
        let untold: Vec<&str> = r.links.iter().filter(|(_, l)| !told(l)).map(|(n, _)| n.as_str()).collect();
        if !untold.is_empty() {
            return Cell::new(format!("LOST  nothing seen; unknown for {}", untold.join(" ")), Some(Tint::Yellow));
        }
        return Cell::new("LOST  nothing: no loss counter has increased", None);
    }
    let all: Vec<String> = lost.iter().map(|l| loss(v, l, seconds)).collect();
    Cell::new(format!("LOST  {}", all.join("; ")), Some(Tint::Red))
}

/// Whether the headline has room for every loss.
pub(super) fn lists_all_losses(v: &View, width: u16) -> bool {
    let text = v.rates.as_ref().map(|r| losses(v, r.seconds).text).unwrap_or_default();
    wrapped(&text, usize::from(width), usize::MAX).len() <= LINES
}

fn bottleneck(v: &View) -> Cell {
    let b = &v.bottleneck;
    let mut full = String::new();
    for f in &b.full {
        let what = if f.by_packets { "64-byte packets" } else { "bits" };
        full += &format!("LINK  {} {} at {:.0} % of its line rate in {what}; ", f.link, f.dir, f.percent);
    }
    let Some(c) = &b.busiest else {
        return Cell::new(format!("{full}CPU times are not available: the busiest CPU is unknown"), Some(Tint::Yellow));
    };
    let (word, tint) = match c.load {
        CpuLoadLevel::Full => ("FULL  ", Some(Tint::Red)),
        CpuLoadLevel::High => ("BUSY  ", Some(Tint::Yellow)),
        CpuLoadLevel::Fine => ("FINE  busiest is ", None),
    };
    let node = c.node.map(|n| format!(" (node {n})")).unwrap_or_default();
    let mut text = format!("{full}{word}CPU {}{node} {:.0} %", c.cpu, c.busy_percent);
    match &c.queue {
        Some(q) => {
            let irq = q.irq.map(|i| format!(" <- irq {i}")).unwrap_or_default();
            text += &format!("{irq} <- {} {}{}", q.link, q.dir, q.queue);
            if q.others > 0 {
                text += &format!(" and {} more", q.others);
            }
            if let Some(s) = q.share_percent {
                text += &format!(": {s:.0} % of its packets");
            }
            if q.far {
                text += "; on a remote node";
            }
        }
        None if c.steered => text += " with packets that other CPUs steer to it (RPS)",
        None => text += "; no interrupt of a watched queue",
    }
    if c.squeezed > 0 {
        text += &format!("; squeezed {}", c.squeezed);
    }
    let tint = if full.is_empty() { tint } else { Some(Tint::Red) };
    Cell::new(text, tint)
}
