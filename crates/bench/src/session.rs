//! One client of an end: receives its requests and sends replies until the client is gone, silent, or sends something
//! wrong.

use std::io::{BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ringwise_model::words::visible;

use crate::engine::{Engine, ReplyCallback};
use crate::error::{SystemError, ThreadError};
use crate::limits::Limits;
use crate::secret::{self, ProofRole};
use crate::side::{PROTOCOL, Reply, Request};
use crate::wire::{FIRST, ReplyLine, RequestLine, read_line, write_reply};

/// Lines that a client may send ahead.
const AHEAD: usize = 32;

/// Why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Another client is connected already.
    #[error("another client is connected, and only one at a time is served")]
    AnotherClient,
    /// Too many connections are waiting without a proof.
    #[error("too many connections without authentication")]
    TooManyStrangers,
    /// The first request is not a hello.
    #[error("the first request must be a hello")]
    NoHello,
    /// It has no secret.
    #[error("a secret is needed here")]
    SecretNeeded,
    /// Its proof is of another secret.
    #[error("the secret is wrong")]
    WrongSecret,
    /// No random bits for a challenge are available.
    #[error("/dev/urandom: {0}")]
    NoRandom(SystemError),
}

/// Why the session with a client ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    /// It closed the connection.
    #[error("the client closed the connection")]
    Closed,
    /// It was silent for too long.
    #[error("the client was silent for {0:?}")]
    Silent(Duration),
    /// It does not read replies.
    #[error("the client sent too many requests ahead")]
    TooManyAhead,
    /// It sent something that is not a request.
    #[error("a line was not understood: {}", visible(&.0.to_string()))]
    NotUnderstood(serde_json::Error),
    /// It uses another protocol than [`PROTOCOL`].
    #[error("the client uses protocol {protocol} (ringwise {})", visible(ringwise))]
    OtherProtocol {
        /// The protocol's number there.
        protocol: u32,
        /// Version of ringwise there, as it reports it.
        ringwise: String,
    },
    /// It was refused.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// This end was stopped.
    #[error("this end was stopped")]
    Stopped,
    /// The connection cannot be read.
    #[error("{0}")]
    Connection(SystemError),
    /// A reply cannot be written.
    #[error("reply: {0}")]
    Reply(SystemError),
    /// The reading thread could not be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The thread that reads has ended.
    #[error("the thread that reads requests has ended")]
    ReaderEnded,
}

/// How a client is treated.
pub(crate) struct Client<'a> {
    pub secret: Option<&'a str>,
    /// None: it has the permissions of this process.
    pub limits: Option<&'a Limits>,
    pub silent: Duration,
    /// Takes the only place, or returns why it cannot.
    pub welcome: &'a dyn Fn() -> Result<(), Rejection>,
}

enum Event {
    Line(String),
    Gone(SessionEnd),
    Reply(u64, Reply),
}

/// Shared between the reading thread and the session.
#[derive(Default)]
struct Reading {
    /// The client is gone; known at once, even if lines are still queued.
    gone: AtomicBool,
    /// Lines that were read and not yet processed.
    ahead: AtomicUsize,
}

