//! The block diagram: well formed, complete, and within its bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::*;
use ringwise_model::*;
use ringwise_render::svg;
use ringwise_text::far_queues;

/// One element, or the text between two.
#[derive(Debug, PartialEq)]
enum Part {
    Open(String, BTreeMap<String, String>),
    Close(String),
    Text(String),
}

/// A strict parser: tags must balance, attributes must be quoted and unique, only the
/// five entities are allowed, and no control characters.
fn parse(text: &str) -> Vec<Part> {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "a control character");
    let (mut out, mut open, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        if !before.trim().is_empty() {
            assert!(!open.is_empty(), "text outside: {before:?}");
            out.push(Part::Text(unescape(before)));
        }
        let end = tag.find('>').expect("a tag ends");
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what was opened last");
            out.push(Part::Close(name.into()));
            continue;
        }
        let (inner, empty) = inner.strip_suffix('/').map_or((inner, false), |i| (i, true));
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase()), "name {name:?}");
        out.push(Part::Open(name.into(), attributes_of(attributes)));
        if empty {
            out.push(Part::Close(name.into()));
        } else {
            open.push(name.to_string());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(rest.trim().is_empty() && !rest.contains('>'), "after the end: {rest:?}");
    out
}

fn attributes_of(mut text: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    while !text.trim().is_empty() {
        let (name, rest) = text.split_once("=\"").expect("name=\"");
        let (value, rest) = rest.split_once('"').expect("value\"");
        assert!(!value.contains('<'));
        assert!(out.insert(name.trim().to_string(), unescape(value)).is_none(), "{name} twice");
        text = rest;
    }
    out
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        let (name, after) = after.split_once(';').expect("an entity ends");
        out.push_str(before);
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            other => panic!("entity {other}"),
        });
        rest = after;
    }
    out + rest
}

/// The visible texts, in order.
fn texts(parts: &[Part]) -> Vec<String> {
    let mut out = Vec::new();
    for pair in parts.windows(2) {
        if let [Part::Open(name, _), Part::Text(t)] = pair
            && name == "text"
        {
            out.push(t.clone());
        }
    }
    out
}

fn numbers_in(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).filter_map(|n| n.parse().ok()).collect()
}

/// Nothing reaches beyond the viewBox, texts as wide as in a common monospace font included.
fn inside(parts: &[Part]) {
    let Part::Open(_, root) = &parts[0] else { panic!("no root") };
    let view = numbers_in(&root["viewBox"]);
    let (w, h) = (view[2], view[3]);
    let within = |x: f64, y: f64, what: &dyn std::fmt::Debug| {
        assert!((0.0..=w).contains(&x) && (0.0..=h).contains(&y), "{x},{y} outside of {w}x{h}: {what:?}");
    };
    let mut below = 0.0;
    for (i, p) in parts.iter().enumerate() {
        let Part::Open(name, a) = p else { continue };
        let n = |k: &str| a[k].parse::<f64>().unwrap();
        match name.as_str() {
            "g" => below = numbers_in(&a["transform"])[1],
            "rect" => {
                within(n("x"), below + n("y"), p);
                within(n("x") + n("width"), below + n("y") + n("height"), p);
            }
            "circle" => {
                within(n("cx") - n("r"), below + n("cy") - n("r"), p);
                within(n("cx") + n("r"), below + n("cy") + n("r"), p);
            }
            "path" => numbers_in(&a["d"]).chunks(2).for_each(|c| within(c[0], below + c[1], p)),
            "text" => {
                let Part::Text(t) = &parts[i + 1] else { panic!("an empty text: {p:?}") };
                let wide = t.chars().count() as f64 * 0.602 * n("font-size");
                let left = if a.contains_key("text-anchor") { n("x") - wide / 2.0 } else { n("x") };
                within(left, below + n("y") - n("font-size"), t);
                within(left + wide, below + n("y") + 2.0, t);
            }
            "svg" | "title" => {}
            other => panic!("element {other}"),
        }
    }
}

fn drawn(s: &Snapshot, dev: &str) -> (String, Vec<Part>) {
    let text = svg::render(s, &[s.nic(dev).unwrap()]);
    let parts = parse(&text);
    inside(&parts);
    (text, parts)
}

fn times(all: &[String], text: &str) -> usize {
    all.iter().filter(|t| *t == text).count()
}

/// Boxes of this CPU: their label begins with `CPU 3`. `CPU 3 (offline)` is the end of a line without a box, and is
/// not counted.
fn boxes(all: &[String], cpu: CpuId) -> usize {
    let of = |t: &&String| {
        let mut words = t.split(' ');
        words.next() == Some("CPU") && words.next() == Some(&cpu.to_string()) && words.all(|w| w != "(offline)")
    };
    all.iter().filter(of).count()
}

