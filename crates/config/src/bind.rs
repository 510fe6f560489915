//! Binds a configuration to one host: matches entries to interfaces and builds the intent.

use ringwise_model::{ConfiguredBy, GroupWish, Intent, Nic, NicKind, Snapshot, Wish};

use crate::matches::{UndecidedGroup, applying, devices, matching, named, selects};
use crate::value::{Config, HostPart, InterfaceEntry, Matcher};
use crate::words::is_glob;
use crate::{layers, merge};

/// A configuration bound to this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// The goal and all settings, with the names of interfaces of this host.
    pub intent: Intent,
    /// Notes for the user, such as an entry that matches no interface yet.
    pub notes: Vec<String>,
    /// `[host]` of all configurations together.
    pub host: HostPart,
}

/// Binds the file to this host: its top level, then the host groups that match, then each configuration in `over`, of which
/// the later ones override the earlier ones. The error lists all ambiguous matches, and settings that two host groups
/// configure differently.
pub fn bind(config: &Config, over: &[Config], s: &Snapshot) -> Result<Bound, Vec<String>> {
    let nics = s.nics.as_slice();
    let (groups, undecided) = applying(config, s);
    let mut notes: Vec<String> = undecided.into_iter().map(|u| u.note).collect();
    let mut wrong = Vec::new();
    layers::conflicts(&groups, nics, &mut wrong);
    let mut said = owned(&config.entries, nics, &mut wrong, &mut notes);
    let mut host = config.host.clone();
    for g in &groups {
        host = merge::host(host, &g.host);
        for (name, e) in owned(&g.entries, nics, &mut wrong, &mut notes) {
            lay(&mut said, name, &e);
        }
    }
    let mut policies = config.policies.clone();
    for o in over {
        host = merge::host(host, &o.host);
        for p in &o.policies {
            policies.retain(|have| have.name != p.name);
            policies.push(p.clone());
        }
        for e in &o.entries {
            let found = devices(&e.matcher, nics, &e.by, &mut wrong);
            if found.is_empty() {
                wrong.push(format!("{}: no interface with queues of its own matches {}", e.by, e.matcher));
            }
            found.iter().for_each(|n| lay(&mut said, n.name(), e));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut i = Intent {
        goal: host.goal.unwrap_or_default(),
        cpus: host.cpus.clone(),
        reserve: host.reserve.clone().unwrap_or_default(),
        exclude_cpus: host.exclude_cpus.clone().unwrap_or_default(),
        queues: host.queues,
        smt: host.smt,
        far_node: host.far_node,
        allow_disruption: host.allow_disruption.unwrap_or_default(),
        pair_as_article: host.pair_as_article.unwrap_or_default(),
        latency_queues: host.latency_queues,
        strict: host.strict.unwrap_or_default(),
        host_groups: groups.iter().map(|g| g.name.clone()).collect(),
        wishes: host.wishes.clone(),
        policies,
        ..Intent::default()
    };
    chosen(&host.interfaces, s, &mut i.devs, &mut notes);
    for pattern in host.act_on_load.iter().filter(|p| !nics.iter().any(|n| named(p, n))) {
        notes.push(format!("no interface with queues of its own matches {pattern} of host.act_on_load; it is skipped"));
    }
    notes.extend(left_out_of_load(&host, s, nics));
    for (name, e) in said {
        if let Some(goal) = e.goal {
            i.dev_goals.insert(name.to_string(), goal);
        }
        i.wishes.extend(e.wishes.into_iter().map(|w| Wish { dev: Some(name.to_string()), ..w }));
        i.groups.extend(e.groups.into_iter().map(|g| GroupWish { dev: name.to_string(), ..g }));
    }
    Ok(Bound { intent: i, notes, host })
}

/// Interfaces of `act_on_load` that `interfaces` leaves out: the service knows no CPUs, masks and groups for them.
fn left_out_of_load(host: &HostPart, s: &Snapshot, nics: &[Nic]) -> Option<String> {
    let acts = |n: &&Nic| host.act_on_load.iter().any(|p| named(p, n));
    let left_out =
        nics.iter().filter(|n| n.has_own_queues()).filter(acts).filter(|n| !is_chosen(&host.interfaces, s, n));
    let names: Vec<&str> = left_out.map(Nic::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "host.act_on_load names {}, not in host.interfaces: there the service changes the RSS table only, and no interrupts, \
             RPS masks or groups",
            names.join(" ")
        )
    })
}

