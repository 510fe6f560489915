//! What is wanted: the configuration file, `--set` and the flags over it, before anything of the host is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringwise_config::{Config, HostPart};
use ringwise_model::{Goal, GoalChoice, GroupQueues, Intent, IntentFlags, NicKind, Snapshot};

use crate::error::{Error, Result};

/// Where the file is looked for.
pub const DEFAULT_FILE: &str = "/etc/ringwise/ringwise.toml";

/// Read, sound, and not yet about any host.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// None: flags alone.
    file: Option<PathBuf>,
    config: Config,
    /// `--set`, each, then the flags.
    over: Vec<Config>,
    devs: Vec<String>,
}

/// The file at `path`.
///
/// Errors: it cannot be read; every fault of it.
pub fn load(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, e))?;
    parse(path, &text)
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::Config { path: path.into(), error }
}

fn parse(path: &Path, text: &str) -> Result<Config> {
    Ok(ringwise_config::parse(&path.display().to_string(), text)?)
}

/// The file that is named, else the default one where it is there. `none`: no file.
fn find(named: Option<&Path>, recorded: bool) -> Result<Option<(PathBuf, Config)>> {
    match named {
        Some(p) if p == Path::new("none") => Ok(None),
        Some(p) => Ok(Some((p.to_path_buf(), load(p)?))),
        // What lies here says nothing about a recorded host.
        None if recorded => Ok(None),
        None => match std::fs::read_to_string(DEFAULT_FILE) {
            Ok(text) => Ok(Some((DEFAULT_FILE.into(), parse(Path::new(DEFAULT_FILE), &text)?))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(unreadable(Path::new(DEFAULT_FILE), e)),
        },
    }
}

/// Flags over the file that is named, else over the default one where it is there. `file`: `none` for no file. `recorded`:
/// it is for a recording, about which the default file of this host says nothing.
///
/// Errors: goal `auto`; a file or flags that are wrong, or contradict each other.
pub fn read(a: &IntentFlags, file: Option<&Path>, recorded: bool) -> Result<Wanted> {
    if a.goal == Some(GoalChoice::Auto) {
        return Err(Error::AutoGoal);
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
        return Err(Error::Set(wrong));
    }
    let found = find(file, recorded)?;
    let (file, mut config) = found.map_or_else(|| (None, Config::default()), |(p, c)| (Some(p), c));
    if let (Some(goal), Some(path)) = (named_goal(a), &file) {
        let mut others: Vec<String> = Vec::new();
        if let Some(g) = config.host.goal.filter(|g| *g != goal) {
            others.push(format!("goal {g}"));
        }
        let entries = config.entries.iter().filter_map(|e| Some((e, e.goal.filter(|g| *g != goal)?)));
        others.extend(entries.map(|(e, g)| format!("goal {g} for {}", e.matcher)));
        if !others.is_empty() && !a.override_config {
            return Err(Error::OtherGoal { goal, path: path.clone(), others });
        }
        config.entries.iter_mut().for_each(|e| e.goal = None);
    }
    over.push(Config { host: flags(a), ..Config::default() });
    resize_latency(&mut config, &over);
    let wanted = Wanted { file, config, over, devs: a.devs.clone() };
    sound(&wanted.whole())?;
    Ok(wanted)
}

/// What was laid over the file contradicts it, or itself.
fn sound(c: &Config) -> Result<()> {
    match ringwise_config::contradictions(c) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(Error::Contradictions(wrong)),
    }
}

/// Flags and `--set` alone, as a configuration.
///
/// Errors: as [`read`].
pub fn of_flags(a: &IntentFlags) -> Result<Config> {
    Ok(read(a, Some(Path::new("none")), false)?.whole())
}

/// `None`: no goal is given, or `auto`, which is not resolved yet.
fn named_goal(a: &IntentFlags) -> Option<Goal> {
    match a.goal {
        Some(GoalChoice::Of(goal)) => Some(goal),
        Some(GoalChoice::Auto) | None => None,
    }
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
fn flags(a: &IntentFlags) -> HostPart {
    HostPart {
        goal: named_goal(a),
        cpus: a.cpus.clone(),
        reserve: a.reserve.clone(),
        exclude_cpus: a.exclude_cpus.clone(),
        queues: a.queues,
        smt: a.smt,
        far_node: a.far_node,
        allow_disruption: a.allow_disruption.then_some(true),
        pair_as_article: a.pair_as_article.then_some(true),
        latency_queues: a.latency_queues,
        strict: a.strict.then_some(true),
        ..HostPart::default()
    }
}

impl Wanted {
    /// As one file. Without a host only what names an interface is joined.
    fn whole(&self) -> Config {
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

    /// As one file that means on this host what flags and file mean together, and notes for the user. `host` is called
    /// where that needs a host.
    ///
    /// Errors: those of `host`; what is ambiguous, or names nothing, is so on paper too.
    pub fn joined<E: From<Error>>(
        &self,
        host: impl FnOnce() -> std::result::Result<Snapshot, E>,
    ) -> std::result::Result<(Config, Vec<String>), E> {
        if !self.needs_host() {
            return Ok((self.in_full(self.whole()), Vec::new()));
        }
        let s = host()?;
        self.bound(&s)?;
        let (c, notes) = ringwise_config::joined(&self.config, &self.over, &s.nics);
        Ok((self.in_full(self.only(c)), notes))
    }

    fn bound(&self, s: &Snapshot) -> Result<ringwise_config::Bound> {
        ringwise_config::bind(&self.config, &self.over, &s.nics).map_err(Error::Unbound)
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

    /// On this host, and notes for the user.
    ///
    /// Errors: an entry that is ambiguous or names nothing; entries that contradict each other here.
    pub fn intent(&self, s: &Snapshot) -> Result<(Intent, Vec<String>)> {
        let bound = self.bound(s)?;
        let (mut i, mut notes) = (bound.intent, bound.notes);
        // An entry by driver or address is known to be the interface of --set only now.
        sound(&Config::of_intent(&i))?;
        i.config = self.file.as_ref().map(|f| f.display().to_string());
        if !self.devs.is_empty() {
            let (devs, replaced) = members(s, &self.devs);
            notes.extend(replaced);
            let named = |dev: &String| devs.contains(dev);
            i.devs.clone_from(&devs);
            i.wishes.retain(|w| w.dev.as_ref().is_none_or(named));
            i.groups.retain(|g| named(&g.dev));
            i.dev_goals.retain(|dev, _| named(dev));
        }
        Ok((i, notes))
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
