//! `ringwise config`: shows and checks the file without changing anything.

mod import;
mod pinned;
mod plannable;
mod several;

use std::path::{Path, PathBuf};

use ringwise_config::{Bound, Config, HostPart, InterfaceEntry, export};
use ringwise_discover::Options;
use ringwise_knob::features;
use ringwise_model::shell::quote;
use ringwise_model::{Goal, Intent, Knob, Snapshot};
use ringwise_render::json::Document;
use serde::Serialize;

use crate::args::{Common, ConfigArgs, ConfigCheck, ConfigCmd, ConfigFile, ExportAs, SourceArgs};
use crate::cmd::goals;
use crate::exit::{Fail, Result, Status};
use crate::{out, source};
use ringwise_text::{RecordingName, hang, plural};

pub(super) fn run(a: &ConfigArgs, common: &Common) -> Result<Status> {
    match &a.what {
        ConfigCmd::Check(a) => check(a, common),
        ConfigCmd::Show(a) => show(&a.file, &a.from, common),
        ConfigCmd::Init(a) => {
            writes_files(common, "config init", "TOML")?;
            let source = source::open(&a.from)?;
            let s = source.snapshot(&Options::all(), common)?;
            out::answer(&ringwise_config::init(&s, goals::chosen(a.goal, &source, &s, common)))?;
            Ok(Status::Ok)
        }
        ConfigCmd::Import(a) => {
            writes_files(common, "config import", "TOML")?;
            import::run(a, common)
        }
        ConfigCmd::Export(a) => {
            writes_files(common, "config export", "files for other programs")?;
            exported(&a.file, a.format, &a.from, common)
        }
        ConfigCmd::Schema => {
            out::json(&ringwise_config::schema::document())?;
            Ok(Status::Ok)
        }
    }
}

/// `-j` is refused where the output has another format.
fn writes_files(common: &Common, command: &str, what: &str) -> Result<()> {
    match common.json {
        true => Err(Fail::usage(format!("-j: {command} prints {what}, not JSON")).next(format!("ringwise {command}"))),
        false => Ok(()),
    }
}

/// What `ringwise config show -j` prints.
#[derive(Serialize)]
struct ShownFile<'a> {
    #[serde(flatten)]
    intent: &'a Intent,
    act_on_load: &'a [String],
}

/// What `ringwise config check FILE -j` prints about a file without faults; faults are an error document.
#[derive(Serialize)]
struct CheckedFile {
    file: String,
    /// `None`: the file names none, so it is `balanced`.
    goal: Option<Goal>,
    /// Names and patterns; empty: all suitable interfaces.
    interfaces: Vec<String>,
    host_groups: usize,
    entries: usize,
    settings: usize,
    groups: usize,
    /// Keys that `apply` and each boot skip, because their changes interrupt traffic and the file does not allow it.
    skipped_without_permission: Vec<String>,
}

fn load(f: &ConfigFile) -> Result<(PathBuf, Config)> {
    let path = f.file.clone().unwrap_or_else(|| Path::new(ringwise_model::DEFAULT_CONFIG).into());
    let config = ringwise_intent::load_config(&path)?;
    Ok((path, config))
}

/// `named`: interfaces that the file names, see [`Config::named`].
fn host(from: &SourceArgs, named: Vec<String>, common: &Common) -> Result<Snapshot> {
    source::open(from)?.snapshot(&Options { follow: named, ..Options::all() }, common)
}

fn check(a: &ConfigCheck, common: &Common) -> Result<Status> {
    several::refuse_config_behind_from(a)?;
    let (path, c) = load(&a.file)?;
    if !a.from.is_empty() {
        return several::run(a, &path, &c, common);
    }
    let grouped = &c.host_groups;
    let entries = || c.entries.iter().chain(grouped.iter().flat_map(|g| &g.entries));
    let hosts = std::iter::once(&c.host).chain(grouped.iter().map(|g| &g.host));
    let wishes = hosts.map(|h| h.wishes.len()).chain(entries().map(|e| e.wishes.len())).sum::<usize>();
    let groups: usize = entries().map(|e| e.groups.len()).sum();
    let harmful = interrupting(&c);
    if common.json {
        let body = CheckedFile {
            file: path.display().to_string(),
            goal: c.host.goal,
            interfaces: c.host.interfaces.clone(),
            host_groups: grouped.len(),
            entries: entries().count(),
            settings: wishes,
            groups,
            skipped_without_permission: harmful,
        };
        out::json(&Document { schema: "ringwise.config-check", version: 1, body })?;
        return Ok(Status::Ok);
    }
    let goal = c.host.goal.map_or_else(|| format!("{} (default)", Goal::default()), |g| g.to_string());
    let interfaces = match c.host.interfaces.as_slice() {
        [] => "all suitable interfaces".into(),
        some => format!("interfaces {}", some.join(" ")),
    };
    let mut found = vec![format!("goal {goal}"), interfaces];
    for (n, what) in
        [(grouped.len(), "host group"), (entries().count(), "interface entry"), (wishes, "setting"), (groups, "group")]
    {
        found.extend((n > 0).then(|| plural(n, what)));
    }
    let mut text = format!("{}: no faults: {}\n", path.display(), found.join(", "));
    if !harmful.is_empty() {
        let note = format!(
            "changes of {} interrupt traffic. apply and each boot skip them unless [host] has allow_disruption = true; \
             for apply, --allow-disruption does the same.",
            harmful.join(", ")
        );
        text += &hang("Note: ", &note, crate::style::detect(common).width);
    }
    if !common.quiet {
        out::answer(&text)?;
    }
    Ok(Status::Ok)
}

