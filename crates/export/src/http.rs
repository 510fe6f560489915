//! A small HTTP/1.1 server for one page: few connections at a time, each with little time, closed after its answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::page::Form;

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at a time; more are told to come again.
    pub connections: usize,
    /// Of a request, without a body.
    pub bytes: usize,
    /// For a request to arrive, and again for the answer to be taken.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: 8, bytes: 8192, time: Duration::from_secs(5) }
    }
}

/// What whoever makes the page says.
pub enum Answer {
    Page(String),
    /// It cannot be had now.
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

/// Until the listener fails. `page` may be asked from several threads.
pub fn serve(
    listener: &TcpListener,
    bounds: Bounds,
    page: impl Fn(Form) -> Answer + Send + Sync + 'static,
) -> io::Result<()> {
    let page = Arc::new(page);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Of that one client, or for want of files: the next may do better.
            Err(e) if transient(&e) => {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(e) => return Err(e),
        };
        let now = Open::new(&open);
        if now.count > bounds.connections {
            busy(stream);
            continue;
        }
        let page = Arc::clone(&page);
        let one = move || {
            // Whoever goes away in the middle is nobody's concern.
            let _ = client(stream, bounds, page.as_ref());
            drop(now);
        };
        // Without a thread the connection is closed, which says it as well.
        drop(std::thread::Builder::new().name("client".into()).stack_size(256 << 10).spawn(one));
    }
}

fn transient(e: &io::Error) -> bool {
    // ENFILE 23, EMFILE 24, ENOBUFS 105, ENOMEM 12, EPROTO 71, EPERM 1 (a firewall's rule)
    matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
        || matches!(e.raw_os_error(), Some(1 | 12 | 23 | 24 | 71 | 105))
}

/// Counts itself among those that are open.
struct Open {
    all: Arc<AtomicUsize>,
    count: usize,
}

impl Open {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        Self { all: Arc::clone(all), count: all.fetch_add(1, Ordering::SeqCst) + 1 }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Never waits: it runs where connections are accepted.
fn busy(mut stream: TcpStream) {
    if stream.set_nonblocking(true).is_ok() {
        let text = text(&plain("503 Service Unavailable", "too many connections"), true);
        let _ = stream.write(text.as_bytes()); // it is closed in any case
    }
}

fn client(mut stream: TcpStream, bounds: Bounds, page: &dyn Fn(Form) -> Answer) -> io::Result<()> {
    let until = Instant::now() + bounds.time;
    let (reply, body) = match head(&mut stream, bounds.bytes, until)? {
        Head::Whole(h) => answer(&h, page),
        Head::TooLong => (plain("431 Request Header Fields Too Large", "the request is too long"), true),
        Head::Late => (plain("408 Request Timeout", "the request did not come in time"), true),
        Head::Gone => return Ok(()),
    };
    let until = Instant::now() + bounds.time;
    let text = text(&reply, body);
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        let n = stream.write(rest)?;
        rest = &rest[n..];
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // What the client still sends would make the kernel reset the connection, and lose the answer.
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

/// Request line and headers. Neither a slow nor a talkative client gets more than its bounds.
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
fn answer(head: &str, page: &dyn Fn(Form) -> Answer) -> (Reply, bool) {
    let mut lines = head.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return (plain("400 Bad Request", "this is no request"), true);
    };
    if !version.starts_with("HTTP/1.") {
        return (plain("505 HTTP Version Not Supported", "this is HTTP/1.1"), true);
    }
    if !matches!(method, "GET" | "HEAD") {
        let no = plain("405 Method Not Allowed", "only GET and HEAD");
        return (Reply { more: "Allow: GET, HEAD\r\n", ..no }, true);
    }
    let accept = lines.filter_map(|l| l.split_once(':')).filter(|(k, _)| k.eq_ignore_ascii_case("accept"));
    let accepts: String = accept.map(|(_, v)| v.to_ascii_lowercase() + ",").collect();
    let reply = match target.split('?').next() {
        Some("/metrics") => {
            let form = wanted(&accepts);
            match page(form) {
                Answer::Page(body) => Reply { status: "200 OK", content_type: form.content_type(), more: "", body },
                Answer::Busy(why) => plain("503 Service Unavailable", why),
            }
        }
        Some("/") => plain("200 OK", "ringwise export: the metrics are at /metrics"),
        _ => plain("404 Not Found", "there is only /metrics"),
    };
    (reply, method == "GET")
}

/// OpenMetrics, where the client likes it at least as much as the older text.
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
