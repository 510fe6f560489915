//! Which entry matches which interface of a host.

use ringwise_config::{Bound, bind, parse, parse_set};
use ringwise_model::{CpuSet, Fact, Goal, Knob, NicKind, RingValues, Snapshot};
use ringwise_testkit::machines;

/// eth0 to eth3; the last one is a bond with the address of eth0.
fn host() -> Snapshot {
    let mut s = machines::ten()[0].snapshot();
    let one = s.nics.iter().find(|n| n.has_own_queues()).expect("an interface").clone();
    s.nics = (0..4u32)
        .map(|i| {
            let mut n = one.clone();
            n.dev.name = format!("eth{i}");
            n.dev.ifindex = Some(ringwise_model::IfIndex(i + 2));
            n.dev.bus_address = Some(format!("0000:03:00.{i}"));
            n.dev.permanent_mac = Some(format!("52:54:00:00:00:0{i}"));
            n.driver = Fact::Known(if i == 1 { "igb" } else { "mlx5_core" }.into());
            n
        })
        .collect();
    s.nics[3].kind = NicKind::Software { kind: "bond".into() };
    s.nics[3].dev.permanent_mac = Some("52:54:00:00:00:00".into());
    s.nics[2].labels = vec!["uplink".into()];
    s
}

fn bound(body: &str, sets: &[&str]) -> Result<Bound, Vec<String>> {
    let c = parse("f.toml", &format!("version = 1\n{body}")).unwrap_or_else(|f| panic!("{f}"));
    let over: Vec<_> = sets.iter().map(|s| parse_set(s).unwrap_or_else(|f| panic!("{f}"))).collect();
    bind(&c, &over, &host())
}

fn entry(matches: &str) -> String {
    format!("[[interface]]\nmatch = {{ {matches} }}\nrings.rx = 512\n")
}

fn devs(b: &Bound) -> Vec<&str> {
    b.intent.wishes.iter().map(|w| w.dev.as_deref().unwrap()).collect()
}

#[test]
fn every_kind_of_match() {
    for (matches, want) in [
        ("name = \"eth1\"", &["eth1"][..]),
        ("name = \"eth*\"", &["eth0", "eth1", "eth2"]),
        ("driver = \"mlx5_core\"", &["eth0", "eth2"]),
        ("driver = \"mlx5_core\", name = \"eth[2]\"", &[]),
        ("driver = \"igb\", name = \"eth?\"", &["eth1"]),
        ("mac = \"52:54:00:00:00:00\"", &["eth0"]),
        ("bus = \"0000:03:00.2\"", &["eth2"]),
        ("label = \"uplink\"", &["eth2"]),
        ("label = \"uplink\", driver = \"igb\"", &[]),
    ] {
        let b = bound(&entry(matches), &[]).unwrap();
        assert_eq!(devs(&b), want, "{matches}");
        assert_eq!(b.notes.len(), usize::from(want.is_empty()), "{matches}: {:?}", b.notes);
        assert!(b.notes.iter().all(|n| n.starts_with("f.toml line 3: ")), "{:?}", b.notes);
    }
}

#[test]
fn what_is_ambiguous_is_refused_whole() {
    let two = entry("name = \"eth1\"") + &entry("driver = \"igb\"");
    let wrong = bound(&two, &[]).unwrap_err();
    assert_eq!(wrong.len(), 1);
    for words in ["two entries match eth1", "f.toml line 3", "f.toml line 6"] {
        assert!(wrong[0].contains(words), "{words}: {}", wrong[0]);
    }
    let c = parse("f.toml", &format!("version = 1\n{}", entry("mac = \"52:54:00:00:00:09\""))).unwrap();
    let mut s = host();
    s.nics[0].dev.permanent_mac = Some("52:54:00:00:00:09".into());
    s.nics[1].dev.permanent_mac = Some("52:54:00:00:00:09".into());
    let wrong = bind(&c, &[], &s).unwrap_err();
    assert!(wrong[0].contains("must match one interface, but matches eth0 and eth1"), "{}", wrong[0]);
}

#[test]
fn a_ring_has_a_size_or_the_largest_safe_one() {
    let file = "[[interface]]\nmatch = { driver = \"igb\" }\nrings = { rx = \"max\", tx = 512 }\n";
    let knobs =
        |sets: &[&str]| -> Vec<Knob> { bound(file, sets).unwrap().intent.wishes.into_iter().map(|w| w.knob).collect() };
    let sizes = |rx, tx| Knob::Rings { values: RingValues::sizes(rx, tx) };
    let longest = |rx, tx| Knob::LongestRings { rx, tx };
    assert_eq!(knobs(&[]), [sizes(None, Some(512)), longest(true, false)]);
    assert_eq!(knobs(&["eth1.rings.rx=1024"]), [sizes(Some(1024), Some(512))]);
    assert_eq!(knobs(&["eth1.rings.tx=max"]), [longest(true, true)]);
    assert_eq!(knobs(&["eth1.rings.tx=256"]), [sizes(None, Some(256)), longest(true, false)]);
}

