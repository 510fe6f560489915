//! The report for other programs: SARIF 2.1.0 and JUnit.

use ringwise_model::words::xml;
use serde_json::{Value, json};

use crate::report::{Accepted, Finding, Report, UnreadableCapture};
use crate::rules::rules;
use crate::severity::Severity;

fn all(r: &Report) -> impl Iterator<Item = &Finding> {
    r.findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences))
}

fn place(host: &str, f: &Finding) -> String {
    f.dev.as_ref().map_or_else(|| host.to_string(), |d| format!("{host}/{d}"))
}

/// A path relative to the root of the host, because readers of SARIF expect a file.
fn uri(f: &Finding) -> String {
    f.dev.as_ref().map_or_else(|| "proc".into(), |d| format!("sys/class/net/{}", escaped(d)))
}

/// Escapes text for a URI: the name of an interface may contain nearly every byte.
fn escaped(text: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// One run for each host, and a failed run for each capture that could not be read.
pub fn sarif(reports: &[Report], unopened: &[UnreadableCapture]) -> Value {
    let descriptor = |r: &crate::Rule| {
        json!({
            "id": r.id, "name": r.title, "shortDescription": { "text": r.title },
            "fullDescription": { "text": r.why() },
            "help": { "text": format!("Condition: {}. Source: {}.", r.condition, r.source()) },
            "defaultConfiguration": { "level": level(r.severity) },
        })
    };
    let ids: Vec<&str> = rules().map(|r| r.id).collect();
    let rules: Vec<Value> = rules().map(descriptor).collect();
    let result = |host: &str, f: &Finding, accepted: Option<&str>| {
        let mut v = json!({
            "ruleId": f.rule, "ruleIndex": ids.iter().position(|i| *i == f.rule), "level": level(f.severity), "message": { "text": f.text },
            "locations": [{
                "physicalLocation": { "artifactLocation": { "uri": uri(f), "uriBaseId": "HOST" } },
                "logicalLocations": [{ "fullyQualifiedName": place(host, f), "kind": "resource" }],
            }],
            "partialFingerprints": { "ringwise/v1": format!("{} {}", place(host, f), f.rule) },
            "properties": { "evidence": f.evidence, "reasons": f.reasons, "remedy": f.remedy, "byHand": f.by_hand, "also": f.also },
        });
        if let Some(found) = &f.found {
            v["properties"]["found"] = json!(found);
        }
        if let Some(why) = accepted {
            v["suppressions"] = json!([{ "kind": "external", "status": "accepted", "justification": why }]);
        }
        v
    };
    let run = |r: &Report| {
        let host = r.name_among(reports);
        let mut results: Vec<Value> = all(r).map(|f| result(&host, f, None)).collect();
        for a in &r.accepted {
            let each = std::iter::once(&a.finding).chain(&a.finding.consequences);
            results.extend(each.map(|f| result(&host, f, Some(&a.reason))));
        }
        let unreadable = |u: &crate::Unreadable| json!({ "level": "warning", "message": { "text": format!("{}: {}", u.what, u.why) }, "associatedRule": { "id": u.rule } });
        json!({
            "automationDetails": { "id": format!("ringwise/{}/", r.host.as_deref().unwrap_or("host")) },
            "originalUriBaseIds": { "HOST": { "description": { "text": "the root of the host" } } },
            "tool": { "driver": { "name": "ringwise", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": r.unreadable.iter().map(unreadable).collect::<Vec<_>>() }],
            "results": results,
        })
    };
    let failed = |u: &UnreadableCapture| {
        json!({
            "tool": { "driver": { "name": "ringwise", "version": env!("CARGO_PKG_VERSION") } },
            "invocations": [{ "executionSuccessful": false, "toolExecutionNotifications": [
                { "level": "error", "message": { "text": format!("{}: {}", u.file, u.why) } },
            ] }],
        })
    };
    let runs: Vec<Value> = unopened.iter().map(failed).chain(reports.iter().map(run)).collect();
    json!({ "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": runs })
}

fn level(s: Severity) -> &'static str {
    match s {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// One suite for each host, one case for each rule. A finding of severity `fail_on` or higher fails its case; with
/// `None` no case fails. A capture that could not be read is a suite with an error.
pub fn junit(reports: &[Report], unopened: &[UnreadableCapture], fail_on: Option<Severity>) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_string();
    for u in unopened {
        out += &format!(
            " <testsuite name=\"{0}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n  \
             <testcase classname=\"ringwise.check\" name=\"the capture is readable\">\n   \
             <error type=\"unreadable\" message=\"{1}\"/>\n  </testcase>\n </testsuite>\n",
            xml(&u.file),
            xml(&u.why)
        );
    }
    for r in reports {
        let host = r.name_among(reports);
        let fails = |f: &Finding| fail_on.is_some_and(|s| f.severity >= s);
        let mut cases = String::new();
        let (mut failures, mut skipped, mut tests) = (0, 0, 0);
        for rule in rules() {
            let mine: Vec<&Finding> = all(r).filter(|f| f.rule == rule.id).collect();
            let mut body = String::new();
            failures += usize::from(mine.iter().any(|f| fails(f)));
            for f in mine.iter().filter(|f| fails(f)) {
                let more = [f.evidence.join("\n"), f.remedy.clone().unwrap_or_default()].join("\n");
                body += &format!(
                    "   <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                    f.severity.name(),
                    xml(&format!("{}: {}", place(&host, f), f.text)),
                    xml(more.trim())
                );
            }
            for f in mine.iter().filter(|f| !fails(f)) {
                body += &format!("   <system-out>{}</system-out>\n", xml(&format!("{}: {}", place(&host, f), f.text)));
            }
            let known = |a: &&Accepted| a.finding.rule == rule.id;
            for a in r.accepted.iter().filter(known) {
                let text = format!(
                    "{}: {} (accepted until {}: {})",
                    place(&host, &a.finding),
                    a.finding.text,
                    a.until,
                    a.reason
                );
                body += &format!("   <system-out>{}</system-out>\n", xml(&text));
            }
            let why = match () {
                () if !mine.is_empty() => None,
                () if r.not_evaluated.iter().any(|i| i == rule.id) => Some("needs two samples".to_string()),
                () if r.not_applied.iter().any(|i| i == rule.id) => Some("does not apply here".to_string()),
                () => r.unreadable.iter().find(|u| u.rule == rule.id).map(|u| format!("{}: {}", u.what, u.why)),
            };
            if let Some(why) = why {
                body += &format!("   <skipped message=\"{}\"/>\n", xml(&why));
                skipped += 1;
            }
            tests += 1;
            cases += &format!(
                "  <testcase classname=\"ringwise.check\" name=\"{} {}\">\n{body}  </testcase>\n",
                rule.id,
                xml(rule.title)
            );
        }
        let host = xml(&host);
        out += &format!(
            " <testsuite name=\"{host}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases} </testsuite>\n"
        );
    }
    out + "</testsuites>\n"
}
