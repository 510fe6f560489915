//! The block of `watch --per-flow` about traffic that the device cannot spread by ports, as text and as JSON.

use ringwise_flow::UdpPortsGain;
use ringwise_kfmt::traffic_class::{HashedBy, TrafficClass};
use ringwise_knob::{driver_restarts_for_ntuple, driver_restarts_for_rss, path};
use ringwise_observe::{AvailableRemedies, ClassTotal, FlowRules, LISTED_PERCENT, Remedy, RuleKey, percent, remedies};
use ringwise_text::mask;

use super::interval::Interval;
use super::json::Json;

/// Widest line, in columns. Commands are never cut.
const COLUMNS: usize = 80;
const INDENT: &str = "#         ";

/// The block; empty if little of the sample is such traffic and the ports of UDP are hashed, or would not help.
pub(super) fn text(i: &Interval) -> String {
    let limited = i.flows.limited_percent().unwrap_or(0.0);
    let mut out = String::new();
    if i.flows.is_much_limited() {
        out += &format!(
            "# not spread by flow: {limited:.1} % of the sample (ringwise help unhashed)\n\
             #  share  traffic                     most devices hash  mostly on queue\n"
        );
        for t in i.flows.classes() {
            out += &row(i, &t);
        }
        out += &i.means.as_ref().map_or_else(
            || format!("# the settings of {} could not be read, so nothing is proposed\n", i.dev),
            interface,
        );
    }
    out + &i.udp_ports.as_ref().map(|g| gain(i, g)).unwrap_or_default()
}

fn row(i: &Interval, t: &ClassTotal) -> String {
    let share = percent(t.count.packets, i.flows.packets()).unwrap_or(0.0);
    if share < LISTED_PERCENT || matches!(t.class, TrafficClass::Ports | TrafficClass::Unreadable) {
        return String::new();
    }
    let queue = t.busiest.map_or_else(|| "?".to_string(), |q| q.to_string());
    let on_it = percent(t.on_busiest, t.count.packets).unwrap_or(0.0);
    let mut out = format!(
        "# {share:>5.1}%  {:<26}  {:<17}  {queue} ({on_it:.1}%)\n",
        words(t.class),
        hashed(t.class.hashed_by())
    );
    let Some(means) = &i.means else { return out };
    let list = remedies(t.class, t.busiest, means);
    if list.is_empty() {
        out += &line(&nothing_helps(t.class, means), None);
    }
    for r in &list {
        let command = if in_effect(r) { None } else { command(r, means) };
        out += &line(&advice(r, means, t.class), command.as_deref());
    }
    out
}

/// A text, and a command behind it or, if both are too long, on the next line.
fn line(text: &str, command: Option<&str>) -> String {
    match command {
        None => format!("{INDENT}{text}\n"),
        Some(c) if INDENT.len() + text.chars().count() + 2 + c.chars().count() <= COLUMNS => {
            format!("{INDENT}{text}: {c}\n")
        }
        Some(c) => format!("{INDENT}{text}:\n{INDENT}  {c}\n"),
    }
}

fn words(class: TrafficClass) -> &'static str {
    match class {
        TrafficClass::Ports => "TCP, UDP and the like",
        TrafficClass::Vxlan => "VXLAN",
        TrafficClass::Geneve => "Geneve",
        TrafficClass::Gue => "GUE",
        TrafficClass::Wireguard => "WireGuard (port 51820)",
        TrafficClass::EspInUdp => "ESP in UDP (port 4500)",
        TrafficClass::Gtp => "GTP-U (port 2152)",
        TrafficClass::L2tp => "L2TP (port 1701)",
        TrafficClass::Fragment => "fragments",
        TrafficClass::Esp => "ESP",
        TrafficClass::Ah => "AH",
        TrafficClass::Gre => "GRE",
        TrafficClass::IpInIp => "IP in IP",
        TrafficClass::Ipv6Extensions => "IPv6 extension headers",
        TrafficClass::OtherIp => "other protocols of IP",
        TrafficClass::PppoeIpv4 => "PPPoE with IPv4",
        TrafficClass::PppoeIpv6 => "PPPoE with IPv6",
        TrafficClass::PppoeControl => "PPPoE without IP",
        TrafficClass::QinQ => "IP in two VLAN tags (QinQ)",
        TrafficClass::Mpls => "MPLS",
        TrafficClass::Arp => "ARP",
        TrafficClass::OtherEtherType => "other EtherTypes",
        TrafficClass::Unreadable => "unreadable headers",
    }
}

fn hashed(by: HashedBy) -> &'static str {
    match by {
        HashedBy::Ports => "ports",
        HashedBy::EntropyPorts => "ports per flow",
        HashedBy::PeerPorts => "ports per peer",
        HashedBy::Addresses => "addresses",
        HashedBy::Nothing => "nothing",
    }
}

