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
fn what_each_finding_says() {
    let mut out = String::new();
    for c in CASES {
        let (_, r) = run(c.positive);
        for f in findings(&r, c.rule) {
            let (at, severity) = (f.dev.as_deref().unwrap_or("host"), Severity::name(f.severity));
            let _ = writeln!(out, "{} {at} {severity}: {}", f.rule, f.text);
            f.evidence.iter().for_each(|e| _ = writeln!(out, "    {e}"));
            f.by_hand.iter().for_each(|e| _ = writeln!(out, "    by hand: {e}"));
            f.remedy.iter().for_each(|e| _ = writeln!(out, "    remedy: {e}"));
        }
    }
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/texts.txt"), &out);
}
