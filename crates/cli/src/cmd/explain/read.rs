//! Populations from captures, from connections, from the output of other programs, or generated.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use ringwise_flow::synthetic::Synthetic;
use ringwise_flow::{CountedFlow, FlowSpec, Tuple, lines, population};
use ringwise_kfmt::packet;
use ringwise_kfmt::pcap::{PcapStep, Reader};
use ringwise_kfmt::sockets::Connected;
use ringwise_sys::{Host, proc};

use super::population::Population;
use super::seen;
use crate::args::{Common, ExplainArgs};
use crate::exit::{Fail, Result};
use ringwise_model::shell::quote;
use ringwise_text::{plural, thousands};

pub(super) fn of_spec(spec: &FlowSpec) -> Population {
    let flows = spec.all().into_iter().map(|tuple| CountedFlow { tuple, packets: 1, bytes: 0 });
    let what = match (spec.exact(), spec.src_port, spec.dst_port) {
        (Some(t), ..) => t.to_string(),
        (_, None, None) => "65,536 pairs of ports".into(),
        _ => "every value of the open port".into(),
    };
    Population { from: what, flows: flows.collect(), notes: Vec::new(), uncounted: true, seen: Vec::new() }
}

/// Reads flows from stdin. A line that is not a flow is an error with the number of the line.
pub(super) fn stdin(as_they_come: bool) -> Result<Population> {
    let mut p = Population { from: "standard input".into(), ..Population::default() };
    let mut counted = false;
    for (i, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|e| Fail::io("standard input", &e))?;
        let bad = |e: String| Fail::error(format!("standard input, line {}: {e}", i + 1));
        if line.starts_with('{') {
            seen::document(&line, &mut p).map_err(bad)?;
            counted = true;
            continue;
        }
        match lines::parse(&line) {
            Ok(Some(c)) => {
                counted |= c.packets > 1 || c.bytes > 0;
                p.flows.push(c);
            }
            Ok(None) => {}
            Err(e) => return Err(bad(e.to_string())),
        }
    }
    if !as_they_come {
        p.flows = population::merged(p.flows);
    }
    p.uncounted = !counted;
    Ok(p)
}

pub(super) fn population(a: &ExplainArgs, host: &dyn Host, common: &Common) -> Result<Population> {
    if let Some(words) = &a.synthetic {
        let s = Synthetic::parse(words).map_err(|e| Fail::usage(format!("--synthetic: {e}")))?;
        let flows = s.flows();
        let mut notes = Vec::new();
        if flows.len() < s.count as usize {
            notes.push(format!(
                "skipped, because they equal other flows: {}",
                plural(s.count as usize - flows.len(), "flow")
            ));
        }
        let from = format!("{} generated, Zipf exponent {}", plural(flows.len(), "flow"), s.zipf);
        return Ok(Population { from, flows: population::merged(flows), notes, ..Population::default() });
    }
    if let Some(file) = &a.pcap {
        return pcap(file, common);
    }
    if host.is_recorded() {
        return Err(Fail::usage(
            "a recording contains no connections; with --from use --pcap, --synthetic or - (stdin)",
        ));
    }
    if a.conntrack {
        let path = "/proc/net/nf_conntrack";
        let text = host.read_text(path).map_err(|e| {
            Fail::error(format!("{path}: {}", e.reason())).next("conntrack -L | ringwise explain - DEV")
        })?;
        let mut all = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let c = lines::parse(line).map_err(|e| Fail::error(format!("{path}, line {}: {e}", i + 1)))?;
            all.extend(c);
        }
        let uncounted = all.iter().all(|c| c.packets == 1);
        return Ok(Population {
            from: "connection tracking".into(),
            flows: population::merged(all),
            uncounted,
            ..Population::default()
        });
    }
    sockets(host)
}

