//! The configuration file and its commands, as users call them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringwise_model::Goal;
use ringwise_testkit::dir::Dir;

use crate::common::newest_schema;
use crate::common::schema::check;

pub(crate) fn ringwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap()
}

pub(crate) fn text(o: &Output) -> (Option<i32>, String, String) {
    let t = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (o.status.code(), t(&o.stdout), t(&o.stderr))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Captured hosts: name and file.
fn fixtures() -> Vec<(String, PathBuf)> {
    let dirs = std::fs::read_dir(root().join("fixtures/hosts")).unwrap().map(|e| e.unwrap().path());
    let all = dirs.map(|d| (d.file_name().unwrap().to_string_lossy().into_owned(), d.join("capture.tar.gz")));
    all.filter(|(_, f)| f.exists()).collect()
}

/// A recorded host with eth1.
fn host() -> String {
    let (_, file) = fixtures().into_iter().find(|(name, _)| name == "lab-router16-6.12").expect("a fixture");
    file.display().to_string()
}

#[test]
fn the_schema_is_the_one_in_the_tree() {
    let (code, out, err) = text(&ringwise(&["config", "schema"]));
    assert_eq!(code, Some(0), "{err}");
    let path = root().join("schemas/ringwise.config.v1.json");
    ringwise_testkit::golden::compare(&path, &out);
}

#[test]
fn policies_that_need_no_words() {
    let built_in: Vec<String> = ringwise_plan::policies::built_in().into_iter().map(|p| p.name).collect();
    assert_eq!(built_in, ringwise_config::BUILT_IN_POLICIES);
}

/// Every example is a complete file or the content of an interface entry.
#[test]
fn the_examples_of_the_reference_hold() {
    let doc = std::fs::read_to_string(root().join("docs/config.md")).unwrap();
    let blocks: Vec<&str> = doc.split("```toml\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3, "{}", blocks.len());
    for b in blocks {
        let whole = b.contains("version = 1");
        let text = if whole { b.to_string() } else { format!("version = 1\n{b}") };
        if let Err(f) = ringwise_config::parse("docs/config.md", &text) {
            panic!("{f}");
        }
    }
    // The document names every key.
    let specs = [&ringwise_config::spec::HOST, &ringwise_config::spec::INTERFACE, &ringwise_config::spec::MATCH];
    let more = [&ringwise_config::spec::GROUP, &ringwise_config::spec::POLICY, &ringwise_config::spec::RSS];
    let groups = [&ringwise_config::spec::HOST_GROUP, &ringwise_config::spec::HOST_MATCH];
    for key in specs.into_iter().chain(more).chain(groups).flat_map(|s| s.keys) {
        assert!(doc.contains(&format!("`{}`", key.name)), "docs/config.md does not name {}", key.name);
    }
}

#[test]
fn a_wrong_file_is_refused_whole_and_first() {
    let d = Dir::named("config-wrong");
    let file =
        d.file("r.toml", "version = 1\n[[interface]]\nmatch = { name = \"eth1\" }\nring = { rx = 1 }\nchannels = 0\n");
    // No such host exists. If it were read, its absence would be the first error.
    let o = ringwise(&["plan", "--config", &file, "--from", &host()]);
    let (code, out, err) = text(&o);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    for words in ["r.toml:4:1: unknown key \"ring\"", "^^^^", "expected \"rings\"", "r.toml:5:12", "2 errors"] {
        assert!(err.contains(words), "{words} is not in {err}");
    }
    let (code, _, again) = text(&ringwise(&["config", "check", &file]));
    assert_eq!((code, again), (Some(1), err));
    let (code, _, err) = text(&ringwise(&["config", "check", "/nonesuch/r.toml"]));
    assert_eq!(code, Some(1));
    assert!(err.contains("/nonesuch/r.toml: ENOENT (No such file or directory)"), "{err}");
    assert!(err.contains("ringwise config init"), "{err}");
    // If a file exists, proposing another one does not help.
    let latin = d.file("latin.toml", "");
    std::fs::write(&latin, b"version = 1 # \xe9\n").unwrap();
    for (path, why) in [(d.0.display().to_string(), "EISDIR (Is a directory)"), (latin, "the file is not UTF-8 text")] {
        let (code, _, err) = text(&ringwise(&["config", "check", &path]));
        assert_eq!((code, err), (Some(1), format!("error: {path}: {why}\n")));
    }
}

#[test]
fn the_next_boot_needs_this_file() {
    let d = Dir::named("config-boot");
    let file = d.file("edge.toml", "version = 1\n[host]\ngoal = \"rpc\"\n");
    let (code, out, err) = text(&ringwise(&["plan", "--config", &file, "--from", &host()]));
    assert_eq!(code, Some(0), "{err}");
    let want = "To keep it over reboots, afterwards: ringwise persist --config /etc/ringwise/edge.toml\n";
    assert!(out.contains(want), "{out}");
    let place = d.0.display().to_string();
    if place.starts_with("/tmp/") {
        let want = format!("  First copy {file} to /etc/ringwise/edge.toml: files in /tmp do not survive a reboot.\n");
        assert!(out.contains(&want), "{out}");
    }
}

#[test]
fn a_boot_skips_what_the_file_does_not_permit() {
    let d = Dir::named("config-disruption");
    let body = "version = 1\n[host]\ngoal = \"forward\"\n[[interface]]\nmatch = { name = \"eth0\" }\nrings = { rx = 2048 \
                }\nfeatures = { lro = false, gro = true }\n";
    let file = d.file("edge.toml", body);
    let plan = |file: &str| {
        let (code, out, err) =
            text(&ringwise(&["plan", "eth0", "--config", file, "--allow-disruption", "--from", &host()]));
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let check = |file: &str| text(&ringwise(&["config", "check", file])).1.replace('\n', " ");
    let out = plan(&file);
    assert!(
        out.contains(", under [host]:\n      allow_disruption = true\n  Without allow_disruption, a boot skips"),
        "{out}"
    );
    let out = check(&file);
    assert!(out.contains("Note: changes of features.lro, rings interrupt traffic."), "{out}");
    let file = d.file("whole.toml", &body.replace("[host]\n", "[host]\nallow_disruption = true\n"));
    let out = plan(&file);
    assert!(!out.contains("under [host]") && out.contains("To keep it over reboots"), "{out}");
    assert!(!check(&file).contains("Note:"));
}

/// igb has no adaptive moderation.
#[test]
fn a_setting_that_the_driver_does_not_support_is_reported() {
    let d = Dir::named("config-unsupported");
    let plan = |adaptive: &str, more: &[&str]| {
        let values = format!("coalesce = {{ {adaptive}, rx-usecs = 62 }}");
        let file = d.file("r.toml", &format!("version = 1\n[[interface]]\nmatch = {{ name = \"eth0\" }}\n{values}\n"));
        text(&ringwise(&[&["plan", "--config", &file, "--from", &host()], more].concat()))
    };
    let (code, out, err) = plan("adaptive-tx = true", &[]);
    assert_eq!(code, Some(0), "{err}");
    let line = out.lines().find(|l| l.contains("eth0 moderation use-adaptive-tx")).unwrap_or_else(|| panic!("{out}"));
    assert!(line.starts_with("x ") && line.contains("not supported by the driver"), "{line}");
    assert!(out.contains("rx-usecs 62"), "{out}");
    let (code, _, err) = plan("adaptive-tx = true", &["--strict"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("eth0 moderation use-adaptive-tx: not supported by the driver"), "{err}");
    // The option at fault is named, not the last one for the same setting.
    let set = ["--set", "eth0.coalesce.adaptive-tx=true", "--set", "eth0.coalesce.rx-usecs=62"];
    let from = host();
    let args = [&["plan", "--from", &from], &set[..]].concat();
    let (code, out, err) = text(&ringwise(&args));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("(configured by --set eth0.coalesce.adaptive-tx=true)"), "{out}");
    let (_, _, err) = text(&ringwise(&[&args[..], &["--strict"]].concat()));
    assert!(err.contains("--set eth0.coalesce.adaptive-tx=true: eth0 moderation use-adaptive-tx"), "{err}");
    // What does not exist is off.
    let (code, out, err) = plan("adaptive-rx = false", &["--strict"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("rx-usecs 62") && !out.contains("use-adaptive"), "{out}");
}

#[test]
fn contradictory_flags_are_reported_too() {
    let d = Dir::named("config-sound");
    let file = d.file("r.toml", "version = 1\n[[interface]]\nmatch = { name = \"eth1\" }\nfeatures = { tso = true }\n");
    let host = host();
    let plan = |more: &[&str]| {
        let (code, out, err) = text(&ringwise(&[&["plan", "--from", &host, "--config", &file], more].concat()));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{more:?}: {err}");
        err
    };
    let err = plan(&[
        "--set",
        "eth1.features.tx-tcp-segmentation=false",
        "--set",
        "eth1.rss.table=equal 4",
        "--set",
        "eth1.channels=2",
    ]);
    assert!(err.contains(&format!("{file} line 4: tx-tcp-segmentation = false contradicts tso = true")), "{err}");
    assert!(err.contains("the table names queue 3, but channels sets only 2"), "all at once: {err}");
    for (set, why) in [
        ("netdev_budget_usecs\"=1", "netdev_budget_usecs cannot be set to 1"),
        ("flow_limit_table_len\"=1000", "a power of two"),
        ("dev_weight\"=abc", "dev_weight cannot be set to abc"),
        ("rps_default_mask\"=zz", "rps_default_mask cannot be set to zz"),
        ("netdev_max_backlog\"=99999999999", "a number from 0 to 2147483647"),
        ("nonesuch\"=1", "net.core.netdev_budget,"),
    ] {
        let err = plan(&["--set", &format!("host.sysctl.\"net.core.{set}")]);
        assert!(err.contains(why), "{set}: {err}");
    }
    let err = plan(&["--set", "eth1.napi=[{ queues = \"0\", threaded = 1 }, { queues = \"0\", threaded = 0 }]"]);
    assert!(err.contains("threaded of queue 0 is set twice"), "{err}");
}

/// An entry by driver: only the host shows that it is eth1.
#[test]
fn contradictions_on_one_host_are_reported_there() {
    let d = Dir::named("config-bound");
    let file =
        d.file("r.toml", "version = 1\n[[interface]]\nmatch = { driver = \"igb\" }\nfeatures = { tso = true }\n");
    let args = ["plan", "--from", &host(), "--config", &file, "--set", "eth1.features.tx-tcp-segmentation=false"];
    let (code, out, err) = text(&ringwise(&args));
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains(&format!("{file} line 4: tx-tcp-segmentation = false contradicts tso = true")), "{err}");
}

#[test]
fn a_goal_that_contradicts_the_file_needs_a_word() {
    let d = Dir::named("config-goal");
    let file = d.file("r.toml", "version = 1\n[host]\ngoal = \"forward\"\n");
    let plan = |more: &[&str]| {
        let mut args = vec!["plan", "--from"];
        let host = host();
        args.push(&host);
        args.extend(["--config", &file]);
        args.extend(more);
        text(&ringwise(&args))
    };
    let (code, out, err) = plan(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().next().unwrap().contains(&format!("goal forward ({file})")), "{out}");
    let (code, out, err) = plan(&["--goal", "rpc"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("contradicts") && err.contains("goal forward") && err.contains("--override-config"), "{err}");
    let (code, out, err) = plan(&["--goal", "rpc", "--override-config"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("Plan for") && out.lines().next().unwrap().contains("goal rpc"), "{out}");
    assert_eq!(plan(&["--goal", "forward"]).0, Some(0), "the same is no contradiction");
}

#[test]
fn single_keys_go_before_the_file() {
    let (code, _, err) = text(&ringwise(&["plan", "--from", &host(), "--set", "eth9.rings.rx=512"]));
    assert_eq!(code, Some(1));
    let (meant, next) = ("did you mean eth0? There are eth0 ", format!("Try: ringwise show --all --from {}\n", host()));
    assert!(err.contains(&format!("error: --set eth9.rings.rx=512: there is no interface \"eth9\"; {meant}")), "{err}");
    assert!(err.ends_with(&next), "{err}");
    let (code, _, err) = text(&ringwise(&["plan", "--from", &host(), "--set", "eth1.rings.rx=many"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("rx = \"many\" is not known"), "{err}");
    assert!(err.contains("expected a number from 1 to 4294967295, or \"max\""), "{err}");
    let (code, out, err) = text(&ringwise(&[
        "plan",
        "-o",
        "json",
        "--from",
        &host(),
        "--set",
        "eth1.rings.rx=512",
        "--set",
        "host.smt=all",
    ]));
    assert_eq!(code, Some(0), "{err}");
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plan["intent"]["wishes"][0]["dev"], "eth1");
    assert_eq!(
        plan["intent"]["wishes"][0]["by"],
        serde_json::json!({ "kind": "argument", "argument": "eth1.rings.rx=512" })
    );
    assert_eq!(plan["intent"]["smt"], "all");
}

#[test]
fn latency_queues_of_the_command_line_go_before_the_files() {
    let d = Dir::named("config-latency-queues");
    let file = |queues: &str| {
        let group = format!("[[interface.group]]\nname = \"latency\"\npolicy = \"cpu\"\nqueues = {queues}");
        let head = "version = 1\n[host]\ngoal = \"mixed\"\n[[interface]]\nmatch = { name = \"eth1\" }\n";
        d.file("l.toml", &format!("{head}{group}\n"))
    };
    let plan = |file: &str, more: &[&str]| {
        text(&ringwise(&[&["plan", "eth1", "-o", "json", "--from", &host(), "--config", file], more].concat()))
    };
    let queues = |out: &str| {
        let plan: serde_json::Value = serde_json::from_str(out).unwrap();
        let all = plan["groups"].as_array().unwrap().clone();
        all.iter().find(|g| g["name"] == "latency").unwrap()["queues"].as_array().unwrap().len()
    };
    let one = file("1");
    for (more, want) in [(&[][..], 1), (&["--latency-queues", "3"], 3), (&["--set", "host.latency_queues=2"], 2)] {
        let (code, out, err) = plan(&one, more);
        assert_eq!((code, queues(&out)), (Some(0), want), "{err}");
    }
    let (code, printed, err) =
        text(&ringwise(&["plan", "eth1", "--config", &one, "--latency-queues", "3", "--print-config"]));
    assert_eq!(code, Some(0), "{err}");
    let (code, out, err) = plan(&d.file("p.toml", &printed), &[]);
    assert_eq!((code, queues(&out)), (Some(0), 3), "{err}\n{printed}");
    // A number does not resize a group with named queues.
    let (code, _, err) = plan(&file("[4]"), &["--latency-queues", "3"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("--latency-queues, or latency_queues, is 3"), "{err}");
}

#[test]
fn what_is_printed_means_the_same() {
    let d = Dir::named("config-print");
    for goal in Goal::ALL {
        let args = ["--goal", goal.name(), "--reserve", "0", "--set", "eth1.coalesce.rx-usecs=30"];
        let (code, printed, err) = text(&ringwise(&[&["plan", "--print-config"], &args[..]].concat()));
        assert_eq!(code, Some(0), "{goal}: {err}");
        let file = d.file("p.toml", &printed);
        let intent = |o: &Output| -> serde_json::Value {
            let (code, out, err) = text(o);
            assert_eq!(code, Some(0), "{goal}: {err}\n{printed}");
            let mut i = serde_json::from_str::<serde_json::Value>(&out).unwrap()["intent"].take();
            i["config"].take();
            i["wishes"][0]["by"].take();
            i
        };
        let host = host();
        let by_flags = ringwise(&[&["plan", "-o", "json", "--from", &host], &args[..]].concat());
        let by_file = ringwise(&["plan", "-o", "json", "--from", &host, "--config", &file]);
        assert_eq!(intent(&by_flags), intent(&by_file), "{goal}\n{printed}");
    }
}

/// The plan without the origin of each setting, and with adjusted notes.
pub(crate) fn plan_of(args: &[&str]) -> serde_json::Value {
    let (code, out, err) = text(&ringwise(&[&["plan", "-o", "json"], args].concat()));
    assert_eq!(code, Some(0), "{args:?}: {err}");
    let mut plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    let i = &mut plan["intent"];
    i["config"].take();
    for w in i["wishes"].as_array_mut().into_iter().flatten() {
        w["by"].take();
        w.as_object_mut().unwrap().remove("params_by");
    }
    i["groups"].as_array_mut().into_iter().flatten().for_each(|g| drop(g["by"].take()));
    let i = i.take();
    for s in plan["steps"].as_array_mut().into_iter().flatten() {
        s["reason"].take();
        s["source"].take();
    }
    serde_json::json!({ "intent": i, "steps": plan["steps"].take() })
}

/// An interface's goal has its own smt, which the host's goal does not override.
#[test]
fn what_is_printed_with_goals_of_interfaces_means_the_same() {
    let d = Dir::named("config-goals");
    let host = host();
    for args in [
        &["--set", "eth1.goal=latency"][..],
        &["--goal", "stream", "--set", "eth0.goal=forward"],
        &["--goal", "rpc", "--set", "eth0.goal=balanced", "--set", "eth1.goal=mixed"],
        &["--goal", "stream", "--set", "eth0.goal=latency"],
        &["--goal", "stream", "--set", "eth0.goal=forward", "--set", "host.smt=all"],
    ] {
        let (code, printed, err) = text(&ringwise(&[&["plan", "--config", "none", "--print-config"], args].concat()));
        assert_eq!(code, Some(0), "{args:?}: {err}");
        let file = d.file("p.toml", &printed);
        let by_file = plan_of(&["--from", &host, "--config", &file]);
        assert!(!by_file["steps"].as_array().unwrap().is_empty(), "{args:?}");
        let by_flags = plan_of(&[&["--from", &host, "--config", "none"], args].concat());
        assert_eq!(by_file["steps"], by_flags["steps"], "{args:?}\n{printed}");
        // The output of config show does as well.
        let (code, shown, err) = text(&ringwise(&["config", "show", &file, "--from", &host]));
        assert_eq!(code, Some(0), "{args:?}: {err}");
        let again = plan_of(&["--from", &host, "--config", &d.file("s.toml", &shown)]);
        assert_eq!(again["steps"], by_flags["steps"], "{args:?}\n{shown}");
    }
}

/// The comments list the groups that `mixed` makes; as keys of an entry they have the same effect.
#[test]
fn what_is_printed_of_mixed_has_its_groups() {
    let d = Dir::named("config-groups");
    let host = host();
    let lines = |more: &[&str]| {
        let args = [&["plan", "--config", "none", "--goal", "mixed", "--print-config"], more].concat();
        let (code, printed, err) = text(&ringwise(&args));
        assert_eq!(code, Some(0), "{err}");
        let of_groups = printed.lines().filter_map(|l| l.strip_prefix("#   ")).skip_while(|l| !l.contains("group]]"));
        (printed.clone(), of_groups.map(|l| format!("{l}\n")).collect::<String>())
    };
    for more in [&[][..], &["--latency-queues", "1"]] {
        let (printed, groups) = lines(more);
        assert_eq!(groups.matches("[[interface.group]]").count(), 2, "{printed}");
        let steps = |plan: &mut serde_json::Value| {
            let mut all = plan["steps"].take();
            all.as_array_mut().into_iter().flatten().for_each(|s| drop(s["rule"].take()));
            all
        };
        let whole = d.file("g.toml", &format!("{printed}\n[[interface]]\nmatch = {{ name = \"eth1\" }}\n\n{groups}"));
        let by_file = steps(&mut plan_of(&["eth1", "--from", &host, "--config", &whole]));
        let by_flags = [&["eth1", "--from", &host, "--config", "none", "--goal", "mixed"], more].concat();
        assert_eq!(by_file, steps(&mut plan_of(&by_flags)), "{groups}");
    }
    let (printed, groups) = lines(&["--pair-as-article"]);
    assert!(groups.is_empty(), "{printed}");
}

/// `--set` on an interface that the file identifies by something other than its name.
#[test]
fn what_is_printed_with_a_file_means_the_same() {
    let d = Dir::named("config-joined");
    let host = host();
    let (_, facts, _) = text(&ringwise(&["show", "-o", "json", "--from", &host]));
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    let nics = facts["nics"].as_array().unwrap();
    let eth1 = nics.iter().find(|n| n["dev"]["name"] == "eth1").unwrap();
    let word = |v: &serde_json::Value| v.as_str().unwrap_or_else(|| panic!("{eth1:#}")).to_string();
    let (mac, bus) = (word(&eth1["dev"]["permanent_mac"]), word(&eth1["dev"]["bus_address"]));
    for (matcher, entries) in [
        (format!("mac = \"{mac}\""), 1),
        (format!("bus = \"{bus}\""), 1),
        ("name = \"eth1\"".to_string(), 1),
        // The entry matches eth0 too, so each interface then has its own entry.
        ("driver = \"igb\"".to_string(), 2),
        ("name = \"eth?\", driver = \"igb\"".to_string(), 2),
        ("name = \"nonesuch*\"".to_string(), 2),
    ] {
        let body = format!("version = 1\n[[interface]]\nmatch = {{ {matcher} }}\nrings = {{ rx = 512, tx = 512 }}\n");
        let file = d.file("f.toml", &body);
        let sets = ["--set", "eth1.rings.rx=1024", "--set", "eth1.coalesce.rx-usecs=30", "--goal", "rpc"];
        let given = [&["--from", &host, "--config", &file], &sets[..]].concat();
        let (code, printed, err) = text(&ringwise(&[&["plan", "--print-config"], &given[..]].concat()));
        assert_eq!(code, Some(0), "{matcher}: {err}");
        assert_eq!(printed.matches("[[interface]]").count(), entries, "{matcher}\n{printed}");
        assert_eq!(
            err.contains("written as one entry for each"),
            printed.matches("driver = ").count() == 2,
            "{matcher}: {err}"
        );
        let again = d.file("p.toml", &printed);
        let by_file = plan_of(&["--from", &host, "--config", &again]);
        assert!(!by_file["steps"].as_array().unwrap().is_empty(), "{matcher}");
        let by_flags = plan_of(&given);
        for part in ["steps", "intent"] {
            let sorted = |v: &serde_json::Value| {
                let mut v = v.clone();
                if let Some(w) = v.get_mut("wishes").and_then(|w| w.as_array_mut()) {
                    w.sort_by_key(|w| w.to_string());
                }
                v
            };
            assert_eq!(sorted(&by_file[part]), sorted(&by_flags[part]), "{matcher} {part}\n{printed}");
        }
    }
}

#[test]
fn a_file_to_begin_with_is_sound_and_changes_nothing() {
    let d = Dir::named("config-init");
    for (name, file) in fixtures() {
        let file = file.display().to_string();
        let (code, out, err) = text(&ringwise(&["config", "init", "--from", &file]));
        assert_eq!(code, Some(0), "{name}: {err}");
        let goals: Vec<&str> = Goal::ALL.iter().map(|g| g.name()).collect();
        assert!(out.contains(&format!("# Goals: {}\n", goals.join(", "))), "{name}: {out}");
        let at = d.file("i.toml", &out);
        let (code, _, err) = text(&ringwise(&["config", "check", &at]));
        assert_eq!(code, Some(0), "{name}: {err}\n{out}");
        // The commented keys and the commented host group are valid too.
        let all: String = out
            .lines()
            .map(|l| match l.strip_prefix("# ") {
                Some(heading) if heading.starts_with('[') => heading,
                Some(k)
                    if k.split_once(" = ").is_some_and(|(k, _)| !k.contains(' ') && k.len() > 2)
                        && !k.contains("  ") =>
                {
                    k
                }
                _ => l,
            })
            .map(|l| format!("{l}\n"))
            .collect();
        let (code, _, err) = text(&ringwise(&["config", "check", &d.file("a.toml", &all)]));
        assert_eq!(code, Some(0), "{name}: {err}\n{all}");
        assert!(all.contains("\n[host_group."), "{name}: {all}");
    }
}

#[test]
fn persist_the_service_into_an_image() {
    let d = Dir::named("config-image-service");
    let root = d.0.display().to_string();
    let persist = |more: &[&str]| text(&ringwise(&[&["persist", "--yes", "--root", &root], more].concat()));
    let there = |p: &str| d.0.join("etc/systemd/system").join(p).symlink_metadata().is_ok();
    let (code, out, err) = text(&ringwise(&["persist", "-n", "--daemon", "--root", &root, "--goal", "rpc"]));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("ringwise-daemon.service, which keeps") && !out.contains("ringwise@.service"), "{out}");
    assert!(!there(""), "-n writes nothing");
    let document = |more: &[&str]| {
        let (code, out, err) = persist(&[more, &["-j"]].concat());
        assert_eq!(code, Some(0), "{more:?}: {err}");
        let doc: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{more:?}: {e}: {out}"));
        let wrong = check(&newest_schema("ringwise.persist"), &doc);
        assert!(wrong.is_empty(), "{more:?}: {wrong:#?}");
        doc
    };
    let doc = document(&["-n", "--goal", "rpc"]);
    assert!(doc["changed"] == true && doc["dry_run"] == true && doc["boot"] == "nothing", "{doc}");
    let doc = document(&["--goal", "rpc"]);
    assert_eq!(
        (&doc["mode"], &doc["changed"], doc["files"].as_array().unwrap().len()),
        (&"at_boot".into(), &true.into(), 6)
    );
    assert_eq!(doc["boot"]["applies"]["config"], "/etc/ringwise/ringwise.toml");
    assert_eq!(document(&[])["changed"], false, "a second run changes nothing");
    assert_eq!(document(&["-n", "--daemon"])["changed"], true);
    let (code, out, err) = persist(&["-n", "--daemon"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Files to remove") && out.contains("81-ringwise.rules"), "{out}");
    let (code, _, err) = persist(&["--daemon"]);
    assert!(code == Some(0) && err.contains("Written: the service"), "{code:?} {err}");
    assert!(there("ringwise-daemon.service") && there("multi-user.target.wants/ringwise-daemon.service"));
    assert!(!there("ringwise.service") && !there("multi-user.target.wants/ringwise.service"), "not both");
    let service = std::fs::read_to_string(d.0.join("etc/systemd/system/ringwise-daemon.service")).unwrap();
    assert!(service.contains("\nExecStart=/usr/sbin/ringwise daemon\n"), "{service}");
    assert_eq!(persist(&["--remove", "--daemon"]).0, Some(2));
    let doc = document(&["--remove"]);
    assert!(doc["mode"].is_null() && doc["changed"] == true && doc["boot"] == "nothing", "{doc}");
    assert_eq!(document(&["--remove"])["changed"], false);
    assert!(!there("ringwise-daemon.service") && !there("multi-user.target.wants/ringwise-daemon.service"));
    assert!(d.0.join("etc/ringwise/ringwise.toml").exists(), "the configuration stays");
}

#[test]
fn persist_into_an_image() {
    let d = Dir::named("config-image");
    let root = d.0.display().to_string();
    let persist = |more: &[&str]| text(&ringwise(&[&["persist", "--yes", "--root", &root], more].concat()));
    let (code, _, err) = persist(&["--goal", "rpc", "--set", "eth1.rings.rx=512"]);
    assert_eq!(code, Some(0), "{err}");
    let read = |p: &str| std::fs::read_to_string(d.0.join(p)).unwrap_or_else(|e| panic!("{p}: {e}"));
    let config = read("etc/ringwise/ringwise.toml");
    assert!(config.contains("goal = \"rpc\"") && config.contains("rings = { rx = 512 }"), "{config}");
    let service = read("etc/systemd/system/ringwise.service");
    let line = "ExecStart=/usr/sbin/ringwise apply --config /etc/ringwise/ringwise.toml --yes --boot\n";
    assert!(service.contains(line), "{service}");
    let link = std::fs::read_link(d.0.join("etc/systemd/system/multi-user.target.wants/ringwise.service")).unwrap();
    assert_eq!(link, PathBuf::from("/etc/systemd/system/ringwise.service"));
    assert!(read("etc/udev/rules.d/81-ringwise.rules").contains("ringwise@$name.service"));
    let (code, _, err) = persist(&["--goal", "forward"]);
    assert_eq!(code, Some(6), "flags that the file would lose: {err}");
    assert_eq!(persist(&[]).0, Some(0), "again, with the file that is there");
    assert_eq!(persist(&["--remove"]).0, Some(0));
    let left: Vec<_> = std::fs::read_dir(d.0.join("etc/systemd/system")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|p| p.is_dir()), "{left:?}");
    assert!(d.0.join("etc/ringwise/ringwise.toml").exists(), "the configuration stays");
    // A unit of this name from another origin is neither overwritten nor removed.
    let service = d.0.join("etc/systemd/system/ringwise.service");
    std::fs::write(&service, "[Service]\nExecStart=/bin/true\n").unwrap();
    let (code, _, err) = persist(&[]);
    assert!(
        code == Some(6) && err.contains("ringwise.service exists, but was not written by ringwise persist"),
        "{code:?} {err}"
    );
    let (code, _, err) = persist(&["--remove"]);
    assert!(code == Some(0) && err.contains("it stays"), "{code:?} {err}");
    assert!(std::fs::read_to_string(&service).unwrap().contains("/bin/true"));
    assert!(!d.0.join("etc/systemd/system/ringwise@.service").exists(), "nothing was written before");
    std::fs::remove_file(&service).unwrap();
    // A masked unit is neither written through its link nor replaced.
    let masked = d.0.join("etc/systemd/system/ringwise@.service");
    std::os::unix::fs::symlink("/dev/null", &masked).unwrap();
    let (code, _, err) = persist(&[]);
    assert!(
        code == Some(1) && err.contains("ringwise@.service is not a regular file, perhaps a masked unit"),
        "{code:?} {err}"
    );
    assert!(err.contains("systemctl unmask ringwise@.service"), "{err}");
    assert_eq!(std::fs::read_link(&masked).unwrap(), PathBuf::from("/dev/null"));
    assert!(!d.0.join("etc/systemd/system/ringwise.service").exists(), "and nothing of the rest is written");
}

#[test]
fn invalid_settings_are_listed_each_on_a_line_of_its_own() {
    let d = Dir::named("config-check-lines");
    let file = d.file(
        "l.toml",
        "version = 1\n[[interface]]\nmatch = { name = \"eth1\" }\nchannels = 99\nrings = { rx = 99999 }\n",
    );
    let (code, out, err) = text(&ringwise(&["config", "check", &file, "--from", &host()]));
    assert_eq!(code, Some(1), "{out}{err}");
    let lines = |what: &str| out.lines().filter(|l| l.contains(what)).count();
    assert!(lines("channels") > 0 && lines("rings") > 0, "{out}");
    assert!(!out.contains("\\x0a"), "{out}");
}