/// The numbers in labels such as `rx-0,16-18`, each once, and how many more a label such as `rx: 12 queues` counts.
fn numbered(all: &[String], list: &str, counts: &dyn Fn(&str) -> Option<usize>) -> (BTreeSet<u32>, usize) {
    let (mut listed, mut counted) = (BTreeSet::new(), 0);
    for t in all {
        // A note may begin with the name of a queue, too.
        let numbers = t.strip_prefix(list).and_then(|n| n.trim_end_matches(" ?").parse::<CpuSet>().ok());
        if let Some(numbers) = numbers {
            assert!(numbers.iter().all(|n| listed.insert(n.0)), "{t} twice");
        }
        counted += counts(t).unwrap_or(0);
    }
    (listed, counted)
}

/// Every queue, every interrupt and every CPU that an interrupt goes to, once: with its number, or counted.
fn whole(s: &Snapshot, n: &Nic) {
    let (text, parts) = drawn(s, n.name());
    let all = texts(&parts);
    for (dir, ids) in [
        ("rx", n.rx_queues.iter().map(|q| q.id).collect::<BTreeSet<_>>()),
        ("tx", n.tx_queues.iter().map(|q| q.id).collect()),
    ] {
        let count = |t: &str| t.strip_prefix(&format!("{dir}: "))?.strip_suffix(" queues")?.parse().ok();
        let (listed, counted) = numbered(&all, &format!("{dir}-"), &count);
        assert!(listed.is_subset(&ids), "{dir} of {}: {listed:?}", n.name());
        assert_eq!(listed.len() + counted, ids.len(), "{dir} of {}", n.name());
    }
    let count = |t: &str| t.trim_end_matches(" ?").strip_suffix(" interrupts")?.parse().ok();
    let (irqs, more) = numbered(&all, "irq ", &count);
    assert_eq!(irqs.len() + more, n.queue_vectors().count(), "interrupts of {}", n.name());
    let folded = all.iter().any(|t| t.contains("CPUs ") && t.contains('×'));
    for c in n.queue_vectors().filter_map(|v| v.effective.known()).filter(|e| e.len() == 1).filter_map(CpuSet::first) {
        assert!(boxes(&all, c) == 1 || folded, "CPU {c} of {}", n.name());
    }
    let (badges, far) = (times(&all, "!"), far_queues(s, n).unwrap_or(0));
    // Up to 24 interrupts have lines of their own. The legend has a badge, too.
    if n.queue_vectors().count() <= 24 {
        assert_eq!(badges, far + usize::from(far > 0), "far lines of {}", n.name());
    }
    assert_eq!((badges > 0, text.contains(" on remote node")), (far > 0, far > 0), "{}", n.name());
}

/// The sentence beside the name.
fn verdict(s: &Snapshot, dev: &str) -> String {
    let text = svg::render(s, &[s.nic(dev).unwrap()]);
    let (_, rest) = text.split_once(&format!("<title>{dev}: ")).unwrap();
    rest.split_once("</title>").unwrap().0.to_string()
}

#[test]
fn two_machines() {
    let (text, _) = drawn(&edge3(), "eth1");
    golden("svg-edge3-eth1.svg", &text);
    let (text, _) = drawn(&big64(), "eth0");
    golden("svg-big64-eth0.svg", &text);
}

