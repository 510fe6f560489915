//! Programs and configuration besides irqbalance, and what they would set.

use std::collections::BTreeMap;

use ringwise_kfmt::ini;
use ringwise_model::CompetingProgram;
use ringwise_sys::Host;

/// Where systemd-udevd searches for `.link` files, in order of precedence.
pub(crate) const LINKS: [&str; 5] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
];
/// Where tuned searches for profiles, in order of precedence.
pub(crate) const PROFILES: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// Files in which people put such commands, and directories of such files.
const SCRIPTS: [&str; 4] = ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/crontab", "/etc/network/interfaces"];
const SCRIPT_DIRS: [(&str, &str); 4] = [
    ("/etc/cron.d", ""),
    ("/etc/systemd/system", ".service"),
    ("/etc/udev/rules.d", ".rules"),
    ("/etc/network/if-up.d", ""),
];
/// A word in such a file, and what it sets.
const WORDS: [(&str, &str); 12] = [
    ("set_irq_affinity", "interrupt affinity"),
    ("mlnx_affinity", "interrupt affinity"),
    ("mlnx_tune", "interrupt affinity, ring sizes, offloads"),
    ("smp_affinity", "interrupt affinity"),
    ("rps_cpus", "RPS"),
    ("xps_cpus", "XPS"),
    ("rps_flow_cnt", "RFS"),
    ("rps_sock_flow_entries", "RFS"),
    ("ethtool -L", "channels"),
    ("ethtool -G", "ring sizes"),
    ("ethtool -C", "moderation"),
    ("ethtool -X", "RSS table"),
];

pub(super) fn details(host: &dyn Host, processes: &[(u32, String)]) -> Vec<CompetingProgram> {
    let mut out = Vec::new();
    for (pid, name) in processes {
        let evidence = format!("process {pid}");
        let (name, sets) = match name.as_str() {
            "irqbalance" => ("irqbalance", "interrupt affinity".to_string()),
            "irqd" => ("irqd", "interrupt affinity, RPS".into()),
            "katalyst-agent" => ("katalyst-agent", "interrupt affinity, RPS, XPS".into()),
            "mlnx_affinity" | "set_irq_affinit" => ("set_irq_affinity", "interrupt affinity".into()),
            "mlnx_tune" => ("mlnx_tune", "interrupt affinity, ring sizes, offloads".into()),
            "tuned" => {
                out.push(tuned(host, *pid));
                continue;
            }
            other => (other, String::new()),
        };
        out.push(CompetingProgram {
            name: name.into(),
            sets,
            devices: Vec::new(),
            evidence,
            setup: None,
            running: true,
        });
    }
    out.extend(links(host));
    out.extend(scripts(host));
    out
}

/// `[Section]`, key and value of a file of systemd or tuned.
pub(super) fn settings(text: &str) -> Vec<(String, String, String)> {
    ini::parse(text).into_iter().map(|s| (s.section, s.key, s.value)).collect()
}

fn add(list: &mut Vec<String>, what: &str) {
    if !what.is_empty() && !list.iter().any(|w| w == what) {
        list.push(what.to_string());
    }
}

/// The profile's own files. What its scripts do is unknown.
fn tuned(host: &dyn Host, pid: u32) -> CompetingProgram {
    let active = host.read_text("/etc/tuned/active_profile").unwrap_or_default();
    let mut sets = Vec::new();
    let mut devices = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut todo: Vec<String> = active.split_whitespace().map(str::to_string).collect();
    while let Some(profile) = todo.pop() {
        // No profile in use includes more. A profile may include itself.
        if seen.contains(&profile) || seen.len() > 20 || profile.contains('/') || profile.contains('$') {
            continue;
        }
        let text = PROFILES.iter().find_map(|d| host.read_text(&format!("{d}/{profile}/tuned.conf")).ok());
        let all = settings(&text.unwrap_or_default());
        let kinds: BTreeMap<&str, &str> =
            all.iter().filter(|(_, k, _)| k == "type").map(|(s, _, v)| (s.as_str(), v.as_str())).collect();
        for (section, key, value) in &all {
            let kind = kinds.get(section.as_str()).copied().unwrap_or(section);
            match (kind, key.as_str()) {
                ("main", "include") => todo.extend(value.split([',', ' ']).map(|p| p.trim().to_string())),
                ("net", "channels") => add(&mut sets, "channels"),
                ("net", "ring") => add(&mut sets, "ring sizes"),
                ("net", "coalesce") => add(&mut sets, "moderation"),
                ("net", "features") => add(&mut sets, "offloads"),
                ("net", "devices") => devices.extend(value.split([',', ' ']).map(str::to_string)),
                ("irq", _) | ("scheduler", "isolated_cores" | "default_irq_smp_affinity") => {
                    add(&mut sets, "interrupt affinity");
                }
                ("sysctl", k) if k.starts_with("net.core.rps") => add(&mut sets, "RPS"),
                ("script", "script") => add(&mut sets, "settings of its script"),
                _ => {}
            }
        }
        seen.push(profile);
    }
    devices.retain(|d: &String| !d.is_empty());
    let of = if active.is_empty() { "no active profile".to_string() } else { format!("profile {active}") };
    CompetingProgram {
        name: "tuned".into(),
        sets: sets.join(", "),
        devices,
        evidence: format!("process {pid}"),
        setup: Some(of),
        running: true,
    }
}

