//! stdout is the answer, stderr everything else. A reader that goes away (`| head`) is no error.

use std::io::{ErrorKind, Write};

use crate::exit::{Fail, Result};

/// Writes the answer.
pub fn answer(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Fail::error(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Writes a JSON document and a newline.
pub fn json<T: serde::Serialize>(doc: &T) -> Result<()> {
    let mut text = serde_json::to_string_pretty(doc).map_err(|e| Fail::error(format!("cannot write JSON: {e}")))?;
    text.push('\n');
    answer(&text)
}

/// Progress, questions and warnings. A closed stderr is nobody's concern.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        let mut err = std::io::stderr().lock();
        let _ = writeln!(err, "{text}");
    }
}

/// An error; `-q` does not silence it.
pub fn error(text: &str) {
    note(false, text);
}
