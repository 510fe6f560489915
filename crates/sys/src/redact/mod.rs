//! Takes what names a machine or its owner out of a recording: hardware and IP addresses, host name,
//! interface aliases, serial numbers, machine, boot and disk ids, the kernel command line, arguments of processes.
//!
//! An original has the same pseudonym wherever it stands, in texts, paths and raw replies, so that what
//! belonged together still does. What was replaced is counted by kind in [`Info::redacted`](crate::Info).
//! It does not touch interface names, other than addresses in them (`enx…`), nor hardware models and versions.

mod files;
mod names;
mod raw;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use crate::capture::{Answer, Asked, Recording, Redacted, Refusal, Reply};
use files::Rule;
use names::{COMMON, Names};
use text::V4;

type Strings = [(String, String, &'static str)];

impl Recording {
    /// Replaces every identifier; what was replaced is also returned.
    pub fn redact(&mut self) -> Vec<Redacted> {
        self.redact_with(&[])
    }

    /// The same, and these names (`("user name", "anna")`) wherever they stand as words.
    pub fn redact_with(&mut self, more: &[(&'static str, String)]) -> Vec<Redacted> {
        let mut names = Names::default();
        collect(self, more, &mut names);
        // The first pass meets every address, so that in the second each is known everywhere.
        let strings = names.everywhere();
        rewrite(self, &mut names, &strings);
        names.reset_counts();
        let strings = names.everywhere();
        let mut clean = rewrite(self, &mut names, &strings);
        clean.info.redacted = names.report();
        *self = clean;
        self.info.redacted.clone()
    }
}

/// Names that have no shape, from the files and replies that hold them.
fn collect(r: &Recording, more: &[(&'static str, String)], names: &mut Names) {
    // Words that are part of a path (interfaces, drivers, `vm`) can not be replaced in running text.
    let taken: BTreeSet<&str> =
        r.files.keys().chain(r.dirs.keys()).chain(r.links.keys()).flat_map(|p| p.split('/')).collect();
    let listed: BTreeSet<&str> = r.dirs.values().flatten().flatten().map(String::as_str).collect();
    let mut add = |kind, name: &str| {
        let everywhere = name.len() >= 4
            && !COMMON.contains(&name.to_lowercase().as_str())
            && !taken.contains(name)
            && !listed.contains(name);
        names.string(kind, name, everywhere);
    };
    for (kind, name) in more {
        add(kind, name);
    }
    for (path, answer) in &r.files {
        let (Rule::Whole(kind), Ok(bytes)) = (files::rule(path), answer) else { continue };
        let content = String::from_utf8_lossy(bytes);
        let content = content.trim();
        if content.is_empty() {
            continue;
        }
        add(kind, content);
        if let (true, Some((host, domain))) = (kind == "host name", content.split_once('.')) {
            add(kind, host);
            add("domain name", domain);
        }
    }
    for reply in r.kernel.iter().filter(|(asked, _)| asked.kind == "links").map(|(_, reply)| reply) {
        for message in reply.answer.iter().flatten() {
            if let Some(alias) = raw::alias(message) {
                add("alias", &alias);
            }
        }
    }
}

fn string(input: &str, names: &mut Names, strings: &Strings) -> String {
    String::from_utf8_lossy(&text::text(input.as_bytes(), names, strings, V4::Replace)).into_owned()
}

fn refusal(r: &Refusal, names: &mut Names, strings: &Strings) -> Refusal {
    Refusal { errno: r.errno, words: r.words.as_ref().map(|w| string(w, names, strings)) }
}

fn rewrite(r: &Recording, names: &mut Names, strings: &Strings) -> Recording {
    let mut out = Recording { info: r.info.clone(), ..Recording::default() };
    out.info.note = r.info.note.as_ref().map(|n| string(n, names, strings));
    for (asked, reply) in &r.kernel {
        let dev = string(&asked.dev, names, strings);
        let answer = match &reply.answer {
            Ok(messages) => Ok(messages.iter().map(|m| message(&asked.kind, m, names, strings)).collect()),
            Err(e) => Err(refusal(e, names, strings)),
        };
        out.kernel.insert(Asked { dev, ..asked.clone() }, Reply { name: reply.name.clone(), answer });
    }
    out.files = answers(&r.files, names, strings, |path, bytes, names| file(path, bytes, names, strings));
    out.links = answers(&r.links, names, strings, |_, target, names| string(target, names, strings));
    out.dirs = answers(&r.dirs, names, strings, |_, list, names| {
        let mut list: Vec<_> = list.iter().map(|n| string(n, names, strings)).collect();
        list.sort_unstable();
        list
    });
    out
}

fn answers<T>(
    all: &BTreeMap<String, Answer<T>>,
    names: &mut Names,
    strings: &Strings,
    change: impl Fn(&str, &T, &mut Names) -> T,
) -> BTreeMap<String, Answer<T>> {
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

fn message(kind: &str, message: &[u8], names: &mut Names, strings: &Strings) -> Vec<u8> {
    match kind {
        "links" => raw::link(message, names, strings),
        "addrs" => raw::addr(message, names, strings),
        "route" => raw::route(message, names, strings),
        "default-routes" => {
            let content = String::from_utf8_lossy(message);
            let four = content.starts_with("Iface");
            if four { files::route(&content, names) } else { files::inet6_columns(&content, &[0, 2, 4], names) }
                .into_bytes()
        }
        "sessions" => text::text(message, names, strings, V4::Replace),
        _ => raw::in_place(message, names, strings),
    }
}

fn file(path: &str, bytes: &[u8], names: &mut Names, strings: &Strings) -> Vec<u8> {
    let content = || String::from_utf8_lossy(bytes).into_owned();
    let mut v4 = V4::Replace;
    let ours = path.starts_with(files::OURS).then(|| names.all());
    let strings = ours.as_deref().unwrap_or(strings);
    let changed = match files::rule(path) {
        Rule::Shapes => bytes.to_vec(),
        Rule::Version => {
            v4 = V4::Keep;
            bytes.to_vec()
        }
        Rule::CommandLine => files::command_line(&content(), names).into_bytes(),
        Rule::Whole(kind) => {
            let content = content();
            let known = ["", "localhost", "(none)"].contains(&content.trim());
            return if known {
                bytes.to_vec()
            } else {
                (names.string(kind, content.trim(), false) + "\n").into_bytes()
            };
        }
        Rule::Id => match crate::capture::from_hex(content().trim()) {
            Some(id) => return (crate::capture::to_hex(&names.hardware(&id)) + "\n").into_bytes(),
            None => return (names.string("serial", content().trim(), false) + "\n").into_bytes(),
        },
        Rule::PciConfig => {
            if bytes.len() > 64 {
                names.count("left out");
            }
            return bytes[..bytes.len().min(64)].to_vec();
        }
        Rule::Arguments => files::arguments(bytes, names),
        Rule::CpuInfo => files::cpu_info(&content(), names).into_bytes(),
        Rule::Mounts => files::mounts(&content(), names).into_bytes(),
        Rule::Route => files::route(&content(), names).into_bytes(),
        Rule::Inet6Columns(columns) => files::inet6_columns(&content(), columns, names).into_bytes(),
        Rule::Sockets => files::sockets(&content(), names).into_bytes(),
        Rule::LeaveOut => {
            names.count("left out");
            return Vec::new();
        }
    };
    text::text(&changed, names, strings, v4)
}
