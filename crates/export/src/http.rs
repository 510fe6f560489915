//! A small HTTP/1.1 server for one page. It serves few connections at a time, limits the time of each, and closes it
//! after the answer.

use ringwise_model::errno::{EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::page::Form;

/// Limits for clients.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests that are answered at the same time; one of them is reserved for this host. Further clients get
    /// status 503.
    pub connections: usize,
    /// Connections whose request has not arrived. If there are more, the oldest of them is closed.
    pub waiting: usize,
    /// Longest request in bytes, without a body.
    pub bytes: usize,
    /// Time limit for the request to arrive, and again for the answer to be sent.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: 8, waiting: 64, bytes: 8192, time: Duration::from_secs(5) }
    }
}

/// The answer of the code that makes the page.
pub enum PageResult {
    /// The metrics; status 200.
    Page(String),
    /// The page is not available now.
    Busy(String),
}

struct Reply {
    status: &'static str,
    content_type: &'static str,
    more: &'static str,
    body: String,
}

fn plain(status: &'static str, body: impl Into<String>) -> Reply {
    Reply { status, content_type: "text/plain; charset=utf-8", more: "", body: body.into() + "\n" }
}

/// Serves until the listener fails. Several threads may call `page` at the same time.
pub fn serve(
    listener: &TcpListener,
    bounds: Bounds,
    page: impl Fn(Form) -> PageResult + Send + Sync + 'static,
) -> io::Result<()> {
    let page = Arc::new(page);
    let places = Arc::new(AtomicUsize::new(0));
    let waiting = Arc::new(Waiting::default());
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(client) => client,
            // The error concerns one client, or no file descriptor is free: the next accept may succeed.
            Err(e) if transient(&e) => {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(e) => return Err(e),
        };
        let list = Arc::clone(&waiting);
        let (page, places, waiting) = (Arc::clone(&page), Arc::clone(&places), Arc::clone(&waiting));
        let Ok(ticket) = waiting.enter(&stream, bounds.waiting) else { continue };
        let is_local = peer.ip().to_canonical().is_loopback();
        let one = move || {
            // A client that disconnects is no error.
            let _ = client(stream, bounds, is_local, (&waiting, ticket), &places, page.as_ref());
            waiting.leave(ticket);
        };
        // If no thread can be started, the connection is closed.
        if std::thread::Builder::new().name("client".into()).stack_size(256 << 10).spawn(one).is_err() {
            list.leave(ticket);
        }
    }
}

/// Connections whose request has not arrived, in the order of their arrival.
#[derive(Default)]
struct Waiting {
    list: Mutex<(u64, VecDeque<(u64, TcpStream)>)>,
}

impl Waiting {
    fn enter(&self, stream: &TcpStream, most: usize) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.0 += 1;
        let ticket = list.0;
        list.1.push_back((ticket, stream));
        // A normal client sends its request at once, so the oldest connection is closed.
        if list.1.len() > most.max(1)
            && let Some((_, oldest)) = list.1.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both); // an error means that it is closed already
        }
        Ok(ticket)
    }

    fn leave(&self, ticket: u64) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.1.retain(|(t, _)| *t != ticket);
    }
}

/// The right to be one of the requests that are answered now.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(taken: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |n: usize| (n < most).then_some(n + 1);
        taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok().map(|_| Self(taken))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn transient(e: &io::Error) -> bool {
    // A firewall rule causes EPERM.
    matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
        || matches!(e.raw_os_error(), Some(EPERM | ENOMEM | ENFILE | EMFILE | EPROTO | ENOBUFS))
}

