//! Read-only commands of the documents, each block in a directory of its own that holds the files that the documents name.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::{Class, Documented, Kind, commands};
use crate::bench::{Far, short};
use crate::common::root;
use crate::explain::{pcap, tcp_to};
use ringwise_testkit::dir::Dir;

/// The host unless the page shows another one, or has none of the interfaces.
const USUAL: &str = "lab-router16-newest";

/// Runs ringwise with `$EXTRA`, and keeps its output and status: a document may pipe or redirect them.
const WRAPPER: &str = "#!/bin/sh
\"$PROGRAM\" \"$@\" $EXTRA >\"$KEPT/out\" 2>\"$KEPT/err\"
status=$?
echo $status >\"$KEPT/status\"
cat \"$KEPT/out\"
cat \"$KEPT/err\" >&2
exit $status
";

/// What `conntrack -L` prints.
const CONNTRACK: &str = "#!/bin/sh
echo 'tcp      6 431999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1234 dport=80 src=10.0.0.2 dst=10.0.0.1 sport=80 dport=1234 [ASSURED] mark=0 use=1'
";

const CONFIG: &str =
    "version = 1\n\n[host]\ngoal = \"rpc\"\n\n[[interface]]\nmatch = { name = \"eth0\" }\nrings = { rx = 1024 }\n";

fn capture(host: &str) -> String {
    let dir = root().join("fixtures/hosts").join(host);
    let file = ["capture.tar.gz", "tree.tar.gz"].map(|f| dir.join(f)).into_iter().find(|f| f.exists());
    file.unwrap_or_else(|| panic!("no host {host}")).canonicalize().unwrap().display().to_string()
}

/// Interfaces of a recorded host, by what discovery found.
fn interfaces(host: &str) -> Vec<String> {
    let file = root().join("fixtures/hosts").join(host).join("snapshot.json");
    let s: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    s["nics"].as_array().unwrap().iter().map(|n| n["dev"]["name"].as_str().unwrap().to_string()).collect()
}

/// The first host that has every interface of the command: those that the page shows, then the usual one.
fn host_for<'a>(c: &Documented, all: &'a [Documented]) -> String {
    let named = |w: &'a str| w.strip_prefix("fixtures/hosts/").and_then(|w| w.split('/').next()).map(str::to_string);
    let of_page = all.iter().filter(|o| o.kind == Kind::Fixture && o.file == c.file).flat_map(|o| o.words.iter());
    let mut hosts: Vec<String> = of_page.filter_map(|w| named(w)).collect();
    hosts.push(USUAL.into());
    let devs: Vec<&str> = c.text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| is_interface(w)).collect();
    let fits = hosts.iter().find(|h| {
        let has = interfaces(h);
        devs.iter().all(|d| has.iter().any(|n| n == d))
    });
    fits.unwrap_or_else(|| panic!("{}: no host has {devs:?}", c.place())).clone()
}

fn is_interface(word: &str) -> bool {
    let number = word.strip_prefix("eth").or_else(|| word.strip_prefix("mq")).or_else(|| word.strip_prefix("ens"));
    number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

/// Whether the command reads a host, and the document names none.
fn needs_host(c: &Documented) -> bool {
    let other = c.has("--from") || c.has("--help") || c.has("--explain") || c.has("--replay");
    !other && !matches!(c.verb()[..], ["config", "check" | "schema"] | ["bench", _])
}

/// Statuses that the command may have: findings and attention are 3.
fn statuses(c: &Documented) -> &'static [i32] {
    match c.verb()[..] {
        _ if c.has("--help") || c.has("--explain") => &[0],
        ["plan"] if c.has("--exit-code") => &[3],
        ["check"] if c.has("--fail-on") => &[3],
        [] | ["status" | "check"] => &[0, 3],
        // Some of the hosts may not fit, or differ.
        ["config", "check"] if c.has("--from") => &[0, 3],
        ["bench", "report"] if c.text.contains("old.jsonl") || c.text.contains("before-upgrade.jsonl") => &[0, 3],
        _ => &[0],
    }
}

