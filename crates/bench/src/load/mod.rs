//! The built-in generator, which needs only sockets.
//!
//! With a rate, each request has an intended time, and its latency counts from then: a thread that is late, or a server
//! that stalls, does not hide the waiting time (no coordinated omission). Requests do not wait for earlier answers
//! then. Without a rate, the next request of a flow is sent when the previous one was answered.

mod answer;
mod check;
mod choice;
mod flow;
mod packet;
mod service;
mod sink;
mod stream;
mod tally;
mod thread;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::error::{LoadError, ThreadError};
use crate::result::{BitRateLayer, LoadResult, Unit};
use crate::rng::Rng;
use crate::side::{LoadGroup, LoadGroups, Pattern, Protocol, Taken};
use tally::Tally;
use thread::Job;

pub use answer::answer;
pub use check::{load as check, one_host};
pub use service::LoadService;
pub use sink::sink;

/// An answer later than this counts as lost; answers that are in flight at the end may still arrive within this time.
pub const LOST_AFTER: Duration = Duration::from_secs(2);

/// Runs all groups at the same time, warm-up first. Blocks until it is over or `stop` is set.
///
/// Errors: the request is refused; a socket, a thread or its CPU is not available (with errno); `stop` was set; or no
/// message got through, with the first error.
pub fn run(load: &LoadGroups, stop: &AtomicBool) -> Result<Vec<LoadResult>, LoadError> {
    check::load(load)?;
    let sockets: u64 = load.groups.iter().map(|g| u64::from(g.flows.max(g.threads)) + u64::from(g.threads)).sum();
    // Reserve for other files of this process.
    ringwise_sys::load::room_for_files(sockets + 256)?;
    let mut rng = Rng::new(load.seed ^ u64::from(std::process::id()));
    let tag = rng.next_u64() as u32;
    let tallies = std::thread::scope(|scope| -> Result<Vec<Vec<Tally>>, LoadError> {
        let (ready, all_ready) = mpsc::channel();
        let mut started = Vec::new();
        for g in &load.groups {
            let mut threads = Vec::new();
            for job in jobs(g, load, tag, &mut rng) {
                let (go, wait) = mpsc::channel::<Instant>();
                let ready = ready.clone();
                let work = move || job.work(&ready, &wait, stop);
                let builder = std::thread::Builder::new().name("load".into()).stack_size(256 << 10);
                let handle = builder.spawn_scoped(scope, work).map_err(ThreadError::not_started)?;
                threads.push((go, handle));
            }
            started.push(threads);
        }
        drop(ready);
        for _ in 0..started.iter().map(Vec::len).sum() {
            all_ready.recv().map_err(|_| ThreadError::EndedEarly { thread: "load thread" })??;
        }
        // All threads begin together. After an error above, the channels are dropped and the threads end at once.
        let start = Instant::now() + Duration::from_millis(2);
        for (go, _) in started.iter().flatten() {
            let _ = go.send(start);
        }
        let join = |(_, handle): (_, std::thread::ScopedJoinHandle<Tally>)| {
            handle.join().map_err(|_| LoadError::ThreadPanicked)
        };
        started.into_iter().map(|threads| threads.into_iter().map(join).collect()).collect()
    })?;
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(LoadError::Stopped);
    }
    load.groups.iter().zip(tallies).map(|(g, t)| result(g, load.time, t)).collect()
}