fn of_link(key: &str) -> &'static str {
    match key {
        "RxChannels" | "TxChannels" | "OtherChannels" | "CombinedChannels" => "channels",
        "RxBufferSize" | "RxMiniBufferSize" | "RxJumboBufferSize" | "TxBufferSize" => "ring sizes",
        "IRQAffinity" | "IRQAffinityPolicy" | "IRQAffinityNUMA" => "interrupt affinity",
        "ReceivePacketSteeringCPUMask" => "RPS",
        k if k.contains("Coalesce") => "moderation",
        _ => "",
    }
}

/// If several files have the same name, the directory with the highest precedence counts. They take effect when the
/// device appears, and at `udevadm trigger`.
fn links(host: &dyn Host) -> Vec<CompetingProgram> {
    let mut seen: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for dir in LINKS {
        let mut names = host.list(dir).unwrap_or_default();
        names.sort();
        for name in names.into_iter().filter(|n| n.ends_with(".link")) {
            if seen.contains(&name) {
                continue;
            }
            let path = format!("{dir}/{name}");
            let all = settings(&host.read_text(&path).unwrap_or_default());
            let mut sets = Vec::new();
            all.iter().filter(|(s, ..)| s == "Link").for_each(|(_, k, _)| add(&mut sets, of_link(k)));
            let devices = all.iter().filter(|(s, ..)| s == "Match").map(|(_, k, v)| format!("{k}={v}")).collect();
            if !sets.is_empty() {
                let sets = sets.join(", ");
                out.push(CompetingProgram {
                    name: CompetingProgram::UDEV_LINK.into(),
                    sets,
                    devices,
                    evidence: path,
                    setup: None,
                    running: false,
                });
            }
            seen.push(name);
        }
    }
    out
}

/// Directories of files that are searched for words.
pub(super) fn script_dirs() -> impl Iterator<Item = &'static str> {
    SCRIPT_DIRS.iter().map(|(dir, _)| *dir)
}

/// Whether a path is one of the files that are searched for words.
pub(super) fn is_script(path: &str) -> bool {
    SCRIPTS.contains(&path)
        || SCRIPT_DIRS.iter().any(|(dir, end)| {
            path.strip_prefix(dir)
                .and_then(|r| r.strip_prefix('/'))
                .is_some_and(|n| !n.contains('/') && n.ends_with(end))
        })
}

/// The words that count in such a file, one per line, without comments.
pub(super) fn words(text: &str) -> String {
    let code: Vec<String> = text
        .lines()
        .filter(|l| !l.trim_start().starts_with('#'))
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ").replace("--set-channels", "-L"))
        .collect();
    let found = WORDS.iter().filter(|(w, _)| code.iter().any(|l| l.contains(w)));
    found.map(|(w, _)| format!("{w}\n")).collect()
}

fn scripts(host: &dyn Host) -> Vec<CompetingProgram> {
    let mut paths: Vec<String> = SCRIPTS.iter().map(|p| (*p).to_string()).collect();
    for (dir, end) in SCRIPT_DIRS {
        let mut names = host.list(dir).unwrap_or_default();
        names.sort();
        paths.extend(names.into_iter().filter(|n| n.ends_with(end)).map(|n| format!("{dir}/{n}")));
    }
    let mut out = Vec::new();
    for path in paths {
        let Ok(text) = host.read_text(&path) else { continue };
        let found = words(&text);
        let mut sets = Vec::new();
        for word in found.lines() {
            let what = WORDS.iter().find(|(w, _)| *w == word).map_or("", |(_, what)| what);
            what.split(", ").for_each(|w| add(&mut sets, w));
        }
        if let Some(first) = found.lines().next() {
            let evidence = format!("{path} ({first})");
            out.push(CompetingProgram {
                name: "script".into(),
                sets: sets.join(", "),
                devices: Vec::new(),
                evidence,
                setup: None,
                running: false,
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_count_are_kept() {
        let text =
            "# set_irq_affinity.sh eth9\nPASSWORD=x\n*/5 * * * * root ethtool   -L eth0 combined 4 --token abc\n";
        assert_eq!(words(text), "ethtool -L\n");
        assert_eq!(words(&words(text)), words(text));
        assert_eq!(words("echo 3 > /proc/irq/30/smp_affinity_list"), "smp_affinity\n");
    }

    #[test]
    fn files_that_are_searched() {
        assert!(is_script("/etc/rc.local") && is_script("/etc/cron.d/x") && is_script("/etc/systemd/system/a.service"));
        assert!(
            !is_script("/etc/systemd/system/a.timer") && !is_script("/etc/passwd") && !is_script("/etc/cron.d/a/b")
        );
    }
}