/// Which parts of a file are for this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applicable {
    /// Names of the host groups that match.
    pub host_groups: Vec<String>,
    /// Host groups that do not apply because something about the host is unknown.
    pub undecided: Vec<UndecidedGroup>,
    /// Where the entries are that match an interface, at the top level and in these groups.
    pub entries: Vec<ConfiguredBy>,
    /// Names and patterns of `interfaces` and `act_on_load` that match an interface, at the top level.
    pub names: Vec<String>,
    /// Note about interfaces of `act_on_load` that `interfaces` leaves out, with what these groups configure.
    pub load_note: Option<String>,
}

/// Finds the parts of the file that are for this host, even if it does not fit the host.
pub fn applicable(config: &Config, s: &Snapshot) -> Applicable {
    let (groups, undecided) = applying(config, s);
    let entries = config.entries.iter().chain(groups.iter().flat_map(|g| &g.entries));
    let entries = entries.filter(|e| s.nics.iter().any(|n| selects(&e.matcher, n))).map(|e| e.by.clone()).collect();
    let names = config.host.interfaces.iter().chain(&config.host.act_on_load);
    let names = names.filter(|p| s.nics.iter().any(|n| named(p, n))).cloned().collect();
    let host = groups.iter().fold(config.host.clone(), |host, g| merge::host(host, &g.host));
    let load_note = left_out_of_load(&host, s, &s.nics);
    Applicable { host_groups: groups.iter().map(|g| g.name.clone()).collect(), undecided, entries, names, load_note }
}

/// The name of each interface that an entry matches, with the entry. Two entries for one interface are an error.
fn owned<'a>(
    entries: &[InterfaceEntry],
    nics: &'a [Nic],
    wrong: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> Vec<(&'a str, InterfaceEntry)> {
    let mut owner: Vec<(&str, &InterfaceEntry)> = Vec::new();
    for e in entries {
        let found = devices(&e.matcher, nics, &e.by, wrong);
        if found.is_empty() {
            let brackets = e.matcher.name.as_ref().is_some_and(|n| n.contains('['));
            let only = if brackets { " (patterns have * and ? only)" } else { "" };
            notes.push(format!(
                "{}: no interface with queues of its own matches {}{only}; the entry is skipped",
                e.by, e.matcher
            ));
        }
        for n in found {
            if let Some((_, other)) = owner.iter().find(|(name, _)| *name == n.name()) {
                wrong.push(format!(
                    "two entries match {}: {} ({}) and {} ({}); expected one",
                    n.name(),
                    other.by,
                    other.matcher,
                    e.by,
                    e.matcher
                ));
                continue;
            }
            owner.push((n.name(), e));
        }
    }
    owner.into_iter().map(|(name, e)| (name, e.clone())).collect()
}

/// Merges an entry into what is configured for this interface.
fn lay<'a>(said: &mut Vec<(&'a str, InterfaceEntry)>, name: &'a str, e: &InterfaceEntry) {
    match said.iter_mut().find(|(n, _)| *n == name) {
        Some((_, have)) => merge::entry(have, e),
        None => said.push((name, e.clone())),
    }
}

/// Merges the host groups that match, and then `over`, into the top level of the file for this host. Settings of an interface go into the entry that matches it here. If that
/// entry also matches other interfaces, it is replaced with one entry for each of them, and a note reports it. When the
/// result is read again, it is bound as `bind` with `over` would bind the file.
pub fn joined(config: &Config, over: &[Config], s: &Snapshot) -> (Config, Vec<String>) {
    let nics = s.nics.as_slice();
    let (groups, undecided) = applying(config, s);
    let mut notes: Vec<String> = undecided.into_iter().map(|u| u.note).collect();
    let mut c = Config { host_groups: Vec::new(), ..config.clone() };
    if !config.host_groups.is_empty() {
        let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
        let which = if names.is_empty() { "none of them applies".into() } else { names.join(" and ") };
        notes.push(format!("the file has host groups; the result is for this host only ({which})"));
    }
    let layers: Vec<Config> = groups.iter().map(|g| g.layer()).collect();
    for o in layers.iter().chain(over) {
        c.lay(&Config { entries: Vec::new(), ..o.clone() });
        for e in &o.entries {
            let alone: Vec<(&Nic, usize)> =
                matching(&e.matcher, nics).into_iter().map(|n| (n, matching_entry(&c, n, nics))).collect();
            let meant = |at: &usize| *at < c.entries.len();
            // No existing entry matches its interfaces, or an entry with the same match exists.
            if !alone.iter().any(|(_, at)| meant(at)) || c.entries.iter().any(|have| have.matcher == e.matcher) {
                c.lay(&Config { entries: vec![e.clone()], ..Config::default() });
                continue;
            }
            for (n, _) in alone {
                let name = Some(n.name().to_string());
                let at = matching_entry(&c, n, nics);
                if at == c.entries.len() {
                    let matcher = Matcher { name, ..e.matcher.clone() };
                    c.entries.push(InterfaceEntry { matcher, ..e.clone() });
                    continue;
                }
                let all = matching(&c.entries[at].matcher, nics);
                if all.len() > 1 {
                    let names: Vec<&str> = all.iter().map(|n| n.name()).collect();
                    let have = c.entries.remove(at);
                    notes.push(format!(
                        "{} matches {}: written as one entry for each, because {} applies only to {}",
                        have.matcher,
                        names.join(" and "),
                        e.by,
                        n.name()
                    ));
                    for (i, name) in names.into_iter().enumerate() {
                        let matcher = Matcher { name: Some(name.into()), ..have.matcher.clone() };
                        c.entries.insert(at + i, InterfaceEntry { matcher, ..have.clone() });
                    }
                }
                let at = matching_entry(&c, n, nics);
                merge::entry(&mut c.entries[at], e);
            }
        }
    }
    (c, notes)
}

