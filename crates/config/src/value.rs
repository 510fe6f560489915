//! A parsed configuration, not yet bound to a host.

use std::collections::BTreeMap;

use ringwise_model::{ConfiguredBy, CpuSet, FarNode, Goal, GroupWish, Intent, Policy, Smt, Wish};

use crate::host_group::HostMatcher;

/// Names of the built-in policies, which need no `[[policy]]` table.
pub const BUILT_IN_POLICIES: [&str; 3] = ["latency", "bulk", "cpu"];

/// A whole file, decoded and checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// `[host]`; empty if the file has none.
    pub host: HostPart,
    /// `[[interface]]`, in the order of the file.
    pub entries: Vec<InterfaceEntry>,
    /// `[[policy]]`, in the order of the file.
    pub policies: Vec<Policy>,
    /// `[host_group.NAME]`, by name. They override the rest of the file on the hosts that they match.
    pub host_groups: Vec<HostGroup>,
}

/// `[host]`. `None`: the goal decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPart {
    /// Goal of every interface that has none of its own.
    pub goal: Option<Goal>,
    /// Interfaces to consider, by name or pattern. Empty: those that are suitable.
    pub interfaces: Vec<String>,
    /// Only these CPUs get queues.
    pub cpus: Option<CpuSet>,
    /// CPUs that are kept free for other work.
    pub reserve: Option<CpuSet>,
    /// CPUs that get no queues.
    pub exclude_cpus: Option<CpuSet>,
    /// Queues of a device.
    pub queues: Option<u32>,
    /// Which threads of a core get queues.
    pub smt: Option<Smt>,
    /// Whether CPUs of remote nodes get queues.
    pub far_node: Option<FarNode>,
    /// Steps that interrupt traffic may be part of the plan.
    pub allow_disruption: Option<bool>,
    /// The layout of the article on per-queue moderation; see [`Intent::pair_as_article`].
    pub pair_as_article: Option<bool>,
    /// Queues of the latency group of the goal `mixed`.
    pub latency_queues: Option<u32>,
    /// A setting that the device or kernel does not support is an error.
    pub strict: Option<bool>,
    /// Interfaces whose RSS table the service writes when the load is uneven, by name or pattern.
    pub act_on_load: Vec<String>,
    /// Settings that belong to no interface: sysctls, RFS entries, wake-up latency of CPUs.
    pub wishes: Vec<Wish>,
}

/// One `[[interface]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceEntry {
    /// Which interfaces it is for.
    pub matcher: Matcher,
    /// `None`: that of the host.
    pub goal: Option<Goal>,
    /// Without `dev` until they are bound.
    pub wishes: Vec<Wish>,
    /// Without `dev` until they are bound.
    pub groups: Vec<GroupWish>,
    /// Its `match`, in the file.
    pub by: ConfiguredBy,
}

/// `[host_group.NAME]`: settings of the hosts that it matches. They override those of the top level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostGroup {
    /// Its name in the file.
    pub name: String,
    /// Which hosts belong to it.
    pub matcher: HostMatcher,
    /// `[host_group.NAME.host]`; empty if the group has none.
    pub host: HostPart,
    /// `[[host_group.NAME.interface]]`, in the order of the file.
    pub entries: Vec<InterfaceEntry>,
    /// Its `match`, in the file.
    pub by: ConfiguredBy,
    /// Where the keys of its `host` are.
    pub host_keys: BTreeMap<String, ConfiguredBy>,
}

impl HostGroup {
    /// The group as a configuration of its own.
    pub(crate) fn layer(&self) -> Config {
        Config { host: self.host.clone(), entries: self.entries.clone(), ..Config::default() }
    }
}

/// Selects interfaces: all criteria must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matcher {
    /// A name or a pattern with `*` and `?`.
    pub name: Option<String>,
    /// Name of the kernel driver.
    pub driver: Option<String>,
    /// Bus address, such as `0000:03:00.0`.
    pub bus: Option<String>,
    /// Permanent MAC address.
    pub mac: Option<String>,
    /// `ifalias` or an alternative name.
    pub label: Option<String>,
}

impl Matcher {
    /// Whether the criteria can match one device only.
    pub fn is_one(&self) -> bool {
        let name = self.name.as_deref().is_some_and(|n| !crate::words::is_glob(n));
        name || self.bus.is_some() || self.mac.is_some() || self.label.is_some()
    }
}

impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [
            ("name", &self.name),
            ("driver", &self.driver),
            ("bus", &self.bus),
            ("mac", &self.mac),
            ("label", &self.label),
        ];
        let words: Vec<String> = all.iter().filter_map(|(k, v)| Some(format!("{k} {}", v.as_ref()?))).collect();
        f.write_str(&words.join(", "))
    }
}

