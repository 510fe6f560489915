//! iperf3's streams, read from its `-J` output.

use std::sync::atomic::AtomicBool;

use serde::Deserialize;

use crate::error::ProgramError;
use crate::programs::{cpu, end, together};
use crate::result::{BitRateLayer, LoadResult, Unit};
use crate::side::{LoadGroup, LoadGroups, Pattern, Protocol};

/// The maximum of iperf3's option `-P`.
const MOST_STREAMS: u32 = 128;

pub(crate) fn run(port: u16, load: &LoadGroups, stop: &AtomicBool) -> Result<Vec<LoadResult>, ProgramError> {
    let [g] = load.groups.as_slice() else {
        return Err(ProgramError::Iperf3OneGroup);
    };
    check(g)?;
    let args = args(port, g, load.warmup.as_secs(), load.time.as_secs());
    let all = together("iperf3", &[args], load.warmup + load.time, stop)?;
    let left = all.first().ok_or(ProgramError::Iperf3NotRun)?;
    // iperf3 reports errors in its report and exits with status 0.
    match result(g, &left.output) {
        Ok(r) if left.good() => Ok(vec![r]),
        Ok(_) => Err(ProgramError::Failed { name: "iperf3", end: end(left) }),
        Err(why) if left.errors.is_empty() => Err(why),
        Err(why) => Err(ProgramError::WithWords { error: Box::new(why), words: left.errors.clone() }),
    }
}

fn check(g: &LoadGroup) -> Result<(), ProgramError> {
    if g.pattern != Pattern::Send {
        return Err(ProgramError::Iperf3StreamsOnly);
    }
    if g.threads != 1 || g.to.len() != 1 {
        return Err(ProgramError::Iperf3OneClient);
    }
    if g.flows > MOST_STREAMS || g.skew > 0.0 {
        return Err(ProgramError::Iperf3Flows { most: MOST_STREAMS });
    }
    Ok(())
}

fn args(port: u16, g: &LoadGroup, warmup: u64, seconds: u64) -> Vec<String> {
    let flows = g.flows.max(1);
    let pair = |name: &str, value: String| [name.to_string(), value];
    let mut out = vec!["-J".to_string()];
    out.extend(pair("-c", g.to[0].ip().to_string()));
    out.extend(pair("-p", port.to_string()));
    out.extend(pair("-t", seconds.to_string()));
    out.extend(pair("-O", warmup.to_string()));
    out.extend(pair("-P", flows.to_string()));
    out.extend(pair("-l", g.size_bytes.to_string()));
    if let Some(c) = cpu(g, 0) {
        out.extend(pair("-A", c.to_string()));
    }
    // Payload bits of each stream; 0: as fast as possible (the default of UDP is 1 Mbit/s).
    let bits = g.per_s.map_or(0, |r| (r * f64::from(g.size_bytes) * 8.0 / f64::from(flows)).round().max(1.0) as u64);
    if g.protocol == Protocol::Udp {
        out.push("-u".into());
        out.extend(pair("-b", bits.to_string()));
    } else if bits > 0 {
        out.extend(pair("-b", bits.to_string()));
    }
    out
}

#[derive(Deserialize)]
struct Report {
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Default, Deserialize)]
struct End {
    /// UDP: the receiver's counts of all streams.
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    cpu_utilization_percent: Option<Cpu>,
}

#[derive(Deserialize)]
struct Sum {
    seconds: f64,
    bytes: f64,
    packets: Option<f64>,
    lost_packets: Option<f64>,
    retransmits: Option<u64>,
}

#[derive(Deserialize)]
struct Cpu {
    host_total: f64,
}

/// Errors: iperf3's own message, or a report without an expected member.
pub(crate) fn result(g: &LoadGroup, text: &str) -> Result<LoadResult, ProgramError> {
    let report: Report = serde_json::from_str(text)
        .map_err(|e| ProgramError::Iperf3Report { error: e.into(), start: text.trim().chars().take(200).collect() })?;
    if let Some(e) = report.error {
        return Err(ProgramError::Iperf3Reported(e));
    }
    let end = report.end;
    let need =
        |s: Option<Sum>, name: &'static str| s.filter(|s| s.seconds > 0.0).ok_or(ProgramError::Iperf3NoMember(name));
    let cpu = end.cpu_utilization_percent.map(|c| c.host_total);
    let base = LoadResult {
        group: g.name.clone(),
        threads: 1,
        offered_per_s: g.per_s,
        counted: BitRateLayer::Payload,
        // Since 3.16 each stream has its thread, so the busiest one is unknown with several streams.
        busiest_thread_percent: cpu.filter(|_| g.flows <= 1),
        generator_cpu_percent: cpu,
        ..LoadResult::default()
    };
    if g.protocol == Protocol::Udp {
        let sum = need(end.sum, "sum")?;
        let (Some(packets), Some(lost)) = (sum.packets, sum.lost_packets) else {
            return Err(ProgramError::Iperf3NoPackets);
        };
        let arrived = (packets - lost).max(0.0) / sum.seconds;
        return Ok(LoadResult {
            unit: Unit::Packets,
            sent_per_s: packets / sum.seconds,
            done_per_s: arrived,
            lost_percent: (packets > 0.0).then(|| lost / packets * 100.0),
            bits_per_s: arrived * f64::from(g.size_bytes) * 8.0,
            ..base
        });
    }
    let (sent, received) = (need(end.sum_sent, "sum_sent")?, need(end.sum_received, "sum_received")?);
    let size = f64::from(g.size_bytes);
    Ok(LoadResult {
        unit: Unit::Bytes,
        sent_per_s: sent.bytes / sent.seconds / size,
        done_per_s: received.bytes / received.seconds / size,
        bits_per_s: received.bytes / received.seconds * 8.0,
        trouble: sent.retransmits.filter(|n| *n > 0).map(|n| format!("{n} segments were retransmitted")),
        ..base
    })
}
