//! `ringwise config check --from`: on which captured hosts the file fits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringwise_config::{Applicable, Config, applicable};
use ringwise_discover::Options;
use ringwise_intent::{Error, ManualChangePolicy, Wanted};
use ringwise_model::Snapshot;
use ringwise_render::fleet::FailedCapture;
use ringwise_render::fleet_config::{self, ConfigFit, ConfigOnHost, ConfigPage};
use ringwise_render::fleet_json;
use ringwise_text::plural;

use crate::args::{Common, ConfigCheck, IntentArgs};
use crate::cmd::{fleet, plan, wanted};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;

/// Notes about `act_on_load` that are printed; hosts with interfaces of other names have notes of their own.
const MOST_NOTES: usize = 5;

/// The file, read once for all captures.
struct FileInput<'a> {
    config: &'a Config,
    wanted: Wanted,
    json: bool,
    quiet: Common,
}

/// What is kept of a capture. Snapshot and plan are dropped where they were made.
struct Checked {
    host: ConfigOnHost,
    parts: Applicable,
    /// Only for JSON.
    document: Option<String>,
}

/// `--from` accepts several files, so that a configuration file behind it would be taken for a capture.
pub(super) fn refuse_config_behind_from(a: &ConfigCheck) -> Result<()> {
    match a.from.iter().find(|f| f.extension().is_some_and(|e| e == "toml") && f.is_file()) {
        None => Ok(()),
        Some(file) => {
            let text = format!("{} is a configuration file, not a capture; expected it before --from", file.display());
            Err(Fail::usage(text).next("ringwise config check FILE --from CAPTURE..."))
        }
    }
}

pub(super) fn run(a: &ConfigCheck, path: &Path, config: &Config, common: &Common) -> Result<Status> {
    let (files, _) = fleet::captures(&a.from, &[]);
    let args = IntentArgs { config: Some(path.to_path_buf()), ..IntentArgs::default() };
    let input =
        FileInput { config, wanted: wanted::read(&[], &args, true)?, json: common.json, quiet: fleet::quietly(common) };
    let read = |file: &Path| fleet::evaluate(file, |source| checked(&input, file, source));
    let (mut hosts, mut failed, mut unmatched) = (Vec::new(), Vec::new(), Unmatched::of(config));
    let mut load_notes: BTreeMap<String, usize> = BTreeMap::new();
    fleet::in_order(&files, input.json, common, read, |c: std::result::Result<Checked, FailedCapture>| match c {
        Ok(c) => {
            unmatched.remove(&c.parts);
            if let Some(note) = &c.parts.load_note {
                *load_notes.entry(note.clone()).or_default() += 1;
            }
            let file = c.host.file.clone();
            hosts.push(c.host);
            let Some(document) = c.document else { return Ok(()) };
            out::json_line(&fleet_json::result(&file, None, "config", &document).map_err(cannot)?)
        }
        Err(f) => {
            if input.json {
                out::json_line(&fleet_json::failure(&f).map_err(cannot)?)?;
            }
            failed.push(f);
            Ok(())
        }
    })?;
    fleet_config::worst_first(&mut hosts);
    // Without a host, every part would be listed.
    let unmatched = if hosts.is_empty() { Vec::new() } else { unmatched.texts() };
    if input.json {
        unmatched.iter().for_each(|t| out::note(common.quiet, &format!("ringwise: {t}")));
    } else {
        let config = path.display().to_string();
        let page = ConfigPage { config: &config, failed: &failed, unmatched: &unmatched, all: a.all };
        out::answer(&fleet_config::page(&hosts, &page, &crate::style::detect(common)))?;
    }
    for (note, n) in load_notes.iter().take(MOST_NOTES) {
        out::note(common.quiet, &format!("ringwise: {note} ({})", plural(*n, "host")));
    }
    if load_notes.len() > MOST_NOTES {
        let more = plural(load_notes.len() - MOST_NOTES, "more note");
        out::note(common.quiet, &format!("ringwise: {more} about host.act_on_load, for other interfaces"));
    }
    fleet::report_failed(failed.len(), files.len());
    // As `check` and `plan` do for a directory whose subdirectories contain the captures.
    if let [dir] = a.from.as_slice()
        && hosts.is_empty()
        && !ringwise_sys::directories_of_captures(dir).is_empty()
    {
        let command = format!("ringwise config check {}", ringwise_model::shell::quote(&path.display().to_string()));
        let dir = dir.display().to_string();
        let dir = ringwise_model::shell::quote(dir.trim_end_matches('/'));
        out::error(&format!("Try: {command} --from {dir}/*"));
    }
    // What could not be read may hide any problem, so it counts as a failure.
    let worst = hosts.iter().map(|h| h.verdict).min();
    Ok(match worst {
        _ if !failed.is_empty() => Status::Error,
        Some(ConfigFit::Fails) => Status::Error,
        Some(ConfigFit::FitsPartly) => Status::Findings,
        _ => Status::Ok,
    })
}

