//! Groups of queues with the same moderation or the same RSS contexts.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{Coalesce, Fact, Nic};

use ringwise_text::{numbers, plural};

/// Fill and frame. A letter distinguishes the groups as well.
const COLOURS: [(&str, &str); 6] = [
    ("#cfe6f5", "#3f87b5"),
    ("#ffe0ad", "#b87400"),
    ("#cbead9", "#2f8a63"),
    ("#f5d3e3", "#a8527f"),
    ("#ebe6a6", "#857d12"),
    ("#dfd8f2", "#6c56a8"),
];

#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Group of each receive (and transmit) queue.
    of: BTreeMap<u32, usize>,
    about: Vec<String>,
}

impl Groups {
    /// Finds the groups; there are none if all queues are alike.
    pub(super) fn of(n: &Nic) -> Self {
        let per_queue = n.queue_coalesce.known();
        let contexts = n.rss.known().and_then(|r| r.contexts.known());
        let ids: BTreeSet<u32> = n.rx_queues.iter().map(|q| q.id).chain(n.tx_queues.iter().map(|q| q.id)).collect();
        let mut keys: Vec<(Option<&Coalesce>, Vec<u32>)> = Vec::new();
        let mut of = BTreeMap::new();
        for q in ids {
            let policy = per_queue.and_then(|p| p.get(&q));
            let member: Vec<u32> = contexts
                .map(|c| c.iter().filter(|(_, ctx)| ctx.table.contains(&q)).map(|(k, _)| *k).collect())
                .unwrap_or_default();
            let key = (policy, member);
            let k = keys.iter().position(|o| *o == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            });
            of.insert(q, k);
        }
        if keys.len() < 2 {
            return Self::default();
        }
        let differing = differing(keys.iter().map(|k| k.0));
        let about = keys
            .iter()
            .enumerate()
            .map(|(k, key)| {
                let queues: Vec<u32> = of.iter().filter(|(_, g)| **g == k).map(|(q, _)| *q).collect();
                let mut parts = vec![format!("{} ({})", plural(queues.len(), "queue"), numbers(queues))];
                match key.0 {
                    Some(c) => parts.extend(differing.iter().map(|name| match c.0.get(*name) {
                        Some(v) => format!("{name} {v}"),
                        None => format!("{name} not reported"),
                    })),
                    None if per_queue.is_some() => parts.push("moderation not reported".into()),
                    None => {}
                }
                for context in &key.1 {
                    parts.push(format!("RSS context {context}"));
                }
                parts.join(", ")
            })
            .collect();
        Self { of, about }
    }

    pub(super) fn get(&self, queue: u32) -> Option<usize> {
        self.of.get(&queue).copied()
    }

    /// The group of these queues, if it is the same for all.
    pub(super) fn common(&self, queues: impl Iterator<Item = u32>) -> Option<usize> {
        let all: BTreeSet<Option<usize>> = queues.map(|q| self.get(q)).collect();
        all.first().copied().flatten().filter(|_| all.len() == 1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.about.is_empty()
    }

    /// Letter, colours and description of each group.
    pub(super) fn legend(&self) -> impl Iterator<Item = (String, (&'static str, &'static str), &str)> {
        self.about.iter().enumerate().map(|(k, a)| (letter(k), colours(k), a.as_str()))
    }
}

/// Parameters whose values differ.
fn differing<'a>(all: impl Iterator<Item = Option<&'a Coalesce>>) -> Vec<&'a str> {
    let all: Vec<&Coalesce> = all.flatten().collect();
    let names: BTreeSet<&str> = all.iter().flat_map(|c| c.0.keys()).map(String::as_str).collect();
    names.into_iter().filter(|n| all.iter().any(|c| c.0.get(*n) != all[0].0.get(*n))).collect()
}

pub(super) fn letter(k: usize) -> String {
    match u32::try_from(k).ok().filter(|k| *k < 26).and_then(|k| char::from_u32(u32::from(b'A') + k)) {
        Some(c) => c.to_string(),
        None => (k + 1).to_string(),
    }
}

pub(super) fn colours(k: usize) -> (&'static str, &'static str) {
    COLOURS[k % COLOURS.len()]
}

/// A note if groups cannot be determined.
pub(super) fn unknown(n: &Nic) -> Option<String> {
    match &n.queue_coalesce {
        Fact::Unknown(u) => Some(format!("unknown (per-queue moderation: {})", u.why)),
        _ => None,
    }
}