#[test]
fn single_keys_go_before_entries() {
    let file = "[[interface]]\nmatch = { driver = \"igb\" }\ngoal = \"rpc\"\nrings = { rx = 512, tx = 256 }\n\
                coalesce = { adaptive-rx = true }\n";
    let b = bound(file, &["eth1.rings.rx=1024", "eth1.coalesce.rx-usecs=30", "eth1.features.gro=false"]).unwrap();
    let knobs: Vec<&Knob> = b.intent.wishes.iter().map(|w| &w.knob).collect();
    assert!(knobs.contains(&&Knob::Rings { values: RingValues::sizes(Some(1024), Some(256)) }), "{knobs:?}");
    assert!(knobs.contains(&&Knob::Feature { name: "gro".into(), on: false }), "{knobs:?}");
    let coalesce = knobs.iter().find_map(|k| if let Knob::Coalesce { params, .. } = k { Some(params) } else { None });
    // A fixed value that overrides adaptive moderation switches it off.
    assert_eq!((coalesce.unwrap()["use-adaptive-rx"], coalesce.unwrap()["rx-usecs"]), (0, 30));
    assert_eq!(b.intent.dev_goals["eth1"], Goal::Rpc);
    let said: Vec<String> = b.intent.wishes.iter().map(|w| w.by.to_string()).collect();
    assert!(said.iter().any(|s| s == "--set eth1.rings.rx=1024"), "{said:?}");
    let wrong = bound("", &["eth7.rings.rx=1024"]).unwrap_err();
    assert!(wrong[0].contains("no interface with queues of its own matches name eth7"), "{}", wrong[0]);
}

/// Only the named queues change, the others keep the values of the file, and each queue appears once.
#[test]
fn some_queues_of_several() {
    let file = "[[interface]]\nmatch = { name = \"eth1\" }\nirq_cpus = { \"0-2\" = \"3\" }\n\
                coalesce = { queues = \"0-1\", rx-usecs = 30, tx-usecs = 40 }\n";
    let b = bound(file, &["eth1.coalesce={queues=\"1-2\",rx-usecs=50}", "eth1.irq_cpus={\"1\"=\"0\"}"]).unwrap();
    let mut told: Vec<String> = b.intent.wishes.iter().map(|w| format!("{:?}", w.knob)).collect();
    told.sort();
    let usecs = |all: &[(&str, u32)]| all.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    let coalesce = |queue, all: &[(&str, u32)]| Knob::Coalesce { queues: Some(vec![queue]), params: usecs(all) };
    let irq = |queues: &[u32], cpu| Knob::IrqCpus { queues: Some(queues.to_vec()), cpus: CpuSet::range(cpu, cpu) };
    let mut want: Vec<String> = [
        coalesce(0, &[("rx-usecs", 30), ("tx-usecs", 40)]),
        coalesce(1, &[("rx-usecs", 50), ("tx-usecs", 40)]),
        coalesce(2, &[("rx-usecs", 50)]),
        irq(&[0, 2], 3),
        irq(&[1], 0),
    ]
    .iter()
    .map(|k| format!("{k:?}"))
    .collect();
    want.sort();
    assert_eq!(told, want);
}

#[test]
fn interfaces_that_the_host_part_names() {
    let b = bound("[host]\ninterfaces = [\"eth1\", \"eth?\", \"lan*\"]\n", &[]).unwrap();
    assert_eq!(b.intent.devs, ["eth1", "eth0", "eth2"]);
    assert!(b.notes[0].contains("no interface with queues of its own matches lan*"), "{:?}", b.notes);
    let b = bound("[host]\ninterfaces = [\"lan*\"]\n", &[]).unwrap();
    assert_eq!(b.intent.devs, ["lan*"], "the planner refuses it by that name");
}

