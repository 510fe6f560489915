//! Profiles of tuned: the sections of its plug-ins `net`, `sysctl`, `scheduler` and `irqbalance`.
//!
//! `_parse_config_parameters` of tuned/plugins/plugin_net.py separates words by white space, `:`, `,` and `;`.

use std::collections::BTreeMap;

use ringwise_kfmt::{cpulist, ini, sysctl};
use ringwise_model::{ConfiguredBy, Nic, Snapshot};

use super::words::{Group, part};
use super::{ForeignFile, Imported, ImportedValue, devices, irqbalance};

/// An option of a section with its place.
struct Set {
    value: String,
    by: ConfiguredBy,
}

/// A section of the merged profile.
type Section = BTreeMap<String, Set>;

/// Plug-ins of tuned 2.28, from tuned/plugins/plugin_*.py, and the section that belongs to none.
const PLUGINS: [&str; 28] = [
    "main",
    "acpi",
    "amd_x3d",
    "audio",
    "bootloader",
    "cpu",
    "disk",
    "eeepc_she",
    "irq",
    "irqbalance",
    "kthread",
    "modules",
    "mounts",
    "net",
    "rtentsk",
    "scheduler",
    "script",
    "scsi_host",
    "selinux",
    "service",
    "sysctl",
    "sysfs",
    "systemd",
    "uncore",
    "usb",
    "variables",
    "video",
    "vm",
];

/// Reads profiles in the order in which tuned merges them: an option of a later file overrides that of an earlier one.
/// Files without sections define variables.
pub fn tuned(files: &[ForeignFile], s: &Snapshot, out: &mut Imported) {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for f in files {
        for ini::IniSetting { section, key, value, line } in f.settings(out) {
            if section.is_empty() || section == "variables" {
                variables.insert(key, value);
                continue;
            }
            let all = sections.entry(section.clone()).or_insert_with(|| {
                order.push(section);
                Section::new()
            });
            all.insert(key, Set { value, by: f.at(line) });
        }
    }
    let of_tuned =
        |(name, s): (&String, &Section)| PLUGINS.contains(&s.get("type").map_or(name.as_str(), |t| t.value.as_str()));
    if let Some(first) = files.first().filter(|_| !sections.is_empty() && !sections.iter().any(of_tuned)) {
        let why = "it has no section of tuned; expected a profile (tuned.conf(5)) with sections such as [main], [net], [sysctl]";
        return out.refuse(&first.at(1), why);
    }
    for name in order {
        let Some(section) = sections.get(&name) else { continue };
        let kind = section.get("type").map_or(name.as_str(), |t| t.value.as_str());
        let mut reader = Reader { section, variables: &variables, s, out };
        match kind {
            "main" => {}
            _ if off(section) => reader.whole(&name, "the section is disabled"),
            "net" => reader.net(),
            "sysctl" => reader.sysctl(&name),
            "scheduler" => reader.scheduler(),
            "irqbalance" => reader.excluded("banned_cpus", true),
            _ => reader.whole(&name, "ringwise does not have these settings"),
        }
    }
}

fn off(section: &Section) -> bool {
    section.get("enabled").is_some_and(|s| ["0", "false", "no"].contains(&s.value.to_ascii_lowercase().as_str()))
}

struct Reader<'a, 'o> {
    section: &'a Section,
    variables: &'a BTreeMap<String, String>,
    s: &'a Snapshot,
    out: &'o mut Imported,
}

/// Options that only say to what a section applies.
const ABOUT: [&str; 5] = ["type", "devices", "replace", "enabled", "priority"];

impl Reader<'_, '_> {
    /// Lists a section in one line, with the names of its options.
    fn whole(&mut self, name: &str, why: &str) {
        let keys: Vec<&str> = self.section.keys().map(String::as_str).filter(|k| !ABOUT.contains(k)).collect();
        if let Some(first) = self.section.values().next() {
            self.out.leave(&first.by, format!("[{name}] {}", keys.join(", ")), why);
        }
    }

    /// The value with its variables. `None`: a variable is unknown or needs a function of tuned, which is listed.
    fn expanded(&mut self, key: &str, set: &Set) -> Option<String> {
        let mut value = set.value.clone();
        // A variable may name others; a variable that names itself would never end.
        for _ in 0..8 {
            let Some(at) = value.find("${") else { return Some(value) };
            let name = value[at + 2..].split('}').next().unwrap_or_default().to_string();
            let Some(v) = self.variables.get(&name) else { break };
            value = value.replace(&format!("${{{name}}}"), v);
            if value.len() > super::MAX_FILE_BYTES / 16 {
                break;
            }
        }
        if !value.contains("${") {
            return Some(value);
        }
        let why = "the value depends on a variable or function of tuned that is not known here";
        self.out.leave(&set.by, format!("{key}={}", set.value), why);
        None
    }

