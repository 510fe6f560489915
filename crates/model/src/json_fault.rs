//! Why a text is not the expected JSON, in ringwise's own words.

use std::error::Error;
use std::fmt;

use serde_json::error::Category;

/// Why a text could not be read as JSON: its place, and what is missing or unexpected there.
#[derive(Debug)]
pub struct JsonFault(serde_json::Error);

impl From<serde_json::Error> for JsonFault {
    fn from(e: serde_json::Error) -> Self {
        Self(e)
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.0.line(), self.0.column());
        match self.0.classify() {
            Category::Eof => write!(f, "the JSON ends too early, in line {line}"),
            Category::Syntax => write!(f, "line {line}, column {column} is not JSON"),
            // What is missing or unexpected is in the text only, which ends with the place.
            Category::Data | Category::Io => {
                let text = self.0.to_string();
                match text.strip_suffix(&format!(" at line {line} column {column}")) {
                    Some(what) if line > 0 => write!(f, "line {line}, column {column}: {}", plain(what)),
                    _ => f.write_str(&plain(&text)),
                }
            }
        }
    }
}

impl Error for JsonFault {}

/// What serde expected, in the words of JSON instead of those of Rust.
const EXPECTED: [(&str, &str); 14] = [
    ("a sequence", "an array"),
    ("a map", "an object"),
    ("unit", "null"),
    ("a boolean", "true or false"),
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i8", "a whole number from -128 to 127"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
];

/// serde's text for a value of another kind: `invalid type: map, expected a sequence` and its siblings. Others stay.
fn plain(text: &str) -> String {
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    let found =
        ["invalid type: ", "invalid value: "].iter().find_map(|p| text.strip_prefix(p)?.split_once(", expected "));
    let Some((found, expected)) = found else { return text.to_string() };
    let found = match found {
        "map" => "an object",
        "sequence" => "an array",
        other => other,
    };
    let named = EXPECTED.iter().find(|(rust, _)| *rust == expected).map(|(_, json)| *json);
    // `struct Plan`, `struct variant Step::Write`, `enum Goal`
    let object = expected.starts_with("struct ").then_some("an object");
    let word = expected.starts_with("enum ").then_some("one of its known names");
    format!("found {found}, expected {}", named.or(object).or(word).unwrap_or(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_place() {
        let of = |text: &str| JsonFault::from(serde_json::from_str::<Vec<u8>>(text).unwrap_err()).to_string();
        assert_eq!(of("# ringwise"), "line 1, column 1 is not JSON");
        assert_eq!(of("[1,\n2"), "the JSON ends too early, in line 2");
        assert_eq!(of(""), "the JSON ends too early, in line 1");
        assert_eq!(of("[300]"), "line 1, column 4: found integer `300`, expected a whole number from 0 to 255");
        assert_eq!(of("[{}]"), "line 1, column 1: found an object, expected a whole number from 0 to 255");
        assert_eq!(of("{}"), "line 1, column 0: found an object, expected an array");
        let without_place = serde_json::from_value::<Vec<u8>>(serde_json::Value::Null).unwrap_err();
        assert_eq!(JsonFault::from(without_place).to_string(), "found null, expected an array");
        assert_eq!(plain("missing field `steps`"), "`steps` is missing");
        assert_eq!(plain("invalid type: string \"x\", expected struct Plan"), "found string \"x\", expected an object");
        assert_eq!(plain("unknown variant `a`, expected `b`"), "unknown variant `a`, expected `b`");
    }
}
