//! Counters and layouts as one line of `path=number` words, as recordings contain them. Pure.
//!
//! This code does not use serde, because derived readers of these maps would add a tenth of a megabyte to the program.
//! Unknown words are skipped.

use ringwise_model::{Counter, CpuCounter, CpuId, IrqId, NodeId, QueueCounter};

use crate::counters::{Counters, Counts, CpuSample, LinkCounters, Source};
use crate::layout::{Layout, NapiThread};

const SOURCES: [Source; 4] = [Source::Nothing, Source::Qstats, Source::Ethtool, Source::Device];

/// Appends ` a/b/c=5`, or `-` instead of a missing number.
fn put(out: &mut String, path: &[&str], n: Option<u64>) {
    out.push(' ');
    for (i, part) in path.iter().enumerate() {
        if i > 0 {
            out.push('/');
        }
        out.push_str(part);
    }
    out.push('=');
    match n {
        Some(n) => out.push_str(&n.to_string()),
        None => out.push('-'),
    }
}

fn counts(out: &mut String, path: &[&str], c: &Counts) {
    for (name, n) in c {
        let mut whole = path.to_vec();
        whole.push(name);
        put(out, &whole, Some(*n));
    }
}

/// Writes the counters of a CPU by name, its idle states among them.
fn cpu(out: &mut String, id: &str, c: &CpuSample) {
    for (counter, n) in c.counts.iter().filter(|(c, _)| *c == CpuCounter::Idle) {
        put(out, &["c", id, counter.name()], Some(n));
    }
    for (state, us) in &c.idle_us {
        put(out, &["c", id, &format!("{IDLE_STATE}{state}")], Some(*us));
    }
    for (counter, n) in c.counts.iter().filter(|(c, _)| *c != CpuCounter::Idle) {
        put(out, &["c", id, counter.name()], Some(n));
    }
}

/// Prefix of the name of an idle state.
const IDLE_STATE: &str = "idle_us:";

/// Calls `each` for every word of a line.
fn words<'a>(line: &'a str, mut each: impl FnMut(&[&'a str], Option<u64>) -> Option<()>) {
    for word in line.split_ascii_whitespace() {
        // The name of an interface may contain an equals sign.
        if let Some((path, n)) = word.rsplit_once('=') {
            let path: Vec<&str> = path.split('/').collect();
            let _ = each(&path, n.parse().ok());
        }
    }
}

impl Counters {
    /// The counters as one line, without `unread`.
    pub fn to_line(&self) -> String {
        let mut out = format!("sample {} {}", self.at_us, self.unix_time);
        for (name, l) in &self.links {
            put(&mut out, &["l", name, "i"], Some(u64::from(l.ifindex)));
            put(&mut out, &["l", name, "s"], SOURCES.iter().position(|s| *s == l.source).map(|n| n as u64));
            counts(&mut out, &["l", name, "c"], &l.counts);
            for (dir, queues) in [("r", &l.rx), ("t", &l.tx)] {
                for (id, c) in queues {
                    let id = id.to_string();
                    for (counter, n) in c.iter() {
                        put(&mut out, &["l", name, dir, &id, counter.name()], Some(n));
                    }
                }
            }
        }
        for name in &self.silent {
            put(&mut out, &["s", name], None);
        }
        for (id, c) in &self.cpus {
            let id = id.to_string();
            put(&mut out, &["c", &id], None);
            cpu(&mut out, &id, c);
        }
        for (irq, cpus) in &self.irqs {
            put(&mut out, &["i", &irq.to_string()], None);
            for (cpu, n) in cpus {
                put(&mut out, &["i", &irq.to_string(), &cpu.to_string()], Some(*n));
            }
        }
        for (pid, ns) in &self.threads_ns {
            put(&mut out, &["n", &pid.to_string()], Some(*ns));
        }
        counts(&mut out, &["h"], &self.host);
        out
    }

    /// Parses a line of counters. `None`: the line is invalid.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut head = line.strip_prefix("sample ")?.splitn(3, ' ');
        let mut out =
            Self { at_us: head.next()?.parse().ok()?, unix_time: head.next()?.parse().ok()?, ..Self::default() };
        words(head.next().unwrap_or_default(), |path, n| {
            match path {
                ["l", name, rest @ ..] => link(out.links.entry(name.to_string()).or_default(), rest, n?)?,
                ["s", name] => out.silent.push(name.to_string()),
                ["c", cpu, rest @ ..] => {
                    let c = out.cpus.entry(CpuId(cpu.parse().ok()?)).or_default();
                    if let [name] = rest {
                        cpu_word(c, name, n?);
                    }
                }
                ["i", irq, rest @ ..] => {
                    let i = out.irqs.entry(IrqId(irq.parse().ok()?)).or_default();
                    if let [cpu] = rest {
                        i.insert(CpuId(cpu.parse().ok()?), n?);
                    }
                }
                ["n", pid] => drop(out.threads_ns.insert(pid.parse().ok()?, n?)),
                ["h", name] => drop(out.host.insert(name.to_string(), n?)),
                _ => {}
            }
            Some(())
        });
        Some(out)
    }
}

