//! With `-j` a command that fails prints one document, `ringwise.error`, with a code for programs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::newest_schema;
use crate::common::schema::check;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-error-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name).display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit status, the only document on stdout, and stderr.
fn failed(args: &[&str]) -> (i32, Value, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8(o.stderr).unwrap();
    let doc: Value = serde_json::from_slice(&o.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}{stderr}", String::from_utf8_lossy(&o.stdout)));
    let wrong = check(&newest_schema("ringwise.error"), &doc);
    assert!(wrong.is_empty(), "{args:?}: {wrong:#?}\n{doc}");
    (o.status.code().unwrap(), doc, stderr)
}

#[test]
fn every_error_has_a_code() {
    let dir = Dir::new("codes");
    let state = dir.0.display().to_string();
    let fixture = crate::common::fixtures().first().unwrap().1.display().to_string();
    let taken = dir.file("taken.tar", "");
    for (status, code, args) in [
        (2, "usage", &["plan", "--queues", "x", "-j"][..]),
        (2, "usage", &["undo", "-o", "json"]),
        (2, "usage", &["-qj", "apply", "-o", "diff"]),
        (2, "set_invalid", &["plan", "-j", "--set", "eth0.nonesuch=1"]),
        (1, "recording_unreadable", &["verify", "-j", "--from", "/nonesuch"]),
        (1, "record_missing", &["verify", "-j", "--from", &fixture]),
        (1, "io", &["watch", "-j", "--replay", "/nonesuch"]),
        (1, "unknown_device", &["plan", "--output=json", "--from", &fixture, "nope0"]),
        (1, "config_unreadable", &["plan", "-j", "--from", &fixture, "--config", "/nonesuch"]),
        (1, "not_a_plan", &["apply", "-j", "-n", "--plan", &taken]),
        (1, "unknown_transaction", &["history", "99", "-j", "--state-dir", &state]),
        (1, "unknown_transaction", &["rollback", "99", "-jy", "--state-dir", &state]),
        (1, "file_exists", &["capture", "-j", &taken]),
        (1, "service_not_running", &["daemon", "pause", "-j", "--state-dir", &state]),
        (6, "nothing_on_trial", &["confirm", "-j", "--state-dir", &state]),
        (1, "unknown_transaction", &["rollback", "1", "-j", "--state-dir", &state]),
        (6, "no_terminal", &["rollback", "0", "-j", "--state-dir", &state]),
    ] {
        if matches!(code, "no_terminal" | "unknown_transaction") && ringwise_sys::proc::euid() != 0 {
            continue;
        }
        let (found, doc, stderr) = failed(args);
        assert_eq!(
            (found, doc["status"].as_i64(), doc["code"].as_str()),
            (status, Some(status.into()), Some(code)),
            "{args:?}"
        );
        let first = doc["message"].as_str().unwrap().lines().next().unwrap();
        assert!(stderr.starts_with(&format!("error: {first}")), "people read it on stderr: {args:?}: {stderr}");
        if let Some(next) = doc["next"].as_str() {
            assert!(stderr.trim_end().ends_with(&format!("Try: {next}")), "{args:?}: {stderr}");
        }
    }
}

#[test]
fn errno_file_and_places() {
    let dir = Dir::new("places");
    let (_, doc, _) = failed(&["verify", "-j", "--from", "/nonesuch"]);
    assert_eq!((&doc["errno"], &doc["errno_name"], &doc["file"]), (&json!(2), &json!("ENOENT"), &json!("/nonesuch")));
    let file = dir.file("x.toml", "version = 1\ngoal = \"fast\"\n\n[defaults]\nnonesuch = 3\n");
    for args in [&["config", "check", "-j", &file][..], &["plan", "-j", "--config", &file]] {
        let (status, doc, _) = failed(args);
        assert_eq!((status, &doc["code"], &doc["file"]), (1, &json!("config_invalid"), &json!(file)), "{args:?}");
        let places = doc["places"].as_array().unwrap();
        assert!(places.iter().any(|p| p["line"] == 2 && p["expected"].is_string()), "{doc}");
        assert!(places.iter().any(|p| p["line"] == 4 || p["line"] == 5), "{doc}");
    }
}

#[test]
fn a_plan_that_is_not_possible_has_the_code_and_facts_of_its_refusal() {
    let fixture = crate::common::fixtures().first().unwrap().1.display().to_string();
    let (status, doc, _) = failed(&["plan", "-j", "--from", &fixture, "--cpus", "4000"]);
    assert_eq!((status, &doc["code"], &doc["facts"]["option"]), (1, &json!("cpu_beyond_machine"), &json!("--cpus")));
    assert_eq!(doc["facts"]["cpus"], "4000", "{doc}");
}

#[test]
fn without_json_nothing_is_on_stdout_and_an_answer_stays_alone() {
    let run = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
    assert!(run(&["verify", "--from", "/nonesuch"]).stdout.is_empty());
    assert!(run(&["hold", "--cpu-latency", "x", "--", "jq", "-j"]).stdout.is_empty(), "-j of another program");
    let fixture = crate::common::fixtures().first().unwrap().1.display().to_string();
    let o = run(&["plan", "-j", "--exit-code", "--from", &fixture]);
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(doc["schema"], "ringwise.plan", "one document also with status {:?}", o.status.code());
}

/// Codes that the sources name after one of these words.
fn codes_in(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for before in [".code(", "Fail::refused(", "=> "] {
        for part in text.split(before).skip(1) {
            let Some(code) = part.trim_start().strip_prefix('"').and_then(|p| p.split('"').next()) else { continue };
            out.push(code);
        }
    }
    out
}

#[test]
fn every_code_is_documented() {
    let root = crate::common::root();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let page = read("docs/exit-status.md");
    let mut texts: Vec<String> = Vec::new();
    let mut dirs = vec![root.join("crates/cli/src")];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            match path.is_dir() {
                true => dirs.push(path),
                false => texts.push(fs::read_to_string(path).unwrap().replace("=> ", "")),
            }
        }
    }
    for file in ["crates/intent/src/error.rs", "crates/persist/src/error.rs", "crates/plan/src/refusal.rs"] {
        let text = read(file);
        let name = if file.contains("plan") { "fn kind(" } else { "fn code(" };
        texts.push(text.split(name).nth(1).unwrap().split("\n    }\n").next().unwrap().to_string());
    }
    let mut all: Vec<&str> = texts.iter().flat_map(|t| codes_in(t)).collect();
    all.sort();
    all.dedup();
    assert!(all.len() > 50, "{all:?}");
    let missing: Vec<_> = all.iter().filter(|c| !page.contains(&format!("`{c}`"))).collect();
    assert!(missing.is_empty(), "docs/exit-status.md does not list {missing:?}");
}
