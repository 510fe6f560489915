//! Configuration files of other programs, for `ringwise config import`. They are not part of a snapshot, so captures
//! contain only those that discovery reads for another reason.

use std::collections::BTreeMap;

use ringwise_kfmt::ini;
use ringwise_sys::{Error, Host};

use crate::competing_programs::{LINKS, PROFILES};

/// A program with configuration files in places of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfiguringProgram {
    /// irqbalance.
    Irqbalance,
    /// systemd-udevd, for `.link` files.
    Link,
    /// tuned.
    Tuned,
    /// `perftune.py` of Seastar.
    Perftune,
    /// NetworkManager.
    NetworkManager,
    /// nmstate.
    Nmstate,
}

impl ConfiguringProgram {
    /// All of them.
    pub const ALL: [ConfiguringProgram; 6] =
        [Self::Irqbalance, Self::Link, Self::Tuned, Self::Perftune, Self::NetworkManager, Self::Nmstate];

    /// As the name of an option: `--network-manager`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Irqbalance => "irqbalance",
            Self::Link => "link",
            Self::Tuned => "tuned",
            Self::Perftune => "perftune",
            Self::NetworkManager => "network-manager",
            Self::Nmstate => "nmstate",
        }
    }
}

/// Files that were found.
#[derive(Debug, Default)]
pub struct ForeignFiles {
    /// Path and content, in the order in which the program reads them. tuned: a profile after those that it includes.
    pub files: Vec<(String, String)>,
    /// Files that could not be read, and those that a recording does not contain.
    pub unread: Vec<Error>,
}

const IRQBALANCE: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
const PERFTUNE: [&str; 2] = ["/etc/scylla.d/perftune.yaml", "/etc/perftune.yaml"];
/// In order of precedence.
const CONNECTIONS: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];
const NMSTATE: [&str; 1] = ["/etc/nmstate"];
/// Variables of profiles are in files of these directories.
const TUNED: [&str; 2] = ["/etc/tuned/", "/usr/lib/tuned/"];
/// More profiles than this include each other.
const MAX_PROFILES: usize = 20;

/// Reads the files of a program from their usual places.
pub fn read(host: &dyn Host, program: ConfiguringProgram) -> ForeignFiles {
    let mut out = ForeignFiles::default();
    match program {
        ConfiguringProgram::Irqbalance => IRQBALANCE.iter().for_each(|p| out.file(host, p)),
        ConfiguringProgram::Perftune => PERFTUNE.iter().for_each(|p| out.file(host, p)),
        ConfiguringProgram::Link => out.directories(host, &LINKS, &[".link"]),
        ConfiguringProgram::NetworkManager => out.directories(host, &CONNECTIONS, &[".nmconnection"]),
        ConfiguringProgram::Nmstate => out.directories(host, &NMSTATE, &[".yml", ".yaml"]),
        ConfiguringProgram::Tuned => out.tuned(host),
    }
    out
}

impl ForeignFiles {
    fn text(&mut self, host: &dyn Host, path: &str) -> Option<String> {
        match host.read(path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) => {
                self.failed(e);
                None
            }
        }
    }

    fn failed(&mut self, e: Error) {
        if !e.is_absent() {
            self.unread.push(e);
        }
    }

    fn file(&mut self, host: &dyn Host, path: &str) {
        if let Some(text) = self.text(host, path) {
            self.files.push((path.to_string(), text));
        }
    }

    /// If several files have the same name, the first directory counts.
    fn directories(&mut self, host: &dyn Host, dirs: &[&str], ends: &[&str]) {
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for dir in dirs {
            match host.list(dir) {
                Ok(names) => {
                    for name in names
                        .iter()
                        .filter(|n| ends.iter().any(|e| n.strip_suffix(".d").is_some_and(|n| n.ends_with(e))))
                    {
                        self.unread.push(Error::other(format!("{dir}/{name}"), "ringwise does not read drop-ins"));
                    }
                    for name in names.into_iter().filter(|n| ends.iter().any(|e| n.ends_with(e))) {
                        let path = format!("{dir}/{name}");
                        by_name.entry(name).or_insert(path);
                    }
                }
                Err(e) => self.failed(e),
            }
        }
        by_name.values().for_each(|path| self.file(host, path));
    }

    fn tuned(&mut self, host: &dyn Host) {
        let Some(active) = self.text(host, "/etc/tuned/active_profile") else { return };
        let mut seen = Vec::new();
        for profile in active.split_whitespace() {
            self.profile(host, profile, &mut seen);
        }
    }

    /// A profile after those that it includes, because it overrides them.
    fn profile(&mut self, host: &dyn Host, name: &str, seen: &mut Vec<String>) {
        if seen.iter().any(|s| s == name) || seen.len() >= MAX_PROFILES || name.contains('/') || name.contains('$') {
            return;
        }
        seen.push(name.to_string());
        let paths = PROFILES.iter().map(|d| format!("{d}/{name}/tuned.conf"));
        let Some((path, bytes)) = paths.into_iter().find_map(|p| Some((p.clone(), host.read(&p).ok()?))) else {
            self.unread.push(Error::other(format!("profile {name} of tuned"), "no such file was found"));
            return;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for s in ini::parse(&text).iter().filter(|s| s.key == "include") {
            match s.section.as_str() {
                "main" => s.value.split([',', ' ']).filter(|p| !p.is_empty()).for_each(|p| self.profile(host, p, seen)),
                "variables" if TUNED.iter().any(|d| s.value.starts_with(d)) && !s.value.contains("..") => {
                    self.file(host, &s.value);
                }
                _ => {}
            }
        }
        self.files.push((path, text));
    }
}
