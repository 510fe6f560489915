use ringwise_model::{Action, Rule};

use super::*;
use crate::ethtool_ioctl::rxnfc;

fn fields(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn one(words: &str) -> Rule {
    parse_rule(words).unwrap_or_else(|e| panic!("{words}: {e}")).0
}

fn wrong(words: &str) -> RuleError {
    parse_rule(words).unwrap_err()
}

#[test]
fn ethtools_words() {
    let (rule, loc) = parse_rule("flow-type tcp4 src-ip 10.0.0.1 m 0.0.0.255 dst-port 443 action 2 loc 7").unwrap();
    assert_eq!(loc, Some(7));
    assert_eq!(rule.flow, "tcp4");
    assert_eq!(rule.fields, fields(&[("src-ip", "10.0.0.0 m 0.0.0.255"), ("dst-port", "443")]));
    assert_eq!(rule.action, Action::Queue(2));
    assert_eq!(one("tcp4 dst-port 443 src-ip 10.0.0.77/24 action 2"), rule, "a prefix, another order");
    assert_eq!(one("tcp4 dst-port 0x1bb src-ip 10.0.0.0 m 0.0.0.255 tos 9 m 0xff action 2"), rule, "nothing counts");

    assert_eq!(one("udp4 action -1").action, Action::Drop);
    assert_eq!(one("udp4 action wake").action, Action::Wake);
    assert_eq!(one("udp4 vf 3 queue 1").action, Action::Vf { vf: 3, queue: 1 });
    let spread = one("udp6 dst-port 53 context 1");
    assert_eq!((spread.context, spread.action), (Some(1), Action::Queue(0)));
    assert_eq!(one("udp6 dscp 46 action 1").fields, fields(&[("tclass", "184 m 0x03")]));
    assert_eq!(one("udp4 dscp 46 action 1").fields, fields(&[("tos", "184 m 0x03")]));
    assert_eq!(parse_match("tcp4 dst-port 80").unwrap(), ("tcp4".into(), fields(&[("dst-port", "80")])));
}

#[test]
fn every_type_keeps_its_fields() {
    let all = [
        ("ether", "src 02:00:00:00:00:01 dst 02:00:00:00:00:20 m 00:00:00:00:00:0f proto 0x0800"),
        ("ip4", "src-ip 10.1.0.0 m 0.0.255.255 l4proto 6 dst-port 80 src-port 1024 m 0x03ff"),
        ("ip4", "dst-ip 10.0.0.1 l4proto 47 l4data 0x00000001"),
        ("ip4", "l4proto 50 spi 77"),
        ("tcp4", "src-ip 10.0.0.1 dst-ip 10.0.0.2 tos 16 src-port 1 dst-port 65535"),
        ("udp4", "dst-port 53 vlan-etype 0x8100 vlan 7 m 0xf000 user-def 0x0000000100000002"),
        ("sctp4", "src-port 5 dst-mac 02:00:00:00:00:09"),
        ("ah4", "spi 1 tos 4"),
        ("esp4", "spi 4294967295"),
        ("ip6", "src-ip 2001:db8:: m ::ffff:ffff:ffff:ffff l4proto 17 dst-port 9"),
        ("ip6", "tclass 8 l4data 0x00010000 m 0x0000ffff"),
        ("tcp6", "src-ip 2001:db8::1 dst-ip 2001:db8::2 tclass 184 src-port 1 dst-port 2"),
        ("udp6", "dst-port 53"),
        ("sctp6", "src-port 9"),
        ("ah6", "spi 3"),
        ("esp6", "spi 3 tclass 1"),
    ];
    for (flow, words) in all {
        let rule = one(&format!("{flow} {words} action 5"));
        let text: Vec<String> = rule.fields.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let mut given: Vec<&str> = words.split(' ').collect();
        let mut kept: Vec<&str> = text.iter().flat_map(|t| t.split(' ')).collect();
        given.sort_unstable();
        kept.sort_unstable();
        assert_eq!(given, kept, "{flow}");
        assert_eq!(rule.flow, flow);
        let spec = FlowSpec::of(&rule, 9).unwrap();
        let reply = rxnfc::rule_reply(&spec);
        let back = rxnfc::rule(&reply).unwrap();
        assert_eq!((back.rule(), back.location()), (rule, 9), "{flow}");
    }
}

#[test]
fn words_that_are_no_rule() {
    let text = "tcp4 dst-port 70000 action 2";
    let e = wrong(text);
    assert_eq!(e.to_string(), "dst-port: found \"70000\", expected a number from 0 to 65535 (decimal, or 0x…)");
    let (a, b) = e.at.unwrap();
    assert_eq!(&text[a..b], "70000");

    let starts = [
        ("", "flow-type: nothing found, expected one of ether, ip4, tcp4"),
        ("tcp5 action 1", "flow-type: found \"tcp5\", expected one of ether, ip4, tcp4"),
        ("tcp4 dst-port 80", "action: nothing found, expected a queue, -1 to drop"),
        ("tcp4 dst-port", "dst-port: nothing found, expected a value"),
        ("tcp4 dst-port 80 m", "m: nothing found, expected a mask"),
        ("tcp4 spi 1 action 1", "spi: found \"spi\", expected a word for tcp4, one of src-ip, dst-ip, tos"),
        ("tcp4 src-ip 10.0.0 action 1", "src-ip: found \"10.0.0\", expected an IPv4 address"),
        ("tcp4 src-ip ::1 action 1", "src-ip: found \"::1\", expected an IPv4 address"),
        ("tcp4 src-ip 10.0.0.0/33 action 1", "src-ip: found \"33\", expected a prefix length"),
        ("tcp4 src-ip 10.0.0.0/8 m 0.0.0.1 action 1", "src-ip: found \"10.0.0.0/8 m 0.0.0.1\", expected a prefix"),
        ("tcp4 src-ip 10.0.0.0 m 24 action 1", "src-ip: found \"24\", expected a mask such as 0.0.0.255; set bits"),
        ("tcp4 dst-port 1 dst-port 2 action 1", "dst-port is given twice, expected each field once"),
        ("tcp4 action 1 action 2", "action is given twice, expected only one"),
        ("tcp4 action 1 queue 2", "action is given together with vf or queue, expected action alone, or vf with queue"),
        ("tcp4 action -3", "action: found \"-3\", expected a queue, -1 to drop, or -2"),
        ("tcp4 action 1 loc 2147483648", "loc: found \"2147483648\", expected a location below 2147483648"),
        ("tcp4 action 1 context 0", "context: found \"0\", expected the number of an RSS context, 1 or more"),
        ("tcp4 vf 255", "vf: found \"255\", expected the number of a virtual function, 0 to 254"),
        ("tcp4 dst-port 010 action 1", "dst-port: found \"010\", expected a number"),
        ("udp4 dscp 64 action 1", "dscp: found \"64\", expected a code point from 0 to 63"),
        ("ether src 02:00 action 1", "src: found \"02:00\", expected an Ethernet address"),
        ("ip4 l4data 1 dst-port 5 action 1", "l4data: found \"1\", expected only one of the fields that share"),
        ("type-0x13 raw 00 action 1", "raw: found \"00\", expected 288 hexadecimal digits"),
        ("type-0x13 dst-port 7 action 1", "dst-port: found \"dst-port\", expected a word for type-0x13, one of"),
    ];
    for (words, start) in starts {
        let said = wrong(words).to_string();
        assert!(said.starts_with(start), "{words}:\n  {said}\n  {start}");
    }
}

/// Offsets of linux/ethtool.h as bytes, without the code that writes them.
#[test]
fn layout() {
    let rule = one("tcp4 src-ip 1.2.3.4 dst-ip 5.6.7.8 m 0.0.0.255 tos 9 src-port 258 dst-port 772 m 0xff vlan 5 \
         user-def 0x0102030405060708 dst-mac 02:03:04:05:06:07 action 3");
    let b = FlowSpec::of(&rule, 0x0a0b).unwrap().bytes;
    assert_eq!(b.len(), 168);
    assert_eq!(b[0..4], 0xc000_0001u32.to_ne_bytes(), "TCP_V4_FLOW, FLOW_EXT, FLOW_MAC_EXT");
    assert_eq!(b[4..17], [1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 0, 9], "addresses, ports, tos");
    assert_eq!(b[58..64], [2, 3, 4, 5, 6, 7], "h_dest");
    assert_eq!(b[64..76], [0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8], "vlan_etype, vlan_tci, data");
    assert_eq!(b[76..89], [255, 255, 255, 255, 255, 255, 255, 0, 255, 255, 255, 0, 255], "masks");
    assert_eq!(b[130..148], [255, 255, 255, 255, 255, 255, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
    assert_eq!(b[152..160], 3u64.to_ne_bytes(), "ring_cookie");
    assert_eq!(b[160..164], 0x0a0bu32.to_ne_bytes(), "location");

    let six =
        FlowSpec::of(&one("ip6 dst-ip 2001:db8::1 tclass 7 l4proto 17 dst-port 9 vf 1 queue 2"), 0).unwrap().bytes;
    assert_eq!(six[0..4], 0x0eu32.to_ne_bytes());
    assert_eq!(six[20..36], [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(six[36..42], [0, 0, 0, 9, 7, 17]);
    assert_eq!(six[152..160], 0x2_0000_0002u64.to_ne_bytes());
    let four = FlowSpec::of(&one("ip4 l4proto 50 spi 1 action -2"), 0).unwrap().bytes;
    assert_eq!(
        (four[12..19].to_vec(), four[84..91].to_vec()),
        (vec![0, 0, 0, 1, 0, 1, 50], vec![255, 255, 255, 255, 0, 0, 255])
    );
    assert_eq!(four[152..160], (u64::MAX - 1).to_ne_bytes());
    let mac = FlowSpec::of(&one("ether dst-mac 1:2:3:4:5:6 src-mac 7:8:9:a:b:c proto 0x86dd action drop"), 0).unwrap();
    assert_eq!(mac.bytes[0..4], 0x12u32.to_ne_bytes());
    assert_eq!(mac.bytes[4..18], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd]);
    let spread = FlowSpec::of(&one("udp4 context 3 action 1"), 4).unwrap();
    assert_eq!(spread.bytes[0..4], 0x2000_0002u32.to_ne_bytes(), "FLOW_RSS");
    let order = rxnfc::insert(&spread);
    assert_eq!(
        (order.len(), &order[184..188], &order[0..4]),
        (192, &3u32.to_ne_bytes()[..], &0x32u32.to_ne_bytes()[..])
    );
    assert_eq!(order[16 + 160..16 + 164], 4u32.to_ne_bytes());
}

#[test]
fn what_has_no_words_is_kept_whole() {
    let mut spec = FlowSpec::of(&one("tcp4 dst-port 80 action 1"), 3).unwrap();
    spec.bytes[0..4].copy_from_slice(&0x13u32.to_ne_bytes());
    let rule = spec.rule();
    assert_eq!(rule.flow, "type-0x13");
    assert_eq!(FlowSpec::of(&rule, 3).unwrap(), spec);
    // A type with a name, and a bit outside all fields of ringwise.
    let mut odd = FlowSpec::of(&one("tcp4 dst-port 80 action 1"), 3).unwrap();
    (odd.bytes[40], odd.bytes[112]) = (1, 1);
    let rule = odd.rule();
    assert_eq!(rule.flow, "type-0x1");
    assert_eq!(FlowSpec::of(&rule, 3).unwrap(), odd);
    assert_eq!(parse_rule(&format!("{} raw {} action 1", rule.flow, rule.fields["raw"])).unwrap().0, rule);
}

#[test]
fn what_a_driver_makes_of_it_is_the_same_rule() {
    let asked = one("tcp4 dst-port 443 src-ip 10.0.0.0/8 action 2");
    let mut spec = FlowSpec::of(&asked, 3).unwrap();
    // Ignored bits, and a mask for an extension that does not exist.
    (spec.bytes[5], spec.bytes[6], spec.bytes[138]) = (9, 9, 0xff);
    assert_eq!(spec.rule(), asked);
    // A mask that compares more bits is another rule.
    spec.bytes[77] = 0xff;
    assert_ne!(spec.rule(), asked);
}

/// A driver may leave bytes in the masks of a MAC address or VLAN tag that the rule's type does not have. They are
/// ignored.
#[test]
fn masks_that_the_type_does_not_have_are_not_looked_at() {
    let asked = one("tcp4 dst-port 443 action 2");
    for at in [58, 63, 64, 75] {
        let mut spec = FlowSpec::of(&asked, 3).unwrap();
        spec.bytes[at + fields::TO_MASK] = 0xff;
        assert_eq!(spec.rule(), asked, "byte {at}");
    }
    // If the type has them, they are compared.
    let tagged = one("tcp4 vlan 5 action 2");
    let mut spec = FlowSpec::of(&tagged, 3).unwrap();
    spec.bytes[75 + fields::TO_MASK] = 0xff;
    assert_ne!(spec.rule(), tagged);
}

#[test]
fn counts_and_lists() {
    let c = rxnfc::FlowRuleCount { rules: 3, capacity: 1024, chooses_location: true };
    assert_eq!(rxnfc::count(&rxnfc::count_reply(&c)).unwrap(), c);
    let mut raw = rxnfc::count_request();
    raw[8..16].copy_from_slice(&0x8000_0400u64.to_ne_bytes());
    raw[184..188].copy_from_slice(&3u32.to_ne_bytes());
    assert_eq!(rxnfc::count(&raw).unwrap(), c);

    let ask = rxnfc::all_request(3);
    assert_eq!(ask.len(), 200);
    assert_eq!(rxnfc::all_room(&ask).unwrap(), 3);
    let reply = rxnfc::all_reply(&ask, 64, &[5, 1, 9]);
    assert_eq!(reply[188..192], 5u32.to_ne_bytes());
    assert_eq!(rxnfc::all(&reply).unwrap(), [5, 1, 9]);
    let mut forged = ask;
    forged[184..188].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert!(rxnfc::all(&forged).is_err());
    assert_eq!(rxnfc::all_request(u32::MAX).len(), 188 + 4 * 65536);
    for n in 0..192 {
        let b = vec![0xff; n];
        assert!(rxnfc::count(&b).is_err() && rxnfc::all(&b).is_err() && rxnfc::rule(&b).is_err());
    }
    assert_eq!(rxnfc::location(&rxnfc::delete(17)).unwrap(), 17);
}
