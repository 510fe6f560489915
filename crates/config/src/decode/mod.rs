//! Converts parsed TOML to values. `check` has reported errors of single keys; this module reports those that involve
//! several keys.

mod group;
mod host;
mod host_group;
mod interface;
mod knobs;
mod mixed;

use std::ops::Range;

use ringwise_model::{ConfiguredBy, Policy, Wish, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{Fault, Faults, place};
use crate::spec::Spec;
use crate::value::{Config, InterfaceEntry, Matcher};
use crate::{check, contradict, spec};

pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin<'t> {
    File,
    /// One argument of the command line, as it was typed.
    Argument(&'t str),
}

/// The state of decoding a document.
pub(crate) struct DecodeContext<'t> {
    file: &'t str,
    text: &'t str,
    origin: Origin<'t>,
    pub faults: Vec<Fault>,
}

impl DecodeContext<'_> {
    /// A placeholder for the line, until the whole document has been decoded.
    pub(crate) fn place(&self, at: &Range<usize>) -> ConfiguredBy {
        ConfiguredBy::Bytes { from: at.start, to: at.end }
    }

    /// Replaces the placeholder with the line.
    fn resolve(&self, by: &mut ConfiguredBy) {
        *by = match (self.origin, &*by) {
            (Origin::Argument(text), _) => ConfiguredBy::Argument { argument: text.to_string() },
            (Origin::File, ConfiguredBy::Bytes { from, .. }) => {
                ConfiguredBy::File { path: self.file.to_string(), line: place(self.text, *from).0 }
            }
            (Origin::File, _) => ConfiguredBy::Unknown,
        };
    }

    /// Reports an error in a flow rule. The wrong word is underlined if the string has no escapes.
    pub(crate) fn words(&mut self, v: &Value<'_>, text: &str, e: ringwise_kfmt::rule::RuleError) {
        let whole = v.span();
        let plain = self.text.get(whole.start + 1..whole.end.saturating_sub(1)) == Some(text);
        let at = match e.at {
            Some((from, to)) if plain => whole.start + 1 + from..whole.start + 1 + to,
            _ => whole,
        };
        let found = match e.found.as_str() {
            "" => format!("{}: nothing found", e.word),
            found if e.described => format!("{} {found}", e.word),
            word if word == e.word => format!("unknown word \"{word}\""),
            found => format!("{}: found \"{found}\"", e.word),
        };
        let near = nearest(&e.found, e.choices.iter().map(String::as_str)).filter(|_| e.word == e.found);
        self.fault(at, found, near.map_or_else(|| e.expected.clone(), |n| format!("\"{n}\"")));
    }

    pub(crate) fn fault(&mut self, at: Range<usize>, found: impl Into<String>, right: impl Into<String>) {
        self.fault_with(at, Vec::new(), found, right);
    }

    /// The same, with other places that are involved.
    pub(crate) fn fault_with(
        &mut self,
        at: Range<usize>,
        with: Vec<Range<usize>>,
        found: impl Into<String>,
        right: impl Into<String>,
    ) {
        let with = with.into_iter().filter(|w| *w != at).collect();
        self.faults.push(Fault { at, with, found: found.into(), right: Some(right.into()) });
    }
}

/// A table with the aliases of its keys resolved.
#[derive(Clone, Copy)]
pub(crate) struct TableKeys<'a, 'i> {
    table: &'a DeTable<'i>,
    spec: &'static Spec,
}

impl<'a, 'i> TableKeys<'a, 'i> {
    pub(crate) fn new(table: &'a DeTable<'i>, spec: &'static Spec) -> Self {
        Self { table, spec }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value<'i>> {
        self.table.iter().find(|(k, _)| self.spec.alias(k.get_ref()) == name).map(|(_, v)| v)
    }

    /// The position of the key.
    pub(crate) fn at(&self, name: &str) -> Option<Range<usize>> {
        self.table.iter().find(|(k, _)| self.spec.alias(k.get_ref()) == name).map(|(k, v)| k.span().start..v.span().end)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.get_ref().as_str().map(str::to_string)
    }

    pub(crate) fn bool(&self, name: &str) -> Option<bool> {
        self.get(name)?.get_ref().as_bool()
    }

    pub(crate) fn u32(&self, name: &str) -> Option<u32> {
        u32::try_from(check::int(self.get(name)?.get_ref())?).ok()
    }

