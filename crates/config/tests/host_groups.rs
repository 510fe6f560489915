//! Host groups: which settings a host gets from the top level and from the groups that match it.

use ringwise_config::{Bound, applicable, bind, joined, parse, parse_set, print};
use ringwise_model::{Fact, Goal, Knob, RingValues, Snapshot};
use ringwise_testkit::machines;

/// A host with eth0 to eth2 and drivers of their own.
fn host(name: Fact<String>) -> Snapshot {
    let mut s = machines::ten()[0].snapshot();
    let one = s.nics.iter().find(|n| n.has_own_queues()).expect("an interface").clone();
    s.nics = (0..3u32)
        .map(|i| {
            let mut n = one.clone();
            n.dev.name = format!("eth{i}");
            n.dev.ifindex = Some(ringwise_model::IfIndex(i + 2));
            n.driver = Fact::Known(if i == 1 { "igb" } else { "ixgbe" }.into());
            n
        })
        .collect();
    s.host.name = name;
    s
}

fn named(name: &str) -> Snapshot {
    host(Fact::Known(name.into()))
}

const FILE: &str = r#"
version = 1
[host]
goal = "rpc"
queues = 8
sysctl = { "net.core.netdev_budget" = 600 }
[[interface]]
match = { driver = "ixgbe" }
rings = { rx = 512, tx = 512 }
coalesce = { adaptive-rx = true }
[host_group.edge]
match = { name = ["edge*", "fw?"] }
[host_group.edge.host]
goal = "forward"
sysctl = { "net.core.netdev_budget" = 900, "net.core.netdev_max_backlog" = 2000 }
[[host_group.edge.interface]]
match = { name = "eth0" }
rings = { rx = 1024 }
coalesce = { rx-usecs = 20 }
[[host_group.edge.interface]]
match = { driver = "igb" }
channels = 2
[host_group.small]
match = { cpu_count = "< 2" }
host = { queues = 1 }
"#;

fn bound(text: &str, sets: &[&str], s: &Snapshot) -> Result<Bound, Vec<String>> {
    let c = parse("f.toml", text).unwrap_or_else(|f| panic!("{f}"));
    let over: Vec<_> = sets.iter().map(|s| parse_set(s).unwrap_or_else(|f| panic!("{f}"))).collect();
    bind(&c, &over, s)
}

fn knobs<'a>(b: &'a Bound, dev: Option<&str>) -> Vec<&'a Knob> {
    b.intent.wishes.iter().filter(|w| w.dev.as_deref() == dev).map(|w| &w.knob).collect()
}

fn sysctl(name: &str, value: &str) -> Knob {
    Knob::Sysctl { name: format!("net.core.{name}"), value: value.into() }
}

#[test]
fn a_host_outside_of_every_group_gets_the_top_level() {
    let b = bound(FILE, &[], &named("db1")).unwrap();
    assert_eq!((b.intent.goal, b.intent.queues), (Goal::Rpc, Some(8)));
    assert_eq!(knobs(&b, None), [&sysctl("netdev_budget", "600")]);
    assert_eq!(knobs(&b, Some("eth1")), [] as [&Knob; 0]);
    assert!(b.intent.host_groups.is_empty() && b.notes.is_empty(), "{:?}", b.notes);
    let a = applicable(&parse("f.toml", FILE).unwrap(), &named("db1"));
    let entries: Vec<String> = a.entries.iter().map(ToString::to_string).collect();
    assert_eq!((a.host_groups.len(), entries), (0, vec!["f.toml line 8".to_string()]));
}

