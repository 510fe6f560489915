//! Predicted queues, and the reasons given where the queue is unknown.

use std::collections::BTreeMap;

use ringwise_flow::chain::{self, FlowRoute, Route};
use ringwise_flow::population::spread;
use ringwise_flow::rfs_paths::{RfsPath, RfsUse, rfs_paths};
use ringwise_flow::stack::{NodeDistance, Rps, landing};
use ringwise_flow::steering::ignored_table_warning;
use ringwise_flow::synthetic::Synthetic;
use ringwise_flow::toeplitz::bit_by_bit;
use ringwise_flow::undecided::{KeySource, MatchDependsOn, PacketProperty, StackHashUnknown};
use ringwise_flow::{Fields, FlowSpec, QueueDecision, Steering, Tuple, Undecided};
use ringwise_model::*;
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

const KEY: &str = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";
const VECTOR: &str = "66.9.149.187:2794-161.142.100.80:1766/tcp";
const HASH: u32 = 0x51cc_c178;

pub(crate) fn host(driver: &str) -> Snapshot {
    let cpu = CpuSpec { packages: 2, nodes: 1, l3s: 1, ..CpuSpec::flat(4, 1) };
    let mut s = machines::host("h", cpu, vec![NicSpec::new("eth0", driver, Some(0), 8, 8)]).snapshot();
    let n = &mut s.nics[0];
    n.rss = Fact::Known(Rss {
        table: (0..128).map(|i| i % 8).collect(),
        function: Fact::Known("toeplitz".into()),
        key: Fact::Known(KEY.into()),
        fields: [("tcp4", "sdfn"), ("udp4", "sd"), ("tcp6", "sdfn"), ("udp6", "sdv")]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into(),
        symmetric: Fact::Absent,
        contexts: Fact::Known(BTreeMap::new()),
    });
    let on = |on| Feature { on, wanted: on, fixed: false };
    n.features =
        Fact::Known([("rx-ntuple-filter".to_string(), on(false)), ("rx-hashing".to_string(), on(true))].into());
    n.rules = Fact::Known(Rules::default());
    for (q, v) in n.vectors.iter_mut().enumerate() {
        v.effective = Fact::Known(CpuSet::one(CpuId(q as u32 % 8)));
    }
    s
}

fn rss(s: &mut Snapshot) -> &mut Rss {
    match &mut s.nics[0].rss {
        Fact::Known(r) => r,
        _ => panic!("there is one"),
    }
}

fn flow(text: &str) -> Tuple {
    text.parse::<FlowSpec>().unwrap().exact().unwrap()
}

fn none() -> Fact<String> {
    Fact::Absent
}

fn steering(s: &Snapshot) -> Steering {
    Steering::new(&s.nics[0], &none())
}

/// Location, flow type, fields, action, context.
type Written<'a> = (u32, &'a str, &'a [(&'a str, &'a str)], Action, Option<u32>);

fn ntuple(s: &mut Snapshot, rules: &[Written]) {
    if let Fact::Known(f) = &mut s.nics[0].features {
        f.get_mut("rx-ntuple-filter").unwrap().on = true;
    }
    let rule = |flow: &str, fields: &[(&str, &str)], action, context| Rule {
        flow: flow.into(),
        fields: fields.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        action,
        context,
    };
    let rules = rules.iter().map(|(at, f, fields, a, c)| (*at, rule(f, fields, *a, *c))).collect();
    s.nics[0].rules = Fact::Known(Rules { capacity: 64, chooses_location: false, rules });
}

#[test]
fn hash_entry_queue() {
    let s = host("ice");
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.hash, a.entry, a.queue), (QueueDecision::Table, Some(HASH), Some(0x78), Some(0)));
    let udp = steering(&s).answer(&flow("66.9.149.187:2794-161.142.100.80:1766/udp"));
    assert_eq!((udp.hash, udp.fields), (Some(0x323e_8fc2), Some(Fields::ADDRESSES)));
    let piece = steering(&s).answer(&flow("66.9.149.187-161.142.100.80/tcp/frag"));
    assert_eq!((piece.hash, piece.flow_type), (Some(0x323e_8fc2), "ip4"));
    assert!(piece.notes.iter().any(|n| n.contains("assumed: the addresses")));
}

