//! `ringwise config import`: the result is a valid file with which a plan succeeds, and nothing is lost in silence.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringwise_model::{Goal, Knob};
use ringwise_testkit::dir::Dir;

pub(crate) fn ringwise(args: &[&str]) -> (Option<i32>, String, String) {
    let o: Output = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (o.status.code(), text(&o.stdout), text(&o.stderr))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn capture(name: &str) -> String {
    root().join("fixtures/hosts").join(name).join("capture.tar.gz").display().to_string()
}

fn file(name: &str) -> String {
    root().join("fixtures/import").join(name).display().to_string()
}

/// The result of an import, after `config check` and a plan with it.
fn imported(test: &str, args: &[&str], from: &str) -> (ringwise_config::Config, String, String) {
    let (code, text, err) = ringwise(&[&["config", "import", "--from", from], args].concat());
    assert_eq!(code, Some(0), "{err}");
    let config = ringwise_config::parse("imported", &text).unwrap_or_else(|f| panic!("{f}\n{text}"));
    let dir = Dir::named(test);
    let path = dir.file("r.toml", &text);
    let (code, _, problem) = ringwise(&["config", "check", &path]);
    assert_eq!(code, Some(0), "{problem}");
    let (code, _, problem) = ringwise(&["plan", "--config", &path, "--from", from]);
    assert_eq!(code, Some(0), "{problem}\n{text}");
    (config, text, err)
}

#[test]
fn every_recorded_host_gives_a_file_with_which_a_plan_succeeds() {
    let dirs = std::fs::read_dir(root().join("fixtures/hosts")).unwrap().map(|e| e.unwrap().path());
    let mut hosts = 0;
    for from in dirs.map(|d| d.join("capture.tar.gz")).filter(|f| f.exists()) {
        let (config, text, _) = imported("import-every", &[], &from.display().to_string());
        assert_eq!(config.host.goal, Some(Goal::Balanced));
        // Each line that sets something names where it is from.
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with(['#', '['])) {
            assert!(line.contains("# "), "{line}");
        }
        hosts += 1;
    }
    assert!(hosts > 5);
}

/// On this host a script has pinned all interrupts of eth0 to CPU 0. On the other one, the goal alone gives the layout.
#[test]
fn pinned_interrupts_are_written_only_if_the_goal_would_change_them() {
    let (config, text, _) = imported("import-pinned", &[], &capture("lab-router16-newest"));
    let eth0 = config.entries.iter().find(|e| e.matcher.name.as_deref() == Some("eth0")).unwrap();
    let pinned = |w: &ringwise_model::Wish| match &w.knob {
        Knob::IrqCpus { queues, cpus } if cpus.to_string() == "0" => queues.clone(),
        _ => None,
    };
    assert_eq!(eth0.wishes.iter().find_map(pinned), Some((0..8).collect()), "{text}");
    assert!(text.lines().any(|l| l.starts_with("irq_cpus = ") && l.ends_with("# in effect now")), "{text}");
    let about = "# Queue = CPU of its interrupt, as it is on this host now (what set it is unknown).\n\
                 # Goal balanced would choose other CPUs: to let it, delete the line.\nirq_cpus = ";
    assert!(text.contains(about), "{text}");
    let (config, text, _) = imported("import-pinned", &[], &capture("lab-small2-6.12"));
    assert!(config.entries.is_empty(), "{text}");
}

