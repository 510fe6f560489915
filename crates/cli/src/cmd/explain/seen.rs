//! The flows that `watch --per-flow` sees, as a population: observed now, or read from its documents.

use std::time::Duration;

use ringwise_flow::{CountedFlow, Steering, Tuple, population};
use ringwise_kfmt::packet::Flow;
use ringwise_observe::{Flows, HELD, sampling_divisor};
use ringwise_sys::packets::PacketListener;
use serde_json::Value;

use super::ExplainContext;
use super::population::Population;
use crate::cmd::progress::Countdown;
use crate::cmd::watch::flows::{listen, rate, receive_queues};
use crate::exit::{Fail, Result};
use ringwise_text::{plural, thousands};

pub(super) fn live(cx: &mut ExplainContext, dev: &str, time: Duration) -> Result<Population> {
    let host = cx.source.host.as_ref();
    let bad = |e: ringwise_sys::Error| Fail::error(e.to_string());
    let queues = receive_queues(host, dev)?;
    let one_in = sampling_divisor(rate(host, dev));
    let mut tap = PacketListener::open(dev, queues, one_in).map_err(bad)?;
    let mut flows = Flows::default();
    let mut countdown = Countdown::new("listening for flows", time, cx.common);
    listen(&mut tap, host, time, queues, &mut flows, |_, _, _| (), |left| countdown.left(left)).map_err(bad)?;
    drop(countdown);
    let lost = tap.lost().map_err(bad)?;
    let all = flows.packets();
    if all == 0 {
        return Err(Fail::error(format!("{dev} received no packets in {:.1} s", time.as_secs_f64())));
    }
    let mut p = Population::default();
    let mut held = 0;
    for (queue, q) in &flows.queues {
        for h in q.top(HELD) {
            let Some(tuple) = Tuple::of_flow(&h.flow) else { continue };
            let packets = h.packets - h.over;
            held += packets;
            let (scale, bytes) = (u64::from(one_in), h.bytes);
            p.flows.push(CountedFlow { tuple, packets: packets * scale, bytes: bytes * scale });
            p.seen.extend(queue.map(|q| (tuple, q)));
        }
    }
    p.flows = population::merged(p.flows);
    if held < all {
        let percent = (all - held) as f64 * 100.0 / all as f64;
        p.notes
            .push(format!("{percent:.1} % of the packets are not IP, or of flows too light to be counted separately"));
    }
    if lost > 0 {
        p.notes
            .push(format!("{} of the sample were lost, because the buffer was full", plural(lost as usize, "packet")));
    }
    let every = if one_in == 1 { "each".into() } else { format!("one in {}", thousands(u64::from(one_in))) };
    p.from = format!("seen in {:.1} s: {} looked at ({every})", time.as_secs_f64(), plural(all as usize, "packet"));
    Ok(p)
}

/// A line of `watch --per-flow -j`.
pub(super) fn document(line: &str, p: &mut Population) -> std::result::Result<(), String> {
    let doc: Value = serde_json::from_str(line).map_err(|e| format!("not JSON, see column {}", e.column()))?;
    let found = doc["schema"].as_str().unwrap_or("none");
    if found != ringwise_tui::lines::flows::SCHEMA || doc["version"] != 1 {
        return Err(format!("a document of schema {found}, expected ringwise.flows version 1 (watch --per-flow -j)"));
    }
    let number = |v: &Value, key: &str| v[key].as_u64().ok_or_else(|| format!("{key} is not a number"));
    let one_in = number(&doc, "one_in")?;
    for q in doc["queues"].as_array().into_iter().flatten() {
        let queue = q["queue"].as_u64().and_then(|q| u32::try_from(q).ok());
        for f in q["flows"].as_array().into_iter().flatten() {
            // Only IP packets are hashed.
            let Some(protocol) = f["protocol"].as_u64() else { continue };
            let protocol = u8::try_from(protocol).map_err(|_| "protocol is above 255".to_string())?;
            let address = |key: &str| {
                let text = f[key].as_str().unwrap_or_default();
                text.parse().map_err(|_| format!("{key} is not an address: {text}"))
            };
            let (from, to) = (address("from")?, address("to")?);
            let port = |key: &str| f[key].as_u64().and_then(|p| u16::try_from(p).ok());
            let ports = port("from_port").zip(port("to_port"));
            let flow = Flow::Ip { protocol, from, to, ports };
            if std::mem::discriminant(&from) != std::mem::discriminant(&to) {
                return Err("the two addresses of a flow are of different families".into());
            }
            let Some(tuple) = Tuple::of_flow(&flow) else { continue };
            let packets = number(f, "looked_at")?.saturating_sub(number(f, "over")?);
            let bytes = number(f, "bytes")?;
            let times = |n: u64| n.saturating_mul(one_in);
            p.flows.push(CountedFlow { tuple, packets: times(packets), bytes: times(bytes) });
            p.seen.extend(queue.map(|q| (tuple, q)));
        }
    }
    Ok(())
}

/// How many of the flows arrived on the predicted queue.
pub(super) fn agreement(steering: &Steering, seen: &[(Tuple, u32)]) -> Option<String> {
    let known: Vec<(u32, u32)> = seen.iter().filter_map(|(t, q)| Some((steering.queue(t)?, *q))).collect();
    let right = known.iter().filter(|(a, b)| a == b).count();
    (!known.is_empty()).then(|| {
        let few =
            if right == known.len() { "" } else { ": a rule, a change meanwhile, or a device that hashes differently" };
        format!("{right} of {} flows arrived on the predicted queue{few}", known.len())
    })
}