fn sockets(host: &dyn Host) -> Result<Population> {
    let talks = ringwise_discover::flow_path::open_connections(host).map_err(Fail::error)?;
    let mut notes = Vec::new();
    if let Some(why) = &talks.uncounted {
        notes.push(format!("read from /proc/net, without packet counts: {why}"));
    }
    let remote = |c: &Connected| !c.peer.0.is_loopback() && c.peer.0.is_ipv6() == c.local.0.is_ipv6();
    let all: Vec<_> = talks.all.into_iter().filter(|(_, t)| remote(&t.ends)).collect();
    let uncounted = all.iter().all(|t| t.1.received.is_none());
    let (bare, all_of_them) = (all.iter().filter(|t| t.1.received.is_none()).count(), all.len());
    if !uncounted && bare > 0 {
        notes.push(format!("{bare} of {all_of_them} have no packet count (UDP): each counts as one packet"));
    }
    // Packets arrive from the other end.
    let flows = all.into_iter().map(|(protocol, t)| {
        let (src, dst) = (t.ends.peer, t.ends.local);
        let tuple =
            Tuple { src: src.0, dst: dst.0, protocol, ports: Some((src.1, dst.1)), fragment: false, vlan: None };
        let (packets, bytes) = t.received.unwrap_or((1, 0));
        CountedFlow { tuple, packets: u64::from(packets), bytes }
    });
    let since = if uncounted { "" } else { ", packets received since each began" };
    let from = format!("this host's connections{since}");
    Ok(Population { from, flows: population::merged(flows.collect()), notes, uncounted, seen: Vec::new() })
}

/// Size of the buffer in bytes. Memory is needed for flows, not for packets.
const CHUNK: usize = 1 << 20;
/// Flows above this number are counted but not stored, because the table would not fit into the memory of small hosts.
const MOST_FLOWS: usize = 4_000_000;

fn pcap(path: &Path, common: &Common) -> Result<Population> {
    let name = path.display().to_string();
    let bad = |e: String| Fail::error(format!("{name}: {e}"));
    let mut file: Box<dyn Source> = if path == Path::new("-") {
        Box::new(Pipe(std::io::stdin()))
    } else {
        Box::new(File::open(path).map_err(|e| Fail::io(&name, &e))?)
    };
    let size = std::fs::metadata(path).map(|m| m.len()).unwrap_or(0);
    let mut progress = Progress::new(size, common);
    let mut c = Counter::default();
    let (mut reader, mut held, mut done) = (Reader::new(), Vec::with_capacity(CHUNK), 0u64);
    let (mut start, mut ended) = (0usize, false);
    loop {
        let step = reader.step(&held[start..]).map_err(|e| bad(e.to_string()))?;
        match step {
            PcapStep::Packet { used, link, data, wire } => {
                c.count(link, data, wire);
                start += used;
                done += used as u64;
            }
            PcapStep::Skip(n) => {
                let here = (held.len() - start) as u64;
                done += n;
                if n <= here {
                    start += n as usize;
                } else {
                    start = held.len();
                    if !file.skip(n - here).map_err(|e| bad(e.to_string()))? {
                        c.cut = true;
                        break;
                    }
                }
            }
            PcapStep::Need(_) if ended => {
                c.cut |= start < held.len();
                break;
            }
            PcapStep::Need(n) => {
                held.drain(..start);
                start = 0;
                let more = n.max(CHUNK) - held.len().min(n.max(CHUNK) - 1);
                let got = file.more(&mut held, more).map_err(|e| bad(e.to_string()))?;
                ended = got == 0;
            }
        }
        progress.at(done);
    }
    progress.end();
    if c.packets == 0 {
        let why = if c.cut { "the file ends before the first packet" } else { "the file contains no packets" };
        return Err(bad(why.into()).next(format!("tcpdump -i DEV -c 100000 -s 128 -w {}", quote(&name))));
    }
    Ok(c.into_population(&name))
}

/// A source of bytes in order.
trait Source {
    fn more(&mut self, into: &mut Vec<u8>, most: usize) -> std::io::Result<usize>;
    /// False: the source ends before.
    fn skip(&mut self, n: u64) -> std::io::Result<bool>;
}

impl Source for File {
    fn more(&mut self, into: &mut Vec<u8>, most: usize) -> std::io::Result<usize> {
        self.take(most as u64).read_to_end(into)
    }

    fn skip(&mut self, n: u64) -> std::io::Result<bool> {
        let (at, end) = (self.stream_position()?, self.metadata()?.len());
        let to = at.saturating_add(n);
        self.seek(SeekFrom::Start(to.min(end)))?;
        Ok(to <= end)
    }
}

