//! The program as users and scripts see it: exit statuses, messages, bad input. It never changes the machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::fixtures;

struct Ran {
    status: i32,
    out: String,
    err: String,
}

fn command(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    c.args(args).stdin(Stdio::null()).env("RINGWISE_STATE_DIR", empty_state());
    c
}

fn ran(o: &Output) -> Ran {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let r = Ran { status: o.status.code().unwrap_or(-1), out: text(&o.stdout), err: text(&o.stderr) };
    assert!(!r.err.contains("panicked"), "{}", r.err);
    r
}

fn run(args: &[&str]) -> Ran {
    ran(&command(args).output().unwrap())
}

fn empty_state() -> PathBuf {
    std::env::temp_dir().join(format!("ringwise-cli-none-{}", std::process::id()))
}

fn temp(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("ringwise-cli-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// 48 CPUs on two nodes, two devices.
fn article48() -> String {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == "article48").expect("fixtures/hosts/article48");
    file.display().to_string()
}

/// A wrong command line or input: its status, and words that the message must contain.
fn refused(status: i32, words: &[&str], args: &[&str]) {
    let r = run(args);
    assert_eq!(r.status, status, "{args:?}\n{}{}", r.out, r.err);
    assert_eq!(r.out, "", "{args:?} printed an answer");
    for w in words {
        assert!(r.err.contains(w), "{args:?} does not say {w:?}:\n{}", r.err);
    }
}

#[test]
fn help_version_and_usage() {
    let r = run(&["--help"]);
    assert_eq!(r.status, 0);
    for w in ["Look", "Change", "Prove", "Files", "Exit status", "--from FILE"] {
        assert!(r.out.contains(w), "{w}");
    }
    assert!(!r.out.contains("__man"));
    assert_eq!(run(&["--version"]).status, 0);
    refused(2, &["fly"], &["fly"]);
    refused(2, &["fast"], &["plan", "--goal", "fast"]);
    refused(2, &["not a CPU list", "expected e.g."], &["plan", "--cpus", "5-1"]);
    refused(2, &["empty"], &["plan", "--reserve", ""]);
    refused(2, &["0"], &["plan", "--queues", "0"]);
    refused(2, &["5x"], &["verify", "--for", "5x"]);
    refused(2, &["--from"], &["apply", "--from", "x"]);
    refused(2, &["--from"], &["--from", "x", "apply"]);
    refused(2, &["cannot be used with"], &["apply", "--plan", "f", "--goal", "rpc"]);
    for c in ["status", "show", "plan", "apply", "verify", "rollback", "history", "recover", "capture"] {
        assert_eq!(run(&[c, "--help"]).status, 0, "{c}");
    }
}

#[test]
fn every_recorded_host_can_be_shown_and_planned() {
    for (name, file) in fixtures() {
        let file = file.display().to_string();
        for args in [vec!["--from", &file], vec!["status", "--from", &file], vec!["show", "--from", &file]] {
            let r = run(&args);
            assert_eq!(r.status, 0, "{name} {args:?}\n{}", r.err);
            assert!(r.out.contains("INTERFACE") || r.out.contains("no interface"), "{name}\n{}", r.out);
        }
        for goal in ["balanced", "forward"] {
            let r = run(&["plan", "--from", &file, "--goal", goal]);
            assert!(r.status == 0 || (r.status == 1 && !r.err.is_empty()), "{name} {goal}: {}\n{}", r.status, r.err);
        }
        let doc: serde_json::Value = serde_json::from_str(&run(&["show", "-j", "--from", &file]).out).unwrap();
        for n in doc["interfaces"].as_array().unwrap() {
            let r = run(&["show", n["name"].as_str().unwrap(), "-v", "--from", &file]);
            assert_eq!(r.status, 0, "{name} {n}\n{}", r.err);
            assert!(r.out.contains("carries"), "{name}");
        }
    }
}

#[test]
fn several_devices_are_compared() {
    let r = run(&["show", "eth0", "eth1", "--from", &article48()]);
    assert_eq!(r.status, 0, "{}", r.err);
    assert!(r.out.contains("Compared: eth0 eth1") && r.out.contains("differs  driver"), "{}", r.out);
}

#[test]
fn bad_input_is_reported_with_what_is_expected() {
    let f = article48();
    refused(1, &["eth9", "eth0"], &["show", "eth9", "--from", &f]);
    refused(1, &["eth9", "eth0"], &["plan", "eth9", "--from", &f]);
    refused(1, &["--cpus", "500", "0-47"], &["plan", "--cpus", "0,500", "--from", &f]);
    refused(1, &["--exclude-cpus", "64"], &["plan", "--exclude-cpus", "64", "--from", &f]);
    refused(1, &["no CPU is left", "0-47"], &["plan", "--reserve", "0-47", "--from", &f]);
}

/// What the directory lacks is reported, not that the record is elsewhere.
#[test]
fn a_state_directory_without_a_record_is_named() {
    let (f, dir) = (article48(), temp("no-record"));
    let (empty, missing) = (dir.display().to_string(), dir.join("nonesuch").display().to_string());
    let none = format!("unknown: {empty} contains no record of a transaction\n");
    refused(1, &[&none], &["verify", "--from", &f, "--state-dir", &empty]);
    let none = format!("the state directory {missing} does not exist\n");
    refused(1, &[&none], &["verify", "--from", &f, "--state-dir", &missing]);
    refused(1, &[&none], &["history", "--state-dir", &missing]);
    assert_eq!(run(&["history", "--state-dir", &empty]).out, "No transaction yet. Next: ringwise plan\n");
    fs::remove_dir_all(&dir).unwrap();
}

fn host_fixture(name: &str) -> String {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == name).expect(name);
    file.display().to_string()
}

