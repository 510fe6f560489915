//! What appeared, disappeared, was reset or wrapped between two samples, as text.

use ringwise_model::Counter as _;
use ringwise_model::words::plural;
use ringwise_observe::{Counters, QueueMark, Rates};

/// One remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When the second sample was taken, in seconds since 1970.
    pub unix_time: u64,
    /// One line of text that names the interface or CPU.
    pub text: String,
}

/// What happened between the two samples, of which `r` are the rates.
pub fn events(before: &Counters, now: &Counters, r: &Rates) -> Vec<Event> {
    let mut texts = Vec::new();
    for (list, what) in [(&r.gone, "is gone"), (&r.came, "is new: shown from the next interval on")] {
        texts.extend(list.iter().map(|n| format!("{n} {what}")));
    }
    for (list, what) in [(&r.cpus_gone, "went offline"), (&r.cpus_came, "came online")] {
        texts.extend(list.iter().map(|c| format!("CPU {c} {what}")));
    }
    for (name, l) in &r.links {
        if !l.reset.is_empty() {
            texts.push(format!("{name} was reset: {} went backwards", few(&l.reset)));
        }
        for (mark, what) in [(QueueMark::Reset, "was reset"), (QueueMark::Came, "is new"), (QueueMark::Gone, "is gone")]
        {
            let queues: Vec<String> =
                l.queues.iter().filter(|q| q.mark == Some(mark)).map(|q| format!("{}{}", q.dir, q.queue)).collect();
            if !queues.is_empty() {
                texts.push(format!("{name} {} {what}", few(&queues)));
            }
        }
        if let Some(n) = l.counts.get("carrier_changes").filter(|n| **n > 0) {
            texts.push(format!("{name} lost or regained its link, {}", plural(*n as usize, "time")));
        }
        let stuck: u64 = l.queues.iter().filter_map(|q| q.timeouts).sum();
        if stuck > 0 {
            texts.push(format!("{name} transmit queues stuck, {}", plural(stuck as usize, "time")));
        }
        // The value is smaller than before and yet the increase is known: the counter wrapped.
        if let (Some(b), Some(n)) = (before.links.get(name), now.links.get(name)) {
            let less = |k: &&String| n.counts.get(*k) < b.counts.get(*k);
            let wrapped: Vec<String> = l.counts.keys().filter(less).cloned().collect();
            if !wrapped.is_empty() {
                texts.push(format!("{name} {} wrapped; counting continues", few(&wrapped)));
            }
        }
    }
    for (cpu, c) in &r.cpus {
        if !c.reset.is_empty() {
            texts.push(format!("CPU {cpu}: {} went backwards", few(&c.reset)));
        }
        if let (Some(b), Some(n)) = (before.cpus.get(cpu), now.cpus.get(cpu)) {
            let wrapped = c.counts.iter().filter(|(k, _)| n.counts.get(*k) < b.counts.get(*k));
            let wrapped: Vec<String> = wrapped.map(|(k, _)| k.name().to_string()).collect();
            if !wrapped.is_empty() {
                texts.push(format!("CPU {cpu}: {} wrapped; counting continues", few(&wrapped)));
            }
        }
    }
    texts.into_iter().map(|text| Event { unix_time: r.unix_time, text }).collect()
}

/// At most three names, and how many more there are.
fn few(names: &[String]) -> String {
    let shown = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ");
    if names.len() > 3 { format!("{shown} and {} more", names.len() - 3) } else { shown }
}