fn cpu_word(c: &mut CpuSample, name: &str, n: u64) {
    match name.strip_prefix(IDLE_STATE) {
        Some(state) => match c.idle_us.iter_mut().find(|(s, _)| **s == *state) {
            Some((_, us)) => *us = n,
            None => c.idle_us.push((state.into(), n)),
        },
        None => {
            if let Some(counter) = CpuCounter::from_name(name) {
                c.counts.set(counter, n);
            }
        }
    }
}

fn link(l: &mut LinkCounters, path: &[&str], n: u64) -> Option<()> {
    match path {
        ["i"] => l.ifindex = u32::try_from(n).ok()?,
        ["s"] => l.source = *SOURCES.get(n as usize)?,
        ["c", name] => drop(l.counts.insert(name.to_string(), n)),
        [dir, id, name] => {
            let queues = match *dir {
                "r" => &mut l.rx,
                "t" => &mut l.tx,
                _ => return None,
            };
            queues.entry(id.parse().ok()?).or_default().set(QueueCounter::from_name(name)?, n);
        }
        _ => {}
    }
    Some(())
}

impl Layout {
    /// The layout as one line without a line feed; [`Layout::from_line`] reads it.
    pub fn to_line(&self) -> String {
        let mut out = "layout".to_string();
        for (name, w) in &self.links {
            put(&mut out, &["l", name, "n"], w.node.map(|n| u64::from(n.0)));
            put(&mut out, &["l", name, "m"], w.speed_mbps.map(u64::from));
            if let Some(d) = w.driver.as_ref().filter(|d| !d.contains(['/', ' '])) {
                put(&mut out, &["l", name, "d", d], None);
            }
            for (dir, queues) in [("r", &w.rx), ("t", &w.tx)] {
                for (id, irq) in queues {
                    put(&mut out, &["l", name, dir, &id.to_string()], irq.map(|i| u64::from(i.0)));
                }
            }
            if let Some(threads) = &w.threads {
                put(&mut out, &["l", name, "h"], Some(threads.len() as u64));
            }
            for (queue, t) in w.threads.iter().flatten() {
                let cpu = t.cpu.map(|c| u64::from(c.0));
                put(&mut out, &["l", name, "h", &queue.to_string(), &t.pid.to_string()], cpu);
            }
            for (irq, cpus) in &w.goes_to {
                for cpu in cpus.iter() {
                    put(&mut out, &["l", name, "g", &irq.to_string()], Some(u64::from(cpu.0)));
                }
            }
        }
        for (cpu, node) in &self.nodes {
            put(&mut out, &["n", &cpu.to_string()], Some(u64::from(node.0)));
        }
        out
    }