/// Keys of the file whose change interrupts traffic with every driver, and that the file does not allow to do so, each
/// once. A host group has the permission of the top level, unless it has its own.
fn interrupting(c: &Config) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let top = (&c.host, &c.entries, c.host.allow_disruption);
    let groups = c.host_groups.iter();
    let groups = groups.map(|g| (&g.host, &g.entries, g.host.allow_disruption.or(c.host.allow_disruption)));
    for (host, entries, _) in std::iter::once(top).chain(groups).filter(|(.., allowed)| *allowed != Some(true)) {
        interrupting_keys(host, entries, &mut keys);
    }
    keys
}

fn interrupting_keys(host: &HostPart, entries: &[InterfaceEntry], keys: &mut Vec<String>) {
    if host.queues.is_some() && !keys.iter().any(|k| k == "queues") {
        keys.push("queues".into());
    }
    for w in entries.iter().flat_map(|e| &e.wishes) {
        let key = match &w.knob {
            Knob::Channels { .. } => "channels".to_string(),
            Knob::Rings { .. } | Knob::LongestRings { .. } => "rings".to_string(),
            Knob::Pause { .. } => "pause".to_string(),
            Knob::Feature { name, .. } if features::interrupts_traffic(name) => format!("features.{name}"),
            _ => continue,
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
}

/// Without the settings of interfaces that `host.interfaces` leaves out.
fn bound(c: &Config, s: &Snapshot, common: &Common) -> Result<Bound> {
    let mut b = ringwise_config::bind(c, &[], s).map_err(ringwise_intent::Error::Unbound)?;
    let only = &b.host.interfaces;
    let chosen = |dev: &str| s.nic(dev).is_some_and(|n| ringwise_config::is_chosen(only, s, n));
    b.intent.wishes.retain(|w| w.dev.as_deref().is_none_or(chosen));
    b.intent.groups.retain(|g| chosen(&g.dev));
    b.intent.dev_goals.retain(|dev, _| chosen(dev));
    b.notes.iter().for_each(|n| out::note(common.quiet, &format!("ringwise: {n}")));
    Ok(b)
}

/// The same file with the interfaces of this host in place of its matchers.
fn show(f: &ConfigFile, from: &SourceArgs, common: &Common) -> Result<Status> {
    let (_, c) = load(f)?;
    let b = bound(&c, &host(from, c.named(), common)?, common)?;
    if common.json {
        let body = ShownFile { intent: &b.intent, act_on_load: &b.host.act_on_load };
        out::json(&Document { schema: "ringwise.config-show", version: 1, body })?;
    } else {
        let applies = |name: &String| c.host_groups.iter().find(|g| g.name == *name);
        let groups = b.intent.host_groups.iter().filter_map(applies);
        let groups = groups.map(|g| format!("# host group {} applies ({}): {}\n", g.name, g.by, g.matcher));
        let mut text: String = groups.collect();
        if text.is_empty() && !c.host_groups.is_empty() {
            text.push_str("# no host group applies\n");
        }
        let mut file = Config::of_intent(&ringwise_plan::in_full(&b.intent));
        file.host.act_on_load.clone_from(&b.host.act_on_load);
        out::answer(&(text + &ringwise_config::print(&file)))?;
    }
    Ok(Status::Ok)
}

fn exported(f: &ConfigFile, format: ExportAs, from: &SourceArgs, common: &Common) -> Result<Status> {
    let (path, c) = load(f)?;
    let s = host(from, c.named(), common)?;
    let b = bound(&c, &s, common)?;
    let i = b.intent;
    let mut e = match format {
        ExportAs::Link => export::link(&i, &s.nics),
        ExportAs::Nmstate => export::nmstate(&i, &s.nics),
        ExportAs::Tuned => export::tuned(&i, &s.nics),
        ExportAs::Udev => export::udev(&i, &s.nics),
    };
    if !b.host.act_on_load.is_empty() {
        e.left_out.push(format!("host act_on_load = {}", b.host.act_on_load.join(" ")));
    }
    let list = || e.left_out.iter().map(|l| format!("\n    {l}")).collect::<String>();
    // The default file of this host does not apply to a recorded host.
    let named = f.file.is_some() || from.from.is_some();
    let file = if named { format!(" --config {}", quote(&path.display().to_string())) } else { String::new() };
    let script = RecordingName::of(from.from.as_deref()).reads(format!("ringwise plan -o sh{file}"));
    if e.files.is_empty() {
        let what = if e.left_out.is_empty() { " no settings".into() } else { list() };
        return Err(Fail::error(format!("{} has nothing that this format can express:{what}", path.display()))
            .code("nothing_to_export")
            .next(script));
    }
    let many = e.files.len() > 1;
    let text = e.files.iter().map(|(name, text)| if many { format!("# ==> {name}\n{text}\n") } else { text.clone() });
    out::answer(&text.collect::<String>())?;
    if !e.left_out.is_empty() {
        let text = format!(
            "ringwise: this format cannot express:{}\nA script, which expresses most of them: {script}",
            list()
        );
        out::note(common.quiet, &text);
    }
    Ok(Status::Ok)
}
