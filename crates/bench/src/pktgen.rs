//! The kernel's packet generator, through its files. The functions here make and parse their text; [`run`] writes and
//! reads the files.
//!
//! The files belong to the network namespace of the calling thread. A write of `start` returns when every thread has
//! sent all of its packets, so another thread writes it. Facts of Linux 5.10 to 7.3, `net/core/pktgen.c`:
//!
//! - `pgctrl` cuts off the last byte of a write, so every command ends with a newline.
//! - The write of an unknown flag succeeds, so the `Result:` of the file is read as well.
//! - Random addresses and all ports stay below their maximum; addresses that are stepped through reach it.
//! - `clone_skb` N sends each frame N times; 0 and 1 are the same.
//! - The thread executes `rem_device_all` later; a device that is added before that is removed as well.
//! - `start` starts every device that is configured in the namespace, so no others may be configured.
//! - The `Result:` of a port is about the whole run; its progress is read while it runs.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{HostError, PktgenError, PortFault};
use crate::forward::{FCS_BYTES, FRAME_MIN_BYTES, line_rate_per_s};
use crate::result::{BitRateLayer, LoadResult, Unit};
use crate::side::{DevCount, Pktgen, PktgenPort};

/// The pktgen directory of the calling thread's network namespace, which may differ from that of its process.
const DIR: &str = "/proc/thread-self/net/pktgen";
/// The port `discard`, on which no program answers.
const UDP_PORT: u16 = 9;
/// The longest frame without FCS at the largest MTU of igb and similar devices.
pub(crate) const FRAME_MAX_BYTES: u32 = 9_216 + 14;
/// Upper limit of a run.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(3_600);
/// A thread removes its devices within an eighth of a second, on a busy guest later.
const LET_GO: Duration = Duration::from_secs(10);
/// After this time, packets in flight have arrived or are lost. A slow CPU needs long for full rings, and what it leaves would be counted in
/// the next trial.
const ARRIVES: Duration = Duration::from_secs(15);
/// Packets of other traffic between two readings.
const OTHERS: u64 = 2;
const COPIES_MAX: u32 = 1_000_000;

// ------------------------------------------------------------------ commands

/// Checks a request before anything is changed.
pub(crate) fn check(p: &Pktgen) -> Result<(), PktgenError> {
    if p.ports.is_empty() {
        return Err(PktgenError::NoPort);
    }
    if p.time.is_zero() || p.warmup.saturating_add(p.time) > TIME_MAX {
        return Err(PktgenError::Time { warmup: p.warmup, time: p.time, most: TIME_MAX });
    }
    for (i, port) in p.ports.iter().enumerate() {
        let dev = &port.dev;
        if !is_name(dev) {
            return Err(PktgenError::NotAName(dev.clone()));
        }
        if p.ports[..i].iter().any(|other| other.dev == *dev) {
            return Err(PktgenError::NamedTwice(dev.clone()));
        }
        check_port(port).map_err(|fault| PktgenError::Port { dev: dev.clone(), fault })?;
    }
    Ok(())
}

fn check_port(port: &PktgenPort) -> Result<(), PortFault> {
    if unicast(&port.to_mac).is_none() {
        return Err(PortFault::Mac(port.to_mac.clone()));
    }
    let (least, most) = (FRAME_MIN_BYTES, FRAME_MAX_BYTES);
    if !(least..=most).contains(&port.frame_bytes) {
        return Err(PortFault::FrameSize { found: port.frame_bytes, least, most });
    }
    // pktgen stores `delay`: whole nanoseconds between packets.
    if let Some(rate) = port.per_s
        && !(1.0..=1e9).contains(&rate)
    {
        return Err(PortFault::Rate(rate));
    }
    if !(1..=COPIES_MAX).contains(&port.copies) {
        return Err(PortFault::Copies { found: port.copies, most: COPIES_MAX });
    }
    range("sources", port.sources)?;
    range("destinations", port.destinations)?;
    let (low, high) = port.source_ports;
    if low > high { Err(PortFault::PortsBackwards(low, high)) } else { Ok(()) }
}

fn is_name(dev: &str) -> bool {
    (1..16).contains(&dev.len()) && !matches!(dev, "." | "..") && dev.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
}