#[test]
fn a_bond_in_the_file_means_its_members() {
    let mut s = host();
    s.nics[3].lower = vec![ringwise_model::IfIndex(2), ringwise_model::IfIndex(3)];
    s.nics[3].link.carrier = Fact::not_requested("carrier");
    s.nics[3].link.operstate = Fact::not_requested("operstate");
    let bound = |s: &Snapshot| {
        let c = parse("f.toml", "version = 1\n[host]\ninterfaces = [\"eth3\", \"eth2\"]\n").unwrap();
        let b = bind(&c, &[], s).unwrap();
        (b.intent.devs, b.notes)
    };
    let (devs, notes) = bound(&s);
    assert_eq!(devs, ["eth0", "eth1", "eth2"]);
    assert_eq!(notes, ["eth3 (bond) has no queues of its own: using eth0, eth1 instead"]);
    let patterns = ["eth3".to_string()];
    let chosen = s.nics.iter().filter(|n| ringwise_config::is_chosen(&patterns, &s, n)).map(|n| n.name());
    assert!(chosen.eq(["eth0", "eth1", "eth3"]));
    s.nics[3].lower.clear();
    let (devs, notes) = bound(&s);
    assert_eq!((devs, notes), (vec!["eth2".into()], vec!["eth3 has no queues of its own; it is skipped".into()]));
}

/// The note about a name that does not exist is true for the plan: it fails if no named interface exists.
#[test]
fn named_interfaces_that_do_not_exist() {
    let notes = |body: &str| bound(body, &[]).unwrap().notes;
    assert_eq!(
        notes("[host]\ninterfaces = [\"eth9\", \"eth1\"]\n"),
        ["no interface with queues of its own matches eth9 of host.interfaces; it is skipped, the others are planned"]
    );
    assert_eq!(
        notes("[host]\ninterfaces = [\"eth9\"]\n"),
        [
            "no interface with queues of its own matches eth9 of host.interfaces; nothing can be planned, because no other interface is named"
        ]
    );
}

#[test]
fn a_moderation_parameter_keeps_its_place() {
    let text = entry("name = \"eth0\"").replace("rings.rx = 512", "coalesce = { tx-usecs = 3, rx-usecs = 4 }");
    let b = bound(&text, &["eth0.coalesce.rx-usecs=8", "eth0.coalesce.use-cqe-mode-rx=1"]).unwrap();
    let [w] = b.intent.wishes.as_slice() else { panic!("{:?}", b.intent.wishes) };
    let by = |param: &str| w.by_of(param).to_string();
    assert_eq!(by("tx-usecs"), "f.toml line 4");
    assert_eq!(by("rx-usecs"), "--set eth0.coalesce.rx-usecs=8");
    assert_eq!(by("use-cqe-mode-rx"), "--set eth0.coalesce.use-cqe-mode-rx=1");
    // A value that another one changes was configured there.
    let b = bound(&text, &["eth0.coalesce.adaptive-tx=true", "eth0.coalesce.tx-usecs=9"]).unwrap();
    let w = &b.intent.wishes[0];
    assert_eq!(w.by_of("use-adaptive-tx").to_string(), "--set eth0.coalesce.tx-usecs=9");
    assert_eq!(w.by_of("rx-usecs").to_string(), "f.toml line 4");
    // Ring parameters do, too.
    let b = bound(&entry("name = \"eth0\""), &["eth0.rings.tx=256", "eth0.rings.tx_push=true"]).unwrap();
    let places: Vec<String> = b.intent.wishes[0].places().iter().map(ToString::to_string).collect();
    assert_eq!(places, ["f.toml line 4", "--set eth0.rings.tx=256", "--set eth0.rings.tx_push=true"]);
    let b = bound(&entry("name = \"eth0\""), &["eth0.rings.tx=256", "eth0.rings.rx=max"]).unwrap();
    let of_sizes = b.intent.wishes.iter().find(|w| matches!(w.knob, ringwise_model::Knob::Rings { .. })).unwrap();
    assert_eq!(of_sizes.places().len(), 1, "{of_sizes:?}");
}

#[test]
fn interfaces_that_follow_the_load_without_a_plan_are_noted() {
    let notes = |interfaces: &str, act: &str| {
        let b = bound(&format!("[host]\ninterfaces = [{interfaces}]\nact_on_load = [{act}]\n"), &[]).unwrap();
        b.notes.into_iter().filter(|n| n.contains("act_on_load")).collect::<Vec<_>>()
    };
    assert_eq!(notes("\"eth0\"", "\"eth0\""), Vec::<String>::new());
    assert_eq!(notes("\"eth*\"", "\"eth1\""), Vec::<String>::new());
    let [note] = notes("\"eth0\"", "\"eth?\"").try_into().unwrap();
    assert!(note.starts_with("host.act_on_load names eth1 eth2, not in host.interfaces: "), "{note}");
}
