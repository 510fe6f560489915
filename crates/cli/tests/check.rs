//! `ringwise check` as users and programs see it: every host of `fixtures/hosts`, several at once, the baseline,
//! formats and exit statuses.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::fixtures;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).env("TZ", "UTC").env("LANG", "C.UTF-8").output().unwrap()
}

fn text(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn capture(name: &str) -> String {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == name).unwrap();
    file.display().to_string()
}

fn temp(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ringwise-check-{}-{name}", std::process::id()))
}

#[test]
fn every_host() {
    for (name, file) in fixtures() {
        let file = file.display().to_string();
        let o = run(&["check", "--fail-on", "never", "--from", &file]);
        assert_eq!(o.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&o.stderr));
        let page = text(&o);
        let summary = |l: &str| l.contains(" rules") && (l.contains("not readable"));
        assert!(page.lines().any(summary), "{name}: {page}");
        assert!(page.contains("Not evaluated") || page.contains("need two samples"), "{name}: {page}");
    }
}

/// A recording is named, not this host; a router is checked for goal balanced unless another goal is given.
#[test]
fn the_header_names_the_host_and_the_goal_of_its_role() {
    let first = |name: &str, more: &[&str]| {
        let file = capture(name);
        let page = text(&run(&[&["check", "--fail-on", "never", "--from", &file], more].concat()));
        page.lines().take(2).map(|l| l.replace(&file, "FILE")).collect::<Vec<_>>()
    };
    let role = "looks like a router (ip_forward=1, 3 interfaces up, 40 VLANs, a bridge)";
    assert_eq!(
        first("interleaved", &[]),
        [format!("fw2  {role}"), "goal balanced (default); for a router: --goal forward".into()]
    );
    assert_eq!(first("interleaved", &["--goal", "balanced"])[1], "goal balanced (requested)");
    assert_eq!(first("interleaved", &["--goal", "auto"])[1], "goal forward (chosen by auto)");
    // The commands name the goal of the role, unless one was given.
    let page = |more: &[&str]| {
        text(&run(&[&["check", "--fail-on", "never", "--from", &capture("interleaved")], more].concat()))
    };
    let open = page(&[]);
    let command = "would fix this and other findings:\n  ringwise plan --goal forward --from ";
    assert!(open.contains(command) && !open.contains("ringwise plan --from"), "{open}");
    let given = page(&["--goal", "balanced"]);
    assert!(given.contains("changes would fix this and other findings:\n  ringwise plan --from "), "{given}");
    let page = first("lab-router16-6.12", &[]);
    assert!(page[0].starts_with("host recorded in FILE  role not evident"), "{page:?}");
    assert!(page[1].starts_with("goal balanced (default); if it routes packets: --goal forward"), "{page:?}");
}

