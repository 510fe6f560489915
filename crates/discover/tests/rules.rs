//! Flow steering rules as the ioctl reports them.

use crate::common::Tree;
use crate::common::machine::{Machine, eth1_plan};
use ringwise_discover::{Options, snapshot};
use ringwise_kfmt::ethtool_ioctl::rxnfc;
use ringwise_kfmt::rule::{FlowSpec, parse_rule};
use ringwise_model::{Fact, Nic, Rules};
use ringwise_sys::{IoctlCmd, Request};

fn tree() -> Tree {
    let mut m = Machine::new(4, 1);
    m.nic(&eth1_plan("ixgbe"));
    m.finish()
}

fn eth1(t: &Tree) -> Nic {
    snapshot(&t.shared(), &Options::all()).unwrap().nic("eth1").unwrap().clone()
}

fn ioctl(cmd: IoctlCmd, payload: Vec<u8>) -> Request {
    Request::Ioctl { cmd, dev: "eth1".into(), payload }
}

fn counted(t: &mut Tree, rules: u32) {
    let count = rxnfc::FlowRuleCount { rules, capacity: 2048, chooses_location: false };
    t.reply(ioctl(IoctlCmd::RuleCount, rxnfc::count_request()), vec![rxnfc::count_reply(&count)]);
}

fn listed(t: &mut Tree, places: &[u32]) {
    let ask = rxnfc::all_request(places.len() as u32);
    let reply = rxnfc::all_reply(&ask, 2048, places);
    t.reply(ioctl(IoctlCmd::RuleList, ask), vec![reply]);
}

fn there(t: &mut Tree, at: u32, words: &str) {
    let spec = FlowSpec::of(&parse_rule(words).unwrap().0, at).unwrap();
    t.reply(ioctl(IoctlCmd::RuleGet, rxnfc::rule_request(at)), vec![rxnfc::rule_reply(&spec)]);
}

fn text(rules: &Rules) -> Vec<String> {
    let words = |(at, r): (&u32, &ringwise_model::Rule)| {
        let fields: String = r.fields.iter().map(|(k, v)| format!(" {k} {v}")).collect();
        format!("{at}: {}{fields} {:?}", r.flow, r.action)
    };
    rules.rules.iter().map(words).collect()
}

#[test]
fn a_driver_that_does_not_count_has_none() {
    // Every request that is not recorded is EOPNOTSUPP there.
    assert_eq!(eth1(&tree()).rules, Fact::Absent);
}

#[test]
fn rules_by_location() {
    let mut t = tree();
    counted(&mut t, 2);
    listed(&mut t, &[2045, 3]);
    there(&mut t, 2045, "tcp4 src-port 10000 dst-port 10001 action 6");
    there(&mut t, 3, "udp6 dst-ip 2001:db8::/32 action -1");
    let nic = eth1(&t);
    let rules = nic.rules.known().unwrap();
    assert_eq!((rules.capacity, rules.chooses_location), (2048, false));
    assert_eq!(
        text(rules),
        [
            "3: udp6 dst-ip 2001:db8:: m ::ffff:ffff:ffff:ffff:ffff:ffff Drop",
            "2045: tcp4 dst-port 10001 src-port 10000 Queue(6)",
        ]
    );
    assert!(nic.unread.is_empty(), "{:?}", nic.unread);
}

#[test]
fn many_rules() {
    let mut t = tree();
    let places: Vec<u32> = (0..1024).collect();
    counted(&mut t, 1024);
    listed(&mut t, &places);
    places.iter().for_each(|p| there(&mut t, *p, &format!("tcp4 dst-port {} action {}", p + 1, p % 4)));
    assert_eq!(eth1(&t).rules.known().unwrap().rules.len(), 1024);
}

#[test]
fn what_was_not_read_is_unknown() {
    let why = |t: &Tree| match eth1(t).rules {
        Fact::Unknown(u) => u.why,
        other => panic!("{other:?}"),
    };
    let mut t = tree();
    counted(&mut t, 9000);
    assert_eq!(why(&t), "there are 9000 rules; at most 8192 are read");
    // Counted, but the list is refused.
    let mut t = tree();
    counted(&mut t, 1);
    assert_eq!(why(&t), "EOPNOTSUPP (Operation not supported)");
    // A rule is gone each time ringwise requests it.
    let mut t = tree();
    counted(&mut t, 1);
    listed(&mut t, &[7]);
    let ask = ioctl(IoctlCmd::RuleGet, rxnfc::rule_request(7));
    t.kernel.insert(ask, Err(2));
    assert_eq!(why(&t), "they changed during every attempt to read them");
    let mut t = tree();
    t.reply(ioctl(IoctlCmd::RuleCount, rxnfc::count_request()), vec![vec![0; 8]]);
    assert!(why(&t).starts_with("ethtool_rxnfc: found \"8 bytes\""), "{}", why(&t));
}
