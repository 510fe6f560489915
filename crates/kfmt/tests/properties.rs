//! Round trips over generated values, and the kernel's own rules for masks as an oracle.

use proptest::prelude::*;
use ringwise_kfmt::ethtool_ioctl::{RssOrder, TableOrder, fields, srssh, srssh_decode};
use ringwise_kfmt::nl::{self, Builder};
use ringwise_kfmt::{cpulist, cpumask, ethtool_nl, interrupts};
use ringwise_model::{Channels, Coalesce, Count, CpuId, CpuSet, RingValues, Rings};

/// CPU sets from one CPU to several thousand, dense and sparse.
fn sets() -> impl Strategy<Value = CpuSet> {
    (1u32..4096).prop_flat_map(|top| proptest::collection::vec(0..top, 0..64)).prop_flat_map(|cpus| {
        (Just(cpus), any::<bool>()).prop_map(|(cpus, widen)| {
            let mut set: CpuSet = cpus.iter().map(|&c| CpuId(c)).collect();
            if let (true, Some(&c)) = (widen, cpus.first()) {
                set = set.union(&CpuSet::range(c, c + 40));
            }
            set
        })
    })
}

/// What `bitmap_parse` (lib/bitmap-str.c) makes of a mask for `nr_cpus` bits: groups from the right,
/// at most 8 digits each, as many groups as the width has, no bit beyond the width.
fn kernel_parse(text: &str, nr_cpus: u32) -> Result<CpuSet, &'static str> {
    let mut set = CpuSet::new();
    for (chunk, group) in text.rsplit(',').enumerate() {
        if chunk as u32 >= nr_cpus.div_ceil(32) {
            return Err("EOVERFLOW: too many groups");
        }
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err("EINVAL");
        }
        if group.len() > 8 {
            return Err("EOVERFLOW: group too long");
        }
        let bits = u32::from_str_radix(group, 16).unwrap();
        set = set.union(&(0..32).filter(|b| bits & (1 << b) != 0).map(|b| CpuId(chunk as u32 * 32 + b)).collect());
    }
    match set.last() {
        Some(c) if c.0 >= nr_cpus => Err("EOVERFLOW: bit beyond the width"),
        _ => Ok(set),
    }
}

fn counts() -> impl Strategy<Value = Option<Count>> {
    proptest::option::of((any::<u32>(), any::<u32>()).prop_map(|(now, max)| Count { now, max }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lists_go_round(set in sets()) {
        prop_assert_eq!(cpulist::parse(&cpulist::format(&set)).unwrap(), set);
    }

    #[test]
    fn masks_go_round_and_the_kernel_takes_them(set in sets(), more in 0u32..200) {
        let nr = set.last().map_or(1, |c| c.0 + 1) + more;
        for text in [cpumask::format(&set, None), cpumask::format(&set, Some(nr))] {
            prop_assert_eq!(kernel_parse(&text, nr).unwrap(), set.clone());
            prop_assert_eq!(cpumask::parse(&text).unwrap(), set.clone());
            prop_assert_eq!(cpumask::parse(&format!("{text}\n")).unwrap(), set.clone());
        }
        prop_assert_eq!(cpumask::format(&set, Some(nr)).replace(',', "").len() as u32, nr.div_ceil(4));
    }

    #[test]
    fn attributes_go_round(list in proptest::collection::vec((1u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..50)), 0..20)) {
        let mut inner = Builder::new();
        for (kind, data) in &list {
            inner.binary(*kind, data).unwrap();
        }
        let mut outer = Builder::new();
        outer.nested(9, &inner).unwrap();
        let bytes = outer.finish();
        let nest = nl::attrs(&bytes).next().unwrap().unwrap();
        let got: Vec<_> = nest.nested().map(|a| a.map(|a| (a.kind, a.data.to_vec())).unwrap()).collect();
        prop_assert_eq!(got, list);
    }

    #[test]
    fn channels_and_rings_go_round(rx in counts(), tx in counts(), combined in counts(), other in counts()) {
        let c = Channels { rx, tx, combined, other };
        prop_assert_eq!(ethtool_nl::channels(&ethtool_nl::channels_reply(&c)).unwrap(), c);
        let r = Rings::sizes(rx, tx);
        prop_assert_eq!(ethtool_nl::rings(&ethtool_nl::rings_reply(&r)).unwrap(), r);
        let set = ethtool_nl::ChannelCounts {
            rx: rx.map(|c| c.now), tx: tx.map(|c| c.now), combined: combined.map(|c| c.now), other: other.map(|c| c.now),
        };
        prop_assert_eq!(ethtool_nl::channels_set_decode(&ethtool_nl::channels_set(&set)).unwrap(), set);
        let rings = RingValues::sizes(set.rx, set.tx);
        prop_assert_eq!(ethtool_nl::rings_set_decode(&ethtool_nl::rings_set(&rings)).unwrap(), rings);
    }

    #[test]
    fn coalescing_goes_round(values in proptest::collection::vec(any::<u32>(), 27)) {
        use ethtool_nl::coalesce::{PARAMETERS, Width};
        let all = PARAMETERS.iter().zip(values);
        let c = Coalesce(all.map(|(p, v)| (p.1.to_string(), if p.2 == Width::Flag { v & 1 } else { v })).collect());
        prop_assert_eq!(ethtool_nl::coalesce(&ethtool_nl::coalesce_reply(&c).unwrap()).unwrap(), c);
    }

    #[test]
    fn rss_orders_go_round(table in proptest::collection::vec(0u32..64, 1..512), key in proptest::collection::vec(any::<u8>(), 0..60), hfunc in 0u8..8) {
        let order = RssOrder { context: 0, table: TableOrder::Set(table), key, hfunc, input_xfrm: 1 };
        prop_assert_eq!(srssh_decode(&srssh(&order)).unwrap(), order);
    }

    #[test]
    fn hash_fields_go_round(mask in any::<u64>()) {
        prop_assert_eq!(fields::mask(&fields::letters(mask)).unwrap(), mask);
    }

    #[test]
    fn generated_tables_are_read(rows in proptest::collection::vec((any::<u32>(), any::<u32>(), "[a-z][a-z0-9-]{0,20}"), 1..50), chip in "[A-Za-z][A-Za-z0-9-]{0,8}( [A-Za-z][A-Za-z0-9-]{0,8}){0,3}") {
        let mut text = "        CPU0       CPU7\n".to_string();
        for (i, (a, b, name)) in rows.iter().enumerate() {
            text.push_str(&format!("{i:4}: {a:10} {b:10}  {chip} {:4}-edge      {name}\n", i * 3));
        }
        let t = interrupts::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(t.cpus, [CpuId(0), CpuId(7)]);
        for (i, ((a, b, name), got)) in rows.iter().zip(&t.rows).enumerate() {
            prop_assert_eq!(&got.counts, &[u64::from(*a), u64::from(*b)]);
            prop_assert_eq!(&got.head.names, std::slice::from_ref(name));
            prop_assert_eq!(&got.head.chip, &chip);
            prop_assert_eq!(&got.head.hwirq, &format!("{}-edge", i * 3));
        }
    }
}
