//! `ringwise check` and `ringwise plan` with several captures.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::{fixtures, newest_schema, schema};
use ringwise_testkit::dir::Dir;
use serde_json::Value;

fn run(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    program.args(args).env("TZ", "UTC").env("LANG", "C.UTF-8").output().unwrap()
}

/// As on a terminal of 80 columns.
fn narrow(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    program.args(args).env("LANG", "C.UTF-8").env("RINGWISE_COLUMNS", "80").output().unwrap()
}

fn text(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn errors(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

/// The captures of ringwise among the fixtures.
fn captures() -> Vec<PathBuf> {
    fixtures().into_iter().map(|(_, file)| file).filter(|f| f.ends_with("capture.tar.gz")).collect()
}

/// A directory with `copies` of each capture.
struct Fleet {
    dir: PathBuf,
    files: Vec<String>,
}

impl Fleet {
    fn new(name: &str, copies: usize) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-fleet-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut files = Vec::new();
        for n in 0..copies {
            for (k, from) in captures().iter().enumerate() {
                let to = dir.join(format!("host{n}-{k}.tar.gz"));
                std::fs::copy(from, &to).unwrap();
                files.push(to.display().to_string());
            }
        }
        Self { dir, files }
    }

    /// A file that is no capture.
    fn damaged(&self, name: &str) -> String {
        let file = self.dir.join(name);
        std::fs::write(&file, b"\x1f\x8b and then nothing that is gzip").unwrap();
        file.display().to_string()
    }

    fn dir(&self) -> String {
        self.dir.display().to_string()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn with<'a>(args: &[&'a str], files: &'a [String]) -> Vec<&'a str> {
    args.iter().copied().chain(["--from"]).chain(files.iter().map(String::as_str)).collect()
}

fn lines(o: &Output) -> Vec<Value> {
    let text = text(o);
    let all: Vec<Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    for line in &all {
        assert_eq!(schema::check(&newest_schema("ringwise.fleet"), line), [""; 0]);
    }
    all
}

/// The rows of the table of hosts: columns by their titles.
fn rows(page: &str) -> Vec<(String, u32, u32, String)> {
    let table = page.lines().skip_while(|l| !l.starts_with("HOST")).skip(1).take_while(|l| !l.is_empty());
    let row = |l: &str| {
        let words: Vec<&str> = l.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap_or_else(|e| panic!("{e}: {l}"));
        (words[0].to_string(), number(1), number(2), words.last().unwrap().to_string())
    };
    table.filter(|l| !l.starts_with("  ")).map(row).collect()
}

#[test]
fn check_lists_the_worst_host_first() {
    let fleet = Fleet::new("worst", 1);
    let args = with(&["check", "--fail-on", "never"], &fleet.files);
    let page = text(&run(&args));
    let rows = rows(&page);
    assert_eq!(rows.len(), fleet.files.len(), "{page}");
    assert!(rows.windows(2).all(|w| (w[0].1, w[0].2) >= (w[1].1, w[1].2)), "{page}");
    assert!(page.starts_with(&format!("{} hosts: ", rows.len())), "{page}");
    // Every file is named in full where there is no terminal.
    assert!(fleet.files.iter().all(|f| rows.iter().any(|r| r.3 == *f)), "{page}");
    // The proposed next command shows the worst host in full, and its page agrees with its line.
    let next = page.lines().last().unwrap().strip_prefix("Next: ringwise ").unwrap();
    assert!(next.ends_with(&rows[0].3), "{page}");
    let full = run(&next.split(' ').chain(["-j", "--fail-on", "never"]).collect::<Vec<_>>());
    let full: Value = serde_json::from_slice(&full.stdout).unwrap();
    let of = |s: &str| full["findings"].as_array().unwrap().iter().filter(|f| f["severity"] == s).count() as u32;
    assert_eq!((of("error"), of("warning")), (rows[0].1, rows[0].2), "{page}");
}

#[test]
fn check_counts_the_hosts_that_share_a_finding() {
    let fleet = Fleet::new("shared", 1);
    let page = text(&run(&with(&["check", "--fail-on", "never"], &fleet.files)));
    let docs = lines(&run(&with(&["check", "-j", "--fail-on", "never"], &fleet.files)));
    let has = |d: &&Value, id: &str| {
        let all = d["check"]["findings"].as_array().unwrap().iter();
        all.flat_map(|f| std::iter::once(f).chain(f["consequences"].as_array().into_iter().flatten()))
            .any(|f| f["rule"] == id)
    };
    let shared = page.lines().skip_while(|l| *l != "The same findings on many hosts:").skip(1);
    let mut n = 0;
    for line in shared.take_while(|l| !l.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hosts = docs.iter().filter(|d| has(d, words[0])).count();
        assert_eq!(words[1..4], [hosts.to_string().as_str(), "of", &docs.len().to_string()], "{page}");
        n += 1;
    }
    assert!(n > 2, "{page}");
}

/// The lines come in the order of the files, and each has what the command prints for that file alone.
#[test]
fn json_lines_agree_with_the_documents_of_single_captures() {
    let fleet = Fleet::new("lines", 3);
    let checks = lines(&run(&with(&["check", "-j", "--fail-on", "never"], &fleet.files)));
    let plans = lines(&run(&with(&["plan", "-o", "json"], &fleet.files)));
    for all in [&checks, &plans] {
        assert!(all.iter().map(|d| d["file"].as_str().unwrap()).eq(fleet.files.iter().map(String::as_str)));
    }
    let single = |args: &[&str], file: &str| -> Value {
        serde_json::from_slice(&run(&[args, &["--from", file]].concat()).stdout).unwrap()
    };
    for at in [0, fleet.files.len() - 1] {
        let file = &fleet.files[at];
        assert_eq!(checks[at]["check"], single(&["check", "-j", "--fail-on", "never"], file));
        assert_eq!(plans[at]["plan"], single(&["plan", "-j"], file));
    }
    // Copies have the plan of the first copy.
    let once = captures().len();
    for (at, doc) in plans.iter().enumerate().skip(once) {
        assert_eq!(
            doc["same_plan_as"],
            plans[at % once].get("same_plan_as").unwrap_or(&plans[at % once]["file"]).clone()
        );
    }
}

#[test]
fn a_damaged_capture_is_a_line_and_the_others_go_on() {
    let fleet = Fleet::new("damaged", 1);
    let (bad, gone) = (fleet.damaged("zz.tar.gz"), format!("{}/nosuch.tar.gz", fleet.dir()));
    let good = fleet.files[0].clone();
    let files = [bad.clone(), good.clone(), gone.clone()];
    for command in ["check", "plan"] {
        for more in [&["--exit-code"][..], &[]] {
            let more = if command == "plan" { more } else { &["--fail-on", "info"] };
            let o = run(&with(&[&[command], more].concat(), &files));
            // Neither findings elsewhere nor their absence changes the status.
            assert_eq!(o.status.code(), Some(1), "{}", text(&o));
            let page = text(&o);
            assert!(page.starts_with("1 host: ") && page.contains("; 2 captures could not be used\n"), "{page}");
            let line = |file: &str| page.lines().any(|l| l.starts_with("  ") && l.contains(file) && l.contains(": "));
            assert!(line(&bad) && line(&gone) && page.contains("ENOENT"), "{page}");
            assert!(page.contains("  Expected: a file of ringwise capture"), "{page}");
            assert!(page.contains(&format!("--from {good}\n")), "{page}");
            assert_eq!(errors(&o), "error: 2 of 3 captures could not be used\n");
        }
        let o = run(&with(&[command, "-j"], &files));
        let docs = lines(&o);
        assert_eq!((o.status.code(), docs.len()), (Some(1), 3));
        assert_eq!(docs[0]["error"]["opened"], false);
        assert!(docs[0]["error"]["expected"].as_str().unwrap().starts_with("a file of ringwise capture"));
        assert!(docs[1].get("error").is_none() && docs[1][command].is_object());
        assert!(docs[2]["error"]["why"].as_str().unwrap().contains("ENOENT"), "{}", docs[2]);
        // No readable capture at all: the same status, and still a line for each.
        let o = run(&[command, "-j", "--from", &bad, &gone]);
        assert_eq!((o.status.code(), lines(&o).len()), (Some(1), 2));
    }
}

/// A capture that can be read, but has not what the request is about.
#[test]
fn an_interface_that_one_host_does_not_have() {
    let fleet = Fleet::new("devices", 1);
    let files: Vec<String> =
        fixtures().into_iter().filter(|(n, _)| n.starts_with("lab-")).map(|(_, f)| f.display().to_string()).collect();
    let docs = lines(&run(&with(&["plan", "-j", "mq3"], &files)));
    let (have, lack): (Vec<&Value>, Vec<&Value>) = docs.iter().partition(|d| d.get("plan").is_some());
    assert!(!have.is_empty() && !lack.is_empty());
    for d in lack {
        assert_eq!(d["error"]["opened"], true);
        assert!(d["error"]["why"].as_str().unwrap().contains("mq3"), "{d}");
    }
    drop(fleet);
}

#[test]
fn statuses_of_hosts_that_can_all_be_read() {
    let fleet = Fleet::new("statuses", 1);
    let status = |args: &[&str]| run(&with(args, &fleet.files[..2])).status.code();
    assert_eq!(status(&["check", "--fail-on", "never"]), Some(0));
    assert_eq!(status(&["check", "--fail-on", "info"]), Some(3));
    assert_eq!(status(&["plan"]), Some(0));
    assert_eq!(status(&["plan", "--exit-code"]), Some(3));
}

#[test]
fn plan_groups_hosts_with_the_same_plan() {
    let fleet = Fleet::new("groups", 3);
    let page = text(&run(&with(&["plan", "--goal", "rpc"], &fleet.files)));
    let n = fleet.files.len();
    let sizes: Vec<usize> = page
        .lines()
        .filter(|l| l.contains(&format!(" of {n} hosts share this plan: goal rpc, ")))
        .map(|l| l.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), n, "{page}");
    assert!(sizes.iter().all(|s| s % 3 == 0) && sizes.windows(2).all(|w| w[0] >= w[1]), "{page}");
    assert!(page.contains(&format!("{n} hosts: {} different plans\n", sizes.len())), "{page}");
    // Each group names a host, and the command that shows its plan: it has as many changes.
    let group: Vec<&str> = page.lines().skip_while(|l| !l.contains("share this plan")).take(3).collect();
    let steps = group[0].rsplit(", ").find_map(|p| p.strip_suffix(" changes")).unwrap();
    let command: Vec<&str> = group[2].trim().strip_prefix("ringwise ").unwrap().split(' ').chain(["-j"]).collect();
    assert_eq!(command[..3], ["plan", "--goal", "rpc"]);
    let plan: Value = serde_json::from_slice(&run(&command).stdout).unwrap();
    assert_eq!(plan["steps"].as_array().unwrap().len().to_string(), steps, "{page}");
    assert!(group[1].starts_with("  example") && group[1].contains(plan["considered"][0].as_str().unwrap()), "{page}");
}

#[test]
fn long_lists_end_with_a_number_on_a_terminal() {
    let fleet = Fleet::new("long", 4);
    for command in ["check", "plan"] {
        let args = with(&[command], &fleet.files);
        let page = text(&narrow(&args));
        let wide = |l: &&str| l.chars().count() > 80 && !l.contains("ringwise ");
        assert_eq!(page.lines().find(wide), None, "{page}");
        let whole = text(&narrow(&[&args[..1], &["--all"], &args[1..]].concat()));
        assert!(!whole.contains("(--all)") && whole.lines().count() >= page.lines().count());
        if command == "check" {
            assert!(page.contains(&format!("  and {} more (--all)\n", fleet.files.len() - 20)), "{page}");
            assert_eq!(rows(&whole).len(), fleet.files.len(), "{whole}");
            assert!(page.contains(&format!("\nfiles in {}/\nHOST  ", fleet.dir())), "{page}");
        }
    }
}

#[test]
fn a_page_for_a_browser() {
    let fleet = Fleet::new("html", 2);
    fleet.damaged("x<y.tar.gz");
    for command in ["check", "plan"] {
        let o = run(&[command, "-o", "html", "--from", &fleet.dir()]);
        let page = text(&o);
        assert_eq!(o.status.code(), Some(1), "a capture cannot be read: {}", errors(&o));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n") && page.contains("x&lt;y.tar.gz"));
        assert!(fleet.files.iter().all(|f| page.contains(f.as_str())), "every host is listed");
        let o = run(&[command, "-o", "html"]);
        assert_eq!((o.status.code(), text(&o).as_str()), (Some(2), ""), "{}", errors(&o));
        assert!(errors(&o).contains("expected --from FILE"), "{}", errors(&o));
    }
}

#[test]
fn a_directory_means_the_captures_in_it() {
    let fleet = Fleet::new("directory", 1);
    fleet.damaged("host0-99.tgz");
    std::fs::write(fleet.dir.join("notes.txt"), "no capture").unwrap();
    let docs = lines(&run(&["check", "-j", "--from", &fleet.dir()]));
    assert_eq!(docs.len(), fleet.files.len() + 1);
    let names: Vec<&str> = docs.iter().map(|d| d["file"].as_str().unwrap()).collect();
    // In natural order: 9 before 99.
    assert!(names.iter().zip(&fleet.files).all(|(a, b)| a == b) && names.last().unwrap().ends_with("host0-99.tgz"));
    // One capture in a directory is one capture.
    let one = fleet.dir.join("one");
    std::fs::create_dir(&one).unwrap();
    let file = one.join("h.tar.gz");
    std::fs::copy(&fleet.files[0], &file).unwrap();
    let by = |what: &PathBuf| text(&run(&["check", "--from", &what.display().to_string()]));
    assert_eq!(by(&one), by(&file));
}

#[test]
fn an_interface_may_follow_the_file() {
    let file = fixtures().into_iter().find(|(n, _)| n == "lab-router16-6.12").unwrap().1.display().to_string();
    for command in ["check", "plan"] {
        let before = run(&[command, "eth1", "--from", &file]);
        let after = run(&[command, "--from", &file, "eth1"]);
        assert_eq!((text(&before), before.status.code()), (text(&after), after.status.code()));
        assert!(!text(&before).is_empty());
    }
}

#[test]
fn what_is_about_one_host_refuses_several() {
    let fleet = Fleet::new("refused", 1);
    let (a, b) = (fleet.files[0].as_str(), fleet.files[1].as_str());
    for args in [&["show"][..], &["verify"], &["status"], &["explain"], &[]] {
        for files in [&["--from", a, b][..], &["--from", a, "--from", b]] {
            let o = run(&[args, files].concat());
            let message = errors(&o);
            assert_eq!((o.status.code(), text(&o).as_str()), (Some(2), ""), "{args:?} {message}");
            assert!(
                message.contains(b) && message.contains("ringwise check, plan and config check read several"),
                "{message}"
            );
        }
    }
    for more in [&["-o", "sh"][..], &["-o", "diff"], &["--out", "x.plan"], &["--full"], &["--print-config"]] {
        let o = run(&[&["plan"], more, &["--from", a, b]].concat());
        assert_eq!(o.status.code(), Some(2), "{more:?}");
        assert!(errors(&o).contains("is about one host; found several captures"), "{}", errors(&o));
    }
    let o = run(&["check", "--capabilities", "--from", a, b]);
    assert_eq!(o.status.code(), Some(2), "{}", text(&o));
}

/// A mistake in the request is reported once.
#[test]
fn a_wrong_request_is_one_error() {
    let fleet = Fleet::new("request", 1);
    let wrong = ["plan", "--set", "eth0.nosuch=1"];
    let (o, single) = (run(&with(&wrong, &fleet.files)), run(&with(&wrong, &fleet.files[..1])));
    assert_eq!((o.status.code(), text(&o).as_str()), (Some(2), ""), "{}", errors(&o));
    assert_eq!(errors(&o), errors(&single));
}

#[test]
fn the_document_shows_the_file_of_its_example() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let file = read("fixtures/fleet.toml");
    assert!(file.starts_with("version = 1\n"));
    assert!(read("docs/fleet.md").contains(&format!("```toml\n{file}```\n")), "docs/fleet.md shows another file");
}

