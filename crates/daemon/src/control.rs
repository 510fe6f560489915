//! The socket by which people talk to the service: one request and one answer for each connection, each a line of JSON. Only
//! root can connect.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_apply::Store;
use ringwise_sys::{guardian, local, proc};
use serde::{Deserialize, Serialize};

use crate::state::make_dir;

const FILE: &str = "daemon.sock";
/// A peer that does not send its line within this time is disconnected.
const PATIENCE: Duration = Duration::from_millis(500);
/// Longest line of a request.
const LONGEST: u64 = 4096;
/// A transaction of the service, or a rollback, may have to end first.
const ANSWER_WITHIN: Duration = Duration::from_secs(180);

/// What a person may ask of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum ControlRequest {
    /// Leave an interface, or the whole host, alone.
    Pause {
        /// `None`: the whole host.
        interface: Option<String>,
    },
    /// The opposite; ends a pause that the service chose itself, too.
    Resume {
        /// `None`: everything.
        interface: Option<String>,
    },
    /// End.
    Stop {
        /// Restore every setting as first found since boot.
        restore: bool,
    },
}

/// What the service answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReply {
    /// Why not. `None`: done.
    pub error: Option<String>,
    /// Number of the rollback, if there was something to restore.
    pub transaction: Option<u64>,
    /// Exit status of the command: of a rollback, that of `ringwise rollback`. `None`: an earlier version answered; 0, or 1 with an
    /// error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
}

impl ControlReply {
    /// The exit status of the command that asked.
    pub fn exit_status(&self) -> u8 {
        self.status.unwrap_or_else(|| self.error.is_some().into())
    }
}

/// The listening end.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

fn path(store: &Store) -> PathBuf {
    store.run_dir().join(FILE)
}

impl Control {
    /// Errors: another service listens there; the directory cannot be written, or others can write to it.
    pub(crate) fn open(store: &Store) -> io::Result<Self> {
        let path = path(store);
        make_dir(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.to_str().ok_or_else(|| io::Error::other("the name of the state directory is not UTF-8"))?;
        let listener = match local::listen(name) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                if local::connect(name, None).is_ok() {
                    return Err(e);
                }
                // The service that made it has ended without removing it.
                std::fs::remove_file(&path)?;
                local::listen(name)?
            }
            other => other?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The next request, if there is one, with the connection for its answer. Anything else is answered with an error.
    pub(crate) fn next(&self) -> Option<(ControlRequest, UnixStream)> {
        loop {
            let (stream, _) = self.listener.accept().ok()?;
            let allowed = guardian::peer(&stream).is_ok_and(|p| p.uid == 0 || p.uid == proc::euid());
            if !allowed || stream.set_nonblocking(false).is_err() {
                continue;
            }
            match read_line::<ControlRequest>(&stream, PATIENCE) {
                Ok(ask) => return Some((ask, stream)),
                Err(e) => answer(
                    &stream,
                    &ControlReply { error: Some(format!("no valid request: {e}")), ..ControlReply::default() },
                ),
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path); // a file that is left is replaced by the next service
    }
}

fn read_line<T: for<'de> Deserialize<'de>>(stream: &UnixStream, within: Duration) -> io::Result<T> {
    stream.set_read_timeout(Some(within))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

fn send(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// A peer that has left does not need its answer.
pub(crate) fn answer(stream: &UnixStream, answer: &ControlReply) {
    let _ = send(stream, answer);
}

/// Asks the service, and waits for its answer.
///
/// Errors: no service runs (ENOENT, ECONNREFUSED), or it does not answer.
pub fn send_request(store: &Store, request: &ControlRequest) -> io::Result<ControlReply> {
    let path = path(store);
    let name = path.to_str().ok_or_else(|| io::Error::other("the name of the state directory is not UTF-8"))?;
    let stream = local::connect(name, Some(PATIENCE))?;
    send(&stream, request)?;
    read_line(&stream, ANSWER_WITHIN)
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::dir::Dir;

    use super::*;

    /// Earlier versions answer without a status.
    #[test]
    fn an_answer_without_a_status() {
        let read = |text: &str| serde_json::from_str::<ControlReply>(text).unwrap().exit_status();
        assert_eq!(read(r#"{"error":null,"transaction":7}"#), 0);
        assert_eq!(read(r#"{"error":"refused","transaction":null}"#), 1);
        assert_eq!(read(r#"{"error":"failed","transaction":null,"status":5}"#), 5);
    }

    #[test]
    fn a_request_and_its_answer() {
        let dir = Dir::new();
        let store = Store::open(Some(&dir.0));
        assert_eq!(
            send_request(&store, &ControlRequest::Stop { restore: false }).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let control = Control::open(&store).unwrap();
        assert_eq!(Control::open(&store).unwrap_err().kind(), io::ErrorKind::AddrInUse, "one service at a time");
        assert!(control.next().is_none());
        let request = ControlRequest::Pause { interface: Some("eth0".into()) };
        let (asked, sent) = (request.clone(), store.clone());
        let client = std::thread::spawn(move || send_request(&sent, &asked).unwrap());
        guardian::readable(&[control.descriptor()], Duration::from_secs(20)).unwrap();
        let (got, stream) = control.next().unwrap();
        assert_eq!(got, request);
        let told = ControlReply { error: None, transaction: Some(7), status: Some(3) };
        answer(&stream, &told);
        assert_eq!(client.join().unwrap(), told);
        // Anything else is refused with a reason.
        let mut other = local::connect(dir.0.join(FILE).to_str().unwrap(), None).unwrap();
        other.write_all(b"{\"request\":\"reboot\"}\n").unwrap();
        assert!(control.next().is_none());
        other.set_nonblocking(false).unwrap();
        assert!(read_line::<ControlReply>(&other, Duration::from_secs(20)).unwrap().error.is_some());
        drop(control);
        assert!(!dir.0.join(FILE).exists());
        // The socket of a service that was killed is replaced.
        drop(local::listen(dir.0.join(FILE).to_str().unwrap()).unwrap());
        assert!(dir.0.join(FILE).exists() && Control::open(&store).is_ok());
    }
}