/// Fills a directory with everything that the documents name.
fn fill(at: &Path, results: &str) {
    let (hosts, file) = (root().join("fixtures/hosts").canonicalize().unwrap(), |name: &str| at.join(name));
    symlink(root().join("fixtures").canonicalize().unwrap(), file("fixtures")).unwrap();
    fs::create_dir(file("caps")).unwrap();
    for (name, host) in
        [("edge7", "lab-router16-newest"), ("edge8", "lab-router16-6.12"), ("edge9", "lab-router3-6.12")]
    {
        symlink(hosts.join(host).join("capture.tar.gz"), file("caps").join(format!("{name}.tar.gz"))).unwrap();
    }
    for name in ["host.tar.gz", "edge3.tar.gz", "before-the-upgrade.tar.gz"] {
        symlink(hosts.join("lab-router16-6.12/capture.tar.gz"), file(name)).unwrap();
    }
    let report = root().join("fixtures/sos/edge7").canonicalize().unwrap();
    symlink(&report, file("sosreport-edge7")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(report.parent().unwrap()).arg("-cJf").arg(file("sosreport-edge7.tar.xz")).arg("edge7");
    assert!(tar.status().unwrap().success());
    for name in ["ringwise.toml", "new.toml"] {
        fs::write(file(name), CONFIG).unwrap();
    }
    fs::write(file("tuned.conf"), "[net]\ntype = net\ndevices = eth0\nring = rx 1024\n").unwrap();
    for name in ["rr.jsonl", "old.jsonl", "new.jsonl", "before-upgrade.jsonl", "after-upgrade.jsonl", "try.jsonl"] {
        fs::write(file(name), results).unwrap();
    }
    fs::write(file("FILE"), pcap(&[tcp_to(1), tcp_to(2), tcp_to(2)])).unwrap();
    fs::create_dir(file("bin")).unwrap();
    // A filter of other programs' output: without jq only ringwise's part of the line is tested.
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    let programs = [("ringwise", WRAPPER), ("conntrack", CONNTRACK), ("jq", "#!/bin/sh\nexec cat\n")];
    for (name, text) in programs.iter().take(if has_jq { 2 } else { 3 }) {
        fs::write(file("bin").join(name), text).unwrap();
        fs::set_permissions(file("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Files of the directory with their sizes.
fn files(at: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(at).unwrap().map(|e| e.unwrap());
    let mut all: Vec<_> =
        entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.metadata().unwrap().len())).collect();
    all.sort();
    all
}

/// What a command printed, and the statuses of ringwise and of the whole line.
struct Printed {
    out: String,
    err: String,
    status: Option<i32>,
    line: Option<i32>,
}

/// Types the command into a shell.
fn typed(c: &Documented, extra: &str, at: &Path) -> Printed {
    let kept = Dir::new();
    let mut sh = Command::new("sh");
    let path = format!("{}:{}", at.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    sh.arg("-c").arg(&c.text).current_dir(at).env("PATH", path).env("PROGRAM", env!("CARGO_BIN_EXE_ringwise"));
    sh.env("EXTRA", extra).env("KEPT", &kept.0).env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
    sh.env("RINGWISE_DEVICE_DEADLINE_MS", "60000").stdin(std::process::Stdio::null());
    let line = sh.output().unwrap().status.code();
    let read = |name: &str| fs::read_to_string(kept.0.join(name)).unwrap_or_default();
    Printed { out: read("out"), err: read("err"), status: read("status").trim().parse().ok(), line }
}

/// Runs the command as a reader would. `Err`: what is wrong.
fn run(c: &Documented, all: &[Documented], at: &Path) -> Result<(), String> {
    let extra = if needs_host(c) { format!("--from {}", capture(&host_for(c, all))) } else { String::new() };
    let before = files(at);
    let p = typed(c, &extra, at);
    let faults = [
        (!p.status.is_some_and(|s| statuses(c).contains(&s)), format!("status {:?}", p.status)),
        (p.err.contains("error:") || p.err.contains("panicked"), "an error".into()),
        (p.out.trim().is_empty() && files(at) == before, "no output".into()),
        // A script ends with a status of its own, a pipe with that of its last program.
        (c.kind != Kind::Script && !matches!(p.line, Some(0 | 3)), format!("status of the line {:?}", p.line)),
    ];
    match faults.into_iter().find(|(wrong, _)| *wrong) {
        Some((_, what)) => {
            let begin: String = p.out.chars().take(300).collect();
            Err(format!("{}: {what}: {} {extra}\n{}{begin}", c.place(), c.text, p.err))
        }
        None => Ok(()),
    }
}

/// Whether each part of the shown line that `…` separates is in the printed one, in order.
fn is_like(shown: &str, printed: &str) -> bool {
    let mut rest = printed;
    shown.split('…').all(|part| {
        let found = rest.find(part);
        rest = found.map_or(rest, |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

#[test]
fn examples_in_text_print_what_is_shown() {
    let (dir, all) = (Dir::new(), commands());
    fill(&dir.0, "");
    let mut tried = 0;
    for c in all.iter().filter(|c| c.kind == Kind::Example && c.class() == Class::Shown) {
        let p = typed(c, "", &dir.0);
        let document = fs::read_to_string(root().join(&c.file)).unwrap();
        let shown: Vec<&str> = document
            .lines()
            .skip(c.line)
            .take_while(|l| !l.starts_with("$ ") && !l.starts_with("```"))
            .filter(|l| !l.is_empty())
            .collect();
        let printed = p.out + &p.err;
        for line in &shown {
            assert!(printed.lines().any(|p| is_like(line, p)), "{}: {line} is not in\n{printed}", c.place());
        }
        assert!(!shown.is_empty(), "{}: no output is shown", c.place());
        tried += 1;
    }
    assert!(tried > 0);
}

#[test]
fn commands_that_read_are_run_on_a_recorded_host() {
    let all = commands();
    let made = Dir::new();
    let results = made.0.join("results.jsonl");
    let far = Far::start(&[]);
    let r = short(&["rr", "--size", "64,128", "--rate", "500"], &far.at, &results.display().to_string(), &[]);
    assert_eq!(r.status, Some(0), "{}", r.err);
    let results = fs::read_to_string(results).unwrap();

    let mut blocks: Vec<Vec<&Documented>> = Vec::new();
    for c in all.iter().filter(|c| c.class() == Class::Recorded) {
        match blocks.last_mut() {
            Some(b) if b[0].file == c.file && b[0].block == c.block => b.push(c),
            _ => blocks.push(vec![c]),
        }
    }
    let (next, tried, wrong) = (Mutex::new(blocks.iter()), Mutex::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get().min(8)) {
            s.spawn(|| {
                loop {
                    let block = next.lock().unwrap().next();
                    let Some(block) = block else { break };
                    let dir = Dir::new();
                    fill(&dir.0, &results);
                    for c in block {
                        *tried.lock().unwrap() += 1;
                        if let Err(e) = run(c, &all, &dir.0) {
                            wrong.lock().unwrap().push(e);
                        }
                    }
                }
            });
        }
    });
    let (tried, wrong) = (tried.into_inner().unwrap(), wrong.into_inner().unwrap());
    println!("{tried} documented commands were run on a recorded host");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 100, "only {tried} commands");
}
