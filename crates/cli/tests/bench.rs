//! `ringwise bench` from end to end, without root: on loopback, and no setting is changed. Loads are small and paced. The
//! tests look at output, counts and files, not at the speed of this machine.

use crate::common;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::root;
use clap::{Args, FromArgMatches};
use ringwise_bench::file::{Results, read};
use ringwise_bench::result::{Limit, Phase, Unit};
use ringwise_cli::args::{self, BenchCmd, Cli, Cmd, IntentArgs};
use ringwise_testkit::dir::Dir;
use serde_json::Value;

fn ringwise(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    c.args(args).stdin(Stdio::null()).env("NO_COLOR", "1");
    c
}

pub(crate) struct Ran {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

fn run(args: &[&str]) -> Ran {
    let o = ringwise(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let r = Ran { status: o.status.code(), out: text(&o.stdout), err: text(&o.stderr) };
    assert!(!r.err.contains("panicked"), "{}", r.err);
    r
}

/// A `bench serve` process.
pub(crate) struct Far {
    child: Child,
    pub at: String,
    /// Its further output.
    err: BufReader<std::process::ChildStderr>,
}

impl Far {
    pub(crate) fn start(more: &[&str]) -> Self {
        let mut args = vec!["bench", "serve", "--listen", "127.0.0.1:0"];
        args.extend(more);
        let mut child = ringwise(&args).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("ringwise: listening on ").unwrap_or_else(|| panic!("{line:?}")).to_string();
        assert!(!at.ends_with(":0"), "{at}");
        Self { child, at, err }
    }

    /// Ends it with SIGTERM; returns its status and its messages.
    fn end(mut self) -> (Option<i32>, String) {
        ringwise_sys::pty::signal(self.child.id(), 15);
        let mut said = String::new();
        self.err.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two short paced trials after a calibration. Options in `more` come first.
pub(crate) fn short(what: &[&str], far: &str, file: &str, more: &[&str]) -> Ran {
    let mut args = vec!["bench"];
    args.extend(what);
    args.extend(["lo", "--address", "127.0.0.1", "--peer", far, "--threads", "1", "--pairs", "2", "--calibrate", "1"]);
    args.extend(["--trial", "300ms", "--warm", "100ms", "--seed", "1", "--results", file]);
    args.extend(more);
    run(&args)
}

fn results(file: &str) -> Results {
    read(file, &std::fs::read_to_string(file).unwrap()).unwrap()
}

fn path(dir: &Dir, name: &str) -> String {
    dir.0.join(name).display().to_string()
}

/// Joins the lines, for phrases that a page breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_session_its_file_its_text_and_its_page() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let (file, page) = (path(&dir, "a.jsonl"), path(&dir, "a.html"));
    let r = short(&["rr", "--size", "64", "--rate", "500"], &far.at, &file, &["--html", &page, "--title", "a <title>"]);
    assert_eq!(r.status, Some(0), "{}{}", r.out, r.err);
    let said = flat(&r.out);
    assert!(said.contains("not a NIC: lo is software") && said.contains("nothing was compared"), "{}", r.out);
    assert!(r.err.contains("1 state, 1 point, 2 blocks: 4 trials of 0.4 s, at least 2 s"), "{}", r.err);
    let done = results(&file);
    assert!(done.notes.is_empty(), "{:?}", done.notes);
    let end = done.end.as_ref().unwrap();
    assert!(end.restored && end.notes.is_empty(), "{end:?}");
    let phases: Vec<Phase> = done.trials.iter().map(|t| t.phase).collect();
    assert_eq!(phases, [Phase::Calibration, Phase::Calibration, Phase::Measure, Phase::Measure]);
    for t in &done.trials {
        let [l] = t.loads.as_slice() else { panic!("{:?}", t.loads) };
        let latency = l.latency.as_ref().unwrap();
        assert_eq!((l.unit, latency.open_loop, l.offered_per_s), (Unit::Transactions, true, Some(500.0)));
        assert!(latency.count > 0 && t.seconds >= 0.3, "{t:?}");
        assert!(latency.p50_us <= latency.p99_us && latency.p99_us <= latency.max_us, "{latency:?}");
        assert!(!t.host.cpus.is_empty() && t.host.received_per_s.unwrap() > 0.0, "{:?}", t.host);
    }
    // A busy machine may stop the process for a whole trial.
    assert!(done.trials.iter().flat_map(|t| &t.loads).any(|l| l.done_per_s > 0.0), "{:?}", done.trials);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("a &lt;title&gt;") && html.contains("not a NIC"), "{page}");

    // An existing file is not overwritten.
    let before = std::fs::read(&file).unwrap();
    let r = short(&["rr"], &far.at, &file, &[]);
    assert_eq!(r.status, Some(1), "{}", r.err);
    assert!(r.err.contains(&format!("{file} already exists")), "{}", r.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);

    // The same again from the file, figures included; a document for programs.
    let figures = path(&dir, "figures");
    let again = run(&["bench", "report", &file, "--svg", &figures]);
    assert_eq!((again.status, flat(&again.out)), (Some(0), said));
    let list: Vec<_> = std::fs::read_dir(&figures).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(list.iter().all(|p| std::fs::read_to_string(p).unwrap().starts_with("<svg")), "{list:?}");
    let r = run(&["bench", "report", &file, "-o", "json"]);
    let doc: Value = serde_json::from_str(&r.out).unwrap();
    let schema = std::fs::read(root().join("schemas/ringwise.bench-report.v1.json")).unwrap();
    let wrong = common::schema::check(&serde_json::from_slice(&schema).unwrap(), &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((doc["trials"].as_array().unwrap().len(), &doc["end"]["restored"]), (4, &Value::from(true)));
    assert_eq!((&doc["schema"], &doc["session"]["workload"]), (&"ringwise.bench-report".into(), &"rr".into()));

    // The server reports connections and their end, and exits cleanly.
    let (status, said) = far.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("connected") && said.contains("everything is stopped"), "{said}");
}

/// The command leaves no unrequested file in the current directory.
#[test]
fn unnamed_results_are_in_the_state_directory() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let (here, state) = (dir.0.join("here"), path(&dir, "state"));
    std::fs::create_dir(&here).unwrap();
    let args =
        ["--state-dir", &state, "bench", "rr", "lo", "--address", "127.0.0.1", "--peer", &far.at, "--threads", "1"];
    let more = ["--pairs", "1", "--calibrate", "1", "--trial", "300ms", "--warm", "100ms", "--rate", "200"];
    let o = ringwise(&[&args[..], &more[..]].concat()).current_dir(&here).output().unwrap();
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(0), "{err}");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "unrequested files in the current directory");
    let said = err
        .lines()
        .find_map(|l| l.strip_prefix("ringwise: results are written to "))
        .unwrap_or_else(|| panic!("{err}"));
    assert!(said.starts_with(&format!("{state}/bench/")) && said.ends_with(".jsonl"), "{said}");
    assert!(results(said).end.is_some() && Path::new(said).with_extension("capture.tar").exists());
}

