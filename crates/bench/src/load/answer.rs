//! Answers transactions: each request is sent back unchanged, datagram by datagram or message by message of a stream.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ringwise_sys::load::room_for_files;

use crate::error::LoadError;
use crate::load::packet::{self, ANSWER, OPENING, REQUEST, WARM_REQUEST};
use crate::load::service::{LOOK, LoadService, ServiceRequest, StateLimit, Worker, start};
use crate::side::{Responder, Taken};

/// The most answers that wait for their time; further requests wait in the socket.
const MOST_HELD: usize = 100_000;
/// Sleeping ends this long before the time of an answer; the rest is spent in a busy wait.
const SPIN: Duration = Duration::from_micros(60);
const IN_A_ROW: usize = 64;

/// Each thread has one socket. A delay applies to each answer separately, so answers do not queue behind each other.
///
/// Errors: the request is refused, or a socket, a thread or its CPU is not available, with errno.
pub fn answer(a: &Responder) -> Result<LoadService, LoadError> {
    let delay = Duration::from_micros(a.delay_us.into());
    start(&ServiceRequest { protocol: a.protocol, bind: a.bind, threads: a.threads, cpus: &a.cpus, delay }, work)
}

fn work(w: Worker, bound: &StateLimit) -> Taken {
    match bound {
        StateLimit::Udp(s) => datagrams(w, s),
        StateLimit::Tcp(l) => Streams::new(l).run(w),
    }
}

/// How long to sleep until this time.
fn until(due: Option<Instant>) -> Duration {
    due.map_or(LOOK, |d| d.saturating_duration_since(Instant::now()).saturating_sub(SPIN).min(LOOK))
}

fn datagrams(mut w: Worker, socket: &UdpSocket) -> Taken {
    let mut taken = Taken::default();
    let mut held: VecDeque<(Instant, SocketAddr, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 1 << 16];
    let mut ready = Vec::new();
    // An answer that cannot be sent is lost, as in any network; the sender of the request counts it.
    let send = |bytes: &[u8], to: SocketAddr| drop(socket.send_to(bytes, to));
    while !w.stop.load(Ordering::Relaxed) {
        let wait = until(held.front().map(|h| h.0));
        if held.len() >= MOST_HELD {
            std::thread::sleep(wait);
        } else if w.poll.wait(wait, &mut ready).is_err() {
            break;
        }
        for _ in 0..if ready.is_empty() { 0 } else { IN_A_ROW } {
            let Ok((n, from)) = socket.recv_from(&mut buffer) else { break };
            let Some((kind @ (REQUEST | WARM_REQUEST), ..)) = packet::get(&buffer[..n]) else { continue };
            buffer[3] = ANSWER;
            if kind == REQUEST {
                taken.packets += 1;
                taken.bytes += n as u64;
            }
            if w.delay.is_zero() {
                send(&buffer[..n], from);
            } else {
                held.push_back((Instant::now() + w.delay, from, buffer[..n].to_vec()));
            }
        }
        while held.front().is_some_and(|h| h.0 <= Instant::now()) {
            if let Some((_, to, bytes)) = held.pop_front() {
                send(&bytes, to);
            }
        }
    }
    taken
}

struct Connection {
    stream: TcpStream,
    opening: [u8; OPENING],
    opened: usize,
    size: u64,
    /// Bytes of a message that is not complete.
    read: u64,
    /// Bytes of answers that the kernel has not accepted yet.
    owed: u64,
}

struct Streams<'a> {
    listener: &'a TcpListener,
    /// The connections; the index is the key minus 1.
    connections: Vec<Option<Connection>>,
    held: VecDeque<(Instant, usize, u64)>,
    buffer: Vec<u8>,
    taken: Taken,
}

impl<'a> Streams<'a> {
    fn new(listener: &'a TcpListener) -> Self {
        Self {
            listener,
            connections: Vec::new(),
            held: VecDeque::new(),
            buffer: vec![0; 256 << 10],
            taken: Taken::default(),
        }
    }

    fn run(mut self, mut w: Worker) -> Taken {
        let mut ready = Vec::new();
        while !w.stop.load(Ordering::Relaxed) {
            if w.poll.wait(until(self.held.front().map(|h| h.0)), &mut ready).is_err() {
                break;
            }
            for key in ready.drain(..) {
                match usize::try_from(key).unwrap_or_default().checked_sub(1) {
                    None => self.accept(&w),
                    Some(slot) => {
                        if self.serve(slot, w.delay).is_none() {
                            self.connections[slot] = None;
                        }
                    }
                }
            }
            while self.held.front().is_some_and(|h| h.0 <= Instant::now()) {
                let Some((_, slot, size)) = self.held.pop_front() else { break };
                if let Some(c) = &mut self.connections[slot] {
                    c.owed += size;
                    if c.write(&self.buffer).is_none() {
                        self.connections[slot] = None;
                    }
                }
            }
        }
        self.taken
    }

    fn accept(&mut self, w: &Worker) {
        let wanted = self.connections.len() as u64 + 512;
        while let Ok((stream, _)) = self.listener.accept() {
            // If no more connections are possible, the client gets an error.
            let _ = room_for_files(wanted);
            let slot = self.connections.len();
            let good = stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
            if good && w.poll.add(&stream, slot as u64 + 1, true).is_ok() {
                let c = Connection { stream, opening: [0; OPENING], opened: 0, size: 0, read: 0, owed: 0 };
                self.connections.push(Some(c));
            }
        }
    }

    /// Reads everything that has arrived. `None`: the connection has ended, or is not from this generator.
    fn serve(&mut self, slot: usize, delay: Duration) -> Option<()> {
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return Some(()) };
        c.write(&self.buffer)?;
        loop {
            let n = match c.open_or_read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(n) => n as u64,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Some(()),
                Err(_) => return None,
            };
            if c.size == 0 {
                continue;
            }
            let complete = (c.read + n) / c.size;
            c.read = (c.read + n) % c.size;
            self.taken.bytes += n;
            self.taken.packets += complete;
            if delay.is_zero() {
                c.owed += complete * c.size;
                c.write(&self.buffer)?;
            } else if complete > 0 {
                self.held.push_back((Instant::now() + delay, slot, complete * c.size));
            }
        }
    }
}

impl Connection {
    /// The number of bytes read. The bytes of the opening set the size and do not count for a message.
    fn open_or_read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.opened == OPENING {
            return self.stream.read(buffer);
        }
        let n = self.stream.read(&mut self.opening[self.opened..])?;
        self.opened += n;
        if self.opened == OPENING {
            let opened = packet::opened(self.opening).filter(|(kind, size)| *kind == REQUEST && *size > 0);
            let (_, size) = opened.ok_or(ErrorKind::InvalidData)?;
            self.size = size.into();
            // The bytes so far belong to the opening; the first message starts now.
            return self.stream.read(buffer);
        }
        Ok(n)
    }

    /// Sends as many pending bytes as the kernel accepts. `None`: the connection has ended.
    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        while self.owed > 0 {
            let n = usize::try_from(self.owed).unwrap_or(usize::MAX).min(bytes.len());
            match self.stream.write(&bytes[..n]) {
                Ok(n) => self.owed -= n as u64,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Some(()),
                Err(_) => return None,
            }
        }
        Some(())
    }
}
