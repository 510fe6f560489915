//! Writes a starter file: the interfaces of a host, with their current settings as comments.

use std::collections::BTreeMap;

use ringwise_model::{ConfiguredBy, Goal, Knob, Nic, RingKind, RingValues, Snapshot, Table, Wish};

use crate::print::print_entry;
use crate::set::quote;
use crate::value::{InterfaceEntry, Matcher};

/// The file changes no setting. It names only the goal.
pub fn init(s: &Snapshot, goal: Goal) -> String {
    let mut out = String::from(
        "# Configuration of ringwise. All keys: ringwise.toml(5), docs/config.md\n\
         # If neither is installed: ringwise help ringwise.toml\n\
         # Check this file: ringwise config check FILE\n\
         # Show what it would change: ringwise plan --config FILE\n\
         version = 1\n\n\
         [host]\n\
         # Goals: GOALS\n\
         # ringwise plan --goal GOAL --print-config shows the settings of a goal\n\
         goal = \"GOAL\"\n\
         INTERFACES\
         # cpus = \"0-3\"                 use only these CPUs for queues\n\
         # reserve = \"0\"                keep these CPUs free of queues\n\
         # allow_disruption = true      also make changes that interrupt traffic\n",
    )
    .replace("\"GOAL\"", &format!("\"{goal}\""))
    .replace("GOALS", &Goal::ALL.map(Goal::name).join(", "))
    .replace("INTERFACES", &interfaces(s));
    for n in s.nics.iter().filter(|n| n.has_own_queues()) {
        out += &interface(n);
    }
    out + "\n# Settings of some of the hosts that use this file, which override those above:\n\
           # [host_group.edge]\n\
           # match = { name = \"edge*\", cpu_count = \">= 16\" }\n\
           # host = { queues = 8 }\n"
}

/// The key that limits the file to some interfaces, as a comment. An `[[interface]]` entry that is removed limits nothing.
fn interfaces(s: &Snapshot) -> String {
    let names: Vec<String> = s.tunable().map(|n| quote(n.name())).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "# Without the key interfaces, the goal covers all interfaces that have a driver, queues of their own and a link,\n\
         # also those without an [[interface]] entry below. To cover only some, list them:\n\
         # interfaces = [{}]\n",
        names.join(", ")
    )
}

fn interface(n: &Nic) -> String {
    let matcher = match (&n.dev.permanent_mac, &n.dev.bus_address) {
        (Some(mac), _) => Matcher { mac: Some(mac.clone()), ..Matcher::default() },
        (None, Some(bus)) => Matcher { bus: Some(bus.clone()), ..Matcher::default() },
        (None, None) => Matcher { name: Some(n.name().to_string()), ..Matcher::default() },
    };
    let wishes: Vec<Wish> = now(n)
        .into_iter()
        .map(|knob| Wish { dev: None, knob, by: ConfiguredBy::Unknown, params_by: Default::default() })
        .collect();
    let present = if wishes.is_empty() { "" } else { "; its present settings, as comments" };
    let text = print_entry(&InterfaceEntry { matcher, wishes, ..InterfaceEntry::default() });
    let driver = n.driver.known().map(|d| format!(", {d}")).unwrap_or_default();
    let queues = match n.queues_unread() {
        Some(_) => "queues unknown".to_string(),
        None => format!("{} receive and {} transmit queues", n.rx_queues.len(), n.tx_queues.len()),
    };
    let mut out = format!("\n# {}{driver}, {queues}{present}\n", n.name());
    out += &unread(n);
    let mut head = true;
    for line in text.lines().filter(|l| !l.is_empty()) {
        // The entry and its match are active; the settings below it are comments.
        let shown = if head { line.to_string() } else { format!("# {line}") };
        out += &shown;
        out.push('\n');
        head &= !line.starts_with("match");
    }
    out
}

/// A comment about the settings that could not be read. Those with the same reason share a line.
fn unread(n: &Nic) -> String {
    let all = [
        ("channels", n.channels.unread()),
        ("rings", n.rings.unread()),
        ("pause", n.pause.unread()),
        ("coalesce", n.coalesce.unread()),
        ("rss", n.rss.unread()),
    ];
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, unread) in all.into_iter().filter_map(|(key, u)| Some((key, u?))) {
        match by_reason.iter_mut().find(|(why, _)| *why == unread.why) {
            Some((_, keys)) => keys.push(key),
            None => by_reason.push((&unread.why, vec![key])),
        }
    }
    let line = |(why, keys): (&str, Vec<&str>)| format!("# could not be read: {} ({why})\n", keys.join(", "));
    by_reason.into_iter().map(line).collect()
}

