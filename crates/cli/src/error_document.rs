//! The JSON document `ringwise.error`, which `-j` prints if a command fails before it prints another document.
//!
//! Its code is stable, so that programs never have to match a message.

use ringwise_model::errno;
use ringwise_render::json::Document;
use serde_json::{Value, json};

use crate::exit::{Fail, Status};

/// The code of an error that has none of its own.
fn code_of(status: Status) -> &'static str {
    match status {
        Status::Ok | Status::Error => "error",
        Status::Usage => "usage",
        Status::Findings => "needs_attention",
        Status::PutBack => "restored",
        Status::NotPutBack => "not_restored",
        Status::Refused => "refused",
    }
}

/// The document of an error, for one line of stdout.
pub(crate) fn document(fail: &Fail) -> Document<'static, Value> {
    let d = &*fail.details;
    let mut body = json!({
        "status": fail.status as u8,
        "code": d.code.as_deref().unwrap_or(code_of(fail.status)),
        "message": fail.message,
    });
    let mut add = |key: &str, value: Value| body[key] = value;
    if !d.facts.is_empty() {
        add("facts", d.facts.clone().into());
    }
    if let Some(n) = d.errno {
        add("errno", n.into());
        if let Some(name) = errno::name(n) {
            add("errno_name", name.into());
        }
    }
    if let Some(file) = &d.file {
        add("file", file.display().to_string().into());
    }
    if !d.places.is_empty() {
        add("places", json!(d.places));
    }
    if !d.settings.is_empty() {
        add("settings", json!(d.settings));
    }
    if let Some(next) = &fail.next {
        add("next", next.as_str().into());
    }
    Document { schema: "ringwise.error", version: 1, body }
}

/// Whether a command line requests JSON. It also answers for a command line that cannot be parsed.
///
/// `words`: without the name of the program.
pub(crate) fn requested(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str).take_while(|w| *w != "--").peekable();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--") {
            Some("json") => return true,
            Some("output") => words.peek().copied(),
            Some(long) => long.strip_prefix("output="),
            None => match short_output(word) {
                Some(ShortOptions::Json) => return true,
                Some(ShortOptions::Output("")) => words.peek().copied(),
                Some(ShortOptions::Output(value)) => Some(value),
                None => None,
            },
        };
        if value == Some("json") {
            return true;
        }
    }
    false
}

/// What a word of short options, such as `-qj`, contributes.
enum ShortOptions<'a> {
    /// `-j`
    Json,
    /// `-o`, with the value in the same word.
    Output(&'a str),
}

fn short_output(word: &str) -> Option<ShortOptions<'_>> {
    let letters = word.strip_prefix('-')?;
    let at = letters.find(|c: char| c == 'j' || c == 'o' || !c.is_ascii_alphabetic())?;
    match letters.get(at..at + 1)? {
        "j" => Some(ShortOptions::Json),
        "o" => Some(ShortOptions::Output(letters[at + 1..].trim_start_matches('='))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_requested(line: &str) -> bool {
        requested(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn json_in_every_form_of_the_command_line() {
        for line in ["-j x", "plan --json", "plan -nj", "verify -qj", "plan -o json", "plan -ojson", "x -no json"] {
            assert!(is_requested(line), "{line}");
        }
        for line in ["plan --output json", "plan --output=json", "plan -o=json", "apply --oops -j"] {
            assert!(is_requested(line), "{line}");
        }
        for line in ["", "-q", "plan -o diff", "plan -odiff json", "hold --cpu-latency 0 -- jq -j", "explain -", "json"]
        {
            assert!(!is_requested(line), "{line}");
        }
    }

    #[test]
    fn errors_have_a_code_and_what_belongs_to_it() {
        let e = std::io::Error::from_raw_os_error(2);
        let fail = Fail::io("/x.toml", &e).file("/x.toml").next("ringwise config init > FILE");
        let expected = json!({
            "schema": "ringwise.error", "version": 1, "status": 1, "code": "io", "errno": 2, "errno_name": "ENOENT",
            "message": "/x.toml: ENOENT (No such file or directory)", "file": "/x.toml",
            "next": "ringwise config init > FILE",
        });
        assert_eq!(serde_json::to_value(document(&fail)).unwrap(), expected);
        let refusal = ringwise_apply::Refusal::Unfinished { transaction: 7 };
        let doc = serde_json::to_value(document(&Fail::new(Status::Refused, "x").tagged("refused", &refusal))).unwrap();
        assert_eq!((&doc["code"], &doc["facts"]), (&json!("unfinished"), &json!({ "transaction": 7 })));
        assert_eq!(serde_json::to_value(document(&Fail::usage("x"))).unwrap()["code"], "usage");
        let bare = Fail::new(Status::Refused, "x").tagged("refused", &ringwise_apply::Refusal::ReadOnly);
        assert_eq!(bare.details.code.as_deref(), Some("read_only"));
    }
}
