//! Whether a flow steering rule (`ethtool -n`) matches a flow.

use std::net::IpAddr;

use ringwise_model::Rule;

use crate::tuple::{SCTP, TCP, Tuple, UDP};
use crate::undecided::{MatchDependsOn, PacketProperty};

/// A flow does not say all that a rule may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleMatch {
    /// Every packet of the flow matches.
    Yes,
    /// No packet of the flow matches.
    No,
    /// The match depends on this, which a flow does not contain.
    DependsOn(MatchDependsOn),
}

/// Fields in ethtool's words, masks in its sense: set bits do not count.
pub fn rule_match(rule: &Rule, t: &Tuple) -> RuleMatch {
    let (kind, six) = match rule.flow.as_str() {
        "ether" => ("ether", t.is_v6()),
        f => match (f.strip_suffix('4'), f.strip_suffix('6')) {
            (Some(k), _) => (k, false),
            (_, Some(k)) => (k, true),
            _ => return RuleMatch::DependsOn(MatchDependsOn::UnknownFlowType),
        },
    };
    if six != t.is_v6() {
        return RuleMatch::No;
    }
    let protocol = match kind {
        "tcp" => Some(TCP),
        "udp" => Some(UDP),
        "sctp" => Some(SCTP),
        "ah" => Some(51),
        "esp" => Some(50),
        "ip" | "ether" => None,
        _ => return RuleMatch::DependsOn(MatchDependsOn::UnknownFlowType),
    };
    // A piece shows its protocol, but no ports; devices differ in whether such a rule means it.
    if protocol.is_some_and(|p| p != t.protocol) {
        return RuleMatch::No;
    }
    let mut open = None;
    for (name, value) in &rule.fields {
        match field(name, value, t) {
            RuleMatch::Yes => {}
            RuleMatch::No => return RuleMatch::No,
            RuleMatch::DependsOn(what) => open = Some(what),
        }
    }
    match open {
        Some(what) => RuleMatch::DependsOn(what),
        None if t.fragment && matches!(kind, "tcp" | "udp" | "sctp") => RuleMatch::DependsOn(MatchDependsOn::Fragments),
        None => RuleMatch::Yes,
    }
}

fn field(name: &str, value: &str, t: &Tuple) -> RuleMatch {
    let port = |p: Option<u16>| match p {
        Some(p) => number(value, u64::from(p)),
        None => RuleMatch::No,
    };
    match name {
        "src-ip" => address(value, t.src),
        "dst-ip" => address(value, t.dst),
        "src-port" => port(t.ports.map(|p| p.0)),
        "dst-port" => port(t.ports.map(|p| p.1)),
        "l4proto" => number(value, u64::from(t.protocol)),
        "proto" => number(value, if t.is_v6() { 0x86dd } else { 0x0800 }),
        "vlan" => match t.vlan {
            Some(v) => tag(value, v),
            None => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanTag)),
        },
        "tos" | "tclass" => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::TypeOfService)),
        "spi" | "l4data" => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::Payload)),
        "vlan-etype" => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanTag)),
        "src" | "dst" | "dst-mac" => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::MacAddresses)),
        _ => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::Other)),
    }
}

fn split(value: &str) -> (&str, Option<&str>) {
    value.split_once(" m ").map_or((value, None), |(v, m)| (v, Some(m)))
}

fn yes(b: bool) -> RuleMatch {
    if b { RuleMatch::Yes } else { RuleMatch::No }
}

const UNREADABLE: RuleMatch = RuleMatch::DependsOn(MatchDependsOn::UnreadableField);

fn number(value: &str, got: u64) -> RuleMatch {
    let (v, m) = split(value);
    let parse = |s: &str| match s.strip_prefix("0x") {
        Some(h) => u64::from_str_radix(h, 16).ok(),
        None => s.parse().ok(),
    };
    match (parse(v), m.map_or(Some(0), parse)) {
        (Some(want), Some(ignored)) => yes((want ^ got) & !ignored == 0),
        _ => UNREADABLE,
    }
}

/// Whether a rule for a VLAN tag matches. A flow has only the number of its VLAN; the tag also has a priority, in the bits above it.
fn tag(value: &str, id: u16) -> RuleMatch {
    let id = u64::from(id & 0xfff);
    let with = |priority: u64| number(value, priority << 12 | id);
    match (0..16).filter(|p| with(*p) == RuleMatch::Yes).count() {
        16 => RuleMatch::Yes,
        0 => with(0),
        _ => RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanPriority)),
    }
}