/// The current settings, as the user would configure them.
fn now(n: &Nic) -> Vec<Knob> {
    let mut out = Vec::new();
    if let Some(c) = n.channels.known() {
        let some = |c: Option<ringwise_model::Count>| c.map(|c| c.now).filter(|n| *n > 0);
        let knob = Knob::Channels { rx: some(c.rx), tx: some(c.tx), combined: some(c.combined) };
        out.extend((knob != Knob::Channels { rx: None, tx: None, combined: None }).then_some(knob));
    }
    if let Some(r) = n.rings.known() {
        let now = r.now();
        let values = RingValues::each(|p| p.value(&now).filter(|n| *n > 0 || p.kind != RingKind::Size));
        out.extend((!values.is_empty()).then_some(Knob::Rings { values }));
    }
    if let Some(p) = n.pause.known() {
        let knob = Knob::Pause { autoneg: p.autoneg, rx: p.rx, tx: p.tx };
        out.extend((knob != Knob::Pause { autoneg: None, rx: None, tx: None }).then_some(knob));
    }
    if let Some(c) = n.coalesce.known() {
        let params: BTreeMap<String, u32> = settled(&c.0);
        out.extend((!params.is_empty()).then_some(Knob::Coalesce { queues: None, params }));
    }
    if let Some(r) = n.rss.known().filter(|r| !r.table.is_empty()) {
        out.push(Knob::RssTable { context: None, table: table(&r.table) });
        // A mask of unnamed bits cannot be configured.
        let function = r.function.known().filter(|f| !f.starts_with("0x")).cloned();
        let symmetric = r.symmetric.known().cloned();
        out.extend((function.is_some() || symmetric.is_some()).then_some(Knob::RssHash {
            function,
            key: None,
            symmetric,
        }));
    }
    out
}

/// With adaptive moderation, the driver chooses the fixed values itself at each moment. The profiles from which it
/// chooses are settings.
fn settled(all: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    let adaptive = |dir: &str| all.get(&format!("use-adaptive-{dir}")) == Some(&1);
    let of = |k: &str| match () {
        () if k.contains("-profile.") => false,
        () if k.starts_with("rx-") => adaptive("rx"),
        () if k.starts_with("tx-") => adaptive("tx"),
        () => false,
    };
    all.iter()
        .filter(|(k, v)| !of(k) && (k.starts_with("use-") || **v != 0))
        .map(|(k, v)| (k.clone(), *v))
        .collect::<BTreeMap<_, _>>()
}

/// In ethtool's words, if they describe exactly this table.
fn table(entries: &[u32]) -> Table {
    let start = entries.iter().min().copied().unwrap_or(0);
    let queues = entries.iter().max().map_or(1, |m| m - start + 1);
    if entries.iter().enumerate().all(|(i, q)| *q == start + i as u32 % queues) {
        return Table::Equal { queues, start };
    }
    weights(entries, start, queues).unwrap_or_else(|| Table::Explicit(entries.to_vec()))
}