#[test]
fn recommended_cpus_of_an_interface_without_a_known_node_name_no_node() {
    for name in ["gve-guest", "ena-guest"] {
        let r = run(&["plan", "--goal", "latency", "--from", &host_fixture(name)]);
        assert!(r.out.contains("(12 of 16): the usable CPUs, except CPUs 8-11, which"), "{}", r.out);
        assert!(!r.out.contains("CPUs of the node"), "{}", r.out);
    }
}

/// CPUs 31 and 62 get queues of the same group; a queue of the other port gets CPU 30.
#[test]
fn moves_of_goal_mixed_name_who_gets_the_cpu() {
    let r = run(&["plan", "--goal", "mixed", "--from", &host_fixture("mlx5")]);
    for why in [
        "queue 30: the plan gives CPU 30 to a queue of enp65s0f1np1 [R0.09]",
        "queue 31: the plan gives CPU 31 to queue 30 [R0.09]",
        "queue 62: the plan gives CPU 62 to queue 31 [R0.09]",
    ] {
        assert!(r.out.contains(why), "{why}: {}", r.out);
    }
}

/// Commands proposed for a recording name that recording, those that change the host are for the host itself.
#[test]
fn proposed_commands_carry_the_recording() {
    let dir = temp("proposed");
    let file = dir.join("my host.tar.gz");
    fs::copy(article48(), &file).unwrap();
    let file = file.display().to_string();
    let from = format!(" --from '{file}'");
    let proposed = |args: &[&str]| {
        let r = run(&[args, &["--from", &file]].concat());
        let prose = ["Recommended", "Interrupts of ", "Recording: "];
        let is_prose = |l: &str| prose.iter().any(|p| l.starts_with(p));
        let lines = r.out.lines().map(str::trim).filter(|l| l.contains("ringwise ") && !is_prose(l));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    for args in [&["status"][..], &["show"], &["show", "eth0"], &["check", "--fail-on", "never"]] {
        let lines = proposed(args);
        assert!(!lines.is_empty(), "{args:?} proposes nothing");
        // Pages about rules are not about a host.
        for l in lines.iter().filter(|l| !l.contains("--explain")) {
            assert!(l.contains(&from), "{args:?}: {l}");
        }
    }
    assert_eq!(
        proposed(&["plan", "--goal", "rpc"]),
        [
            "ringwise apply --goal rpc",
            "ringwise apply --goal rpc --confirm 60s",
            "ringwise confirm",
            &format!("ringwise plan --goal rpc --out ivytown.plan{from}"),
            "ringwise apply ivytown.plan --confirm 60s",
            "To keep it over reboots, afterwards: ringwise persist",
            "Explain a rule: ringwise check --explain R0.09",
        ]
    );
    let plan = dir.join("a.plan").display().to_string();
    let apply = format!("ringwise apply {plan}");
    let on_trial = format!("{apply} --confirm 60s");
    let then = "To keep it over reboots, afterwards: ringwise persist";
    let all = [&*apply, &on_trial, "ringwise confirm", then];
    assert_eq!(proposed(&["plan", "--goal", "rpc", "--out", &plan])[..4], all);
    let _ = fs::remove_dir_all(&dir);
}

#[test]
fn an_unknown_interface_is_reported_alike_everywhere() {
    let f = article48();
    let refused = |args: &[&str]| {
        let r = run(args);
        assert_eq!((r.status, r.out.as_str()), (1, ""), "{args:?}: {}", r.err);
        r.err
    };
    let show = refused(&["show", "eth9", "--from", &f]);
    assert!(show.contains("there is no interface \"eth9\"; did you mean eth0? There are eth0 eth1"), "{show}");
    assert!(show.contains(&format!("Try: ringwise show --all --from {f}")), "{show}");
    let flow = "10.0.0.1:1234-10.0.0.2:80/tcp";
    for args in [&["plan", "eth9"][..], &["check", "eth9"], &["explain", flow, "eth9"]] {
        assert_eq!(refused(&[args, &["--from", &f]].concat()), show, "{args:?}");
    }
    let live = refused(&["show", "rwnone0"]);
    let none = empty_state().display().to_string();
    for args in [
        &["plan", "rwnone0"][..],
        &["apply", "rwnone0", "-n"],
        &["watch", "rwnone0", "--plain"],
        &["adopt", "rwnone0", "-n"],
    ] {
        let message = refused(&[&["--state-dir", &none], args].concat());
        assert!(message.contains("there is no interface \"rwnone0\"; there "), "{args:?}: {message}");
        assert_eq!(message.lines().last(), live.lines().last(), "{args:?}");
    }
}

#[test]
fn rules_are_found_as_they_are_typed() {
    let a02 = run(&["check", "--explain", "A02"]);
    assert!(a02.status == 0 && a02.out.starts_with("A02 "), "{}{}", a02.out, a02.err);
    for id in ["a2", "A2", "a02"] {
        assert_eq!(run(&["check", "--explain", id]).out, a02.out, "{id}");
    }
    refused(
        2,
        &["no rule \"A99\"", "expected an id as ringwise check shows it", "Try: ringwise help rules"],
        &["check", "--explain", "A99"],
    );
    let both = run(&["check", "--explain", "A02", "Q14"]);
    assert_eq!(both.out, format!("{}\n{}", a02.out, run(&["check", "--explain", "Q14"]).out));
    refused(2, &["no rule \"zzz\""], &["check", "--explain", "A02", "zzz"]);
    refused(2, &["no rule \"zzz\""], &["check", "--explain", "zzz"]);
}

#[test]
fn a_transaction_that_is_unknown_is_an_error_and_no_refusal() {
    let dir = temp("unknown-transaction");
    let none = dir.display().to_string();
    for args in
        [&["history", "99"][..], &["rollback", "99", "-n"], &["rollback", "99", "-y"], &["report", "--since", "99"]]
    {
        refused(1, &["there is no transaction 99"], &[&["--state-dir", &none], args].concat());
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_terminal_acts_on_no_text_from_outside() {
    let r = run(&["show", "eth9\x1b[2J\u{9b}31m\r", "--from", &article48()]);
    assert!(r.err.contains("eth9\\x1b[2J\\x9b31m\\x0d") && !r.err.contains(['\x1b', '\u{9b}', '\r']), "{:?}", r.err);
    let r = run(&["show", "eth9\x1b[2J\u{9b}31m", "--color", "always", "--from", &article48()]);
    assert!(!r.err.replace("\x1b[31m", "").replace("\x1b[0m", "").contains(['\x1b', '\u{9b}']), "{:?}", r.err);
}

#[test]
fn files_that_are_not_captures() {
    let dir = temp("captures");
    let path = |n: &str| dir.join(n).display().to_string();
    let whole = fs::read(article48()).unwrap();
    fs::write(dir.join("half.tar.gz"), &whole[..whole.len() / 2]).unwrap();
    fs::write(dir.join("text"), "hello\n").unwrap();
    fs::write(dir.join("nothing"), "").unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    for n in ["half.tar.gz", "text", "nothing", "empty", "missing"] {
        let p = path(n);
        refused(1, &[n], &["show", "--from", &p]);
        refused(1, &[n], &["plan", "--from", &p]);
        refused(1, &[n], &["--from", &p]);
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn without_a_terminal_changes_are_refused() {
    refused(6, &["not a terminal", "--yes"], &["apply"]);
    refused(2, &["rollback needs the number of a transaction", "No transaction yet"], &["rollback"]);
    refused(6, &["not a terminal"], &["rollback", "0"]);
    refused(1, &["no transaction 3"], &["rollback", "3"]);
    refused(1, &["no transaction 3"], &["rollback", "3", "--yes"]);
}

#[test]
fn plan_files_are_applied_exactly_or_refused() {
    let dir = temp("plans");
    let file = dir.join("p.plan");
    let name = file.display().to_string();
    let r = run(&["plan", "eth0", "--goal", "forward", "--from", &article48(), "--out", &name]);
    assert_eq!(r.status, 0, "{}", r.err);
    // Names and a machine id that cannot be those of this machine.
    let mut plan: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap().replace("eth0", "rwnone0")).unwrap();
    assert_eq!(plan["schema"], "ringwise.plan");
    plan["host"]["machine_id"] = serde_json::json!({"known": "00000000000000000000000000000001"});
    fs::write(&file, plan.to_string()).unwrap();
    refused(6, &[], &["apply", "--yes", "--plan", &name]);
    plan["version"] = 99.into();
    fs::write(&file, plan.to_string()).unwrap();
    refused(1, &["p.plan", "99"], &["apply", "--yes", "--plan", &name]);
    plan["schema"] = "ringwise.snapshot".into();
    fs::write(&file, plan.to_string()).unwrap();
    refused(1, &["p.plan", "ringwise.snapshot", "ringwise.plan"], &["apply", "--yes", "--plan", &name]);
    fs::write(&file, "{\"schema\":").unwrap();
    refused(1, &["p.plan", "not a plan"], &["apply", "--yes", "--plan", &name]);
    refused(1, &["missing"], &["apply", "--yes", "--plan", &dir.join("missing").display().to_string()]);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn status_three_only_with_exit_code() {
    let f = article48();
    assert_eq!(run(&["plan", "eth0", "--goal", "forward", "--from", &f]).status, 0);
    assert_eq!(run(&["plan", "eth0", "--goal", "forward", "--from", &f, "--exit-code"]).status, 3);
    // What was requested but is skipped, because it interrupts traffic, is not as requested.
    let f =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/lab-small2-6.12/capture.tar.gz");
    let rings = ["plan", "eth0", "--set", "eth0.rings.rx=128", "--from", f.to_str().unwrap()];
    let r = run(&[&rings[..], &["--exit-code"]].concat());
    assert!(r.out.contains("Requested but not planned"), "{}", r.out);
    assert_eq!((r.status, run(&rings).status), (3, 0));
}

/// Two interrupts of eth0 are set to their CPUs and have not moved there yet: no other command has a finding about them.
#[test]
fn the_first_page_does_not_count_interrupts_that_are_about_to_move() {
    let f =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/lab-small2-6.12/capture.tar.gz");
    let r = run(&["--from", f.to_str().unwrap()]);
    assert!(r.out.starts_with("Interrupts of 2 interfaces: none on a remote or isolated CPU"), "{}", r.out);
    assert!(!r.out.contains("queues on CPU"), "{}", r.out);
    let r = run(&["show", "eth0", "--from", f.to_str().unwrap()]);
    assert!(r.out.contains("rx-0 (set to CPU 0, now on CPU 1)"), "{}", r.out);
}

#[test]
fn formats_of_a_plan() {
    let f = article48();
    let base = ["plan", "eth0", "--goal", "forward", "--from", &f];
    let with = |more: &[&str]| run(&[&base[..], more].concat());
    let diff = with(&["-o", "diff"]);
    assert!(diff.out.starts_with("--- now\n+++ planned\n@@ "), "{}", diff.out);
    let json: serde_json::Value = serde_json::from_str(&with(&["-j"]).out).unwrap();
    let changed = diff.out.lines().filter(|l| l.starts_with('+') && !l.starts_with("+++")).count();
    assert_eq!(changed, json["steps"].as_array().unwrap().len());
    let dir = temp("sh");
    let script = dir.join("plan.sh");
    let r = with(&["-o", "sh"]);
    assert_eq!(r.status, 0, "{}", r.err);
    fs::write(&script, &r.out).unwrap();
    let checked = Command::new("sh").arg("-n").arg(&script).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn works_without_other_programs_and_without_a_state() {
    for args in [vec!["status"], vec!["show"], vec!["verify"], vec!["history"], vec!["recover"]] {
        let r =
            ran(&command(&args).env_clear().env("PATH", "").env("RINGWISE_STATE_DIR", empty_state()).output().unwrap());
        assert_eq!(r.status, 0, "{args:?} {}{}", r.out, r.err);
    }
    assert!(!empty_state().exists(), "reading made a state directory");
    refused(1, &["no transaction 7"], &["history", "7"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let f = article48();
    for args in [vec!["show", "-j", "--from", &f], vec!["--help"], vec!["plan", "--from", &f]] {
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let r = ran(&child.wait_with_output().unwrap());
        assert_eq!((r.status, r.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn colour_and_marks() {
    let f = article48();
    let args = ["show", "eth0", "--from", &f];
    let plain = |c: &mut Command| ran(&c.env("LC_ALL", "C.UTF-8").output().unwrap()).out;
    assert!(!plain(&mut command(&args)).contains('\x1b'));
    assert!(plain(command(&args).arg("--color=always")).contains('\x1b'));
    assert!(plain(&mut command(&args)).contains('×'));
    assert!(plain(command(&args).arg("--ascii")).is_ascii());
    assert!(ran(&command(&args).env("LC_ALL", "C").output().unwrap()).out.is_ascii());
}

#[test]
fn capture_writes_once_and_can_be_read_back() {
    let dir = temp("capture");
    let file = dir.join("here.tar.gz").display().to_string();
    let r = run(&["capture", &file, "--redact"]);
    assert_eq!(r.status, 0, "{}", r.err);
    assert!(r.out.contains("Next: ringwise show --from"), "{}", r.out);
    refused(1, &["exists"], &["capture", &file]);
    let live: serde_json::Value = serde_json::from_str(&run(&["show", "-j"]).out).unwrap();
    let back: serde_json::Value = serde_json::from_str(&run(&["show", "-j", "--from", &file]).out).unwrap();
    for part in ["/topology", "/interfaces/0/queues/0/rx/irq/asked"] {
        assert_eq!(live.pointer(part), back.pointer(part), "{part}");
    }
    let nowhere = dir.join("none/here.tar.gz").display().to_string();
    refused(1, &["none/here.tar.gz"], &["capture", &nowhere]);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn man_pages_and_completions() {
    let dir = temp("man");
    assert_eq!(run(&["__man", &dir.display().to_string()]).status, 0);
    let mut names: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert!(names.contains(&"ringwise.8".into()) && names.contains(&"ringwise-apply.8".into()), "{names:?}");
    let apply = fs::read_to_string(dir.join("ringwise-apply.8")).unwrap();
    assert!(apply.contains("allow\\-disruption"), "{apply}");
    // Every page that a page names exists, also those of subcommands.
    for page in &names {
        let text = fs::read_to_string(dir.join(page)).unwrap().replace('\\', "");
        let words = text.split([' ', ',', '\n']).filter_map(|w| w.strip_suffix("(8)"));
        for other in words.filter(|w| w.starts_with("ringwise-")) {
            let there = names.contains(&format!("{other}.8")) || other.ends_with("-help");
            assert!(there, "{page} names {other}");
        }
    }
    let rr = fs::read_to_string(dir.join("ringwise-bench-rr.8")).unwrap().replace('\\', "");
    assert!(rr.contains("ringwise bench rr") && rr.contains("--calibrate"), "{rr}");
    fs::remove_dir_all(dir).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let r = run(&["__completions", shell]);
        assert!(r.status == 0 && r.out.contains("rollback"), "{shell}");
    }
}

#[test]
fn what_was_requested_and_is_left_out_comes_first_with_its_command() {
    let from = "../../fixtures/hosts/lab-router16-6.12/capture.tar.gz";
    let r = run(&["plan", "eth0", "--queues", "4", "--from", from]);
    let mut lines = r.out.lines();
    let first = lines.next().unwrap_or_default();
    assert!(first.starts_with("Requested but not planned because it interrupts traffic"), "{}", r.out);
    let command = format!("\n      ringwise plan eth0 --queues 4 --allow-disruption --from {from}\n");
    assert!(r.out.contains(&command), "{}", r.out);
    // Changes of the goal that would interrupt traffic are listed after the plan.
    let goal = run(&["plan", "mq0", "--goal", "stream", "--from", from]).out;
    assert!(goal.starts_with("Plan for") && goal.contains("Skipped because it interrupts traffic"), "{goal}");
}
