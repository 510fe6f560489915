//! Threads with one socket each, which answer or count until they are stopped.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringwise_sys::load::{Poll, pin, receive_buffer, socket_drops, thread_cpu_time, timer_slack};

use crate::error::{LoadError, ThreadError};
use crate::load::check;
use crate::side::{Protocol, Taken};

/// How often a thread checks whether it must stop.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Size of the receive buffer of each socket in bytes.
const ROOM: u32 = 8 << 20;

pub(super) enum StateLimit {
    Udp(UdpSocket),
    Tcp(TcpListener),
}

/// The resources of a thread. The key of its socket in `poll` is 0.
pub(super) struct Worker<'a> {
    pub poll: Poll,
    pub delay: Duration,
    pub stop: &'a AtomicBool,
}

/// Running threads, which end when this value is dropped.
pub struct LoadService {
    at: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Taken>>,
}

impl LoadService {
    /// The address where each thread listens.
    pub fn at(&self) -> &[SocketAddr] {
        &self.at
    }

    /// The counts of each thread.
    pub fn stop(mut self) -> Vec<Taken> {
        self.end()
    }

    fn end(&mut self) -> Vec<Taken> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|t| t.join().unwrap_or_default()).collect()
    }
}

impl Drop for LoadService {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) struct ServiceRequest<'a> {
    pub protocol: Protocol,
    pub bind: Option<IpAddr>,
    pub threads: u32,
    pub cpus: &'a [u32],
    pub delay: Duration,
}

/// Errors: the request is refused, or a socket, a thread or its CPU is not available, with errno.
pub(super) fn start(asked: &ServiceRequest, work: fn(Worker, &StateLimit) -> Taken) -> Result<LoadService, LoadError> {
    check::threads(asked.threads)?;
    let ip = asked.bind.ok_or(LoadError::NoBindAddress)?;
    check::one_host(ip).map_err(|why| LoadError::BindAddress { ip, why })?;
    ringwise_sys::load::room_for_files(u64::from(asked.threads) * 2 + 256)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut service = LoadService { at: Vec::new(), stop, threads: Vec::new() };
    let (ready, all_ready) = mpsc::channel();
    for i in 0..asked.threads as usize {
        let failed = |e: io::Error| LoadError::Listen { ip, error: e.into() };
        let (bound, at) = listen(asked.protocol, ip).map_err(failed)?;
        service.at.push(at);
        let cpu = if asked.cpus.is_empty() { None } else { Some(asked.cpus[i % asked.cpus.len()]) };
        let (ready, stop, delay) = (ready.clone(), service.stop.clone(), asked.delay);
        let thread = move || match prepare(&bound, cpu) {
            Ok(poll) => {
                let _ = ready.send(Ok(()));
                drop(ready);
                let mut taken = work(Worker { poll, delay, stop: &stop }, &bound);
                taken.cpu = cpu;
                taken.cpu_ns = thread_cpu_time().as_nanos() as u64;
                if let StateLimit::Udp(s) = &bound {
                    taken.dropped = socket_drops(s).ok().map(u64::from);
                }
                taken
            }
            Err(why) => {
                let _ = ready.send(Err(why));
                Taken::default()
            }
        };
        let builder = std::thread::Builder::new().name("answer".into()).stack_size(256 << 10);
        service.threads.push(builder.spawn(thread).map_err(ThreadError::not_started)?);
    }
    drop(ready);
    for _ in 0..asked.threads {
        all_ready.recv().map_err(|_| ThreadError::EndedEarly { thread: "thread" })??;
    }
    Ok(service)
}

fn listen(protocol: Protocol, ip: IpAddr) -> io::Result<(StateLimit, SocketAddr)> {
    match protocol {
        Protocol::Udp => {
            let s = UdpSocket::bind((ip, 0))?;
            s.set_nonblocking(true)?;
            let at = s.local_addr()?;
            Ok((StateLimit::Udp(s), at))
        }
        Protocol::Tcp => {
            let s = TcpListener::bind((ip, 0))?;
            s.set_nonblocking(true)?;
            let at = s.local_addr()?;
            Ok((StateLimit::Tcp(s), at))
        }
    }
}

fn prepare(bound: &StateLimit, cpu: Option<u32>) -> ringwise_sys::Result<Poll> {
    if let Some(cpu) = cpu {
        pin(cpu)?;
    }
    timer_slack(1)?;
    let poll = Poll::new()?;
    match bound {
        StateLimit::Udp(s) => {
            receive_buffer(s, ROOM)?;
            poll.add(s, 0, false)?;
        }
        StateLimit::Tcp(s) => poll.add(s, 0, false)?,
    }
    Ok(poll)
}