/// The entries of each queue are next to each other and in order: their number is the weight.
fn weights(entries: &[u32], start: u32, queues: u32) -> Option<Table> {
    if !entries.is_sorted() {
        return None;
    }
    let mut weights = vec![0u32; queues as usize];
    entries.iter().for_each(|q| weights[(q - start) as usize] += 1);
    let unit = weights.iter().fold(0, |a, b| greatest_divisor(a, *b));
    weights.iter_mut().for_each(|w| *w /= unit);
    // A long list of weights is no easier to read than the table itself.
    (weights.len() * 2 <= entries.len()).then_some(Table::Weight { weights, start })
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Count, Fact, Rings, Unread};
    use ringwise_testkit::machines;

    use super::*;

    /// A ring of size 0 does not exist; a switch or a number of 0 is a setting.
    #[test]
    fn of_rings_only_sizes_have_no_zero() {
        let mut s = machines::ten()[0].snapshot();
        let count = |now, max| Some(Count { now, max });
        let (hds_thresh, tcp_data_split) = (count(0, 1023), Some(false));
        let mut rings = |rx, tx| {
            s.nics[0].rings = Fact::Known(Rings {
                rx: count(rx, 4096),
                tx: count(tx, 4096),
                tcp_data_split,
                hds_thresh,
                ..Rings::default()
            });
            init(&s, Goal::Balanced).lines().find_map(|l| l.strip_prefix("# rings = ")).map(str::to_string)
        };
        assert_eq!(
            rings(512, 1024).as_deref(),
            Some("{ rx = 512, tx = 1024, tcp_data_split = false, hds_thresh = 0 }")
        );
        assert_eq!(rings(512, 0).as_deref(), Some("{ rx = 512, tcp_data_split = false, hds_thresh = 0 }"));
    }

    /// Without the key, a file with two entries would still cover the third interface.
    #[test]
    fn the_interfaces_of_the_host_are_listed_for_the_key() {
        let s = machines::ten()[0].snapshot();
        let text = init(&s, Goal::Balanced);
        let key = text.lines().find_map(|l| l.strip_prefix("# interfaces = ")).unwrap();
        let names: Vec<String> = s.tunable().map(|n| n.name().to_string()).collect();
        assert_eq!(key, format!("{names:?}"));
        let active = text.replace("# interfaces = ", "interfaces = ");
        let config = crate::parse("f.toml", &active).unwrap();
        assert_eq!(config.host.interfaces, names);
        let none = Snapshot { nics: Vec::new(), ..s };
        assert!(!init(&none, Goal::Balanced).contains("interfaces ="));
    }

    #[test]
    fn settings_that_could_not_be_read_are_named() {
        let mut s = machines::ten()[0].snapshot();
        s.nics.truncate(1);
        let text = init(&s, Goal::Balanced);
        assert!(text.contains("; its present settings, as comments") && !text.contains("could not be read"), "{text}");
        let unread = |of: &str| Unread::new(of, None, "not in this capture");
        s.nics[0].channels = Fact::Unknown(unread("channels-get eth1"));
        s.nics[0].rings = Fact::Unknown(unread("rings-get eth1"));
        s.nics[0].pause = Fact::Absent;
        s.nics[0].coalesce = Fact::Absent;
        s.nics[0].rss = Fact::Absent;
        let text = init(&s, Goal::Balanced);
        let line = "# could not be read: channels, rings (not in this capture)\n[[interface]]\n";
        assert!(text.contains(line) && !text.contains("as comments"), "{text}");
        assert!(crate::parse("f.toml", &text).is_ok(), "{text}");
    }

    #[test]
    fn a_table_in_words_is_that_table() {
        let text = |t: &[u32]| crate::words::table_text(&table(t));
        let of = |n: u32, f: &dyn Fn(u32) -> u32| (0..n).map(f).collect::<Vec<u32>>();
        assert_eq!(text(&of(128, &|i| i % 8)), "equal 8");
        assert_eq!(text(&of(128, &|i| 4 + i % 4)), "equal 4 start 4");
        assert_eq!(text(&of(128, &|_| 0)), "equal 1");
        // Entries of a queue next to each other, as some drivers write them.
        assert_eq!(text(&of(128, &|i| i / 16)), "weight 1 1 1 1 1 1 1 1");
        assert_eq!(text(&of(128, &|i| if i < 96 { 0 } else { 1 })), "weight 3 1");
        assert_eq!(text(&of(128, &|i| if i < 64 { 2 } else { 5 })), "weight 1 0 0 1 start 2");
        let mut odd = of(128, &|i| i % 8);
        odd.swap(3, 9);
        assert_eq!(table(&odd), Table::Explicit(odd.clone()));
    }

    #[test]
    fn only_moderation_that_a_user_may_have_chosen_is_kept() {
        let all = [
            ("use-adaptive-rx", 1),
            ("use-adaptive-tx", 0),
            ("rx-usecs", 50),
            ("rx-frames", 0),
            ("tx-usecs", 30),
            ("tx-frames", 0),
            ("rx-profile.0.usec", 8),
            ("stats-block-usecs", 7),
            ("sample-interval", 0),
        ];
        let kept = settled(&all.map(|(k, v)| (k.to_string(), v)).into());
        let kept: Vec<(&str, u32)> = kept.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        // Neither values that the driver chose, nor zeros except for the switches.
        assert_eq!(
            kept,
            [
                ("rx-profile.0.usec", 8),
                ("stats-block-usecs", 7),
                ("tx-usecs", 30),
                ("use-adaptive-rx", 1),
                ("use-adaptive-tx", 0)
            ]
        );
    }
}