#[test]
fn an_unknown_key_is_unknown_and_the_rest_is_reported() {
    let mut s = host("ice");
    rss(&mut s).key = Fact::unknown("rss-get", "needs root");
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.hash, a.queue), (QueueDecision::NotDecidable, None, None));
    assert_eq!(a.may_be, (0..8).collect::<Vec<u32>>());
    assert_eq!(a.why_not, Some(Undecided::KeyUnread { unread: Unread::new("rss-get", None, "needs root") }));
    assert!(a.notes[0].contains("always the same"));
    // Every entry the same: no key is needed.
    rss(&mut s).table = vec![5; 128];
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.queue, steering(&s).queue(&flow(VECTOR))), (QueueDecision::OnlyOne, Some(5), Some(5)));
}

#[test]
fn functions_fields_and_tables_that_the_driver_does_not_report() {
    let why = |s: &Snapshot, f: &str| steering(s).answer(&flow(f)).why_not.unwrap();
    let driver = |name: &str| name.to_string();
    let mut s = host("mlx5_core");
    rss(&mut s).function = Fact::Known("xor".into());
    let xor = Undecided::UndocumentedHash { driver: driver("mlx5_core"), function: "xor".into() };
    assert_eq!(why(&s, VECTOR), xor);
    assert_eq!(why(&host("ena"), VECTOR), Undecided::NonstandardHash { driver: driver("ena") });
    let s = host("ice");
    let tag = Undecided::HashedPropertyUnknown { flow_type: "udp6".into(), property: PacketProperty::VlanTag };
    assert_eq!(why(&s, "[2001:db8::1]:1-[2001:db8::2]:2/udp"), tag);
    let sctp = Undecided::FieldsNotReported { flow_type: "sctp4".into() };
    assert_eq!(why(&s, "10.0.0.1:1-10.0.0.2:2/sctp"), sctp);
    let mut s = host("ice");
    rss(&mut s).fields.insert("sctp4".into(), String::new());
    let a = steering(&s).answer(&flow("66.9.149.187:2794-161.142.100.80:1766/sctp"));
    assert_eq!(a.hash, Some(0x323e_8fc2));
    rss(&mut s).fields.insert("ip4".into(), String::new());
    assert_eq!(why(&s, "10.0.0.1-10.0.0.2/esp"), Undecided::NoFieldHashed { flow_type: "ip4".into() });
    rss(&mut s).fields.insert("ip4".into(), "r".into());
    assert_eq!(why(&s, "10.0.0.1-10.0.0.2/esp"), Undecided::FlowTypeDiscarded { flow_type: "ip4".into() });
    rss(&mut s).symmetric = Fact::Known("mirror".into());
    assert_eq!(why(&s, VECTOR), Undecided::UnknownTransform { transform: "mirror".into() });
    rss(&mut s).key = Fact::Known("6d5".into());
    assert!(matches!(why(&s, VECTOR), Undecided::UnknownTransform { .. }));
    rss(&mut s).symmetric = Fact::Absent;
    assert!(matches!(why(&s, VECTOR), Undecided::KeyMalformed { of: KeySource::Device, .. }));
    rss(&mut s).key = Fact::Known(String::new());
    assert_eq!(why(&s, VECTOR), Undecided::KeyEmpty);
    rss(&mut s).table.clear();
    assert_eq!(why(&s, VECTOR), Undecided::NoTable);
    s.nics[0].rss = Fact::Absent;
    assert_eq!(why(&s, VECTOR), Undecided::NoRss);
    s.nics[0].rss = Fact::unknown("rss-get", "needs root");
    assert_eq!(why(&s, VECTOR), Undecided::TableUnread { unread: Unread::new("rss-get", None, "needs root") });
}

