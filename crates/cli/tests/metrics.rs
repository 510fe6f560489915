//! `ringwise export` as a program: a recording served and written to a file. Live hosts: `cargo xtask grafana` and
//! lab/scenarios/715-report.sh.

use ringwise_testkit::{fetched, skipped};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-metrics-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// Three seconds of a device whose counters are reset in the middle, and which is gone in the end.
    fn recording(&self) -> PathBuf {
        let path = self.0.join("r.rec");
        let layout = "layout l/eth1/n=1 l/eth1/m=1000 l/eth1/d/igb=- l/eth1/r/0=30 l/eth1/t/0=30 l/eth1/g/30=2 n/2=1 .";
        let sample = |at: u64, rx: u64| {
            format!(
                "sample {at} 9 l/eth1/i=2 l/eth1/s=2 l/eth1/c/rx_packets={rx} l/eth1/r/0/packets={rx} i/30/2=7 c/2/softirq=150 ."
            )
        };
        let gone = "sample 4000000 9 c/2/softirq=160 .";
        let text =
            ["begin 1 9 edge3 .", layout, &sample(1_000_000, 500), &sample(2_000_000, 20), gone].join("\n") + "\n";
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ringwise(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    c.arg("export").args(args).stdin(Stdio::null());
    c
}

fn status_and_stderr(o: &Output) -> (Option<i32>, String) {
    (o.status.code(), String::from_utf8_lossy(&o.stderr).into_owned())
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(at: &str, accept: &str) -> String {
    let mut s = std::net::TcpStream::connect(at).unwrap();
    write!(s, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut out = String::new();
    s.read_to_string(&mut out).unwrap();
    out
}

#[test]
fn a_recording_is_served_page_by_page() {
    let dir = Dir::new("serve");
    let rec = dir.recording().display().to_string();
    let mut child = ringwise(&["--replay", &rec, "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let _server = Server(child);
    let at = line.trim().strip_prefix("ringwise: metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    let packets = "ringwise_device_packets_total{device=\"eth1\",direction=\"rx\"} ";
    let first = get(at, "text/plain");
    assert!(
        first.contains("Content-Type: text/plain; version=0.0.4") && first.contains(&format!("{packets}500\n")),
        "{first}"
    );
    assert!(first.contains(
        "ringwise_queue_interrupts_total{device=\"eth1\",queue=\"0\",direction=\"rxtx\",cpu=\"2\",node=\"1\"} 7\n"
    ));
    assert!(
        !first.contains("ringwise_settings") && !first.contains("ringwise_state"),
        "what was applied on that host is unknown"
    );
    assert!(!first.contains("ringwise_findings"), "that host is not checked");
    // Every client gets the same page within a second; the other format has a page of its own.
    let second = get(at, "application/openmetrics-text");
    assert!(second.contains(&format!("{packets}520\n")) && second.ends_with("# EOF\n"), "{second}");
    assert!(second.contains("ringwise_resets_seen_total{device=\"eth1\"} 1\n"), "{second}");
}

#[test]
fn a_file_whole_or_not_at_all() {
    let dir = Dir::new("file");
    let (rec, to) = (dir.recording().display().to_string(), dir.0.join("out"));
    let words = to.display().to_string();
    let (status, err) = status_and_stderr(&ringwise(&["--replay", &rec, "--textfile", &words]).output().unwrap());
    assert_eq!(status, Some(1), "no such directory: {err}");
    assert!(err.contains("out"), "{err}");
    std::fs::create_dir(&to).unwrap();
    let (status, err) = status_and_stderr(&ringwise(&["--replay", &rec, "--textfile", &words]).output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let names: Vec<_> = std::fs::read_dir(&to).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["ringwise.prom"]);
    let text = std::fs::read_to_string(to.join("ringwise.prom")).unwrap();
    assert!(text.contains("ringwise_cpu_seconds_total{cpu=\"2\",node=\"1\",mode=\"softirq\"} 1.50\n"), "{text}");
    assert!(!text.contains("resets_seen"), "one page has no past: {text}");
    match fetched("prometheus/usr/bin/promtool") {
        Some(p) => {
            let mut c = Command::new(p)
                .args(["check", "metrics"])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            c.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let o = c.wait_with_output().unwrap();
            assert_eq!(status_and_stderr(&o), (Some(0), String::new()), "{text}");
        }
        None => skipped("promtool reads the page", "promtool is not in the cache (cargo xtask setup --lane all)"),
    }
}

/// The present machine, which is only read: findings are exported together with the number of skipped rules.
#[test]
fn findings_of_a_live_host() {
    let dir = Dir::new("findings");
    let (to, state) = (dir.0.display().to_string(), dir.0.join("state").display().to_string());
    let page = |more: &[&str]| {
        let o = ringwise(&[&["--textfile", &to, "--state-dir", &state], more].concat()).output().unwrap();
        assert_eq!(status_and_stderr(&o).0, Some(0), "{}", status_and_stderr(&o).1);
        std::fs::read_to_string(dir.0.join("ringwise.prom")).unwrap()
    };
    let text = page(&[]);
    let number = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
    for s in ["error", "warning", "info"] {
        assert!(number(&format!("ringwise_findings{{severity=\"{s}\"}}")).is_some(), "{s}: {text}");
    }
    assert!(number("ringwise_check_timestamp_seconds").is_some_and(|t| t > 1_500_000_000), "{text}");
    assert!(number("ringwise_check_rules_skipped").is_some_and(|n| n > 10), "one page has no rates: {text}");
    assert!(number("ringwise_check_rules_unread").is_some(), "{text}");
    let without = page(&["--check-every", "never"]);
    assert!(!without.contains("ringwise_findings") && !without.contains("ringwise_check_"), "{without}");
}

#[test]
fn what_makes_no_sense_is_usage() {
    for args in [
        &["-j"][..],
        &["--textfile", "/tmp", "--listen", "127.0.0.1:1"],
        &["--interval", "5s"],
        &["--listen", "nowhere"],
        &["--max-series", "5"],
        &["--replay", "x", "eth0"],
    ] {
        let (status, err) = status_and_stderr(&ringwise(args).output().unwrap());
        assert_eq!(status, Some(2), "{args:?}: {err}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let (status, err) = status_and_stderr(&ringwise(&["--listen", &at]).output().unwrap());
    assert!(status == Some(1) && err.contains(&at), "{err}");
}

/// The words of a rule file that name metrics, with what follows each.
fn metrics_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let starts = text.match_indices("ringwise_").map(|(at, _)| at);
    starts.filter(move |at| !text[..*at].ends_with(part)).map(move |at| {
        let end = text[at..].find(|c| !part(c)).map_or(text.len(), |n| at + n);
        (&text[at..end], &text[end..])
    })
}

/// Names of the labels in the selector that follows a metric.
fn labels_of(after: &str) -> Vec<&str> {
    let inside = after.strip_prefix('{').and_then(|s| s.split_once('}')).map_or("", |(inside, _)| inside);
    inside.split(',').filter_map(|l| l.split(['=', '!', '~']).next()).map(str::trim).filter(|l| !l.is_empty()).collect()
}

/// The rules use only metrics and labels that the exporter has, every alert has a section of the documentation and a test,
/// and every recorded name is documented.
#[test]
fn rules_match_the_exporter_and_the_documentation() {
    let root = crate::common::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (documented, runbook) = (read("docs/metrics.md"), read("docs/alerts.md"));
    let files = ["alerts.yml", "alerts_test.yml", "recording.yml", "recording_test.yml"];
    let [rules, tests, recording, recording_tests] = files.map(|f| read(&format!("contrib/prometheus/{f}")));
    for text in [&rules, &tests, &recording, &recording_tests] {
        for (name, after) in metrics_of(text) {
            let row = documented.lines().find(|l| l.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{name} is not exported"));
            for label in labels_of(after) {
                let known = label == "instance" || row.contains(&format!("`{label}`"));
                assert!(known, "{name} has no label {label}: {row}");
            }
        }
    }
    let alerts: Vec<&str> = rules.lines().filter_map(|l| l.trim().strip_prefix("- alert: ")).collect();
    let sections: Vec<&str> = runbook.lines().filter_map(|l| l.strip_prefix("## Ringwise")).collect();
    assert_eq!(
        alerts.iter().map(|a| &a["Ringwise".len()..]).collect::<Vec<_>>(),
        sections,
        "one section for each alert"
    );
    for name in alerts {
        let (fires, quiet) = (format!("\n        alertname: {name}\n"), format!(", alertname: {name} }}\n"));
        assert!(tests.contains(&fires) && tests.contains(&quiet), "{name}: no test, or none in which it does not fire");
        let url = format!("          runbook_url: docs/alerts.md#{}\n", name.to_lowercase());
        assert_eq!(rules.matches(&url).count(), 1, "{name}");
    }
    let recorded = recording.lines().filter_map(|l| l.trim().strip_prefix("- record: "));
    for name in recorded {
        assert!(runbook.contains(&format!("| `{name}` |")), "docs/alerts.md does not list {name}");
        assert!(recording_tests.contains(&format!("- expr: {name}\n")), "{name} has no test");
    }
}

/// promtool runs the tests of alerts and recording rules. A changed rule must fail them.
#[test]
fn promtool_tests_the_rules() {
    let Some(promtool) = fetched("prometheus/usr/bin/promtool") else {
        return skipped("promtool tests the rules", "promtool is not in the cache (cargo xtask setup --lane all)");
    };
    let dir = crate::common::root().join("contrib/prometheus");
    for (name, changes) in [("alerts", &CHANGED_ALERTS), ("recording", &CHANGED_RECORDING)] {
        let [file, test] = [format!("{name}.yml"), format!("{name}_test.yml")];
        let rules = std::fs::read_to_string(dir.join(&file)).unwrap();
        let to_dir = Dir::new(name);
        std::fs::copy(dir.join(&test), to_dir.0.join(&test)).unwrap();
        let promtool = |action: &str, of: &str, rules: &str| {
            std::fs::write(to_dir.0.join(&file), rules).unwrap();
            Command::new(&promtool).args([action, "rules"]).arg(to_dir.0.join(of)).output().unwrap()
        };
        for (action, of) in [("check", &file), ("test", &test)] {
            let o = promtool(action, of, &rules);
            assert!(o.status.success(), "{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
        }
        let tests = std::fs::read_to_string(dir.join(&test)).unwrap();
        // A test over days takes most of the time, and only rules about days need it.
        let quick: String = tests.split_inclusive("\n\n").filter(|t| !t.contains("eval_time: 26h")).collect();
        assert!(name != "alerts" || quick.len() < tests.len());
        for (from, to) in *changes {
            assert!(rules.contains(from), "{from}");
            let days = from.contains("1d") || from.contains("service_pause");
            std::fs::write(to_dir.0.join(&test), if days { &tests } else { &quick }).unwrap();
            let o = promtool("test", &test, &rules.replace(from, to));
            assert!(!o.status.success(), "the tests do not find {to} instead of {from}");
        }
    }
}

const CHANGED_ALERTS: &[(&str, &str)] = &[
    ("state=\"drifted\"", "state=\"holds\""),
    ("unfinished > 0", "unfinished >= 0"),
    ("place=\"nic\"", "place=~\".*\""),
    ("place=\"stack\"", "place=~\".*\""),
    ("place=\"driver\"", "place=~\".*\""),
    ("place=\"qdisc\"", "place=~\".*\""),
    ("0.001 *", "0.00001 *"),
    ("[10m]) > 0", "[30m]) > 0"),
    ("severity=\"error\"", "severity=\"warning\""),
    ("for: 10m", "for: 30m"),
    ("for: 15m", "for: 1m"),
    ("for: 5m", "for: 1m"),
    ("for: 2m", "for: 4m"),
    ("for: 30m", "for: 0m"),
    ("for: 1d", "for: 8h"),
    ("service_problem > 0", "service_problem >= 0"),
    ("ringwise_service_paused + ", ""),
    ("sum without (reason) (ringwise_service_pauses)", "0"),
    ("seconds > time()", "seconds > 0 * time()"),
    ("deadline_timestamp_seconds > 60", "deadline_timestamp_seconds > -600"),
    ("ringwise_softnet_drops_total", "ringwise_softnet_squeezed_total"),
    ("> 1.5 * avg", "> 1.05 * avg"),
    (" > 1000", " > 5"),
    ("direction=\"rx\"", "direction=\"tx\""),
    ("state_readable == 0", "state_readable == 1"),
    ("> 600", "> 60"),
    ("job=\"ringwise\"", "job=~\".*\""),
];

const CHANGED_RECORDING: &[(&str, &str)] = &[
    ("instance, device, place", "instance, device"),
    ("instance, device, direction", "instance, device"),
    ("max by", "min by"),
    ("> 0)", ">= 0)"),
    ("direction=\"rx\"", "direction=~\".*\""),
    ("softirq|irq", "softirq"),
    ("instance, state", "instance, device, state"),
    ("[5m]", "[30m]"),
];
