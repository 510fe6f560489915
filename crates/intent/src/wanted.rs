//! What is requested: the configuration file, overridden by `--set` and flags, before the host is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringwise_config::{Bound, Config, HostPart, InterfaceEntry};
use ringwise_model::{DEFAULT_CONFIG, Goal, GoalChoice, GroupQueues, Intent, IntentFlags, Snapshot};

use crate::error::{Error, Result};

/// A request that was read and checked, but not yet matched with a host.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// None: only flags were given.
    file: Option<PathBuf>,
    config: Config,
    /// Each `--set`, then the flags.
    over: Vec<Config>,
    devs: Vec<String>,
    given: IntentFlags,
}

/// Reads the file at `path`.
///
/// Errors: the file cannot be read, or has faults; all of them are listed.
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

/// Finds the named file, or the default one if it exists. `none`: no file.
fn find(named: Option<&Path>, recorded: bool) -> Result<Option<(PathBuf, Config)>> {
    match named {
        Some(p) if p == Path::new("none") => Ok(None),
        Some(p) => Ok(Some((p.to_path_buf(), load(p)?))),
        // The default file of this host does not apply to a recorded host.
        None if recorded => Ok(None),
        None => match std::fs::read_to_string(DEFAULT_CONFIG) {
            Ok(text) => Ok(Some((DEFAULT_CONFIG.into(), parse(Path::new(DEFAULT_CONFIG), &text)?))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(unreadable(Path::new(DEFAULT_CONFIG), e)),
        },
    }
}

/// Flags override the named file, or the default one if it exists. `file`: `none` for no file. `recorded`: the request
/// is for a recording, to which the default file of this host does not apply.
///
/// Errors: goal `auto`; a file or flags that are wrong or contradict each other.
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
        let hosts = config.host_groups.iter().filter_map(|h| Some((h, h.host.goal.filter(|g| *g != goal)?)));
        others.extend(hosts.map(|(h, g)| format!("goal {g} for host group {}", h.name)));
        let entries = config.entries.iter().chain(config.host_groups.iter().flat_map(|h| &h.entries));
        let entries = entries.filter_map(|e| Some((e, e.goal.filter(|g| *g != goal)?)));
        others.extend(entries.map(|(e, g)| format!("goal {g} for {}", e.matcher)));
        if !others.is_empty() && !a.override_config {
            return Err(Error::OtherGoal { goal, path: path.clone(), others });
        }
        let grouped = config.host_groups.iter_mut().flat_map(|h| &mut h.entries);
        config.entries.iter_mut().chain(grouped).for_each(|e| e.goal = None);
        for h in &mut config.host_groups {
            h.host.goal = None;
            h.host_keys.remove("goal");
        }
    }
    over.push(Config { host: flags(a), ..Config::default() });
    resize_latency(&mut config, &over);
    let wanted = Wanted { file, config, over, devs: a.devs.clone(), given: a.clone() };
    sound(&wanted.whole())?;
    Ok(wanted)
}

/// Fails if the overrides contradict the file or each other.
fn sound(c: &Config) -> Result<()> {
    match ringwise_config::contradictions(c) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(Error::Contradictions(wrong)),
    }
}

/// Only flags and `--set`, as a configuration.
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

/// `--latency-queues` overrides the number in the file for that group. Named queues stay; the plan reports that the two
/// contradict each other.
fn resize_latency(config: &mut Config, over: &[Config]) {
    let last = |f: fn(&HostPart) -> bool| over.iter().rev().map(|o| &o.host).find(|h| f(h));
    let Some(n) = last(|h| h.latency_queues.is_some()).and_then(|h| h.latency_queues) else { return };
    let named = last(|h| h.goal.is_some()).and_then(|h| h.goal);
    let goal = named.or(config.host.goal);
    let resize = |goal: Option<Goal>, entries: &mut [InterfaceEntry]| {
        let mixed = entries.iter_mut().filter(|e| e.goal.or(goal) == Some(Goal::Mixed));
        for g in mixed.flat_map(|e| &mut e.groups).filter(|g| g.name.eq_ignore_ascii_case("latency")) {
            if matches!(g.queues, GroupQueues::Count(_)) {
                g.queues = GroupQueues::Count(n);
            }
        }
    };
    resize(goal, &mut config.entries);
    for h in &mut config.host_groups {
        resize(named.or(h.host.goal).or(goal), &mut h.entries);
    }
}