fn nothing_helps(class: TrafficClass, means: &AvailableRemedies) -> String {
    match class {
        TrafficClass::Fragment => "no setting here spreads it; let the senders avoid fragments (path MTU)".into(),
        _ if class.hashed_by() == HashedBy::EntropyPorts && means.udp_fields.is_empty() => {
            "spread if the ports of UDP are hashed, which the driver does not report".into()
        }
        _ if class.hashed_by() == HashedBy::EntropyPorts => "spread, because the ports of UDP are hashed".into(),
        _ if class.is_spread_by_rps() => "RPS would spread it; whether it is on could not be read".into(),
        _ => format!("no setting of {} spreads it", means.dev),
    }
}

fn in_effect(r: &Remedy) -> bool {
    match r {
        Remedy::Rps { in_effect, .. }
        | Remedy::RpsAbove { in_effect, .. }
        | Remedy::ThreadedNapi { in_effect, .. }
        | Remedy::FlowRules { in_effect, .. } => *in_effect,
        Remedy::HashUdpPorts { .. } => false,
    }
}

fn advice(r: &Remedy, means: &AvailableRemedies, class: TrafficClass) -> String {
    match r {
        Remedy::Rps { queue, cpus, in_effect: true } => {
            format!("RPS of queue {queue} spreads it over CPUs {cpus}")
        }
        Remedy::Rps { queue, .. } => format!("RPS on queue {queue}, by the flow inside"),
        Remedy::RpsAbove { dev, in_effect: true, .. } => format!("RPS of {dev} spreads it"),
        Remedy::RpsAbove { dev, .. } => format!("RPS on {dev}"),
        Remedy::ThreadedNapi { dev, in_effect: true } => format!("threaded NAPI of {dev} is on"),
        Remedy::ThreadedNapi { dev, .. } => format!("threaded NAPI on {dev}"),
        Remedy::HashUdpPorts { .. } => "hash the ports of UDP".into(),
        Remedy::FlowRules { by, .. } => {
            let by = match by {
                RuleKey::Spi => "SPI",
                RuleKey::Addresses => "addresses",
                RuleKey::PeerPort => "peer's address, port",
            };
            // Two more lines: a rule is too long to stand behind the text.
            let mut out = format!("flow rules by {by}, if the driver accepts them:\n{INDENT}  {}", rule(means, class));
            if means.flow_rules != FlowRules::On {
                out += &format!("\n{INDENT}they need the feature ntuple");
            }
            out
        }
    }
}

/// A sample rule in the words of ethtool(8), in which capitals stand for values to fill in.
fn rule(means: &AvailableRemedies, class: TrafficClass) -> String {
    let matches = match class {
        TrafficClass::Esp => "esp4 spi SPI",
        TrafficClass::Ah => "ah4 spi SPI",
        // Numbers of IP protocols. IPv6 in IPv4 would be 41.
        TrafficClass::Gre => "ip4 src-ip PEER l4proto 47",
        TrafficClass::IpInIp => "ip4 src-ip PEER l4proto 4",
        _ => "udp4 src-ip PEER src-port PORT",
    };
    format!("ethtool -N {} flow-type {matches} action Q", means.dev)
}

/// The command that sets it. `None`: more than one decision is needed. `GOAL` stands for the goal of the host, because a plan
/// without it changes the other settings to the default goal.
fn command(r: &Remedy, means: &AvailableRemedies) -> Option<String> {
    Some(match r {
        Remedy::Rps { queue, cpus, .. } => {
            format!("ringwise plan --goal GOAL --set {}.rps_cpus.{queue}={cpus}", means.dev)
        }
        Remedy::RpsAbove { dev, cpus, .. } => {
            format!("echo {} >{}", mask(cpus), path::of_rx(dev, 0, "rps_cpus"))
        }
        Remedy::ThreadedNapi { dev, .. } => format!("echo 1 >{}", path::of_device(dev, "threaded")),
        Remedy::HashUdpPorts { flow_types } => hash_ports(&means.dev, flow_types, means.driver.as_deref()),
        Remedy::FlowRules { .. } if means.flow_rules == FlowRules::Off => {
            let restarts = driver_restarts_for_ntuple(means.driver.as_deref());
            format!("ringwise plan --goal GOAL --set {}.features.ntuple=true{}", means.dev, permission(restarts))
        }
        Remedy::FlowRules { .. } => return None,
    })
}

