//! Compares the hash with published vectors, and the tables with the definition bit by bit.

use crate::common;
use proptest::prelude::*;
use ringwise_flow::hash::{Unpredictable, input};
use ringwise_flow::toeplitz::{LONGEST, bit_by_bit};
use ringwise_flow::undecided::PacketProperty;
use ringwise_flow::{Fields, FlowSpec, Toeplitz, Transform, Tuple};

/// The key of "Verifying the RSS Hash Calculation".
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b,
    0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
    0x01, 0xfa,
];

/// Flow, hash of the addresses, hash with the ports.
const VECTORS: [(&str, u32, u32); 8] = [
    ("66.9.149.187:2794-161.142.100.80:1766/tcp", 0x323e_8fc2, 0x51cc_c178),
    ("199.92.111.2:14230-65.69.140.83:4739/tcp", 0xd718_262a, 0xc626_b0ea),
    ("24.19.198.95:12898-12.22.207.184:38024/tcp", 0xd2d0_a5de, 0x5c2b_394a),
    ("38.27.205.30:48228-209.142.163.6:2217/tcp", 0x8298_9176, 0xafc7_327f),
    ("153.39.163.191:44251-202.188.127.2:1303/tcp", 0x5d18_09c5, 0x10e8_28a2),
    ("[3ffe:2501:200:1fff::7]:2794-[3ffe:2501:200:3::1]:1766/tcp", 0x2cc1_8cd5, 0x4020_7d3d),
    ("[3ffe:501:8::260:97ff:fe40:efab]:14230-[ff02::1]:4739/tcp", 0x0f0c_461c, 0xdde5_1bbf),
    ("[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251-[fe80::200:f8ff:fe21:67cf]:38024/tcp", 0x4b61_e985, 0x02d1_feef),
];

fn tuple(text: &str) -> Tuple {
    text.parse::<FlowSpec>().unwrap().exact().unwrap()
}

fn all() -> Fields {
    Fields::parse("sdfn").unwrap()
}

#[test]
fn published_vectors() {
    let tables = Toeplitz::new(&KEY);
    for (text, addresses, ports) in VECTORS {
        let t = tuple(text);
        for (fields, want) in [(Fields::ADDRESSES, addresses), (all(), ports)] {
            let i = input(&t, fields, Transform::None);
            assert_eq!(tables.hash(i.bytes()), want, "{text} {fields:?}");
            assert_eq!(bit_by_bit(&KEY, i.bytes()), want, "{text} {fields:?}");
        }
    }
}

#[test]
fn fragments_are_hashed_by_their_addresses() {
    let t = Tuple { fragment: true, ..tuple(VECTORS[0].0) };
    assert_eq!(Toeplitz::new(&KEY).hash(input(&t, all(), Transform::None).bytes()), VECTORS[0].1);
    assert_eq!(t.flow_type(), "ip4");
}

#[test]
fn fields_are_parsed_or_named() {
    assert_eq!(Fields::parse("sd").unwrap(), Fields::ADDRESSES);
    assert_eq!(Fields::parse("").unwrap().words(), "nothing");
    assert_eq!(Fields::parse("sdf").unwrap().words(), "addresses + source port");
    assert_eq!(Fields::parse("sdv"), Err(Unpredictable::Includes(PacketProperty::VlanTag)));
    assert!(Fields::parse("r").is_err());
}

fn any_tuple() -> impl Strategy<Value = Tuple> {
    let four = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (a.into(), b.into()));
    let six = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (a.into(), b.into()));
    let ends = prop_oneof![four, six];
    (ends, any::<(u16, u16)>()).prop_map(|((src, dst), ports)| Tuple {
        src,
        dst,
        protocol: 6,
        ports: Some(ports),
        fragment: false,
        vlan: None,
    })
}

#[test]
fn seeds_of_the_fuzzer() {
    let files: Vec<_> = std::fs::read_dir("tests/regressions").unwrap().map(|e| e.unwrap().path()).collect();
    assert!(files.len() >= 5);
    files.iter().for_each(|f| common::flows(&std::fs::read(f).unwrap()));
}

/// Text that is nearly a flow, a line of `ss` or of connection tracking.
fn nearly() -> impl Strategy<Value = String> {
    "(tcp|udp|10\\.0\\.0\\.[0-9]{1,3}|src=|dst=|sport=|dport=|::ffff:|\\[2001:db8::1\\]|:|-|/|frag|%|\\*|ESTAB| 0 0 |[0-9]{1,6}|[ =,]){0,12}"
}

proptest! {
    #[test]
    fn nearly_flows(text in nearly()) {
        common::flows(text.as_bytes());
    }

    #[test]
    fn tables_are_the_definition(key in prop::collection::vec(any::<u8>(), 0..60), data in prop::collection::vec(any::<u8>(), 0..=LONGEST)) {
        prop_assert_eq!(Toeplitz::new(&key).hash(&data), bit_by_bit(&key, &data));
    }

    #[test]
    fn transforms_make_directions_alike(t in any_tuple(), key in any::<[u8; 32]>()) {
        let tables = Toeplitz::new(&key);
        for x in [Transform::SymmetricXor, Transform::SymmetricOrXor] {
            let (a, b) = (input(&t, all(), x), input(&t.reversed(), all(), x));
            prop_assert_eq!(tables.hash(a.bytes()), tables.hash(b.bytes()));
        }
    }

    #[test]
    fn a_key_that_repeats_makes_directions_alike(t in any_tuple(), two in any::<[u8; 2]>()) {
        let key: Vec<u8> = two.iter().copied().cycle().take(40).collect();
        prop_assert!(ringwise_flow::toeplitz::is_symmetric(&key));
        let tables = Toeplitz::new(&key);
        let (a, b) = (input(&t, all(), Transform::None), input(&t.reversed(), all(), Transform::None));
        prop_assert_eq!(tables.hash(a.bytes()), tables.hash(b.bytes()));
    }

    /// The definition of the two transforms in the kernel's documentation, in its order.
    #[test]
    fn transforms_as_documented(a in any::<[u8; 4]>(), b in any::<[u8; 4]>(), s in any::<u16>(), d in any::<u16>()) {
        let t = Tuple { src: a.into(), dst: b.into(), protocol: 17, ports: Some((s, d)), fragment: false, vlan: None };
        let (x, y) = (u32::from_be_bytes(a), u32::from_be_bytes(b));
        let bytes = |p: [u32; 2], q: [u16; 2]| -> Vec<u8> {
            p.iter().flat_map(|v| v.to_be_bytes()).chain(q.iter().flat_map(|v| v.to_be_bytes())).collect()
        };
        let xor = bytes([x ^ y, x ^ y], [s ^ d, s ^ d]);
        let or_xor = bytes([x | y, x ^ y], [s | d, s ^ d]);
        prop_assert_eq!(input(&t, all(), Transform::SymmetricXor).bytes().to_vec(), xor);
        prop_assert_eq!(input(&t, all(), Transform::SymmetricOrXor).bytes().to_vec(), or_xor);
    }

    #[test]
    fn any_text_is_a_flow_or_a_message(text in ".{0,80}") {
        common::flows(text.as_bytes());
        if let Ok(s) = text.parse::<FlowSpec>() {
            prop_assert!(!s.all().is_empty());
        }
    }
}
