//! An end of a test behind a stream of lines: TCP, or a child (`ssh HOST ringwise bench serve --stdio`, or this program
//! in a network namespace).

use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::secret::{self, ProofRole};
use crate::side::{Error, ExternalProgram, Hello, LostReason, PROTOCOL, Reply, Request, RequestRefusal, Side};
use crate::wire::{ALIVE_EACH, ReplyLine, RequestLine, read_line, write_request};

/// Time limit for a connection and its first reply.
const GREETED_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a child, which may have to log in first.
const CHILD_GREETED_WITHIN: Duration = Duration::from_secs(60);
const CHILD_ENDS_WITHIN: Duration = Duration::from_secs(3);
/// The number of bytes that are kept from the end of a child's standard error.
const MOST_WORDS: usize = 4096;

type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// The other end stops everything when this is dropped.
pub struct RemoteSide {
    name: String,
    hello: Hello,
    id: u64,
    output: Option<Output>,
    replies: Receiver<Result<ReplyLine, LostReason>>,
    alive: Option<(Sender<()>, JoinHandle<()>)>,
    stream: Option<TcpStream>,
    child: Option<Child>,
    /// The addresses that the other end may report as listening: its own, and the requested ones.
    may_name: Vec<IpAddr>,
    /// The standard error of the child.
    said: Arc<Mutex<String>>,
}

impl RemoteSide {
    /// Errors: no connection, with errno; the versions differ; the secret is wrong; another client is connected there.
    pub fn tcp(at: SocketAddr, secret: Option<&str>) -> Result<Self, Error> {
        let name = at.to_string();
        let lost = |e: std::io::Error| gone(&name, LostReason::System(e.into()));
        let stream = TcpStream::connect_timeout(&at, GREETED_WITHIN).map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        stream.set_write_timeout(Some(GREETED_WITHIN)).map_err(lost)?;
        let (input, output) = (stream.try_clone().map_err(lost)?, stream.try_clone().map_err(lost)?);
        let mut side = Self::over(name, Box::new(input), Box::new(output))?;
        side.stream = Some(stream);
        side.may_name.push(at.ip());
        side.greet(secret, GREETED_WITHIN)?;
        Ok(side)
    }

