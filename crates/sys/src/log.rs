//! Writes to the system log: to journald by its own protocol, else to syslog, else nowhere.
//!
//! The socket never blocks, and its errors are ignored: a full or missing log is no reason to leave a host half tuned.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

const JOURNALD: &str = "/run/systemd/journal/socket";
const SYSLOG: &str = "/dev/log";
const IDENTIFIER: &str = "ringwise";
/// `LOG_DAEMON`, which a syslog line has above the three bits of the priority.
const FACILITY: u8 = 3;
/// Maximum length of a value after a datagram was found to be too large.
const CUT: usize = 4096;

/// Numbers as in syslog(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// `LOG_ERR`: settings are left that could not be restored.
    Error = 3,
    /// `LOG_WARNING`: ringwise went on, and an administrator should look.
    Warning = 4,
    /// `LOG_NOTICE`: a normal event that changes the host.
    Notice = 5,
    /// `LOG_INFO`: a normal event that changes nothing.
    Info = 6,
}

/// Name and value; names are upper case, digits and `_`.
pub type Field<'a> = (&'a str, &'a str);

enum To {
    Journald(UnixDatagram),
    Syslog(UnixDatagram),
    Nothing,
}

/// An open log.
pub struct Log {
    to: To,
    login_uid: Option<String>,
}

impl Log {
    /// Opens journald if it listens, else syslog, else nothing.
    pub fn open() -> Self {
        Self::at(Path::new(JOURNALD), Path::new(SYSLOG))
    }

    /// A log that goes nowhere.
    pub fn nowhere() -> Self {
        Self { to: To::Nothing, login_uid: None }
    }

    fn at(journald: &Path, syslog: &Path) -> Self {
        let to = match (connect(journald), connect(syslog)) {
            (Some(s), _) => To::Journald(s),
            (None, Some(s)) => To::Syslog(s),
            (None, None) => To::Nothing,
        };
        Self { to, login_uid: login_uid() }
    }

    /// Writes one line. `fields` are added if the log supports fields; the login uid is always added.
    pub fn line(&self, priority: Priority, message: &str, fields: &[Field]) {
        let socket = match &self.to {
            To::Journald(s) | To::Syslog(s) => s,
            To::Nothing => return,
        };
        if matches!(self.to, To::Syslog(_)) {
            let n = FACILITY << 3 | priority as u8;
            let line = format!("<{n}>{IDENTIFIER}[{}]: {}", std::process::id(), message.replace('\n', " "));
            let _ = socket.send(line.as_bytes());
            return;
        }
        let number = (priority as u8).to_string();
        let mut all = vec![("MESSAGE", message), ("PRIORITY", number.as_str()), ("SYSLOG_IDENTIFIER", IDENTIFIER)];
        if let Some(uid) = &self.login_uid {
            all.push(("RINGWISE_LOGINUID", uid));
        }
        all.extend_from_slice(fields);
        if let Err(e) = socket.send(&datagram(&all, usize::MAX))
            && e.raw_os_error() == Some(libc::EMSGSIZE)
        {
            // A second attempt with shortened values; its result is ignored.
            let _ = socket.send(&datagram(&all, CUT));
        }
    }
}

fn connect(path: &Path) -> Option<UnixDatagram> {
    let open = || -> io::Result<UnixDatagram> {
        let s = UnixDatagram::unbound()?;
        s.set_nonblocking(true)?;
        s.connect(path)?;
        Ok(s)
    };
    open().ok()
}

/// The user who logged in, as the kernel remembers it through `su` and `sudo`. 4294967295: none.
pub fn login_uid() -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/loginuid").ok()?;
    let text = text.trim();
    (!text.is_empty() && text != "4294967295").then(|| text.to_string())
}

/// `NAME=value\n`; a value of several lines as name, newline, length (64 bits, little-endian), value, newline.
fn datagram(fields: &[Field], longest: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        let cut = cut(value, longest);
        let note = format!(" (cut, {} bytes)", value.len());
        let value = [cut, if cut.len() < value.len() { note.as_str() } else { "" }].concat();
        out.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            out.push(b'\n');
            out.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            out.push(b'=');
        }
        out.extend_from_slice(value.as_bytes());
        out.push(b'\n');
    }
    out
}

fn cut(text: &str, longest: usize) -> &str {
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("ringwise-log-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 20];
        let n = socket.recv(&mut buffer).unwrap();
        buffer.truncate(n);
        buffer
    }

    #[test]
    fn journald_gets_fields() {
        let place = Place::new("journald");
        let (journald, syslog) = (place.0.join("journald"), place.0.join("syslog"));
        let ear = UnixDatagram::bind(&journald).unwrap();
        let log = Log { login_uid: Some("1000".into()), ..Log::at(&journald, &syslog) };
        log.line(Priority::Notice, "transaction 1 begins", &[("RINGWISE_TRANSACTION", "1")]);
        assert_eq!(
            String::from_utf8(received(&ear)).unwrap(),
            "MESSAGE=transaction 1 begins\nPRIORITY=5\nSYSLOG_IDENTIFIER=ringwise\nRINGWISE_LOGINUID=1000\n\
             RINGWISE_TRANSACTION=1\n"
        );
        // A value must not be able to end itself and start another field.
        log.line(Priority::Error, "x", &[("RINGWISE_REASON", "a\nPRIORITY=0")]);
        let text = received(&ear);
        let at = text.windows(16).position(|w| w == b"RINGWISE_REASON\n").unwrap();
        assert_eq!(&text[at + 16..], b"\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n");
    }

    #[test]
    fn a_value_too_large_is_cut_and_marked() {
        let place = Place::new("large");
        let path = place.0.join("journald");
        let ear = UnixDatagram::bind(&path).unwrap();
        let log = Log::at(&path, &place.0.join("none"));
        let long = "é".repeat(4 << 20);
        log.line(Priority::Info, &long, &[("RINGWISE_TRANSACTION", "2")]);
        let text = String::from_utf8(received(&ear)).unwrap();
        assert!(text.contains(&format!("é (cut, {} bytes)\n", long.len())), "{}", text.len());
        assert!(text.contains("RINGWISE_TRANSACTION=2\n") && text.len() < 5000);
    }

    #[test]
    fn syslog_where_there_is_no_journald() {
        let place = Place::new("syslog");
        let path = place.0.join("syslog");
        let ear = UnixDatagram::bind(&path).unwrap();
        let log = Log::at(&place.0.join("none"), &path);
        log.line(Priority::Warning, "two\nlines", &[("RINGWISE_TRANSACTION", "1")]);
        let text = String::from_utf8(received(&ear)).unwrap();
        assert_eq!(text, format!("<28>ringwise[{}]: two lines", std::process::id()));
    }

    #[test]
    fn a_full_or_missing_log_does_not_hold_anything_up() {
        let place = Place::new("full");
        let path = place.0.join("journald");
        let ear = UnixDatagram::bind(&path).unwrap();
        let log = Log::at(&path, &place.0.join("none"));
        // No process reads: the socket's queue is full long before this ends. If the log blocked, the test would never end.
        for i in 0..5000 {
            log.line(Priority::Info, &i.to_string(), &[]);
        }
        assert!(received(&ear).starts_with(b"MESSAGE=0\n"));
        drop(ear);
        log.line(Priority::Info, "no listener", &[]);
        Log::at(&place.0.join("a"), &place.0.join("b")).line(Priority::Info, "nor here", &[]);
        Log::nowhere().line(Priority::Info, "nor here", &[]);
    }
}