    fn net(&mut self) {
        if let Some(set) = self.section.get("devices_udev_regex") {
            let why = "interfaces are selected by properties of udev, which are not known here; the section is skipped";
            return self.out.leave(&set.by, format!("devices_udev_regex={}", set.value), why);
        }
        let patterns = self.section.get("devices").map_or("", |s| s.value.as_str());
        let patterns = if patterns == "*" { "" } else { patterns };
        let found = devices::by_patterns(self.s, patterns);
        if found.is_empty()
            && let Some(set) = self.section.get("devices")
        {
            return self.out.leave(&set.by, format!("devices={}", set.value), "no interface of this host matches");
        }
        for (key, set) in self.section.iter().filter(|(k, _)| !ABOUT.contains(&k.as_str())) {
            let group = match key.as_str() {
                "channels" => Group::Channels,
                "ring" => Group::Ring,
                "coalesce" => Group::Coalesce,
                "pause" => Group::Pause,
                "features" => Group::Feature,
                _ => {
                    self.out.leave(&set.by, format!("{key}={}", set.value), "ringwise has no such setting");
                    continue;
                }
            };
            let Some(value) = self.expanded(key, set) else { continue };
            self.words(group, key, &value, &set.by, &found);
        }
    }

    fn words(&mut self, group: Group, key: &str, value: &str, by: &ConfiguredBy, nics: &[&Nic]) {
        let words: Vec<&str> = value
            .split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | ';'))
            .filter(|w| !w.is_empty())
            .collect();
        if words.len() % 2 == 1 {
            return self.out.leave(by, format!("{key}={value}"), "expected pairs of a name and a value");
        }
        for pair in words.chunks(2) {
            let [name, value] = pair else { continue };
            match part(group, name, value) {
                Ok(part) => {
                    for n in nics {
                        // tuned sets combined channels if the device has no others, and the reverse.
                        let part = match part {
                            ImportedValue::Channels(_, count) => ImportedValue::Channels(kind(n, &part), count),
                            ref other => other.clone(),
                        };
                        self.out.add(Some(n.name()), part, by);
                    }
                }
                Err(why) => self.out.leave(by, format!("{key}={name} {value}"), why),
            }
        }
    }

    /// Sysctls that ringwise sets; the others are listed in one line.
    fn sysctl(&mut self, name: &str) {
        let mut others: Vec<&str> = Vec::new();
        let mut first = None;
        for (key, set) in self.section.iter().filter(|(k, _)| !ABOUT.contains(&k.as_str())) {
            let Some(takes) = sysctl::kind_of(key) else {
                others.push(key);
                first.get_or_insert(&set.by);
                continue;
            };
            if let Some(value) = self.expanded(key, set) {
                // `>4096` raises a value, but does not lower it.
                let value = value.trim_start_matches('>').trim_matches('"').to_string();
                match takes.good(&value) {
                    true => self.out.add(None, ImportedValue::Sysctl(key.clone(), value), &set.by),
                    false => self.out.leave(&set.by, format!("{key}={value}"), format!("expected {}", takes.right())),
                }
            }
        }
        if let Some(by) = first {
            self.out.leave(by, format!("[{name}] {}", others.join(", ")), "ringwise does not set these sysctls");
        }
    }

    fn scheduler(&mut self) {
        self.excluded("isolated_cores", false);
        let rest = self.section.iter().filter(|(k, _)| !ABOUT.contains(&k.as_str()) && *k != "isolated_cores");
        for (key, set) in rest {
            let why = match key.as_str() {
                "default_irq_smp_affinity" => "the goal pins the interrupts of queues; other interrupts stay",
                _ => "ringwise has no such setting",
            };
            self.out.leave(&set.by, format!("{key}={}", set.value), why);
        }
    }

    /// CPUs without queues. `others`: the other options are listed.
    fn excluded(&mut self, key: &str, others: bool) {
        if let Some(set) = self.section.get(key)
            && let Some(value) = self.expanded(key, set)
        {
            match cpulist::parse(&value) {
                Ok(cpus) if cpus.is_empty() => {}
                Ok(cpus) => irqbalance::exclude(&cpus, &set.by, self.s, self.out),
                Err(e) => self.out.leave(&set.by, format!("{key}={value}"), e.to_string()),
            }
        }
        for (k, set) in self.section.iter().filter(|(k, _)| others && *k != key && !ABOUT.contains(&k.as_str())) {
            self.out.leave(&set.by, format!("{k}={}", set.value), "ringwise has no such setting");
        }
    }
}

/// The kind of channels that the device has.
fn kind(n: &Nic, wanted: &ImportedValue) -> &'static str {
    let ImportedValue::Channels(wanted, _) = wanted else { return "combined" };
    let Some(c) = n.channels.known() else { return wanted };
    let has = |c: Option<ringwise_model::Count>| c.is_some_and(|c| c.max > 0);
    match *wanted {
        "rx" if !has(c.rx) && has(c.combined) => "combined",
        "tx" if !has(c.tx) && has(c.combined) => "combined",
        w => w,
    }
}