struct Pipe(std::io::Stdin);

impl Source for Pipe {
    fn more(&mut self, into: &mut Vec<u8>, most: usize) -> std::io::Result<usize> {
        self.0.lock().take(most as u64).read_to_end(into)
    }

    fn skip(&mut self, n: u64) -> std::io::Result<bool> {
        Ok(std::io::copy(&mut self.0.lock().take(n), &mut std::io::sink())? == n)
    }
}

#[derive(Default)]
struct Counter {
    flows: std::collections::HashMap<Tuple, (u64, u64)>,
    packets: u64,
    no_flow: BTreeMap<packet::NoFlow, u64>,
    tunnels: BTreeMap<&'static str, u64>,
    extended: u64,
    fragments: u64,
    too_many: u64,
    cut: bool,
}

impl Counter {
    fn count(&mut self, link: u32, data: &[u8], wire: u32) {
        self.packets += 1;
        let seen = match packet::parse_frame(link, data) {
            Ok(s) if !s.short || s.fragment => s,
            other => {
                let why = other.err().unwrap_or(packet::NoFlow::Short);
                *self.no_flow.entry(why).or_default() += 1;
                return;
            }
        };
        if let Some(t) = seen.tunnel {
            *self.tunnels.entry(t).or_default() += 1;
        }
        self.extended += u64::from(seen.extended);
        self.fragments += u64::from(seen.fragment);
        let tuple = Tuple::of_packet(&seen);
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&tuple) {
            self.too_many += 1;
            return;
        }
        let e = self.flows.entry(tuple).or_default();
        *e = (e.0 + 1, e.1 + u64::from(wire));
    }

    fn into_population(self, name: &str) -> Population {
        let mut notes = Vec::new();
        for (why, n) in &self.no_flow {
            notes.push(format!("{} skipped: {why}", plural(*n as usize, "packet")));
        }
        for (tunnel, n) in &self.tunnels {
            notes.push(format!(
                "{} of {tunnel} tunnels counted by their outer header, as most devices hash them",
                plural(*n as usize, "packet")
            ));
        }
        if self.extended > 0 {
            notes.push(format!(
                "{} with IPv6 extension headers counted with the ports after them; devices may hash them differently",
                plural(self.extended as usize, "packet")
            ));
        }
        if self.fragments > 0 {
            notes.push(format!(
                "{} are fragments: hashed by their addresses only",
                plural(self.fragments as usize, "packet")
            ));
        }
        if self.too_many > 0 {
            notes.push(format!(
                "{} of other flows not counted: there are more than {} flows",
                plural(self.too_many as usize, "packet"),
                thousands(MOST_FLOWS as u64)
            ));
        }
        if self.cut {
            notes.push("the file is cut off within its last packet".into());
        }
        let flows = self.flows.into_iter().map(|(tuple, (packets, bytes))| CountedFlow { tuple, packets, bytes });
        let mut flows: Vec<CountedFlow> = flows.collect();
        population::in_order(&mut flows);
        let from = format!("{name}: {}, {}", plural(self.packets as usize, "packet"), plural(flows.len(), "flow"));
        Population { from, flows, notes, ..Population::default() }
    }
}

/// A progress line that a terminal overwrites. Prints nothing if stderr is not a terminal.
struct Progress {
    size: u64,
    shown: Instant,
    on: bool,
    any: bool,
}

impl Progress {
    fn new(size: u64, common: &Common) -> Self {
        let on = !common.quiet && size > 0 && proc::is_tty(&std::io::stderr());
        Self { size, shown: Instant::now(), on, any: false }
    }

    fn at(&mut self, done: u64) {
        if self.on && self.shown.elapsed() > Duration::from_millis(200) {
            self.shown = Instant::now();
            self.any = true;
            let percent = (done.min(self.size) * 100 / self.size) as usize;
            eprint!("\r[{:<25}] {percent:3} % of {} MB", "#".repeat(percent / 4), self.size / 1_000_000);
        }
    }

    fn end(&mut self) {
        if self.any {
            eprint!("\r{:60}\r", "");
        }
    }
}
