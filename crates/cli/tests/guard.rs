//! The guard as a real process, without root: the settings that it would restore have their values already.

use std::fs::{self, File};
use std::io::BufRead;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ringwise_apply::{Armed, Guardian, Job, OpenLock, Process};
use ringwise_cli::args::command;
use ringwise_sys::host_lock::{Attempt, take};
use ringwise_testkit::skipped;
use serde_json::{Value, json};

use crate::common::newest_schema;
use crate::common::schema::check;

const RINGWISE: &str = env!("CARGO_BIN_EXE_ringwise");

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-guard-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir.canonicalize().unwrap())
    }

    fn lock(&self) -> File {
        let f = File::create(self.0.join("lock")).unwrap();
        f.try_lock().unwrap();
        f
    }

    fn is_locked(&self) -> bool {
        File::open(self.0.join("lock")).unwrap().try_lock().is_err()
    }

    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.0.join("tx-0001.jsonl")).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// A transaction without settings to put back. `seconds`: it is applied and on trial for this long.
    fn journal(&self, seconds: Option<i64>) {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_string();
        let head = json!({
            "record": "begin", "format": 1, "tool": "0.1.0", "transaction": 1, "kind": "apply", "machine_id": null,
            "boot_id": boot, "kernel": null, "unix_time": 1, "title": "test", "reason": null, "who": "anna",
            "command": "ringwise apply", "devices": [], "steps": [], "start": [], "undo": [],
        });
        let end = json!({ "record": "end", "after": [], "outcome": {
            "schema": "ringwise.outcome", "version": 1, "verdict": "applied", "transaction": 1, "changed": true,
            "applied": [], "already_so": [], "pending": [], "adjusted_by_driver": [], "refused": [], "ignored": [],
            "side_effects": [], "put_back": [], "put_back_incomplete": [], "verified": 0, "verified_of": 0,
            "notes": [], "took_ms": 1,
        }});
        let mut text = format!("{head}\n");
        if let Some(seconds) = seconds {
            let up: f64 = fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
            let mut trial = json!({
                "ms": seconds.abs() * 1000, "until_boot_ms": ((up * 1000.0) as i64 + seconds * 1000).max(1),
                "until_unix": 1,
                "boot_id": boot, "who": "anna",
            });
            fs::write(self.0.join("trial-0001.json"), trial.to_string()).unwrap();
            trial["record"] = json!("trial");
            text.push_str(&format!("{trial}\n{end}\n"));
        }
        fs::write(self.0.join("tx-0001.jsonl"), text).unwrap();
    }

    fn ringwise(&self, args: &[&str]) -> Output {
        let mut c = Command::new(RINGWISE);
        c.args(args).arg("--state-dir").arg(&self.0).output().unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn job<'a>(dir: &'a Dir, lock: &'a File, socket: Option<&'a OwnedFd>) -> Job<'a> {
    let lock = OpenLock { file: lock.as_fd(), socket: socket.map(AsFd::as_fd) };
    Job { dir: &dir.0, lock, transaction: 1 }
}

fn arm(dir: &Dir, lock: &File) -> Box<dyn Armed> {
    let run = dir.0.join("run");
    let process = Process { program: RINGWISE.into(), copies_only: true, run, ..Process::default() };
    process.arm(&job(dir, lock, None)).unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes that run the copy of the program in this directory.
fn guards(dir: &Path) -> Vec<u32> {
    processes(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|p| p.starts_with(dir)))
}

fn processes(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| wanted(*pid)).collect()
}

fn stat(pid: u32, field: usize) -> u32 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit(") ").next().unwrap().split(' ').nth(field - 3).unwrap().parse().unwrap()
}

