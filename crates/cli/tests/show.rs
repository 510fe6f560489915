//! What `show` prints for hand-made hosts.

use std::process::Command;
use std::time::Duration;

use crate::common::*;
use ringwise_model::*;
use ringwise_render::compare::{ComparedSide, sides_json};
use ringwise_render::{show, table};
use ringwise_text::Style;

fn one(s: &Snapshot, dev: &str, width: Option<usize>) -> String {
    show::devices(s, &[s.nic(dev).unwrap()], None, &Style::plain(width))
}

fn within(text: &str, width: usize) {
    for l in text.lines() {
        assert!(l.chars().count() <= width, "{} columns: {l}", l.chars().count());
    }
}

#[test]
fn sixteen_cpus_at_80_columns() {
    let out = one(&edge3(), "eth1", Some(80));
    within(&out, 80);
    golden("show-eth1.txt", &out);
    golden("show-eth3-down.txt", &one(&edge3(), "eth3", Some(80)));
}

#[test]
fn ascii_and_verbose() {
    let s = edge3();
    let style = Style { ascii: true, verbose: 1, raw: true, ..Style::plain(Some(100)) };
    let out = show::devices(&s, &[s.nic("eth1").unwrap()], None, &style);
    assert!(out.is_ascii());
    golden("show-eth1-ascii-v.txt", &out);
}

#[test]
fn nodes_with_their_memory_and_distance() {
    let mut s = edge3();
    let Fact::Known(nodes) = &mut s.topology.nodes else { panic!("no nodes") };
    for (id, node) in nodes.iter_mut() {
        node.memory = Fact::Known(NodeMemory { total_bytes: u64::from(id.0 + 1) << 34 });
        let distance = |to: u32| (NodeId(to), if to == id.0 { 10 } else { 21 });
        node.distances = Fact::Known([distance(0), distance(1)].into());
    }
    let page = |s: &Snapshot, verbose| {
        let style = Style { verbose, ..Style::plain(None) };
        show::devices(s, &[s.nic("eth1").unwrap()], None, &style)
    };
    let line = |page: &str, head: &str| {
        let found = page.lines().find_map(|l| l.strip_prefix(head)).unwrap_or_else(|| panic!("no {head:?}: {page}"));
        found.trim().to_string()
    };
    assert_eq!(line(&page(&s, 0), "NUMA "), "node 1: 2.1 times as far as local memory");
    let all = page(&s, 1);
    assert_eq!(line(&all, "node 0 "), "CPUs 0-7; 16.0 GiB; distances 10 21");
    assert_eq!(line(&all, "node 1 "), "CPUs 8-15; 32.0 GiB; distances 21 10");
    // What cannot be read is named, and what the kernel does not have is left out.
    let memory = |s: &mut Snapshot, fact: Fact<NodeMemory>| {
        let Fact::Known(nodes) = &mut s.topology.nodes else { panic!() };
        nodes.get_mut(&NodeId(0)).unwrap().memory = fact;
    };
    memory(&mut s, Fact::unknown("meminfo", "EACCES Permission denied"));
    assert!(line(&page(&s, 1), "node 0 ").contains("memory unknown (EACCES Permission denied)"));
    memory(&mut s, Fact::Absent);
    assert_eq!(line(&page(&s, 1), "node 0 "), "CPUs 0-7; distances 10 21");
}

