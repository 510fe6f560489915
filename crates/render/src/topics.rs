//! The topics of `ringwise help`: settings, goals, words of the output and exit statuses. Commands and rules have their
//! own texts.

mod columns;
mod cpus;
mod exit;
mod goals;
mod knobs;
mod words;

use crate::knob_values::KnobValues;

/// What `ringwise help` explains about one subject.
pub struct Topic {
    /// All names that open the topic. The first one is listed.
    pub names: &'static [&'static str],
    /// The name in full, or the meaning in one line.
    pub title: &'static str,
    /// What it is.
    pub body: &'static str,
    /// `LABEL|TEXT`: why to change it, where the kernel has it, how ringwise shows and sets it, what to read next.
    pub parts: &'static [&'static str],
    /// The setting whose present values are shown. `None`: the topic is not about a setting.
    pub knob: Option<KnobValues>,
}

/// All topics by kind: the heading of the list, and the topics.
pub const KINDS: [(&str, &[Topic]); 6] = [
    ("SETTINGS", knobs::TOPICS),
    ("GOALS", goals::TOPICS),
    ("CPUS AND NODES", cpus::TOPICS),
    ("WORDS OF THE OUTPUT", words::TOPICS),
    ("COLUMNS AND LINES OF THE OUTPUT", columns::TOPICS),
    ("EXIT STATUS", exit::TOPICS),
];

/// A topic that is not about a setting.
const fn word(
    names: &'static [&'static str],
    title: &'static str,
    body: &'static str,
    parts: &'static [&'static str],
) -> Topic {
    Topic { names, title, body, parts, knob: None }
}

/// All topics, in the order of the list.
pub fn all() -> impl Iterator<Item = &'static Topic> {
    KINDS.into_iter().flat_map(|(_, topics)| topics)
}

/// Finds a topic by any of its names, as a user types it.
pub fn find(name: &str) -> Option<&'static Topic> {
    let name = normal(name);
    let name: &str = if is_queue_count(&name) { "8/8" } else { &name };
    all().find(|t| t.names.iter().any(|n| normal(n) == name))
}

/// Lower case, with one space for any of the characters that separate words.
pub fn normal(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-')).filter(|w| !w.is_empty());
    let text = words.collect::<Vec<_>>().join(" ").to_lowercase();
    if text.is_empty() { name.trim().to_string() } else { text }
}

/// Whether it looks like the column QUEUES of `ringwise`: `4/63`, `4+4/8+8`, `7/?`.
fn is_queue_count(name: &str) -> bool {
    name.split_once('/').is_some_and(|(now, most)| {
        let number = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '?'));
        number(now) && number(most)
    })
}
