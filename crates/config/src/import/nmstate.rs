//! States of nmstate: `ethtool` of each interface.

use ringwise_model::{Nic, Snapshot};

use super::words::{Group, part};
use super::yaml::{self, Node};
use super::{ForeignFile, Imported, devices};

/// Keys of a state, and of the policies and resources that contain one.
const KEYS: [&str; 13] = [
    "interfaces",
    "dns-resolver",
    "routes",
    "route-rules",
    "hostname",
    "ovs-db",
    "ovn",
    "description",
    "capture",
    "variables",
    "desired",
    "desiredState",
    "spec",
];

/// Reads one file.
pub fn nmstate(file: &ForeignFile, s: &Snapshot, out: &mut Imported) {
    if file.is_too_large(out) {
        return;
    }
    let root = match yaml::parse(&file.text) {
        Ok(root) => root,
        Err(e) => return out.refuse(&file.at(e.line), format!("ringwise does not read {}", e.why)),
    };
    if let Some((_, first)) = root.entries().first().filter(|_| !KEYS.iter().any(|k| root.get(k).is_some())) {
        let why = "it has no key of nmstate; expected a state with `interfaces`";
        return out.refuse(&file.at(first.line), why);
    }
    // A policy has the state below `desiredState` (Kubernetes NMState) or `desired`.
    let below = |n: &Node, key: &str| n.get(key).cloned();
    let state = below(&root, "desiredState")
        .or(below(&root, "desired"))
        .or_else(|| root.get("spec").and_then(|s| below(s, "desiredState")));
    let state = state.unwrap_or(root);
    for i in state.get("interfaces").map(Node::items).unwrap_or_default() {
        interface(file, i, s, out);
    }
}

fn interface(file: &ForeignFile, i: &Node, s: &Snapshot, out: &mut Imported) {
    let Some(ethtool) = i.get("ethtool") else { return };
    let text = |key: &str| i.get(key).and_then(Node::text).unwrap_or_default();
    let by = file.at(ethtool.line);
    if ["absent", "down", "ignore"].contains(&text("state")) {
        return out.leave(&by, format!("ethtool of {}", text("name")), "nmstate does not bring the interface up");
    }
    let nics: Vec<&Nic> = match text("identifier") {
        "mac-address" => devices::by_mac(s, text("mac-address")),
        "" | "name" => devices::by_name(s, text("name")),
        other => {
            let why = format!("ringwise cannot match the identifier {other}");
            return out.leave(&by, format!("ethtool of {}", text("name")), why);
        }
    };
    if nics.is_empty() {
        return out.leave(&by, format!("ethtool of {}", text("name")), "the interface is not on this host");
    }
    for (key, values) in ethtool.entries() {
        let group = match key.as_str() {
            "feature" | "features" => Group::Feature,
            "ring" => Group::Ring,
            "coalesce" => Group::Coalesce,
            "pause" => Group::Pause,
            "channels" => Group::Channels,
            _ => {
                out.leave(&file.at(values.line), format!("ethtool.{key}"), "ringwise has no such setting");
                continue;
            }
        };
        for (word, value) in values.entries() {
            // States that nmstate shows contain the maximum, which it ignores when it applies them.
            if group == Group::Ring && word.ends_with("-max") {
                continue;
            }
            let by = file.at(value.line);
            let read = match value.text() {
                Some(v) => part(group, word, v),
                None => Err("expected one value".into()),
            };
            match read {
                Ok(part) => nics.iter().for_each(|n| out.add(Some(n.name()), part.clone(), &by)),
                Err(why) => out.leave(&by, format!("{word}: {}", value.text().unwrap_or("…")), why),
            }
        }
    }
}
