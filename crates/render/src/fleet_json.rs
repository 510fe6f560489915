//! The lines of `check -j` and `plan -j` about several captures.

use serde::Serialize;

use crate::fleet::FailedCapture;

/// Name of the JSON document of a line.
pub const SCHEMA: &str = "ringwise.fleet";
/// Stays the same when a member is added; is raised when a member is removed or changed.
pub const VERSION: u32 = 1;

/// What a line begins with.
#[derive(Serialize)]
struct Head<'a> {
    schema: &'a str,
    version: u32,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_plan_as: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
}

/// Why there is no result.
#[derive(Serialize)]
struct Error<'a> {
    opened: bool,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
}

fn head(file: &str, same_plan_as: Option<&str>, error: Option<Error>) -> serde_json::Result<String> {
    serde_json::to_string(&Head { schema: SCHEMA, version: VERSION, file, same_plan_as, error })
}

/// The line about one capture. `member`: `check` or `plan`, whose `document` is JSON text of one line. `same_plan_as`: the file
/// of the first capture with the same plan.
///
/// # Errors
///
/// If the line cannot be serialized.
pub fn result(file: &str, same_plan_as: Option<&str>, member: &str, document: &str) -> serde_json::Result<String> {
    let mut line = head(file, same_plan_as, None)?;
    // The document was serialized in the thread that made it, so it is not parsed again.
    line.truncate(line.len() - 1);
    Ok(format!("{line},\"{member}\":{document}}}"))
}

/// The line about a capture that could not be used.
///
/// # Errors
///
/// If the line cannot be serialized.
pub fn failure(f: &FailedCapture) -> serde_json::Result<String> {
    let error = Error { opened: f.expected.is_none(), why: &f.why, expected: f.expected };
    head(&f.file, None, Some(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_line_is_one_document() {
        let line = result("a \"b\".tar.gz", Some("c\n.tar.gz"), "plan", r#"{"steps":[]}"#).unwrap();
        assert!(!line.contains('\n'), "{line}");
        let doc: Value = serde_json::from_str(&line).unwrap();
        let same = "c\n.tar.gz";
        let all = json!({ "schema": SCHEMA, "version": VERSION, "file": "a \"b\".tar.gz", "same_plan_as": same, "plan": { "steps": [] } });
        assert_eq!(doc, all);
    }

    #[test]
    fn an_error_has_what_was_found_and_expected() {
        let failed = |expected| FailedCapture { file: "x".into(), why: "open x: ENOENT".into(), expected };
        let doc = |f: &FailedCapture| serde_json::from_str::<Value>(&failure(f).unwrap()).unwrap();
        let error = json!({ "opened": false, "why": "open x: ENOENT", "expected": "a capture" });
        assert_eq!(doc(&failed(Some("a capture")))["error"], error);
        assert_eq!(doc(&failed(None))["error"], json!({ "opened": true, "why": "open x: ENOENT" }));
    }
}
