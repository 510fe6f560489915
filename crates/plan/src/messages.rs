//! Warnings and advice while a plan is made. What holds for several interfaces is one message that names them all.

use std::collections::BTreeMap;

/// The messages, in the order in which they came first.
#[derive(Default)]
pub(crate) struct Messages {
    list: Vec<Message>,
    /// Place in `list` by text.
    places: BTreeMap<String, usize>,
}

struct Message {
    text: String,
    about: Vec<About>,
    /// A command for the first of the interfaces, at the end of the text.
    example: Option<String>,
}

/// An interface, and what distinguishes it from others with the same message: `3 queues`.
#[derive(PartialEq, Eq)]
struct About {
    dev: String,
    detail: Option<String>,
}

impl Messages {
    /// A message that is not about one interface.
    pub(crate) fn push(&mut self, text: impl Into<String>) {
        self.add(None, text.into(), None);
    }

    /// A message about an interface: `eth0: no nearby CPU is left`.
    pub(crate) fn about(&mut self, dev: &str, text: impl Into<String>) {
        self.add(Some(About { dev: dev.to_string(), detail: None }), text.into(), None);
    }

    /// A message about an interface that ends with an example of a command: `eth0 eth1: no rule; add one: ethtool -N eth0`.
    /// Interfaces with the same text share the example of the first one.
    pub(crate) fn with_example(&mut self, dev: &str, text: impl Into<String>, example: String) {
        self.add(Some(About { dev: dev.to_string(), detail: None }), text.into(), Some(example));
    }

    /// A message about an interface, with what differs between interfaces: `eth0 (3 queues): every nearby CPU ...`.
    pub(crate) fn detailed(&mut self, dev: &str, detail: impl Into<String>, text: impl Into<String>) {
        self.add(Some(About { dev: dev.to_string(), detail: Some(detail.into()) }), text.into(), None);
    }

    pub(crate) fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|t| self.push(t));
    }

    fn add(&mut self, about: Option<About>, text: String, example: Option<String>) {
        let at = *self.places.entry(text.clone()).or_insert(self.list.len());
        if at == self.list.len() {
            self.list.push(Message { text, about: Vec::new(), example });
        }
        let known = &mut self.list[at].about;
        known.extend(about.filter(|a| !known.contains(a)));
    }

    /// The texts, each with its interfaces in front.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.list.into_iter().map(|m| m.whole()).collect()
    }
}

impl Message {
    /// `eth0 eth2: text`, or `eth0 mq1 (3 queues), eth2 (1 queue): text`.
    fn whole(self) -> String {
        let mut by: Vec<(&Option<String>, Vec<&str>)> = Vec::new();
        for a in &self.about {
            match by.iter_mut().find(|(detail, _)| **detail == a.detail) {
                Some((_, devs)) => devs.push(&a.dev),
                None => by.push((&a.detail, vec![&a.dev])),
            }
        }
        let heads = by.iter().map(|(detail, devs)| match detail {
            Some(d) => format!("{} ({d})", devs.join(" ")),
            None => devs.join(" "),
        });
        let example = self.example.map_or_else(String::new, |e| format!(" {e}"));
        match heads.collect::<Vec<_>>().join(", ") {
            nothing if nothing.is_empty() => self.text + &example,
            head => format!("{head}: {}{example}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_with_the_same_message_share_it() {
        let mut m = Messages::default();
        m.push("a host");
        m.about("eth0", "no CPU is left");
        m.detailed("eth0", "3 queues", "placed on remote nodes");
        m.about("eth1", "no CPU is left");
        m.detailed("eth2", "1 queue", "placed on remote nodes");
        m.detailed("eth3", "3 queues", "placed on remote nodes");
        m.detailed("eth1", "group bulk", "no core is free");
        m.detailed("eth2", "group bulk", "no core is free");
        m.push("a host");
        m.about("eth1", "no CPU is left");
        m.with_example("eth0", "add a rule:", "ethtool -N eth0".to_string());
        m.with_example("eth2", "add a rule:", "ethtool -N eth2".to_string());
        assert_eq!(
            m.into_texts(),
            [
                "a host",
                "eth0 eth1: no CPU is left",
                "eth0 eth3 (3 queues), eth2 (1 queue): placed on remote nodes",
                "eth1 eth2 (group bulk): no core is free",
                "eth0 eth2: add a rule: ethtool -N eth0",
            ]
        );
    }
}
