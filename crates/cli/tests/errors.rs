//! Errors have one form on stderr, whatever finds them, and what a command shows while it waits.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ringwise_sys::pty::Pty;

fn ringwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn error(args: &[&str]) -> (Option<i32>, String) {
    let o = ringwise(args);
    assert!(o.stdout.is_empty(), "{args:?} printed an answer");
    (o.status.code(), String::from_utf8_lossy(&o.stderr).into_owned())
}

#[test]
fn errors_have_one_form() {
    for (status, args, text) in [
        (
            2,
            &["plan", "--queues", "x"][..],
            "error: --queues: expected a whole number of at least 1; found \"x\"\nTry: ringwise plan --help\n",
        ),
        (
            2,
            &["undo"],
            "error: there is no command \"undo\"; did you mean ringwise rollback?\nTry: ringwise rollback\n",
        ),
        (
            2,
            &["check", "--explain", "A99"],
            "error: there is no rule \"A99\"; expected an id as ringwise check shows it, e.g. A02\nTry: ringwise help rules\n",
        ),
        (
            2,
            &["check", "--accept", "A99", "--reason", "x", "--until", "2099-01-01", "--baseline", "/nonesuch/a.json"],
            "error: there is no rule \"A99\"; expected an id as ringwise check shows it, e.g. A02\nTry: ringwise help rules\n",
        ),
        (
            1,
            &["bench", "report", "/nonesuch"],
            "error: /nonesuch: ENOENT (No such file or directory)\nTry: ringwise bench --help      (how to measure and \
             write a file of results)\n",
        ),
        (
            1,
            &["watch", "--replay", "/nonesuch"],
            "error: /nonesuch: ENOENT (No such file or directory)\nTry: ringwise watch --record FILE\n",
        ),
        (
            2,
            &["explain", "10.0.0.1:1-10.0.0.2:80", "eth7"],
            "error: flow: found \"10.0.0.1:1-10.0.0.2:80\", expected the protocol behind it, e.g. 10.0.0.1:1-10.0.0.2:80/tcp\n\
             Try: ringwise explain 10.0.0.1:1-10.0.0.2:80/tcp eth7\n",
        ),
    ] {
        assert_eq!(error(args), (Some(status), text.to_string()), "{args:?}");
    }
}

/// No text of the standard library or of the argument parser is printed.
#[test]
fn no_raw_text_of_a_library() {
    let raw = [
        "invalid digit",
        "is not in ",
        "invalid value",
        "invalid IP",
        "invalid socket",
        "os error",
        "tip:",
        "UTF-8 sequence",
        "unexpected argument '",
        "cannot parse",
        "possible values",
    ];
    for args in [
        &["plan", "--queues", "99999999999"][..],
        &["plan", "--latency-queues", "-4"],
        &["plan", "--cpus", "0-x"],
        &["plan", "--smt", "x"],
        &["plan", "--goal", ""],
        &["plan", "--set", "eth0.rings.rx=x"],
        &["plan", "--set", ""],
        &["plan", "--out"],
        &["plan", "--expires", "1w", "--out", "x"],
        &["rollback", "1.5"],
        &["history", "x"],
        &["report", "--since", ""],
        &["export", "--listen", "localhost:80"],
        &["export", "--max-series", "1"],
        &["export", "--check-every", "x"],
        &["watch", "--interval", "1d"],
        &["watch", "--count", "0"],
        &["watch", "--per-flow", "--top", "x"],
        &["watch", "--replay", "x", "--speed", "nan"],
        &["explain", "10.0.0.1:1-10.0.0.2:2/tcp", "--vlan", "4095"],
        &["explain", "10.0.0.1:1-10.0.0.2:99999/tcp"],
        &["explain", "--synthetic", "count=x"],
        &["explain", "--synthetic", "count=1", "eth0", "--balance=0"],
        &["explain", "10.0.0.1:1-10.0.0.2:2/tcp", "--if-queue", "x"],
        &["hold", "--cpu-latency", "4294967295", "--", "true"],
        &["bench", "rr", "--size", "0"],
        &["bench", "rr", "--pairs", "x"],
        &["bench", "rr", "--address", "x"],
        &["bench", "rr", "--seed", "x"],
        &["bench", "serve", "--listen", "x"],
        &["bench", "serve", "--listen", "127.0.0.1:0", "--allow-target", "x/99"],
        &["config", "shw"],
        &["--color", "x"],
    ] {
        let (status, text) = error(args);
        assert!(matches!(status, Some(1 | 2)), "{args:?}: {status:?}\n{text}");
        assert!(text.starts_with("error: "), "{args:?}: {text}");
        let found = raw.iter().find(|r| text.contains(**r));
        assert_eq!(found, None, "{args:?}: {text}");
    }
}

/// What `check --for` prints on a terminal.
fn on_a_terminal(args: &[&str]) -> Option<String> {
    let pty = Pty::open(80, 24).ok()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    command.args(args);
    pty.give(&mut command).ok()?;
    let mut child = command.spawn().ok()?;
    drop(command);
    let mut master = pty.master;
    let reader = std::thread::spawn(move || {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        // EIO: the program has closed its side.
        while let Ok(n @ 1..) = master.read(&mut part) {
            all.extend_from_slice(&part[..n]);
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    child.wait().ok()?;
    reader.join().ok()
}

fn temp(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("ringwise-errors-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn waiting_is_visible_on_a_terminal_only() {
    let dir = temp("progress");
    let file = |name: &str| dir.join(name).display().to_string();
    let state = file("state");
    let args = |to: &str| ["capture", to, "--for", "1200ms", "--state-dir", &state].map(str::to_string);
    let args = |to: &str| args(to).to_vec();
    let words = args(&file("a.tar"));
    if let Some(text) = on_a_terminal(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        let shown = "\rringwise: counting packets, interrupts and losses, 2 s left";
        assert!(text.contains(shown), "{text:?}");
        // It is erased before the answer.
        let (_, end) = text.rsplit_once("s left").unwrap();
        assert!(end.starts_with(&format!("\r{}\r", " ".repeat(shown.len() - 1))), "{text:?}");
    }
    let words = args(&file("b.tar"));
    let o = ringwise(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!String::from_utf8_lossy(&o.stderr).contains("s left"), "{o:?}");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn man_pages_have_the_same_sections() {
    let dir = temp("man");
    assert!(ringwise(&["__man", &dir.display().to_string()]).status.success());
    let mut pages = 0;
    for page in std::fs::read_dir(&dir).unwrap() {
        let path = page.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let sections: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix(".SH ")).collect();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let needed: &[&str] = match name.ends_with(".8") {
            true => &["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"],
            false => &["NAME", "DESCRIPTION", "FILES", "EXAMPLES", "SEE ALSO"],
        };
        let found: Vec<&str> = sections.iter().copied().filter(|s| needed.contains(s)).collect();
        assert_eq!(found, needed, "{name}");
        assert!(!sections.contains(&"EXTRA"), "{name}");
        // Every page that another one names exists, or is of another program.
        let (_, related) = text.rsplit_once(".SH SEE ALSO\n").unwrap();
        for other in related.trim().split(", ").filter(|o| o.starts_with("ringwise")) {
            let file = other.replace('\\', "").replace('(', ".").replace(')', "");
            assert!(dir.join(&file).exists(), "{name} names {file}");
        }
        pages += 1;
    }
    assert!(pages > 30, "{pages}");
    let _ = std::fs::remove_dir_all(dir);
}
