//! Removes from a recording what identifies a machine or its owner: addresses, names that a person chose (hosts, aliases,
//! people), serial numbers and ids, passwords and similar values that are recognized by the text beside them, and texts that a
//! person typed.
//!
//! The method depends on what a file or a reply may contain. Of files of other programs, command lines, kernel log lines and
//! replies, only what is known to be harmless stays. Files of the kernel are searched for identifiers by shape. An original has
//! the same pseudonym in all texts, paths and raw replies, so that related items can still be matched. Replacements are counted
//! by kind in [`Info::redacted`](crate::Info). Interface names stay, except for addresses in them (`enx…`), and so do hardware
//! models and versions.

mod command;
mod ethtool;
mod files;
mod kernel_lines;
mod labels;
mod names;
mod papers;
mod raw;
mod settings;
mod strings;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use crate::capture::{RecordedAnswer, RecordedRefusal, RecordedReply, Recording, Redacted, RequestKey};
use files::Rule;
use kernel_lines::Subjects;
use names::Pseudonyms;
use papers::DocumentRedaction;
use strings::{Strings, TextKind};

pub use command::{Flag, FlagValue, Grammar};

/// What the caller knows about a recording.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// Texts that are private wherever they occur as words: `("user name", "anna")`.
    pub texts: Vec<(&'static str, String)>,
    /// Drivers of the host's interfaces: kernel log lines that begin with one are kept.
    pub drivers: Vec<String>,
    /// Grammar of the program whose journals are in the recording.
    pub grammar: Grammar,
}

/// What does not change during the redaction.
struct Known<'a> {
    by_caller: &'a Knowledge,
    interfaces: Vec<String>,
    /// Names with which kept kernel log lines may begin.
    subjects: Vec<String>,
}

impl Recording {
    /// Replaces every identifier, and returns what was replaced.
    pub fn redact(&mut self) -> Vec<Redacted> {
        self.redact_with(&Knowledge::default())
    }

    /// The same, with the caller's knowledge.
    pub fn redact_with(&mut self, by_caller: &Knowledge) -> Vec<Redacted> {
        let mut names = Pseudonyms::default();
        let interfaces = interfaces(self);
        let subjects = interfaces.iter().chain(&by_caller.drivers).cloned().collect();
        let known = Known { by_caller, interfaces, subjects };
        collect(self, by_caller, &mut names);
        // The first pass finds every address, so that the second one can replace each everywhere.
        let (strings, ours) = (names.everywhere(), names.all());
        rewrite(self, &known, &mut names, &strings, &ours);
        names.reset_counts();
        let (strings, ours) = (names.everywhere(), names.all());
        let mut clean = rewrite(self, &known, &mut names, &strings, &ours);
        clean.info.redacted = names.report();
        *self = clean;
        self.info.redacted.clone()
    }
}

/// Interface names from the dump of links, or from the directory if there is no dump.
fn interfaces(r: &Recording) -> Vec<String> {
    let listed = r.dirs.get("/sys/class/net").and_then(|l| l.as_ref().ok()).into_iter().flatten().cloned();
    let dump =
        r.kernel.iter().filter(|(asked, _)| asked.kind == "links").flat_map(|(_, reply)| reply.answer.iter().flatten());
    let all: BTreeSet<String> = listed.chain(dump.filter_map(|m| raw::interface(m))).collect();
    all.into_iter().collect()
}

/// Collects names without a recognizable shape from the files and replies that contain them.
fn collect(r: &Recording, by_caller: &Knowledge, names: &mut Pseudonyms) {
    let paths = r.files.keys().chain(r.dirs.keys()).chain(r.links.keys()).flat_map(|p| p.split('/'));
    let listed = r.dirs.values().flatten().flatten().map(String::as_str);
    names.taken = paths.chain(listed).map(str::to_string).collect();
    for (kind, text) in &by_caller.texts {
        names.string(kind, text);
    }
    for (path, answer) in &r.files {
        let Ok(bytes) = answer else { continue };
        match files::rule(path) {
            Rule::Whole(kind) => whole(kind, String::from_utf8_lossy(bytes).trim(), names),
            Rule::Papers { .. } => papers::collect(bytes, names),
            _ => {}
        }
    }
    for reply in r.kernel.iter().filter(|(asked, _)| asked.kind == "links").map(|(_, reply)| reply) {
        for (kind, name) in reply.answer.iter().flatten().flat_map(|m| raw::given(m)) {
            names.string(kind, &name);
        }
    }
}

fn whole(kind: &'static str, content: &str, names: &mut Pseudonyms) {
    if content.is_empty() {
        return;
    }
    names.string(kind, content);
    if let (true, Some((host, domain))) = (kind == "host name", content.split_once('.')) {
        names.string(kind, host);
        names.string("domain name", domain);
    }
}

fn string(input: &str, names: &mut Pseudonyms, strings: &Strings) -> String {
    String::from_utf8_lossy(&text::text(input.as_bytes(), names, strings, TextKind::Tables)).into_owned()
}

fn refusal(r: &RecordedRefusal, names: &mut Pseudonyms, strings: &Strings) -> RecordedRefusal {
    let clean = |w: &String, names: &mut Pseudonyms| text::text(w.as_bytes(), names, strings, TextKind::Prose);
    let words = r.words.as_ref().map(|w| String::from_utf8_lossy(&clean(w, names)).into_owned());
    RecordedRefusal { errno: r.errno, words, late: r.late }
}

