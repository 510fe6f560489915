//! Other programs read the output of `config export`. For `.link` files and rules see lab/scenarios/655-export.sh.

use std::path::Path;
use std::process::{Command, Output};

use ringwise_config::export;
use ringwise_testkit::dir::Dir;
use ringwise_testkit::{fetched, skipped};

fn ringwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap()
}

fn words(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

const FILE: &str = r#"version = 1
[host]
sysctl = { "net.core.netdev_budget" = 600, "net/core/busy_poll" = 50 }
rfs_entries = 32768

[[interface]]
match = { name = "eth1" }
channels = { combined = 4, rx = 0 }
rings = { rx = 512, tx = 1024 }
pause = { autoneg = false, rx = true }
features = { gro = true, tso = false, tx = true, rx-gro-list = true, generic-segmentation-offload = true, tx-tcp6-segmentation = false, rx-vlan-hw-parse = true }
coalesce = { adaptive-rx = false, adaptive-tx = true, rx-usecs = 0, rx-max-frames-irq = 4, stats-block-usecs = 7, rate-sample-interval = 3, rx-max-frames-low = 9, pkt-rate-high = 5, cqe-mode-rx = true }
xps_cpus = "0-1"
rps_flow_cnt = 64
napi = { defer_hard_irqs = 2, gro_flush_timeout_ns = 20000, irq_suspend_timeout_ns = 20000000 }
rule = ["tcp4 dst-port 443 action 1"]
"#;

/// The text, and the settings that it cannot express.
fn exported(format: &str) -> (String, String) {
    let dir = Dir::named(&format!("export-{format}"));
    let file = dir.0.join("e.toml");
    std::fs::write(&file, FILE).unwrap();
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/lab-router16-6.12/capture.tar.gz");
    let (file, host) = (file.display().to_string(), host.display().to_string());
    let o = ringwise(&["config", "export", &file, "--as", format, "--from", &host]);
    assert_eq!(o.status.code(), Some(0), "{format}: {}", words(&o.stderr));
    (words(&o.stdout), words(&o.stderr))
}

fn assert_lines(text: &str, all: &[&str]) {
    for words in all {
        assert!(text.lines().any(|l| l.trim() == *words), "{words} is not in\n{text}");
    }
}

/// Keys that nmstate accepts (its `EthtoolConfig`; it refuses any other).
const STATE: [(&str, &[&str]); 3] = [
    ("pause", &["rx", "tx", "autoneg"]),
    ("ring", &["rx", "rx-jumbo", "rx-mini", "tx"]),
    (
        "coalesce",
        &[
            "adaptive-rx",
            "adaptive-tx",
            "pkt-rate-high",
            "pkt-rate-low",
            "rx-frames",
            "rx-frames-high",
            "rx-frames-irq",
            "rx-frames-low",
            "rx-usecs",
            "rx-usecs-high",
            "rx-usecs-irq",
            "rx-usecs-low",
            "sample-interval",
            "stats-block-usecs",
            "tx-frames",
            "tx-frames-high",
            "tx-frames-irq",
            "tx-frames-low",
            "tx-usecs",
            "tx-usecs-high",
            "tx-usecs-irq",
            "tx-usecs-low",
        ],
    ),
];

#[test]
fn nmstate_knows_every_field() {
    let (text, left) = exported("nmstate");
    let mut part = String::new();
    let mut fields = 0;
    let mut lines = text.lines().skip_while(|l| l.starts_with('#'));
    assert_eq!(lines.next(), Some("interfaces:"));
    assert_eq!(lines.next(), Some("  - name: \"eth1\""));
    assert_eq!(lines.next(), Some("    state: up"));
    assert_eq!(lines.next(), Some("    ethtool:"));
    for l in lines {
        let (key, value) = l.trim().split_once(':').unwrap_or_else(|| panic!("{l}"));
        match l.len() - l.trim_start().len() {
            6 => part = key.to_string(),
            8 => {
                fields += 1;
                let value = value.trim();
                let switch = part == "feature" || part == "pause" || key.starts_with("adaptive-");
                match switch {
                    true => assert!(value.parse::<bool>().is_ok(), "{part}: {l}"),
                    false => assert!(value.parse::<u32>().is_ok(), "{part}: {l}"),
                }
                match STATE.iter().find(|(p, _)| *p == part) {
                    Some((_, known)) => assert!(known.contains(&key), "{part} has no {key}"),
                    // nmstate accepts some names of ethtool, and always the names of the kernel.
                    None => {
                        assert_eq!(part, "feature", "{l}");
                        assert!(!export::FEATURE_WORDS.iter().any(|w| w.0 == key || w.1 == key), "{key}");
                    }
                }
            }
            _ => panic!("{l}"),
        }
    }
    assert_eq!(fields, 17, "{text}");
    // A name that covers several features needs the device's list of features, which this record lacks.
    assert_lines(
        &text,
        &["rx-gro: true", "tx-tcp6-segmentation: false", "sample-interval: 3", "rx-frames-low: 9", "rx-usecs: 0"],
    );
    for lacks in [
        "eth1 feature tso",
        "eth1 feature tx",
        "eth1 channels",
        "eth1 rule",
        "eth1 xps_cpus",
        "eth1 coalesce.use-cqe-mode-rx",
        "host sysctl",
    ] {
        assert!(left.contains(lacks), "{lacks}: {left}");
    }
}

#[test]
fn links_say_each_thing_in_words_of_their_own() {
    let (text, left) = exported("link");
    assert_lines(
        &text,
        &[
            "CombinedChannels=4",
            "RxBufferSize=512",
            "AutoNegotiationFlowControl=false",
            "GenericReceiveOffload=true",
            "TCP6SegmentationOffload=false",
            "TransmitChecksumOffload=true",
            "RxCoalesceSec=0us",
            "RxMaxCoalescedIrqFrames=4",
            "UseAdaptiveTxCoalesce=true",
        ],
    );
    assert!(!text.contains("RxChannels"), "0 is no value there\n{text}");
    for lacks in [
        "feature rx-gro-list",
        "feature tso",
        "coalesce.rate-sample-interval",
        "coalesce.use-cqe-mode-rx",
        "host rfs_entries",
    ] {
        assert!(left.contains(lacks), "{lacks}: {left}");
    }
}

#[test]
fn rules_match_one_device() {
    let (text, left) = exported("udev");
    let rule = text.lines().find(|l| l.starts_with("ACTION")).unwrap_or_else(|| panic!("{text}"));
    for words in [
        "ATTR{address}==\"",
        "DRIVERS==\"?*\"",
        "ATTR{queues/tx-0/xps_cpus}=\"3\"",
        "ATTR{gro_flush_timeout}=\"20000\"",
    ] {
        assert!(rule.contains(words), "{words}: {rule}");
    }
    for lacks in ["eth1 napi.irq_suspend_timeout_ns", "eth1 rings", "host sysctl"] {
        assert!(left.contains(lacks), "{lacks}: {left}");
    }
}

/// Uses the loader and the net plugin of tuned. Skipped with a message if they are not installed.
#[test]
fn tuned_reads_its_profile() {
    let (text, left) = exported("tuned");
    assert_lines(&text, &["channels=combined 4", "ring=rx 512 tx 1024", "net.core.busy_poll=50"]);
    // A feature within a group: ethtool -k shows it indented, and tuned then does not find it.
    for lacks in ["feature tx-tcp6-segmentation", "coalesce.use-cqe-mode-rx"] {
        assert!(left.contains(lacks), "{lacks}: {left}");
    }
    let Some(modules) = fetched("tuned/usr/lib/python3/dist-packages") else {
        return skipped(
            "tuned reads its profile",
            "tuned's modules are not in the cache (cargo xtask setup --lane quick)",
        );
    };
    let dir = Dir::named("export-profile");
    std::fs::create_dir(dir.0.join("ringwise")).unwrap();
    std::fs::write(dir.0.join("ringwise/tuned.conf"), &text).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export/tuned.py");
    let o = match Command::new("python3").arg(script).arg(&modules).arg(&dir.0).output() {
        Ok(o) => o,
        Err(e) => return skipped("tuned reads its profile", &format!("python3: {e}")),
    };
    assert!(o.status.success(), "{}\n{text}", words(&o.stderr));
    let read: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let eth1 = &read["net_eth1"];
    assert_eq!((&eth1["type"], &eth1["devices"]), (&"net".into(), &"eth1".into()), "{read}");
    let option = |context: &str, name: &str| eth1["options"][context][name].as_str().map(str::to_string);
    for (context, name, value) in [
        ("channels", "combined", "4"),
        ("ring", "tx", "1024"),
        ("pause", "autoneg", "off"),
        ("features", "gro", "on"),
        ("features", "gso", "on"),
        ("features", "rxvlan", "on"),
        ("features", "tso", "off"),
        ("features", "rx-gro-list", "on"),
        ("coalesce", "adaptive-tx", "on"),
        ("coalesce", "rx-frames-low", "9"),
        ("coalesce", "sample-interval", "3"),
    ] {
        assert_eq!(option(context, name).as_deref(), Some(value), "{context} {name}: {read}");
    }
    assert_eq!(read["sysctl"]["options"]["net.core.rps_sock_flow_entries"], "32768");
}

#[test]
fn words_for_features_are_those_of_the_knob() {
    let ours: Vec<(&str, &str, &[&str])> =
        export::FEATURE_WORDS.iter().map(|(s, l, k)| (*s, *l, std::slice::from_ref(k))).collect();
    assert_eq!(ours, ringwise_knob::features::SHORT);
}
