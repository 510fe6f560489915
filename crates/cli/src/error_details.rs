//! What an error holds for programs, besides its message.

use std::path::PathBuf;

use ringwise_knob::Address;
use serde::Serialize;
use serde_json::{Map, Value};

/// What the document holds besides status, message and next command.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// `None`: that of the status.
    pub code: Option<String>,
    /// Values that depend on the code.
    pub facts: Map<String, Value>,
    /// The errno of the kernel, where it gave one.
    pub errno: Option<i32>,
    /// The file that the error is about.
    pub file: Option<PathBuf>,
    /// Faults in that file, in the order of its lines.
    pub places: Vec<FaultPlace>,
    /// Settings that the error is about.
    pub settings: Vec<Address>,
}

/// A fault in a file. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultPlace {
    /// Line of the file.
    pub line: usize,
    /// Column of the line, in characters.
    pub column: usize,
    /// What is wrong, with what was written.
    pub found: String,
    /// What is expected. `None`: `found` is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl Details {
    /// Sets code and facts from an error that carries its code in the field `tag`.
    pub(crate) fn tagged(&mut self, tag: &str, error: &impl Serialize) {
        // An error without fields is a text or an object with the tag alone.
        let Ok(Value::Object(mut facts)) = serde_json::to_value(error) else { return };
        if let Some(Value::String(code)) = facts.remove(tag) {
            (self.code, self.facts) = (Some(code), facts);
        }
    }
}
