//! Parsing of a file, and the errors of invalid ones.

use std::collections::BTreeMap;

use ringwise_config::{Config, parse, parse_set, print};
use ringwise_model::{Action, Flow, Goal, GroupQueues, Knob, NapiValues, RingValues, Table, Wish};

fn read(text: &str) -> Config {
    parse("f.toml", text).unwrap_or_else(|f| panic!("{f}"))
}

fn knobs(c: &Config) -> Vec<&Knob> {
    c.entries.iter().flat_map(|e| &e.wishes).map(|w: &Wish| &w.knob).collect()
}

/// Every error as one line.
fn faults(text: &str) -> Vec<String> {
    let f = parse("f.toml", text).expect_err("sound");
    f.all.iter().map(|f| format!("{} | {}", f.found, f.right.clone().unwrap_or_default())).collect()
}

fn one(body: &str) -> String {
    format!("version = 1\n[[interface]]\nmatch = {{ name = \"eth0\" }}\n{body}\n")
}

#[test]
fn knobs_of_an_interface() {
    let c = read(&one(r#"
features = { gro = true, rx-gro-list = false }
pause = { rx = false }
channels = 4
rings = { rx = 1024 }
coalesce = [{ adaptive-rx = false, rx-usecs = 30 }, { queues = "0-1", rx-frames = 8 }]
rss = { table = "weight 3 1", key = "6D:5A", fields = { udp4 = "sdfn" }, context = { 2 = [0, 1] } }
napi = { defer_hard_irqs = 2, threaded = true }
irq_cpus = { "0-1" = "8-9", 2 = [10] }
rule = ["tcp4 dst-port 443 action 2"]"#));
    let all = knobs(&c);
    assert_eq!(all.len(), 15, "{all:#?}");
    let has = |k: Knob| assert!(all.contains(&&k), "{k:?} is not in {all:#?}");
    has(Knob::Feature { name: "gro".into(), on: true });
    has(Knob::Pause { autoneg: None, rx: Some(false), tx: None });
    has(Knob::Channels { rx: None, tx: None, combined: Some(4) });
    let params = |p: &[(&str, u32)]| p.iter().map(|(k, v)| (k.to_string(), *v)).collect::<BTreeMap<_, _>>();
    has(Knob::Coalesce { queues: None, params: params(&[("use-adaptive-rx", 0), ("rx-usecs", 30)]) });
    has(Knob::Coalesce { queues: Some(vec![0, 1]), params: params(&[("rx-max-frames", 8)]) });
    has(Knob::RssTable { context: None, table: Table::Weight { weights: vec![3, 1], start: 0 } });
    has(Knob::RssTable { context: Some(2), table: Table::Explicit(vec![0, 1]) });
    has(Knob::RssHash { function: None, key: Some("6d5a".into()), symmetric: None });
    let values = NapiValues { defer_hard_irqs: Some(2), threaded: Some(1), ..NapiValues::default() };
    has(Knob::Napi { queues: None, values });
    let rule = all.iter().find_map(|k| if let Knob::FlowRule { rule, .. } = k { Some(rule) } else { None }).unwrap();
    assert_eq!((rule.flow.as_str(), rule.action), ("tcp4", Action::Queue(2)));
    assert_eq!(c.entries[0].wishes[0].by.to_string(), "f.toml line 5");
}

/// The position of a step in the list identifies it; the model has one parameter for each number.
#[test]
fn profiles_are_lists_of_steps() {
    let c = parse_set("eth0.coalesce.rx-profile=[{ usec = 1, pkts = 256 }, {}, { usec = 9 }]").unwrap();
    let all = [("rx-profile.0.usec", 1), ("rx-profile.0.pkts", 256), ("rx-profile.2.usec", 9)];
    let params = all.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    assert_eq!(knobs(&c), [&Knob::Coalesce { queues: None, params }]);
    assert!(print(&c).contains("{ rx-profile = [{ usec = 1, pkts = 256 }, {}, { usec = 9 }] }"), "{}", print(&c));
    // A later configuration changes only the steps that it names.
    let mut both = c.clone();
    both.lay(&parse_set("eth0.coalesce.rx-profile=[{}, { usec = 4 }]").unwrap());
    assert!(print(&both).contains("[{ usec = 1, pkts = 256 }, { usec = 4 }, { usec = 9 }]"), "{}", print(&both));
}

#[test]
fn groups_and_policies() {
    let c = read(
        r#"
version = 1
[[policy]]
name = "db"
coalesce = { rx-usecs = 20 }
[[interface]]
match = { driver = "igb", name = "eth*" }
goal = "rpc"
[[interface.group]]
name = "web"
policy = "LATENCY"
queues = 2
weight = 0
flows = ["tcp4 dst-port 443", { program = "nginx" }, { unit = "db.service" }]
[[interface.group]]
name = "rest"
policy = "db"
queues = "auto"
cpus = "4-7"
weight = 1
"#,
    );
    let e = &c.entries[0];
    assert_eq!(e.goal, Some(Goal::Rpc));
    assert_eq!(e.groups.len(), 2);
    assert_eq!(e.groups[0].queues, GroupQueues::Count(2));
    assert!(
        matches!(&e.groups[0].flows[0], Flow::Match { flow, fields } if flow == "tcp4" && fields["dst-port"] == "443")
    );
    assert_eq!(e.groups[0].flows[1..], [Flow::Program("nginx".into()), Flow::Unit("db.service".into())]);
    assert_eq!(e.groups[1].queues, GroupQueues::Auto);
    assert_eq!(c.policies[0].params["rx-usecs"], 20);
}

/// Each of these is one error; its message names what was found and what is expected.
#[test]
fn one_fault_each() {
    let cases: &[(&str, &str, &str)] = &[
        ("ring = { rx = 4 }", "unknown key \"ring\" in [[interface]]", "\"rings\""),
        (
            "queues = 4",
            "unknown key \"queues\" in [[interface]]",
            "\"channels\" for the number of queues of this interface",
        ),
        ("coalesce = { rx-usec = 3 }", "unknown key \"rx-usec\" in coalesce", "\"rx-usecs\""),
        ("rings = 4", "rings is a number", "a table with rx, tx"),
        ("rings = { rx = 0 }", "rx = 0 is out of range", "1 to"),
        ("channels = true", "channels is a boolean", "a number from 1 to 4096"),
        ("channels = { combined = 0 }", "channels leaves no queue at all", "at least one"),
        ("goal = \"forwrd\"", "\"forwrd\" is not a goal", "\"forward\""),
        ("features = { gro = \"on\" }", "gro is a string", "true or false"),
        ("irq_cpus = \"3-1\"", "irq_cpus: ", "a CPU list"),
        ("xps_cpus = {  }", "an empty table: xps_cpus sets nothing", "a value for some queues"),
        ("irq_cpus = { \"x\" = \"1\" }", "irq_cpus: ", "numbers such as"),
        ("irq_cpus = { \"0-1\" = \"1\", \"1\" = \"2\" }", "irq_cpus of queue 1 is set twice", "one of them"),
        ("rss.table = \"weight 0 0\"", "the weights sum to zero", ""),
        ("rss.table = \"even 4\"", "\"even 4\" is not an RSS table", "equal 4"),
        ("rss.table = [0, -1]", "-1 is out of range", ""),
        ("rss.key = \"6d5\"", "odd number", "hex bytes"),
        ("rss.symmetric = \"xor\"", "symmetric = \"xor\" is not known", "symmetric-xor"),
        ("rss.fields = { udp4 = \"sz\" }", "\"sz\" is not a list of hash fields", "ethtool's letters"),
        ("rss.context = { 0 = \"equal 2\" }", "context 0 is the device's own", "table"),
        ("coalesce = { adaptive-rx = true, rx-usecs = 3 }", "use-adaptive-rx is on", "use-adaptive-rx = false"),
        ("coalesce = { adaptive-rx = true, use-adaptive-rx = true }", "under two names", "one of them"),
        ("coalesce = [{ rx-usecs = 3 }, { rx-usecs = 4 }]", "rx-usecs of the device is set twice", "one of them"),
        ("coalesce = { rx-profile = [{}, {}, {}, {}, {}, {}] }", "rx-profile has more than 5 steps", "5"),
        ("coalesce = { rx-profile = [{ usec = 65536 }] }", "usec = 65536 is out of range", "0 to 65535"),
        ("coalesce = { tx-profile = [{ usecs = 1 }] }", "unknown key \"usecs\" in a step of a profile", "\"usec\""),
        ("coalesce = { rx-profile = 4 }", "rx-profile is a number", "a list"),
        ("napi = { threaded = 3 }", "threaded = 3 is out of range", "0 to 2"),
        ("xps_cpus = \"0\"\nxps_rxqs = \"0\"", "xps_rxqs takes precedence over xps_cpus", "one of them"),
        ("rule = [\"tcp4 dst-port x action 2\"]", "dst-port: found \"x\"", ""),
        ("rule = [\"tcp4 dst-port 443\"]", "action: nothing found", ""),
        ("rule = [{ flow = \"tcp4 dst-port 1 action 1 loc 2\", location = 3 }]", "the rule has loc 2", ""),
        (
            "rule = [\"tcp4 dst-port 1 action 1 loc 2\", \"tcp4 dst-port 2 action 1 loc 2\"]",
            "two rules for location 2",
            "",
        ),
        (
            "channels = { rx = 1, combined = 2 }\nrule = [\"tcp4 dst-port 1 action 3\"]",
            "the rule names queue 3, but channels sets only 3",
            "queues 0 to 2",
        ),
        (
            "channels = 2\nrule = [\"tcp4 dst-port 1 action 2\"]",
            "the rule names queue 2, but channels sets only 2",
            "queues 0 to 1",
        ),
        ("channels = 2\nrss.table = \"equal 3\"", "the table names queue 2, but channels sets only 2", "queues 0 to 1"),
        ("goal = \"forward\"\nfeatures.lro = true", "LRO is on", "lro = false"),
    ];
    for (body, found, right) in cases {
        let f = faults(&one(body));
        assert_eq!(f.len(), 1, "{body}: {f:#?}");
        let (is, should) = f[0].split_once(" | ").unwrap();
        assert!(is.contains(found), "{body}: {is}");
        assert!(should.contains(right), "{body}: {should}");
    }
}

#[test]
fn faults_of_groups() {
    let group =
        |text: &str| one(&text.replace('@', "\n[[interface.group]]\nname=\"").replace(" p", "\"\npolicy=\"bulk\"\n"));
    let cases = [
        ("@a p\nqueues=\"0-1\"@b p\nqueues=[1,2]", "queue 1 belongs to group \"a\" already"),
        ("@a p@a p", "group \"a\" is configured twice"),
        ("[[interface.group]]\nname=\"a\"\npolicy=\"bulky\"", "there is no policy \"bulky\" | \"bulk\""),
        ("@a p\nweight=0@b p\nweight=0", "weights of the groups sum to zero"),
        ("@a p\nqueues=2@b p\nqueues=[0]", "some groups list their queues"),
        ("@a p\nqueues=\"most\"", "queues: "),
        ("@a p\ncontext=true", "has a context, but no flows are steered to it"),
        ("@a p\ncontext=true\nweight=1\nflows=[\"tcp4 dst-port 1\"]", "no share of the table"),
        ("@a p\nflows=[\"tcp4 dst-port 1 action 2\"]", "action"),
        ("@a p\nflows=[{}]", "the flow does not name exactly one program or unit"),
        ("rss.table=\"equal 2\"@a p\nweight=1", "the RSS table is set here"),
        ("channels=2@a p\nqueues=3", "the groups need 3 queues, but channels sets only 2"),
        ("channels=2@a p\nqueues=[2]", "names queue 2, but channels sets only 2"),
    ];
    for (body, found) in cases {
        let f = faults(&group(body));
        assert_eq!(f.len(), 1, "{body}: {f:#?}");
        assert!(f[0].contains(found), "{body}: {}", f[0]);
    }
}

#[test]
fn faults_of_the_host_part() {
    let cases = [
        ("[host]\ncpus = \"0-1\"\nreserve = \"0-3\"", "reserve or exclude_cpus excludes every CPU in cpus (0-1)"),
        ("[host]\nsysctl = { netdev_budget = 3 }", "is not a sysctl name"),
        ("[host]\nrfs_entries = 4\nsysctl = { \"net.core.rps_sock_flow_entries\" = 8 }", "set twice"),
        ("[host]\npair_as_article = true\ngoal = \"rpc\"", "pair_as_article"),
        ("[host]\nsmt = \"both\"", "smt = \"both\" is not known"),
        ("[host]\ncpu_latency = { \"0\" = -1 }", "cpu_latency = -1 is out of range"),
        ("[[interface]]\ngoal = \"rpc\"", "[[interface]] lacks the key \"match\""),
        (
            "[[interface]]\nmatch = { name = \"a\" }\n[[interface.group]]\nname = \"latency\"",
            "policy = \"latency\", \"bulk\", \"cpu\" or the name of a [[policy]]",
        ),
        ("[host]\ngoal = \"auto\"", "\"auto\" is not a goal of a file: only --goal auto looks at the host"),
        ("[[interface]]\nmatch = {}", "match has no criteria"),
        ("[[interface]]\nmatch = { mac = \"1:2\" }", "\"1:2\" is not a MAC address"),
        ("[[interface]]\nmatch = {name=\"a\"}\n[[interface]]\nmatch = {name=\"a\"}", "two entries for name a"),
        ("[[policy]]\nname = \"x\"", "policy \"x\" sets no value"),
        ("[interface]\nmatch = {name=\"a\"}", "interface is a table"),
        ("[host]\nsysctl.net.core.netdev_budget = 600", "quotes around a name with dots: \"net.core.netdev_budget\""),
    ];
    for (text, found) in cases {
        let f = faults(&format!("version = 1\n{text}\n"));
        assert_eq!(f.len(), 1, "{text}: {f:#?}");
        assert!(f[0].contains(found), "{text}: {}", f[0]);
    }
    assert!(faults("")[0].contains("lacks the key \"version\""));
    assert!(faults("version = 2")[0].contains("version = 2 is out of range"));
}

/// TOML takes `0-3` for the beginning of a date.
#[test]
fn a_list_without_quotes_is_named() {
    for list in ["0-3", "0,4", "0-3, 8"] {
        let e = parse("f", &format!("version = 1\n[host]\nreserve = {list} # CPUs\n")).unwrap_err();
        let right = format!("\"{list}\"");
        assert_eq!((e.all.len(), e.all[0].right.as_deref()), (1, Some(right.as_str())), "{e}");
    }
    let e = parse("f", "version = 1\n[host]\nreserve = 2026-13-45\n").unwrap_err();
    assert_eq!(e.all.len(), 1, "{e}");
}

/// As the user sees it: all errors at once, in the order of the file, each underlined.
#[test]
fn faults_are_shown_where_they_are() {
    let text = "version = 1\n\n[[interface]]\nmatch = { name = \"eth0\" }\nrings = { rx = \"big\", rt = 3 }\nbroken = = 3\nfetures = { gro = true }\n";
    let shown = parse("/etc/ringwise/ringwise.toml", text).unwrap_err().to_string();
    let want = "\
/etc/ringwise/ringwise.toml:5:16: rx = \"big\" is not known
  5 | rings = { rx = \"big\", rt = 3 }
    |                ^^^^^
    = expected a number from 1 to 4294967295, or \"max\"
/etc/ringwise/ringwise.toml:5:23: unknown key \"rt\" in rings
  5 | rings = { rx = \"big\", rt = 3 }
    |                       ^^
    = expected \"rx\"
/etc/ringwise/ringwise.toml:6:10: invalid TOML: extra `=`, expected nothing
  6 | broken = = 3
    |          ^
/etc/ringwise/ringwise.toml:7:1: unknown key \"fetures\" in [[interface]]
  7 | fetures = { gro = true }
    | ^^^^^^^
    = expected \"features\"
/etc/ringwise/ringwise.toml: 4 errors; nothing was read from the host";
    assert_eq!(shown, want, "\n{shown}");
}

/// A criterion of `match` beside it: one message, which names the right place.
#[test]
fn a_criterion_outside_of_match() {
    let faults = |lines: &str| {
        let text = format!("version = 1\n[[interface]]\n{lines}\ngoal = \"rpc\"\n");
        parse("r.toml", &text).unwrap_err().to_string()
    };
    let shown = faults("name = \"eth0\"");
    let want = "\
r.toml:3:1: unknown key \"name\" in [[interface]]
  3 | name = \"eth0\"
    | ^^^^
    = expected match = { name = \"eth0\" }
r.toml: 1 error; nothing was read from the host";
    assert_eq!(shown, want, "\n{shown}");
    let shown = faults("match = { driver = \"igb\" }\nname = \"eth0\"");
    assert!(shown.contains("expected \"name\" in match\n") && shown.contains("1 error;"), "{shown}");
}

/// Forty errors are listed, more are counted.
#[test]
fn a_long_list_of_faults_ends_with_how_many_more_there_are() {
    let shown = |n: usize| {
        let keys: String = (0..n).map(|i| format!("wrong_{i} = 1\n")).collect();
        parse("f.toml", &format!("version = 1\n{keys}")).unwrap_err().to_string()
    };
    let more = |n: usize| shown(n).lines().filter(|l| l.starts_with("and ")).map(str::to_string).collect::<Vec<_>>();
    assert_eq!((more(40), more(41)), (vec![], vec!["and 1 more".to_string()]));
    assert!(shown(41).ends_with("f.toml: 41 errors; nothing was read from the host"));
}

#[test]
fn an_address_has_six_bytes_in_hex() {
    let matched = |mac: &str| parse("f.toml", &format!("version = 1\n[[interface]]\nmatch = {{ mac = \"{mac}\" }}\n"));
    assert!(matched("02:00:00:00:00:0a").is_ok());
    for wrong in ["02:00:00:00:00", "02:00:00:00:00:00:01", "02:00:00:00:00:0g", "2:0:0:0:0:1", ""] {
        assert!(matched(wrong).is_err(), "{wrong}");
    }
}

/// An option for some CPUs, or for one kind of moderation, leaves the rest as in the file.
#[test]
fn options_change_a_part_of_what_a_file_configures() {
    let laid = |file: &str, over: &str| {
        let mut c = read(&format!("version = 1\n{file}\n"));
        c.lay(&parse_set(over).unwrap_or_else(|f| panic!("{f}")));
        c
    };
    let c = laid("[host]\ncpu_latency = { \"0-3\" = 100 }", "host.cpu_latency={ \"2-5\" = 0 }");
    let latency = |c: &Config| -> Vec<(Vec<u32>, String)> {
        let each = c.host.wishes.iter().filter_map(|w| match &w.knob {
            Knob::CpuLatency { cpus, value } => Some((cpus.iter().map(|c| c.0).collect(), value.clone())),
            _ => None,
        });
        each.collect()
    };
    let each = |cpus: &[u32], value: &str| (cpus.to_vec(), value.to_string());
    assert_eq!(latency(&c), [each(&[0, 1], "100"), each(&[2, 3], "0"), each(&[4, 5], "0")]);
    let eth0 = |text: &str| format!("[[interface]]\nmatch = {{ name = \"eth0\" }}\ncoalesce = {{ {text} }}");
    let params = |file: &str, over: &str| {
        let c = laid(&eth0(file), over);
        let [Knob::Coalesce { params, .. }] = knobs(&c)[..] else { panic!("{c:?}") };
        params.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
    };
    // Adaptive moderation replaces the fixed values of its own direction, and these switch it off.
    let fixed = "rx-usecs = 30, rx-frames = 8, tx-usecs = 5";
    assert_eq!(params(fixed, "eth0.coalesce.adaptive-rx=true"), "tx-usecs 5, use-adaptive-rx 1");
    assert_eq!(params("adaptive-rx = true", "eth0.coalesce.rx-usecs=30"), "rx-usecs 30, use-adaptive-rx 0");
    assert_eq!(params("adaptive-rx = true", "eth0.coalesce.tx-usecs=30"), "tx-usecs 30, use-adaptive-rx 1");
}

#[test]
fn single_keys_of_a_command_line() {
    let knob = |arg: &str| {
        let c = parse_set(arg).unwrap_or_else(|f| panic!("{f}"));
        let mut all = c.entries[0].wishes.clone();
        assert_eq!((all.len(), all[0].by.to_string()), (1, format!("--set {arg}")));
        all.remove(0).knob
    };
    assert_eq!(
        knob("eth0.rss.table=equal 4"),
        Knob::RssTable { context: None, table: Table::Equal { queues: 4, start: 0 } }
    );
    assert_eq!(knob("eth0.rss.table=\"default\""), Knob::RssTable { context: None, table: Table::Default });
    assert_eq!(knob("eth0.rings.rx = 1024"), Knob::Rings { values: RingValues::sizes(Some(1024), None) });
    assert_eq!(knob("eth0.rings.rx = \"max\""), Knob::LongestRings { rx: true, tx: false });
    assert_eq!(knob("eth0.rings.tx=max"), Knob::LongestRings { rx: false, tx: true });
    let values =
        RingValues { rx_buf_len: Some(4096), tcp_data_split: Some(true), hds_thresh: Some(0), ..RingValues::default() };
    let text = "eth0.rings = { rx_buf_len = 4096, tcp_data_split = true, hds_thresh = 0 }";
    assert_eq!(knob(text), Knob::Rings { values });
    assert_eq!(
        knob("eth0.rings={ rx = 512, tx = 256 }"),
        Knob::Rings { values: RingValues::sizes(Some(512), Some(256)) }
    );
    assert_eq!(knob("eth0.features.gro=false"), Knob::Feature { name: "gro".into(), on: false });
    assert!(matches!(knob("eth0.rule=tcp4 dst-port 443 action 2"), Knob::FlowRule { .. }));
    assert!(matches!(knob("eth0.irq_cpus=2"), Knob::IrqCpus { .. }));
    assert!(matches!(knob("eth0.irq_cpus=2-3"), Knob::IrqCpus { .. }));
    assert!(matches!(knob("eth0.rss.key=6d:5a"), Knob::RssHash { .. }));
    assert_eq!(parse_set("\"eth0.5\".channels=2").unwrap().entries[0].matcher.name.as_deref(), Some("eth0.5"));
    assert_eq!(parse_set("host.smt=all").unwrap().host.smt, Some(ringwise_model::Smt::All));
    let c = parse_set("host.sysctl.\"net.core.netdev_budget\"=600").unwrap();
    assert_eq!(c.host.wishes[0].knob, Knob::Sysctl { name: "net.core.netdev_budget".into(), value: "600".into() });
    let c = parse_set("eth0.group={ name = \"web\", policy = \"latency\", queues = 2 }").unwrap();
    assert_eq!(c.entries[0].groups[0].name, "web");
    for bad in [
        "",
        "eth0",
        "eth0=3",
        "=",
        "eth0.=3",
        "eth0.rings.rx=big",
        "eth0.ring.rx=3",
        "host.gaol=rpc",
        "eth0.rings.rx=1\n[host]",
    ] {
        let shown = parse_set(bad).expect_err(bad).to_string();
        assert!(shown.contains("expected") && shown.contains("--set"), "{bad}: {shown}");
        // Positions and lines of the text that ringwise makes from the argument mean nothing to the user.
        assert!(!shown.contains(":1:") && !shown.contains(":4:") && !shown.contains(" | "), "{bad}: {shown}");
    }
    assert_eq!(
        parse_set("eth0.rings.rx=big").unwrap_err().to_string(),
        "--set eth0.rings.rx=big: rx = \"big\" is not known\n  expected a number from 1 to 4294967295, or \"max\"\n\
         Nothing was read from the host"
    );
    let what_if = ringwise_config::parse_set_of("--what-if", "rss.tabel=equal 4", "eth0.rss.tabel=equal 4");
    let shown = what_if.unwrap_err().to_string();
    assert!(shown.starts_with("--what-if 'rss.tabel=equal 4': unknown key \"tabel\""), "{shown}");
}

#[test]
fn a_printed_file_means_the_same() {
    let c = read(include_str!("whole.toml"));
    let again = print(&c);
    assert_eq!(read(&again).without_places(), c.without_places(), "\n{again}");
    // Printing twice gives the same text.
    assert_eq!(print(&read(&again)), again);
}

/// Settings that override a file are checked against it, and both places are named.
#[test]
fn an_overriding_layer_is_checked_for_contradictions() {
    let laid = |file: &str, over: &[&str]| {
        let mut c = parse("f.toml", &format!("version = 1\n{file}\n")).unwrap_or_else(|f| panic!("{f}"));
        over.iter().for_each(|o| c.lay(&parse_set(o).unwrap_or_else(|f| panic!("{f}"))));
        ringwise_config::contradictions(&c)
    };
    let eth0 = |text: &str| format!("[[interface]]\nmatch = {{ name = \"eth0\" }}\n{text}");
    let group =
        "[[interface.group]]\nname = \"web\"\npolicy = \"latency\"\ncpus = \"2\"\nflows = [\"tcp4 dst-port 443\"]";
    for (file, over, said) in [
        (
            eth0("features = { tso = true }"),
            &["eth0.features.tx-tcp-segmentation=false"][..],
            "--set eth0.features.tx-tcp-segmentation=false and f.toml line 4: tx-tcp-segmentation = false contradicts",
        ),
        (
            eth0(group),
            &["eth0.features.ntuple=false"],
            "--set eth0.features.ntuple=false and f.toml line 4: ntuple is off",
        ),
        (eth0(group), &["eth0.rule=tcp4 dst-port 443 action 1"], "is steered to queue 1 and to group \"web\""),
        (eth0(group), &["host.cpus=0-1"], "f.toml line 4 and host.cpus: group \"web\" uses CPUs 2, which are not"),
        (
            String::new(),
            &["eth0.channels=2", "eth0.rss.table=equal 4"],
            "the table names queue 3, but channels sets only 2",
        ),
        (
            eth0("rss = { symmetric = \"symmetric-xor\" }"),
            &["eth0.rss.fields.udp4=s"],
            "--set eth0.rss.fields.udp4=s and f.toml line 4: udp4 = \"s\" hashes one direction only",
        ),
    ] {
        let found = laid(&file, over);
        assert_eq!(found.len(), 1, "{over:?}: {found:#?}");
        assert!(found[0].contains(said) && found[0].contains("; expected "), "{over:?}: {}", found[0]);
    }
    // The same setting again is no contradiction, nor is a name for several features that includes it.
    for over in ["eth0.features.tso=false", "eth0.features.tcp-segmentation-offload=false"] {
        assert_eq!(laid(&eth0("features = { tso = true }"), &[over]), Vec::<String>::new(), "{over}");
        assert_eq!(laid(&eth0("features = { tx-tcp6-segmentation = true }"), &[over]), Vec::<String>::new(), "{over}");
    }
    // Another program may have created the context, so only the host can tell.
    assert_eq!(laid("", &["eth0.rule=tcp4 dst-port 1 context 3"]), Vec::<String>::new());
}
