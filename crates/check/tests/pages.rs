//! `docs/rules` is generated from the rules. `RINGWISE_BLESS=1` writes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringwise_check::{explain, index_page, left_out_page, markdown, rules};
use ringwise_testkit::golden::compare;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn pages_are_current() {
    let dir = docs().join("rules");
    for r in rules() {
        compare(&dir.join(format!("{}.md", r.id)), &markdown(r));
    }
    compare(&docs().join("rules-left-out.md"), &left_out_page());
    compare(&docs().join("rules.md"), &index_page());
    let want: BTreeSet<String> = rules().map(|r| format!("{}.md", r.id)).collect();
    let got: BTreeSet<String> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(got, want, "exactly one page for each rule");
}

/// The page of each rule states what must be known, or hold, before the rule is judged.
#[test]
fn every_page_has_a_precondition() {
    for r in rules() {
        let page = markdown(r);
        let stated = page.lines().find_map(|l| l.strip_prefix("**Precondition.** "));
        let text = stated.unwrap_or_else(|| panic!("{}: no precondition", r.id));
        assert_eq!(text, r.guard, "{}", r.id);
        assert!(text.split_whitespace().count() >= 2 && !text.ends_with('.'), "{}: {text}", r.id);
        assert_ne!(text, r.condition, "{}: the precondition is the condition", r.id);
    }
}

#[test]
fn every_id_of_a_rule_opens_its_page() {
    let page = explain("a03", 80).unwrap();
    assert!(page.starts_with("A03  interrupt on a remote node  (warning)"), "{page}");
    assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
    assert!(explain("R1.15", 80).unwrap().starts_with("M21"));
    assert!(explain("H19", 80).unwrap().contains("Not judged"));
    assert_eq!(explain("Z99", 80), None);
}

/// Words in capitals that need no explanation: names that every administrator of a network knows, placeholders of
/// commands, and what the kernel and its tools print.
const KNOWN: [&str; 3] = [
    "CPU GB ID IP IRQ MB PCI PID RX TCP TX UDP",
    "ADDRESS ALL CPUS DEV DRIVER FILE FLOW GOAL GROUP KEY LIST LOWER MASK NAME",
    "DLN EFAULT EIO ENOSPC FF FQ NETDEV RR VECTOR WATCHDOG",
];

/// Every abbreviation of a page is among its terms. Titles of sources are quotations.
#[test]
fn pages_explain_their_abbreviations() {
    let mut missing = BTreeSet::new();
    for r in rules() {
        let page = markdown(r);
        let (body, after) = page.split_once("**Source.**").expect("every page has a source");
        for word in body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let short = word.trim_end_matches('s');
            let capitals = short.chars().filter(char::is_ascii_uppercase).count();
            let abbreviation = capitals >= 2 && short.chars().skip(1).all(|c| c.is_ascii_uppercase());
            let explained =
                after.contains(&format!("- {short}: ")) || KNOWN.iter().any(|k| k.split(' ').any(|k| k == short));
            if abbreviation && !explained {
                missing.insert(format!("{}: {word}", r.id));
            }
        }
    }
    assert!(missing.is_empty(), "not explained: {missing:#?}");
}
