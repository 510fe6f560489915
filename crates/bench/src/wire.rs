//! Requests and replies as lines of JSON.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::side::{Reply, Request};

/// Nothing we say is longer; what is longer is not ours.
pub(crate) const MOST: u64 = 1 << 20;
/// Who asks says so often that it is still there.
pub(crate) const ALIVE_EACH: Duration = Duration::from_secs(10);
/// After so long without a word everything is stopped.
pub(crate) const SILENT: Duration = Duration::from_secs(30);
/// For the first request.
pub(crate) const FIRST: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Comes back with the reply.
    pub id: u64,
    /// None: still alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// 0: to no request.
    pub id: u64,
    pub reply: Reply,
}

/// Without its end; None: there is no more.
///
/// Errors: longer than [`MOST`], cut off, no UTF-8, or what the stream says.
pub(crate) fn read_line(from: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if from.take(MOST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        let why = if line.len() as u64 + 1 >= MOST { "a line of more than 1 MiB" } else { "a line was cut off" };
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    String::from_utf8(line)
        .map(Some)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line that is not UTF-8"))
}

pub(crate) fn write_asked(to: &mut dyn Write, asked: &Asked) -> io::Result<()> {
    write(to, serde_json::to_string(asked)?)
}

pub(crate) fn write_answered(to: &mut dyn Write, answered: &Answered) -> io::Result<()> {
    write(to, serde_json::to_string(answered)?)
}

fn write(to: &mut dyn Write, mut line: String) -> io::Result<()> {
    line.push('\n');
    to.write_all(line.as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_whole() {
        let mut good = &b"{\"id\":1}\nrest"[..];
        assert_eq!(read_line(&mut good).unwrap().as_deref(), Some("{\"id\":1}"));
        assert!(read_line(&mut good).unwrap_err().to_string().contains("cut off"));
        assert_eq!(read_line(&mut good).unwrap(), None);
        let long = vec![b'x'; MOST as usize + 1];
        assert!(read_line(&mut &long[..]).unwrap_err().to_string().contains("1 MiB"));
        assert!(serde_json::from_str::<Asked>("{\"id\":7}").unwrap().request.is_none());
    }
}