#[test]
fn drivers_without_a_key_of_their_own_take_the_hosts() {
    let mut s = host("igb");
    rss(&mut s).key = Fact::Absent;
    let colons: Vec<&str> = (0..40).map(|i| &KEY[2 * i..2 * i + 2]).collect();
    let key = format!("{}:00:11:22", colons.join(":"));
    let a = Steering::new(&s.nics[0], &Fact::Known(key)).answer(&flow(VECTOR));
    assert_eq!(a.hash, Some(HASH));
    assert_eq!(a.key_from, Some(KeySource::Host));
    let unset = Steering::new(&s.nics[0], &Fact::Known("00:00:00:00".into())).answer(&flow(VECTOR));
    assert_eq!((unset.hash, unset.why_not), (None, Some(Undecided::HostKeyNotSet)));
    let absent = Steering::new(&s.nics[0], &Fact::Absent).answer(&flow(VECTOR));
    assert_eq!(absent.why_not, Some(Undecided::HostKeyAbsent { driver: "igb".into() }));
    let mut other = host("tg3");
    rss(&mut other).key = Fact::Absent;
    let a = Steering::new(&other.nics[0], &Fact::Known("01:02".into())).answer(&flow(VECTOR));
    assert_eq!(a.why_not, Some(Undecided::KeyNotReported { driver: "tg3".into() }));
}

#[test]
fn where_the_nic_steers_by_itself_nothing_is_decided() {
    let mut s = host("ixgbe");
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.queue), (QueueDecision::NotDecidable, None));
    assert_eq!(a.why_not, Some(Undecided::AtrOn { driver: "ixgbe".into() }));
    assert_eq!(steering(&s).queue(&flow(VECTOR)), None);
    // Not of UDP, and not with rules switched on.
    assert_eq!(steering(&s).answer(&flow("10.0.0.1:1-10.0.0.2:2/udp")).by, QueueDecision::Table);
    ntuple(&mut s, &[]);
    assert_eq!(steering(&s).answer(&flow(VECTOR)).by, QueueDecision::Table);
    let mut i40e = host("i40e");
    i40e.nics[0].private_flags = Fact::Known([("flow-director-atr".to_string(), true)].into());
    assert_eq!(steering(&i40e).answer(&flow(VECTOR)).by, QueueDecision::NotDecidable);
    i40e.nics[0].private_flags = Fact::Known([("flow-director-atr".to_string(), false)].into());
    assert_eq!(steering(&i40e).answer(&flow(VECTOR)).by, QueueDecision::Table);
    // On as the driver begins: not read is not off.
    i40e.nics[0].private_flags = ringwise_model::not_requested();
    let a = steering(&i40e).answer(&flow(VECTOR));
    assert_eq!((a.by, a.queue), (QueueDecision::NotDecidable, None));
    assert!(matches!(a.why_not, Some(Undecided::AtrUnread { .. })));
}

#[test]
fn unread_facts_are_reported_as_assumed() {
    let mut s = host("ice");
    assert!(steering(&s).assumed().is_empty());
    let told = steering(&s).answer(&flow(VECTOR));
    assert!(told.notes.is_empty(), "{:?}", told.notes);
    rss(&mut s).function = Fact::Absent;
    rss(&mut s).symmetric = ringwise_model::not_requested();
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.hash, a.queue), (told.hash, told.queue));
    assert!(a.notes.iter().any(|n| n.contains("hash function; assumed: toeplitz")), "{:?}", a.notes);
    assert!(a.notes.iter().any(|n| n.contains("assumed: it is not")), "{:?}", a.notes);
    assert_eq!(steering(&s).assumed().len(), 2);
}

