//! The other end of a test, for who asks over a stream. One at a time; without a word from it everything stops.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::limits::{Allowed, Limits};
use crate::load::{one_host, words};
use crate::secret::{self, Who};
use crate::side::{PROTOCOL, Reply, Request};
use crate::wire::{Answered, Asked, FIRST, SILENT, read_line, write_answered};

/// Connections that have not said who they are.
const STRANGERS: usize = 16;
/// Lines that a client may send ahead.
const AHEAD: usize = 32;

enum Event {
    Line(String),
    Gone(String),
    Reply(u64, Reply),
}

/// Listens on this address only, until `stop`. `opened` is told where; `say` what clients come and go, for people.
///
/// Err: the address is none of one host, or not to be had, with errno; it is reached from other hosts, and there is no secret.
pub fn serve(
    listen: SocketAddr,
    secret: Option<&str>,
    allowed: &Allowed,
    stop: &AtomicBool,
    opened: &mut dyn FnMut(SocketAddr),
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), String> {
    serve_for(SILENT, listen, secret, allowed, stop, opened, say)
}

fn serve_for(
    silent: Duration,
    listen: SocketAddr,
    secret: Option<&str>,
    allowed: &Allowed,
    stop: &AtomicBool,
    opened: &mut dyn FnMut(SocketAddr),
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), String> {
    one_host(listen.ip()).map_err(|why| format!("not listening on {listen}: {why}"))?;
    if secret.is_none() && !listen.ip().is_loopback() {
        return Err(format!(
            "not listening on {listen}: without a secret whoever reaches it could make this host send"
        ));
    }
    let failed = |e: std::io::Error| format!("listen on {listen}: {}", words(&e));
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    opened(listener.local_addr().map_err(failed)?);
    let (busy, strangers) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            let (stream, from) = match listener.accept() {
                Ok(c) => c,
                Err(e) => {
                    if e.kind() != std::io::ErrorKind::WouldBlock {
                        say(&format!("accept: {}", words(&e)));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                }
            };
            if strangers.fetch_add(1, Ordering::SeqCst) >= STRANGERS {
                strangers.fetch_sub(1, Ordering::SeqCst);
                refuse(&stream, "too many connections that have not said who they are");
                continue;
            }
            let (busy, strangers) = (&busy, &strangers);
            let work = move || {
                let limits = Limits { client: from.ip(), allowed: allowed.clone() };
                // The one place is taken by who is known, not by who has connected.
                let is_known = std::cell::Cell::new(false);
                let welcome = || {
                    if busy.swap(true, Ordering::SeqCst) {
                        return Err("another client is at work here: one at a time".to_string());
                    }
                    is_known.set(true);
                    strangers.fetch_sub(1, Ordering::SeqCst);
                    say(&format!("{from} has come"));
                    Ok(())
                };
                let why = match prepare(&stream) {
                    Ok((input, output)) => {
                        let client = Client { secret, limits: Some(&limits), silent, welcome: &welcome };
                        let why = session(input, output, &client, stop);
                        let _ = stream.shutdown(Shutdown::Both);
                        why
                    }
                    Err(e) => words(&e),
                };
                if is_known.get() {
                    say(&format!("{from} is gone, everything is stopped: {why}"));
                    busy.store(false, Ordering::SeqCst);
                } else {
                    say(&format!("{from} was not let in: {why}"));
                    strangers.fetch_sub(1, Ordering::SeqCst);
                }
            };
            if let Err(e) = std::thread::Builder::new().name("client".into()).spawn_scoped(scope, work) {
                return Err(format!("start a thread: {}", words(&e)));
            }
        }
        Ok(())
    })
}

fn refuse(stream: &TcpStream, why: &str) {
    let mut to = stream;
    // Who is refused may be gone already.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = write_answered(&mut to, &Answered { id: 0, reply: Reply::Failed { why: why.into() } });
}

type Ends = (Box<dyn Read + Send>, Box<dyn Write + Send>);

fn prepare(stream: &TcpStream) -> std::io::Result<Ends> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(FIRST))?;
    Ok((Box::new(stream.try_clone()?), Box::new(stream.try_clone()?)))
}

/// Standard input and output, until there is no more input or `stop`. In a network namespace, if one is named: call it
/// before any thread is started. Returns why it ended.
///
/// Err: the namespace is not to be had, with errno.
pub fn serve_stdio(netns: Option<&str>, stop: &AtomicBool) -> Result<String, String> {
    if let Some(name) = netns {
        ringwise_sys::load::enter_netns(name).map_err(|e| e.to_string())?;
    }
    let client = Client { secret: None, limits: None, silent: SILENT, welcome: &|| Ok(()) };
    Ok(session(Box::new(std::io::stdin()), Box::new(std::io::stdout()), &client, stop))
}

/// How one client is met.
struct Client<'a> {
    secret: Option<&'a str>,
    /// None: it may do what this process may.
    limits: Option<&'a Limits>,
    silent: Duration,
    /// Takes the one place; or why it cannot.
    welcome: &'a dyn Fn() -> Result<(), String>,
}