#[test]
fn the_layouts_of_two_kernels_from_captures() {
    let file = |host: &str| root().join("fixtures/hosts").join(host).join("capture.tar.gz").display().to_string();
    let (old, new) = (file("lab-router16-6.1"), file("lab-router16-6.12"));
    let run = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
        assert_eq!(o.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
        String::from_utf8(o.stdout).unwrap()
    };
    let page = run(&["show", "eth0", "--from", &new, "--compare", &old]);
    assert!(page.starts_with(&format!("old  {old} (Linux 6.1.")), "{page}");
    assert!(page.contains(&format!("\nnew  {new} (Linux 6.12.")), "{page}");
    // A comparison of a capture with itself lists what both captures have in common.
    let itself = run(&["show", "eth0", "--from", &new, "--compare", &new]);
    assert!(itself.contains("differs  nothing\n"), "{itself}");
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&run(args)).unwrap() };
    let doc = json(&["show", "--from", &new, "--compare", &old, "-j"]);
    let wrong = schema::check(&newest_schema("ringwise.comparison"), &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let interfaces = doc["interfaces"].as_array().unwrap();
    let of = |name: &str| interfaces.iter().find(|i| i["name"] == name).unwrap();
    for i in interfaces {
        let (same, differs) = (i["same"].as_array().unwrap(), i["differs"].as_array().unwrap());
        let unknown = i["unknown"].as_array().unwrap();
        match i["in"].as_array().unwrap().len() {
            2 => assert_eq!(same.len() + unknown.len() + differs.len(), 17, "{i}"),
            _ => assert!(same.is_empty() && differs.is_empty(), "{i}"),
        }
        for d in differs {
            assert!(d["old"] != d["new"] && page_has(&run, &old, &new, i["name"].as_str().unwrap(), d), "{d}");
        }
    }
    assert_eq!(of("eth0")["in"], serde_json::json!(["old", "new"]));
    // Eight CPUs instead of sixteen, and interfaces that are gone.
    let small = file("lab-router3-6.12");
    let page = run(&["show", "--from", &small, "--compare", &old]);
    assert!(page.contains(": only in old\n"), "{page}");
    let page = run(&["show", "eth0", "--from", &small, "--compare", &old]);
    assert!(page.contains("CPU  old      new\n  0  queue 5  queue 4\n"), "{page}");
    assert!(page.contains("differs  queue on CPU\n") && page.contains("         old  TxRx-0:3 TxRx-1:4"), "{page}");
    assert!(page.contains("         new  TxRx-0:4 TxRx-1:5"), "{page}");
    // Programs get the values instead of these texts.
    let doc = json(&["show", "eth0", "--from", &small, "--compare", &old, "-j"]);
    let differs = doc["interfaces"][0]["differs"].as_array().unwrap();
    let layout = differs.iter().find(|d| d["what"] == "queue on CPU").unwrap();
    for (side, cpu) in [("old", "3"), ("new", "4")] {
        assert_eq!(layout[side][0], serde_json::json!({ "rx": [0], "tx": [0], "effective": { "known": cpu } }));
    }
}

/// What is unknown on both interfaces is not the same on both, and RPS that is off on each queue does not differ.
#[test]
fn unknown_settings_are_not_compared() {
    let host = root().join("fixtures/hosts/virtio-iavf").display().to_string();
    let run = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
        assert_eq!(o.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
        String::from_utf8(o.stdout).unwrap()
    };
    let unknown = "RSS, moderation, moderation of queues, NAPI, rings, pause, features, flow rules";
    let page = run(&["show", "ens6", "eth0", "--from", &host]);
    assert!(page.contains("\nsame     MTU, queues, RPS, RFS\n"), "{page}");
    assert!(page.contains(&format!("\nunknown  node, {unknown}\n")), "{page}");
    let page = run(&["show", "--from", &host, "--compare", &host]);
    assert!(page.contains("\nnothing differs on  ens6, eth0, eth1\n"), "{page}");
    assert!(page.contains(&format!("eth0: node, {unknown}\n")), "{page}");
    let doc: serde_json::Value =
        serde_json::from_str(&run(&["show", "ens6", "--from", &host, "--compare", &host, "-j"])).unwrap();
    let one = &doc["interfaces"][0];
    let named = |what: &str| -> Vec<&str> { one[what].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect() };
    assert_eq!(named("unknown").join(", "), format!("node, {unknown}"));
    assert!(!named("same").iter().any(|n| named("unknown").contains(n)), "{one}");

    let mut old = edge3();
    for n in &mut old.nics {
        n.rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known(CpuSet::new()));
    }
    let mut s = old.clone();
    let one = s.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    one.rx_queues.truncate(1);
    let devs = ["eth1".to_string()];
    let both = [ComparedSide { source: "a", host: &old }, ComparedSide { source: "b", host: &s }];
    let doc = sides_json(&both, &devs);
    let has = |what: &str| doc["interfaces"][0][what].as_array().unwrap().iter().any(|n| n == "RPS");
    assert!(has("same") && !has("unknown"), "{doc}");
}