fn unicast(mac: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = mac.split(':');
    for b in &mut bytes {
        let part = parts.next().filter(|p| p.len() == 2 && p.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *b = u8::from_str_radix(part, 16).ok()?;
    }
    (parts.next().is_none() && bytes[0] & 1 == 0 && bytes != [0; 6]).then_some(bytes)
}

/// First and last address, as numbers.
fn range(what: &'static str, (first, last): (IpAddr, IpAddr)) -> Result<(u32, u32), PortFault> {
    let (IpAddr::V4(a), IpAddr::V4(b)) = (first, last) else {
        return Err(PortFault::NotIpv4 { what, first, last });
    };
    if a > b {
        return Err(PortFault::AddressesBackwards { what, first, last });
    }
    if a.is_multicast() || b.is_multicast() || b.is_broadcast() {
        return Err(PortFault::NotUnicast { what, first, last });
    }
    Ok((a.into(), b.into()))
}

/// The commands for a port's own file, after it was added to its thread.
///
/// `count`: the port stops by itself after this number of packets, unless it is stopped earlier. Errors: as [`check`].
pub(crate) fn words(port: &PktgenPort, count: u64) -> Result<Vec<String>, PortFault> {
    let (src_min, src_max) = range("sources", port.sources)?;
    let (dst_min, dst_max) = range("destinations", port.destinations)?;
    let ip = |n: u32| Ipv4Addr::from(n);
    // Random addresses stay below their maximum.
    let top = |min: u32, max: u32, random: bool| if random && max > min { max.saturating_add(1) } else { max };
    let (low, high) = port.source_ports;
    let mut w = vec![
        format!("count {count}"),
        // The size of the frame without FCS.
        format!("pkt_size {}", port.frame_bytes),
        "delay 0".into(),
        format!("dst_mac {}", port.to_mac),
        format!("src_min {}", ip(src_min)),
        format!("src_max {}", ip(top(src_min, src_max, port.random_sources))),
        format!("dst_min {}", ip(dst_min)),
        format!("dst_max {}", ip(top(dst_min, dst_max, port.random_destinations))),
        format!("udp_src_min {low}"),
        // The maximum is exclusive, so the last port, 65535, cannot be used.
        format!("udp_src_max {}", if high > low { high.saturating_add(1) } else { high }),
        format!("udp_dst_min {UDP_PORT}"),
        format!("udp_dst_max {UDP_PORT}"),
    ];
    if port.random_sources && src_max > src_min {
        w.push("flag IPSRC_RND".into());
    }
    if port.random_destinations && dst_max > dst_min {
        w.push("flag IPDST_RND".into());
    }
    // Only if requested: interfaces whose frames may not be shared refuse it.
    if port.copies > 1 {
        w.push(format!("clone_skb {}", port.copies));
    }
    if let Some(rate) = port.per_s {
        w.push(format!("ratep {}", rate.round() as u64));
    }
    Ok(w)
}

/// The number of packets after which a port stops by itself: what it can send in its time and two more seconds.
///
/// `speed_mbit_per_s`: of the port, for a load without a rate.
pub(crate) fn bound(port: &PktgenPort, time: Duration, speed_mbit_per_s: Option<u64>) -> u64 {
    // The speed may be that of a port of another namespace, so a low speed is ignored.
    let line = line_rate_per_s(speed_mbit_per_s.filter(|s| *s > 0).unwrap_or(100_000).max(1_000), port.frame_bytes);
    (port.per_s.unwrap_or(line).min(line.max(1.0)) * (time.as_secs_f64() + 2.0)).ceil() as u64
}

// ------------------------------------------------------------------ reports

/// The progress of a port, from its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub sent: u64,
    /// Frames that the driver or its queue refused.
    pub errors: u64,
    /// The kernel's clock, µs: now, or when the port was stopped.
    pub at_us: u64,
    /// Time in µs that it waited for the next packet.
    pub idle_us: u64,
}