#[test]
fn rules_go_first_and_contexts_have_their_own_table() {
    let mut s = host("ice");
    let context = RssContext { table: vec![6, 7, 6, 7], key: None };
    rss(&mut s).contexts = Fact::Known([(1, context)].into());
    let port: &[(&str, &str)] = &[("dst-port", "1766")];
    ntuple(&mut s, &[(4, "tcp4", port, Action::Queue(3), None), (9, "tcp4", &[], Action::Drop, None)]);
    assert!(steering(&s).is_ruled(&flow(VECTOR)) && !steering(&s).is_ruled(&flow("1.1.1.1:5-2.2.2.2:6/udp")));
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.queue, a.rule), (QueueDecision::Rule, Some(3), Some(4)));
    assert!(a.notes[0].contains("other rule"));
    let a = steering(&s).answer(&flow("1.1.1.1:5-2.2.2.2:6/tcp"));
    assert_eq!((a.by, a.queue, a.rule), (QueueDecision::Dropped, None, Some(9)));
    ntuple(&mut s, &[(0, "tcp4", port, Action::Queue(1), Some(1))]);
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!(
        (a.by, a.context, a.entry, a.queue),
        (QueueDecision::Rule, Some(1), Some(HASH as usize & 3), Some(6 + 1))
    );
    // A context that does not exist: it may be any queue.
    ntuple(&mut s, &[(0, "tcp4", port, Action::Queue(0), Some(2))]);
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.may_be), (QueueDecision::NotDecidable, (0..8).collect::<Vec<u32>>()));
    assert_eq!(a.why_not, Some(Undecided::ContextMissing { context: 2 }));
    // The match depends on a property that a flow does not contain.
    ntuple(&mut s, &[(0, "tcp4", &[("vlan", "5")], Action::Queue(3), None)]);
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.by, a.may_be), (QueueDecision::NotDecidable, vec![0, 3]));
    let depends_on = MatchDependsOn::Packet(PacketProperty::VlanTag);
    assert_eq!(a.why_not, Some(Undecided::RuleMayMatch { rule: 0, depends_on }));
    // The device ignores its rules while ntuple is off.
    if let Fact::Known(f) = &mut s.nics[0].features {
        f.get_mut("rx-ntuple-filter").unwrap().on = false;
    }
    assert_eq!(steering(&s).answer(&flow(VECTOR)).by, QueueDecision::Table);
}

#[test]
fn a_known_tag_decides_rules_that_match_it() {
    let mut s = host("ice");
    ntuple(&mut s, &[(0, "tcp4", &[("vlan", "5 m 0xf000")], Action::Queue(3), None)]);
    let tagged = |v| steering(&s).answer(&Tuple { vlan: Some(v), ..flow(VECTOR) });
    assert_eq!((tagged(5).by, tagged(5).queue), (QueueDecision::Rule, Some(3)));
    assert_eq!((tagged(6).by, tagged(6).queue), (QueueDecision::Table, Some(0)));
}

#[test]
fn by_a_requested_queue() {
    let mut s = host("ixgbe");
    s.nics[0].rx_queues[6].rps_cpus = Fact::Known("1,3,5-6".parse().unwrap());
    let asked = steering(&s).by_queue(Some(6));
    let a = asked.answer(&flow(VECTOR));
    assert_eq!((a.by, a.queue, a.entry, a.rule), (QueueDecision::Asked, Some(6), None, None));
    assert_eq!((asked.queue(&flow(VECTOR)), a.why_not.clone()), (Some(6), None));
    assert!(a.may_be.is_empty() && a.notes.is_empty());
    // The hash is the packet's own, and RPS goes by it.
    assert_eq!(a.hash, Some(HASH));
    let landing = landing(&s, &s.nics[0], 6, &a);
    assert_eq!((landing.cpu.unwrap().cpu, landing.queue), (CpuId(6), 6));
    assert!(matches!(landing.rps, Rps::On { chosen: Some(CpuId(3)), .. }));
    assert_eq!(steering(&s).by_queue(None).answer(&flow(VECTOR)).by, QueueDecision::NotDecidable);
}

