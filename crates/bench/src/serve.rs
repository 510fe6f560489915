//! The other end of a test, for who asks over a stream. One at a time; without a word from it everything stops.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::load::{one_host, words};
use crate::side::{PROTOCOL, Reply, Request};
use crate::wire::{Answered, Asked, FIRST, SILENT, read_line, write_answered};

enum Event {
    Line(String),
    Gone(String),
    Reply(u64, Reply),
}

/// Listens on this address only, until `stop`. `opened` is told where; `say` what clients come and go, for people.
///
/// Err: the address is none of one host, or not to be had, with errno.
pub fn serve(
    listen: SocketAddr,
    secret: Option<&str>,
    stop: &AtomicBool,
    opened: &mut dyn FnMut(SocketAddr),
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), String> {
    serve_for(SILENT, listen, secret, stop, opened, say)
}

fn serve_for(
    silent: Duration,
    listen: SocketAddr,
    secret: Option<&str>,
    stop: &AtomicBool,
    opened: &mut dyn FnMut(SocketAddr),
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), String> {
    one_host(listen.ip()).map_err(|why| format!("not listening on {listen}: {why}"))?;
    let failed = |e: std::io::Error| format!("listen on {listen}: {}", words(&e));
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    opened(listener.local_addr().map_err(failed)?);
    let busy = AtomicBool::new(false);
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
            if busy.swap(true, Ordering::SeqCst) {
                refuse(&stream, "another client is at work here: one at a time");
                continue;
            }
            let busy = &busy;
            let work = move || {
                say(&format!("{from} has come"));
                let why = match prepare(&stream) {
                    Ok((input, output)) => {
                        let why = session(input, output, secret, silent, stop);
                        let _ = stream.shutdown(Shutdown::Both);
                        why
                    }
                    Err(e) => words(&e),
                };
                say(&format!("{from} is gone, everything is stopped: {why}"));
                busy.store(false, Ordering::SeqCst);
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
    Ok(session(Box::new(std::io::stdin()), Box::new(std::io::stdout()), None, SILENT, stop))
}

/// Until the client is gone, silent, or wrong. Returns which.
fn session(
    input: Box<dyn Read + Send>,
    mut output: Box<dyn Write + Send>,
    secret: Option<&str>,
    silent: Duration,
    stop: &AtomicBool,
) -> String {
    let (events, all) = mpsc::channel();
    let lines = events.clone();
    let reader = move || {
        let mut from = BufReader::new(input);
        loop {
            let event = match read_line(&mut from) {
                Ok(Some(line)) => Event::Line(line),
                Ok(None) => Event::Gone("it closed the connection".into()),
                Err(e) => Event::Gone(words(&e)),
            };
            let last = matches!(event, Event::Gone(_));
            if lines.send(event).is_err() || last {
                return;
            }
        }
    };
    if let Err(e) = std::thread::Builder::new().name("lines".into()).spawn(reader) {
        return format!("start a thread: {}", words(&e));
    }
    let mut engine = Engine::default();
    let (mut known, mut heard) = (false, Instant::now());
    loop {
        let patience = if known { silent } else { FIRST.min(silent) };
        let left = patience.saturating_sub(heard.elapsed());
        if left.is_zero() {
            return format!("not a word for {patience:?}");
        }
        if stop.load(Ordering::Relaxed) {
            return "this end was stopped".into();
        }
        let (id, reply, last) = match all.recv_timeout(left.min(Duration::from_millis(200))) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return "the reader ended".into(),
            Ok(Event::Gone(why)) => return why,
            Ok(Event::Reply(id, reply)) => (id, reply, None),
            Ok(Event::Line(line)) => {
                heard = Instant::now();
                match serde_json::from_str::<Asked>(&line) {
                    Err(e) => {
                        let why = format!("a line was not understood: {e}");
                        (0, Reply::Failed { why: why.clone() }, Some(why))
                    }
                    Ok(Asked { request: None, .. }) => continue,
                    Ok(Asked { id, request: Some(request) }) if known => {
                        engine.take(request, tell(id, &events));
                        continue;
                    }
                    Ok(Asked { id, request: Some(request) }) => {
                        let refused = greet(&request, secret);
                        known = refused.is_none();
                        match refused {
                            None => {
                                engine.take(request, tell(id, &events));
                                continue;
                            }
                            Some((reply, why)) => (id, reply, Some(why)),
                        }
                    }
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

fn tell(id: u64, events: &Sender<Event>) -> crate::engine::Tell {
    let events = events.clone();
    // Nobody listens any more when the session is over.
    Box::new(move |reply| drop(events.send(Event::Reply(id, reply))))
}

/// None: welcome.
fn greet(request: &Request, secret: Option<&str>) -> Option<(Reply, String)> {
    let refuse = |why: &str| Some((Reply::Failed { why: why.into() }, why.to_string()));
    let Request::Hello { protocol, ringwise, secret: theirs } = request else {
        return refuse("the first request is to be a hello");
    };
    if let Some(own) = secret
        && !theirs.as_deref().is_some_and(|t| same(own.as_bytes(), t.as_bytes()))
    {
        return refuse(if theirs.is_none() { "a secret is needed here" } else { "this is not the secret" });
    }
    if *protocol != PROTOCOL {
        // It says itself what that means.
        let hello =
            crate::side::Hello { protocol: PROTOCOL, ringwise: env!("CARGO_PKG_VERSION").into(), ..Default::default() };
        return Some((Reply::Hello(hello), format!("it speaks protocol {protocol} (ringwise {ringwise})")));
    }
    None
}

/// In a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
