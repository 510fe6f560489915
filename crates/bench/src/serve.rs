//! The other end of a test, for one client at a time over a stream. If the client is silent, everything stops.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{NotOneHost, SystemError, ThreadError};
use crate::limits::{Allowed, Limits};
use crate::load::one_host;
use crate::session::{Client, session};
use crate::side::Reply;
use crate::wire::{FIRST, ReplyLine, SILENT, write_reply};

pub use crate::session::{Rejection, SessionEnd};

/// The most connections without authentication.
const STRANGERS: usize = 16;

/// Why an end does not serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not that of a single host.
    #[error("not listening on {listen}: {why}")]
    Address {
        /// Requested address.
        listen: SocketAddr,
        /// What it is instead.
        why: NotOneHost,
    },
    /// The address is reached from other hosts, and there is no secret.
    #[error("not listening on {0}: without a secret, any host that reaches it could make this host send")]
    NoSecret(SocketAddr),
    /// The socket with this address could not be created.
    #[error("cannot listen on {listen}: {error}")]
    Listen {
        /// Requested address.
        listen: SocketAddr,
        /// The kernel's error.
        error: SystemError,
    },
    /// The thread for a client could not be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The network namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] ringwise_sys::Error),
}

/// Listens on this address only, until `stop`. `opened` receives the address; `say` receives messages about clients,
/// for people.
///
/// Errors: the address is not that of a single host, or not available, with errno; it is reached from other hosts
/// without a secret.
pub fn serve(
    listen: SocketAddr,
    secret: Option<&str>,
    allowed: &Allowed,
    stop: &AtomicBool,
    opened: &mut dyn FnMut(SocketAddr),
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), Error> {
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
) -> Result<(), Error> {
    one_host(listen.ip()).map_err(|why| Error::Address { listen, why })?;
    if secret.is_none() && !listen.ip().is_loopback() {
        return Err(Error::NoSecret(listen));
    }
    let failed = |e: std::io::Error| Error::Listen { listen, error: e.into() };
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    opened(listener.local_addr().map_err(failed)?);
    let server = Server { silent, secret, allowed, stop, say, busy: false.into(), strangers: 0.into() };
    let server = &server;
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            let Some((stream, from)) = server.accept(&listener) else { continue };
            let work = move || server.meet(&stream, from);
            let started = std::thread::Builder::new().name("client".into()).spawn_scoped(scope, work);
            started.map_err(ThreadError::not_started)?;
        }
        Ok(())
    })
}

/// The data that the threads of all clients share.
struct Server<'a> {
    silent: Duration,
    secret: Option<&'a str>,
    allowed: &'a Allowed,
    stop: &'a AtomicBool,
    say: &'a (dyn Fn(&str) + Sync),
    /// An authenticated client is connected.
    busy: AtomicBool,
    /// Number of connections without authentication.
    strangers: AtomicUsize,
}

impl Server<'_> {
    /// The next connection, which is not authenticated yet. `None`: no connection waits, or there are too many of them.
    fn accept(&self, listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
        let (stream, from) = match listener.accept() {
            Ok(c) => c,
            Err(e) => {
                if e.kind() != std::io::ErrorKind::WouldBlock {
                    (self.say)(&format!("accept: {}", SystemError::from(e)));
                }
                std::thread::sleep(Duration::from_millis(50));
                return None;
            }
        };
        if self.strangers.fetch_add(1, Ordering::SeqCst) >= STRANGERS {
            self.strangers.fetch_sub(1, Ordering::SeqCst);
            refuse(&stream, &Rejection::TooManyStrangers);
            return None;
        }
        Some((stream, from))
    }

    /// Serves one client until it is gone.
    fn meet(&self, stream: &TcpStream, from: SocketAddr) {
        let limits = Limits { client: from.ip(), allowed: self.allowed.clone() };
        // Only an authenticated client occupies the single place.
        let is_known = std::cell::Cell::new(false);
        let welcome = || {
            if self.busy.swap(true, Ordering::SeqCst) {
                return Err(Rejection::AnotherClient);
            }
            is_known.set(true);
            self.strangers.fetch_sub(1, Ordering::SeqCst);
            (self.say)(&format!("{from} connected"));
            Ok(())
        };
        let end = match prepare(stream) {
            Ok((input, output)) => {
                let (secret, silent) = (self.secret, self.silent);
                let client = Client { secret, limits: Some(&limits), silent, welcome: &welcome };
                let end = session(input, output, &client, self.stop);
                let _ = stream.shutdown(Shutdown::Both);
                end
            }
            Err(e) => SessionEnd::Connection(e.into()),
        };
        if is_known.get() {
            (self.say)(&format!("{from} disconnected, everything is stopped: {end}"));
            self.busy.store(false, Ordering::SeqCst);
        } else {
            (self.say)(&format!("{from} was refused: {end}"));
            self.strangers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn refuse(stream: &TcpStream, why: &Rejection) {
    let mut to = stream;
    // A refused client may be gone already.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = write_reply(&mut to, &ReplyLine { id: 0, reply: Reply::Failed { why: why.to_string() } });
}

type Ends = (Box<dyn Read + Send>, Box<dyn Write + Send>);

fn prepare(stream: &TcpStream) -> std::io::Result<Ends> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(FIRST))?;
    Ok((Box::new(stream.try_clone()?), Box::new(stream.try_clone()?)))
}

/// Serves standard input and output, until the end of input or `stop`. In a network namespace, if one is given: call
/// this before any thread is started. Returns why it ended.
///
/// Errors: the namespace cannot be entered, with errno.
pub fn serve_stdio(netns: Option<&str>, stop: &AtomicBool) -> Result<SessionEnd, Error> {
    if let Some(name) = netns {
        ringwise_sys::load::enter_netns(name)?;
    }
    let client = Client { secret: None, limits: None, silent: SILENT, welcome: &|| Ok(()) };
    Ok(session(Box::new(std::io::stdin()), Box::new(std::io::stdout()), &client, stop))
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
