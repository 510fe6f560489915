//! Finds files that set other values at boot: units, rules, `.link` files, sysctl settings.

use std::collections::BTreeMap;

use ringwise_model::{Intent, Knob, Snapshot};
use ringwise_sys::Host;

/// Directories in the order in which systemd-sysctl reads them; a later file takes precedence.
const DIRS: [&str; 4] = ["/usr/lib/sysctl.d", "/usr/local/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"];
const RFS: &str = "net.core.rps_sock_flow_entries";

/// One note for each other program, and for each file of sysctl settings, that sets something else than `i` at boot.
pub fn conflicts(host: &dyn Host, s: &Snapshot, i: &Intent) -> Vec<String> {
    let mut out = Vec::new();
    for r in s.host.rival_details.iter().filter(|r| !r.running) {
        out.push(format!("{} ({}) sets {} too; the one that runs last decides", r.shown(), r.name, r.sets));
    }
    let mut want: BTreeMap<String, String> = BTreeMap::new();
    for w in &i.wishes {
        match &w.knob {
            Knob::Sysctl { name, value } => want.insert(name.replace('/', "."), value.clone()),
            Knob::RfsEntries { entries } => want.insert(RFS.into(), entries.to_string()),
            _ => None,
        };
    }
    if want.is_empty() {
        return out;
    }
    let mut files: Vec<String> = vec!["/etc/sysctl.conf".into()];
    for dir in DIRS {
        let names = host.list(dir).unwrap_or_default();
        files.extend(names.iter().filter(|n| n.ends_with(".conf")).map(|n| format!("{dir}/{n}")));
    }
    for f in files {
        let Ok(text) = host.read_text(&f) else { continue };
        for (name, value) in assignments(&text) {
            if let Some(w) = want.get(&name).filter(|w| **w != value) {
                out.push(format!("{f} sets {name} = {value}; ringwise applies its configuration later and sets {w}"));
            }
        }
    }
    out
}

fn assignments(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|l| !l.starts_with(['#', ';']));
    let both = lines.filter_map(|l| l.split_once('='));
    both.map(|(k, v)| {
        let name = k.trim().trim_start_matches('-').replace('/', ".");
        (name, v.split_whitespace().collect::<Vec<_>>().join(" "))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_files() {
        let text =
            "# net.core.x = 1\n-net/core/netdev_budget =  600 \n; y = 2\nnet.ipv4.tcp_rmem=4096\t87380 6291456\n";
        let got = assignments(text);
        assert_eq!(got[0], ("net.core.netdev_budget".into(), "600".into()));
        assert_eq!(got[1], ("net.ipv4.tcp_rmem".into(), "4096 87380 6291456".into()));
        assert_eq!(got.len(), 2);
    }
}