fn address(value: &str, got: IpAddr) -> RuleMatch {
    let (v, m) = split(value);
    let bytes = |a: IpAddr| match a {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    let Ok(want) = v.parse::<IpAddr>() else { return UNREADABLE };
    let ignored = match m.map(str::parse::<IpAddr>) {
        None => vec![0; 16],
        Some(Ok(m)) => bytes(m),
        Some(Err(_)) => return UNREADABLE,
    };
    let (want, got) = (bytes(want), bytes(got));
    yes(want.len() == got.len() && want.iter().zip(&got).zip(&ignored).all(|((a, b), i)| (a ^ b) & !i == 0))
}

#[cfg(test)]
mod tests {
    use ringwise_model::Action;

    use super::*;
    use crate::FlowSpec;

    fn rule(flow: &str, fields: &[(&str, &str)]) -> Rule {
        let fields = fields.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Rule { flow: flow.into(), fields, action: Action::Queue(1), context: None }
    }

    fn flow(text: &str) -> Tuple {
        text.parse::<FlowSpec>().unwrap().exact().unwrap()
    }

    #[test]
    fn values_and_masks() {
        let t = flow("10.0.0.1:1234-10.0.1.2:443/tcp");
        for (r, want) in [
            (rule("tcp4", &[("dst-port", "443")]), RuleMatch::Yes),
            (rule("tcp4", &[("dst-port", "444 m 0x0007")]), RuleMatch::Yes),
            (rule("tcp4", &[("dst-port", "444 m 0x0001")]), RuleMatch::No),
            (rule("tcp4", &[("dst-ip", "10.0.1.0 m 0.0.0.255")]), RuleMatch::Yes),
            (rule("tcp4", &[("src-ip", "10.0.1.0 m 0.0.0.255")]), RuleMatch::No),
            (rule("udp4", &[]), RuleMatch::No),
            (rule("tcp6", &[]), RuleMatch::No),
            (rule("sctp4", &[]), RuleMatch::No),
            (rule("ah4", &[]), RuleMatch::No),
            (rule("esp4", &[]), RuleMatch::No),
            (rule("hip4", &[]), RuleMatch::DependsOn(MatchDependsOn::UnknownFlowType)),
            (rule("ip4", &[("l4proto", "6")]), RuleMatch::Yes),
            (rule("ether", &[("proto", "0x0800")]), RuleMatch::Yes),
            (
                rule("tcp4", &[("dst-port", "443"), ("vlan", "5")]),
                RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanTag)),
            ),
            (rule("tcp4", &[("dst-port", "444"), ("vlan", "5")]), RuleMatch::No),
            (
                rule("tcp4", &[("tos", "8")]),
                RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::TypeOfService)),
            ),
            (
                rule("tcp4", &[("vlan-etype", "0x8100")]),
                RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanTag)),
            ),
            (rule("tcp4", &[("l4data", "0x1")]), RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::Payload))),
            (
                rule("tcp4", &[("dst-mac", "02:00:00:00:00:01")]),
                RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::MacAddresses)),
            ),
            (rule("tcp4", &[("user-def", "0x1")]), RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::Other))),
        ] {
            assert_eq!(rule_match(&r, &t), want, "{r:?}");
        }
        // Rules of other protocols mean the packets of their protocol.
        for (kind, text) in [
            ("sctp4", "10.0.0.1:1-10.0.1.2:2/sctp"),
            ("ah4", "10.0.0.1-10.0.1.2/ah"),
            ("esp4", "10.0.0.1-10.0.1.2/esp"),
        ] {
            assert_eq!(rule_match(&rule(kind, &[]), &flow(text)), RuleMatch::Yes, "{kind}");
        }
        let tagged = Tuple { vlan: Some(5), ..t };
        for (value, want) in [
            ("5 m 0xf000", RuleMatch::Yes),
            ("6 m 0xf000", RuleMatch::No),
            ("5", RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanPriority))),
            ("8197 m 0x1000", RuleMatch::DependsOn(MatchDependsOn::Packet(PacketProperty::VlanPriority))),
            ("6", RuleMatch::No),
            ("x", UNREADABLE),
        ] {
            assert_eq!(rule_match(&rule("tcp4", &[("vlan", value)]), &tagged), want, "{value}");
        }
    }

    #[test]
    fn pieces_carry_no_ports() {
        let t = flow("10.0.0.1-10.0.1.2/udp/frag");
        assert_eq!(rule_match(&rule("udp4", &[("dst-port", "53")]), &t), RuleMatch::No);
        assert!(matches!(rule_match(&rule("udp4", &[]), &t), RuleMatch::DependsOn(_)));
        assert_eq!(rule_match(&rule("ip4", &[]), &t), RuleMatch::Yes);
    }
}
