//! Connection files of NetworkManager (nm-settings-keyfile(5)): the section `[ethtool]`. No other section is read beyond
//! the names of interfaces, because others contain secrets.

use ringwise_kfmt::ini;
use ringwise_model::{Nic, Snapshot};

use super::words::{Group, part};
use super::{ForeignFile, Imported, devices};

/// Prefixes of the keys in `[ethtool]`.
const GROUPS: [(&str, Group); 5] = [
    ("feature-", Group::Feature),
    ("ring-", Group::Ring),
    ("coalesce-", Group::Coalesce),
    ("channels-", Group::Channels),
    ("pause-", Group::Pause),
];

/// Reads one file.
pub fn network_manager(file: &ForeignFile, s: &Snapshot, out: &mut Imported) {
    let all = file.settings(out);
    if let Some(first) = all.first().filter(|_| !all.iter().any(|s| s.section == "connection")) {
        let why =
            "it has no section [connection]; expected a connection file of NetworkManager (nm-settings-keyfile(5))";
        return out.refuse(&file.at(first.line), why);
    }
    let ours: Vec<&ini::IniSetting> = all.iter().filter(|s| s.section == "ethtool").collect();
    let Some(first) = ours.first() else { return };
    let value = |sections: &[&str], key: &str| {
        all.iter().find(|s| sections.contains(&s.section.as_str()) && s.key == key).map(|s| s.value.as_str())
    };
    let nics: Vec<&Nic> = match () {
        () if value(&["connection"], "interface-name").is_some() => {
            devices::by_name(s, value(&["connection"], "interface-name").unwrap_or_default())
        }
        () if value(&["ethernet", "802-3-ethernet"], "mac-address").is_some() => {
            devices::by_mac(s, value(&["ethernet", "802-3-ethernet"], "mac-address").unwrap_or_default())
        }
        () if value(&["match"], "interface-name").is_some() => {
            devices::by_patterns(s, value(&["match"], "interface-name").unwrap_or_default())
        }
        () => {
            let why = "the connection names no interface, so NetworkManager chooses one when it activates it";
            return out.leave(&file.at(first.line), "[ethtool]", why);
        }
    };
    if nics.is_empty() {
        return out.leave(&file.at(first.line), "[ethtool]", "the interface of the connection is not on this host");
    }
    for setting in ours {
        let by = file.at(setting.line);
        let found = GROUPS.iter().find_map(|(prefix, g)| Some((*g, setting.key.strip_prefix(prefix)?)));
        let read = match found {
            Some((group, word)) => part(group, word, &setting.value),
            None => Err("ringwise has no such setting".to_string()),
        };
        match read {
            Ok(part) => nics.iter().for_each(|n| out.add(Some(n.name()), part.clone(), &by)),
            Err(why) => out.leave(&by, format!("{}={}", setting.key, setting.value), why),
        }
    }
}