/// Flags as the `[host]` section of a file.
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

/// Whether this name or pattern (`*`, `?`) of a configuration names the interface.
pub fn names(pattern: &str, dev: &str) -> bool {
    ringwise_config::glob_matches(pattern, dev)
}

impl Wanted {
    /// The configuration file. `None`: only flags were given.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Interfaces whose RSS table the service writes when the load of this host is uneven, by name or pattern. Empty if the
    /// file does not fit this host. `host` is called only if the file has host groups.
    ///
    /// Errors: those of `host`.
    pub fn act_on_load<E>(
        &self,
        host: impl FnOnce() -> std::result::Result<Snapshot, E>,
    ) -> std::result::Result<Vec<String>, E> {
        match self.has_host_groups() {
            true => Ok(self.bound(&host()?).map(|b| b.host.act_on_load).unwrap_or_default()),
            false => Ok(self.config.host.act_on_load.clone()),
        }
    }

    /// Interfaces that are named one by one, by arguments, the file and `--set`.
    pub fn named(&self) -> Vec<String> {
        let configs = std::iter::once(&self.config).chain(&self.over);
        let all: BTreeSet<String> = configs.flat_map(Config::named).chain(self.devs.iter().cloned()).collect();
        all.into_iter().collect()
    }

    /// Whether the file has host groups, so that the host decides which settings are requested.
    pub fn has_host_groups(&self) -> bool {
        !self.config.host_groups.is_empty()
    }

    /// Combines everything into one file. Without a host only entries that name an interface are merged.
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

    /// Whether the host is needed to decide if an entry by driver, address or label is the interface that `--set`
    /// names.
    fn needs_host(&self) -> bool {
        // With host groups, flags override what one host has, and the file of another host would differ.
        if self.has_host_groups() {
            return true;
        }
        let named = self.over.iter().flat_map(|o| &o.entries);
        let mut unknown = named.filter(|e| !self.config.entries.iter().any(|have| have.matcher == e.matcher));
        !self.config.entries.is_empty() && unknown.next().is_some()
    }

    /// One file that means the same on this host as flags and file together, and notes for the user. `host` is called
    /// only if the host is needed.
    ///
    /// Errors: those of `host`; an entry is ambiguous on this host, or matches nothing.
    pub fn joined<E: From<Error>>(
        &self,
        host: impl FnOnce() -> std::result::Result<Snapshot, E>,
    ) -> std::result::Result<(Config, Vec<String>), E> {
        if !self.needs_host() {
            return Ok((self.in_full(self.whole()), Vec::new()));
        }
        let s = host()?;
        self.bound(&s)?;
        let (c, notes) = ringwise_config::joined(&self.config, &self.over, &s);
        Ok((self.in_full(self.only(c)), notes))
    }

    /// The file, with `--set` and flags, bound to this host.
    ///
    /// Errors: an entry is ambiguous or matches nothing; two host groups contradict each other.
    pub fn bound(&self, s: &Snapshot) -> Result<Bound> {
        let unknown = self.unknown_names(s);
        if !unknown.is_empty() {
            return Err(Error::Unbound(unknown));
        }
        ringwise_config::bind(&self.config, &self.over, s).map_err(Error::Unbound)
    }

    /// An error for each `--set` whose interface does not exist, with the name that was probably meant.
    fn unknown_names(&self, s: &Snapshot) -> Vec<String> {
        let exact = self.over.iter().flat_map(|o| &o.entries).filter(|e| e.matcher.is_one());
        let names = exact.filter_map(|e| Some((&e.by, e.matcher.name.as_deref()?)));
        let unknown = names.filter(|(_, name)| s.nic(name).is_none());
        unknown.map(|(by, name)| format!("{by}: {}", ringwise_discover::Error::not_in(s, name))).collect()
    }