#[test]
fn the_file_has_the_requested_goal() {
    let from = capture("lab-router16-newest");
    for (asked, goal) in [("forward", Goal::Forward), ("rpc", Goal::Rpc), ("mixed", Goal::Mixed)] {
        let (config, text, _) = imported("import-goal", &["--goal", asked], &from);
        assert_eq!(config.host.goal, Some(goal), "{text}");
        assert!(text.contains(&format!("goal = \"{asked}\"  # the requested goal\n")), "{text}");
        // CPUs that this goal would choose anyway are not written.
        if text.contains("irq_cpus = ") {
            assert!(text.contains(&format!("# Goal {asked} would choose other CPUs")), "{text}");
        }
    }
    let (config, _, err) = imported("import-goal", &["--goal", "auto"], &from);
    assert!(err.contains(&format!("ringwise: goal {}: ", config.host.goal.unwrap())), "{err}");
    let (code, _, err) = ringwise(&["config", "import", "--from", &from, "--goal", "fast"]);
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn all_sources_and_what_is_left_of_them() {
    let files = [
        ("--irqbalance", "irqbalance"),
        ("--link", "60-lan.link"),
        ("--tuned", "tuned.conf"),
        ("--perftune", "perftune.yaml"),
        ("--network-manager", "lan.nmconnection"),
        ("--nmstate", "state.yml"),
    ];
    let paths: Vec<(&str, String)> = files.iter().map(|(option, name)| (*option, file(name))).collect();
    let args: Vec<&str> = paths.iter().flat_map(|(option, path)| [*option, path.as_str()]).collect();
    let (config, text, err) = imported("import-all", &args, &capture("lab-router16-6.12"));
    let line = |start: &str, end: &str| {
        assert!(text.lines().any(|l| l.starts_with(start) && l.ends_with(end)), "{start} … {end} is not in\n{text}");
    };
    // irqbalance and tuned keep CPUs free; perftune.py has a list for interrupts.
    assert_eq!(config.host.exclude_cpus.as_ref().map(ToString::to_string).as_deref(), Some("2-3,6-7"));
    assert_eq!(config.host.cpus.as_ref().map(ToString::to_string).as_deref(), Some("0-3"));
    line("exclude_cpus = \"2-3,6-7\"  # ", "tuned.conf line 21");
    line("cpus = \"0-3\"  # ", "perftune.yaml line 3");
    // Whether this kernel has it is unknown: the capture lacks it.
    line("sysctl = { \"net.core.netdev_budget\" = \"600\" }  # ", "tuned.conf line 17");
    for left in [
        "--banirq=9: it concerns other interrupts too",
        "60-lan.link line 6: MTUBytes=9000: ringwise has no such setting",
        "tuned.conf line 14: mtu=1500: ringwise has no such setting",
        "[sysctl] kernel.nmi_watchdog",
        // This recording has no sysctls.
        "[bootloader] cmdline",
        "ps_blacklist=.*pmd.*",
        "mode: sq_split: irq_cpu_mask takes precedence",
        "dir: /var/lib/data",
        "eee-enabled=false",
        "ethtool.fec",
        "ethtool of eth99: the interface is not on this host",
        // The value in effect is 256.
        "eth1 rings.rx: 256",
        "60-lan.link line 7",
    ] {
        assert!(text.contains(left), "{left} is not in\n{text}");
        assert!(err.contains(left), "{left} is not in\n{err}");
    }
    assert!(!text.contains("not-for-anybody") && !err.contains("not-for-anybody"));
}

#[test]
fn a_file_is_replaced_only_on_request() {
    let dir = Dir::named("config-import-out");
    let path = dir.file("r.toml", "version = 1\n");
    let from = capture("lab-router16-6.12");
    let import = |more: &[&str]| ringwise(&[&["config", "import", "--from", &from, "--out", &path], more].concat());
    let (code, _, err) = import(&[]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("exists already; --overwrite replaces it"), "{err}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "version = 1\n");
    let (code, out, err) = import(&["--overwrite"]);
    assert_eq!(code, Some(0), "{err}");
    let listed = err.lines().filter(|l| l.starts_with("    ")).count();
    assert!(listed > 0, "{err}");
    let next = format!("Next: ringwise config check {path}\n");
    assert_eq!(out, format!("{path}: goal balanced, 0 settings, {listed} not carried over\n{next}"));
    assert!(std::fs::read_to_string(&path).unwrap().contains("goal = \"balanced\""));
    let (code, _, err) = ringwise(&["config", "import", "--overwrite"]);
    assert_eq!(code, Some(2), "{err}");
}

/// Nothing in a file of another program can become a line of the configuration or control a terminal.
#[test]
fn hostile_files_stay_comments() {
    let dir = Dir::named("config-import-hostile");
    let link = dir.file("9\u{1b}[31m.link", "[Match]\nDriver=igb\n[Link]\nWakeOnLan=\u{1b}]0;x\u{7}\rgoal = \"rpc\"\n");
    let tuned = dir.file("t.conf", "[net]\ndevices=*\nfeatures=a\u{b}b on\nchannels=combined 99999999999\nring=rx\n");
    let yaml = dir.file("s.yml", "interfaces:\n  - &a\n");
    let huge = dir.file("huge.conf", &"x=1\n".repeat(300_000));
    let args = ["--link", &link, "--tuned", &tuned];
    let (config, text, err) = imported("import-hostile", &args, &capture("lab-router16-6.12"));
    assert_eq!(config.host.goal, Some(Goal::Balanced));
    for t in [&text, &err] {
        assert!(!t.chars().any(|c| c.is_control() && c != '\n'), "{t:?}");
        assert!(t.contains("ring=rx"), "{t}");
    }
    // Of a file that was named, nothing could be read: no configuration is written.
    let out = format!("{}.toml", dir.file("unused", ""));
    for (option, file, why) in [
        ("--nmstate", yaml.as_str(), "s.yml line 2: the file: ringwise does not read an anchor"),
        ("--tuned", &huge, "larger than 1048576 bytes"),
        ("--tuned", "/nonesuch", "/nonesuch: ENOENT"),
    ] {
        let from = capture("lab-small2-6.12");
        let (code, text, err) = ringwise(&["config", "import", "--from", &from, option, file, "--out", &out]);
        assert_eq!((code, text.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(why), "{err}");
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn values_in_effect_that_are_not_imported_are_listed() {
    let (_, text, err) = imported("import-not-imported", &[], &capture("lab-router16-newest"));
    for t in [&text, &err] {
        assert!(t.contains("mq0 rps_flow_cnt 64: RFS tables of the running host are not imported"), "{t}");
        assert!(t.contains("features, pause frames, RSS, flow rules, NAPI settings: those of the running host"), "{t}");
    }
}

#[test]
fn a_named_file_without_a_setting_of_interest_is_listed() {
    let dir = Dir::named("config-import-nothing");
    let yaml = dir.file("dns.yml", "dns-resolver:\n  config:\n    search: []\n");
    let (_, text, err) = imported("import-nothing", &["--nmstate", &yaml], &capture("lab-small2-6.12"));
    for t in [&text, &err] {
        assert!(t.contains("dns.yml line 1: the file: it has no setting that ringwise knows"), "{t}");
    }
}

/// `ice` gives queue N the CPU N of the node (`netif_set_affinity_auto`), so the masks are no setting of this host.
#[test]
fn masks_that_a_driver_spreads_over_its_node_are_left_to_the_goal() {
    let from = root().join("fixtures/hosts/epyc-nps1/tree.tar.gz").display().to_string();
    let (_, text, _) = imported("import-spread", &["--tuned", &file("tuned.conf")], &from);
    assert!(text.contains("XPS of eth0: the masks are as a driver sets them, so the goal decides"), "{text}");
    assert!(text.contains("channels = 8") && !text.contains("xps_cpus = "), "{text}");
}

#[test]
fn a_named_file_of_another_format_is_an_error() {
    let from = capture("lab-small2-6.12");
    for (option, name, what) in [
        (
            "--irqbalance",
            "tuned.conf",
            "it has no variable of irqbalance; expected a file like /etc/default/irqbalance",
        ),
        ("--link", "tuned.conf", "it has no section [Match] or [Link]; expected a .link file"),
        ("--tuned", "60-lan.link", "it has no section of tuned; expected a profile"),
        (
            "--network-manager",
            "tuned.conf",
            "it has no section [connection]; expected a connection file of NetworkManager",
        ),
        ("--nmstate", "perftune.yaml", "it has no key of nmstate; expected a state with `interfaces`"),
        (
            "--perftune",
            "state.yml",
            "it has no option of perftune.py; expected a file like /etc/scylla.d/perftune.yaml",
        ),
    ] {
        let (code, text, err) = ringwise(&["config", "import", "--from", &from, option, &file(name)]);
        assert_eq!((code, text.as_str()), (Some(1), ""), "{option} {name}: {err}");
        assert!(err.contains(&format!("{name} line ")) && err.contains(what), "{option} {name}: {err}");
    }
}

/// virtio_net sends through a queue from a group of CPUs. The driver chose these masks, so the goal decides.
#[test]
fn masks_that_virtio_net_sets_are_left_to_the_goal() {
    let from = root().join("fixtures/hosts/virtio-iavf/tree.tar.gz").display().to_string();
    let (config, text, _) = imported("virtio-masks", &["--goal", "rpc", "--irqbalance", &file("irqbalance")], &from);
    assert_eq!(config.host.goal, Some(Goal::Rpc));
    assert!(!text.contains("xps_cpus"), "{text}");
    assert!(text.contains("XPS of eth0: the masks are as a driver sets them"), "{text}");
}
