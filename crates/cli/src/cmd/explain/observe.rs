//! `explain --observe`: shows what interrupts, queues and CPUs did, beside the prediction for one flow.

use std::collections::BTreeMap;
use std::time::Instant;

use ringwise_discover::flow_path;
use ringwise_flow::Tuple;
use ringwise_kfmt::{interrupts, packet, softnet};
use ringwise_model::{CpuId, IrqId};
use ringwise_sys::packets::{PacketListener, VNET};
use ringwise_sys::{Host, connections};

use super::{ExplainContext, one};
use crate::cmd::progress::Countdown;
use crate::cmd::watch::flows;
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_render::explain::observed;
use ringwise_render::explain::observed::{Observed, OfFlow};

/// `LINKTYPE_ETHERNET`
const ETHERNET: u32 = 1;

/// Interrupts by number and CPU, processed packets by CPU, and packets that RPS passed on.
struct Sample {
    irqs: BTreeMap<IrqId, BTreeMap<CpuId, u64>>,
    taken: BTreeMap<CpuId, (u32, u32)>,
}

fn sample(host: &dyn Host) -> Result<Sample> {
    let read = |path: &str| host.read(path).map_err(|e| Fail::error(format!("{path}: {}", e.reason())));
    let table = interrupts::parse(&read("/proc/interrupts")?).map_err(|e| Fail::error(e.to_string()))?;
    let mut irqs: BTreeMap<IrqId, BTreeMap<CpuId, u64>> = BTreeMap::new();
    for row in table.rows.iter().filter(|r| table.is_whole(r)) {
        if let Some(irq) = row.head.irq {
            irqs.insert(irq, table.cpus.iter().copied().zip(row.counts.iter().copied()).collect::<BTreeMap<_, _>>());
        }
    }
    let text = String::from_utf8_lossy(&read("/proc/net/softnet_stat")?).into_owned();
    let rows = softnet::parse(&text).map_err(|e| Fail::error(e.to_string()))?;
    let online: Vec<CpuId> = table.cpus;
    let taken = rows.iter().enumerate().filter_map(|(i, r)| {
        let cpu = r.cpu.or_else(|| online.get(i).copied())?;
        Some((cpu, (r.processed, r.received_rps.unwrap_or(0))))
    });
    Ok(Sample { irqs, taken: taken.collect::<BTreeMap<_, _>>() })
}

/// Listens to packets of the flow, if the kernel permits it.
struct Ear {
    tap: PacketListener,
    queues: u32,
    heard: OfFlow,
}

impl Ear {
    fn open(host: &dyn Host, dev: &str) -> std::result::Result<Self, String> {
        let queues = flows::receive_queues(host, dev).map_err(|e| e.to_string())?;
        let one_in = ringwise_observe::sampling_divisor(flows::rate(host, dev));
        let tap = PacketListener::open(dev, queues, one_in).map_err(|e| e.to_string())?;
        Ok(Self { tap, queues, heard: OfFlow { one_in, ..OfFlow::default() } })
    }

    fn listen(&mut self, t: &Tuple) -> ringwise_sys::Result<()> {
        let (queues, heard) = (self.queues, &mut self.heard);
        self.tap.drain(|frame| {
            let Some((vnet, head)) = frame.bytes.split_first_chunk::<VNET>() else { return };
            let Ok(seen) = packet::parse_frame(ETHERNET, head) else { return };
            let mine = Tuple { vlan: None, ..Tuple::of_packet(&seen) };
            if mine == (Tuple { vlan: None, ..*t }) {
                let queue = frame.queue.or((queues == 1).then_some(0));
                *heard.queues.entry(queue).or_default() += packet::put_together(vnet, frame.length as u64).0;
            }
        })
    }
}

/// How often the flow's program and socket are looked up; both may move between CPUs.
const LOOKS: u32 = 20;

pub(super) fn run(cx: &mut ExplainContext, t: &Tuple) -> Result<Status> {
    let ways = one::Ways::find(cx, t)?;
    let wait = cx.a.observe.unwrap_or_default();
    let one = one::answer(cx, t, &ways)?;
    let at = one::arriving(&one).map(|i| &one.directions[i]);
    let arrival = at.and_then(|d| Some((d.flow, d.arrival.as_ref()?)));
    let (incoming, arrival) =
        arrival.ok_or_else(|| Fail::error("no direction of the flow arrives on a known interface"))?;
    let host = cx.source.host.as_ref();
    let mut o = Observed { seconds: wait.as_secs_f64(), looks: LOOKS, ..Observed::default() };
    let mut ear = Ear::open(host, &arrival.dev);
    let before = sample(host)?;
    let mut pid = None;
    let mut countdown = Countdown::new("observing the flow", wait, cx.common);
    for look in 0..LOOKS {
        countdown.left(wait - wait / LOOKS * look);
        let end = Instant::now() + wait / LOOKS;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(flows::PAUSE));
            if let Ok(e) = &mut ear {
                e.listen(&incoming).map_err(Fail::from)?;
            }
            if left.is_zero() {
                break;
            }
        }
        let (socket, inode) = match one::socket_and_inode(host, &incoming) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(why) => {
                o.incoming_unread = Some(why);
                continue;
            }
        };
        if let Some(c) = socket.last_cpu {
            *o.program.entry(c).or_default() += 1;
        }
        pid = socket.pid;
        if let (Some(pid), "connection") = (socket.pid, socket.kind) {
            match connections::incoming(pid, inode) {
                Ok(Some(seen)) => o.add_socket_observation(seen.cpu.map(CpuId), seen.napi, socket.last_cpu, one.host),
                Ok(None) => {}
                Err(e) => o.incoming_unread = Some(e.to_string()),
            }
        }
    }
    drop(countdown);
    o.permitted = pid.and_then(|pid| flow_path::cpus_allowed(host, pid).known().cloned());
    let after = sample(host)?;
    o.flow = ear.and_then(|mut e| {
        e.heard.lost = e.tap.lost().map_err(|e| e.to_string())?;
        Ok(e.heard)
    });
    let nic = one.host.nic(&arrival.dev);
    for v in nic.iter().flat_map(|n| n.queue_vectors()) {
        let (Some(a), Some(b)) = (before.irqs.get(&v.irq), after.irqs.get(&v.irq)) else { continue };
        let grown: BTreeMap<CpuId, u64> = b
            .iter()
            .map(|(c, n)| (*c, n.saturating_sub(a.get(c).copied().unwrap_or(0))))
            .filter(|(_, n)| *n > 0)
            .collect();
        for q in v.rx() {
            o.queues.insert(*q, grown.clone());
        }
    }
    for (c, (p, r)) in &after.taken {
        let (p0, r0) = before.taken.get(c).copied().unwrap_or_default();
        // The counters have 32 bits, and they wrap around.
        let (p, r) = (p.wrapping_sub(p0), r.wrapping_sub(r0));
        if p > 0 {
            o.cpus.insert(*c, (p, r));
        }
    }
    if one::draw(cx, &one, Some(&o))? {
        return Ok(Status::Ok);
    }
    if cx.a.format.json(cx.common) {
        out::json(&observed::json(&one, &o))?;
    } else {
        out::answer(&observed::text(&one, &o, &crate::style::detect(cx.common)))?;
    }
    Ok(Status::Ok)
}
