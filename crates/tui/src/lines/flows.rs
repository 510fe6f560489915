//! The output of `watch --per-flow`: a line for each flow, or a line of JSON for each interval
//! (`schemas/ringwise.flows.v1.json`).

use std::net::IpAddr;

use ringwise_kfmt::packet::{Flow, protocol_name};
use ringwise_observe::TopFlow;

pub use super::interval::Interval;
use super::json::Json;
use super::{Shape, unhashed};
use ringwise_text::Style;
use ringwise_text::plural;
use ringwise_text::when;

/// Name of the document.
pub const SCHEMA: &str = "ringwise.flows";
const VERSION: u64 = 1;

/// The heading before the first interval; empty for JSON. `unix` is in seconds since 1970.
pub fn head(shape: Shape, dev: &str, unix: u64, seconds: f64, style: &Style) -> String {
    if shape == Shape::Json {
        return String::new();
    }
    let day = when::full(unix, style.utc);
    format!(
        "# received on {dev} {}  interval {seconds:.3} s  share: of the queue's packets\n\
         #time    queue  share       pps     Mb/s  flow\n",
        day.get(..10).unwrap_or(&day)
    )
}

/// The heaviest flows of each queue as text.
pub fn text(shape: Shape, i: &Interval, top: usize, style: &Style) -> String {
    if shape == Shape::Json { json(i, top) } else { lines(i, top, style) }
}

fn lines(i: &Interval, top: usize, style: &Style) -> String {
    let time = when::clock(i.unix_time, style.utc);
    let mut out = String::new();
    for (queue, q) in &i.flows.queues {
        let queue = queue.map_or_else(|| "?".to_string(), |n| n.to_string());
        for h in q.top(top) {
            let surely = h.packets - h.over;
            out += &format!(
                "{time} {queue:<5} {:>5.1}% {:>9.0} {:>8.1}  {}{}\n",
                surely as f64 * 100.0 / q.packets as f64,
                i.a_second(surely),
                i.a_second(h.bytes) * 8.0 / 1e6,
                words(&h.flow),
                if h.over > 0 { " (or more)" } else { "" },
            );
        }
    }
    out += &unhashed::text(i);
    let every = if i.one_in == 1 { "each".to_string() } else { format!("one in {}", i.one_in) };
    let unreadable: u64 = i.flows.queues.values().map(|q| q.unreadable).sum();
    out += &format!("# {} {} sampled ({every})", i.dev, plural(i.flows.packets() as usize, "packet"));
    for (n, what) in [(i.lost, "lost, buffer full"), (unreadable, "could not be read")] {
        if n > 0 {
            out += &format!("; {n} {what}");
        }
    }
    out + &format!("; own cost {:.2} % of a CPU\n", i.cpu_ms / i.seconds / 10.0)
}

fn words(flow: &Flow) -> String {
    match flow {
        Flow::Ip { protocol, from, to, ports } => {
            let name = protocol_name(*protocol).map_or_else(|| format!("ip {protocol}"), str::to_string);
            let (a, b) = match ports {
                Some((a, b)) => (end(*from, Some(*a)), end(*to, Some(*b))),
                None => (end(*from, None), end(*to, None)),
            };
            format!("{name} {a} > {b}")
        }
        Flow::Other(kind) if *kind == 0x0806 => "arp".into(),
        Flow::Other(kind) if *kind < 1536 => "802.3".into(),
        Flow::Other(kind) => format!("ethertype {kind:#06x}"),
    }
}

fn end(address: IpAddr, port: Option<u16>) -> String {
    match (address, port) {
        (IpAddr::V6(a), Some(p)) => format!("[{a}]:{p}"),
        (a, Some(p)) => format!("{a}:{p}"),
        (a, None) => a.to_string(),
    }
}

