//! Receives and counts messages.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwise_sys::load::{AT_ONCE, receive_many, room_for_files};

use crate::error::LoadError;
use crate::load::packet::{self, HEAD, OPENING, WARM_UP};
use crate::load::service::{LOOK, LoadService, ServiceRequest, StateLimit, Worker, start};
use crate::side::{Sink, Taken};

/// Calls in a row before a thread checks whether it must stop.
const IN_A_ROW: usize = 64;

/// Each thread has one socket. Datagrams of the generator's warm-up are not counted; over TCP everything is counted.
///
/// Errors: the request is refused, or a socket, a thread or its CPU is not available, with errno.
pub fn sink(s: &Sink) -> Result<LoadService, LoadError> {
    let asked =
        ServiceRequest { protocol: s.protocol, bind: s.bind, threads: s.threads, cpus: &s.cpus, delay: Duration::ZERO };
    start(&asked, work)
}

fn work(w: Worker, bound: &StateLimit) -> Taken {
    match bound {
        StateLimit::Udp(s) => datagrams(w, s),
        StateLimit::Tcp(l) => streams(w, l),
    }
}

fn datagrams(mut w: Worker, socket: &UdpSocket) -> Taken {
    let mut taken = Taken::default();
    let (mut heads, mut lengths, mut ready) = (vec![0; AT_ONCE * HEAD], [0; AT_ONCE], Vec::new());
    while !w.stop.load(Ordering::Relaxed) {
        if w.poll.wait(LOOK, &mut ready).is_err() {
            break;
        }
        for _ in 0..if ready.is_empty() { 0 } else { IN_A_ROW } {
            let Ok(n) = receive_many(socket, &mut heads, HEAD, &mut lengths) else { break };
            for (head, length) in heads.chunks_exact(HEAD).zip(lengths).take(n) {
                let warm_up = length >= HEAD && matches!(packet::get(head), Some((WARM_UP, ..)));
                if !warm_up {
                    taken.packets += 1;
                    taken.bytes += length as u64;
                }
            }
        }
    }
    taken
}

/// Each read is counted as one packet.
fn streams(mut w: Worker, listener: &TcpListener) -> Taken {
    let mut taken = Taken::default();
    // The connections by key minus 1, with the missing bytes of the opening.
    let mut streams: Vec<Option<(TcpStream, usize)>> = Vec::new();
    let (mut buffer, mut ready) = (vec![0; 256 << 10], Vec::new());
    while !w.stop.load(Ordering::Relaxed) {
        if w.poll.wait(LOOK, &mut ready).is_err() {
            break;
        }
        for key in ready.drain(..) {
            let Some(slot) = usize::try_from(key).unwrap_or_default().checked_sub(1) else {
                while let Ok((stream, _)) = listener.accept() {
                    let slot = streams.len() as u64;
                    // If no more connections are possible, the client gets an error.
                    let _ = room_for_files(slot + 512);
                    if stream.set_nonblocking(true).is_ok() && w.poll.add(&stream, slot + 1, false).is_ok() {
                        streams.push(Some((stream, OPENING)));
                    }
                }
                continue;
            };
            let Some((stream, opening)) = &mut streams[slot] else { continue };
            match stream.read(&mut buffer) {
                Ok(0) => streams[slot] = None,
                Ok(n) => {
                    let head = n.min(*opening);
                    *opening -= head;
                    taken.packets += 1;
                    taken.bytes += (n - head) as u64;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => streams[slot] = None,
            }
        }
    }
    taken
}