/// Reads lines until there are no more, and reports each.
fn read_lines(input: Box<dyn Read + Send>, reading: &Reading, events: &Sender<Event>) {
    let mut from = BufReader::new(input);
    loop {
        let event = match read_line(&mut from) {
            Ok(Some(_)) if reading.ahead.fetch_add(1, Ordering::SeqCst) >= AHEAD => {
                Event::Gone(SessionEnd::TooManyAhead)
            }
            Ok(Some(line)) => Event::Line(line),
            Ok(None) => Event::Gone(SessionEnd::Closed),
            Err(e) => Event::Gone(SessionEnd::Connection(e.into())),
        };
        let last = matches!(event, Event::Gone(_));
        if last {
            reading.gone.store(true, Ordering::SeqCst);
        }
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Runs until the client is gone, silent, or sends something wrong. Returns which.
pub(crate) fn session(
    input: Box<dyn Read + Send>,
    mut output: Box<dyn Write + Send>,
    client: &Client,
    stop: &AtomicBool,
) -> SessionEnd {
    let (events, all) = mpsc::channel();
    let reading = Arc::new(Reading::default());
    let (lines, shared) = (events.clone(), reading.clone());
    let reader = move || read_lines(input, &shared, &lines);
    if let Err(e) = std::thread::Builder::new().name("lines".into()).spawn(reader) {
        return ThreadError::not_started(e).into();
    }
    let (engine, door, heard) = (Engine::default(), ClientAuth::new(client), Instant::now());
    let mut session = Session { client, events, all, reading, engine, door, heard };
    loop {
        let step = match session.next(stop) {
            Ok(Some(event)) => session.step(event),
            Ok(None) => continue,
            Err(end) => return end,
        };
        let (id, reply, end) = match step {
            Step::Wait => continue,
            Step::End(end) => return end,
            Step::Reply(id, reply) => (id, reply, None),
            Step::Last(id, reply, end) => (id, reply, Some(end)),
        };
        if let Err(e) = write_reply(&mut output, &ReplyLine { id, reply }) {
            return SessionEnd::Reply(e.into());
        }
        if let Some(end) = end {
            return end;
        }
    }
}

/// The consequence of an event.
enum Step {
    /// There is no reply yet.
    Wait,
    Reply(u64, Reply),
    /// A reply, after which the session ends.
    Last(u64, Reply, SessionEnd),
    End(SessionEnd),
}

struct Session<'a> {
    client: &'a Client<'a>,
    /// For the replies of the engine.
    events: Sender<Event>,
    all: Receiver<Event>,
    reading: Arc<Reading>,
    engine: Engine,
    door: ClientAuth<'a>,
    /// When the client last showed that it is alive.
    heard: Instant,
}

impl Session<'_> {
    /// The next event, if there is one yet. Errors: the time limit is over.
    fn next(&self, stop: &AtomicBool) -> Result<Option<Event>, SessionEnd> {
        let silent = self.client.silent;
        let patience = if self.door.is_open() { silent } else { FIRST.min(silent) };
        let left = patience.saturating_sub(self.heard.elapsed());
        if left.is_zero() {
            return Err(SessionEnd::Silent(patience));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(SessionEnd::Stopped);
        }
        match self.all.recv_timeout(left.min(Duration::from_millis(200))) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SessionEnd::ReaderEnded),
        }
    }

    fn step(&mut self, event: Event) -> Step {
        match event {
            Event::Gone(end) => Step::End(end),
            // Requests of a client that is gone are not started any more.
            Event::Line(_) if self.reading.gone.load(Ordering::SeqCst) && self.client.limits.is_some() => Step::Wait,
            Event::Reply(id, reply) => Step::Reply(id, reply),
            Event::Line(line) => {
                self.reading.ahead.fetch_sub(1, Ordering::SeqCst);
                self.line(&line)
            }
        }
    }

    fn line(&mut self, line: &str) -> Step {
        let (id, request) = match serde_json::from_str::<RequestLine>(line) {
            Ok(RequestLine { id, request }) => (id, request),
            Err(e) => {
                let end = SessionEnd::NotUnderstood(e);
                return Step::Last(0, Reply::Failed { why: end.to_string() }, end);
            }
        };
        if !self.door.is_open() {
            // Only an authenticated client is kept alive.
            return request.map_or(Step::Wait, |r| self.knock(id, &r));
        }
        self.heard = Instant::now();
        let Some(request) = request else { return Step::Wait };
        match self.client.limits.and_then(|l| l.refuse(&request)) {
            Some(why) => Step::Reply(id, Reply::Failed { why: why.to_string() }),
            None => self.begin(id, request),
        }
    }

    fn knock(&mut self, id: u64, request: &Request) -> Step {
        match self.door.knock(request) {
            AuthResult::Welcome(hello) => {
                self.heard = Instant::now();
                self.begin(id, hello)
            }
            AuthResult::Challenge(reply) => Step::Reply(id, reply),
            AuthResult::No(reply, end) => Step::Last(id, reply, end),
        }
    }

    /// The reply comes as an event.
    fn begin(&mut self, id: u64, request: Request) -> Step {
        self.engine.take(request, reply_event(id, &self.events));
        Step::Wait
    }
}

/// Authentication of the client.
struct ClientAuth<'a> {
    client: &'a Client<'a>,
    state: State,
}

enum State {
    Closed,
    /// Its hello, and the proof that it has to show.
    Challenged(Request, String),
    Open,
}

enum AuthResult {
    /// With its hello.
    Welcome(Request),
    Challenge(Reply),
    No(Reply, SessionEnd),
}

impl AuthResult {
    fn rejected(why: Rejection) -> Self {
        Self::No(Reply::Failed { why: why.to_string() }, SessionEnd::Rejected(why))
    }
}

impl<'a> ClientAuth<'a> {
    fn new(client: &'a Client<'a>) -> Self {
        Self { client, state: State::Closed }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    fn knock(&mut self, request: &Request) -> AuthResult {
        match (std::mem::replace(&mut self.state, State::Closed), request) {
            (State::Challenged(hello, wanted), Request::Prove { proof }) => {
                if secret::same(&wanted, proof) {
                    self.open(hello)
                } else {
                    AuthResult::rejected(Rejection::WrongSecret)
                }
            }
            (_, hello @ Request::Hello { protocol, ringwise, nonce }) => {
                if *protocol != PROTOCOL {
                    // The error text is complete.
                    let ours = env!("CARGO_PKG_VERSION").to_string();
                    let hello = crate::side::Hello { protocol: PROTOCOL, ringwise: ours, ..Default::default() };
                    let end = SessionEnd::OtherProtocol { protocol: *protocol, ringwise: ringwise.clone() };
                    return AuthResult::No(Reply::Hello(hello), end);
                }
                match (self.client.secret, nonce) {
                    (None, _) => self.open(hello.clone()),
                    (Some(_), None) => AuthResult::rejected(Rejection::SecretNeeded),
                    (Some(words), Some(theirs)) => match secret::nonce() {
                        Err(e) => AuthResult::rejected(Rejection::NoRandom(e.into())),
                        Ok(ours) => {
                            let proof = secret::proof(words, ProofRole::Server, theirs, &ours);
                            let wanted = secret::proof(words, ProofRole::Client, theirs, &ours);
                            self.state = State::Challenged(hello.clone(), wanted);
                            AuthResult::Challenge(Reply::Challenge { nonce: ours, proof })
                        }
                    },
                }
            }
            _ => AuthResult::rejected(Rejection::NoHello),
        }
    }

    fn open(&mut self, hello: Request) -> AuthResult {
        match (self.client.welcome)() {
            Ok(()) => {
                self.state = State::Open;
                AuthResult::Welcome(hello)
            }
            Err(why) => AuthResult::rejected(why),
        }
    }
}

fn reply_event(id: u64, events: &Sender<Event>) -> ReplyCallback {
    let events = events.clone();
    Box::new(move |done| {
        // The other process reads the reason as a text.
        let reply = done.unwrap_or_else(|e| Reply::Failed { why: e.to_string() });
        // When the session is over, the receiver is gone.
        drop(events.send(Event::Reply(id, reply)));
    })
}