/// `ours`: what is replaced in ringwise's own texts.
fn rewrite(r: &Recording, known: &Known, names: &mut Pseudonyms, strings: &Strings, ours: &Strings) -> Recording {
    let mut out = Recording { info: r.info.clone(), ..Recording::default() };
    out.info.note = r.info.note.as_ref().map(|n| string(n, names, strings));
    for (asked, reply) in &r.kernel {
        let dev = string(&asked.dev, names, strings);
        let answer = match &reply.answer {
            Ok(messages) => {
                let all: Option<Vec<_>> = messages.iter().map(|m| message(asked, m, names, strings)).collect();
                all.ok_or_else(|| {
                    names.count("left out");
                    RecordedRefusal { errno: None, words: Some("left out of the redacted capture".into()), late: false }
                })
            }
            Err(e) => Err(refusal(e, names, strings)),
        };
        out.kernel.insert(RequestKey { dev, ..asked.clone() }, RecordedReply { name: reply.name.clone(), answer });
    }
    out.files = answers(&r.files, names, strings, |path, bytes, names| {
        let strings = if path.starts_with(files::OURS) { ours } else { strings };
        file(path, bytes, known, names, strings)
    });
    out.links = answers(&r.links, names, strings, |_, target, names| string(target, names, strings));
    out.dirs = answers(&r.dirs, names, strings, |_, list, names| {
        let mut list: Vec<_> = list.iter().map(|n| string(n, names, strings)).collect();
        list.sort_unstable();
        list
    });
    out
}

fn answers<T>(
    all: &BTreeMap<String, RecordedAnswer<T>>,
    names: &mut Pseudonyms,
    strings: &Strings,
    change: impl Fn(&str, &T, &mut Pseudonyms) -> T,
) -> BTreeMap<String, RecordedAnswer<T>> {
    let mut out = BTreeMap::new();
    for (path, answer) in all {
        let answer = match answer {
            Ok(value) => Ok(change(path, value, names)),
            Err(e) => Err(refusal(e, names, strings)),
        };
        out.insert(string(path, names, strings), answer);
    }
    out
}

/// One message of a reply; `None`: its kind is not known.
fn message(asked: &RequestKey, message: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Option<Vec<u8>> {
    let shapes = |text: &str, names: &mut Pseudonyms| text::text(text.as_bytes(), names, strings, TextKind::Tables);
    Some(match asked.kind.as_str() {
        "links" => raw::link(message, names, strings),
        "addrs" => raw::addr(message, names),
        "route" => raw::route(message, names),
        "qdiscs" => raw::qdisc(message, names, strings),
        "default-routes" => {
            let content = String::from_utf8_lossy(message);
            let table = if content.starts_with("Iface") {
                files::route(&content, names)
            } else {
                files::ipv6_route(&content, names)
            };
            shapes(&table, names)
        }
        "sessions" => shapes(&String::from_utf8_lossy(message), names),
        "irqbalance" => irqbalance(&String::from_utf8_lossy(message)).into_bytes(),
        "ethtool-get" | "ethtool-dump" => ethtool::ethtool(asked.cmd, message, names, strings)?,
        "netdev" => ethtool::netdev(asked.cmd, message, names)?,
        "net-shaper" => ethtool::net_shaper(message, names),
        "ioctl" => ethtool::ioctl(asked.cmd, message, names, strings)?,
        _ => return None,
    })
}

/// Words in capitals and numbers.
fn irqbalance(text: &str) -> String {
    let number = |w: &str| w.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b',' | b'-' | b'.'));
    let known = |w: &&str| number(w) || ["SLEEP", "IRQ", "LOAD", "DIFF", "CLASS", "BANNED"].contains(w);
    text.split_ascii_whitespace().filter(known).collect::<Vec<_>>().join(" ")
}

fn file(path: &str, bytes: &[u8], known: &Known, names: &mut Pseudonyms, strings: &Strings) -> Vec<u8> {
    let content = || String::from_utf8_lossy(bytes).into_owned();
    let (changed, care) = match files::rule(path) {
        Rule::Shapes => (bytes.to_vec(), TextKind::Tables),
        Rule::Version => (bytes.to_vec(), TextKind::Versions),
        Rule::Prose => (bytes.to_vec(), TextKind::Prose),
        Rule::Text(change) => (change(&content(), names).into_bytes(), TextKind::Tables),
        Rule::Versions(change) => (change(&content(), names).into_bytes(), TextKind::Versions),
        Rule::Own(change) => return change(&content(), names).into_bytes(),
        Rule::Bytes(change) => return change(bytes, names),
        Rule::Papers { intent } => {
            let p = DocumentRedaction { grammar: &known.by_caller.grammar, interfaces: &known.interfaces, intent };
            return papers::clean(bytes, &p, names, strings);
        }
        Rule::KernelLog => {
            let subjects = Subjects { all: &known.subjects };
            return kernel_lines::kernel_lines(&content(), &subjects, names, strings).0.into_bytes();
        }
        Rule::Whole(kind) => {
            let content = content();
            let nothing = ["", "localhost", "(none)"].contains(&content.trim());
            return if nothing { bytes.to_vec() } else { (names.string(kind, content.trim()) + "\n").into_bytes() };
        }
        Rule::Id => match crate::capture::from_hex(content().trim()) {
            Some(id) => return (crate::capture::to_hex(&names.hardware(&id)) + "\n").into_bytes(),
            None => return (names.string("serial", content().trim()) + "\n").into_bytes(),
        },
        Rule::LeaveOut => {
            names.count("left out");
            return Vec::new();
        }
    };
    text::text(&changed, names, strings, care)
}