/// The port that the kernel chose is the answer, also with `-q`.
#[test]
fn serve_prints_its_port_on_stdout() {
    let mut child = ringwise(&["bench", "serve", "-q", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("127.0.0.1:").and_then(|p| p.parse::<u16>().ok());
    assert!(port.is_some_and(|p| p > 0), "{line:?}");
    ringwise_sys::pty::signal(child.id(), 15);
    let o = child.wait_with_output().unwrap();
    assert_eq!((o.status.code(), o.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn burst_stream_and_mixed() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let file = path(&dir, "burst.jsonl");
    let r = short(&["burst", "--size", "256", "--burst", "4", "--rate", "400"], &far.at, &file, &["-q"]);
    assert_eq!((r.status, r.err.as_str()), (Some(0), ""), "{}", r.out);
    assert!(results(&file).trials.iter().all(|t| t.loads[0].done_per_s > 0.0));

    let file = path(&dir, "stream.jsonl");
    let udp = ["stream", "--protocol", "udp", "--size", "64", "--rate", "2000", "--flows", "3"];
    let r = short(&udp, &far.at, &file, &["-j"]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let doc: Value = serde_json::from_str(&r.out).unwrap();
    assert_eq!(doc["session"]["workload"], "stream");
    for t in results(&file).trials {
        let l = &t.loads[0];
        assert_eq!((l.unit, t.point.flows, l.offered_per_s), (Unit::Packets, Some(3), Some(2000.0)));
        // Packets are counted where they arrive.
        assert!(l.done_per_s > 0.0 && l.lost_percent.is_some(), "{l:?}");
        assert!(!matches!(t.limit, Limit::Link(_)), "{:?}", t.limit);
    }

    let file = path(&dir, "mixed.jsonl");
    let args = ["--size", "4k", "--mix", "1/2:1/2", "--rate", "400"];
    let mut all = vec!["bench", "mixed", "lo", "--address", "127.0.0.1", "--peer", &far.at, "--threads", "2"];
    all.extend(["--pairs", "1", "--calibrate", "0", "--trial", "300ms", "--warm", "100ms", "--results", &file]);
    all.extend(args);
    let r = run(&all);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let done = results(&file);
    let groups: Vec<(&str, u32)> = done.trials[0].loads.iter().map(|l| (l.group.as_str(), l.threads)).collect();
    assert_eq!(groups, [("latency", 1), ("throughput", 1)]);
}

#[test]
fn a_known_delay_is_measured() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let file = path(&dir, "delay.jsonl");
    let r = short(&["rr", "--size", "64", "--delay-us", "20000"], &far.at, &file, &[]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    for t in results(&file).trials {
        let l = t.loads[0].latency.as_ref().unwrap();
        assert!(!l.open_loop && l.p50_us >= 20_000.0 && l.mean_us >= 20_000.0, "{l:?}");
    }
}

#[test]
fn who_may_ask_and_who_is_there() {
    let dir = Dir::new();
    let (right, wrong) = (dir.file("right", "open sesame\n"), dir.file("wrong", "open barley\n"));
    let (empty, file) = (dir.file("empty", "\n"), path(&dir, "none.jsonl"));
    let far = Far::start(&["--secret-file", &right]);
    for (args, words) in [
        (vec![], "a secret is needed here"),
        (vec!["--secret-file", &wrong], "the secret is wrong"),
        (vec!["--secret-file", &empty], "contains no secret: it is empty"),
        (vec!["--secret-file", &file], "No such file"),
    ] {
        let r = short(&["rr"], &far.at, &file, &args);
        assert_eq!((r.status, r.err.contains(words)), (Some(1), true), "{words}: {}", r.err);
    }
    let r = short(&["rr", "--size", "64", "--rate", "200"], &far.at, &file, &["--secret-file", &right]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let all = std::fs::read_to_string(&file).unwrap() + &r.out + &r.err;
    assert!(!all.contains("sesame"), "the secret is nowhere to be read");

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let file = path(&dir, "unreachable.jsonl");
    let r = short(&["rr"], &nobody, &file, &[]);
    assert_eq!(r.status, Some(1), "{}", r.err);
    assert!(r.err.contains(&nobody) && r.err.contains("ECONNREFUSED") && r.err.contains("bench serve"), "{}", r.err);
    assert!(!Path::new(&file).exists(), "nothing was measured");
    for (args, words) in [
        (vec!["--listen", "0.0.0.0:0"], "every address of this host"),
        (vec!["--listen", "192.0.2.1:0"], "without a secret any of them could"),
        (vec!["--listen", "192.0.2.1:0", "--secret-file", &right], "EADDRNOTAVAIL"),
        (vec!["--listen", "127.0.0.1:0", "--allow-target", "192.0.2.0/33"], "is not an address or network"),
        (vec!["--netns", "ringwise-none", "--stdio"], "ENOENT"),
    ] {
        let mut all = vec!["bench", "serve"];
        all.extend(args);
        let r = run(&all);
        assert!(matches!(r.status, Some(1 | 2)) && r.err.contains(words), "{words}: {}", r.err);
    }
}

#[test]
fn bad_command_lines() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let (file, state) = (path(&dir, "x.jsonl"), path(&dir, "state"));
    let with: &[&str] = &["--yes", "--state-dir", &state];
    let refused = |status: i32, words: &str, what: &[&str], more: &[&str]| {
        let r = short(what, &far.at, &file, more);
        assert_eq!(r.status, Some(status), "{words}: {}", r.err);
        assert!(flat(&r.err).contains(words), "{words}: {}", r.err);
        assert!(!Path::new(&file).exists(), "{words}: nothing was measured");
    };
    refused(2, "state x: there is no option --goall; did you mean --goal?", &["rr", "--state", "x=--goall rpc"], with);
    refused(2, "--sample cannot be used in a state", &["rr", "--state", "x=--sample 1s"], with);
    refused(1, "state x: /no/such.plan", &["rr", "--state", "x=/no/such.plan"], with);
    refused(2, "two states have the name before", &["rr", "--state", "before=--goal rpc"], with);
    refused(2, "is not a sweep", &["rr", "--sweep", "queues"], with);
    refused(2, "is not a mix", &["mixed", "--mix", "half"], &[]);
    refused(2, "needs the address of the peer", &["rr", "--drive", "here"], &[]);
    refused(2, "iperf3 works with stream only", &["rr", "--driver", "iperf3"], &[]);
    refused(2, "do not fit into a datagram", &["rr", "--protocol", "udp", "--size", "8"], &[]);
    refused(2, "expected a rate", &["rr", "--rate", "fast"], &[]);
    // A state changes this host, so the user must confirm or have given `--yes`.
    refused(6, "--yes", &["rr", "--state", "x=--goal rpc"], &["--state-dir", &state]);
    let r = run(&["bench", "rr", "lo"]);
    assert_eq!((r.status, r.err.contains("the other end is missing")), (Some(2), true), "{}", r.err);
    let r = run(&["bench", "rr", "ringwise9", "--peer", &far.at, "--address", "127.0.0.1", "--results", &file]);
    assert_eq!((r.status, r.err.contains("ringwise9")), (Some(1), true), "{}", r.err);
    let r = run(&["bench", "rr"]);
    assert_eq!((r.status, r.err.contains("no interface is named")), (Some(2), true), "{}", r.err);
    // It only prints.
    refused(0, "1 state, 5 points, 2 blocks", &["rr"], &["--dry-run"]);
}

#[test]
fn a_stopped_run_reports_it() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let file = path(&dir, "cut.jsonl");
    let mut args = vec!["bench", "rr", "lo", "--address", "127.0.0.1", "--peer", &far.at, "--threads", "1"];
    args.extend(["--size", "64", "--rate", "200", "--trial", "200ms", "--warm", "50ms", "--pairs", "1000"]);
    args.extend(["--calibrate", "0", "--results", &file]);
    let mut child = ringwise(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let measured = || std::fs::read_to_string(&file).is_ok_and(|t| t.lines().count() > 1 && t.ends_with('\n'));
    while !measured() {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "it measures nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    ringwise_sys::pty::signal(child.id(), 2);
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(4), "{}", String::from_utf8_lossy(&o.stderr));
    assert!(String::from_utf8_lossy(&o.stderr).contains("stopped by a signal"));
    let done = results(&file);
    let end = done.end.unwrap();
    assert!(end.restored && end.notes.iter().any(|n| n.contains("stopped by a signal")), "{end:?}");
    assert!(!done.trials.is_empty() && done.trials.len() < 1000);
    assert!(flat(&run(&["bench", "report", &file]).out).contains("stopped by a signal"));
    // The other end accepts the next session.
    let r = short(&["rr", "--size", "64", "--rate", "200"], &far.at, &path(&dir, "next.jsonl"), &[]);
    assert_eq!(r.status, Some(0), "{}", r.err);

    // After SIGKILL the results written so far are in the file, which is recognized as incomplete.
    let text = std::fs::read_to_string(&file).unwrap();
    let trial = text.lines().nth(1).unwrap();
    let torn = dir.file("torn.jsonl", &format!("{}\n{trial}\n{}", text.lines().next().unwrap(), &trial[..40]));
    let r = run(&["bench", "report", &torn]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let said = flat(&r.out);
    assert!(
        said.contains("line 3 is incomplete") && said.contains("the session was interrupted or is still running"),
        "{}",
        r.out
    );
    let doc: Value = serde_json::from_str(&run(&["bench", "report", &torn, "-j"]).out).unwrap();
    assert!(doc["end"].is_null() && doc["notes"].as_array().unwrap().len() == 2, "{}", doc["notes"]);
}

#[test]
fn results_of_different_hosts_are_not_compared() {
    let (far, dir) = (Far::start(&[]), Dir::new());
    let file = path(&dir, "a.jsonl");
    let r = short(&["rr", "--size", "64", "--rate", "200"], &far.at, &file, &[]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let r = run(&["bench", "report", &file, &file]);
    assert_eq!((r.status, r.out.contains("under the same conditions")), (Some(0), true), "{}", r.out);
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut session: Value = serde_json::from_str(first).unwrap();
    let kernel = session["environment"]["facts"]["kernel"].as_str().unwrap().to_string();
    session["environment"]["facts"]["kernel"] = "2.6.32".into();
    let other = dir.file("b.jsonl", &format!("{session}\n{rest}"));
    let r = run(&["bench", "report", &file, &other]);
    assert_eq!(r.status, Some(3), "{}", r.out);
    assert!(
        flat(&r.out).contains(&format!("cannot be compared: their environments differ in kernel: {kernel} and 2.6.32")),
        "{}",
        r.out
    );
    // One size alone is no axis.
    let figures = path(&dir, "figures");
    let r = run(&["bench", "report", &file, &other, "--svg", &figures]);
    assert_eq!((r.status, r.err.contains("no figure shows all of these files")), (Some(1), true), "{}", r.err);
    let r = run(&["bench", "report", &file, &other, "-j"]);
    assert_eq!((r.status, r.err.contains("work with one file")), (Some(2), true), "{}", r.err);
    let none = dir.file("none.jsonl", "{\"kind\":\"trial\"}\n");
    let r = run(&["bench", "report", &none]);
    assert_eq!((r.status, r.err.contains("expected the session as the first line")), (Some(1), true), "{}", r.err);
}

/// Commands of a page: lines of code that begin with `ringwise bench`, joined where they go on, as a shell splits them.
fn commands(page: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join(page)).unwrap().replace("\\\n", " ");
    let lines = text.lines().filter_map(|l| l.strip_prefix("    "));
    let lines = lines.map(|l| l.trim_start_matches(['$', '#', ' ']).trim_start_matches("sudo "));
    let split = |l: &str| -> Vec<String> {
        // A comment in the line is one for the shell as well.
        let o = Command::new("sh").args(["-c", &format!("printf '%s\\n' {l}")]).output().unwrap();
        assert!(o.status.success(), "{page}: {l}");
        String::from_utf8(o.stdout).unwrap().lines().map(str::to_string).collect()
    };
    lines.filter(|l| l.starts_with("ringwise bench ")).map(split).collect()
}

#[test]
fn commands_of_the_pages_are_understood() {
    let mut seen = 0;
    let host = root().join("fixtures/hosts/lab-isolated-6.12/capture.tar.gz").display().to_string();
    for page in ["docs/bench.md", "README.md"] {
        let list = commands(page);
        assert!(!list.is_empty(), "{page}");
        seen += list.len();
        for words in list {
            let line = words.join(" ");
            let m = args::command().try_get_matches_from(&words).unwrap_or_else(|e| panic!("{page}: {line}\n{e}"));
            let Some(Cmd::Bench(b)) = Cli::from_arg_matches(&m).unwrap().command else { panic!("{line}") };
            let wanted = match &b.what {
                BenchCmd::Serve(_) | BenchCmd::Report(_) => continue,
                BenchCmd::Search(s) => &s.run,
                BenchCmd::Rr(r) | BenchCmd::Burst(r) | BenchCmd::Mixed(r) | BenchCmd::Stream(r) => r,
                BenchCmd::Receive(r) | BenchCmd::Forward(r) => r,
            };
            let p = &wanted.peer;
            assert!(p.peer.is_some() || p.ssh.is_some() || p.netns.is_some(), "{page}: no other end: {line}");
            for state in wanted.states.states.iter().chain(&wanted.states.base) {
                let (_, flags) = state.split_once('=').unwrap_or_else(|| panic!("{page}: {state}"));
                let plan = IntentArgs::augment_args(clap::Command::new("state").no_binary_name(true));
                let m = plan.try_get_matches_from(flags.split_whitespace());
                m.unwrap_or_else(|e| panic!("{page}: state {state}\n{e}"));
                // Keys and values of --set are checked as well, but not against what the recorded host supports.
                if !flags.contains("--config") {
                    let mut words = vec!["plan", "--from", &host];
                    words.extend(flags.split_whitespace());
                    let said = run(&words).err;
                    assert!(!said.contains("nothing was read from the host"), "{page}: state {state}\n{said}");
                }
            }
        }
    }
    assert!(seen >= 15, "{seen}");
}

fn flags(c: &clap::Command, out: &mut Vec<String>) {
    out.extend(c.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| Some(format!("--{}", a.get_long()?))));
    c.get_subcommands().for_each(|c| flags(c, out));
}

#[test]
fn the_page_names_every_flag_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/bench.md")).unwrap();
    let all = args::command();
    let bench = all.find_subcommand("bench").unwrap();
    let (mut own, mut every) = (Vec::new(), Vec::new());
    bench.get_subcommands().for_each(|c| flags(c, &mut own));
    flags(&all, &mut every);
    let named: Vec<&str> = page
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
        .filter(|w| w.starts_with("--") && w.contains(|c: char| c.is_ascii_lowercase()))
        .collect();
    own.retain(|f| !named.contains(&f.as_str()));
    assert_eq!(own, [""; 0], "not in docs/bench.md");
    let wrong: Vec<&&str> = named.iter().filter(|n| !every.iter().any(|e| e == **n)).collect();
    assert!(wrong.is_empty(), "no flags of ringwise: {wrong:?}");
}
