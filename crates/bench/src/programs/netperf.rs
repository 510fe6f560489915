//! netperf's request/response and stream tests, read from its `-k` output (one `SELECTOR=value` a line).
//!
//! Needs netperf 2.6 or newer (output selectors; `-j` for latencies), for `-b` one that was configured with
//! `--enable-burst`. Selectors: its manual, "The Omni Tests".

use std::sync::atomic::AtomicBool;

use crate::error::ProgramError;
use crate::programs::{ChildOutput, cpu, end, together};
use crate::result::{BitRateLayer, Latency, LoadResult, Unit};
use crate::side::{LoadGroup, LoadGroups, Pattern, Protocol};

const SELECTORS: &str = "THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,MEAN_LATENCY,STDDEV_LATENCY,P50_LATENCY,\
P90_LATENCY,P99_LATENCY,MAX_LATENCY,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL";

pub(crate) fn run(port: u16, load: &LoadGroups, stop: &AtomicBool) -> Result<Vec<LoadResult>, ProgramError> {
    for g in &load.groups {
        check(g)?;
    }
    if !load.warmup.is_zero() {
        left(&together("netperf", &lists(port, load, load.warmup.as_secs()), load.warmup, stop)?)?;
    }
    let texts = left(&together("netperf", &lists(port, load, load.time.as_secs()), load.time, stop)?)?;
    let mut texts = texts.as_slice();
    let mut out = Vec::new();
    for g in &load.groups {
        let (own, rest) = texts.split_at((g.threads as usize).min(texts.len()));
        texts = rest;
        let seen = own.iter().map(|t| parse(t, g.pattern)).collect::<Result<Vec<NetperfResult>, ProgramError>>()?;
        out.push(result(g, &seen));
    }
    Ok(out)
}

fn left(all: &[ChildOutput]) -> Result<Vec<String>, ProgramError> {
    let one = |l: &ChildOutput| match l.good() {
        true => Ok(l.output.clone()),
        false => Err(ProgramError::Failed { name: "netperf", end: end(l) }),
    };
    all.iter().map(one).collect()
}

fn check(g: &LoadGroup) -> Result<(), ProgramError> {
    if g.per_s.is_some() {
        return Err(ProgramError::NetperfRate);
    }
    if g.flows > g.threads || g.skew > 0.0 {
        return Err(ProgramError::NetperfFlows);
    }
    if (g.pattern, g.protocol) == (Pattern::Send, Protocol::Udp) {
        return Err(ProgramError::NetperfUdpOneWay);
    }
    Ok(())
}

fn lists(port: u16, load: &LoadGroups, seconds: u64) -> Vec<Vec<String>> {
    let all = load.groups.iter().flat_map(|g| (0..g.threads as usize).map(move |i| (g, i)));
    all.map(|(g, i)| args(port, g, i, seconds)).collect()
}

fn args(port: u16, g: &LoadGroup, i: usize, seconds: u64) -> Vec<String> {
    let test = match (g.protocol, g.pattern) {
        (Protocol::Tcp, Pattern::Send) => "TCP_STREAM",
        (Protocol::Tcp, _) => "TCP_RR",
        (Protocol::Udp, _) => "UDP_RR",
    };
    let mut out: Vec<String> = ["-t", test, "-P", "0", "-f", "m", "-c", "-C", "-j"].map(String::from).to_vec();
    let host = g.to[i % g.to.len()].ip();
    out.extend(["-H".into(), host.to_string(), "-p".into(), port.to_string(), "-l".into(), seconds.to_string()]);
    if let Some(c) = cpu(g, i) {
        out.extend(["-T".into(), format!("{c},{c}")]);
    }
    out.push("--".into());
    match g.pattern {
        Pattern::Send => out.extend(["-m".into(), g.size_bytes.to_string()]),
        Pattern::Rr => out.extend(["-r".into(), format!("{0},{0}", g.size_bytes)]),
        Pattern::Burst(n) => {
            // netperf does not count the request that is always in flight.
            let more = n.saturating_sub(1);
            out.extend(["-r".into(), format!("{0},{0}", g.size_bytes), "-b".into(), more.to_string(), "-D".into()]);
        }
    }
    out.extend(["-k".into(), SELECTORS.into()]);
    out
}

