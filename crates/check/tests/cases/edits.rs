//! Changes of hosts that make the condition of a rule true or false.

use ringwise_check::GoalOrigin;
use ringwise_model::*;

use crate::world::{World, set};

pub(crate) fn queue(action: Action) -> Rule {
    Rule { flow: "tcp4".into(), fields: [("dst-port".to_string(), "443".to_string())].into(), action, context: None }
}

pub(crate) fn softnet(w: &mut World, counter: CpuCounter, n: u64) {
    w.cpu(3).counts.set(counter, n);
}

pub(crate) fn goal(w: &mut World, g: Goal) {
    *w = w.clone().goal(g);
}

pub(crate) fn recorded(w: &mut World, host: &str) {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(host).join("snapshot.json");
    w.s = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    w.t = None;
}

pub(crate) fn irqbalance(banned: &[u32]) -> Irqbalance {
    Irqbalance {
        pid: 812,
        socket: Fact::Known("/run/irqbalance/irqbalance812.sock".into()),
        interval_s: Fact::Known(10),
        args: Fact::Known(Vec::new()),
        banned: Fact::Known(banned.to_vec()),
        unit: Fact::Absent,
        start: None,
        kept: Vec::new(),
        addition: false,
        by_policy: false,
        ours: Vec::new(),
    }
}

/// Both interfaces on node 0, four queues each.
pub(crate) fn one_node() -> World {
    let mut w = World::untuned();
    for n in &mut w.s.nics {
        n.node = Fact::Known(NodeId(0));
        n.rx_queues.truncate(4);
        n.tx_queues.truncate(4);
        n.vectors.retain(|v| v.rx().iter().all(|q| *q < 4));
        let Fact::Known(c) = &mut n.channels else { panic!() };
        c.combined = Some(Count { now: 4, max: 8 });
        n.local_cpus = Fact::Known(set("0-7"));
        let Fact::Known(r) = &mut n.rss else { panic!() };
        r.table = (0..128).map(|i| i % 4).collect();
    }
    w.apply();
    w.t = None;
    w
}

pub(crate) fn fewer(w: &mut World, count: u32) {
    w.nic().rx_queues.truncate(count as usize);
    w.nic().tx_queues.truncate(count as usize);
    w.nic().vectors.retain(|v| v.rx().iter().all(|q| *q < count));
    let Fact::Known(c) = &mut w.nic().channels else { panic!() };
    c.combined = Some(Count { now: count, max: 8 });
    w.rss().table = (0..128).map(|i| i % count).collect();
    if count == 1 {
        w.nic().tx_queues[0].xps_cpus = Fact::Absent;
    }
}

/// Four queues, while the user requests eight.
pub(crate) fn more(w: &mut World, allowed: bool) {
    fewer(w, 4);
    w.intent.devs = vec!["eth1".into()];
    w.intent.queues = Some(8);
    w.intent.allow_disruption = allowed;
}

/// Threaded NAPI; the thread of queue 0 may run on `cpus`.
pub(crate) fn thread(w: &mut World, cpus: &str) {
    let instance = |q: u32, cpus: CpuSet| NapiInstance {
        id: 100 + q,
        rx: vec![q],
        tx: vec![q],
        values: Fact::Absent,
        thread: Some(NapiThread { pid: 700 + q, cpus: Fact::Known(cpus) }),
    };
    let at: Vec<CpuSet> =
        (0..8).map(|q| w.s.nics[0].vector_of(Dir::Rx, q).unwrap().asked.known().unwrap().clone()).collect();
    let Fact::Known(n) = &mut w.nic().napi else { panic!() };
    n.device.threaded = Some(1);
    n.instances = (0..8).map(|q| instance(q, if q == 0 { set(cpus) } else { at[q as usize].clone() })).collect();
}

/// Separate interrupts for receiving and sending; `apart`: those of queue 1 are on different cores.
pub(crate) fn split(w: &mut World, apart: bool) {
    let all = w.nic().vectors.clone();
    let mut out = Vec::new();
    for v in all {
        let Role::Queues { rx, tx } = v.role.clone() else {
            out.push(v);
            continue;
        };
        let mut a = v.clone();
        let mut b = v.clone();
        a.role = Role::Queues { rx: rx.clone(), tx: vec![] };
        b.role = Role::Queues { rx: vec![], tx };
        b.irq = IrqId(v.irq.0 + 100);
        if apart && rx == [1] {
            b.asked = Fact::Known(set("6"));
            b.effective = b.asked.clone();
        }
        out.push(a);
        out.push(b);
    }
    w.nic().vectors = out;
}