fn json(i: &Interval, top: usize) -> String {
    let mut j = Json("{".into());
    j.word("schema", Some(SCHEMA));
    j.int("version", Some(VERSION));
    j.word("dev", Some(&i.dev));
    j.num("seconds", Some(i.seconds));
    j.int("unix_time", Some(i.unix_time));
    j.int("one_in", Some(i.one_in.into()));
    j.int("looked_at", Some(i.flows.packets()));
    j.int("lost", Some(i.lost));
    j.num("cpu_ms", Some(i.cpu_ms));
    j.open("queues", '[');
    for (queue, q) in &i.flows.queues {
        j.comma();
        j.0.push('{');
        j.int("queue", queue.map(u64::from));
        j.int("looked_at", Some(q.packets));
        j.int("bytes", Some(q.bytes));
        j.int("unreadable", Some(q.unreadable));
        j.open("flows", '[');
        for h in q.top(top) {
            j.comma();
            j.0.push('{');
            heavy(&mut j, &h, i);
            j.0.push('}');
        }
        j.0.push(']');
        j.open("classes", '[');
        for (class, c) in &q.classes {
            j.comma();
            j.0.push('{');
            j.word("class", Some(class.code()));
            j.int("looked_at", Some(c.packets));
            j.int("bytes", Some(c.bytes));
            j.0.push('}');
        }
        j.0.push_str("]}");
    }
    j.0.push(']');
    unhashed::json(&mut j, i);
    j.0.push_str("}\n");
    j.0
}

fn heavy(j: &mut Json, h: &TopFlow, i: &Interval) {
    match h.flow {
        Flow::Ip { protocol, from, to, ports } => {
            j.int("protocol", Some(protocol.into()));
            j.word("from", Some(&from.to_string()));
            j.word("to", Some(&to.to_string()));
            j.int("from_port", ports.map(|p| p.0.into()));
            j.int("to_port", ports.map(|p| p.1.into()));
        }
        Flow::Other(kind) => j.int("ethertype", Some(kind.into())),
    }
    j.int("looked_at", Some(h.packets));
    j.int("over", Some(h.over));
    j.int("bytes", Some(h.bytes));
    j.num("pps", Some(i.a_second(h.packets - h.over)));
    j.num("mbps", Some(i.a_second(h.bytes) * 8.0 / 1e6));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_kfmt::packet::frame_of;

    #[test]
    fn lines_and_json() {
        let udp = |from: &str, port| {
            let to = if from.contains(':') { "fe80::2" } else { "10.1.1.1" };
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            frame_of(&Flow::Ip { protocol: 17, from, to, ports: Some((1024, port)) })
        };
        let mut i =
            Interval { dev: "eth1".into(), seconds: 2.0, one_in: 4, lost: 5, cpu_ms: 10.0, ..Interval::default() };
        for (queue, frame, n) in [
            (Some(1), udp("10.9.0.1", 1001), 30),
            (Some(1), udp("2001:db8::1", 7), 10),
            (None, frame_of(&Flow::Other(0x0806)), 1),
            (None, vec![1], 1),
        ] {
            for _ in 0..n {
                i.flows.add(queue, &frame, 1, 1000);
            }
        }
        let style = Style::plain(None);
        assert_eq!(
            text(Shape::Lines, &i, 5, &style),
            "00:00:00 ?      50.0%         2      0.0  arp\n\
             00:00:00 1      75.0%        60      0.5  udp 10.9.0.1:1024 > 10.1.1.1:1001\n\
             00:00:00 1      25.0%        20      0.2  udp [2001:db8::1]:1024 > [fe80::2]:7\n\
             # eth1 42 packets sampled (one in 4); 5 lost, buffer full; 1 could not be read; own cost 0.50 % of a CPU\n"
        );
        let doc: serde_json::Value = serde_json::from_str(&text(Shape::Json, &i, 1, &style)).unwrap();
        assert_eq!((&doc["looked_at"], &doc["queues"][0]["queue"]), (&42.into(), &serde_json::Value::Null));
        let flow = &doc["queues"][1]["flows"];
        assert_eq!(
            (flow.as_array().unwrap().len(), &flow[0]["pps"], &flow[0]["to_port"]),
            (1, &60.0.into(), &1001.into())
        );
    }
}