#[test]
fn a_group_overrides_single_keys() {
    for name in ["edge7.example", "FW3"] {
        let b = bound(FILE, &[], &named(name)).unwrap();
        assert_eq!((b.intent.goal, b.intent.queues), (Goal::Forward, Some(8)));
        assert_eq!(b.intent.host_groups, ["edge"]);
        assert_eq!(knobs(&b, None), [&sysctl("netdev_budget", "900"), &sysctl("netdev_max_backlog", "2000")]);
        // Both entries match eth0, by different criteria. What only one of them names stays.
        let eth0 = knobs(&b, Some("eth0"));
        assert!(eth0.contains(&&Knob::Rings { values: RingValues::sizes(Some(1024), Some(512)) }), "{eth0:?}");
        let params = eth0.iter().find_map(|k| if let Knob::Coalesce { params, .. } = k { Some(params) } else { None });
        assert_eq!((params.unwrap()["use-adaptive-rx"], params.unwrap()["rx-usecs"]), (0, 20));
        let channels = Knob::Channels { rx: None, tx: None, combined: Some(2) };
        assert_eq!(knobs(&b, Some("eth1")), [&channels]);
        let eth2 = knobs(&b, Some("eth2"));
        assert!(eth2.contains(&&Knob::Rings { values: RingValues::sizes(Some(512), Some(512)) }), "{eth2:?}");
        let a = applicable(&parse("f.toml", FILE).unwrap(), &named(name));
        assert_eq!((a.host_groups, a.entries.len(), a.undecided.len()), (vec!["edge".to_string()], 3, 0));
    }
}

#[test]
fn the_command_line_overrides_groups() {
    let b = bound(FILE, &["host.goal=stream", "eth0.rings.rx=2048"], &named("edge1")).unwrap();
    assert_eq!(b.intent.goal, Goal::Stream);
    let eth0 = knobs(&b, Some("eth0"));
    assert!(eth0.contains(&&Knob::Rings { values: RingValues::sizes(Some(2048), Some(512)) }), "{eth0:?}");
}

/// A redacted capture, or one without the name, must not get the settings of a group by accident.
#[test]
fn an_unknown_name_is_reported_and_does_not_match() {
    for name in [Fact::Known("host-name-1".to_string()), Fact::unknown("hostname", "not in this capture")] {
        let all = FILE.replace("\"edge*\"", "\"*\"");
        let b = bound(&all, &[], &host(name)).unwrap();
        assert_eq!((b.intent.goal, b.intent.host_groups.len()), (Goal::Rpc, 0));
        let [note] = b.notes.as_slice() else { panic!("{:?}", b.notes) };
        let words = "f.toml line 12: host group edge does not apply, because the host name is unknown (";
        assert!(note.starts_with(words), "{note}");
    }
}

fn two(a: &str, b: &str) -> String {
    format!(
        "version = 1\n[host_group.a]\nmatch = {{ name = \"*\" }}\n{a}\n[host_group.b]\nmatch = {{ driver = \"igb\" }}\n{b}\n"
    )
}

fn entry(group: &str, matches: &str, body: &str) -> String {
    format!("[[host_group.{group}.interface]]\nmatch = {{ {matches} }}\n{body}")
}