#[test]
fn a_comparison_has_the_values_of_the_snapshot() {
    let old = edge3();
    let mut new = old.clone();
    new.host.rps_sock_flow_entries = Fact::Known(32768);
    let n = new.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    n.driver = Fact::Known("other".into());
    n.node = Fact::unknown("numa_node", "the firmware reports no node");
    (n.link.speed_mbps, n.link.mtu) = (Fact::Known(2500), Fact::Known(9000));
    n.vectors[0].effective = Fact::Known(set("5"));
    n.rx_queues[0].rps_cpus = Fact::Known(set("1,3"));
    n.tx_queues[0].xps_cpus = Fact::Absent;
    n.rx_queues.pop();
    let Fact::Known(rss) = &mut n.rss else { panic!() };
    rss.table[0] = 7;
    let usecs = |v: u32| Coalesce([("rx-usecs".to_string(), v)].into());
    (n.coalesce, n.queue_coalesce) = (Fact::Known(usecs(5)), Fact::Known([(0, usecs(9))].into()));
    let values = NapiValues { defer_hard_irqs: Some(2), ..NapiValues::default() };
    n.napi = Fact::Known(Napi { device: values, instances: vec![] });
    (n.rings, n.pause) = (Fact::Absent, Fact::unknown("pause", "EIO Input/output error"));
    let on = |name: &str| (name.to_string(), Feature { on: true, wanted: true, fixed: false });
    n.features = Fact::Known([on("rx-ntuple-filter"), on("rx-gro")].into());
    n.rules = Fact::Known(Rules { capacity: 64, chooses_location: false, rules: Default::default() });

    let both = [ComparedSide { source: "a", host: &old }, ComparedSide { source: "b", host: &new }];
    let doc = sides_json(&both, &["eth1".to_string()]);
    let wrong = schema::check(&newest_schema("ringwise.comparison"), &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let interface = &doc["interfaces"][0];
    assert_eq!(interface["same"], serde_json::json!([]), "each line was changed");
    let pair = |what: &str| {
        let found = interface["differs"].as_array().unwrap().iter().find(|d| d["what"] == what);
        let d = found.unwrap_or_else(|| panic!("{what} is not listed"));
        (d["old"].clone(), d["new"].clone())
    };
    // Values that the snapshot has under one name are the same there.
    let of = |s: &Snapshot, key: &str| serde_json::to_value(s.nic("eth1").unwrap()).unwrap()[key].clone();
    let as_there = [
        ("driver", "driver"),
        ("node", "node"),
        ("RSS", "rss"),
        ("moderation", "coalesce"),
        ("rings", "rings"),
        ("pause", "pause"),
    ];
    for (what, key) in as_there {
        assert_eq!(pair(what), (of(&old, key), of(&new, key)), "{what}");
    }
    assert_eq!(pair("MTU").1, serde_json::json!({ "known": 9000 }));
    assert_eq!(pair("link").1["speed_mbps"], serde_json::json!({ "known": 2500 }));
    let queues = old.nic("eth1").unwrap().rx_queues.len();
    assert_eq!(pair("queues").0, serde_json::json!({ "known": { "rx": queues, "tx": queues } }));
    assert_eq!(pair("queues").1, serde_json::json!({ "known": { "rx": queues - 1, "tx": queues } }));
    assert_eq!(pair("queue on CPU").1[0]["effective"], serde_json::json!({ "known": "5" }));
    assert_eq!(pair("RPS").1["known"][0], serde_json::json!({ "id": 0, "rps_cpus": { "known": "1,3" } }));
    assert_eq!(pair("RFS").1["rps_sock_flow_entries"], serde_json::json!({ "known": 32768 }));
    assert_eq!(pair("XPS").1["known"][0]["xps_cpus"], serde_json::json!("absent"));
    let of_queues = pair("moderation of queues").1;
    assert_eq!(of_queues["queue_coalesce"], serde_json::json!({ "known": { "0": { "rx-usecs": 9 } } }));
    assert_eq!(pair("NAPI").1["known"]["device"]["defer_hard_irqs"], 2);
    assert_eq!(pair("features").0["unknown"]["cause"], "not_asked");
    assert_eq!(pair("features").1, of(&new, "features"));
    let rules = pair("flow rules").1;
    assert_eq!((&rules["rules"]["known"]["capacity"], &rules["ntuple"]["known"]["on"]), (&64.into(), &true.into()));

    // Queues that were not read are unknown, not none.
    let n = new.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    (n.rx_queues, n.tx_queues) = (vec![], vec![]);
    n.unread = vec![Unread::new("queues", Some(13), "permission denied").of(Subject::Queues)];
    let both = [ComparedSide { source: "a", host: &old }, ComparedSide { source: "b", host: &new }];
    let doc = sides_json(&both, &["eth1".to_string()]);
    assert!(schema::check(&newest_schema("ringwise.comparison"), &doc).is_empty(), "{doc:#}");
    let differs = doc["interfaces"][0]["differs"].as_array().unwrap();
    for what in ["queues", "RPS", "XPS"] {
        let d = differs.iter().find(|d| d["what"] == what).unwrap();
        assert_eq!(d["new"]["unknown"]["why"], "permission denied", "{d}");
    }
}

/// Whether the page of this interface lists the difference.
fn page_has(run: &dyn Fn(&[&str]) -> String, old: &str, new: &str, dev: &str, d: &serde_json::Value) -> bool {
    run(&["show", dev, "--from", new, "--compare", old])
        .contains(&format!("differs  {}\n", d["what"].as_str().unwrap()))
}

/// docs/knobs/xps.md names what did change in the kernel, and why it does not change the meaning.
#[test]
fn an_empty_mask_means_the_same_on_every_supported_kernel() {
    let legend = |kernel: &str| {
        let mut s = edge3();
        s.host.kernel = Fact::Known(kernel.into());
        let eth1 = s.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
        eth1.rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known(CpuSet::new()));
        eth1.tx_queues.iter_mut().for_each(|q| q.xps_cpus = Fact::Known(CpuSet::new()));
        let page = one(&s, "eth1", None);
        let lines = page.lines().skip_while(|l| !l.starts_with("empty or 0"));
        lines.take_while(|l| !l.is_empty()).map(|l| l.trim().to_string()).collect::<Vec<_>>()
    };
    let oldest = legend("5.10.0-30-amd64");
    assert!(oldest[0].ends_with("RPS off: packets stay on the CPU of the queue's interrupt"), "{oldest:#?}");
    assert!(oldest[1].starts_with("XPS not set: no CPU prefers that queue; a CPU in no mask chooses by flow hash"));
    for kernel in ["6.1.0-9-amd64", "6.12.48", "6.18.2", "7.1.0"] {
        assert_eq!(legend(kernel), oldest, "{kernel}");
    }
}

