//! The text and the evidence of each finding of the positive cases.

use std::fmt::Write;
use std::path::Path;

use ringwise_check::{Finding, Report, Severity};
use ringwise_testkit::golden::compare;

use super::{CASES, run};

fn findings<'a>(r: &'a Report, rule: &'a str) -> impl Iterator<Item = &'a Finding> {
    let all = r.findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences));
    all.filter(move |f| f.rule == rule)
}

#[test]
fn text_of_each_finding() {
    let mut out = String::new();
    for c in CASES {
        let (_, r) = run(c.positive);
        for f in findings(&r, c.rule) {
            let (at, severity) = (f.dev.as_deref().unwrap_or("host"), Severity::name(f.severity));
            let _ = writeln!(out, "{} {at} {severity}: {}", f.rule, f.text);
            f.evidence.iter().for_each(|e| _ = writeln!(out, "    {e}"));
            f.by_hand.iter().for_each(|e| _ = writeln!(out, "    manual: {e}"));
            f.remedy.iter().for_each(|e| _ = writeln!(out, "    remedy: {e}"));
        }
    }
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/texts.txt"), &out);
}

/// A finding of a rule can be written to JSON and read back; a finding about the plan has reasons.
#[test]
fn each_finding_is_data() {
    for c in CASES {
        let (_, r) = run(c.positive);
        for f in findings(&r, c.rule) {
            let json = serde_json::to_value(f).unwrap();
            let back: Finding = serde_json::from_value(json.clone()).unwrap();
            match &back.found {
                Some(found) => {
                    assert!(f.reasons.is_empty() && json["code"].is_string(), "{json}");
                    assert_eq!((found.to_string(), std::mem::discriminant(found)), {
                        let found = f.found.as_ref().unwrap();
                        (f.text.clone(), std::mem::discriminant(found))
                    });
                }
                None => assert!(!f.reasons.is_empty() && json.get("code").is_none(), "{json}"),
            }
        }
    }
}
