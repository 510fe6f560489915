//! `ringwise.watch`: one line of JSON for each interval, members in the order of `schemas/ringwise.watch.v1.json`.
//! This code does not use serde, because derived code for these maps would add a tenth of a megabyte to the program.

use ringwise_model::{Counter as _, Dir};
use ringwise_observe::{Balance, Counts, CpuRates, DirectionRates, LinkRates, QueueMark, QueueRates, Rates, Source};

/// Name of the document.
pub(super) const SCHEMA: &str = "ringwise.watch";
const VERSION: u64 = 1;

pub(super) struct Json(pub String);

impl Json {
    pub(super) fn comma(&mut self) {
        if !self.0.ends_with(['{', '[', ':']) && !self.0.is_empty() {
            self.0.push(',');
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.comma();
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if c < ' ' => self.0.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    pub(super) fn key(&mut self, key: &str) {
        self.text(key);
        self.0.push(':');
    }

    pub(super) fn open(&mut self, key: &str, bracket: char) {
        self.key(key);
        self.0.push(bracket);
    }

    pub(super) fn value(&mut self, key: &str, value: Option<String>) {
        self.key(key);
        self.0.push_str(value.as_deref().unwrap_or("null"));
    }

    pub(super) fn int(&mut self, key: &str, n: Option<u64>) {
        self.value(key, n.map(|n| n.to_string()));
    }

    pub(super) fn num(&mut self, key: &str, n: Option<f64>) {
        self.value(key, n.filter(|n| n.is_finite()).map(|n| format!("{n:?}")));
    }

    pub(super) fn word(&mut self, key: &str, word: Option<&str>) {
        self.key(key);
        match word {
            Some(w) => self.text(w),
            None => self.0.push_str("null"),
        }
    }

    pub(super) fn words<'a>(&mut self, key: &str, words: impl Iterator<Item = &'a String>) {
        self.open(key, '[');
        for w in words {
            self.text(w);
        }
        self.0.push(']');
    }

    pub(super) fn ids(&mut self, key: &str, ids: &[ringwise_model::CpuId]) {
        self.open(key, '[');
        for id in ids {
            self.comma();
            self.0.push_str(&id.to_string());
        }
        self.0.push(']');
    }

    pub(super) fn counts(&mut self, key: &str, counts: &Counts) {
        self.open(key, '{');
        for (name, n) in counts {
            self.int(name, Some(*n));
        }
        self.0.push('}');
    }
}

/// The line, including its line feed.
pub fn json(r: &Rates) -> String {
    let mut j = Json("{".into());
    j.word("schema", Some(SCHEMA));
    j.int("version", Some(VERSION));
    j.num("seconds", Some(r.seconds));
    j.int("unix_time", Some(r.unix_time));
    j.open("links", '{');
    for (name, l) in &r.links {
        j.open(name, '{');
        link(&mut j, l);
        j.0.push('}');
    }
    j.0.push('}');
    j.words("gone", r.gone.iter());
    j.words("came", r.came.iter());
    j.words("silent", r.silent.iter());
    j.open("cpus", '{');
    for (id, c) in &r.cpus {
        j.open(&id.to_string(), '{');
        cpu(&mut j, c);
        j.0.push('}');
    }
    j.0.push('}');
    j.ids("cpus_gone", &r.cpus_gone);
    j.ids("cpus_came", &r.cpus_came);
    j.counts("socket_drops", &r.socket_drops);
    j.0.push_str("}\n");
    j.0
}

fn link(j: &mut Json, l: &LinkRates) {
    j.word("driver", l.driver.as_deref());
    j.int("node", l.node.map(|n| n.0.into()));
    j.int("speed_mbps", l.speed_mbps.map(u64::from));
    flow(j, "rx", &l.rx);
    flow(j, "tx", &l.tx);
    j.open("drops", '{');
    let d = &l.drops;
    for (name, n) in [("nic", d.nic), ("no_buffer", d.no_buffer), ("stack", d.stack), ("tx", d.tx), ("qdisc", d.qdisc)]
    {
        j.int(name, n);
    }
    j.0.push('}');
    j.counts("counts", &l.counts);
    j.words("reset", l.reset.iter());
    let source = match l.source {
        Source::Qstats => "qstats",
        Source::Ethtool => "ethtool",
        Source::Device => "device",
        Source::Nothing => "nothing",
    };
    j.word("source", Some(source));
    j.open("queues", '[');
    for q in &l.queues {
        j.comma();
        j.0.push('{');
        queue(j, q);
        j.0.push('}');
    }
    j.0.push(']');
    balance(j, "rx_balance", l.rx_balance.as_ref());
    balance(j, "tx_balance", l.tx_balance.as_ref());
}

fn flow(j: &mut Json, key: &str, f: &DirectionRates) {
    j.open(key, '{');
    j.int("packets", f.packets);
    j.int("bytes", f.bytes);
    for (name, n) in [
        ("pps", f.pps),
        ("mbps", f.mbps),
        ("avg_bytes", f.avg_bytes),
        ("line_percent", f.line_percent),
        ("line_packets_percent", f.line_packets_percent),
    ] {
        j.num(name, n);
    }
    j.0.push('}');
}

fn queue(j: &mut Json, q: &QueueRates) {
    j.word("dir", Some(if q.dir == Dir::Rx { "rx" } else { "tx" }));
    j.int("queue", Some(q.queue.into()));
    j.int("packets", q.packets);
    j.int("bytes", q.bytes);
    j.int("drops", q.drops);
    j.int("alloc_fail", q.alloc_fail);
    j.num("share_percent", q.share_percent);
    j.int("irq", q.irq.map(|i| i.0.into()));
    j.int("interrupts", q.interrupts);
    j.num("packets_per_interrupt", q.packets_per_interrupt);
    j.int("cpu", q.cpu.map(|c| c.0.into()));
    j.word("cpus", Some(&q.cpus.to_string()));
    j.int("node", q.node.map(|n| n.0.into()));
    let mark = q.mark.map(|m| match m {
        QueueMark::Hot => "hot",
        QueueMark::Reset => "reset",
        QueueMark::Came => "came",
        QueueMark::Gone => "gone",
    });
    j.word("mark", mark);
    j.int("bql_limit", q.bql_limit);
    j.int("bql_inflight", q.bql_inflight);
    j.int("timeouts", q.timeouts);
    j.int("qdisc_drops", q.qdisc_drops);
    if let Some(p) = q.pool {
        j.int("pool_fast", Some(p.fast));
        j.int("pool_slow", Some(p.slow));
        j.int("pool_ring_full", Some(p.ring_full));
        j.int("pool_in_use", Some(p.in_use));
    }
}

fn balance(j: &mut Json, key: &str, b: Option<&Balance>) {
    let Some(b) = b else { return j.word(key, None) };
    j.open(key, '{');
    j.num("max_over_mean", Some(b.max_over_mean));
    j.num("variation", Some(b.variation));
    j.int("hot", b.hot.map(u64::from));
    j.0.push('}');
}

fn cpu(j: &mut Json, c: &CpuRates) {
    j.int("node", c.node.map(|n| n.0.into()));
    for (name, n) in [
        ("softirq_percent", c.softirq_percent),
        ("irq_percent", c.irq_percent),
        ("steal_percent", c.steal_percent),
        ("idle_percent", c.idle_percent),
        ("ksoftirqd_percent", c.ksoftirqd_percent),
        ("napi_threads_percent", c.napi_threads_percent),
    ] {
        j.num(name, n);
    }
    j.open("idle_states_percent", '{');
    for (state, share) in &c.idle_states {
        j.num(state, Some(*share));
    }
    j.0.push('}');
    j.int("interrupts", Some(c.interrupts));
    j.open("counts", '{');
    for (counter, n) in c.counts.iter() {
        j.int(counter.name(), Some(n));
    }
    j.0.push('}');
    j.int("backlog", c.backlog);
    j.words("reset", c.reset.iter());
}