/// A file with groups for hosts of the fixtures.
fn config_file(fleet: &Fleet, text: &str) -> String {
    let file = fleet.dir.join("fleet.conf");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

const GROUPS: &str = r#"version = 1
[host]
goal = "rpc"
[[interface]]
match = { driver = "igb" }
rings = { rx = 1024 }
[[interface]]
match = { name = "wan9" }
channels = 2
[host_group.router]
match = { driver = "mqnic", cpu_count = ">= 16" }
host = { goal = "forward", allow_disruption = true }
[[host_group.router.interface]]
match = { name = "lan9" }
channels = 2
[host_group.nowhere]
match = { cpu_count = "> 4000" }
[[host_group.nowhere.interface]]
match = { name = "eth0" }
channels = 2
"#;

/// Runs `config check -j` and returns status, lines and stderr.
fn config_check(file: &str, from: &[String]) -> (Option<i32>, Vec<Value>, String) {
    let o = run(&with(&["config", "check", "-j", file], from));
    (o.status.code(), lines(&o), errors(&o))
}

#[test]
fn a_configuration_is_compared_with_every_host() {
    let fleet = Fleet::new("config", 1);
    let file = config_file(&fleet, GROUPS);
    let (status, docs, notes) = config_check(&file, &fleet.files);
    assert_eq!(docs.len(), fleet.files.len());
    assert_eq!(status, Some(3), "{notes}");
    for (doc, capture) in docs.iter().zip(&fleet.files) {
        assert_eq!(doc["file"], capture.as_str());
        let c = &doc["config"];
        // The plan of the same file is the measure.
        let plan = run(&["plan", "-j", "--config", &file, "--exit-code", "--from", capture]);
        let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
        assert_eq!(c["changes"].as_u64().unwrap() as usize, plan["steps"].as_array().unwrap().len(), "{capture}");
        let empty = serde_json::json!([]);
        assert_eq!(c["host_groups"], *plan["intent"].get("host_groups").unwrap_or(&empty));
        let router = c["host_groups"] == serde_json::json!(["router"]);
        assert_eq!(plan["intent"]["goal"], if router { "forward" } else { "rpc" }, "{capture}");
        // Only the group permits changes that interrupt traffic.
        assert_eq!(c["interrupts_traffic"].as_bool().unwrap(), router, "{capture}");
        assert_eq!(c["verdict"] == "fits_partly", !c["not_planned"].as_array().unwrap().is_empty());
    }
    let routers = docs.iter().filter(|d| d["config"]["host_groups"] == serde_json::json!(["router"])).count();
    assert!(0 < routers && routers < docs.len(), "{routers}");
    // What matches no host is reported once; the entries of a group that matches none are part of it.
    for (text, there) in [
        ("no interface matches name wan9", true),
        ("no interface matches name lan9", true),
        ("host group nowhere matches no host (cpu_count >= 4001)", true),
        ("no interface matches name eth0", false),
    ] {
        assert_eq!(notes.matches(text).count(), usize::from(there), "{text}: {notes}");
    }
    // The page shows the same.
    let page = text(&narrow(&with(&["config", "check", &file], &fleet.files)));
    assert!(page.lines().all(|l| l.starts_with("Next: ") || l.chars().count() <= 80), "{page}");
    let partly = docs.iter().filter(|d| d["config"]["verdict"] == "fits_partly").count();
    let n = docs.len();
    let head = page.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(head.ends_with(&format!("{n} hosts: fits partly on {partly}, fits on {}", n - partly)), "{head}");
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(words.join(" ").contains("no interface matches name wan9"), "{page}");
}

#[test]
fn a_configuration_that_fails_on_some_hosts() {
    let fleet = Fleet::new("config-fails", 1);
    let groups = GROUPS.replace("cpu_count = \"> 4000\"", "driver = \"igb\"");
    let file = config_file(&fleet, &(groups + "[host_group.nowhere.host]\ngoal = \"stream\"\n"));
    let (status, docs, notes) = config_check(&file, &fleet.files);
    assert_eq!(status, Some(1), "{notes}");
    let failed: Vec<&Value> = docs.iter().filter(|d| d["config"]["verdict"] == "fails").collect();
    assert!(!failed.is_empty() && failed.len() < docs.len(), "{docs:#?}");
    for doc in failed {
        let fault = doc["config"]["faults"][0].as_str().unwrap();
        let words = ["line 12 (host group router)", "line 22 (host group nowhere)", "set goal differently"];
        assert!(words.iter().all(|w| fault.contains(w)), "{fault}");
        let o = run(&["plan", "--config", &file, "--from", doc["file"].as_str().unwrap()]);
        assert!(o.status.code() == Some(1) && errors(&o).contains(fault), "{}", errors(&o));
    }
    let page = text(&narrow(&with(&["config", "check", "-v", &file], &fleet.files)));
    let first = page.lines().skip_while(|l| !l.starts_with("HOST")).nth(1).unwrap();
    assert!(first.contains(" fails "), "{page}");
}

#[test]
fn a_capture_that_cannot_be_read_and_a_file_with_faults() {
    let fleet = Fleet::new("config-damaged", 1);
    let bad = fleet.damaged("bad.tar.gz");
    let file = config_file(&fleet, "version = 1\n");
    let (status, docs, notes) = config_check(&file, &[bad, fleet.files[0].clone()]);
    assert_eq!(status, Some(1), "{notes}");
    assert!(docs[0]["error"]["opened"] == false && docs[1]["config"]["verdict"].is_string(), "{docs:?}");
    let wrong = config_file(&fleet, "version = 1\nhosts = 1\n");
    let o = run(&with(&["config", "check", &wrong], &fleet.files));
    assert_eq!((o.status.code(), text(&o).as_str()), (Some(1), ""));
    assert!(errors(&o).contains("nothing was read from the host"), "{}", errors(&o));
    // The configuration file comes before the captures.
    let toml = fleet.dir.join("new.toml");
    std::fs::write(&toml, "version = 1\n").unwrap();
    let o = run(&["config", "check", "--from", &fleet.files[0], &toml.display().to_string()]);
    assert_eq!(o.status.code(), Some(2));
    assert!(errors(&o).contains("expected it before --from"), "{}", errors(&o));
}

/// The name in a redacted capture is not that of the host, so a group by name is undecided.
#[test]
fn an_unknown_name_is_no_match() {
    let fleet = Fleet::new("config-name", 1);
    let file =
        config_file(&fleet, "version = 1\n[host_group.all]\nmatch = { name = \"*\" }\nhost = { goal = \"forward\" }\n");
    let (_, docs, _) = config_check(&file, &fleet.files);
    let named = |d: &&Value| d["config"]["host"].is_string();
    assert!(docs.iter().any(|d| named(&d)) && !docs.iter().all(|d| named(&d)), "both kinds are among the fixtures");
    for doc in &docs {
        let c = &doc["config"];
        match named(&doc) {
            true => assert_eq!((&c["host_groups"][0], c["undecided"].as_array().unwrap().len()), (&"all".into(), 0)),
            false => {
                let note = c["undecided"][0].as_str().unwrap();
                assert!(note.contains("host group all does not apply, because the host name is unknown"), "{note}");
                assert!(c["verdict"] == "fits_partly" && c["host_groups"].as_array().unwrap().is_empty(), "{c}");
            }
        }
    }
}

/// A file may name an interface in `act_on_load` that it does not cover.
#[test]
fn config_check_notes_interfaces_that_follow_the_load_only() {
    let dir = Dir::named("fleet-load");
    let check = |interfaces: &str| {
        let body = format!("[host]\ngoal = \"rpc\"\ninterfaces = [{interfaces}]\nact_on_load = [\"eth1\"]\n");
        let file = dir.file("r.toml", &format!("version = 1\n{body}"));
        let (_, capture) = fixtures().into_iter().find(|(n, _)| n == "lab-router16-newest").unwrap();
        let o = run(&["config", "check", &file, "--from", &capture.display().to_string()]);
        assert_eq!(o.status.code(), Some(0), "{}", errors(&o));
        errors(&o)
    };
    let note = check("\"eth0\"");
    assert!(
        note.contains("ringwise: host.act_on_load names eth1, not in host.interfaces") && note.contains("(1 host)")
    );
    assert!(!check("\"eth0\", \"eth1\"").contains("act_on_load"));
}