    /// Starts a program that reads and writes lines of this protocol; its standard error is kept for messages. Ctrl-C
    /// at a terminal ends it as well, unless the command has a process group of its own (then `ssh` cannot ask for a
    /// password).
    ///
    /// Errors: it does not start, with errno; otherwise as above.
    pub fn child(mut command: Command, name: &str) -> Result<Self, Error> {
        let lost = |e: std::io::Error| gone(name, LostReason::NotStarted(e.into()));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(lost)?;
        let (Some(output), Some(input), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(gone(name, LostReason::NoStreams));
        };
        let mut side = match Self::over(name.into(), Box::new(input), Box::new(output)) {
            Ok(side) => side,
            Err(e) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(e);
            }
        };
        side.child = Some(child);
        let said = side.said.clone();
        // Without this thread only the child's standard error is lost.
        let _ = std::thread::Builder::new().name("words".into()).spawn(move || {
            let mut buffer = [0; 512];
            while let Ok(n @ 1..) = errors.read(&mut buffer) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&String::from_utf8_lossy(&buffer[..n]));
                if said.len() > MOST_WORDS {
                    let cut = (said.len() - MOST_WORDS..).find(|i| said.is_char_boundary(*i)).unwrap_or(0);
                    said.drain(..cut);
                }
            }
        });
        side.greet(None, CHILD_GREETED_WITHIN)?;
        Ok(side)
    }

    /// The description of the other end.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    fn over(name: String, input: Box<dyn Read + Send>, output: Box<dyn Write + Send>) -> Result<Self, Error> {
        let failed = |e: std::io::Error| gone(&name, LostReason::System(e.into()));
        let (tell, replies) = mpsc::channel();
        let lines = move || {
            let mut from = BufReader::new(input);
            loop {
                let heard = match read_line(&mut from) {
                    Ok(Some(line)) => serde_json::from_str(&line).map_err(|error| LostReason::NotAReply {
                        error: error.into(),
                        line: line.chars().take(80).collect(),
                    }),
                    Ok(None) => Err(LostReason::Closed),
                    Err(e) => Err(LostReason::System(e.into())),
                };
                let last = heard.is_err();
                if tell.send(heard).is_err() || last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("replies".into()).spawn(lines).map_err(failed)?;
        let output: Output = Arc::new(Mutex::new(output));
        let to = output.clone();
        let (end, ended) = mpsc::channel();
        let alive = move || {
            while ended.recv_timeout(ALIVE_EACH) == Err(RecvTimeoutError::Timeout) {
                let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                // The caller that waits for a reply gets the error.
                if write_request(&mut **to, &RequestLine { id: 0, request: None }).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("alive".into()).spawn(alive).map_err(failed)?;
        Ok(Self {
            name,
            hello: Hello::default(),
            id: 0,
            output: Some(output),
            replies,
            alive: Some((end, thread)),
            stream: None,
            child: None,
            may_name: Vec::new(),
            said: Arc::default(),
        })
    }

    fn greet(&mut self, secret: Option<&str>, within: Duration) -> Result<(), Error> {
        let side = self.name.clone();
        let nonce = secret.map(|_| secret::nonce()).transpose();
        let nonce = nonce.map_err(|e| gone(&side, LostReason::NoRandom(e.into())))?;
        let ringwise = env!("CARGO_PKG_VERSION").to_string();
        // If the server refuses the connection early, it has sent the reason, so the reply is read even if this fails.
        let _ = self.start(Request::Hello { protocol: PROTOCOL, ringwise, nonce: nonce.clone() });
        let first = self.finish(within);
        let answer = match (first, secret, &nonce) {
            (Ok(Reply::Challenge { nonce: theirs, proof }), Some(words), Some(ours)) => {
                // The other end must prove that it knows the secret.
                if !secret::same(&proof, &secret::proof(words, ProofRole::Server, ours, &theirs)) {
                    return Err(Error::Refused { side, why: RequestRefusal::WrongSecret });
                }
                self.start(Request::Prove { proof: secret::proof(words, ProofRole::Client, ours, &theirs) })?;
                self.finish(within)
            }
            (Ok(Reply::Hello(h)), Some(_), _) if h.protocol == PROTOCOL => {
                return Err(Error::Refused { side, why: RequestRefusal::NoSecret });
            }
            (other, ..) => other,
        };
        match answer {
            Ok(Reply::Hello(h)) if h.protocol == PROTOCOL => {
                self.hello = h;
                Ok(())
            }
            Ok(Reply::Hello(h)) => Err(Error::Versions { side, theirs: h.protocol, version: h.ringwise }),
            Ok(other) => Err(gone(&side, LostReason::NotAHello(Box::new(other)))),
            Err(e) => Err(e),
        }
    }

    fn lost(&self, why: LostReason) -> Error {
        let stderr = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Error::Lost { side: self.name.clone(), why, stderr }
    }
}

/// An error without the standard error of a child.
fn gone(side: &str, why: LostReason) -> Error {
    Error::Lost { side: side.into(), why, stderr: String::new() }
}

impl Side for RemoteSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, request: Request) -> Result<(), Error> {
        self.id += 1;
        let bind = match &request {
            Request::Answer(a) => a.bind,
            Request::Sink(s) => s.bind,
            Request::Program(ExternalProgram::Serve { bind, .. }) => Some(*bind),
            _ => None,
        };
        self.may_name.extend(bind.filter(|b| !self.may_name.contains(b)));
        let asked = RequestLine { id: self.id, request: Some(request) };
        let Some(output) = &self.output else { return Err(self.lost(LostReason::ClosedHere)) };
        let written = write_request(&mut **output.lock().unwrap_or_else(PoisonError::into_inner), &asked);
        written.map_err(|e| self.lost(LostReason::System(e.into())))
    }

    fn finish(&mut self, bound: Duration) -> Result<Reply, Error> {
        let until = Instant::now() + bound;
        loop {
            match self.replies.recv_timeout(until.saturating_duration_since(Instant::now())) {
                // A reply to a request that was stopped. Id 0 is a message to any client.
                Ok(Ok(ReplyLine { id, .. })) if id != 0 && id != self.id => {}
                Ok(Ok(ReplyLine { reply: Reply::Failed { why }, .. })) => {
                    return Err(Error::Refused { side: self.name.clone(), why: RequestRefusal::Peer(why) });
                }
                Ok(Ok(ReplyLine { reply: Reply::Listening { at }, .. })) => {
                    // The load is sent to this address, so a peer must not choose it freely.
                    return match at.iter().find(|a| !self.may_name.contains(&a.ip())) {
                        None => Ok(Reply::Listening { at }),
                        Some(a) => Err(self.lost(LostReason::ForeignAddress(*a))),
                    };
                }
                Ok(Ok(ReplyLine { reply, .. })) => return Ok(reply),
                Ok(Err(why)) => {
                    // The last output of a child may arrive shortly after its end.
                    if self.child.is_some() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    return Err(self.lost(why));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::Late { side: self.name.clone(), seconds: bound.as_secs() });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost(LostReason::Gone)),
            }
        }
    }
}

impl Drop for RemoteSide {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some((end, thread)) = self.alive.take() {
            drop(end);
            let _ = thread.join();
        }
        // The other end stops everything at the end of its input.
        self.output = None;
        if let Some(child) = &mut self.child {
            let until = Instant::now() + CHILD_ENDS_WITHIN;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