#[test]
fn it_runs_outside_of_the_session_and_ends_on_request() {
    let dir = Dir::new("done");
    let lock = dir.lock();
    let mut armed = arm(&dir, &lock);
    assert!(armed.is_there());
    let pids = guards(&dir.0);
    assert_eq!(pids.len(), 1, "{pids:?}");
    // The guard is not our child, not in our session or process group, and keeps only the lock of our files open.
    let (me, it) = (std::process::id(), pids[0]);
    assert_ne!(stat(it, 4), me);
    assert!(stat(it, 5) != stat(me, 5) && stat(it, 6) != stat(me, 6));
    let open = fs::read_dir(format!("/proc/{it}/fd")).unwrap().flatten().filter_map(|e| fs::read_link(e.path()).ok());
    let open: Vec<_> = open.filter(|p| p.is_absolute() && !p.starts_with("/dev") && !p.starts_with("/proc")).collect();
    assert!(open.iter().all(|p| *p == dir.0.join("lock")) && !open.is_empty(), "{open:?}");
    assert!(dir.0.join("guard-0001").exists());
    let status = |name: &str| {
        let text = fs::read_to_string(format!("/proc/{it}/status")).unwrap();
        text.lines().find_map(|l| l.strip_prefix(name).map(|v| v.trim().to_string())).unwrap()
    };
    assert_eq!(status("Name:"), "guard-0001");
    const CAP_IPC_LOCK: u32 = 14;
    if u64::from_str_radix(&status("CapEff:"), 16).unwrap() >> CAP_IPC_LOCK & 1 == 1 {
        assert_ne!(status("VmLck:"), "0 kB", "its program stays in memory");
    }
    drop(lock);
    assert!(dir.is_locked(), "it shares the lock");
    armed.done(false).unwrap();
    until("the lock", || !dir.is_locked());
    until("the process", || guards(&dir.0).is_empty());
    assert!(!dir.0.join("guard-0001").exists());
}

/// Guards of this state directory, by their command lines.
fn guards_of(dir: &Path) -> Vec<u32> {
    processes(|pid| {
        let args = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        args.contains("__guard") && args.contains(dir.to_str().unwrap()) && !args.contains("--detach\0")
    })
}

/// Starts the guard of transaction 1 ahead. `None`: the test is skipped.
fn starts_ahead(test: &str, dir: &Dir) -> Option<Process> {
    let process = Process { program: RINGWISE.into(), run: dir.0.join("run"), ..Process::default() };
    process.prepare(&dir.0, 1);
    if !process.ahead.is_started() {
        skipped(test, "the program is not on the file system of /");
        return None;
    }
    until("its start", || guards_of(&dir.0).len() == 1);
    Some(process)
}

#[test]
fn a_guard_that_was_started_ahead_takes_the_lock_and_stays() {
    let dir = Dir::new("ahead");
    let Some(process) = starts_ahead("a_guard_that_was_started_ahead_takes_the_lock_and_stays", &dir) else { return };
    let pids = guards_of(&dir.0);
    let lock = dir.lock();
    let mut armed = process.arm(&job(&dir, &lock, None)).unwrap();
    assert!(armed.is_there() && !process.ahead.is_started());
    assert_eq!(guards_of(&dir.0), pids, "no other guard was started");
    drop(lock);
    assert!(dir.is_locked(), "it shares the lock");
    let files = || fs::read_dir(&dir.0).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
    assert_eq!(files(), ["lock"]);
    armed.done(false).unwrap();
    until("the lock", || !dir.is_locked());
}

#[test]
fn a_guard_that_was_started_ahead_and_is_not_needed_ends() {
    let dir = Dir::new("not-needed");
    let Some(process) = starts_ahead("a_guard_that_was_started_ahead_and_is_not_needed_ends", &dir) else { return };
    // The transaction does not take place.
    process.release();
    until("its end", || guards_of(&dir.0).is_empty());
    // Another process has used the number: the guard of the next transaction is started as always.
    process.prepare(&dir.0, 7);
    assert!(process.ahead.is_started());
    let lock = dir.lock();
    let mut armed = process.arm(&job(&dir, &lock, None)).unwrap();
    assert!(armed.is_there());
    let of_transaction =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("--transaction\x001\0");
    until("the end of the other one", || matches!(guards_of(&dir.0)[..], [pid] if of_transaction(&pid)));
    armed.done(false).unwrap();
    until("its end", || guards_of(&dir.0).is_empty());
    assert!(!dir.0.join("ahead.sock").exists());
}

/// A process that changes this host with another state directory finds the host locked, whichever process holds the
/// lock.
#[test]
fn it_shares_the_lock_of_the_network_namespace() {
    let dir = Dir::new("socket");
    let lock = dir.lock();
    let name = format!("ringwise-test-guard-{}", std::process::id());
    let held = || matches!(take(&name).unwrap(), Attempt::Held { .. });
    let Attempt::Taken { socket: Some(socket), .. } = take(&name).unwrap() else { panic!("held") };
    let process = Process { program: RINGWISE.into(), ..Process::default() };
    let mut armed = process.arm(&job(&dir, &lock, Some(&socket))).unwrap();
    drop((socket, lock));
    assert!(held() && dir.is_locked());
    let left: Vec<_> = fs::read_dir(&dir.0).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|n| n.to_str().is_some_and(|n| !n.ends_with(".sock"))), "{left:?}");
    armed.done(false).unwrap();
    until("the socket", || !held());
}

