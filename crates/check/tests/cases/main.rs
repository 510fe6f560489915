//! A positive and a negative case for every rule, and properties of all rules.

mod alarms;
mod edits;
mod programs;
mod recorded;
mod remedies;
mod texts;
mod world;

use std::time::Duration;

use CpuCounter::{SoftnetDropped, SoftnetFlowLimit, SoftnetProcessed, SoftnetRps, SoftnetSqueezed};
use edits::*;
use ringwise_check::{Report, Severity, UNJUDGED_RULES, rules};
use ringwise_model::*;
use world::{World, set};

/// Origin of a case.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Tag {
    /// A lab host as it was captured.
    Recorded,
    /// A recorded or a tuned host with one change.
    Edited,
    /// A host made for the case.
    HandWritten,
}
use Tag::*;

struct Case {
    rule: &'static str,
    tag: Tag,
    positive: fn(&mut World),
    negative: fn(&mut World),
}

macro_rules! cases {
    ($($rule:literal $tag:ident $positive:expr, $negative:expr;)*) => {
        const CASES: &[Case] = &[$(Case { rule: $rule, tag: $tag, positive: $positive, negative: $negative }),*];
    };
}

cases! {
    "D01" Edited |w| softnet(w, SoftnetDropped, 5), |w| softnet(w, SoftnetDropped, 0);
    "D02" Edited |w| { softnet(w, SoftnetSqueezed, 50); w.cpu(3).softirq = Some(70.0) }, |w| softnet(w, SoftnetSqueezed, 50);
    "D03" Edited |w| softnet(w, SoftnetFlowLimit, 9), |w| softnet(w, SoftnetFlowLimit, 0);
    "D04" Edited |w| w.count("rx_missed_errors", 41_180), |w| w.count("rx_missed_errors", 0);
    "D05" Edited |w| w.link().alloc_fail = Some(3), |w| w.link().alloc_fail = None;
    "D06" Edited |w| w.count("rx_crc_errors", 2), |w| w.count("rx_bytes", 2);
    "D07" Edited |w| w.count("rx_dropped", 20), |w| { w.count("rx_dropped", 20); w.count("rx_missed_errors", 20) };
    "D09" Edited |w| w.link().queues[9].timeouts = Some(1), |w| w.link().queues[9].timeouts = None;
    "D10" Edited |w| w.protocol("Udp:RcvbufErrors", 7), |w| w.protocol("Udp:SndbufErrors", 7);
    "D11" Edited |w| w.protocol("TcpExt:ListenOverflows", 7), |w| w.protocol("TcpExt:TCPBacklogDrop", 7);
    "D12" HandWritten |w| { w.nic().driver = Fact::Known("ena".into()); w.count("pps_allowance_exceeded", 3) },
        |w| { w.nic().driver = Fact::Known("ena".into()); w.count("pps_allowance_exceeded", 0) };
    "D13" Edited |w| w.count("qdisc_drops", 3), |w| w.count("tx_dropped", 3);
    "D14" Edited |w| w.cpu(2).ksoftirqd = Some(80.0), |w| w.cpu(2).ksoftirqd = Some(30.0);
    "D15" Edited |w| w.cpu(0).softirq = Some(98.0), |w| w.t.as_mut().unwrap().cpus.values_mut().for_each(|c| c.softirq = Some(98.0));
    "D17" Edited |w| { w.link().pools.insert(3, PoolUse { fast: 10_000, slow: 90, ring_full: 4_000, in_use: 2 }); },
        |w| { w.link().pools.insert(3, PoolUse { fast: 10_000, slow: 90, ring_full: 40, in_use: 2 }); };
    "D16" Edited |w| w.count("rx_pause", 100), |w| w.count("rx_pause", 1);

    "A01" Recorded |w| recorded(w, "lab-router16-newest"), |_| {};
    "A02" Recorded |w| recorded(w, "lab-router16-6.12"), |w| w.nic().vectors[2].count = Fact::Known(7);
    "A03" Recorded |w| recorded(w, "lab-isolated-6.12"), |w| w.nic().vectors[2].node = Fact::Absent;
    "A04" Edited |w| { goal(w, Goal::Balanced); w.nic().rx_queues.truncate(2); w.nic().tx_queues.truncate(2); w.nic().vectors.retain(|v| v.rx().iter().all(|q| *q < 2));
            let Fact::Known(c) = &mut w.nic().channels else { panic!() }; c.combined = Some(Count { now: 2, max: 8 }); w.irq(0, 0); w.irq(1, 1) },
        |w| w.s.topology.smt_active = Fact::Known(true);
    "A05" Edited |w| w.program(3, false), |w| w.program(4, false);
    "H14" Edited |w| w.talks(4, &["eth2"]), |w| w.talks(4, &["eth1", "eth2"]);
    "H21" Edited |w| w.program(2, true), |w| w.program(2, false);
    "H27" Edited |w| w.memory(4, "eth1", "4", &[1]), |w| w.memory(4, "eth1", "4", &[0]);
    "A06" Edited |w| w.s.host.irqbalance = Fact::Known(irqbalance(&[])),
        |w| { let all: Vec<u32> = w.s.nics.iter().flat_map(|n| n.vectors.iter().map(|v| v.irq.0)).collect(); let mut b = irqbalance(&all); b.unit = Fact::Absent; w.s.host.irqbalance = Fact::Known(b) };
    "A07" HandWritten |w| { *w = World::untuned() }, |w| { *w = World::untuned(); w.s.host.rivals = Fact::Known(vec!["irqbalance".into()]) };
    "A08" Edited |w| { w.s.topology.isolated = Fact::Known(set("2-3")) }, |w| { w.s.topology.isolated = Fact::Known(set("2-3")); w.intent.cpus = Some(set("0-15")) };
    "A09" Edited |w| w.nic().tx_queues[2].xps_cpus = Fact::Known(set("2,10,77")), |w| w.nic().vectors[2].hint = Fact::Known(set("77"));
    "A10" Edited |w| w.nic().vectors[2].effective = Fact::Known(set("5")), |w| w.nic().vectors[2].effective = Fact::Known(CpuSet::new());
    "A11" HandWritten |w| { *w = World::untuned(); w.nic().vectors.iter_mut().for_each(|v| v.hint = Fact::Known(set("3"))) },
        |w| w.nic().vectors.iter_mut().for_each(|v| v.hint = Fact::Known(set("3")));
    "A12" Edited |w| w.link().queues.iter_mut().filter(|q| q.queue == 0).for_each(|q| q.interrupts = Some(200_000)),
        |w| w.link().queues.iter_mut().for_each(|q| q.interrupts = Some(20_000));
    "A13" Edited |w| w.cpu(0).interrupts = 200_000, |w| w.cpu(0).interrupts = 90_000;
    "A14" Edited |w| w.link().queues[0].packets_per_interrupt = Some(200.0), |w| w.link().queues[0].packets_per_interrupt = Some(100.0);
    "A15" HandWritten |w| { *w = one_node() ; w.s.nics[1].vectors.iter_mut().enumerate().for_each(|(i, v)| { let c = set(&(2 * (i as u32 % 4)).to_string()); v.asked = Fact::Known(c.clone()); v.effective = Fact::Known(c) }) },
        |w| { *w = one_node(); };
    "A16" Edited |w| w.drift = Some(vec![(Some("eth1".into()), "eth1 rx-2 interrupt CPU: applied 4, now 5".into())]), |w| w.drift = None;
    "A17" HandWritten |w| w.nic().vectors[0].movable = Movable::No(Immovable::Managed), |w| w.nic().vectors[0].movable = Movable::UnknownUntilTried;
    "A18" Edited |w| { w.nic().vectors.remove(5); }, |w| w.nic().vectors[8].role = Role::Idle;
    "A19" HandWritten |w| thread(w, "0-15"), |w| thread(w, "0");
    "A20" HandWritten |w| { split(w, true); w.router() }, |w| split(w, true);
    "R0.09" Edited |w| { goal(w, Goal::Rpc); w.irq(0, 1) }, |w| { w.irq(0, 2); w.irq(1, 0) };
    "R0.12" HandWritten |w| more(w, true), |w| more(w, false);
    "R0.11" HandWritten |w| more(w, true), |w| more(w, false);
    "R3.16" HandWritten |w| { w.intent.allow_disruption = true; w.intent.goal = Goal::Latency; }, |w| w.intent.goal = Goal::Latency;
    "R0.13" HandWritten |w| thread(w, "5"), |w| thread(w, "0");

    "Q01" Edited |w| { fewer(w, 2); w.cpu(0).softirq = Some(95.0) }, |w| { fewer(w, 2); };
    "Q02" Edited |w| goal(w, Goal::Rpc), |w| goal(w, Goal::Forward);
    "Q03" HandWritten |w| { w.s.topology.online = set("0-5") }, |w| { w.s.topology.online = set("0-7") };
    "Q18" Edited |w| { w.rss().fields.insert("udp4".into(), "sd".into()); w.protocol("Udp:InDatagrams", 31_000) },
        |w| { w.rss().fields.insert("udp4".into(), "sd".into()); w.protocol("Udp:InDatagrams", 31_000); w.protocol("Ip:ReasmReqds", 5) };
    "Q19" Edited |w| w.rss().table = (0..128).map(|i| if i < 96 { 0 } else { i % 8 }).collect(), |w| w.rss().table = (0..128).map(|i| i * 7 / 128).collect();
    "Q20" Edited |w| w.rss().table = (0..128).map(|i| [0, 1, 2, 4, 5, 6, 7][i % 7]).collect(), |w| { w.rss().table = (0..128).map(|i| [0, 1, 2, 4, 5, 6, 7][i % 7]).collect(); w.rule(queue(Action::Queue(3))) };
    "Q21" HandWritten |w| w.rss().table = (0..16).map(|i| i % 8).collect(), |w| w.rss().table = (0..32).map(|i| i % 8).collect();
    "Q22" Edited |w| { goal(w, Goal::Stream); w.rule(queue(Action::Queue(7))) }, |w| { goal(w, Goal::Stream); w.rule(queue(Action::Queue(1))) };
    "Q23" Edited |w| w.link().rx_max_over_mean = Some(2.5), |w| { w.link().rx_max_over_mean = Some(2.5); w.link().rx_packets = Some(500) };
    "Q25" Edited |w| w.rss().key = Fact::Known("6d5a".repeat(20)), |w| w.rss().key = Fact::Known("6d5b00".repeat(10));
    "Q26" HandWritten |w| { w.router(); w.tracks(5000, 65_536); w.nic().driver = Fact::Known("ice".into()); w.rss().symmetric = Fact::Known("none".into()) }, |w| { w.router(); w.tracks(5000, 65_536); w.rss().symmetric = Fact::Known("none".into()) };
    "Q27" Edited |w| { w.rule(queue(Action::Queue(1))); w.feature("rx-ntuple-filter", false) }, |w| w.feature("rx-ntuple-filter", false);
    "Q28" Edited |w| w.rule(queue(Action::Queue(8))), |w| w.rule(queue(Action::Queue(7)));
    "Q30" HandWritten |w| { w.nic().driver = Fact::Known("ixgbe".into()); w.feature("rx-ntuple-filter", false); w.protocol("TcpExt:TCPOFOQueue", 5000) },
        |w| { w.feature("rx-ntuple-filter", false); w.protocol("TcpExt:TCPOFOQueue", 5000) };
    "Q34" Edited |w| w.nic().users = Fact::Known(vec![User::IoUring { queue: 3 }]),
        |w| { w.nic().users = Fact::Known(vec![User::Dmabuf { queue: 3, id: 1 }]); w.rss().table = (0..128).map(|i| [0, 1, 2, 4, 5, 6, 7][i % 7]).collect() };
    "Q33" Edited |w| { fewer(w, 6); goal(w, Goal::Forward); w.rss().table = (0..128).map(|i| i % 6).collect() },
        |w| { fewer(w, 6); goal(w, Goal::Forward) };
    "F13" HandWritten |w| { w.nic().kind = NicKind::Vf; fewer(w, 4); let Fact::Known(c) = &mut w.nic().channels else { panic!() }; c.combined = Some(Count { now: 4, max: 4 }) },
        |w| w.nic().kind = NicKind::Vf;
    "F21" HandWritten |w| functions(w, 2), |w| functions(w, 0);
    "R1.10" HandWritten |w| { w.nic().driver = Fact::Known("ice".into()); grouped(w); w.intent.groups = vec![group()]; w.feature("rx-ntuple-filter", false) },
        |w| w.wish(Knob::Feature { name: "ntuple".into(), on: true });

    "Q04" Recorded |w| recorded(w, "lab-router16-6.12"), |w| fewer(w, 2);
    "Q05" Edited |w| w.rps("0-7"), |w| w.rps("");
    "Q06" Edited |w| { w.rps("0-7"); w.cpu(0).softirq = Some(80.0) }, |w| w.rps("0-7");
    "Q07" Edited |w| w.rps("8-15"), |w| w.rps("0-7");
    "Q08" Edited |w| w.rps("0-7"), |w| w.rps("");
    "Q09" Edited |w| w.flows(32_768, 1024), |w| w.flows(32_768, 4096);
    "Q10" Edited |w| w.flows(0, 1024), |w| w.flows(0, 0);
    "Q11" Edited |w| { w.router(); w.flows(32_768, 4096) }, |w| w.flows(32_768, 4096);
    "Q12" Edited |w| { w.flows(1024, 128); w.file("/proc/net/sockstat", "TCP: inuse 900 orphan 0") }, |w| w.flows(1024, 128);
    "Q13" HandWritten |w| { w.nic().driver = Fact::Known("ice".into()); w.flows(32_768, 4096); w.feature("rx-ntuple-filter", false) },
        |w| { w.flows(32_768, 4096); w.feature("rx-ntuple-filter", false) };
    "Q14" Recorded |w| recorded(w, "lab-small2-6.12"), |w| w.nic().tx_queues.iter_mut().for_each(|q| q.bql = Fact::Absent);
    "Q15" Edited |w| { let a = w.nic().tx_queues[0].xps_cpus.clone(); w.nic().tx_queues[0].xps_cpus = w.nic().tx_queues[1].xps_cpus.clone(); w.nic().tx_queues[1].xps_cpus = a }, |w| w.nic().tx_queues[0].xps_rxqs = Fact::Absent;
    "Q16" Edited |w| w.nic().tx_queues[1].xps_cpus = Fact::Known(CpuSet::new()),
        |w| { w.nic().tx_queues[1].xps_cpus = Fact::Known(CpuSet::new()); w.nic().tx_queues[1].xps_rxqs = Fact::Known(vec![1]) };
    "Q17" Edited |w| w.link().queues[8].bytes = Some(1_000_000_000), |w| { w.link().queues[8].bytes = Some(1_000_000_000); w.link().tx_packets = Some(500) };
    "Q31" Edited |w| { w.s.host.rps_default_mask = Fact::Known(set("0-3")); w.s.host.sysctls.insert("net.core.rps_default_mask".into(), Fact::Known("f".into())); }, |w| w.s.host.rps_default_mask = Fact::Absent;
    "Q32" Edited |w| { w.rps("0-7"); softnet(w, SoftnetDropped, 5) }, |w| softnet(w, SoftnetDropped, 5);
    "R2.03" Edited |w| { goal(w, Goal::Rpc); w.flows(0, 0) }, |w| goal(w, Goal::Rpc);
    "R2.04" HandWritten |w| { w.nic().driver = Fact::Known("ice".into()); goal(w, Goal::Rpc); w.feature("rx-ntuple-filter", false) }, |w| { goal(w, Goal::Rpc); w.feature("rx-ntuple-filter", false) };
    "R3.17" HandWritten |w| { goal(w, Goal::Latency); fewer(w, 1); w.rps("2") }, |w| goal(w, Goal::Latency);

    "M01" Edited |w| { goal(w, Goal::Latency); w.coalesce("rx-usecs", 99) }, |w| { w.coalesce("rx-usecs", 99) };
    "M02" HandWritten |w| { w.coalesce("use-adaptive-rx", 1); w.wish(Knob::Coalesce { queues: None, params: [("rx-usecs".to_string(), 3)].into() }) },
        |w| w.coalesce("use-adaptive-rx", 1);
    "M03" HandWritten |w| by_queue(w, 50), |w| by_queue(w, 3);
    "M04" HandWritten |w| w.coalesce("rx-max-frames", 1), |w| w.coalesce("rx-max-frames", 32);
    "M05" Edited |w| napi(w, |v| v.defer_hard_irqs = Some(100)), |w| napi(w, |v| { v.defer_hard_irqs = Some(100); v.gro_flush_timeout_ns = Some(20_000) });
    "M06" HandWritten |w| suspend(w, 0), |w| suspend(w, 100);
    "M07" Edited |w| { w.s.host.sysctls.insert("net.core.busy_read".into(), Fact::Known("50".into())); },
        |w| { w.s.host.sysctls.insert("net.core.busy_read".into(), Fact::Known("50".into())); goal(w, Goal::Latency) };
    "M08" Edited |w| w.count("rx_missed_errors", 10), |w| { w.count("rx_missed_errors", 10); w.cpu(0).softirq = Some(97.0) };
    "M09" Edited |w| { goal(w, Goal::Forward); rings(w, 4096) }, |w| { rings(w, 4096) };
    "M10" Edited |w| w.feature("rx-gro", false), |w| { w.feature("rx-gro", false); w.nic().users = Fact::Known(vec![User::Xdp { mode: "driver".into(), program_id: None }]) };
    "M11" HandWritten |w| { w.router(); w.feature("rx-lro", true) }, |w| w.feature("rx-lro", true);
    "M14" Edited |w| w.feature("tx-tcp-segmentation", false), |w| { let Fact::Known(f) = &mut w.nic().features else { panic!() }; f.insert("tx-tcp-segmentation".into(), Feature { on: false, wanted: false, fixed: true }); };
    "M15" Edited |w| { w.qdisc("mq", "pfifo_fast"); w.file("/sys/class/net/eth1/tx_queue_len", "20000") }, |w| w.file("/sys/class/net/eth1/tx_queue_len", "20000");
    "M16" Edited |w| w.qdisc("fq_codel", ""), |w| w.qdisc("noqueue", "");
    "M17" Edited |w| { w.qdisc("htb", ""); w.speed(25_000) }, |w| w.qdisc("htb", "");
    "M18" Edited |w| bql(w, 1000), |w| bql(w, 100_000);
    "M19" Edited |w| { w.rps("0-7"); softnet(w, SoftnetRps, 10); softnet(w, SoftnetProcessed, 200_000) }, |w| { softnet(w, SoftnetProcessed, 200_000) };
    "M20" Edited |w| { w.rps("0-7"); sockets(w, 3, 99) }, |w| sockets(w, 3, 99);
    "M21" Edited |w| w.feature("tx-nocache-copy", true), |w| w.feature("tx-nocache-copy", false);
    "M22" Edited |w| w.x.devs.get_mut("eth1").unwrap().tcp_data_split = Some(Fact::Known(true)), |w| w.x.devs.get_mut("eth1").unwrap().tcp_data_split = Some(Fact::Absent);
    "M23" Edited |w| limit(w, 3, 100), |w| limit(w, 3, 100_000);
    "R1.07" Edited |w| { w.router(); pause(w) }, |w| pause(w);
    "R4.02" HandWritten |w| { grouped(w); w.coalesce("use-adaptive-rx", 1); }, |w| w.coalesce("use-adaptive-rx", 1);
    "R4.04" HandWritten |w| grouped(w), |w| by_queue(w, 3);
    "R4.05" HandWritten |w| { grouped(w); w.intent.groups = vec![group()] }, |w| by_queue(w, 3);
    "R4.06" HandWritten |w| { grouped(w); w.intent.groups = vec![group()] }, |w| by_queue(w, 3);
    "W01" Edited |w| w.wish(Knob::Feature { name: "gro".into(), on: false }), |w| w.wish(Knob::Feature { name: "gro".into(), on: true });

    "H01" HandWritten |w| w.pcie((8000, 4), (8000, 8)), |w| { w.guest(); w.pcie((8000, 4), (8000, 8)) };
    "H02" HandWritten |w| w.pcie((5000, 8), (8000, 8)), |w| w.pcie((8000, 8), (8000, 8));
    "H03" HandWritten |w| { w.pcie((8000, 4), (8000, 4)); w.speed(40_000) }, |w| { w.pcie((8000, 8), (8000, 8)); w.speed(40_000) };
    "H04" Edited |w| { w.speed(25_000); w.pci(|p| { p.max_payload = 128; p.max_payload_capable = 512 }) }, |w| w.pci(|p| { p.max_payload = 128; p.max_payload_capable = 512 });
    "H05" Edited |w| { w.speed(100_000); }, |w| w.speed(25_000);
    "H06" Edited |w| { goal(w, Goal::Latency); w.pci(|p| p.aspm = true) }, |w| w.pci(|p| p.aspm = true);
    "H07" Edited |w| { goal(w, Goal::Latency); w.s.host.cpu_latency.values_mut().for_each(|v| *v = Fact::Known("0".into())) }, |w| goal(w, Goal::Latency);
    "H08" HandWritten |w| { goal(w, Goal::Stream); governor(w, "schedutil") }, |w| governor(w, "schedutil");
    "H10" Edited |w| w.file("/sys/class/net/eth1/device/iommu_group/type", "DMA"), |w| { w.file("/sys/class/net/eth1/device/iommu_group/type", "DMA"); w.s.held = vec![UserspaceFunction { bus_address: "0000:09:00.0".into(), driver: "vfio-pci".into() }] };
    "H11" Edited |w| w.file("/sys/kernel/debug/swiotlb/io_tlb_used", "64"), |w| { w.x.text.insert("/sys/kernel/debug/swiotlb/io_tlb_used".into(), Fact::Absent); };
    "H12" Edited |w| { goal(w, Goal::Latency); w.file("/proc/sys/kernel/numa_balancing", "1") }, |w| w.file("/proc/sys/kernel/numa_balancing", "1");
    "H13" Edited |w| { w.nic().node = Fact::unknown("numa_node", "-1"); w.nic().local_cpus = Fact::Absent }, |w| { w.nic().node = Fact::unknown("numa_node", "-1"); w.nic().local_cpus = Fact::Known(set("0-7")) };
    "H16" HandWritten |w| { goal(w, Goal::Latency); w.s.topology.smt_active = Fact::Known(true); w.x.vulnerabilities.insert("mds".into(), "Mitigation: Clear CPU buffers; SMT vulnerable".into()); },
        |w| { w.s.topology.smt_active = Fact::Known(true); w.x.vulnerabilities.insert("mds".into(), "Mitigation: Clear CPU buffers; SMT vulnerable".into()); };
    "H18" Edited |w| sockets(w, 3, 0), |w| sockets(w, 0x88cc, 0);
    "H20" HandWritten |w| { w.s.topology.isolated = Fact::Known(set("14-15")); w.file("/proc/sys/kernel/nmi_watchdog", "1") }, |w| w.file("/proc/sys/kernel/nmi_watchdog", "1");
    "H22" HandWritten |w| { w.guest(); w.cpu(0).steal = Some(20.0) }, |w| w.cpu(0).steal = Some(20.0);
    "H23" Edited |w| w.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
        |w| { w.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"); w.file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm") };
    "H24" HandWritten |w| { w.speed(25_000); w.link().alloc_fail = Some(3) }, |w| w.speed(25_000);
    "H25" Edited |w| w.nic().users = Fact::Known(vec![User::Xdp { mode: "generic".into(), program_id: Some(7) }]), |w| w.nic().users = Fact::Known(vec![User::Xdp { mode: "driver".into(), program_id: Some(7) }]);
    "H26" HandWritten |w| { w.guest(); w.file("/proc/cpuinfo", "fpu sse2") }, |w| w.file("/proc/cpuinfo", "fpu sse2");

    "F01" HandWritten |w| { w.router(); w.tracks(5000, 65_536); w.cpu(0).softirq = Some(95.0) }, |w| { w.router(); w.tracks(5000, 65_536) };
    "F02" HandWritten |w| w.tracks(60_000, 65_536), |w| w.tracks(5_000, 65_536);
    "F03" HandWritten |w| { w.router(); w.file("/proc/net/ip_tables_names", "filter\nnat") }, |w| w.file("/proc/net/ip_tables_names", "filter\nnat");
    "F04" HandWritten |w| { w.router(); w.tracks(5000, 65_536) }, |w| { w.router(); w.tracks(5000, 65_536); w.file("/proc/modules", "igb nf_tables nf_flow_table") };
    "F05" Edited |w| { w.router(); w.file("/proc/sys/net/ipv4/conf/all/rp_filter", "1") }, |w| w.file("/proc/sys/net/ipv4/conf/all/rp_filter", "1");
    "F07" HandWritten |w| { w.bridge(); w.file("/proc/sys/net/bridge/bridge-nf-call-iptables", "1") }, |w| w.file("/proc/sys/net/bridge/bridge-nf-call-iptables", "1");
    "F08" Edited |w| { vlans(w); w.feature("rx-vlan-hw-parse", false) }, |w| w.feature("rx-vlan-hw-parse", false);
    "F09" HandWritten |w| w.bond("802.3ad", "layer2 0"), |w| w.bond("active-backup", "layer2 0");
    "F10" HandWritten |w| { w.bond("802.3ad", "layer3+4 1"); w.file("/sys/class/net/bond0/queues/rx-0/rps_cpus", "00ff") }, |w| w.bond("802.3ad", "layer3+4 1");
    "F11" HandWritten |w| { w.bond("802.3ad", "layer3+4 1"); rings(w, 1024) }, |w| rings(w, 1024);
    "F12" HandWritten |w| netvsc(w, "mq"), |w| netvsc(w, "noqueue");
    "F14" Edited |w| w.file("/sys/module/igb/taint", "OE"), |w| w.file("/sys/module/igb/taint", "E");
    "F15" Edited |w| w.nic().link.duplex = Fact::Known("half".into()), |w| w.nic().link.duplex = Fact::Absent;
    "F16" Edited |w| { goal(w, Goal::Latency); eee(w) }, |w| eee(w);
    "F17" Edited |w| w.file("/sys/class/net/eth1/flags", "0x1103"), |w| { w.bridge(); w.file("/sys/class/net/eth1/flags", "0x1103") };
    "F18" Edited |w| w.protocol("Ip:ReasmReqds", 100), |w| w.protocol("Ip:ReasmReqds", 5);
    "F19" Edited |w| w.qdisc("mqprio", "fq_codel"), |w| w.qdisc("mq", "fq");
    "F20" HandWritten |w| { w.s.bystanders.count.insert("vxlan".into(), 3); w.feature("rx-udp_tunnel-port-offload", false) }, |w| w.feature("rx-udp_tunnel-port-offload", false);
    "R0.15" HandWritten |w| { w.router(); w.s.host.kernel = Fact::Known("3.2.0-4-amd64".into()) }, |w| { w.router(); w.s.host.kernel = Fact::Known("3.8.5".into()) };
    "R1.18" HandWritten |w| { w.router(); w.s.host.kernel = Fact::Known("3.8.5".into()) }, |w| { w.router(); w.s.host.kernel = Fact::Known("4.0.1".into()) };
}

