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
                    Some(what) if line > 0 => write!(f, "line {line}, column {column}: {what}"),
                    _ => f.write_str(&text),
                }
            }
        }
    }
}

impl Error for JsonFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_place() {
        let of = |text: &str| JsonFault::from(serde_json::from_str::<Vec<u8>>(text).unwrap_err()).to_string();
        assert_eq!(of("# ringwise"), "line 1, column 1 is not JSON");
        assert_eq!(of("[1,\n2"), "the JSON ends too early, in line 2");
        assert_eq!(of(""), "the JSON ends too early, in line 1");
        assert_eq!(of("[300]"), "line 1, column 4: invalid value: integer `300`, expected u8");
        let without_place = serde_json::from_value::<Vec<u8>>(serde_json::Value::Null).unwrap_err();
        assert_eq!(JsonFault::from(without_place).to_string(), "invalid type: null, expected a sequence");
    }
}