#[test]
fn sixtyfour_cpus_fold_at_80_columns() {
    let out = one(&big64(), "eth0", Some(80));
    within(&out, 80);
    assert!(out.contains("·(16)"), "{out}");
    golden("show-64-80.txt", &out);
    golden("show-64-120.txt", &one(&big64(), "eth0", Some(120)));
}

#[test]
fn not_on_a_terminal_nothing_is_folded() {
    let out = one(&big64(), "eth0", None);
    assert!(!out.contains("·("), "{out}");
    golden("show-64-file.txt", &out);
}

#[test]
fn two_hundred_and_fifty_six_cpus_are_a_list() {
    let out = one(&epyc256(), "ens1f0", Some(80));
    within(&out, 80);
    assert!(out.contains("TxRx-1   × CPU 8    node 0 core 4  L3 0") || out.contains("CPU 8"), "{out}");
    golden("show-256-80.txt", &out);
}

#[test]
fn several_are_compared() {
    let s = edge3();
    let nics = [s.nic("eth1").unwrap(), s.nic("eth2").unwrap()];
    let out = show::devices(&s, &nics, None, &Style::plain(Some(80)));
    golden("show-compare.txt", &out);
}

#[test]
fn one_line_each() {
    let s = edge3();
    let out = table::interfaces(&s, &Default::default(), false, &Style::plain(Some(80)));
    within(&out, 80);
    golden("interfaces.txt", &out);
}

/// Interfaces that were not read cannot be listed, so `--all` does not propose itself.
#[test]
fn all_names_what_is_only_counted() {
    let file = crate::common::fixtures().into_iter().find(|(name, _)| name == "interleaved").unwrap().1;
    let show = |more: &[&str]| {
        let args = [&["show", "--from", file.to_str().unwrap()], more].concat();
        let o = std::process::Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
        String::from_utf8(o.stdout).unwrap()
    };
    let page = show(&[]);
    assert!(page.contains("\nnot shown: 1 bond, 1 bridge, 1 loopback, 6 other, 40 VLANs (--all)\n"), "{page}");
    let page = show(&["--all"]);
    let line = "\ncounted only: 1 bridge, 6 other, 40 VLANs; to read one: ringwise show NAME --from ";
    assert!(page.contains(line) && !page.contains("(--all)"), "{page}");
}

/// A directory with one archive is read; of several, one has to be named.
#[test]
fn a_directory_of_captures() {
    let file = crate::common::fixtures().into_iter().find(|(name, _)| name == "interleaved").unwrap().1;
    let dir = ringwise_testkit::dir::Dir::new();
    let show = || {
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(["show", "--from"]).arg(&dir.0).output().unwrap();
        (o.status.code(), String::from_utf8(o.stdout).unwrap(), String::from_utf8(o.stderr).unwrap())
    };
    std::fs::copy(&file, dir.0.join("a.tar.gz")).unwrap();
    let (code, out, err) = show();
    assert!(
        code == Some(0) && out.contains("eno1") && err.contains("a.tar.gz, the only capture in that directory"),
        "{out}{err}"
    );
    std::fs::copy(&file, dir.0.join("b.tar.gz")).unwrap();
    let (code, _, err) = show();
    assert_eq!(code, Some(1));
    assert!(err.contains("is a directory of 2 captures") && err.contains("a.tar.gz\n"), "{err}");
}