    pub(crate) fn u64(&self, name: &str) -> Option<u64> {
        u64::try_from(check::int(self.get(name)?.get_ref())?).ok()
    }

    /// A number, or a switch as 0 and 1.
    pub(crate) fn number_or_switch(&self, name: &str) -> Option<u32> {
        self.bool(name).map(u32::from).or_else(|| self.u32(name))
    }

    pub(crate) fn table(&self, name: &str, spec: &'static Spec) -> Option<TableKeys<'a, 'i>> {
        Some(TableKeys::new(self.get(name)?.get_ref().as_table()?, spec))
    }

    /// Names and values of free keys, in natural order of TOML.
    pub(crate) fn free(&self, name: &str) -> Vec<(&'a str, Range<usize>, &'a Value<'i>)> {
        let t = self.get(name).and_then(|v| v.get_ref().as_table());
        t.into_iter().flatten().map(|(k, v)| (k.get_ref().as_ref(), k.span(), v)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Value<'i>)> + use<'a, 'i> {
        let spec = self.spec;
        self.table.iter().map(move |(k, v)| (spec.alias(k.get_ref()), k.span(), v))
    }
}

pub(crate) fn bytes(by: &ConfiguredBy) -> Option<Range<usize>> {
    match by {
        ConfiguredBy::Bytes { from, to } => Some(*from..*to),
        _ => None,
    }
}

pub(crate) fn list<'a, 'i>(v: Option<&'a Value<'i>>) -> impl Iterator<Item = &'a Value<'i>> + use<'a, 'i> {
    v.and_then(|v| v.get_ref().as_array()).into_iter().flatten()
}

/// One table, or a list of them.
pub(crate) fn one_or_more<'a, 'i>(v: Option<&'a Value<'i>>) -> Vec<&'a Value<'i>> {
    match v {
        Some(v) if v.get_ref().is_table() => vec![v],
        v => list(v).collect(),
    }
}

/// The value of the line, if it is a list of numbers such as `0-3,8` without quotes, which TOML takes for a date.
fn bare_list(text: &str, at: usize) -> Option<Range<usize>> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |i| i + 1);
    let line = text[start..].lines().next()?;
    let value = line.split('#').next()?.split_once('=')?.1.trim();
    let is_list = value.contains(['-', ',']) && value.chars().all(|c| c.is_ascii_digit() || "-, ".contains(c));
    let from = start + line.find(value)?;
    (is_list && value.starts_with(|c: char| c.is_ascii_digit())).then(|| from..from + value.len())
}

pub(crate) fn document(file: &str, text: &str, origin: Origin<'_>) -> Result<Config, Faults> {
    let (doc, errors) = DeTable::parse_recoverable(text);
    let mut cx = DecodeContext { file, text, origin, faults: Vec::new() };
    // Errors that follow from a syntax error on the same line are not reported.
    let mut broken = Vec::new();
    for e in &errors {
        let at = e.span().unwrap_or(0..0);
        let line = place(text, at.start).0;
        if broken.contains(&line) {
            continue;
        }
        broken.push(line);
        cx.faults.push(match bare_list(text, at.start) {
            Some(bare) => Fault {
                at: bare.clone(),
                with: Vec::new(),
                found: format!("{} without quotes", &text[bare.clone()]),
                right: Some(format!("\"{}\"", &text[bare])),
            },
            None => Fault { at, with: Vec::new(), found: format!("invalid TOML: {}", e.message()), right: None },
        });
    }
    let syntax = cx.faults.len();
    let table = doc.get_ref();
    check::table(table, 0..0, &spec::FILE, &mut cx.faults);
    let keys = TableKeys::new(table, &spec::FILE);
    let mut config = Config::default();
    if let Some(host) = keys.table("host", &spec::HOST) {
        config.host = host::part(host, &mut cx);
    }
    for v in list(keys.get("policy")) {
        if let Some(t) = v.get_ref().as_table() {
            policy(TableKeys::new(t, &spec::POLICY), v.span(), &mut config.policies, &mut cx);
        }
    }
    let mut tables = Vec::new();
    for v in list(keys.get("interface")) {
        if let Some(t) = v.get_ref().as_table() {
            let k = TableKeys::new(t, &spec::INTERFACE);
            let entry = interface::entry(k, v.span(), &config, &tables, &mut cx);
            config.entries.push(entry);
            tables.push(k);
        }
    }
    let host = keys.table("host", &spec::HOST);
    together(&config, host.as_slice(), &entry_tables(&config.entries, &tables), &mut cx);
    for (name, at, v) in keys.free("host_group") {
        let Some(t) = v.get_ref().as_table() else { continue };
        let g = host_group::decode(name, at, TableKeys::new(t, &spec::HOST_GROUP), &config, &mut cx);
        // A group is used together with the top level, which it overrides.
        let mut merged = Config { host_groups: Vec::new(), ..config.clone() };
        merged.lay(&g.group.layer());
        let hosts: Vec<TableKeys> = g.host.into_iter().chain(host).collect();
        let mut all = entry_tables(&g.group.entries, &g.interfaces);
        all.extend(entry_tables(&config.entries, &tables));
        together(&merged, &hosts, &all, &mut cx);
        config.host_groups.push(g.group);
    }
    if !errors.is_empty() {
        let (own, after) = cx.faults.split_at(syntax);
        let known = after.iter().filter(|f| !broken.contains(&place(text, f.at.start).0));
        cx.faults = own.iter().chain(known).cloned().collect();
    }
    if !cx.faults.is_empty() {
        return Err(Faults::new(file, text, cx.faults));
    }
    config.places().for_each(|by| cx.resolve(by));
    Ok(config)
}