    /// Parses a line of a layout. `None`: the line is invalid.
    pub fn from_line(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("layout")?;
        let mut out = Self::default();
        words(rest, |path, n| {
            let n = n.and_then(|n| u32::try_from(n).ok());
            match path {
                ["n", cpu] => drop(out.nodes.insert(CpuId(cpu.parse().ok()?), NodeId(n?))),
                ["l", name, rest @ ..] => {
                    let w = out.links.entry(name.to_string()).or_default();
                    match rest {
                        ["n"] => w.node = n.map(NodeId),
                        ["m"] => w.speed_mbps = n,
                        ["d", driver] => w.driver = Some(driver.to_string()),
                        ["r", id] => drop(w.rx.insert(id.parse().ok()?, n.map(IrqId))),
                        ["t", id] => drop(w.tx.insert(id.parse().ok()?, n.map(IrqId))),
                        ["h"] => drop(w.threads.get_or_insert_default()),
                        ["h", queue, pid] => {
                            let thread = NapiThread { pid: pid.parse().ok()?, cpu: n.map(CpuId) };
                            w.threads.get_or_insert_default().insert(queue.parse().ok()?, thread);
                        }
                        ["g", irq] => w.goes_to.entry(IrqId(irq.parse().ok()?)).or_default().insert(CpuId(n?)),
                        _ => {}
                    }
                }
                _ => {}
            }
            Some(())
        });
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Wiring;

    fn some(list: &[(&str, u64)]) -> Counts {
        list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
    }

    #[test]
    fn go_round() {
        let link = LinkCounters {
            ifindex: 2,
            counts: some(&[("rx_packets", u64::MAX), ("tx_bytes", 0)]),
            source: Source::Ethtool,
            rx: [(7, [(QueueCounter::Packets, 5), (QueueCounter::HwDrops, 0)].into())].into(),
            tx: [(0, [(QueueCounter::BqlLimit, 6)].into())].into(),
        };
        let cpu = CpuSample {
            counts: [(CpuCounter::Idle, 9), (CpuCounter::Iowait, 1), (CpuCounter::User, 0)].into(),
            idle_us: vec![("0POLL".into(), 4), ("1C1".into(), 5)],
        };
        let c = Counters {
            at_us: 5,
            unix_time: 6,
            links: [("eth=1".to_string(), link), ("lo".to_string(), LinkCounters::default())].into(),
            silent: vec!["eth9".into()],
            cpus: [(CpuId(3), cpu), (CpuId(4), CpuSample::default())].into(),
            irqs: [(IrqId(30), [(CpuId(3), 1)].into()), (IrqId(31), Default::default())].into(),
            threads_ns: [(812, 5_000_000_000)].into(),
            host: some(&[("Udp:RcvbufErrors", 7)]),
            unread: Vec::new(),
        };
        let want = "sample 5 6 l/eth=1/i=2 l/eth=1/s=2 l/eth=1/c/rx_packets=18446744073709551615 l/eth=1/c/tx_bytes=0 \
                    l/eth=1/r/7/hw_drops=0 l/eth=1/r/7/packets=5 l/eth=1/t/0/bql_limit=6 l/lo/i=0 l/lo/s=0 s/eth9=- \
                    c/3=- c/3/idle=9 c/3/idle_us:0POLL=4 c/3/idle_us:1C1=5 c/3/iowait=1 c/3/user=0 c/4=- i/30=- \
                    i/30/3=1 i/31=- n/812=5000000000 h/Udp:RcvbufErrors=7";
        assert_eq!(c.to_line(), want);
        assert_eq!(Counters::from_line(&c.to_line()), Some(c.clone()), "{}", c.to_line());
        let newer = c.to_line()
            + " z/unknown=1 l/lo/q/w/e/r=2 c/x=3 c/3/later=4 l/eth=1/r/7/later=5 l/eth=1/x/7/packets=6 nonsense";
        assert_eq!(Counters::from_line(&newer), Some(c));
        let w = Wiring {
            driver: Some("igb".into()),
            node: Some(NodeId(1)),
            rx: [(0, Some(IrqId(30))), (1, None)].into(),
            goes_to: [(IrqId(30), "1-3".parse().unwrap())].into(),
            threads: Some(
                [(0, NapiThread { pid: 812, cpu: Some(CpuId(4)) }), (1, NapiThread { pid: 813, cpu: None })].into(),
            ),
            ..Wiring::default()
        };
        let l = Layout { links: [("eth1".to_string(), w)].into(), nodes: [(CpuId(0), NodeId(1))].into() };
        assert_eq!(Layout::from_line(&l.to_line()), Some(l));
        for bad in ["", "sample", "sample 1", "sample x 1", "samples 1 2"] {
            assert_eq!(Counters::from_line(bad), None, "{bad}");
        }
    }
}