impl Config {
    /// Interfaces that are named one by one, without patterns. Software interfaces among them are discovered only if they are requested.
    pub fn named(&self) -> Vec<String> {
        let groups = || self.host_groups.iter();
        let hosts = std::iter::once(&self.host).chain(groups().map(|g| &g.host)).flat_map(|h| &h.interfaces);
        let entries =
            self.entries.iter().chain(groups().flat_map(|g| &g.entries)).filter_map(|e| e.matcher.name.as_ref());
        hosts.chain(entries).filter(|name| !crate::words::is_glob(name)).cloned().collect()
    }

    /// A copy without the places where each setting was configured.
    pub fn without_places(&self) -> Self {
        let mut c = self.clone();
        c.places().for_each(|by| *by = ConfiguredBy::Unknown);
        c.wishes().for_each(|w| w.params_by.clear());
        c
    }

    /// Where each setting and each part of the file was configured.
    pub(crate) fn places(&mut self) -> impl Iterator<Item = &mut ConfiguredBy> {
        let groups = self.host_groups.iter_mut().flat_map(|g| {
            let keys = g.host_keys.values_mut().chain(std::iter::once(&mut g.by));
            keys.chain(places(&mut g.host, &mut g.entries))
        });
        places(&mut self.host, &mut self.entries).chain(groups)
    }

    fn wishes(&mut self) -> impl Iterator<Item = &mut Wish> {
        fn of<'a>(host: &'a mut HostPart, entries: &'a mut [InterfaceEntry]) -> impl Iterator<Item = &'a mut Wish> {
            host.wishes.iter_mut().chain(entries.iter_mut().flat_map(|e| &mut e.wishes))
        }
        let groups = self.host_groups.iter_mut().flat_map(|g| of(&mut g.host, &mut g.entries));
        of(&mut self.host, &mut self.entries).chain(groups)
    }

    /// Converts an intent back to a configuration, with one entry for each interface that has settings.
    pub fn of_intent(i: &Intent) -> Self {
        let mut c = Self {
            host: HostPart {
                goal: Some(i.goal),
                interfaces: i.devs.clone(),
                cpus: i.cpus.clone(),
                reserve: (!i.reserve.is_empty()).then(|| i.reserve.clone()),
                exclude_cpus: (!i.exclude_cpus.is_empty()).then(|| i.exclude_cpus.clone()),
                queues: i.queues,
                smt: i.smt,
                far_node: i.far_node,
                allow_disruption: i.allow_disruption.then_some(true),
                pair_as_article: i.pair_as_article.then_some(true),
                latency_queues: i.latency_queues,
                strict: i.strict.then_some(true),
                act_on_load: Vec::new(),
                wishes: i.wishes.iter().filter(|w| w.dev.is_none()).cloned().collect(),
            },
            entries: Vec::new(),
            policies: i.policies.clone(),
            host_groups: Vec::new(),
        };
        let mut of = |dev: &str, by: &ConfiguredBy| -> usize {
            let found = c.entries.iter().position(|e| e.matcher.name.as_deref() == Some(dev));
            found.unwrap_or_else(|| {
                let matcher = Matcher { name: Some(dev.to_string()), ..Matcher::default() };
                c.entries.push(InterfaceEntry { matcher, by: by.clone(), ..InterfaceEntry::default() });
                c.entries.len() - 1
            })
        };
        let mut goals = Vec::new();
        for (dev, goal) in &i.dev_goals {
            goals.push((of(dev, &ConfiguredBy::Unknown), *goal));
        }
        let mut wishes = Vec::new();
        for w in &i.wishes {
            if let Some(dev) = &w.dev {
                wishes.push((of(dev, &w.by), Wish { dev: None, ..w.clone() }));
            }
        }
        let mut groups = Vec::new();
        for g in &i.groups {
            groups.push((of(&g.dev, &g.by), GroupWish { dev: String::new(), ..g.clone() }));
        }
        goals.into_iter().for_each(|(at, g)| c.entries[at].goal = Some(g));
        wishes.into_iter().for_each(|(at, w)| c.entries[at].wishes.push(w));
        groups.into_iter().for_each(|(at, g)| c.entries[at].groups.push(g));
        c
    }
}

fn places<'a>(host: &'a mut HostPart, entries: &'a mut [InterfaceEntry]) -> impl Iterator<Item = &'a mut ConfiguredBy> {
    let entries = entries.iter_mut().flat_map(|e| {
        let (wishes, groups) = (e.wishes.iter_mut(), e.groups.iter_mut());
        std::iter::once(&mut e.by).chain(wishes.map(|w| &mut w.by)).chain(groups.map(|g| &mut g.by))
    });
    host.wishes.iter_mut().map(|w| &mut w.by).chain(entries)
}