#[test]
fn rps_takes_the_cpu_that_the_kernel_takes() {
    let mut s = host("ice");
    s.nics[0].rx_queues[0].rps_cpus = Fact::Known("1,3,5-6".parse().unwrap());
    let nic = &s.nics[0];
    let a = steering(&s).answer(&flow(VECTOR));
    let Rps::On { chosen, .. } = landing(&s, nic, 0, &a).rps else { panic!("it is on") };
    // 0x51ccc178 * 4 >> 32 = 1: the second of the mask.
    assert_eq!(chosen, Some(CpuId(3)));
    // igb's hash counts as one over addresses: the kernel takes its own.
    let mut igb = s.clone();
    igb.nics[0].driver = Fact::Known("igb".into());
    let Rps::On { chosen, why_not, .. } = landing(&igb, &igb.nics[0], 0, &a).rps else { panic!("it is on") };
    assert_eq!(chosen, None);
    assert_eq!(why_not, Some(StackHashUnknown::NotPassed { driver: "igb".into() }));
    let one = "7".parse().unwrap();
    igb.nics[0].rx_queues[0].rps_cpus = Fact::Known(one);
    let Rps::On { chosen, .. } = landing(&igb, &igb.nics[0], 0, &a).rps else { panic!("it is on") };
    assert_eq!(chosen, Some(CpuId(7)));
}

#[test]
fn the_way_through_and_its_crossings() {
    let mut s = host("ice");
    let mut out = s.nics[0].clone();
    out.dev.name = "eth1".into();
    out.node = Fact::Known(NodeId(1));
    s.nics.push(out);
    s.nics[1].tx_queues[4].xps_cpus = Fact::Known(CpuSet::one(CpuId(0)));
    let t = flow(VECTOR);
    let st = steering(&s);
    let way = FlowRoute { route: Route::Dev("eth1".into()), local: false, out: Some(&s.nics[1]), socket: None };
    let d = chain::incoming(&s, &s.nics[0], &st, &t, way);
    let cpu = d.arrival.as_ref().unwrap().landing.as_ref().unwrap().cpu.clone().unwrap();
    assert_eq!((cpu.cpu, cpu.reach), (CpuId(0), NodeDistance::Near));
    let sending = &d.departure.as_ref().unwrap().sending;
    assert_eq!((sending.queue, sending.by.as_str()), (Some(4), "XPS of CPU 0"));
    assert_eq!(sending.cpu.as_ref().unwrap().cpu, CpuId(4));
    let c = chain::crossings(&s, &[d]);
    assert!(c.iter().any(|c| c.contains("node 0 to node 1")), "{c:?}");
    // Without XPS the kernel goes by the number of the receive queue.
    for q in &mut s.nics[1].tx_queues {
        q.xps_cpus = Fact::Known(CpuSet::new());
    }
    let way = FlowRoute { route: Route::default(), local: false, out: Some(&s.nics[1]), socket: None };
    let d = chain::incoming(&s, &s.nics[0], &st, &t, way);
    assert_eq!(d.departure.unwrap().sending.queue, Some(0));
}