fn entry_tables<'a, 'i>(entries: &[InterfaceEntry], tables: &[TableKeys<'a, 'i>]) -> Vec<(Matcher, TableKeys<'a, 'i>)> {
    entries.iter().map(|e| e.matcher.clone()).zip(tables.iter().copied()).collect()
}

/// Reports keys that contradict each other. `hosts` and `tables`: what `config` was merged from, the tables that override
/// others first.
fn together(
    config: &Config,
    hosts: &[TableKeys<'_, '_>],
    tables: &[(Matcher, TableKeys<'_, '_>)],
    cx: &mut DecodeContext<'_>,
) {
    mixed::check(hosts, config, cx);
    for c in contradict::all(config, cx.origin == Origin::File) {
        let at = |p: &contradict::ConflictPlace| match p {
            contradict::ConflictPlace::Place(by) => bytes(by),
            contradict::ConflictPlace::Group(by, key) => {
                let at = bytes(by)?;
                let mut groups = tables.iter().flat_map(|(_, k)| list(k.get("group"))).filter(|v| v.span() == at);
                groups.next().and_then(|v| TableKeys::new(v.get_ref().as_table()?, &spec::GROUP).at(key)).or(Some(at))
            }
            contradict::ConflictPlace::Host(key) => hosts.iter().find_map(|h| h.at(key)),
            contradict::ConflictPlace::Entry(i, key) => {
                let matcher = &config.entries.get(*i)?.matcher;
                tables.iter().filter(|(m, _)| m == matcher).find_map(|(_, k)| k.at(key))
            }
        };
        let mut places: Vec<Range<usize>> = c.at.iter().filter_map(at).collect();
        let first = if places.is_empty() { 0..0 } else { places.remove(0) };
        cx.fault_with(first, places, c.conflict.found(), c.conflict.right());
    }
}

fn policy(k: TableKeys<'_, '_>, at: Range<usize>, all: &mut Vec<Policy>, cx: &mut DecodeContext<'_>) {
    let Some(name) = k.text("name") else { return };
    if all.iter().any(|p| p.name == name) {
        cx.fault(
            k.at("name").unwrap_or(at.clone()),
            format!("policy \"{name}\" is configured twice"),
            "only one policy of that name",
        );
    }
    let coalesce = k.table("coalesce", &spec::POLICY_COALESCE);
    let napi = k.table("napi", &spec::POLICY_NAPI);
    let params = coalesce.map(|c| knobs::params(c, cx)).unwrap_or_default();
    let napi = napi.map(knobs::napi_values).unwrap_or_default();
    if params.is_empty() && napi == ringwise_model::NapiValues::default() {
        cx.fault(at, format!("policy \"{name}\" sets no value"), "values in coalesce or napi");
    }
    all.push(Policy { name, params, napi, when: k.text("when").unwrap_or_default() });
}

pub(crate) fn wish(knob: ringwise_model::Knob, at: &Range<usize>, cx: &DecodeContext<'_>) -> Wish {
    Wish { dev: None, knob, by: cx.place(at), params_by: Default::default() }
}
