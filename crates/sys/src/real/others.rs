//! Other programs that affect where interrupts go: irqbalance's socket, systemd's unit files.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::host::{Error, Request, Result};
use crate::with_deadline;

/// irqbalance answers between two scans; a scan of a large machine takes a while.
const ANSWER: Duration = Duration::from_secs(5);
/// How long the connection stays open, while the caller waits for [`ANSWER`] only. irqbalance does not handle SIGPIPE: it dies when it
/// answers on a connection that was closed (1.9.2). After a change of its bans it may sleep for its interval first, by default 10 s.
const HELD: Duration = Duration::from_secs(120);
const RELOAD: Duration = Duration::from_secs(30);
/// The answer to `setup` on a machine with thousands of bans is far smaller.
const LONGEST: u64 = 1 << 20;
const SYSTEMCTL: [&str; 2] = ["/usr/bin/systemctl", "/bin/systemctl"];

fn failed(what: &str, e: &io::Error) -> Error {
    match e.raw_os_error() {
        Some(errno) => Error::errno(what, errno),
        None => Error::other(what, e.to_string()),
    }
}

/// Connections on which irqbalance may still answer.
static OPEN: Mutex<usize> = Mutex::new(0);
static CLOSED: Condvar = Condvar::new();

struct OpenConnection;

impl OpenConnection {
    fn new() -> Self {
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        CLOSED.notify_all();
    }
}

/// Waits until irqbalance has answered everything it was sent, at most this long; a process that ends earlier kills it with SIGPIPE.
/// Returns whether it has. `long` is called if that takes more than a second.
pub fn irqbalance_answered(most: Duration, long: impl FnOnce()) -> bool {
    let wait = |time| {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, _) = CLOSED.wait_timeout_while(open, time, |n| *n > 0).unwrap_or_else(PoisonError::into_inner);
        *open == 0
    };
    let first = most.min(Duration::from_secs(1));
    if wait(first) {
        return true;
    }
    long();
    wait(most - first)
}

/// One connection per message, as irqbalance expects; it closes the connection after its answer. The receiving socket has
/// `SO_PASSCRED`, so the kernel identifies the sender.
pub(super) fn irqbalance(socket: &Path, request: &Request, command: &str) -> Result<Vec<Vec<u8>>> {
    ask_irqbalance(socket, request, command, ANSWER)
}

fn ask_irqbalance(socket: &Path, request: &Request, command: &str, answer_within: Duration) -> Result<Vec<Vec<u8>>> {
    let what = request.to_string();
    let (socket, command) = (socket.to_path_buf(), command.to_string());
    // Its queue holds two connections: if irqbalance is stopped, even connect(2) does not return.
    let done = with_deadline(answer_within, move || -> io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(HELD))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let _open = OpenConnection::new();
        stream.write_all(command.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer)?;
        Ok(answer)
    });
    match done {
        Some(Ok(answer)) => Ok(vec![answer]),
        Some(Err(e)) => Err(failed(&what, &e)),
        None => Err(Error::late(what, answer_within)),
    }
}

/// Written to a temporary file first, then renamed: a reader sees either all of the old content or all of the new one.
pub(super) fn place(path: &Path, request: &Request, content: Option<&str>, executable: bool) -> Result<Vec<Vec<u8>>> {
    let what = request.to_string();
    let done = match content {
        Some(text) => replace(path, text, executable),
        None => remove(path),
    };
    done.map(|()| Vec::new()).map_err(|e| failed(&what, &e))
}

fn replace(path: &Path, text: &str, executable: bool) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let beside = PathBuf::from(format!("{}.new", path.display()));
    let mode = if executable { 0o755 } else { 0o644 };
    // Left behind by an interrupted run, possibly with another mode.
    let _ = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

/// Removes the file, and its directory if that is empty then, because it was created for this file.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if let Some(dir) = path.parent() {
        let _ = fs::remove_dir(dir);
    }
    Ok(())
}

pub(super) fn daemon_reload(request: &Request) -> Result<Vec<Vec<u8>>> {
    let what = request.to_string();
    let Some(program) = SYSTEMCTL.iter().find(|p| Path::new(p).exists()) else {
        return Err(Error::other(what, "systemctl was not found"));
    };
    let done = with_deadline(RELOAD, move || {
        Command::new(program).args(["--no-ask-password", "daemon-reload"]).stdin(Stdio::null()).output()
    });
    match done {
        Some(Ok(out)) if out.status.success() => Ok(Vec::new()),
        Some(Ok(out)) => {
            let words = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            Err(Error::other(what, format!("{}: {words}", out.status)))
        }
        Some(Err(e)) => Err(failed(&what, &e)),
        None => Err(Error::late(what, RELOAD)),
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::errno::ECONNREFUSED;

    use super::*;
    use std::os::unix::net::UnixListener;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// A peer that answers late finds the connection open. If it were closed, irqbalance would die of SIGPIPE.
    #[test]
    fn a_late_answer_is_still_taken() {
        let dir = scratch("late");
        let path = dir.join("irqbalance8.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (ask, late) = std::sync::mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut buffer = [0; 500];
            let _ = peer.read(&mut buffer).unwrap();
            late.recv().unwrap();
            peer.write_all(b"SLEEP 10 BANNED 0")
        });
        let request = Request::Irqbalance { socket: path.display().to_string(), command: "setup".into() };
        let soon = Duration::from_millis(50);
        assert!(ask_irqbalance(&path, &request, "setup", soon).is_err());
        let mut reported = false;
        assert!(!irqbalance_answered(soon, || reported = true), "it has not answered yet");
        assert!(reported);
        ask.send(()).unwrap();
        server.join().unwrap().unwrap();
        assert!(irqbalance_answered(Duration::from_secs(20), || {}));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn one_message_one_answer() {
        let dir = scratch("socket");
        let path = dir.join("irqbalance7.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut buffer = [0; 500];
            let n = peer.read(&mut buffer).unwrap();
            peer.write_all(b"SLEEP 10 BANNED 0").unwrap();
            buffer[..n].to_vec()
        });
        let ask = Request::Irqbalance { socket: path.display().to_string(), command: "setup".into() };
        assert_eq!(irqbalance(&path, &ask, "setup").unwrap(), [b"SLEEP 10 BANNED 0".to_vec()]);
        assert_eq!(server.join().unwrap(), b"setup");
        // No process listens any more.
        assert_eq!(irqbalance(&path, &ask, "setup").unwrap_err().errno, Some(ECONNREFUSED));
        assert!(irqbalance(&dir.join("none"), &ask, "setup").unwrap_err().is_absent());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn files_are_replaced_and_taken_away_with_their_directory() {
        use std::os::unix::fs::PermissionsExt;
        let dir = scratch("place");
        let path = dir.join("unit.d/90-x.conf");
        let ask = Request::Place { path: path.display().to_string(), content: None, executable: true };
        place(&path, &ask, Some("a"), true).unwrap();
        place(&path, &ask, Some("b"), true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o111, 0o111);
        place(&path, &ask, None, true).unwrap();
        assert!(!dir.join("unit.d").exists());
        place(&path, &ask, None, true).unwrap();
        let _ = fs::remove_dir_all(dir);
    }
}
