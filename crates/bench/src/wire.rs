//! Requests and replies as lines of JSON.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::side::{Reply, Request};

/// The longest line of this protocol; longer lines are refused.
pub(crate) const MOST: u64 = 1 << 20;
/// The client sends a sign of life this often.
pub(crate) const ALIVE_EACH: Duration = Duration::from_secs(10);
/// After this time without a line from the client everything is stopped.
pub(crate) const SILENT: Duration = Duration::from_secs(30);
/// Time limit for the first request.
pub(crate) const FIRST: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestLine {
    /// The number that the reply repeats.
    pub id: u64,
    /// `None`: a sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReplyLine {
    /// The request of this reply; 0: none.
    pub id: u64,
    pub reply: Reply,
}

/// The next line without its newline; `None`: end of the stream.
///
/// Errors: a line longer than [`MOST`], cut off or not UTF-8, or the error of the stream.
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

pub(crate) fn write_request(to: &mut dyn Write, asked: &RequestLine) -> io::Result<()> {
    write(to, serde_json::to_string(asked)?)
}

pub(crate) fn write_reply(to: &mut dyn Write, answered: &ReplyLine) -> io::Result<()> {
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
        assert!(serde_json::from_str::<RequestLine>("{\"id\":7}").unwrap().request.is_none());
    }
}
