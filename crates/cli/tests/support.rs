//! `ringwise support` on the present machine: what the archive contains, and what it must not contain. The tests only
//! read.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringwise_sys::{Captured, Host};

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-support-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("state")).unwrap();
        Self(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
        c.current_dir(&self.0).args(["--state-dir", "state"]).args(args).output().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// A journal of another machine and another user that contains addresses of this host.
fn journal(place: &Place, mac: &str) {
    let line = format!(
        "{{\"record\":\"begin\",\"format\":1,\"tool\":\"0.1.0\",\"transaction\":1,\"kind\":\"apply\",\
         \"machine_id\":null,\"boot_id\":\"6f9d2b1e-4a57-4c8e-9f0a-1b2c3d4e5f60\",\"kernel\":null,\
         \"unix_time\":1795183327,\"title\":\"goal forward\",\"reason\":\"CHG-4711\",\
         \"who\":\"root (sudo: annabella)\",\"command\":\"/home/annabella/ringwise apply on {} --health curl http://example-4712/\",\
         \"devices\":[{{\"name\":\"eth0\",\"ifindex\":2,\"bus_address\":null,\"permanent_mac\":\"{mac}\"}}],\
         \"steps\":[],\"start\":[],\"undo\":[]}}\n",
        read("/proc/sys/kernel/hostname")
    );
    std::fs::write(place.0.join("state/tx-0001.jsonl"), line).unwrap();
}

fn addresses() -> Vec<String> {
    let list = std::fs::read_dir("/sys/class/net").map(|d| d.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let macs = list.iter().map(|e| read(&format!("{}/address", e.path().display())));
    macs.filter(|m| m.len() == 17 && m != "00:00:00:00:00:00" && m != "ff:ff:ff:ff:ff:ff").collect()
}

/// The global addresses of this host, from the kernel's table of local routes.
fn ips() -> Vec<String> {
    let table = read("/proc/net/fib_trie");
    let lines: Vec<&str> = table.lines().collect();
    let local = lines.windows(2).filter(|w| w[1].contains("/32 host LOCAL"));
    let found = local.filter_map(|w| Some(w[0].split("-- ").nth(1)?.to_string()));
    found.filter(|a| !a.starts_with("127.")).collect()
}

fn words(haystack: &str, needle: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    haystack
        .match_indices(needle)
        .any(|(at, w)| !part(haystack[..at].chars().next_back()) && !part(haystack[at + w.len()..].chars().next()))
}

#[test]
fn nothing_of_the_host_or_its_people_is_in_it_and_it_opens_again() {
    let place = Place::new("redacted");
    let foreign = "02:aa:bb:cc:dd:ee";
    journal(&place, foreign);
    let o = place.run(&["support", "s.tar"]);
    let out = text(&o.stdout);
    assert_eq!(o.status.code(), Some(0), "{out}{}", text(&o.stderr));
    let raw = std::fs::read(place.0.join("s.tar")).unwrap();
    let all = text(&raw);
    let mut secrets = addresses();
    secrets.push(foreign.to_string());
    for mac in &secrets {
        assert!(!all.contains(mac.as_str()), "{mac}");
        // Raw replies are in it as digits.
        assert!(!all.contains(&mac.replace(':', "")), "{mac} in a reply");
    }
    for ip in ips() {
        assert!(!words(&all, &ip), "{ip}");
    }
    assert!(!all.contains("annabella"));

    let host = Captured::open(&place.0.join("s.tar")).unwrap();
    let name = read("/proc/sys/kernel/hostname");
    for file in ["status.txt", "verify.json", "history.json", "versions.txt", "state/tx-0001.jsonl"] {
        let path = format!("/support/{file}");
        let content = host.read_text(&path).unwrap_or_else(|e| panic!("{e}\n{out}"));
        assert!(!content.is_empty(), "{path}");
        assert!(["localhost", "(none)"].contains(&name.as_str()) || !words(&content, &name), "{name} in {path}");
        assert!(out.contains(&format!("fs{path} ")), "{path} is not listed:\n{out}");
    }
    let journal = host.read_text("/support/state/tx-0001.jsonl").unwrap();
    assert!(journal.contains("user-name-1") && journal.contains("ringwise apply"), "{journal}");
    for typed in ["CHG-4711", "example-4712", "--health curl"] {
        assert!(!all.contains(typed), "{typed}");
    }

    let again = place.run(&["show", "--from", "s.tar"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
}

#[test]
fn it_overwrites_nothing_and_can_only_list() {
    let place = Place::new("list");
    let list = place.run(&["support", "-n", "s.tar"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    assert!(text(&list.stdout).contains("fs/support/status.txt"), "{}", text(&list.stdout));
    assert!(!place.0.join("s.tar").exists());
    std::fs::write(place.0.join("s.tar"), "mine").unwrap();
    let o = place.run(&["support", "s.tar"]);
    assert_eq!(o.status.code(), Some(1));
    assert!(text(&o.stderr).contains("never overwrites a file"), "{}", text(&o.stderr));
    assert_eq!(std::fs::read(Path::new(&place.0).join("s.tar")).unwrap(), b"mine");
    let json = place.run(&["support", "-n", "-j", "t.tar"]);
    let doc: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&doc["schema"], &doc["written"]), (&"ringwise.support".into(), &false.into()));
    assert!(doc["contents"].as_array().unwrap().iter().all(|i| i["bytes"].is_u64() || i["missing"].is_string()));
}