    /// Fills each member that is not configured with the goal's value.
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

    /// The intent for this host, and notes for the user.
    ///
    /// Errors: an entry is ambiguous or matches nothing; entries contradict each other on this host.
    pub fn intent(&self, s: &Snapshot) -> Result<(Intent, Vec<String>)> {
        let bound = self.bound(s)?;
        let (mut i, mut notes) = (bound.intent, bound.notes);
        // Only now is it known whether an entry by driver or address is the interface of `--set`.
        sound(&Config::of_intent(&i))?;
        i.config = self.file.as_ref().map(|f| f.display().to_string());
        i.given = Some(Box::new(self.given.clone()));
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

/// Replaces a bond, bridge or VLAN by the interfaces below it, which have the queues; each interface once. Also returns notes for the user.
pub fn members(s: &Snapshot, named: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut devs, mut notes, mut once) = (Vec::new(), Vec::new(), BTreeSet::new());
    for dev in named.iter().filter(|d| once.insert(*d)) {
        match s.nic(dev).and_then(|nic| ringwise_config::lower_interfaces(s, nic)) {
            Some(below) => {
                notes.push(below.note);
                devs.extend(below.members);
            }
            None => devs.push(dev.clone()),
        }
    }
    let mut seen = BTreeSet::new();
    devs.retain(|d| seen.insert(d.clone()));
    (devs, notes)
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::machines;

    use super::*;

    fn wanted(text: &str) -> Wanted {
        let config = ringwise_config::parse("f.toml", text).unwrap_or_else(|f| panic!("{f}"));
        Wanted {
            file: Some("f.toml".into()),
            config,
            over: Vec::new(),
            devs: Vec::new(),
            given: IntentFlags::default(),
        }
    }

    #[test]
    fn a_host_group_decides_whose_load_the_service_acts_on() {
        let s = machines::ten()[0].snapshot();
        let top = "version = 1\n[host]\nact_on_load = [\"eth0\"]\n";
        let unread = || Err::<Snapshot, &str>("the host is not needed");
        assert_eq!(wanted(top).act_on_load(unread), Ok(vec!["eth0".to_string()]));
        let group = |count: &str| {
            let group =
                format!("[host_group.a]\nmatch = {{ cpu_count = \"{count}\" }}\nhost.act_on_load = [\"lan*\"]\n");
            let w = wanted(&(top.to_string() + &group));
            (w.act_on_load(|| Ok::<_, ()>(s.clone())).unwrap(), w.intent(&s).unwrap().0.host_groups)
        };
        assert_eq!(group(">= 1"), (vec!["lan*".to_string()], vec!["a".to_string()]));
        assert_eq!(group("> 100000"), (vec!["eth0".to_string()], Vec::new()));
        assert_eq!(
            wanted(&(top.to_string() + "[host_group.a]\nmatch = { name = \"*\" }\nhost.queues = 2\n"))
                .act_on_load(unread),
            Err("the host is not needed")
        );
    }

    /// A number of latency queues on the command line overrides that of a group, wherever it is.
    #[test]
    fn the_command_line_resizes_latency_groups_of_host_groups() {
        let text = "version = 1\n[host_group.a]\nmatch = { cpu_count = \">= 1\" }\nhost = { goal = \"mixed\" }\n\
                    [[host_group.a.interface]]\nmatch = { name = \"eth0\" }\n[[host_group.a.interface.group]]\n\
                    name = \"latency\"\npolicy = \"latency\"\nqueues = 2\n";
        let mut w = wanted(text);
        let host = HostPart { latency_queues: Some(3), ..HostPart::default() };
        resize_latency(&mut w.config, &[Config { host, ..Config::default() }]);
        assert_eq!(w.config.host_groups[0].entries[0].groups[0].queues, GroupQueues::Count(3));
    }
}