/// Two processes with two state directories, in two mount namespaces and one network namespace other than the host's.
#[test]
fn another_mount_namespace_is_no_way_around_the_lock() {
    let unshare =
        |args: &[&str]| Command::new("unshare").args(args).arg("true").output().is_ok_and(|o| o.status.success());
    if !(unshare(&["--net"]) && unshare(&["--mount"])) {
        return skipped("another_mount_namespace_is_no_way_around_the_lock", "no right to make namespaces");
    }
    let (here, there) = (Dir::new("mount-a"), Dir::new("mount-b"));
    here.journal(Some(3600));
    there.journal(None);
    let script = r#"
        "$0" __guard --transaction 1 --socket @ringwise-unused --state-dir "$1" & guard=$!
        while ! grep -q '@ringwise-lock-0$' /proc/net/unix; do kill -0 $guard || exit 9; sleep 0.05; done
        recover() { unshare --mount "$0" recover --yes --state-dir "$1"; echo "status $?"; }
        recover "$2"
        "$0" confirm --state-dir "$1" && wait $guard && recover "$2""#;
    let mut c = Command::new("unshare");
    c.args(["--net", "sh", "-c", script, RINGWISE]).args([&here.0, &there.0]);
    let o = c.output().unwrap();
    let (out, err) = (String::from_utf8(o.stdout).unwrap(), String::from_utf8(o.stderr).unwrap());
    let statuses: Vec<&str> = out.lines().filter(|l| l.starts_with("status")).collect();
    assert_eq!(statuses, ["status 6", "status 0"], "{out}{err}");
    assert!(err.contains("another ringwise, which has another state directory"), "{err}");
    assert!(err.contains("user 0, socket @ringwise-lock-0"), "{err}");
    assert_eq!(there.records().last().unwrap()["outcome"]["verdict"], "recovered");
}

#[test]
fn it_ends_what_a_dead_applier_has_left() {
    let dir = Dir::new("died");
    let lock = dir.lock();
    dir.journal(None);
    let armed = arm(&dir, &lock);
    drop(lock);
    drop(armed);
    until("the end", || !dir.is_locked());
    let end = dir.records().pop().unwrap();
    assert_eq!((&end["record"], &end["outcome"]["verdict"]), (&json!("end"), &json!("put_back")));
    let words = end["outcome"]["failed"]["words"].as_str().unwrap();
    assert!(words.contains(&format!("({}) died", std::process::id())), "{words}");
    let history = dir.ringwise(&["history", "-j"]);
    let doc: Value = serde_json::from_slice(&history.stdout).unwrap();
    assert_eq!(doc["transactions"][0]["ending"], "put_back");
}