/// The result of one process. Rates are transactions or bits per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NetperfResult {
    pub per_s: f64,
    pub seconds: f64,
    /// Mean, deviation, p50, p90, p99 and maximum in microseconds. `None`: a stream has no latency.
    pub latency: Option<[f64; 6]>,
    /// `None`: it could not be measured (netperf prints a negative number).
    pub cpu_percent: Option<f64>,
}

/// Errors: a selector is missing, or is not in the requested unit.
pub(crate) fn parse(text: &str, pattern: Pattern) -> Result<NetperfResult, ProgramError> {
    let find = |name: &str| {
        let mut values = text.lines().filter_map(|l| l.trim().split_once('=')).filter(|(n, _)| *n == name);
        values.next().map(|(_, v)| v.trim()).ok_or_else(|| {
            let output = text.trim().chars().take(200).collect();
            ProgramError::NoSelector { selector: name.into(), output }
        })
    };
    let number = |name: &str| {
        let v = find(name)?;
        let number = v.parse::<f64>().ok().filter(|v| v.is_finite());
        number.ok_or_else(|| ProgramError::NotANumber { selector: name.into(), found: v.into() })
    };
    let (expected, factor) = if pattern == Pattern::Send { ("10^6bits/s", 1e6) } else { ("Trans/s", 1.0) };
    let units = find("THROUGHPUT_UNITS")?;
    if units != expected {
        return Err(ProgramError::Unit { found: units.into(), expected });
    }
    let latency = if pattern == Pattern::Send {
        None
    } else {
        let mut l = [0.0; 6];
        let names = ["MEAN", "STDDEV", "P50", "P90", "P99", "MAX"];
        for (to, name) in l.iter_mut().zip(names) {
            let selector = format!("{name}_LATENCY");
            *to = number(&selector)?;
            if *to < 0.0 {
                return Err(ProgramError::NotMeasured { selector, found: *to });
            }
        }
        Some(l)
    };
    Ok(NetperfResult {
        per_s: number("THROUGHPUT")? * factor,
        seconds: number("ELAPSED_TIME")?,
        latency,
        cpu_percent: Some(number("LOCAL_CPU_UTIL")?).filter(|c| *c >= 0.0),
    })
}

/// Processes put together: rates add up; mean, deviation and maximum are exact, percentiles are means over them.
pub(crate) fn result(g: &LoadGroup, seen: &[NetperfResult]) -> LoadResult {
    let per_s: f64 = seen.iter().map(|s| s.per_s).sum();
    let one_way = g.pattern == Pattern::Send;
    let counts = || seen.iter().map(|s| s.per_s * s.seconds);
    let total: f64 = counts().sum();
    let weighted = |f: &dyn Fn(&[f64; 6]) -> f64| {
        let sum: f64 = seen.iter().zip(counts()).filter_map(|(s, n)| Some(f(s.latency.as_ref()?) * n)).sum();
        sum / total
    };
    let latency = (!one_way && total > 0.0).then(|| {
        let mean = weighted(&|l| l[0]);
        Latency {
            open_loop: false,
            count: total.round() as u64,
            mean_us: mean,
            deviation_us: weighted(&|l| l[1] * l[1] + (l[0] - mean) * (l[0] - mean)).sqrt(),
            p50_us: weighted(&|l| l[2]),
            p90_us: weighted(&|l| l[3]),
            p99_us: weighted(&|l| l[4]),
            p999_us: None,
            max_us: seen.iter().filter_map(|s| s.latency).map(|l| l[5]).fold(0.0, f64::max),
        }
    });
    let size = f64::from(g.size_bytes);
    let done = if one_way { per_s / 8.0 / size } else { per_s };
    let many = (seen.len() > 1 && !one_way)
        .then(|| format!("percentiles are means over {} netperf processes, weighted by transactions", seen.len()));
    LoadResult {
        group: g.name.clone(),
        unit: if one_way { Unit::Bytes } else { Unit::Transactions },
        threads: g.threads,
        offered_per_s: None,
        sent_per_s: done,
        done_per_s: done,
        lost_percent: None,
        bits_per_s: if one_way { per_s } else { per_s * size * 16.0 },
        counted: BitRateLayer::Payload,
        latency,
        busiest_thread_percent: None,
        generator_cpu_percent: seen.iter().find_map(|s| s.cpu_percent),
        trouble: many,
    }
}
