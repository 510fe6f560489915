//! Values from several sources: the one in effect is chosen, and every other one is listed.

use ringwise_config::import::{
    ForeignFile, Imported, ImportedValue, choose, irqbalance, link, network_manager, perftune, print,
};
use ringwise_config::import::{nmstate, tuned};
use ringwise_model::{Coalesce, ConfiguredBy, Count, CpuId, CpuSet, Fact, Feature, Rings, Snapshot};
use ringwise_testkit::machines;

fn host() -> Snapshot {
    let mut s = machines::ten()[0].snapshot();
    let n = &mut s.nics[0];
    let count = |now, max| Some(Count { now, max });
    n.driver = Fact::Known("igb".into());
    n.rings = Fact::Known(Rings::sizes(count(512, 4096), count(512, 4096)));
    let all = [("rx-usecs", 50), ("tx-usecs", 50), ("use-adaptive-rx", 0)];
    n.coalesce = Fact::Known(Coalesce(all.map(|(k, v)| (k.to_string(), v)).into()));
    let on = |on, fixed| Feature { on, wanted: on, fixed };
    let features = [("tx-tcp-segmentation", on(true, false)), ("tx-tcp6-segmentation", on(false, false))];
    n.features = Fact::Known(features.map(|(k, f)| (k.to_string(), f)).into());
    s
}

fn file(path: &str, text: &str) -> ForeignFile {
    ForeignFile { path: path.into(), text: text.into() }
}

fn dev(s: &Snapshot) -> String {
    s.nics[0].name().to_string()
}

#[test]
fn the_value_in_effect_is_chosen() {
    let s = host();
    let name = dev(&s);
    let mut all = Imported::default();
    link(&[file("/a.link", "[Match]\nDriver=igb\n[Link]\nRxBufferSize=1024\nTxBufferSize=512\n")], &s, &mut all);
    tuned(&[file("/t.conf", &format!("[net]\ndevices={name}\nring=rx 512 tx 256\n"))], &s, &mut all);
    let chosen = choose(all, &s);
    let rx = chosen.choices.iter().find(|c| c.part.key() == "rings.rx").unwrap();
    assert_eq!((rx.part.clone(), rx.by[0].to_string()), (ImportedValue::Ring("rx", 512), "/t.conf line 3".into()));
    let shown: Vec<String> = chosen.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            format!("{name} rings.rx: 512 (/t.conf line 3) instead of 1024 (/a.link line 4)"),
            format!("{name} rings.tx: 512 (/a.link line 5) instead of 256 (/t.conf line 3)"),
        ]
    );
    let text = print(&chosen, &s, &[]);
    assert!(text.contains("rings = { rx = 512, tx = 512 }  # rx: /t.conf line 3; tx: /a.link line 5\n"), "{text}");
}

#[test]
fn without_a_value_in_effect_the_first_source_counts() {
    let mut s = host();
    let name = dev(&s);
    s.nics[0].rings = Fact::unknown("rings", "no answer");
    let mut all = Imported::default();
    let keyfile = format!("[connection]\ninterface-name={name}\n[ethtool]\nring-rx=64\n");
    network_manager(&file("/c", &keyfile), &s, &mut all);
    let state = format!("interfaces:\n- name: {name}\n  ethtool:\n    ring:\n      rx: 128\n");
    nmstate(&file("/s.yml", &state), &s, &mut all);
    let chosen = choose(all, &s);
    assert_eq!(chosen.choices[0].part, ImportedValue::Ring("rx", 64));
    assert_eq!(chosen.conflicts[0].others, [("128".into(), ConfiguredBy::File { path: "/s.yml".into(), line: 5 })]);
}