fn cannot(e: serde_json::Error) -> Fail {
    Fail::error(format!("cannot write JSON: {e}"))
}

/// Compares the file with one host. An error is about the capture; a fault of the file on this host is a result.
fn checked(input: &FileInput, file: &Path, source: &Source) -> Result<Checked> {
    let options = Options { follow: input.config.named(), ..Options::all() };
    let s = source.snapshot(&options, &input.quiet)?;
    let parts = applicable(input.config, &s);
    let name = file.display().to_string();
    let host = match planned(input, &name, source, &s, options) {
        Ok(host) => host,
        Err(e) => ConfigOnHost::failed(&name, &s, e.faults()).counted_as(e.faults_without_host()),
    };
    let entries = parts.entries.iter().map(ToString::to_string).collect();
    let undecided = parts.undecided.iter().map(|u| u.note.clone()).collect();
    let host = host.with_parts(parts.host_groups.clone(), entries, undecided);
    let document = if input.json { Some(serde_json::to_string(&host).map_err(cannot)?) } else { None };
    Ok(Checked { host: host.shortened(), parts, document })
}

/// An error names the reason for which the file fails on this host.
fn planned(
    input: &FileInput,
    name: &str,
    source: &Source,
    s: &Snapshot,
    options: Options,
) -> std::result::Result<ConfigOnHost, Error> {
    let (requested, _) = input.wanted.intent(s)?;
    let made = plan::planning(source, s.clone(), options, Vec::new(), requested, (false, false), &input.quiet)?;
    let plan = made.plan(ManualChangePolicy::Ask)?;
    Ok(ConfigOnHost::planned(name, s, &plan))
}

/// Parts of the file that have matched no host so far.
struct Unmatched<'a> {
    config: &'a Config,
    parts: Applicable,
    /// Host groups that match a host.
    applied: BTreeSet<String>,
}

impl<'a> Unmatched<'a> {
    fn of(config: &'a Config) -> Self {
        let groups = config.host_groups.iter();
        let entries = config.entries.iter().chain(groups.clone().flat_map(|g| &g.entries));
        let parts = Applicable {
            host_groups: groups.map(|g| g.name.clone()).collect(),
            undecided: Vec::new(),
            entries: entries.map(|e| e.by.clone()).collect(),
            names: config.host.interfaces.iter().chain(&config.host.act_on_load).cloned().collect(),
            load_note: None,
        };
        Self { config, parts, applied: BTreeSet::new() }
    }

    fn remove(&mut self, matched: &Applicable) {
        let undecided = |g: &String| matched.undecided.iter().any(|u| u.name == *g);
        self.parts.host_groups.retain(|g| !matched.host_groups.contains(g) && !undecided(g));
        self.applied.extend(matched.host_groups.iter().cloned());
        self.parts.entries.retain(|e| !matched.entries.contains(e));
        self.parts.names.retain(|n| !matched.names.contains(n));
    }

    /// The entries of a group are listed only if it matches a host.
    fn texts(&self) -> Vec<String> {
        let left = |g: &&ringwise_config::HostGroup| self.parts.host_groups.contains(&g.name);
        let applies = |g: &&ringwise_config::HostGroup| self.applied.contains(&g.name);
        let entries = self.config.host_groups.iter().filter(applies).flat_map(|g| &g.entries);
        let entries = self.config.entries.iter().chain(entries).filter(|e| self.parts.entries.contains(&e.by));
        let brackets =
            |text: &str| if text.contains('[') { " (patterns may contain * and ?, but no brackets)" } else { "" };
        let entry = |e: &ringwise_config::InterfaceEntry| {
            let text = e.matcher.to_string();
            format!("{}: no interface matches {text}{}", e.by, brackets(&text))
        };
        let entries = entries.map(entry);
        let groups = self.config.host_groups.iter().filter(left);
        let groups = groups.map(|g| format!("{}: host group {} matches no host ({})", g.by, g.name, g.matcher));
        let host = &self.config.host;
        let keys = [("interfaces", &host.interfaces), ("act_on_load", &host.act_on_load)];
        let names = keys.iter().flat_map(|(key, all)| all.iter().map(move |n| (key, n)));
        let names = names.filter(|(_, n)| self.parts.names.contains(n));
        let names = names.map(|(key, n)| format!("host.{key}: no interface is named {n}{}", brackets(n)));
        entries.chain(names).chain(groups).collect()
    }
}