fn run(f: fn(&mut World)) -> (World, Report) {
    let mut w = World::tuned();
    f(&mut w);
    let r = w.judge();
    (w, r)
}

#[test]
fn every_rule_finds_its_positive_case_and_not_its_negative() {
    let mut wrong = Vec::new();
    for c in CASES {
        let (_, r) = run(c.positive);
        if !r.ids().contains(&c.rule) {
            wrong.push(format!(
                "{} ({:?}): positive not found, but {:?}; unread {:?}",
                c.rule,
                c.tag,
                r.ids(),
                r.unreadable.iter().filter(|u| u.rule == c.rule).collect::<Vec<_>>()
            ));
        }
        let (_, r) = run(c.negative);
        if r.ids().contains(&c.rule) {
            let texts: Vec<_> = r.findings.iter().filter(|f| f.rule == c.rule).map(|f| &f.text).collect();
            wrong.push(format!("{} ({:?}): negative found: {texts:?}", c.rule, c.tag));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_rule_without_both_cases_and_none_twice() {
    let mut ids: Vec<&str> = CASES.iter().map(|c| c.rule).collect();
    let mut all: Vec<&str> = rules().map(|r| r.id).collect();
    ids.sort_unstable();
    all.sort_unstable();
    assert_eq!(ids, all);
    assert!(all.windows(2).all(|w| w[0] != w[1]), "a rule id occurs twice");
    assert!(CASES.iter().any(|c| c.tag == Recorded));
}

/// The number of rules in the catalogue: 16 + 20 + 32 + 22 + 26 + 20.
#[test]
fn each_rule_of_the_catalogue_is_judged_or_left_out_with_a_reason() {
    let families = [("D", 16), ("A", 20), ("Q", 32), ("M", 22), ("H", 26), ("F", 20)];
    let mut judged = 0;
    for (family, n) in families {
        for i in 1..=n {
            let id = format!("{family}{i:02}");
            let here = rules().any(|r| r.id == id);
            let left = UNJUDGED_RULES.iter().any(|l| l.id == id);
            assert!(here != left, "{id}: judged {here}, left out {left}");
            judged += usize::from(here);
        }
    }
    assert!(judged >= 110, "{judged}");
    for id in ["R0.15", "R1.13", "R1.14", "R1.15", "R1.16", "R1.17", "R1.18"] {
        assert!(ringwise_check::find(id).is_some(), "{id}");
    }
    for r in ringwise_plan::rules() {
        assert!(ringwise_check::find(r.id).is_some() || r.id == "R4.07", "plans cite {}", r.id);
    }
}

#[test]
fn rules_are_complete() {
    for r in rules() {
        for (what, text) in [
            ("title", r.title),
            ("reads", r.reads),
            ("precondition", r.guard),
            ("condition", r.condition),
            ("why", r.why()),
            ("source", r.source()),
        ] {
            assert!(!text.is_empty(), "{}: no {what}", r.id);
        }
        assert!(r.why().ends_with('.'), "{}", r.id);
        assert!(r.ours.is_some() || !r.by_hand.is_empty(), "{}: the rule has neither a fix nor advice", r.id);
        for u in r.under {
            assert!(
                ringwise_check::find(u).is_some_and(|f| f.id == *u),
                "{}: names {u} as a cause, which is not a rule",
                r.id
            );
        }
        // No two rules may be consequences of each other.
        let back = r
            .under
            .iter()
            .filter_map(|u| ringwise_check::find(u))
            .any(|c| c.under.contains(&r.id) && c.id != "A16" && r.id != "A16");
        assert!(!back, "{}: two rules are consequences of each other", r.id);
    }
    // Firewall rules, protections of the host, and memory are only explained, never changed.
    for id in ["F01", "F02", "F03", "F04", "F05", "F07", "H10", "H16", "H17", "H19"] {
        assert!(ringwise_check::find(id).is_none_or(|r| r.ours.is_none()), "{id} is offered");
    }
    let never =
        ["mitigations=off", "nosmt", "iptables -F", "nft flush", "nft delete", "transparent_hugepage", "iommu=off"];
    for r in rules() {
        let texts = r.by_hand.iter().chain(&r.ours);
        assert!(!texts.into_iter().any(|t| never.iter().any(|n| t.contains(n))), "{}", r.id);
    }
    for l in UNJUDGED_RULES {
        assert!(!l.why.is_empty() && !l.title.is_empty(), "{}", l.id);
    }
}

#[test]
fn a_tuned_host_has_no_findings() {
    for g in Goal::ALL {
        let mut w = World::tuned();
        if g == Goal::Mixed {
            grouped(&mut w);
        }
        let w = w.goal(g);
        let r = w.judge();
        let bad: Vec<String> = r
            .findings
            .iter()
            .filter(|f| f.severity > Severity::Info)
            .map(|f| format!("{} {:?} {}", f.rule, f.dev, f.text))
            .collect();
        assert!(bad.is_empty(), "{g}: {bad:#?}");
    }
    let r = World::tuned().judge();
    assert!(r.findings.is_empty(), "{:#?}", r.findings);
    assert_eq!(r.first, None);
}

#[test]
fn without_samples_rates_are_not_evaluated() {
    let mut w = World::tuned();
    w.count("rx_missed_errors", 5);
    w.t = None;
    let r = w.judge();
    assert!(r.not_evaluated.contains(&"D04".to_string()) && r.findings.is_empty(), "{:?}", r.findings);
    assert_eq!(r.seconds, None);
}

#[test]
fn unreadable_facts_do_not_count_as_passed() {
    let mut w = World::tuned();
    w.nic().rss = Fact::unknown("rss-get eth1", "needs root");
    let r = w.judge();
    assert!(r.unreadable.iter().any(|u| u.rule == "Q20" && u.dev.as_deref() == Some("eth1") && u.why == "needs root"));
    w.t.as_mut().unwrap().threads = Fact::unknown("/proc/9/stat", "hidden");
    let hidden = w.judge().unreadable.into_iter().filter(|u| u.why == "hidden").map(|u| u.rule);
    assert_eq!(hidden.collect::<Vec<_>>(), ["A05", "H14", "H21", "H27"]);
    assert!(!r.not_applied.contains(&"Q20".to_string()));
}

/// The plan has no step if it lacks a fact. The check notes the fact as unread and does not count the rule as passed.
#[test]
fn facts_unknown_to_the_plan_do_not_count_as_passed() {
    let mut w = World::tuned();
    for q in &mut w.nic().tx_queues {
        q.xps_cpus = Fact::unknown("xps_cpus", "needs root");
    }
    for q in &mut w.nic().rx_queues {
        q.rps_flow_cnt = Fact::unknown("rps_flow_cnt", "needs root");
    }
    let r = w.judge();
    for rule in ["Q14", "Q15", "R2.03"] {
        let of = |u: &&ringwise_check::Unreadable| u.rule == rule && u.dev.as_deref() == Some("eth1");
        assert_eq!(r.unreadable.iter().filter(of).count(), 1, "{rule}: one of a kind is enough");
        assert!(!r.not_applied.contains(&rule.to_string()) && !r.ids().contains(&rule), "{rule}");
    }
    assert!(!r.unreadable.iter().any(|u| u.rule == "A03"), "{:?}", r.unreadable);
    // A device whose queues could not be read, or that did not answer, is noted as unread.
    for (what, subject) in [("/sys/class/net/eth1/queues", Subject::Queues), ("eth1", Subject::Device)] {
        let mut w = World::tuned();
        (w.nic().rx_queues, w.nic().tx_queues) = (Vec::new(), Vec::new());
        w.nic().unread.push(ringwise_model::Unread::late(what, Duration::from_secs(2)).of(subject));
        let r = w.judge();
        let of = |u: &&ringwise_check::Unreadable| u.rule == "A03" && u.dev.as_deref() == Some("eth1");
        assert_eq!(r.unreadable.iter().filter(of).count(), 1, "{what}: {:?}", r.unreadable);
    }
}

/// The plan covers the whole host, but the check only reports the named interfaces.
#[test]
fn findings_only_for_the_named_interfaces() {
    let w = World::untuned();
    let of = |r: &ringwise_check::Report| r.findings.iter().filter_map(|f| f.dev.clone()).collect::<Vec<_>>();
    assert!(of(&w.judge()).iter().any(|d| d == "eth1"));
    let other = of(&w.judge_of(&["eth0".into()]));
    assert!(other.iter().all(|d| d == "eth0"), "{other:?}");
}