#[test]
fn every_recorded_interface_is_whole() {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut count = 0;
    for dir in std::fs::read_dir(hosts).unwrap() {
        let Ok(text) = std::fs::read_to_string(dir.unwrap().path().join("snapshot.json")) else { continue };
        let s: Snapshot = serde_json::from_str(&text).unwrap();
        for n in s.nics.iter().filter(|n| n.has_own_queues()) {
            whole(&s, n);
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn sixtyfour_queues_and_128_cpus() {
    let all = CpuSet::range(0, 127);
    let cpus: Vec<u32> = (0..64).map(|q| q * 2 % 128 + q / 64).collect();
    let mut n = nic("eth0", 1, "ice", 0, &cpus, &all);
    for q in &mut n.rx_queues {
        q.rps_cpus = Fact::Known(CpuSet::new());
    }
    let mut s = host(topology(2, 32, 2, 8), vec![n]);
    whole(&s, &s.nics[0]);
    // One row for each node: half of the queues are remote.
    let all = texts(&drawn(&s, "eth0").1);
    assert_eq!((times(&all, "rx-0-31"), times(&all, "rx-32-63"), times(&all, "!")), (1, 1, 2), "{all:?}");
    assert_eq!(times(&all, "32 CPUs ×1"), 2, "{all:?}");
    assert_eq!(verdict(&s, "eth0"), "32 of 64 queues on remote node 1");
    // XPS and RPS to all CPUs are texts, not lines.
    for q in &mut s.nics[0].tx_queues {
        q.xps_cpus = Fact::Known(CpuSet::range(q.id * 2, q.id * 2 + 1));
    }
    whole(&s, &s.nics[0]);
    for q in &mut s.nics[0].rx_queues {
        q.rps_cpus = Fact::Known(CpuSet::range(0, 127));
    }
    let (text, _) = drawn(&s, "eth0");
    assert!(text.contains("(128 lines not drawn)"), "{text}");
    assert!(text.contains("all 64 queues: -&gt; 0-127 (8,192 lines not drawn)"), "{text}");
}

/// What is fine shares a row; what is wrong keeps its rows.
#[test]
fn remote_queues_keep_their_rows() {
    let cpus: Vec<u32> = (0..36).chain([64, 65, 66, 66]).collect();
    let mut n = nic("eth0", 1, "ice", 0, &cpus, &CpuSet::range(0, 127));
    for q in &mut n.rx_queues {
        q.rps_cpus = Fact::Known(CpuSet::new());
    }
    let s = host(topology(2, 32, 2, 8), vec![n]);
    whole(&s, &s.nics[0]);
    let all = texts(&drawn(&s, "eth0").1);
    let rows: Vec<&str> = all.iter().filter(|t| t.starts_with("rx-")).map(String::as_str).collect();
    assert_eq!(rows, ["rx-0-35", "rx-36", "rx-37", "rx-38-39"]);
    assert_eq!((times(&all, "CPUs 0-35 ×1"), times(&all, "CPU 66 ×2")), (1, 1), "{all:?}");
    assert_eq!(verdict(&s, "eth0"), "4 of 40 queues on remote node 1; 2 of 40 queues on CPU 66");
}

/// The 63 queues of a lab host on 16 CPUs: one row for each CPU, in the order of the CPUs.
#[test]
fn queues_of_one_cpu_share_a_row() {
    let file = root().join("fixtures/hosts/lab-big64-6.12/snapshot.json");
    let s: Snapshot = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let all = texts(&drawn(&s, "mq0").1);
    let rows: Vec<&String> = all.iter().filter(|t| t.starts_with("rx-")).collect();
    assert_eq!((rows.len(), rows[0].as_str(), rows[1].as_str()), (16, "rx-14,30,46,62", "rx-15,31,47"));
    assert_eq!((times(&all, "irq 97,113,129"), times(&all, "CPU 17 ×3"), times(&all, "several interrupts")), (1, 1, 1));
    assert_eq!(times(&all, "8 cores without a line: CPUs 32-47"), 1);
    assert_eq!(verdict(&s, "mq0"), "63 queues on 16 CPUs of local node 1, 3 or 4 on each");
    assert_eq!(verdict(&s, "eth0"), "4 cores handle 2 queues each, 4 cores none");
}

#[test]
fn the_verdict_names_what_is_wrong() {
    let all = CpuSet::range(0, 15);
    let on = |cpus: &[u32]| verdict(&host(topology(2, 4, 2, 1), vec![nic("eth0", 1, "ice", 0, cpus, &all)]), "eth0");
    let own = |cpu: u32| topology(2, 4, 2, 1).node_of(CpuId(cpu)).unwrap().0;
    let local: Vec<u32> = (0..16).filter(|c| own(*c) == 0).collect();
    let far = (0..16).find(|c| own(*c) == 1).unwrap();
    assert_eq!(on(&local), "8 queues on 8 CPUs of local node 0, 1 on each");
    assert_eq!(on(&[local[0]]), "1 queue on one CPU of local node 0");
    assert_eq!(on(&[local[0]; 3]), format!("all 3 queues on CPU {}", local[0]));
    assert_eq!(on(&[far, far]), format!("both queues on remote node 1; both queues on CPU {far}"));
    assert_eq!(verdict(&edge3(), "eth3"), "the CPU of all 4 queues is unknown (the link is down)");
}

#[test]
fn unknown_values_are_reported() {
    let mut s = edge3();
    let (text, parts) = drawn(&s, "eth3");
    assert!(text.contains("link down"));
    assert_eq!(times(&texts(&parts), "CPU unknown, affinity: 0-15"), 4);
    // Like drivers that free their vectors.
    s.nics.iter_mut().find(|n| n.dev.name == "eth3").unwrap().vectors.clear();
    let (text, _) = drawn(&s, "eth3");
    assert!(text.contains("interrupts unknown: link is down"), "{text}");
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    n.vectors[0].effective = Fact::unknown("/proc/irq/130/effective_affinity_list", "needs root");
    n.vectors[1].confidence = Confidence::Likely;
    n.vectors[2].effective = Fact::Known(set("0-15"));
    n.node = Fact::unknown("numa_node", "the firmware reports no node (-1)");
    n.queue_coalesce = Fact::unknown("moderation", "needs root");
    let (text, parts) = drawn(&s, "eth1");
    let all = texts(&parts);
    assert_eq!(times(&all, "CPU unknown, affinity: 0-15"), 1);
    assert_eq!(times(&all, "irq 131 ?") + times(&all, "irq 231 ?"), 1, "{all:?}");
    assert_eq!(times(&all, "one of CPUs 0-15"), 1);
    assert_eq!(times(&all, "!"), 0, "near and far are unknown");
    assert!(text.contains("no line can be marked as local or remote"));
    assert!(text.contains("unknown (per-queue moderation: needs root)"));
}

#[test]
fn groups_by_policy_and_context() {
    let mut s = edge3();
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    let policy = |q: u32| if q < 2 { (5, 10) } else { (62, 122) };
    let one = |q: u32| {
        let (rx, tx) = policy(q);
        Coalesce([("rx-usecs".into(), rx), ("tx-usecs".into(), tx), ("use-adaptive-rx".into(), 0)].into())
    };
    n.queue_coalesce = Fact::Known((0..8).map(|q| (q, one(q))).collect());
    let (text, parts) = drawn(&s, "eth1");
    let all = texts(&parts);
    // One beside each queue, one in the legend.
    assert_eq!((times(&all, "A"), times(&all, "B"), times(&all, "C")), (3, 7, 0));
    assert!(text.contains("group A: 2 queues (0-1), rx-usecs 5, tx-usecs 10<"), "{text}");
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    if let Fact::Known(rss) = &mut n.rss {
        rss.contexts = Fact::Known([(1, RssContext { table: vec![6, 7], key: None })].into());
    }
    let (text, _) = drawn(&s, "eth1");
    assert!(text.contains("group C: 2 queues (6-7), rx-usecs 62, tx-usecs 122, RSS context 1<"), "{text}");
}

#[test]
fn names_cannot_break_it() {
    let mut s = edge3();
    let name = "<&\"'\u{1}>";
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    n.dev.name = name.into();
    n.driver = Fact::Known("a]]><b".into());
    let (_, parts) = drawn(&s, name);
    assert_eq!(times(&texts(&parts), "<&\"'\u{fffd}>"), 1);
}

/// The same as `cargo xtask picture` makes.
#[test]
fn the_picture_of_the_readme() {
    let host = root().join("fixtures/hosts/lab-router16-6.12/capture.tar.gz");
    let out = ringwise(&["show", "mq3", "--from", host.to_str().unwrap(), "--svg", "-"]);
    assert!(out.status.success(), "{out:?}");
    let file = root().join("docs/chain.svg");
    ringwise_testkit::golden::compare(&file, &String::from_utf8(out.stdout).unwrap());
}

fn ringwise(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(words).output().unwrap()
}

#[test]
fn from_the_command_line() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/lab-router16-6.12/capture.tar.gz");
    let host = host.to_str().unwrap();
    let dir = std::env::temp_dir().join(format!("ringwise-show-svg-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("out.svg");
    let path = file.to_str().unwrap();

    let out = ringwise(&["show", "eth0", "--from", host, "--svg", path]);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let written = std::fs::read_to_string(&file).unwrap();
    inside(&parse(&written));
    let again = ringwise(&["show", "eth0", "--from", host, "--svg", "-"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), written);

    let two = ringwise(&["show", "eth0", "eth1", "--from", host, "--svg", "-"]);
    let parts = parse(&String::from_utf8(two.stdout).unwrap());
    inside(&parts);
    assert_eq!(times(&texts(&parts), "rx-0"), 2);

    let none = ringwise(&["show", "--from", host, "--svg", path]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("needs the name of an interface"), "{none:?}");
    let absent = dir.join("no/such.svg");
    let bad = ringwise(&["show", "eth0", "--from", host, "--svg", absent.to_str().unwrap()]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("no/such.svg"), "{bad:?}");
    let json = ringwise(&["show", "eth0", "--from", host, "--svg", path, "-j"]);
    assert_eq!(json.status.code(), Some(2));
    std::fs::remove_dir_all(&dir).unwrap();
}
