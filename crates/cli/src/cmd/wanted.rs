//! What is wanted: the configuration file, `--set` and the flags over it, before anything of the host is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringwise_config::{Config, HostPart};
use ringwise_model::{FarNode, Goal, GoalChoice, GroupQueues, Intent, NicKind, Smt, Snapshot};

use crate::args::{Common, IntentArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;

/// Where the file is looked for.
pub(super) const DEFAULT: &str = "/etc/ringwise/ringwise.toml";

/// Read, sound, and not yet about any host.
pub(super) struct Wanted {
    /// None: flags alone.
    pub file: Option<PathBuf>,
    config: Config,
    /// `--set`, each, then the flags.
    over: Vec<Config>,
    devs: Vec<String>,
}

/// The file at `path`, or every fault of it.
pub(super) fn load(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    parse(path, &text)
}

fn unreadable(path: &Path, e: &std::io::Error) -> Fail {
    let why = match e.raw_os_error() {
        Some(errno) => ringwise_sys::errno_text(errno),
        None if e.kind() == ErrorKind::InvalidData => "it is no text in UTF-8".into(),
        None => e.to_string(),
    };
    let fail = Fail::error(format!("{}: {why}", path.display()));
    // Where there is a file, another one is no help.
    match e.kind() {
        ErrorKind::NotFound => fail.next("ringwise config init > FILE      (one from this host)"),
        _ => fail,
    }
}

fn parse(path: &Path, text: &str) -> Result<Config> {
    ringwise_config::parse(&path.display().to_string(), text).map_err(|f| Fail::error(format!("{f}")))
}

/// The file that is named, else the default one where it is there. `none`: no file.
fn find(named: Option<&Path>, recorded: bool) -> Result<Option<(PathBuf, Config)>> {
    match named {
        Some(p) if p == Path::new("none") => Ok(None),
        Some(p) => Ok(Some((p.to_path_buf(), load(p)?))),
        // What lies here says nothing about a recorded host.
        None if recorded => Ok(None),
        None => match std::fs::read_to_string(DEFAULT) {
            Ok(text) => Ok(Some((DEFAULT.into(), parse(Path::new(DEFAULT), &text)?))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(unreadable(Path::new(DEFAULT), &e)),
        },
    }
}

/// All of it, or what is wrong with it.
pub(super) fn read(devs: &[String], a: &IntentArgs, recorded: bool) -> Result<Wanted> {
    if a.goal == Some(GoalChoice::Auto) {
        return Err(Fail::usage("--goal auto works with plan, apply, check and persist only; name the goal here"));
    }
    let mut over = Vec::new();
    let mut wrong = Vec::new();
    for s in &a.set {
        match ringwise_config::parse_set(s) {
            Ok(c) => over.push(c),
            Err(f) => wrong.push(f.to_string()),
        }
    }
    if !wrong.is_empty() {
        return Err(Fail::usage(wrong.join("\n")));
    }
    let found = find(a.config.as_deref(), recorded)?;
    let (file, mut config) = found.map_or_else(|| (None, Config::default()), |(p, c)| (Some(p), c));
    if let (Some(goal), Some(path)) = (a.named_goal(), &file) {
        let mut others: Vec<String> = Vec::new();
        if let Some(g) = config.host.goal.filter(|g| *g != goal) {
            others.push(format!("goal {g}"));
        }
        let entries = config.entries.iter().filter_map(|e| Some((e, e.goal.filter(|g| *g != goal)?)));
        others.extend(entries.map(|(e, g)| format!("goal {g} for {}", e.matcher)));
        if !others.is_empty() && !a.override_config {
            return Err(Fail::new(
                Status::Usage,
                format!("--goal {goal} contradicts {}, which says {}", path.display(), others.join(", ")),
            )
            .next(format!("--goal {goal} --override-config, or without the file: --config none")));
        }
        config.entries.iter_mut().for_each(|e| e.goal = None);
    }
    over.push(Config { host: flags(a), ..Config::default() });
    resize_latency(&mut config, &over);
    let wanted = Wanted { file, config, over, devs: devs.to_vec() };
    sound(&wanted.whole())?;
    Ok(wanted)
}

/// What was laid over the file contradicts it, or itself.
fn sound(c: &Config) -> Result<()> {
    match ringwise_config::contradictions(c) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(Fail::usage(wrong.join("\nringwise: "))),
    }
}

/// Flags and `--set` alone, as a configuration.
pub(super) fn of_flags(a: &IntentArgs) -> Result<Config> {
    let w = read(&[], &IntentArgs { config: Some("none".into()), ..a.clone() }, false)?;
    Ok(w.whole())
}

/// `--latency-queues` goes before the number that the file has for that group. Queues that are named stay: the plan says
/// that the two contradict each other.
fn resize_latency(config: &mut Config, over: &[Config]) {
    let last = |f: fn(&HostPart) -> bool| over.iter().rev().map(|o| &o.host).find(|h| f(h));
    let Some(n) = last(|h| h.latency_queues.is_some()).and_then(|h| h.latency_queues) else { return };
    let goal = last(|h| h.goal.is_some()).and_then(|h| h.goal).or(config.host.goal);
    let mixed = config.entries.iter_mut().filter(|e| e.goal.or(goal) == Some(Goal::Mixed));
    for g in mixed.flat_map(|e| &mut e.groups).filter(|g| g.name.eq_ignore_ascii_case("latency")) {
        if matches!(g.queues, GroupQueues::Count(_)) {
            g.queues = GroupQueues::Count(n);
        }
    }
}

/// Flags as `[host]` would say them.
fn flags(a: &IntentArgs) -> HostPart {
    HostPart {
        goal: a.named_goal(),
        cpus: a.cpus.clone(),
        reserve: a.reserve.clone(),
        exclude_cpus: a.exclude_cpus.clone(),
        queues: a.queues,
        smt: a.smt.map(Smt::from),
        far_node: a.far_node.map(FarNode::from),
        allow_disruption: a.allow_disruption.then_some(true),
        pair_as_article: a.pair_as_article.then_some(true),
        latency_queues: a.latency_queues,
        strict: a.strict.then_some(true),
        ..HostPart::default()
    }
}

impl Wanted {
    /// As one file. Without a host only what names an interface is joined.
    pub(super) fn whole(&self) -> Config {
        let mut c = self.config.clone();
        self.over.iter().for_each(|o| c.lay(o));
        self.only(c)
    }

    fn only(&self, mut c: Config) -> Config {
        if !self.devs.is_empty() {
            c.host.interfaces.clone_from(&self.devs);
        }
        c
    }

    /// Only the host knows whether an entry by driver, address or label is the interface that `--set` names.
    fn needs_host(&self) -> bool {
        let named = self.over.iter().flat_map(|o| &o.entries);
        let mut unknown = named.filter(|e| !self.config.entries.iter().any(|have| have.matcher == e.matcher));
        !self.config.entries.is_empty() && unknown.next().is_some()
    }

    /// As one file that means on this host what flags and file mean together, where that needs a host.
    pub(super) fn joined(&self, host: impl FnOnce() -> Result<Snapshot>, common: &Common) -> Result<Config> {
        if !self.needs_host() {
            return Ok(self.in_full(self.whole()));
        }
        let s = host()?;
        // What is ambiguous, or names nothing, is so on paper too.
        self.bound(&s)?;
        let (c, notes) = ringwise_config::joined(&self.config, &self.over, &s.nics);
        notes.iter().for_each(|n| out::note(common.quiet, &format!("ringwise: {n}")));
        Ok(self.in_full(self.only(c)))
    }

    fn bound(&self, s: &Snapshot) -> Result<ringwise_config::Bound> {
        ringwise_config::bind(&self.config, &self.over, &s.nics)
            .map_err(|wrong| Fail::error(wrong.join("\nringwise: ")))
    }

    /// With what the goal has for every member that was left open.
    fn in_full(&self, mut c: Config) -> Config {
        let dev_goals =
            c.entries.iter().filter_map(|e| Some((e.matcher.to_string(), e.goal?))).collect::<BTreeMap<_, _>>();
        let h = &mut c.host;
        let open = Intent {
            goal: h.goal.unwrap_or_default(),
            dev_goals,
            smt: h.smt,
            far_node: h.far_node,
            pair_as_article: h.pair_as_article.unwrap_or_default(),
            ..Intent::default()
        };
        let full = ringwise_plan::in_full(&open);
        (h.goal, h.smt, h.far_node) = (Some(full.goal), full.smt, full.far_node);
        c
    }

    /// On this host.
    pub(super) fn intent(&self, s: &Snapshot, common: &Common) -> Result<Intent> {
        let bound = self.bound(s)?;
        for n in &bound.notes {
            out::note(common.quiet, &format!("ringwise: {n}"));
        }
        let mut i = bound.intent;
        // An entry by driver or address is known to be the interface of --set only now.
        sound(&Config::of_intent(&i))?;
        i.config = self.file.as_ref().map(|f| f.display().to_string());
        if !self.devs.is_empty() {
            let (devs, notes) = members(s, &self.devs);
            notes.iter().for_each(|n| out::note(common.quiet, &format!("ringwise: {n}")));
            let named = |dev: &String| devs.contains(dev);
            i.devs.clone_from(&devs);
            i.wishes.retain(|w| w.dev.as_ref().is_none_or(named));
            i.groups.retain(|g| named(&g.dev));
            i.dev_goals.retain(|dev, _| named(dev));
        }
        Ok(i)
    }
}

/// Replaces a bond, bridge or VLAN by the interfaces below it, which have the queues. Returns notes for the user as well.
fn members(s: &Snapshot, named: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut devs, mut notes) = (Vec::new(), Vec::new());
    for dev in named {
        let below: Vec<String> = match s.nic(dev) {
            Some(nic) => s.members_of(nic).iter().map(|n| n.name().to_string()).collect(),
            None => Vec::new(),
        };
        if below.is_empty() {
            devs.push(dev.clone());
            continue;
        }
        let kind = match s.nic(dev).map(|n| &n.kind) {
            Some(NicKind::Software { kind }) => format!(" ({kind})"),
            _ => String::new(),
        };
        notes.push(format!("{dev}{kind} has no queues of its own: using {} instead", below.join(", ")));
        devs.extend(below);
    }
    let mut seen = BTreeSet::new();
    devs.retain(|d| seen.insert(d.clone()));
    (devs, notes)
}