fn client(
    mut stream: TcpStream,
    bounds: Bounds,
    is_local: bool,
    (waiting, ticket): (&Waiting, u64),
    places: &AtomicUsize,
    page: &dyn Fn(Form) -> PageResult,
) -> io::Result<()> {
    let until = Instant::now() + bounds.time;
    let head = head(&mut stream, bounds.bytes, until)?;
    waiting.leave(ticket);
    let most = if is_local { bounds.connections } else { bounds.connections.saturating_sub(1) };
    let place = Place::take(places, most.max(1));
    let (reply, body) = match head {
        Head::Gone => return Ok(()),
        _ if place.is_none() => {
            (plain("503 Service Unavailable", "too many requests at the same time; try again"), true)
        }
        Head::Whole(h) => answer(&h, page),
        Head::TooLong => (plain("431 Request Header Fields Too Large", "the request is too long"), true),
        Head::Late => (plain("408 Request Timeout", "the request did not arrive in time"), true),
    };
    let until = Instant::now() + bounds.time;
    let text = text(&reply, body);
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        let n = stream.write(rest)?;
        rest = &rest[n..];
    }
    stream.shutdown(Shutdown::Write)?;
    // Unread data from the client would make the kernel reset the connection, and the answer would be lost.
    let mut sink = [0; 1024];
    for _ in 0..64 {
        stream.set_read_timeout(Some(left(until)?.min(Duration::from_secs(1))))?;
        if stream.read(&mut sink)? == 0 {
            break;
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

enum Head {
    Whole(String),
    TooLong,
    Late,
    Gone,
}

/// Reads the request line and headers, within the limits of time and size.
fn head(stream: &mut TcpStream, most: usize, until: Instant) -> io::Result<Head> {
    let mut got = Vec::new();
    let mut block = [0; 1024];
    loop {
        let Ok(time) = left(until) else { return Ok(Head::Late) };
        stream.set_read_timeout(Some(time))?;
        let n = match stream.read(&mut block) {
            Ok(0) => return Ok(Head::Gone),
            Ok(n) => n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(Head::Late),
            Err(e) => return Err(e),
        };
        got.extend_from_slice(&block[..n]);
        let end = got.windows(4).position(|w| w == b"\r\n\r\n").or_else(|| got.windows(2).position(|w| w == b"\n\n"));
        match end {
            Some(end) if end <= most => return Ok(Head::Whole(String::from_utf8_lossy(&got[..end]).into_owned())),
            _ if got.len() > most => return Ok(Head::TooLong),
            _ => {}
        }
    }
}

/// The reply, and whether its body is sent.
fn answer(head: &str, page: &dyn Fn(Form) -> PageResult) -> (Reply, bool) {
    let mut lines = head.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return (plain("400 Bad Request", "this is not an HTTP request"), true);
    };
    if !version.starts_with("HTTP/1.") {
        return (plain("505 HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1 are supported"), true);
    }
    if !matches!(method, "GET" | "HEAD") {
        let no = plain("405 Method Not Allowed", "only GET and HEAD are supported");
        return (Reply { more: "Allow: GET, HEAD\r\n", ..no }, true);
    }
    let accept = lines.filter_map(|l| l.split_once(':')).filter(|(k, _)| k.eq_ignore_ascii_case("accept"));
    let accepts: String = accept.map(|(_, v)| v.to_ascii_lowercase() + ",").collect();
    let reply = match target.split('?').next() {
        Some("/metrics") => {
            let form = wanted(&accepts);
            match page(form) {
                PageResult::Page(body) => Reply { status: "200 OK", content_type: form.content_type(), more: "", body },
                PageResult::Busy(why) => plain("503 Service Unavailable", why),
            }
        }
        Some("/") => plain("200 OK", "ringwise export: the metrics are at /metrics"),
        _ => plain("404 Not Found", "not found: the only page is /metrics"),
    };
    (reply, method == "GET")
}

/// OpenMetrics, if the client prefers it at least as much as the older text format.
fn wanted(accepts: &str) -> Form {
    let quality = |kind: &str| {
        let entry = accepts.split(',').find(|e| e.split(';').next().is_some_and(|k| k.trim() == kind))?;
        let q = entry.split(';').find_map(|p| p.trim().strip_prefix("q="));
        Some(q.map_or(1.0, |q| q.trim().parse::<f64>().unwrap_or(0.0)))
    };
    let open = quality("application/openmetrics-text").unwrap_or(0.0);
    let plain = quality("text/plain").or_else(|| quality("text/*")).unwrap_or(0.0);
    if open > 0.0 && open >= plain { Form::OpenMetrics } else { Form::Prometheus }
}

fn text(r: &Reply, body: bool) -> String {
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{}Connection: close\r\n\r\n",
        r.status,
        r.content_type,
        r.body.len(),
        r.more
    );
    if body { head + &r.body } else { head }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