/// Until the client is gone, silent, or wrong. Returns which.
fn session(
    input: Box<dyn Read + Send>,
    mut output: Box<dyn Write + Send>,
    client: &Client,
    stop: &AtomicBool,
) -> String {
    let (events, all) = mpsc::channel();
    // Seen at once, whatever is queued before it.
    let (gone, ahead) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let reader = {
        let (lines, gone, ahead) = (events.clone(), gone.clone(), ahead.clone());
        move || {
            let mut from = BufReader::new(input);
            loop {
                let event = match read_line(&mut from) {
                    Ok(Some(_)) if ahead.fetch_add(1, Ordering::SeqCst) >= AHEAD => {
                        Event::Gone("it sent too many requests ahead".into())
                    }
                    Ok(Some(line)) => Event::Line(line),
                    Ok(None) => Event::Gone("it closed the connection".into()),
                    Err(e) => Event::Gone(words(&e)),
                };
                let last = matches!(event, Event::Gone(_));
                if last {
                    gone.store(true, Ordering::SeqCst);
                }
                if lines.send(event).is_err() || last {
                    return;
                }
            }
        }
    };
    if let Err(e) = std::thread::Builder::new().name("lines".into()).spawn(reader) {
        return format!("start a thread: {}", words(&e));
    }
    let mut engine = Engine::default();
    let (mut door, mut heard) = (Door::new(client), Instant::now());
    loop {
        let patience = if door.is_open() { client.silent } else { FIRST.min(client.silent) };
        let left = patience.saturating_sub(heard.elapsed());
        if left.is_zero() {
            return format!("not a word for {patience:?}");
        }
        if stop.load(Ordering::Relaxed) {
            return "this end was stopped".into();
        }
        let event = match all.recv_timeout(left.min(Duration::from_millis(200))) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return "the reader ended".into(),
            Ok(event) => event,
        };
        let (id, reply, last) = match event {
            Event::Gone(why) => return why,
            // What it has asked for before it went is not begun any more.
            Event::Line(_) if gone.load(Ordering::SeqCst) && client.limits.is_some() => continue,
            Event::Reply(id, reply) => (id, reply, None),
            Event::Line(line) => {
                ahead.fetch_sub(1, Ordering::SeqCst);
                match serde_json::from_str::<Asked>(&line) {
                    Err(e) => {
                        let why = format!("a line was not understood: {e}");
                        (0, Reply::Failed { why: why.clone() }, Some(why))
                    }
                    // Who is not known is not kept alive.
                    Ok(Asked { request: None, .. }) => {
                        if door.is_open() {
                            heard = Instant::now();
                        }
                        continue;
                    }
                    Ok(Asked { id, request: Some(request) }) if door.is_open() => {
                        heard = Instant::now();
                        match client.limits.and_then(|l| l.refuse(&request)) {
                            Some(why) => (id, Reply::Failed { why }, None),
                            None => {
                                engine.take(request, tell(id, &events));
                                continue;
                            }
                        }
                    }
                    Ok(Asked { id, request: Some(request) }) => match door.knock(&request) {
                        Knock::Welcome(hello) => {
                            heard = Instant::now();
                            engine.take(hello, tell(id, &events));
                            continue;
                        }
                        Knock::Challenge(reply) => (id, reply, None),
                        Knock::No(reply, why) => (id, reply, Some(why)),
                    },
                }
            }
        };
        if let Err(e) = write_answered(&mut output, &Answered { id, reply }) {
            return format!("reply: {}", words(&e));
        }
        if let Some(why) = last {
            return why;
        }
    }
}

/// Who is let in.
struct Door<'a> {
    client: &'a Client<'a>,
    state: State,
}

enum State {
    Closed,
    /// Its hello, and the proof that it has to show.
    Challenged(Request, String),
    Open,
}

enum Knock {
    /// With its hello.
    Welcome(Request),
    Challenge(Reply),
    No(Reply, String),
}

impl<'a> Door<'a> {
    fn new(client: &'a Client<'a>) -> Self {
        Self { client, state: State::Closed }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    fn knock(&mut self, request: &Request) -> Knock {
        let no = |why: &str| Knock::No(Reply::Failed { why: why.into() }, why.to_string());
        match (std::mem::replace(&mut self.state, State::Closed), request) {
            (State::Challenged(hello, wanted), Request::Prove { proof }) => {
                if secret::same(&wanted, proof) {
                    self.open(hello)
                } else {
                    no("this is not the secret")
                }
            }
            (_, hello @ Request::Hello { protocol, ringwise, nonce }) => {
                if *protocol != PROTOCOL {
                    // It says itself what that means.
                    let ours = env!("CARGO_PKG_VERSION").to_string();
                    let hello = crate::side::Hello { protocol: PROTOCOL, ringwise: ours, ..Default::default() };
                    let why = format!("it speaks protocol {protocol} (ringwise {ringwise})");
                    return Knock::No(Reply::Hello(hello), why);
                }
                match (self.client.secret, nonce) {
                    (None, _) => self.open(hello.clone()),
                    (Some(_), None) => no("a secret is needed here"),
                    (Some(words), Some(theirs)) => match secret::nonce() {
                        Err(e) => no(&format!("/dev/urandom: {e}")),
                        Ok(ours) => {
                            let proof = secret::proof(words, Who::Server, theirs, &ours);
                            let wanted = secret::proof(words, Who::Client, theirs, &ours);
                            self.state = State::Challenged(hello.clone(), wanted);
                            Knock::Challenge(Reply::Challenge { nonce: ours, proof })
                        }
                    },
                }
            }
            _ => no("the first request is to be a hello"),
        }
    }

    fn open(&mut self, hello: Request) -> Knock {
        match (self.client.welcome)() {
            Ok(()) => {
                self.state = State::Open;
                Knock::Welcome(hello)
            }
            Err(why) => Knock::No(Reply::Failed { why: why.clone() }, why),
        }
    }
}

fn tell(id: u64, events: &Sender<Event>) -> crate::engine::Tell {
    let events = events.clone();
    // Nobody listens any more when the session is over.
    Box::new(move |reply| drop(events.send(Event::Reply(id, reply))))
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