#[test]
fn two_groups_with_different_values_are_a_mistake_with_both_lines() {
    let on = |dev: &str, body: &str| (entry("a", dev, body), entry("b", dev, body));
    let igb = |a: &str, b: &str| two(&entry("a", "name = \"eth1\"", a), &entry("b", "driver = \"igb\"", b));
    for (text, at, key) in [
        (two("host = { goal = \"rpc\" }", "host = { goal = \"stream\" }"), (4, 7), "goal differently;"),
        (two("host = { reserve = \"0\" }", "host = { reserve = \"1\" }"), (4, 7), "reserve differently;"),
        (
            two(
                "host.sysctl = { \"net.core.netdev_budget\" = 600 }",
                "host.sysctl = { \"net.core.netdev_budget\" = 700 }",
            ),
            (4, 7),
            "sysctl net.core.netdev_budget differently;",
        ),
        (igb("channels = 2", "channels = 4"), (6, 11), "channels differently for eth1;"),
        (igb("rings.rx = 512", "rings = { rx = 1024 }"), (6, 11), "rings differently for eth1;"),
        // A fixed value switches adaptive moderation off.
        (igb("coalesce.adaptive-rx = true", "coalesce.rx-usecs = 9"), (6, 11), "coalesce differently for eth1;"),
        (
            igb("features.tso = true", "features.tx-tcp-segmentation = false"),
            (6, 11),
            "feature tso differently for eth1;",
        ),
        (igb("irq_cpus = { \"0-1\" = 2 }", "irq_cpus = { \"1\" = 3 }"), (6, 11), "irq_cpus differently for eth1;"),
        (igb("goal = \"rpc\"", "goal = \"stream\""), (5, 10), "goal differently for eth1;"),
    ] {
        let wrong = bound(&text, &[], &named("x")).expect_err(&text);
        let [one] = wrong.as_slice() else { panic!("{wrong:?}") };
        let (a, b) = at;
        let head =
            format!("f.toml line {a} (host group a) and f.toml line {b} (host group b) set {key} expected the same");
        assert!(one.starts_with(&head), "{one}\n{text}");
    }
    // The same values, and other parts of the same setting, are no mistake.
    let (a, b) = on("name = \"eth1\"", "rings.rx = 512\nfeatures.gro = true\n");
    assert!(bound(&two(&a, &b), &[], &named("x")).is_ok());
    let text = igb("rings.rx = 512\nfeatures.tso = true", "rings.tx = 256\nfeatures.tx-tcp-segmentation = true");
    let b = bound(&text, &[], &named("x")).unwrap();
    assert!(knobs(&b, Some("eth1")).contains(&&Knob::Rings { values: RingValues::sizes(Some(512), Some(256)) }));
    // No interface has both settings, or the groups do not match the same host.
    let text = two(&entry("a", "name = \"eth0\"", "channels = 2"), &entry("b", "driver = \"igb\"", "channels = 4"));
    assert!(bound(&text, &[], &named("x")).is_ok());
    let text = igb("channels = 2", "channels = 4").replace("driver = \"igb\" }\n[[", "driver = \"nosuch\" }\n[[");
    assert!(bound(&text, &[], &named("x")).is_ok());
}

#[test]
fn two_entries_of_one_group_for_one_interface_are_refused() {
    let a = entry("a", "name = \"eth1\"", "channels = 2\n") + &entry("a", "driver = \"igb\"", "rings.rx = 512");
    let wrong = bound(&two(&a, "host.queues = 1"), &[], &named("x")).unwrap_err();
    assert!(wrong[0].starts_with("two entries match eth1: f.toml line 5"), "{wrong:?}");
}

/// The printed result needs no groups, and means the same on this host.
#[test]
fn merged_for_one_host() {
    for name in ["edge1", "db1"] {
        let (c, s) = (parse("f.toml", FILE).unwrap(), named(name));
        let over = [parse_set("eth2.rings.rx=64").unwrap()];
        let (merged, notes) = joined(&c, &over, &s);
        let which = if name == "edge1" { "(edge)" } else { "(none of them applies)" };
        assert!(notes[0].ends_with(which), "{notes:?}");
        let again = parse("printed", &print(&merged)).unwrap_or_else(|f| panic!("{f}"));
        assert!(again.host_groups.is_empty());
        let (one, two) = (bind(&c, &over, &s).unwrap(), bind(&again, &[], &s).unwrap());
        assert_eq!((one.intent.goal, one.intent.queues), (two.intent.goal, two.intent.queues));
        for dev in [None, Some("eth0"), Some("eth1"), Some("eth2")] {
            let texts = |b: &Bound| {
                let mut all: Vec<String> = knobs(b, dev).iter().map(|k| format!("{k:?}")).collect();
                all.sort();
                all
            };
            assert_eq!(texts(&one), texts(&two), "{name} {dev:?}");
        }
    }
}

#[test]
fn what_a_group_contradicts_in_the_top_level_is_found_without_a_host() {
    let text = "version = 1\n[[interface]]\nmatch = { name = \"eth0\" }\nchannels = 2\n[host_group.a]\n\
                match = { name = \"a*\" }\n[[host_group.a.interface]]\nmatch = { name = \"eth0\" }\nrss.table = \"equal 4\"\n";
    let f = parse("f.toml", text).unwrap_err();
    assert_eq!(f.all.len(), 1, "{f}");
    assert_eq!(f.all[0].found, "the table names queue 3, but channels sets only 2");
    // The group may change the number of queues, too.
    assert!(parse("f.toml", &text.replace("rss.table", "channels = 4\nrss.table")).is_ok());
}