/// The text after the last `Result:`, over all its lines; `None` if it is empty.
pub(crate) fn result_of(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once("Result:")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Reads a port's file.
///
/// Errors: the file reports no run, with pktgen's own message.
pub(crate) fn progress(text: &str) -> Result<Progress, PktgenError> {
    let read = || {
        let (_, now) = text.split_once("Current:")?;
        let value = |key: &str| {
            let (_, rest) = now.split_once(key)?;
            rest.split_whitespace().next()?.trim_end_matches("us").parse::<u64>().ok()
        };
        let p = Progress {
            sent: value("pkts-sofar:")?,
            errors: value("errors:")?,
            at_us: value("stopped:")?,
            idle_us: value("idle:")?,
        };
        (value("started:")? > 0).then_some(p)
    };
    read().ok_or_else(|| PktgenError::NoRun { result: result_of(text) })
}

/// The devices in a thread's file: those that are sending, and those that are configured.
pub(crate) fn devices(text: &str) -> (Vec<String>, Vec<String>) {
    let after = |key: &str| -> Vec<String> {
        let line = text.lines().find_map(|l| l.trim().strip_prefix(key));
        line.map_or_else(Vec::new, |l| l.split_whitespace().map(str::to_string).collect())
    };
    (after("Running:"), after("Stopped:"))
}

/// What the ports have sent between two readings, one result each. Arrivals are unknown here: `done_per_s` is the rate
/// that was sent, until [`crate::forward::ForwardedPackets`] replaces it, and `lost_percent` is unknown.
pub(crate) fn loads(ports: &[PktgenPort], from: &[Progress], to: &[Progress]) -> Vec<LoadResult> {
    let idle = |i: usize| to[i].idle_us.saturating_sub(from[i].idle_us);
    let one = |(i, port): (usize, &PktgenPort)| {
        let elapsed_us = to[i].at_us.saturating_sub(from[i].at_us);
        let sent = to[i].sent.saturating_sub(from[i].sent);
        let per_s = if elapsed_us > 0 { sent as f64 * 1e6 / elapsed_us as f64 } else { 0.0 };
        // A thread waits for one of its ports at a time, and records the wait for that port.
        let same = ports.iter().enumerate().filter(|(_, p)| p.cpu == port.cpu);
        let refused = to[i].errors.saturating_sub(from[i].errors);
        let busy = elapsed_us.saturating_sub(same.map(|(j, _)| idle(j)).sum());
        LoadResult {
            group: if ports.len() == 1 { String::new() } else { port.dev.clone() },
            unit: Unit::Packets,
            threads: 1,
            offered_per_s: port.per_s,
            sent_per_s: per_s,
            done_per_s: per_s,
            lost_percent: None,
            bits_per_s: per_s * 8.0 * f64::from(port.frame_bytes + FCS_BYTES),
            counted: BitRateLayer::Frame,
            latency: None,
            busiest_thread_percent: (elapsed_us > 0).then(|| 100.0 * busy as f64 / elapsed_us as f64),
            generator_cpu_percent: None,
            trouble: (refused > 0).then(|| format!("{refused} frames were refused by {} or its queue", port.dev)),
        }
    };
    ports.iter().enumerate().map(one).collect()
}

// ------------------------------------------------------------------ the files

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Generated {
    /// The time after the warm-up, by pktgen's own counts.
    pub loads: Vec<LoadResult>,
    /// Counters before the first packet, after the warm-up, at the end of sending, and when no more packets arrive.
    pub counts: [Vec<DevCount>; 4],
}

/// Reads the counters of interfaces.
pub(crate) type Count<'a> = &'a dyn Fn(&[String]) -> Result<Vec<DevCount>, HostError>;

/// Sends from all ports at the same time, for the warm-up and `time`, or until `stop`. No device stays configured,
/// whatever happens.
///
/// Errors: see [`check`]; no pktgen; another program's pktgen is running; pktgen refused a command, with errno and its
/// own words; a port ended by itself, for example because its link is gone; it was stopped before the end of the
/// warm-up.
pub(crate) fn run(p: &Pktgen, stop: &AtomicBool, count: Count) -> Result<Generated, PktgenError> {
    check(p)?;
    let at = Files { dir: PathBuf::from(DIR) };
    at.ready()?;
    at.clear()?;
    let done = at.send(p, stop, count);
    // If both fail, the first error explains more.
    let cleared = at.clear();
    let mut generated = done?;
    cleared?;
    generated.counts[3] = quiet(&p.count, count)?;
    Ok(generated)
}

/// The counters when two readings in a row find no more than [`OTHERS`] received packets, or after [`ARRIVES`].
fn quiet(devs: &[String], count: Count) -> Result<Vec<DevCount>, HostError> {
    let end = Instant::now() + ARRIVES;
    let received = |c: &[DevCount]| c.iter().map(|c| c.rx_packets).sum::<u64>();
    let mut last = count(devs)?;
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = count(devs)?;
        if received(&now).saturating_sub(received(&last)) <= OTHERS || Instant::now() > end {
            return Ok(now);
        }
        last = now;
    }
}

struct Files {
    dir: PathBuf,
}

impl Files {
    fn read(&self, file: &str) -> Result<String, PktgenError> {
        let text = fs::read_to_string(self.dir.join(file));
        text.map_err(|e| PktgenError::Read { file: file.into(), error: e.into() })
    }

    /// Writes a command with its newline in one write, and reads its result.
    fn write_command(&self, file: &str, word: &str) -> Result<(), PktgenError> {
        let written = fs::write(self.dir.join(file), format!("{word}\n"));
        // `pgctrl` has no result.
        let said = if file == "pgctrl" { None } else { self.read(file).ok().and_then(|t| result_of(&t)) };
        // Some refusals keep the result of the previous command.
        let refusal = said.filter(|s| !s.starts_with("OK"));
        let (file, command) = (file.to_string(), word.to_string());
        match (written, refusal) {
            (Err(e), result) => Err(PktgenError::Write { file, command, error: e.into(), result }),
            (Ok(()), Some(result)) => Err(PktgenError::Refused { file, command, result }),
            (Ok(()), None) => Ok(()),
        }
    }