#[test]
fn without_and_with_rfs() {
    let mut s = host("ice");
    s.host.rps_sock_flow_entries = Fact::Known(0);
    let t = flow(VECTOR);
    let paths = |s: &Snapshot, local: bool, last_cpu: Option<CpuId>| {
        let socket = Some(chain::Socket { kind: "connection", program: None, pid: None, last_cpu });
        let way = FlowRoute { route: Route::ToThisHost, local, out: None, socket };
        let d = chain::incoming(s, &s.nics[0], &steering(s), &t, way);
        let one = |p: RfsPath| (p.rfs, p.queue, p.stations.iter().map(|(c, _)| c.0).collect::<Vec<_>>(), p.present);
        rfs_paths(s, &d).into_iter().map(one).collect::<Vec<_>>()
    };
    // The flow arrives on queue 0, and its program runs on CPU 5: interrupt, stack, program.
    let want = |present: RfsUse| {
        let all = [
            (RfsUse::Without, 0, vec![0, 0, 5]),
            (RfsUse::With, 0, vec![0, 5, 5]),
            (RfsUse::Accelerated, 5, vec![5, 5, 5]),
        ];
        all.map(|(rfs, queue, cpus)| (rfs, queue, cpus, rfs == present)).to_vec()
    };
    assert_eq!(paths(&s, true, Some(CpuId(5))), want(RfsUse::Without));
    s.host.rps_sock_flow_entries = Fact::Known(32_768);
    s.nics[0].rx_queues.iter_mut().for_each(|q| q.rps_flow_cnt = Fact::Known(4096));
    assert_eq!(paths(&s, true, Some(CpuId(5))), want(RfsUse::With));
    // Without a queue on the program's CPU the device cannot deliver there.
    s.nics[0].vectors[5].effective = Fact::Known("4-5".parse().unwrap());
    assert_eq!(paths(&s, true, Some(CpuId(5))), want(RfsUse::With)[..2]);
    // Nor can a driver that does not support it.
    s.nics[0].vectors[5].effective = Fact::Known(CpuSet::one(CpuId(5)));
    s.nics[0].driver = Fact::Known("igb".into());
    assert_eq!(paths(&s, true, Some(CpuId(5))), want(RfsUse::With)[..2]);
    assert_eq!(paths(&s, true, None), []);
    assert_eq!(paths(&s, false, Some(CpuId(5))), [], "forwarded packets have no program");
}

#[test]
fn a_table_that_is_not_heeded_is_noticed() {
    let mut s = host("vmxnet3");
    assert_eq!(ignored_table_warning(&s.nics[0]), None, "no interrupts, no doubt");
    for (i, v) in s.nics[0].vectors.iter_mut().enumerate() {
        v.count = Fact::Known(if i == 0 { 5000 } else { 3 });
    }
    assert!(ignored_table_warning(&s.nics[0]).unwrap().contains("ignores its table"));
    // The doubt is also reported where the queue is unknown: vmxnet3 does not report its key.
    let asked = |s: &Snapshot| chain::arrival(s, &s.nics[0], &steering(s), &flow(VECTOR));
    assert!(asked(&s).doubt.is_some());
    rss(&mut s).key = Fact::Absent;
    let a = asked(&s);
    assert!(a.steering.queue.is_none() && a.doubt.is_some());
    // Few interrupts, and some of each queue from when it was opened.
    for (v, n) in s.nics[0].vectors.iter_mut().zip([319, 0, 1, 0, 2, 2, 2, 0]) {
        v.count = Fact::Known(n);
    }
    assert!(ignored_table_warning(&s.nics[0]).is_some());
    for (v, n) in s.nics[0].vectors.iter_mut().zip([250, 50, 0, 0, 0, 0, 0, 0]) {
        v.count = Fact::Known(n);
    }
    assert_eq!(ignored_table_warning(&s.nics[0]), None);
    for v in &mut s.nics[0].vectors {
        v.count = Fact::Known(700);
    }
    assert_eq!(ignored_table_warning(&s.nics[0]), None);
    // Two queues in the table, one of which has all interrupts.
    rss(&mut s).table = (0..128).map(|i| i % 2).collect();
    s.nics[0].vectors[1].count = Fact::Known(2);
    assert!(ignored_table_warning(&s.nics[0]).unwrap().contains("spreads over 2 queues"));
    // With one queue in the table there is nothing to heed.
    rss(&mut s).table = vec![0; 128];
    assert_eq!(ignored_table_warning(&s.nics[0]), None);
}