/// What no host accepts, or what the configuration file would refuse, is listed instead of written.
#[test]
fn what_cannot_be_configured_is_listed() {
    let mut s = host();
    if let Fact::Known(c) = &mut s.nics[0].coalesce {
        c.0.insert("use-adaptive-rx".into(), 1);
    }
    let mut all = Imported::default();
    let text = "[net]\ncoalesce=adaptive-rx on rx-usecs 50 pkt-rate-low 7\nfeatures=tso on\nring=rx-mini 4\n";
    tuned(&[file("/t.conf", text)], &s, &mut all);
    s.nics.truncate(1);
    all.found.retain(|f| f.dev.as_deref() == Some(&dev(&s)));
    let chosen = choose(all, &s);
    let text = print(&chosen, &s, &[]);
    ringwise_config::parse("x.toml", &text).unwrap_or_else(|f| panic!("{f}\n{text}"));
    for left in [
        "coalesce.rx-usecs = 50: adaptive moderation is on",
        "coalesce.pkt-rate-low = 7: the device has no such setting",
        "ring=rx-mini 4: ringwise has no such setting",
        // One of the features that tso stands for is off.
        "features.tx-tcp6-segmentation: false (in effect now) instead of true (/t.conf line 3)",
    ] {
        assert!(text.contains(left), "{left} is not in\n{text}");
    }
}

#[test]
fn cpus_of_several_programs() {
    let s = host();
    let last = s.topology.online.last().unwrap().0;
    let mut all = Imported::default();
    // The mask takes precedence over the list.
    let text = format!("IRQBALANCE_BANNED_CPULIST={last}\nexport IRQBALANCE_BANNED_CPUS='1'\nOTHER=x\n");
    irqbalance(&file("/i", &text), &s, &mut all);
    tuned(
        &[
            file("/v", &format!("isolated_cores={last}\n")),
            file("/t", "[scheduler]\nisolated_cores=${isolated_cores}\n"),
        ],
        &s,
        &mut all,
    );
    perftune(&file("/p", "mode: sq\ntune: [net]\n"), &s, &mut all);
    let chosen = choose(all, &s);
    let parts: Vec<(String, String)> = chosen.choices.iter().map(|c| (c.part.key(), c.part.value())).collect();
    // perftune.py would send all interrupts to CPU 0, which irqbalance keeps free: both is not possible.
    assert_eq!(parts.len(), 1, "{parts:?}");
    let left: Vec<String> = chosen.not_carried.iter().map(ToString::to_string).collect();
    for part in ["BANNED_CPUS takes precedence", "OTHER=x", "no CPU would be left for queues"] {
        assert!(left.iter().any(|l| l.contains(part)), "{part} is not in {left:?}");
    }
}

/// Masks of all queues, with a profile that sets fewer channels; the present number is unknown.
#[test]
fn masks_of_more_queues_than_channels_are_not_carried_over() {
    let mut s = host();
    let name = dev(&s);
    s.nics[0].channels = Fact::unknown("channels", "no answer");
    let masks = |all: &mut Imported| {
        for q in 0..12 {
            all.add(Some(&name), ImportedValue::XpsCpus(q, CpuSet::one(CpuId(q))), &ConfiguredBy::InEffect);
        }
    };
    let mut all = Imported::default();
    tuned(&[file("/t.conf", &format!("[net]\ndevices={name}\nchannels=combined 8\n"))], &s, &mut all);
    masks(&mut all);
    let text = print(&choose(all, &s), &s, &[]);
    ringwise_config::parse("x.toml", &text).unwrap_or_else(|f| panic!("{f}\n{text}"));
    let why = "they name queue 11, but channels sets only 8, so the goal chooses the CPUs";
    assert!(text.contains(&format!("in effect now: {name} xps_cpus of 12 queues: {why}\n")), "{text}");
    assert!(text.contains("channels = 8") && !text.contains("xps_cpus = "), "{text}");

    let mut all = Imported::default();
    masks(&mut all);
    let text = print(&choose(all, &s), &s, &[]);
    let line = text.lines().find(|l| l.starts_with("xps_cpus = ")).unwrap_or_else(|| panic!("{text}"));
    let of = |queue: &str| line.find(&format!("\"{queue}\" = ")).unwrap_or_else(|| panic!("{queue}: {line}"));
    assert!(
        of("0") < of("2") && of("2") < of("10") && of("10") < of("11"),
        "queues are in the order of numbers: {line}"
    );
}