fn hash_ports(dev: &str, flow_types: &[&str], driver: Option<&str>) -> String {
    let sets: Vec<String> = flow_types.iter().map(|k| format!("--set {dev}.rss.fields.{k}=sdfn")).collect();
    format!("ringwise plan --goal GOAL {}{}", sets.join(" "), permission(driver_restarts_for_rss(driver)))
}

/// What a command needs if it makes the driver restart the device.
fn permission(restarts: bool) -> &'static str {
    if restarts { " --allow-disruption" } else { "" }
}

/// What the interface has, in one line.
fn interface(m: &AvailableRemedies) -> String {
    let fields: Vec<String> =
        m.udp_fields.iter().map(|(k, v)| format!("{k} {}", if v.is_empty() { "-" } else { v })).collect();
    let fields = if fields.is_empty() { "unknown".to_string() } else { fields.join(" ") };
    format!(
        "# {}: hash fields {fields}; flow rules {}; symmetric hash {}\n",
        m.dev,
        m.flow_rules.code(),
        m.symmetric.as_deref().unwrap_or("unknown")
    )
}

fn gain(i: &Interval, g: &UdpPortsGain) -> String {
    format!(
        "# {} hashed by addresses only: queue {} gets {:.1} % of the sampled packets.\n\
         # With the ports hashed, the busiest queue would get {:.1} %:\n\
         #   {}\n",
        g.flow_types.join(", "),
        g.now_queue,
        g.now_percent,
        g.with_ports_percent,
        hash_udp_ports(i, g),
    )
}

fn hash_udp_ports(i: &Interval, g: &UdpPortsGain) -> String {
    hash_ports(&i.dev, &g.flow_types, i.means.as_ref().and_then(|m| m.driver.as_deref()))
}

/// The members `limited_percent`, `classes`, `interface` and `udp_ports` of the document.
pub(super) fn json(j: &mut Json, i: &Interval) {
    j.num("limited_percent", i.flows.limited_percent());
    j.open("classes", '[');
    for t in i.flows.classes() {
        j.comma();
        j.0.push('{');
        j.word("class", Some(t.class.code()));
        j.word("hashed_by", Some(t.class.hashed_by().code()));
        j.int("looked_at", Some(t.count.packets));
        j.int("bytes", Some(t.count.bytes));
        j.int("busiest_queue", t.busiest.map(u64::from));
        j.int("on_busiest_queue", Some(t.on_busiest));
        j.open("remedies", '[');
        for (r, means) in i.means.iter().flat_map(|m| remedies(t.class, t.busiest, m).into_iter().map(move |r| (r, m)))
        {
            j.comma();
            j.0.push('{');
            remedy(j, &r, means);
            j.0.push('}');
        }
        j.0.push_str("]}");
    }
    j.0.push(']');
    match &i.means {
        None => j.value("interface", None),
        Some(m) => {
            j.open("interface", '{');
            j.open("udp_fields", '{');
            for (flow_type, letters) in &m.udp_fields {
                j.word(flow_type, Some(letters));
            }
            j.0.push('}');
            j.word("flow_rules", Some(m.flow_rules.code()));
            j.word("symmetric", m.symmetric.as_deref());
            j.0.push('}');
        }
    }
    match &i.udp_ports {
        None => j.value("udp_ports", None),
        Some(g) => {
            j.open("udp_ports", '{');
            j.open("flow_types", '[');
            g.flow_types.iter().for_each(|k| j.text(k));
            j.0.push(']');
            j.num("udp_percent", Some(g.udp_percent));
            j.int("now_queue", Some(g.now_queue.into()));
            j.num("now_percent", Some(g.now_percent));
            j.int("with_ports_queue", Some(g.with_ports_queue.into()));
            j.num("with_ports_percent", Some(g.with_ports_percent));
            j.word("command", Some(&hash_udp_ports(i, g)));
            j.0.push('}');
        }
    }
}

fn remedy(j: &mut Json, r: &Remedy, means: &AvailableRemedies) {
    let (code, dev, queue) = match r {
        Remedy::Rps { queue, .. } => ("rps", &means.dev, Some(*queue)),
        Remedy::RpsAbove { dev, .. } => ("rps_above", dev, None),
        Remedy::ThreadedNapi { dev, .. } => ("threaded_napi", dev, None),
        Remedy::HashUdpPorts { .. } => ("hash_udp_ports", &means.dev, None),
        Remedy::FlowRules { .. } => ("flow_rules", &means.dev, None),
    };
    j.word("remedy", Some(code));
    j.word("dev", Some(dev));
    j.int("queue", queue.map(u64::from));
    j.value("in_effect", Some(in_effect(r).to_string()));
    let command = if in_effect(r) { None } else { command(r, means) };
    j.word("command", command.as_deref());
}

#[cfg(test)]
#[path = "unhashed_tests.rs"]
mod tests;