#[test]
fn a_trial_is_confirmed_from_outside() {
    let dir = Dir::new("confirm");
    let lock = dir.lock();
    let o = dir.ringwise(&["confirm"]);
    assert_eq!(o.status.code(), Some(6), "{o:?}");
    let mut armed = arm(&dir, &lock);
    dir.journal(Some(3600));
    armed.done(true).unwrap();
    drop((lock, armed));
    assert!(dir.is_locked());
    let v = dir.ringwise(&["verify", "-j"]);
    let doc: Value = serde_json::from_slice(&v.stdout).unwrap();
    assert_eq!(
        (v.status.code(), &doc["trial"]["transaction"], &doc["trial"]["who"]),
        (Some(3), &json!(1), &json!("anna"))
    );
    until("the note of the guard", || {
        let doc: Value = serde_json::from_slice(&dir.ringwise(&["verify", "-j"]).stdout).unwrap();
        doc["trial"]["guard"]["transaction"] == 1 && doc["trial"]["guard"]["pid"] == guards(&dir.0)[0]
    });
    let text = String::from_utf8(dir.ringwise(&["history"]).stdout).unwrap();
    assert!(text.contains("on trial: ringwise confirm"), "{text}");
    let reasons = |args: &[&str]| {
        let doc: Value = serde_json::from_slice(&dir.ringwise(args).stdout).unwrap();
        doc.pointer("/verify/attention").unwrap_or(&doc["attention"]).clone()
    };
    let pending = json!(["trial_pending"]);
    assert_eq!(
        (reasons(&["verify", "-j"]), reasons(&["status", "-j"])),
        (pending.clone(), pending),
        "and nothing else"
    );
    let o = dir.ringwise(&["confirm"]);
    assert_eq!(o.status.code(), Some(0), "{o:?}");
    assert_eq!(String::from_utf8(o.stdout).unwrap(), "Transaction 1 is kept. Undo: ringwise rollback 1\n");
    assert!(!dir.is_locked(), "confirm waits until the guard has let go");
    let o = dir.ringwise(&["confirm", "-j"]);
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((o.status.code(), &doc["already_confirmed"]), (Some(0), &json!(true)));
    let wrong = check(&newest_schema("ringwise.outcome"), &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(dir.ringwise(&["verify"]).status.code(), Some(0));
    assert_eq!(reasons(&["verify", "-j"]), json!([]));
}

#[test]
fn a_trial_that_is_not_confirmed_in_time() {
    let dir = Dir::new("late");
    let lock = dir.lock();
    let mut armed = arm(&dir, &lock);
    dir.journal(Some(1));
    armed.done(true).unwrap();
    drop((lock, armed));
    until("the end", || !dir.is_locked());
    let o = dir.ringwise(&["confirm"]);
    assert_eq!(o.status.code(), Some(4), "{o:?}");
    assert!(String::from_utf8(o.stderr).unwrap().contains("too late: transaction 1 is undone by timer"));
    let text = String::from_utf8(dir.ringwise(&["history"]).stdout).unwrap();
    assert!(text.contains("undone by timer"), "{text}");
}

#[test]
fn killed_and_started_again_it_goes_on() {
    let dir = Dir::new("again");
    let lock = dir.lock();
    let mut armed = arm(&dir, &lock);
    dir.journal(Some(3600));
    armed.done(true).unwrap();
    drop((lock, armed));
    let pids = guards(&dir.0);
    let killed = Command::new("/bin/kill").arg("-9").arg(pids[0].to_string()).status().unwrap();
    assert!(killed.success());
    until("the lock", || !dir.is_locked());
    let v: Value = serde_json::from_slice(&dir.ringwise(&["verify", "-j"]).stdout).unwrap();
    assert!(v["trial"].is_object() && v["trial"]["guard"].is_null(), "{v}");
    // Started as systemd would start it; the applying process does not listen any more.
    let mut again = Command::new(RINGWISE);
    again.args(["__guard", "--transaction", "1", "--socket", "ringwise-unused", "--state-dir"]).arg(&dir.0);
    let mut again = again.spawn().unwrap();
    until("the lock", || dir.is_locked());
    let o = dir.ringwise(&["confirm", "-j"]);
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((o.status.code(), &doc["already_confirmed"]), (Some(0), &json!(false)));
    assert!(again.wait().unwrap().success());
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("/bin/kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap().success());
}

#[test]
fn a_guard_that_does_not_answer_is_named() {
    let dir = Dir::new("stopped");
    let lock = dir.lock();
    let mut armed = arm(&dir, &lock);
    dir.journal(Some(3600));
    armed.done(true).unwrap();
    drop((lock, armed));
    let pid = guards(&dir.0)[0];
    until("the note of the guard", || fs::read_to_string(dir.0.join("lock")).unwrap().starts_with(&pid.to_string()));
    signal("STOP", pid);
    let text = |o: &Output| String::from_utf8_lossy(&[o.stdout.clone(), o.stderr.clone()].concat()).into_owned();
    // The deadline passes, and the guard does not react.
    dir.journal(Some(-60));
    let o = dir.ringwise(&[]);
    assert!(o.status.code() == Some(3) && text(&o).contains("OVERDUE"), "{o:?}");
    assert!(text(&o).contains(&format!("its guard (process {pid}) does not roll it back")), "{o:?}");
    let doc: Value = serde_json::from_slice(&dir.ringwise(&["-j"]).stdout).unwrap();
    assert!(doc["overdue_s"].as_u64().is_some_and(|s| s >= 60), "{}", doc["overdue_s"]);
    // A guard that restores has two minutes.
    if ringwise_testkit::lane::everything() {
        let o = dir.ringwise(&["confirm"]);
        assert_eq!(o.status.code(), Some(3), "{o:?}");
        assert!(
            text(&o).contains("too late") && text(&o).contains(&format!("kill -9 {pid}, then ringwise recover")),
            "{o:?}"
        );
    }
    // A confirmation in time keeps the changes, whatever the guard does.
    dir.journal(Some(3600));
    let o = dir.ringwise(&["confirm"]);
    assert_eq!(o.status.code(), Some(3), "{o:?}");
    let said = format!("transaction 1 is kept, but its guard (process {pid}) does not answer");
    assert!(text(&o).contains(&said), "{o:?}");
    signal("CONT", pid);
    until("the lock", || !dir.is_locked());
    let o = dir.ringwise(&["confirm"]);
    assert!(o.status.success() && text(&o).contains("was confirmed before"), "{o:?}");
}

const SILENCE: Duration = Duration::from_secs(5);

/// Runs with a guard until the guard is gone; returns the outcome.
#[test]
#[ignore = "the process that the next test stops"]
fn applier() {
    let Some(dir) = std::env::var_os("RINGWISE_TEST_DIR") else { return };
    let dir = std::mem::ManuallyDrop::new(Dir(dir.into()));
    let lock = dir.lock();
    let run = dir.0.join("run");
    let process = Process { program: RINGWISE.into(), copies_only: true, run, silence: SILENCE, ..Process::default() };
    let mut armed = process.arm(&job(&dir, &lock, None)).unwrap();
    armed.begun().unwrap();
    let sign = armed.sign_of_life().unwrap();
    println!("\nat work");
    while armed.is_there() {
        sign();
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("\n{:?}", armed.lost());
}

#[test]
fn an_applier_that_is_stopped_loses_the_transaction_to_its_guard() {
    let dir = Dir::new("hangs");
    dir.journal(None);
    let mut c = Command::new(std::env::current_exe().unwrap());
    c.args(["--exact", "guard::applier", "--ignored", "--nocapture"]).env("RINGWISE_TEST_DIR", &dir.0);
    let mut child = c.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|l| l == "at work"), "it has a guard");
    // The run takes longer than the limit, but the guard receives signs of life.
    std::thread::sleep(SILENCE * 2);
    assert_eq!(dir.records().len(), 1, "{:?}", dir.records());
    signal("STOP", child.id());
    until("the guard to put back", || {
        let text = fs::read_to_string(dir.0.join("tx-0001.jsonl")).unwrap();
        let last = text.lines().last().and_then(|l| serde_json::from_str::<Value>(l).ok());
        last.is_some_and(|r| r["record"] == "end")
    });
    let words = format!("the process that applied it ({}) has been stopped for 5 s", child.id());
    let (records, end) = (dir.records(), dir.records().pop().unwrap());
    assert!(records[1]["record"] == "taken_over" && records[1]["why"] == words.as_str(), "{records:?}");
    assert_eq!(end["outcome"]["verdict"], "put_back");
    assert_eq!(end["outcome"]["failed"]["words"], words.as_str());
    until("the guard to leave", || guards(&dir.0).is_empty());
    // The guard still holds the lock, and the lock file names it.
    assert!(dir.is_locked());
    let holder = fs::read_to_string(dir.0.join("lock")).unwrap();
    assert!(holder.starts_with(&format!("{}\n", child.id())), "{holder}");
    signal("CONT", child.id());
    assert!(lines.any(|l| l == "TookOver"), "it learns of that");
    assert!(child.wait().unwrap().success());
    assert!(!dir.is_locked());
}

#[test]
fn without_a_guard_a_trial_that_is_over_is_for_recover() {
    let dir = Dir::new("overdue");
    drop(dir.lock());
    dir.journal(Some(-60));
    let o = dir.ringwise(&["confirm"]);
    assert_eq!(o.status.code(), Some(6), "{o:?}");
    let text = String::from_utf8(o.stderr).unwrap();
    assert!(text.contains("its guard is gone") && text.contains("Try: ringwise recover"), "{text}");
    let page = String::from_utf8(dir.ringwise(&[]).stdout).unwrap();
    assert!(page.contains("OVERDUE") && page.contains("Next: ringwise recover"), "{page}");
}

#[test]
fn a_guard_that_cannot_be_started_is_reported() {
    let dir = Dir::new("none");
    let lock = dir.lock();
    let process = Process { program: "/nonesuch/ringwise".into(), run: dir.0.join("run"), ..Process::default() };
    let e = process.arm(&job(&dir, &lock, None)).err().unwrap().to_string();
    assert!(e.contains("executed neither from a file") && e.contains("No such file"), "{e}");
    // A program that starts but does not act as a guard.
    let bound = Duration::from_secs(2);
    let process =
        Process { program: "/bin/true".into(), copies_only: true, run: dir.0.join("run"), bound, ..Process::default() };
    let e = process.arm(&job(&dir, &lock, None)).err().unwrap().to_string();
    assert!(e.contains("did not report"), "{e}");
    assert!(!dir.0.join("guard-0001").exists());
}

#[test]
fn the_help_names_what_there_is() {
    let apply = command().find_subcommand_mut("apply").unwrap().render_long_help().to_string();
    assert!(apply.contains("--confirm <TIME>") && apply.contains("--health <CMD>"), "{apply}");
    assert!(!command().render_help().to_string().contains("__guard"));
}
