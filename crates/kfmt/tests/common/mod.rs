//! Every public parser by family, fed with arbitrary bytes. Shared by the mutation test, the
//! regression cases and (by path) the fuzz targets, so that no parser is in one and not in the others.
//!
//! Besides "no panic" each family checks what must hold for anything that was accepted.

use ringwise_kfmt::irq_names::{NameContext, NameMatch, RankedNumbers, classify, count_ntfy_blocks};
use ringwise_kfmt::{
    cmdline, cpulist, cpumask, ethtool_ioctl, ethtool_nl, ethtool_text, ini, interrupts, ip_text, irqbalance,
    link_stats, lscpu_text, net_shaper_nl, netdev_nl, nl, notification, packet as frames, procstat, qdisc, route, rtnl,
    rule, snmp, sockets, softnet, stat_names, sysfs, task, uevent,
};
use ringwise_model::{CpuId, IfIndex};

/// A family of parsers: its name and a function that runs all of them.
pub(crate) type Family = (&'static str, fn(&[u8]));

pub(crate) const FAMILIES: &[Family] = &[
    ("cpus", cpus),
    ("interrupts", interrupts),
    ("text", text),
    ("irq_names", irq_names),
    ("netlink", netlink),
    ("ioctl", ioctl),
    ("packet", packet),
    ("pcap", pcap),
];

/// A capture is walked to its end, whatever is in it: no step stands still, and packets lie within the bytes.
pub(crate) fn pcap(data: &[u8]) {
    use ringwise_kfmt::pcap::{PcapStep, Reader};
    for link in [0, 1, 101, 113, 276, 999] {
        let _ = ringwise_kfmt::packet::parse_frame(link, data);
    }
    let (mut reader, mut at) = (Reader::new(), 0usize);
    while let Ok(step) = reader.step(&data[at..]) {
        at = match step {
            PcapStep::Need(n) => {
                assert!(n > data.len() - at, "{n} bytes are there");
                return;
            }
            PcapStep::Skip(n) if n <= (data.len() - at) as u64 => {
                assert!(n > 0);
                at + n as usize
            }
            PcapStep::Skip(_) => return,
            PcapStep::Packet { used, link, data: packet, .. } => {
                assert!(used > 0 && packet.len() <= used);
                let _ = ringwise_kfmt::packet::parse_frame(link, packet);
                at + used
            }
        };
    }
}

/// Accepted lists and masks survive being printed and read again.
pub(crate) fn cpus(data: &[u8]) {
    let s = String::from_utf8_lossy(data);
    if let Ok(set) = cpulist::parse(&s) {
        assert_eq!(cpulist::parse(&cpulist::format(&set)).as_ref(), Ok(&set));
        assert_eq!(cpumask::parse(&cpumask::format(&set, None)).as_ref(), Ok(&set));
    }
    if let Ok(set) = cpumask::parse(&s) {
        assert_eq!(cpumask::parse(&cpumask::format(&set, Some(8192))).as_ref(), Ok(&set));
        assert_eq!(cpulist::parse(&cpulist::format(&set)).as_ref(), Ok(&set));
    }
}

/// Both ways of reading the table agree, and memory is bounded by the input.
pub(crate) fn interrupts(data: &[u8]) {
    let sums = interrupts::parse_totals(data);
    if let Ok(full) = interrupts::parse(data) {
        let held: usize = full.rows.iter().map(|r| r.counts.capacity()).sum();
        assert!(held <= 2 * data.len() + 8 * full.rows.len(), "{held} counts from {} bytes", data.len());
        if let Ok(sums) = sums {
            assert_eq!(full.rows.len(), sums.rows.len());
        }
    } else {
        assert!(sums.is_err());
    }
}

pub(crate) fn text(data: &[u8]) {
    let s = String::from_utf8_lossy(data);
    if let Ok(rows) = softnet::parse(&s) {
        assert!(!rows.is_empty());
    }
    let _ =
        (task::stat(&s), task::cpus_allowed(&s), task::is_napi_thread(&s), procstat::cpus(&s), procstat::run_ns(&s));
    assert!(procstat::interrupts(&s).len() <= s.len());
    let _ = (snmp::pairs(&s), snmp::six(&s), procstat::ksoftirqd(&s));
    for driver in ["igb", "vmxnet3", "bnxt_en", "ena"] {
        let layout = stat_names::StatLayout::learn(driver, data);
        assert_eq!(layout.queues(data).count() > 0, layout.counts_queues());
        assert!(layout.queues(&vec![0xff; data.len() / 4]).all(|q| !q.2.is_empty()));
        assert!(layout.allowances(data).count() <= data.len() / 8);
    }
    let last = Some(CpuId(63));
    let _ = (cmdline::isolcpus(&s, last), cmdline::isolcpus(&s, None), cmdline::nohz_full(&s, last));
    let held: usize = cmdline::words(&s).iter().map(String::len).sum();
    assert!(held <= s.len());
    let _ = (route::defaults_v4(&s), route::defaults_v6(&s), route::session(data));
    let _ = (
        sockets::tcp(&s),
        sockets::udp(&s),
        sockets::connected(&s),
        sockets::in_unit(&s, "x.service"),
        sockets::inode(&s),
    );
    assert!(lscpu_text::nodes(&s).len() <= s.lines().count());
    let _ = rule::parse_match(&s);
    match rule::parse_rule(&s) {
        Ok((rule, _)) => assert_eq!(rule::normalise(&rule), Ok(rule)),
        Err(e) => assert!(e.at.is_none_or(|(a, b)| s.get(a..b).is_some()), "{e}"),
    }
    let _ = (uevent::parse(&s), sysfs::parse_bool(&s), sysfs::parse_distances(&s), nl::unhex(&s));
    let _ = (sysfs::parse_pcie_speed(&s), sysfs::parse_choice(&s), sysfs::parse_node_memory(&s));
    let _ = (sysfs::parse_speed(&s), sysfs::parse_i32(&s), sysfs::parse_u32(&s));
    if let Ok(n) = sysfs::parse_u64(&s) {
        assert_eq!(sysfs::parse_u64(&n.to_string()), Ok(n));
    }
    if let Ok(Some(node)) = sysfs::parse_numa_node(&s) {
        assert!(node.0 <= i32::MAX as u32);
    }
    for set in ini::parse(&s) {
        assert!(set.line >= 1 && set.line <= s.lines().count());
    }
    if let Ok(setup) = irqbalance::parse_setup(&s) {
        assert!(setup.banned.len() <= s.len() / 4);
    }
    if let Some(order) = irqbalance::parse_ban_order(&s).and_then(|l| irqbalance::ban_order(&l)) {
        assert_eq!(irqbalance::parse_ban_order(&order), irqbalance::parse_ban_order(&s));
    }
    if let Ok(mask) = ethtool_ioctl::fields::mask(&s) {
        assert_eq!(ethtool_ioctl::fields::mask(&ethtool_ioctl::fields::letters(mask)), Ok(mask));
    }
    // Output of commands: whatever is accepted can be encoded as a reply of the kernel.
    for l in ip_text::links(&s).unwrap_or_default() {
        let again = rtnl::link_reply(&l.info).ok().map(|m| rtnl::link(&m));
        assert!(again.is_none_or(|a| a.is_ok_and(|a| a.ifindex == l.info.ifindex)));
    }
    for (index, a) in ip_text::addresses(&s) {
        let _ = rtnl::addr_reply(index, &a);
    }
    if let Ok(c) = ethtool_text::coalesce(&s) {
        assert_eq!(ethtool_nl::coalesce(&ethtool_nl::coalesce_reply(&c).unwrap()), Ok(c));
    }
    if let Ok(c) = ethtool_text::channels(&s) {
        assert_eq!(ethtool_nl::channels(&ethtool_nl::channels_reply(&c)), Ok(c));
    }
    let _ = (ethtool_text::rings(&s), ethtool_text::pause(&s), ethtool_text::features(&s), ethtool_text::eee(&s));
    let _ = (ethtool_text::drvinfo(&s), ethtool_text::private_flags(&s), ethtool_text::permanent_mac(&s));
    let _ = (ethtool_text::link(&s), ethtool_text::refused(&s), ip_text::qdiscs(&s));
}

/// The first byte chooses the driver, the rest is the name.
pub(crate) fn irq_names(data: &[u8]) {
    const DRIVERS: [&str; 14] = [
        "igb",
        "ice",
        "i40e",
        "mlx5_core",
        "virtio_net",
        "gve",
        "e1000e",
        "hns3",
        "stmmac",
        "am65-cpsw-nuss",
        "bna",
        "new",
        "idpf",
        "vmxnet3",
    ];
    let Some((first, name)) = data.split_first() else { return };
    let name = String::from_utf8_lossy(name);
    let ctx = NameContext {
        ifname: "eth1",
        other_names: &["enp3s0"],
        driver: DRIVERS.get(usize::from(first & 0x0f)).copied(),
        bus_address: (first & 0x40 == 0).then_some("0000:81:00.0"),
        virtio_name: Some("virtio1"),
        rx_queues: Some(4),
        tx_queues: Some(4),
        vectors: Some(if first & 0x80 == 0 { 9 } else { 1 }),
        ntfy_blocks: Some(8),
        ranked: None,
    };
    // The first line is the name; all lines are the names of the device.
    let ranked = RankedNumbers::of(name.lines(), &ctx);
    let ctx = NameContext { ranked: Some(&ranked), ..ctx };
    let name = name.lines().next().unwrap_or_default();
    if let NameMatch::Queues { rx, tx, .. } = classify(name, &ctx) {
        assert!(!(rx.is_empty() && tx.is_empty()));
        assert!(rx.iter().chain(&tx).all(|q| *q <= 65_535));
    }
    assert!(count_ntfy_blocks([name], &ctx) <= 1);
}

/// What was decoded and encoded again decodes to the same.
pub(crate) fn netlink(data: &[u8]) {
    let seen: usize = nl::attrs(data).map_while(Result::ok).map(|a| a.data.len() + 4).sum();
    assert!(seen <= data.len());
    if let Ok(r) = route::route(data) {
        assert_eq!(route::route(&route::route_reply(&r).expect("addresses fit")), Ok(r));
    }
    if let Ok(c) = ethtool_nl::channels(data) {
        assert_eq!(ethtool_nl::channels(&ethtool_nl::channels_reply(&c)), Ok(c));
    }
    if let Ok(r) = ethtool_nl::rings(data) {
        assert_eq!(ethtool_nl::rings(&ethtool_nl::rings_reply(&r)), Ok(r));
    }
    if let Ok(p) = ethtool_nl::pause(data) {
        assert_eq!(ethtool_nl::pause(&ethtool_nl::pause_reply(&p)), Ok(p));
    }
    if let Ok(l) = ethtool_nl::linkmodes(data) {
        assert_eq!(ethtool_nl::linkmodes(&ethtool_nl::linkmodes_reply(&l)), Ok(l));
    }
    // Encoded with marks that the data need not have: near the limit they may not fit.
    if let Ok(f) = ethtool_nl::features(data, &[])
        && let Ok(again) = ethtool_nl::features_reply(&f)
    {
        assert_eq!(ethtool_nl::features(&again, &[]), Ok(f));
    }
    if let Ok(f) = ethtool_nl::private_flags(data, &[])
        && let Ok(again) = ethtool_nl::private_flags_reply(&f)
    {
        assert_eq!(ethtool_nl::private_flags(&again, &[]), Ok(f));
    }
    let _ = ethtool_nl::features_set_decode(data);
    if let Ok(c) = ethtool_nl::coalesce(data) {
        let again = ethtool_nl::coalesce_reply(&c).expect("names come from the table");
        assert_eq!(ethtool_nl::coalesce(&again), Ok(c));
    }
    if let Ok(r) = ethtool_nl::rss(data) {
        let again = ethtool_nl::rss_reply(&r).expect("what came in one attribute fits in one");
        assert_eq!(ethtool_nl::rss(&again), Ok(r));
    }
    let _ = (ethtool_nl::channels_set_decode(data), ethtool_nl::rings_set_decode(data));
    if let Ok(q) = netdev_nl::queue(data) {
        assert_eq!(netdev_nl::queue(&netdev_nl::queue_reply(&q).unwrap()), Ok(q));
    }
    if let Ok(n) = netdev_nl::napi(data) {
        assert_eq!(netdev_nl::napi(&netdev_nl::napi_reply(&n)), Ok(n));
    }
    if let Ok(m) = netdev_nl::xdp_metadata(data) {
        assert_eq!(netdev_nl::xdp_metadata(&netdev_nl::xdp_metadata_reply(m.as_ref())), Ok(m));
    }
    if let Ok(Some(q)) = netdev_nl::qstats(data) {
        assert!(netdev_nl::qstats(&netdev_nl::qstats_reply(&q)).is_ok());
    }
    let _ = (notification::links(data), notification::ethtool(data), notification::netdev(data));
    let _ = notification::uevent(data);
    let _ = (netdev_nl::page_pool(data), netdev_nl::page_pool_stats(data));
    let _ = (link_stats::link_stats(data), qdisc::qdisc(data), ethtool_nl::pause_frames(data));
    if let Ok(s) = net_shaper_nl::shaper(data) {
        assert_eq!(net_shaper_nl::shaper(&net_shaper_nl::shaper_reply(IfIndex(2), &s).unwrap()), Ok(s));
    }
    if let Ok((id, v)) = netdev_nl::napi_set_decode(data) {
        assert_eq!(netdev_nl::napi_set_decode(&netdev_nl::napi_set(id, &v)), Ok((id, v)));
    }
    if let Ok(l) = rtnl::link(data)
        && let Ok(bytes) = rtnl::link_reply(&l)
    {
        assert_eq!(rtnl::link(&bytes).map(|again| (again.ifindex, again.mac)), Ok((l.ifindex, l.mac)));
    }
    if let Ok(Some(a)) = rtnl::addr(data) {
        let again = rtnl::addr_reply(a.ifindex, &a.address).expect("printed by the decoder");
        assert_eq!(rtnl::addr(&again), Ok(Some(a)));
    }
}

pub(crate) fn ioctl(data: &[u8]) {
    use ethtool_ioctl::*;
    let _ = (drvinfo(data), grxfh_flow(data), grxfh_reply(data, "sdfn"));
    if let Ok(letters) = grxfh(data) {
        assert!(fields::mask(&letters).is_ok());
    }
    let _ = (rxnfc::count(data), rxnfc::all_room(data), rxnfc::location(data));
    if let Ok(places) = rxnfc::all(data) {
        assert!(places.len() * 4 <= data.len());
    }
    if let Ok(spec) = rxnfc::rule(data) {
        let rule = spec.rule();
        let again = rule::FlowSpec::of(&rule, spec.location()).expect("its own words");
        assert_eq!(again.rule(), rule);
    }
    if let Ok(sizes) = grssh_sizes(data) {
        assert!(grssh_request(0, sizes).len() < 300_000);
    }
    if let Ok(state) = grssh(data) {
        assert!(state.indir.len() * 4 + state.key.len() <= data.len());
        let ask = grssh_request(state.context, RxfhSizes { indir: 1, key: 0 });
        assert_eq!(grssh(&grssh_reply(&ask, &state).expect("a good request")), Ok(state));
    }
    if let Ok(all) = perqueue::get(data) {
        assert!(all.len() * perqueue::COALESCE_SIZE <= data.len());
        for (queue, values) in all {
            let again = perqueue::set_request(&[queue], &values).expect("names come from the table");
            assert_eq!(perqueue::get(&again).expect("a whole struct")[&queue], values);
        }
    }
    if let Ok(order) = srssh_decode(data) {
        assert_eq!(srssh_decode(&srssh(&order)), Ok(order));
    }
}

/// A frame made of what was found belongs to the same flow.
pub(crate) fn packet(data: &[u8]) {
    use ringwise_kfmt::traffic_class::{Tags, TrafficClass, class};
    class(data, Tags::OutermostMoved);
    // A frame with a class of IP has a flow of IP.
    if matches!(class(data, Tags::AsOnWire), TrafficClass::Ports | TrafficClass::Fragment | TrafficClass::Gre) {
        assert!(matches!(frames::flow(data), Some(frames::Flow::Ip { .. })));
    }
    let Some(found) = frames::flow(data) else { return };
    assert_eq!(frames::flow(&frames::frame_of(&found)), Some(found));
}