    fn ready(&self) -> Result<(), PktgenError> {
        match fs::metadata(&self.dir) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(PktgenError::NotLoaded),
            Err(e) => Err(PktgenError::Directory(e.into())),
        }
    }

    /// The names of the files: threads and devices.
    fn names(&self) -> Result<(Vec<String>, Vec<String>), PktgenError> {
        let list = fs::read_dir(&self.dir).map_err(|e| PktgenError::Directory(e.into()))?;
        let mut all: Vec<String> = list.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        all.retain(|n| n != "pgctrl");
        all.sort();
        Ok(all.into_iter().partition(|n| n.starts_with("kpktgend_")))
    }

    /// Removes every device, and waits until the threads have done so.
    fn clear(&self) -> Result<(), PktgenError> {
        let (threads, devs) = self.names()?;
        if devs.is_empty() {
            return Ok(());
        }
        for t in &threads {
            let (running, stopped) = devices(&self.read(t)?);
            if let Some(dev) = running.first() {
                return Err(PktgenError::InUse { dev: dev.clone(), thread: t.clone() });
            }
            if !stopped.is_empty() {
                self.write_command(t, "rem_device_all")?;
            }
        }
        let end = Instant::now() + LET_GO;
        loop {
            let (_, devs) = self.names()?;
            match devs.first() {
                None => return Ok(()),
                Some(dev) if Instant::now() > end => {
                    return Err(PktgenError::NotReleased { dev: dev.clone(), within: LET_GO });
                }
                Some(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn lay_down(&self, p: &Pktgen) -> Result<(), PktgenError> {
        for port in &p.ports {
            let kthread = format!("kpktgend_{}", port.cpu);
            let (threads, _) = self.names()?;
            if !threads.contains(&kthread) {
                return Err(PktgenError::NoThread { cpu: port.cpu, threads });
            }
            self.write_command(&kthread, &format!("add_device {}", port.dev))?;
            let count = bound(port, p.warmup + p.time, speed(&port.dev));
            let words = words(port, count).map_err(|fault| PktgenError::Port { dev: port.dev.clone(), fault })?;
            for word in words {
                self.write_command(&port.dev, &word)?;
            }
        }
        Ok(())
    }

    fn send(&self, p: &Pktgen, stop: &AtomicBool, count: Count) -> Result<Generated, PktgenError> {
        self.lay_down(p)?;
        let mut counts = [count(&p.count)?, Vec::new(), Vec::new(), Vec::new()];
        thread::scope(|s| {
            let start = s.spawn(|| self.write_command("pgctrl", "start"));
            let sending = || !start.is_finished();
            let mut measure = || {
                wait(p.warmup, stop, &sending);
                let from = self.progress(p, stop)?;
                counts[1] = count(&p.count)?;
                wait(p.time, stop, &sending);
                let to = self.progress(p, stop)?;
                counts[2] = count(&p.count)?;
                Ok(loads(&p.ports, &from, &to))
            };
            let loads = measure();
            while sending() {
                // This is repeated, because a `stop` before the threads have begun is lost.
                let _ = self.write_command("pgctrl", "stop");
                thread::sleep(Duration::from_millis(10));
            }
            let started = start.join().map_err(|_| PktgenError::StarterEnded)?;
            started.and(loads)
        })
        .map(|loads| Generated { loads, counts })
    }

    /// What each port has sent so far. Errors: a port has stopped sending, or nothing was sent before the stop.
    fn progress(&self, p: &Pktgen, stop: &AtomicBool) -> Result<Vec<Progress>, PktgenError> {
        let mut all = Vec::new();
        for port in &p.ports {
            // The threads begin within an eighth of a second.
            let end = Instant::now() + LET_GO;
            loop {
                let kthread = format!("kpktgend_{}", port.cpu);
                let (running, _) = devices(&self.read(&kthread)?);
                let text = self.read(&port.dev)?;
                let so_far = progress(&text);
                if running.contains(&port.dev) {
                    if let Ok(so_far) = so_far {
                        all.push(so_far);
                        break;
                    }
                } else if let Some(result) = result_of(&text).filter(|r| r.contains(" usec, ")) {
                    return Err(PktgenError::EndedByItself { dev: port.dev.clone(), result });
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(PktgenError::Stopped);
                }
                if Instant::now() > end {
                    return Err(PktgenError::NotBegun { dev: port.dev.clone(), within: LET_GO });
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(all)
    }
}

/// Waits until the time is over, `stop` is set, or the ports no longer send.
fn wait(time: Duration, stop: &AtomicBool, sending: &dyn Fn() -> bool) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) || !sending() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(20)));
    }
}

fn speed(dev: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/sys/class/net").join(dev).join("speed")).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[path = "pktgen_tests.rs"]
mod tests;