pub(crate) fn by_queue(w: &mut World, first: u32) {
    let one = |us: u32| Coalesce([("rx-usecs".to_string(), us), ("tx-usecs".to_string(), us)].into());
    w.nic().queue_coalesce = Fact::Known((0..8).map(|q| (q, one(if q == 0 { first } else { 3 }))).collect());
}

pub(crate) fn napi(w: &mut World, f: impl Fn(&mut NapiValues)) {
    let Fact::Known(n) = &mut w.nic().napi else { panic!() };
    f(&mut n.device);
}

pub(crate) fn suspend(w: &mut World, defer: u32) {
    let values = NapiValues {
        defer_hard_irqs: Some(defer),
        gro_flush_timeout_ns: Some(20_000),
        irq_suspend_timeout_ns: Some(1_000_000),
        threaded: None,
    };
    let i = NapiInstance { id: 5, rx: vec![0], tx: vec![0], values: Fact::Known(values), thread: None };
    let Fact::Known(n) = &mut w.nic().napi else { panic!() };
    n.instances = vec![i];
}

pub(crate) fn rings(w: &mut World, n: u32) {
    let c = Some(Count { now: n, max: 4096 });
    w.nic().rings = Fact::Known(Rings::sizes(c, c));
}

pub(crate) fn bql(w: &mut World, max: u64) {
    let b = Bql { limit_bytes: 0, limit_min_bytes: 0, limit_max_bytes: max, inflight_bytes: 0 };
    w.nic().tx_queues[3].bql = Fact::Known(b);
}

/// A limit of one transmit queue inside the NIC.
pub(crate) fn limit(w: &mut World, queue: u32, mbps: u64) {
    w.nic().shapers = Fact::Known(Shapers::Set(vec![Shaper {
        parent: Some(ShaperPlace::Device),
        max_rate: Some(mbps * 1_000_000),
        ..Shaper::unset(ShaperPlace::Queue(queue))
    }]));
}

pub(crate) fn sockets(w: &mut World, protocol: u16, ifindex: u32) {
    w.x.packet_sockets = Some(Fact::Known(vec![PacketSocket { protocol, ifindex }]));
}

pub(crate) fn pause(w: &mut World) {
    w.nic().pause = Fact::Known(Pause { autoneg: Some(true), rx: Some(true), tx: Some(true) });
}

/// Goal mixed, not applied yet.
pub(crate) fn grouped(w: &mut World) {
    by_queue(w, 3);
    w.s.nics[1].queue_coalesce = w.s.nics[0].queue_coalesce.clone();
    w.intent.goal = Goal::Mixed;
    w.from = GoalOrigin::ActiveTransaction;
}

pub(crate) fn group() -> GroupWish {
    GroupWish {
        name: "web".into(),
        dev: "eth1".into(),
        policy: "latency".into(),
        queues: GroupQueues::Count(2),
        cpus: None,
        weight: Some(0),
        context: false,
        flows: vec![Flow::Match { flow: "tcp4".into(), fields: [("dst-port".to_string(), "443".to_string())].into() }],
        by: ConfiguredBy::Flag { name: "--set".into() },
    }
}

pub(crate) fn governor(w: &mut World, name: &str) {
    w.s.host.power.as_mut().unwrap().governor = Fact::Known([(name.to_string(), set("0-15"))].into());
}

pub(crate) fn vlans(w: &mut World) {
    let i = w.nic().dev.ifindex.unwrap();
    w.s.bystanders.count.insert("vlan".into(), 3);
    w.s.bystanders.above.insert(i, [("vlan".to_string(), 3)].into());
}

pub(crate) fn netvsc(w: &mut World, below: &str) {
    let upper = w.s.nics[1].dev.ifindex;
    w.s.nics[1].driver = Fact::Known("hv_netvsc".into());
    w.nic().master = upper;
    w.qdisc(below, "");
}

pub(crate) fn eee(w: &mut World) {
    w.x.devs.get_mut("eth1").unwrap().eee = Some(Fact::Known(Eee { enabled: true, active: true }));
}

/// Two queues at most, as with virtual functions; so many of them exist, the last one without a driver.
pub(crate) fn functions(w: &mut World, count: u32) {
    w.nic().driver = Fact::Known("igb".into());
    fewer(w, 2);
    let Fact::Known(c) = &mut w.nic().channels else { panic!() };
    c.combined = Some(Count { now: 2, max: 2 });
    let one = |number| VirtualFunction {
        number,
        bus_address: format!("0000:05:10.{number}"),
        holder: match number + 1 == count {
            true => Fact::Absent,
            false => Fact::Known(FunctionHolder::UserSpace { driver: "vfio-pci".into() }),
        },
    };
    let list = (0..count).map(one).collect();
    w.nic().virtual_functions = Fact::Known(VirtualFunctions { max: Fact::Known(7), list });
}