/// A router is planned with all of its ports, a server with the named interface.
#[test]
fn the_proposed_plan_names_the_goal_of_the_role() {
    let s = edge3();
    let next = |goal| {
        let page = show::devices(&s, &[s.nic("eth1").unwrap()], goal, &Style::plain(None));
        page.lines().find_map(|l| l.strip_prefix("Next: ")).unwrap().to_string()
    };
    assert_eq!(next(Some(Goal::Forward)), "ringwise plan --goal forward");
    assert_eq!(next(Some(Goal::Rpc)), "ringwise plan eth1 --goal rpc");
    assert_eq!(next(None), "ringwise plan eth1");
}

/// The role depends on interfaces that the page is not about.
#[test]
fn show_one_interface_proposes_the_goal_that_status_does() {
    let next = |name: &str, dev: &str| {
        let from = ringwise_testkit::hosts::dir().join("../sos").join(name).display().to_string();
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(["show", dev, "--from", &from]).output().unwrap();
        let page = String::from_utf8(o.stdout).unwrap();
        page.lines().find_map(|l| l.strip_prefix("Next: ")).unwrap_or_else(|| panic!("{page}")).replace(&from, "FILE")
    };
    assert_eq!(next("edge7", "eth0"), "ringwise plan --goal forward --from FILE");
}

/// What cannot be planned is not proposed for planning.
#[test]
fn loopback_is_not_proposed_for_a_plan() {
    let mut s = edge3();
    let mut lo = s.nic("eth1").unwrap().clone();
    (lo.dev.name, lo.kind, lo.lower) = ("lo".into(), NicKind::Loopback, Vec::new());
    s.nics.push(lo);
    assert!(!one(&s, "lo", None).contains("Next:") && one(&s, "eth1", None).contains("Next: ringwise plan eth1"));
}

#[test]
fn isolated_offline_and_silent() {
    let mut s = edge3();
    s.topology.online = set("0-14");
    s.topology.cpus.remove(&CpuId(15));
    s.topology.isolated = Fact::Known(set("4-7"));
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    n.channels = Fact::late("channels-get eth1", Duration::from_secs(2));
    n.unread.push(Unread::late("channels-get eth1", Duration::from_secs(2)));
    n.vectors[3].effective = Fact::unknown("/proc/irq/233/effective_affinity_list", "needs root");
    let out = one(&s, "eth1", Some(80));
    assert!(out.contains("no answer within 2 s"));
    golden("show-isolated.txt", &out);
}

/// CPUs of a host with 256 of which the others are not there.
#[test]
fn cpu_numbers_of_three_digits_keep_a_gap() {
    let on = set("128-223");
    let mut t = topology(2, 64, 2, 8);
    (t.online, t.present) = (on.clone(), Fact::Known(on.clone()));
    t.cpus.retain(|c, _| on.contains(*c));
    let cpus: Vec<u32> = (0..8).map(|q| 128 + q * 12).collect();
    let s = host(t, vec![nic("eth0", 1, "ice", 1, &cpus, &on)]);
    let page = one(&s, "eth0", None);
    let head = page.lines().find(|l| l.starts_with("CPU ")).unwrap();
    let numbers: Vec<String> = head.split_whitespace().skip(1).map(str::to_string).collect();
    let want: Vec<String> = (128..224).map(|c| c.to_string()).chain(["affinity".into()]).collect();
    assert_eq!(numbers, want);
}

#[test]
fn queues_that_only_the_driver_counts_are_not_0() {
    let mut s = edge3();
    let n = s.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    let queues = ringwise_text::queues(n);
    let why = Unread::new("/sys/class/net/eth1/queues", Some(13), "permission denied").of(Subject::Queues);
    (n.rx_queues, n.tx_queues, n.unread) = (Vec::new(), Vec::new(), vec![why]);
    assert_eq!(ringwise_text::queues(n), queues, "as the driver reports them");
    n.channels = Fact::Absent;
    assert_eq!(ringwise_text::queues(n), "queues unknown");
}