/// Index of the entry that matches this interface, or the number of entries if none matches.
fn matching_entry(c: &Config, n: &Nic, nics: &[Nic]) -> usize {
    let means = |e: &InterfaceEntry| matching(&e.matcher, nics).iter().any(|f| f.name() == n.name());
    c.entries.iter().position(means).unwrap_or(c.entries.len())
}

/// The interfaces that have the queues of a bond, bridge or VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerInterfaces {
    /// Their names.
    pub members: Vec<String>,
    /// What the user should know: these are used instead.
    pub note: String,
}

/// The interfaces below a bond, bridge or VLAN. `None`: the interface has queues of its own, or none below it has.
pub fn lower_interfaces(s: &Snapshot, nic: &Nic) -> Option<LowerInterfaces> {
    let members: Vec<String> = s.members_of(nic).iter().map(|n| n.name().to_string()).collect();
    let kind = match &nic.kind {
        NicKind::Software { kind } => format!(" ({kind})"),
        _ => String::new(),
    };
    let note = format!("{}{kind} has no queues of its own: using {} instead", nic.name(), members.join(", "));
    (!members.is_empty()).then_some(LowerInterfaces { members, note })
}

/// Why an interface is left out.
fn left_out(nic: &Nic) -> &'static str {
    match nic {
        n if !n.has_own_queues() => "has no queues of its own",
        n if n.link.carrier.known().is_none() && n.link.operstate.known().is_none_or(|o| o == "unknown") => {
            "may have no link, its state is unknown"
        }
        _ => "has no link",
    }
}

/// Whether `host.interfaces` names this interface, or a bond, bridge or VLAN above it. An empty list names all.
pub fn is_chosen(patterns: &[String], s: &Snapshot, nic: &Nic) -> bool {
    let above = |p: &String| {
        s.nic(p).and_then(|n| lower_interfaces(s, n)).is_some_and(|b| b.members.iter().any(|m| m == nic.name()))
    };
    patterns.is_empty() || patterns.iter().any(|p| named(p, nic) || above(p))
}

/// Interfaces that `host.interfaces` names. Interfaces without a link are skipped; if all are without a link, the
/// planner reports what is wrong with them.
fn chosen(patterns: &[String], s: &Snapshot, devs: &mut Vec<String>, notes: &mut Vec<String>) {
    let mut down: Vec<String> = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for pattern in patterns {
        let mut found = 0;
        let below = s.nic(pattern).and_then(|nic| lower_interfaces(s, nic));
        notes.extend(below.as_ref().map(|b| b.note.clone()));
        let members = below.map(|b| b.members);
        let is_meant = |n: &&Nic| match &members {
            Some(members) => members.iter().any(|m| m == n.name()),
            None => named(pattern, n) && (!is_glob(pattern) || n.has_own_queues()),
        };
        for n in s.nics.iter().filter(is_meant) {
            found += 1;
            let list = if n.link_is_up() { &mut *devs } else { &mut down };
            if !list.iter().any(|d| d == n.name()) {
                list.push(n.name().to_string());
            }
        }
        if found == 0 {
            missing.push(pattern);
        }
    }
    // Without any of them there is nothing to plan: the planner refuses, and a boot waits.
    let none = devs.is_empty() && down.is_empty();
    let effect = if none {
        "nothing can be planned, because no other interface is named"
    } else {
        "it is skipped, the others are planned"
    };
    let note = |p: &str| format!("no interface with queues of its own matches {p} of host.interfaces; {effect}");
    notes.extend(missing.into_iter().map(note));
    if devs.is_empty() {
        devs.extend(down);
        if devs.is_empty() {
            devs.extend(patterns.iter().cloned());
        }
    } else {
        notes.extend(down.iter().map(|d| format!("{d} {}; it is skipped", s.nic(d).map_or("is gone", left_out))));
    }
}