#[test]
fn many_flows_add_up() {
    let s = host("ice");
    let flows = Synthetic::parse("count=3000,zipf=0.8,proto=tcp").unwrap().flows();
    let sp = spread(&s, &s.nics[0], &steering(&s), &flows);
    let total: u64 = flows.iter().map(|f| f.packets).sum();
    assert_eq!(sp.queues.values().map(|l| l.packets).sum::<u64>(), total);
    assert_eq!(sp.cpus.values().map(|l| l.packets).sum::<u64>(), total);
    assert_eq!((sp.queues_used, sp.undecided.flows), (8, 0));
    // A queue without a flow is listed too, with nothing.
    let one = spread(&s, &s.nics[0], &steering(&s), &flows[..1]);
    assert_eq!((one.queues.len(), one.queues_used), (8, 1));
    assert_eq!(steering(&s).queues(), Some(8));
    let e = sp.evenness.unwrap();
    assert!(e.max_to_mean >= e.floor && e.floor >= 1.0 && e.variation > 0.0);
    // Flow by flow against the definition.
    let key: Vec<u8> = (0..40).map(|i| u8::from_str_radix(&KEY[2 * i..2 * i + 2], 16).unwrap()).collect();
    for f in flows.iter().take(500) {
        let (std::net::IpAddr::V4(a), std::net::IpAddr::V4(b)) = (f.tuple.src, f.tuple.dst) else { panic!() };
        let (p, q) = f.tuple.ports.unwrap();
        let input = [&a.octets()[..], &b.octets(), &p.to_be_bytes(), &q.to_be_bytes()].concat();
        assert_eq!(steering(&s).queue(&f.tuple), Some(bit_by_bit(&key, &input) % 128 % 8));
    }
}

#[test]
fn rps_deals_out_the_flows_of_a_queue() {
    let mut s = host("ice");
    for q in &mut s.nics[0].rx_queues {
        q.rps_cpus = Fact::Known("4-7".parse().unwrap());
    }
    let flows = Synthetic::parse("count=2000,proto=tcp").unwrap().flows();
    let sp = spread(&s, &s.nics[0], &steering(&s), &flows);
    assert_eq!(sp.cpus.keys().copied().collect::<Vec<_>>(), [4, 5, 6, 7]);
    assert_eq!(sp.cpus.values().map(|l| l.packets).sum::<u64>(), sp.total.packets);
    let mut counted = std::collections::BTreeMap::<u32, u64>::new();
    for f in &flows {
        let a = steering(&s).answer(&f.tuple);
        let cpu = landing(&s, &s.nics[0], a.queue.unwrap(), &a).works_on().unwrap();
        *counted.entry(cpu.0).or_default() += f.packets;
    }
    assert!(counted.iter().all(|(c, n)| sp.cpus[c].packets == *n), "{counted:?}");
}

#[test]
fn wrong_words_for_made_up_flows() {
    for bad in
        ["count=0", "zipf=-1", "zipf=nan", "src=10.0.0.0/33", "sport=9-1", "proto=x", "what=1", "count", "dst=::1"]
    {
        assert!(Synthetic::parse(bad).is_err(), "{bad}");
    }
    let six = Synthetic::parse("count=50,src=2001:db8::/32,dst=2001:db8::1").unwrap().flows();
    assert!(six.len() == 50 && six.iter().all(|f| f.tuple.is_v6()));
    assert_eq!(Synthetic::parse("count=5").unwrap().flows(), Synthetic::parse("count=5").unwrap().flows());
}

/// Whether a rule matches is unknown also where nothing else is known about the queue.
#[test]
fn unread_rules_are_unknown_without_a_hash_key() {
    let mut s = host("igb");
    s.nics[0].features = Fact::Known(BTreeMap::new());
    s.nics[0].rules = Fact::not_requested("ETHTOOL_GRXCLSRLCNT eth0");
    rss(&mut s).key = Fact::Absent;
    let a = steering(&s).answer(&flow(VECTOR));
    assert_eq!((a.queue, a.rules_unread), (None, true));
    assert!(a.notes.iter().any(|n| n.contains("one of them may match")), "{:?}", a.notes);
    s.nics[0].rules = Fact::Known(Rules::default());
    assert!(!steering(&s).answer(&flow(VECTOR)).rules_unread);
}