/// Flow f belongs to thread f modulo the number of threads. A thread's share of the rate is proportional to its flows.
fn jobs(g: &LoadGroup, load: &LoadGroups, tag: u32, rng: &mut Rng) -> Vec<Job> {
    let flows = g.flows.max(g.threads);
    let weigh = |ranks: &[u32]| ranks.iter().map(|r| choice::weight(*r, g.skew)).sum::<f64>();
    let ranks: Vec<Vec<u32>> =
        (0..g.threads).map(|t| (t..flows).step_by(g.threads as usize).collect::<Vec<u32>>()).collect();
    let total: f64 = ranks.iter().map(|r| weigh(r)).sum();
    let of_list = |i: usize, n: usize| if n == 0 { None } else { Some(i % n) };
    ranks
        .into_iter()
        .enumerate()
        .map(|(i, ranks)| Job {
            protocol: g.protocol,
            pattern: g.pattern,
            size: g.size_bytes,
            cpu: of_list(i, g.cpus.len()).map(|c| g.cpus[c]),
            to: g.to[i % g.to.len()],
            per_s: g.per_s.map(|r| r * weigh(&ranks) / total),
            // The threads are offset, so that they do not send at the same moments.
            phase: (i as f64 + 0.5) / f64::from(g.threads),
            skew: g.skew,
            // Each group and each run has its own seed.
            tag: tag ^ (rng.next_u64() as u32),
            seed: rng.next_u64(),
            ranks,
            warmup: load.warmup,
            time: load.time,
        })
        .collect()
}

fn result(g: &LoadGroup, time: Duration, tallies: Vec<Tally>) -> Result<LoadResult, LoadError> {
    let mut all = Tally::default();
    let mut busiest = 0.0_f64;
    for t in &tallies {
        busiest = busiest.max(t.cpu.as_secs_f64() / time.as_secs_f64() * 100.0);
        all.merge(t);
    }
    let one_way = g.pattern == Pattern::Send;
    let through = if one_way { all.sent + all.bytes } else { all.done + all.answered };
    if let (0, Some(first)) = (through, &all.first_error) {
        return Err(LoadError::NothingThrough { first: Box::new(first.clone()), errors: all.errors });
    }
    let per_s = |n: u64| n as f64 / time.as_secs_f64();
    let size = f64::from(g.size_bytes);
    let unit = match (one_way, g.protocol) {
        (false, _) => Unit::Transactions,
        (true, Protocol::Udp) => Unit::Packets,
        (true, Protocol::Tcp) => Unit::Bytes,
    };
    // The kernel delivers everything that a stream accepted.
    let done = if one_way && g.protocol == Protocol::Tcp { per_s(all.sent) } else { per_s(all.done) };
    let bits_per_s = match unit {
        Unit::Transactions => per_s(all.done) * size * 16.0,
        Unit::Packets => per_s(all.sent) * size * 8.0,
        Unit::Bytes => per_s(all.bytes) * 8.0,
    };
    let lost = all.asked.saturating_sub(all.answered) as f64 / all.asked.max(1) as f64 * 100.0;
    Ok(LoadResult {
        group: g.name.clone(),
        unit,
        threads: g.threads,
        offered_per_s: g.per_s,
        sent_per_s: per_s(all.sent),
        done_per_s: done,
        lost_percent: (!one_way && all.asked > 0).then_some(lost),
        bits_per_s,
        counted: BitRateLayer::Payload,
        latency: all.latency.latency(g.per_s.is_some()),
        busiest_thread_percent: Some(busiest),
        generator_cpu_percent: None,
        trouble: all.trouble(),
    })
}

/// Completes the results of a one-way load over UDP with the counts of the sinks. The sinks must have been started
/// before the load and read after it, and must not have served another load.
pub fn arrived(result: &mut LoadResult, time: Duration, taken: &[Taken]) {
    if result.unit != Unit::Packets {
        return;
    }
    let packets: u64 = taken.iter().map(|t| t.packets).sum();
    let sent = result.sent_per_s * time.as_secs_f64();
    result.done_per_s = packets as f64 / time.as_secs_f64();
    result.lost_percent = (sent > 0.0).then(|| (1.0 - packets as f64 / sent).max(0.0) * 100.0);
    if result.sent_per_s > 0.0 {
        result.bits_per_s *= result.done_per_s / result.sent_per_s;
    }
}

#[cfg(test)]
mod tests;
