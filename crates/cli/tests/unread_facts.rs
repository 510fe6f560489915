//! What the program prints where a recording lacks facts, or where the plan's model and its rules disagree.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

pub(crate) struct CommandOutput {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program about a recorded host; `file` is below `fixtures/hosts`.
pub(crate) fn ringwise(file: &str, args: &[&str]) -> CommandOutput {
    let hosts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    let o = c.current_dir(hosts).args(args).args(["--from", file]).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    CommandOutput { status: o.status.code(), out: text(o.stdout), err: text(o.stderr) }
}

/// A tree of `/proc` and `/sys` files that lacks the nodes, the interrupts' CPUs and the queues of eth1.
const PARTIAL: &str = "packed-by-others/tree.tar.gz";

#[test]
fn the_first_line_calls_unknown_interrupts_unknown() {
    let a = ringwise(PARTIAL, &[]);
    let first = a.out.lines().next().unwrap();
    let want = "Interrupts of eth0 eth1: their CPUs are unknown; ringwise check lists what could not be read";
    assert_eq!(first, want, "{}", a.err);
    // Known ones are still counted.
    let a = ringwise("lab-router3-6.12/capture.tar.gz", &[]);
    assert!(a.out.starts_with("Interrupts of 3 interfaces: none on a remote or isolated CPU; ringwise"), "{}", a.out);
}

#[test]
fn a_plan_counts_what_it_could_not_read() {
    let a = ringwise(PARTIAL, &["plan", "--goal", "forward"]);
    assert_eq!(a.status, Some(0), "{}", a.err);
    let want = "r-branch: nothing to change in what could be read (9 settings as planned, 7 not readable); whether the goal \
                is met is unknown.\nSkipped: eth1 (its queues are unknown).\n";
    assert!(a.out.starts_with(want), "{}", a.out);
    let full = ringwise(PARTIAL, &["plan", "--goal", "forward", "--full"]).out;
    assert_eq!(full.lines().filter(|l| l.starts_with("= ")).count(), 9, "{full}");
    let json = ringwise(PARTIAL, &["plan", "--goal", "forward", "-j"]).out;
    let plan: Value = serde_json::from_str(&json).unwrap();
    let settings = |r: &Value| r.get("settings").map_or(1, |n| n.as_u64().unwrap());
    assert_eq!(plan["refused"].as_array().unwrap().iter().map(settings).sum::<u64>(), 7);
}

#[test]
fn an_interface_whose_queues_are_unknown_needs_a_capture() {
    let a = ringwise(PARTIAL, &["show", "eth1"]);
    assert!(!a.out.contains("AF_XDP"), "{}", a.out);
    assert!(!a.out.contains("ringwise plan"), "{}", a.out);
    assert!(a.out.contains("ringwise capture FILE"), "{}", a.out);
    let a = ringwise(PARTIAL, &["plan", "eth1"]);
    assert_eq!(a.status, Some(1));
    let want = "error: eth1 cannot be tuned: its queues are unknown\nTry: on that host: ringwise capture FILE\n";
    assert!(a.err.starts_with(want), "{}", a.err);
}

#[test]
fn interfaces_of_unknown_kind_are_not_counted_as_down() {
    let a = ringwise(PARTIAL, &["plan", "--goal", "auto"]);
    assert!(a.err.contains("(ip_forward=0, 1 interface up and 1 of unknown kind or link)"), "{}", a.err);
}

/// The number before `word`, with the line that has it.
fn count(page: &str, word: &str) -> u64 {
    let at = page.find(word).unwrap_or_else(|| panic!("no {word:?} in {page}"));
    page[..at].split_ascii_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn a_page_has_one_count_of_rules_that_were_not_readable() {
    for (file, args) in [(PARTIAL, &["check"] as &[&str]), ("mlx5/tree.tar.gz", &["check"])] {
        let page = ringwise(file, args).out;
        assert_eq!(count(&page, "rules: not in this capture"), count(&page, "not readable"), "{page}");
    }
}

#[test]
fn pause_frames_for_rdma_are_not_missing_from_the_goal() {
    let page = ringwise("mlx5/tree.tar.gz", &["plan", "--goal", "forward"]).out;
    let line = page.lines().find(|l| l.starts_with("x ") && l.contains("pause frames")).unwrap();
    assert!(line.contains("RDMA device mlx5_0") && line.ends_with("optional for this goal"), "{line}");
    let page = ringwise("mlx5/tree.tar.gz", &["plan", "--goal", "forward", "--print-config"]).out;
    assert!(
        page.contains("unless the file configures it (pause not where an RDMA device may depend on it):\n"),
        "{page}"
    );
}

#[test]
fn check_and_plan_agree_that_only_a_measurement_decides() {
    let from = "article48/tree.tar.gz";
    let plan = ringwise(from, &["plan", "--goal", "forward"]).out;
    let warning = "Warning: by its model this plan carries 0.5 times as much traffic as now";
    assert!(plan.contains(warning) && plan.contains("ringwise bench forward"), "{plan}");
    let check = ringwise(from, &["check", "--goal", "forward"]);
    assert_eq!(check.status, Some(0));
    assert!(!check.out.contains("First:") && !check.out.contains("are fixed by this"), "{}", check.out);
    let text = "only a measurement shows whether sharing them is faster (ringwise bench forward --help)";
    assert!(check.out.contains(text), "{}", check.out);
    // Goal balanced has no such model.
    let check = ringwise(from, &["check"]).out;
    assert!(check.contains("First: A03 eth0:"), "{check}");
}

#[test]
fn a_core_that_the_plan_uses_is_no_reason_to_leave_it() {
    let args = ["plan", "--goal", "forward", "--reserve", "0", "--full"];
    let page = ringwise("lab-router3-6.12/capture.tar.gz", &args).out;
    let line = page.lines().find(|l| l.starts_with("~ eth2 interrupt CPU rx-3 ")).unwrap();
    assert!(line.contains("0-7, on 1 -> 7 ") && line.contains("the CPU of this queue number on all ports"), "{line}");
    assert!(page.contains("eth0 interrupt CPU rx-5         0-7, on 1 -> 1 "), "{page}");
}

#[test]
fn unknown_control_paths_are_one_sentence() {
    let args = ["plan", "eth1", "--goal", "rpc", "--queues", "4", "--allow-disruption"];
    let page = ringwise("lab-router3-6.12/capture.tar.gz", &args).out;
    let want = "Whether eth1 channels would interrupt default routes, iSCSI sessions or ssh sessions is unknown: not in this \
                capture. Only for this reason the command below has --force and --confirm: apply looks again on the host \
                itself, and restores everything unless you confirm.\n";
    assert!(page.contains(want), "{page}");
    assert!(page.contains("--force --confirm 60s\n  ringwise confirm\n"), "{page}");
}

#[test]
fn the_documentation_has_the_number_of_rules() {
    let page = include_str!("../../../docs/check.md");
    let rules = ringwise_check::rules().count();
    assert!(page.contains(&format!("against [{rules} rules](rules.md)")), "docs/check.md: expected {rules} rules");
}