/// SARIF and JUnit are one document about all captures.
#[test]
fn one_of_several_is_not_readable() {
    let bad = temp("damaged.tar.gz");
    std::fs::write(&bad, b"\x1f\x8b and then nothing that is gzip").unwrap();
    let (bad, good) = (bad.display().to_string(), capture("lab-small2-6.12"));
    let check = |more: &[&str], files: &[&str]| run(&[&["check"], more, &["--from"], files].concat());
    let o = check(&["-o", "sarif", "--fail-on", "never"], &[&good, &bad]);
    let sarif: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let done: Vec<bool> = sarif["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["invocations"][0]["executionSuccessful"].as_bool().unwrap())
        .collect();
    assert_eq!((o.status.code(), done), (Some(1), vec![false, true]));
    let o = check(&["-o", "junit", "--fail-on", "never"], &[&good, &bad]);
    let junit = text(&o);
    assert_eq!(o.status.code(), Some(1));
    assert_eq!((junit.matches("<testsuite ").count(), junit.matches("<error ").count()), (2, 1), "{junit}");
    // A single capture is reported as by every other command.
    let o = check(&[], &[&bad]);
    assert_eq!((o.status.code(), text(&o).as_str()), (Some(1), ""));
    std::fs::remove_file(&bad).unwrap();
}

/// Two captures of one host, or of two hosts with the same name, are distinguished by their files.
#[test]
fn two_of_the_same_name() {
    let one = capture("epyc-nps4");
    let two = temp("again.tar.gz");
    std::fs::copy(&one, &two).unwrap();
    let two = two.display().to_string();
    let junit = text(&run(&["check", "-o", "junit", "--fail-on", "never", "--from", &one, &two]));
    let names: std::collections::BTreeSet<&str> =
        junit.split("<testsuite name=\"").skip(1).filter_map(|t| t.split('"').next()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    std::fs::remove_file(&two).unwrap();
}

/// Findings that differ only in their interface share one line.
#[test]
fn one_command_for_what_is_alike() {
    let file = capture("lab-router16-newest");
    let page = text(&run(&["check", "--fail-on", "never", "--from", &file]));
    let command = format!("  ringwise plan --set eth0.rps_flow_cnt=0 --from {file}");
    let head = |of: &str| format!("Findings of {of} are fixed by this, and the same for eth2 eth3 mq0:\n{command}\n");
    assert!(page.contains(&head("Q10")), "{page}");
    // Lists of more than three rules are counts; `-v` has the ids.
    let hint = format!("  ringwise check -v --from {file}");
    assert!(page.lines().any(|l| l == hint) && page.contains("Not evaluated, needs two samples (capture --for 5s): "));
    let listed = text(&run(&["check", "-v", "--fail-on", "never", "--from", &file]));
    assert!(listed.contains(&head("Q10")) && !listed.contains("List these rules"), "{listed}");
}

/// A reader learns which findings a command fixes without a second run.
#[test]
fn up_to_three_fixed_rules_are_named() {
    let file = capture("lab-router3-6.12");
    let page = text(&run(&["check", "--goal", "forward", "--fail-on", "never", "--from", &file]));
    let plan = format!("  ringwise plan --goal forward --from {file}");
    assert!(page.contains(&format!("Findings of A02 and Q14 are fixed by this:\n{plan}\n")), "{page}");
    let disruptive = "Findings of R1.07 are fixed by this:\n  ringwise plan --goal forward --allow-disruption";
    assert!(page.contains(disruptive), "{page}");
}

/// The check of one interface has findings of the host, and the plan that removes them names that interface.
#[test]
fn a_command_is_listed_once() {
    let file = fixtures().into_iter().find(|(n, _)| n == "epyc-nps1").unwrap().1.display().to_string();
    let page = text(&run(&["check", "eth1", "--goal", "rpc", "--fail-on", "never", "--from", &file]));
    let lines: Vec<&str> = page.lines().collect();
    let fixes: Vec<&str> = lines.windows(2).filter(|l| l[0].ends_with("fixed by this:")).map(|l| l[1]).collect();
    assert_eq!(fixes, [format!("  ringwise plan eth1 --goal rpc --from {file}")], "{page}");
    assert!(page.contains("R2.03 host"), "{page}");
}

#[test]
fn statuses_and_what_is_accepted() {
    let file = capture("lab-router16-6.12");
    let check = |more: &[&str]| run(&[&["check", "--from", &file], more].concat());
    assert_eq!(check(&["--fail-on", "warning"]).status.code(), Some(3));
    assert_eq!(check(&["--fail-on", "never"]).status.code(), Some(0));
    let doc: serde_json::Value = serde_json::from_slice(&check(&["-j", "--fail-on", "never"]).stdout).unwrap();
    let found = doc["findings"].as_array().unwrap();
    let mut ids: Vec<&str> =
        found.iter().filter(|f| f["severity"] != "info").map(|f| f["rule"].as_str().unwrap()).collect();
    ids.dedup();
    assert!(!ids.is_empty());
    let baseline = temp("accepted.json");
    let b = baseline.display().to_string();
    let _ = std::fs::remove_file(&baseline);
    // Consequences of accepted findings become findings of their own, until no finding is left.
    for _ in 0..20 {
        let doc: serde_json::Value = serde_json::from_slice(
            &check(&["-j", "--fail-on", "never", "--baseline", if baseline.exists() { &b } else { "none" }]).stdout,
        )
        .unwrap();
        let mut bad = doc["findings"].as_array().unwrap().iter().filter(|f| f["severity"] != "info");
        // The first sentence is never about a finding that was accepted.
        let first = doc["first"].as_str();
        let Some(f) = bad.next() else {
            assert_eq!(first, None);
            break;
        };
        let about = f["text"].as_str().unwrap().trim_end_matches('.');
        assert!(first.is_some_and(|first| first.contains(about)), "{first:?} is not about {about}");
        let o = run(&[
            "check",
            "--accept",
            f["rule"].as_str().unwrap(),
            "--reason",
            "known",
            "--until",
            "2999-01-01",
            "--baseline",
            &b,
        ]);
        assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
    }
    let o = check(&["--fail-on", "warning", "--baseline", &b]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    assert!(text(&o).contains("ACCEPTED") && !text(&o).contains("First:"), "{}", text(&o));
    // After the expiry day it is a finding again, and the user is notified.
    let old = std::fs::read_to_string(&baseline).unwrap().replace("2999-01-01", "2020-01-01");
    std::fs::write(&baseline, old).unwrap();
    let o = check(&["--fail-on", "warning", "--baseline", &b]);
    assert_eq!(o.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&o.stderr).contains("it is a finding again"));
    std::fs::remove_file(&baseline).unwrap();
    for bad in [
        vec!["check", "--accept", "Z99", "--reason", "x", "--until", "2999-01-01", "--baseline", &b],
        vec!["check", "--explain", "Z99"],
    ] {
        assert_eq!(run(&bad).status.code(), Some(2), "{bad:?}");
    }
}

/// An acceptance that has ended already would have no effect.
#[test]
fn a_day_in_the_past_is_refused_with_the_present_day() {
    let baseline = temp("past.json");
    let b = baseline.display().to_string();
    let accept = |day: &str| run(&["check", "--accept", "Q14", "--reason", "x", "--until", day, "--baseline", &b]);
    let o = accept("2020-01-01");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!((o.status.code(), baseline.exists()), (Some(2), false), "{err}");
    let start = "error: Q14: 2020-01-01 is in the past; expected the last day of the acceptance, ";
    let today = err.strip_prefix(start).and_then(|t| t.strip_suffix(" (today) or later\n")).expect(&err);
    assert!(ringwise_check::accept::is_date(today), "{err}");
    assert_eq!(accept(today).status.code(), Some(0));
    std::fs::remove_file(&baseline).unwrap();
}

/// The command after a damaged baseline has everything that it needs, and does not fail for the same reason.
#[test]
fn a_damaged_baseline_is_moved_away_first() {
    let baseline = temp("damaged.json");
    let b = baseline.display().to_string();
    std::fs::write(&baseline, "{").unwrap();
    let file = capture("lab-router16-6.12");
    let next = |o: &std::process::Output| {
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(1), "{err}");
        err.lines().find_map(|l| l.strip_prefix("Try: ")).expect(&err).to_string()
    };
    let read = next(&run(&["check", "--from", &file, "--baseline", &b]));
    assert!(
        read.starts_with(&format!("mv {b} {b}.damaged  ")) && read.contains("--accept RULE --reason \"...\" --until ")
    );
    let accept =
        ["check", "eth1", "--accept", "Q14", "--reason", "it is known", "--until", "2999-01-01", "--baseline", &b];
    let begin = format!(
        "mv {b} {b}.damaged      (then begin a new one: ringwise check eth1 --accept Q14 --reason 'it is known' --until \
         2999-01-01 --baseline {b})"
    );
    assert_eq!(next(&run(&accept)), begin);
    std::fs::remove_file(&baseline).unwrap();
}

#[test]
fn formats() {
    let file = capture("lab-router16-6.12");
    let sarif: serde_json::Value =
        serde_json::from_slice(&run(&["check", "-o", "sarif", "--fail-on", "never", "--from", &file]).stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run0 = &sarif["runs"][0];
    let rules: Vec<&str> =
        run0["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    let results = run0["results"].as_array().unwrap();
    assert!(!results.is_empty() && results.iter().all(|r| rules.contains(&r["ruleId"].as_str().unwrap())));
    for r in results {
        let i = r["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[i], r["ruleId"]);
        assert!(["error", "warning", "note"].contains(&r["level"].as_str().unwrap()), "{r}");
        assert!(!r["message"]["text"].as_str().unwrap().is_empty(), "{r}");
        let place = &r["locations"][0];
        let file = &place["physicalLocation"]["artifactLocation"];
        let uri = file["uri"].as_str().unwrap();
        assert!(uri == "proc" || uri.starts_with("sys/class/net/"), "{uri}");
        assert!(!run0["originalUriBaseIds"][file["uriBaseId"].as_str().unwrap()].is_null(), "{r}");
        assert!(place["logicalLocations"][0]["fullyQualifiedName"].is_string(), "{r}");
    }
    let junit = text(&run(&["check", "-o", "junit", "--fail-on", "never", "--from", &file]));
    assert_eq!(junit.matches("<testcase ").count(), rules.len(), "a case for each rule");
    assert_eq!(junit.matches("<testcase ").count(), junit.matches("</testcase>").count());
    assert!(junit.contains("skipped=\"") && junit.ends_with("</testsuites>\n"));
    let page = text(&run(&["check", "--explain", "A03"]));
    assert!(page.contains("\nFix "), "{page}");
    let table = text(&run(&["check", "--capabilities", "--from", &file]));
    assert!(table.lines().any(|l| l.starts_with("XPS ") && l.contains("yes")), "{table}");
    let of =
        |feature: &str| table.lines().find(|l| l.starts_with(feature)).unwrap_or_else(|| panic!("{feature}: {table}"));
    assert!(of("several packets per doorbell").contains(" 3.18    yes "), "{table}");
    assert!(of("busy-polling NAPI threads").contains(" 6.19    no "), "{table}");
    assert!(
        of("symmetric hash").contains("unknown"),
        "unknown for igb, because it can only be found by setting one: {table}"
    );
}

/// A mistyped name does not show the findings of another interface.
#[test]
fn an_interface_that_is_not_there() {
    let o = run(&["check", "nosuch0", "--from", &capture("lab-small2-6.12")]);
    assert_eq!((o.status.code(), text(&o).as_str()), (Some(1), ""));
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(said.contains("there is no interface \"nosuch0\"; there are eth0 eth1"), "{said}");
}

/// The first line of the page, the list, the proposed explanation and the first line of `status` name the same problem.
#[test]
fn one_order_of_findings() {
    for (name, goal) in [("lab-router3-6.12", "forward"), ("lab-isolated-6.12", "balanced"), ("lab-big64-6.12", "rpc")]
    {
        let file = capture(name);
        let page = text(&run(&["check", "--goal", goal, "--fail-on", "never", "--from", &file]));
        let first = page.lines().find_map(|l| l.strip_prefix("First: ")).unwrap();
        let rule = first.split(' ').next().unwrap();
        let listed = page.lines().skip_while(|l| !["ERROR", "WARNING"].contains(l)).nth(1).unwrap();
        assert!(listed.trim_start().starts_with(&format!("{rule} ")), "{page}");
        assert!(page.contains(&format!("\nExplain it: ringwise check --explain {rule}\n")), "{page}");
    }
    let file = capture("lab-isolated-6.12");
    let page = text(&run(&["check", "--fail-on", "never", "--from", &file]));
    assert!(page.contains("\nFirst: A03 mq1: "), "{page}");
    let status = text(&run(&["--from", &file]));
    assert!(status.starts_with("Placement error: mq1 has 2 queues on a remote node, "), "{status}");
    assert!(status.lines().next().unwrap().ends_with("; also eth0 mq0"), "{status}");
}

/// What the plan of the goal writes anyway needs no `--set`, which would stay in the file of `persist`.
#[test]
fn set_is_proposed_only_for_what_the_plan_does_not_write() {
    let proposed = |name: &str, goal: &str| -> Vec<String> {
        let o = run(&["check", "--goal", goal, "-j", "--fail-on", "never", "--from", &capture(name)]);
        let page: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
        let findings = page["findings"].as_array().unwrap();
        let commands = findings.iter().filter_map(|f| f["remedy"]["command"].as_str().or(f["remedy"].as_str()));
        commands.map(str::to_string).collect()
    };
    let all = proposed("lab-router16-newest", "forward");
    assert!(all.len() > 5, "{all:?}");
    let written = |c: &&String| c.contains("rps_flow_cnt=") || c.contains("features.lro=");
    assert_eq!(all.iter().filter(written).count(), 0, "{all:?}");
    // Goal balanced leaves LRO and RFS alone.
    let all = proposed("lab-router16-newest", "balanced");
    assert!(all.iter().any(|c| c.contains("--set ")), "{all:?}");
}

/// The first line counts other interfaces by the severity that `check` reports for them.
#[test]
fn errors_and_warnings_on_other_interfaces_are_listed_apart() {
    let file = capture("lab-router16-newest");
    let status = text(&run(&["--from", &file]));
    let o = run(&["check", "-j", "--fail-on", "never", "--from", &file]);
    let page: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let misplaced = |f: &&serde_json::Value| f["rule"].as_str().is_some_and(|r| r.starts_with('A'));
    let of = |severity: &str| -> std::collections::BTreeSet<String> {
        let all = page["findings"].as_array().unwrap().iter().filter(misplaced);
        all.filter(|f| f["severity"] == severity).filter_map(|f| f["dev"].as_str()).map(str::to_string).collect()
    };
    assert!(of("error").iter().eq(["eth3", "mq3"]), "{:?}", of("error"));
    let first = status.lines().next().unwrap();
    assert!(first.starts_with("Placement error: eth3 has "), "{first}");
    assert!(first.ends_with("; also mq3; warnings on eth0 eth2 mq1 mq2"), "{first}");
}

#[test]
fn other_findings_are_mentioned_only_if_there_are_some() {
    let first = |name: &str| {
        let page = text(&run(&["check", "--fail-on", "never", "--from", &capture(name)]));
        page.lines().find(|l| l.starts_with("First: ")).unwrap().to_string()
    };
    assert!(first("article48").ends_with(" would fix this:"), "{}", first("article48"));
    assert!(first("lab-router16-newest").ends_with(" would fix this and other findings:"));
}

#[test]
fn a_directory_of_directories_with_captures_is_named() {
    let dir = temp("below");
    for host in ["a", "b"] {
        std::fs::create_dir_all(dir.join(host)).unwrap();
        std::fs::copy(capture("mlx5"), dir.join(host).join("tree.tar.gz")).unwrap();
    }
    let path = dir.display().to_string();
    for (command, from) in [("check", path.clone()), ("plan", path.clone()), ("show", format!("{path}/"))] {
        let o = run(&[command, "--from", &from]);
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(1), "{said}");
        assert!(said.contains("this one has 2 subdirectories with captures"), "{said}");
        assert!(said.contains(&format!("Other commands read one capture, such as {path}/a/tree.tar.gz\n")), "{said}");
        assert!(said.ends_with(&format!("Try: ringwise check --from {path}/*\n")), "{said}");
    }
    let config = dir.join("r.toml");
    std::fs::write(&config, "version = 1\n").unwrap();
    let o = run(&["config", "check", &config.display().to_string(), "--from", &path]);
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(1), "{said}");
    assert!(said.ends_with(&format!("Try: ringwise config check {} --from {path}/*\n", config.display())), "{said}");
    std::fs::remove_dir_all(&dir).unwrap();
}
