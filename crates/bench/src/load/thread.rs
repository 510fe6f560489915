//! One load thread: sends at its intended times, receives answers, and counts.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use ringwise_sys::load::{AT_ONCE, Poll, pin, receive_buffer, send_many, thread_cpu_time, timer_slack};

use crate::error::LoadError;
use crate::load::LOST_AFTER;
use crate::load::choice::Choice;
use crate::load::flow::{ForwardedPackets, Socket};
use crate::load::packet::{self, ANSWER, ONE_WAY, REQUEST, WARM_REQUEST, WARM_UP};
use crate::load::tally::Tally;
use crate::side::{Pattern, Protocol};

/// Sleeping ends this many ns before an intended time, because the time for waking up must not count as latency of the
/// network.
const SPIN: u64 = 50_000;
/// How often it checks whether it must stop and which requests were given up, ns.
const SWEEP: u64 = 50_000_000;
/// Without a rate: after this time without an answer, the flow sends the next request, ns.
const GIVE_UP: u64 = 1_000_000_000;
/// The pause before it sends again after the kernel accepted no more.
const FULL: Duration = Duration::from_micros(50);
/// The most sends or receives in a row.
const IN_A_ROW: usize = 64;
/// The most requests of one flow that wait for an answer.
const MOST_WAITING: usize = 1 << 20;
/// If it is later than this, it skips the missed times and reports that it cannot keep up, ns.
const BEHIND: u64 = 1_000_000_000;
/// The longest time in ns that one search for work takes; a longer one was interrupted.
const LOOK: u64 = 5_000;
/// The total size of enlarged receive buffers of a thread's sockets, bytes.
const FEW: usize = 16;
const ROOM: u32 = 4 << 20;
/// A request that is sent this much after its intended time counts as late, ns.
const LATE: u64 = 1_000_000;

pub(super) struct Job {
    pub protocol: Protocol,
    pub pattern: Pattern,
    pub size: u32,
    pub cpu: Option<u32>,
    pub to: SocketAddr,
    /// Numbers of its flows among all flows of the group.
    pub ranks: Vec<u32>,
    pub skew: f64,
    /// The rate of this thread.
    pub per_s: Option<f64>,
    /// Offset as a share of the interval between two requests, 0 to 1.
    pub phase: f64,
    pub tag: u32,
    pub seed: u64,
    pub warmup: Duration,
    pub time: Duration,
}

impl Job {
    /// Opens everything, reports that it is ready, and waits for the common start. If `go` is closed, the run does not
    /// take place.
    pub(super) fn work(
        self,
        ready: &Sender<Result<(), LoadError>>,
        go: &Receiver<Instant>,
        stop: &AtomicBool,
    ) -> Tally {
        let mut thread = match Thread::new(self) {
            Ok(t) => {
                let _ = ready.send(Ok(()));
                t
            }
            Err(why) => {
                let _ = ready.send(Err(why));
                return Tally::default();
            }
        };
        let Ok(start) = go.recv() else { return Tally::default() };
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        thread.start = start;
        if let Err(e) = thread.run(stop) {
            thread.tally.errors += 1;
            thread.tally.first_error.get_or_insert(e.into());
        }
        thread.tally
    }
}

/// The state of a run. Times are ns since the start.
pub(super) struct Thread {
    pub(super) job: Job,
    pub(super) one_way: bool,
    pub(super) flows: Vec<ForwardedPackets>,
    choice: Choice,
    poll: Poll,
    pub(super) start: Instant,
    /// Bounds of the measured interval.
    from: u64,
    to: u64,
    /// Number of intended times so far, and ns between two of them.
    slots: u64,
    interval: f64,
    /// The flow of the next slot, if the kernel accepted no more.
    held: Option<usize>,
    /// Without a rate: flows that may send, once for each request.
    pub(super) free: Vec<usize>,
    /// The same after an error, for later.
    resting: Vec<usize>,
    /// Requests without an answer.
    pub(super) open: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) tally: Tally,
    spun: u64,
}

pub(super) enum Sent {
    Yes,
    /// The kernel accepts no more at present.
    Full,
    Failed,
}

impl Thread {
    fn new(job: Job) -> Result<Self, LoadError> {
        if let Some(cpu) = job.cpu {
            pin(cpu)?;
        }
        timer_slack(1)?;
        let one_way = job.pattern == Pattern::Send;
        let poll = Poll::new()?;
        let kind = if one_way { ONE_WAY } else { REQUEST };
        let mut flows = Vec::with_capacity(job.ranks.len());
        for rank in &job.ranks {
            let tag = job.tag.wrapping_add(rank.wrapping_mul(0x9e37_79b9));
            let (number, of) = (flows.len() + 1, job.ranks.len());
            let flow = ForwardedPackets::open(job.protocol, job.to, tag, kind, job.size)
                .map_err(|e| LoadError::Flow { number, of, error: Box::new(e) })?;
            let key = flows.len() as u64;
            if let Socket::Udp(s) = &flow.socket
                && job.ranks.len() <= FEW
                && !one_way
            {
                receive_buffer(s, ROOM)?;
            }
            match &flow.socket {
                Socket::Udp(s) => poll.add(s, key, false),
                Socket::Tcp(s) => poll.add(s, key, true),
            }?;
            flows.push(flow);
        }
        let depth = if let Pattern::Burst(n) = job.pattern { n as usize } else { 1 };
        let free =
            if job.per_s.is_none() { (0..flows.len()).flat_map(|f| vec![f; depth]).collect() } else { Vec::new() };
        let interval = job.per_s.map_or(0.0, |r| 1e9 / r);
        let from = job.warmup.as_nanos() as u64;
        let room = if one_way && job.protocol == Protocol::Udp { AT_ONCE } else { 1 };
        let size = job.size as usize;
        let least = if job.protocol == Protocol::Tcp { size.max(64 << 10) } else { size.max(2048) };
        Ok(Self {
            one_way,
            choice: Choice::new(&job.ranks, job.skew, job.seed),
            poll,
            start: Instant::now(),
            from,
            to: from + job.time.as_nanos() as u64,
            slots: 0,
            interval,
            held: None,
            free,
            resting: Vec::new(),
            open: 0,
            buffer: vec![0; (room * size).max(least)],
            tally: Tally::default(),
            spun: 0,
            flows,
            job,
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub(super) fn measured(&self, time: u64) -> bool {
        (self.from..self.to).contains(&time)
    }

    /// Errors: the kernel refused to wait.
    fn run(&mut self, stop: &AtomicBool) -> ringwise_sys::Result<()> {
        let grace = LOST_AFTER.as_nanos() as u64;
        let mut ready = Vec::new();
        let mut sweep = SWEEP;
        // CPU time and busy waiting at both bounds of the measured interval.
        let (mut begun, mut ended) = (None, false);
        while !stop.load(Ordering::Relaxed) {
            let now = self.now();
            if begun.is_none() && now >= self.from {
                begun = Some((thread_cpu_time(), self.spun));
            }
            if !ended && now >= self.to {
                ended = true;
                let (cpu, spun) = begun.unwrap_or_default();
                let waited = Duration::from_nanos(self.spun - spun);
                self.tally.cpu = (thread_cpu_time() - cpu).saturating_sub(waited);
            }
            if now >= self.to && ((self.open == 0 && !self.is_due(now)) || now >= self.to + grace) {
                break;
            }
            let slots = self.slots;
            let wait = if self.job.per_s.is_some() { self.send_due(now) } else { self.send_free(now) };
            // One way over UDP nothing is received except errors, which the next send returns.
            if !(wait.is_zero() && self.one_way && self.job.protocol == Protocol::Udp) {
                self.poll.wait(wait, &mut ready)?;
            }
            let idle = wait.is_zero() && ready.is_empty() && self.job.per_s.is_some() && slots == self.slots;
            for key in ready.drain(..) {
                self.serve(key as usize);
            }
            let after = self.now();
            if idle {
                self.spun += (after - now).min(LOOK);
            }
            if after >= sweep {
                sweep = after + SWEEP;
                self.sweep(after);
            }
        }
        self.tally.late += self.never_sent();
        Ok(())
    }

    fn intended(&self, slot: u64) -> u64 {
        ((slot as f64 + self.job.phase) * self.interval) as u64
    }

    fn is_due(&self, now: u64) -> bool {
        let next = self.intended(self.slots);
        self.job.per_s.is_some() && next < self.to && next <= now
    }

    /// Slots of the measured interval that were missed.
    fn never_sent(&self) -> u64 {
        if self.job.per_s.is_none() {
            return 0;
        }
        self.slots_before(self.to).saturating_sub(self.slots.max(self.slots_before(self.from)))
    }

    fn slots_before(&self, time: u64) -> u64 {
        (time as f64 / self.interval - self.job.phase).ceil().max(0.0) as u64
    }

    /// Skips the slots that are too late.
    fn catch_up(&mut self, now: u64) {
        let first = self.slots_before(now.saturating_sub(BEHIND).min(self.to));
        if first > self.slots {
            let measured = self.slots.max(self.slots_before(self.from))..first;
            self.tally.late += measured.end.saturating_sub(measured.start);
            self.slots = first;
        }
    }

    /// Sends everything that is due. Returns how long there is nothing to do afterwards.
    fn send_due(&mut self, now: u64) -> Duration {
        self.catch_up(now);
        for _ in 0..IN_A_ROW {
            if !self.is_due(now) {
                break;
            }
            let intended = self.intended(self.slots);
            let f = self.held.take().unwrap_or_else(|| self.choice.pick());
            match self.send(f, intended) {
                Sent::Full => {
                    self.tally.full += 1;
                    self.held = Some(f);
                    return FULL;
                }
                Sent::Yes | Sent::Failed => self.slots += 1,
            }
            if self.measured(intended) && now.saturating_sub(intended) > LATE {
                self.tally.late += 1;
            }
        }
        let next = self.intended(self.slots);
        let gap = if next < self.to { next.saturating_sub(self.now()) } else { SWEEP };
        Duration::from_nanos(if gap <= SPIN { 0 } else { (gap - SPIN).min(SWEEP) })
    }

    /// Sends on each flow that may send.
    fn send_free(&mut self, now: u64) -> Duration {
        let mut left = if now >= self.to { 0 } else { self.free.len() };
        while left > 0 && self.now() < self.to {
            left -= 1;
            let mut f = self.free.swap_remove(left);
            if self.choice.is_skewed() || self.one_way && self.job.protocol == Protocol::Udp {
                f = self.choice.pick();
            }
            let intended = self.now();
            let sent = match (self.one_way, self.job.protocol) {
                (true, Protocol::Udp) => self.send_batch(f, intended),
                (true, Protocol::Tcp) => self.stream(f),
                _ => self.send(f, intended),
            };
            match sent {
                Sent::Yes if self.one_way => self.free.push(f),
                Sent::Yes => {}
                Sent::Full if self.one_way && self.job.protocol == Protocol::Tcp => self.flows[f].listed = false,
                Sent::Full => {
                    self.free.push(f);
                    return FULL;
                }
                Sent::Failed if self.flows[f].dead => {}
                Sent::Failed => self.resting.push(f),
            }
        }
        if self.one_way && !self.free.is_empty() && now < self.to {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.to.saturating_sub(now).clamp(1_000_000, SWEEP))
    }

    fn send(&mut self, f: usize, intended: u64) -> Sent {
        if self.flows[f].waiting.len() >= MOST_WAITING {
            return Sent::Full;
        }
        if self.job.protocol == Protocol::Tcp {
            return self.send_stream(f, intended);
        }
        let counted = self.measured(intended);
        let flow = &mut self.flows[f];
        let Socket::Udp(socket) = &flow.socket else { return Sent::Failed };
        let size = self.job.size as usize;
        let seq = flow.waiting.next();
        let kind = match (self.one_way, counted) {
            (false, true) => REQUEST,
            (false, false) => WARM_REQUEST,
            (true, true) => ONE_WAY,
            (true, false) => WARM_UP,
        };
        packet::put(&mut self.buffer, kind, flow.tag, seq, (intended / 1000) as u32);
        match socket.send(&self.buffer[..size]) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Sent::Full,
            Err(e) => {
                self.tally.error("send", &e);
                return Sent::Failed;
            }
        }
        if !self.one_way {
            flow.waiting.push(intended);
            self.open += 1;
            self.tally.asked += u64::from(counted);
        }
        // One way, the datagrams that are counted here are those that are marked for the sink.
        let now = if self.one_way { intended } else { self.now() };
        self.tally.sent += u64::from(self.measured(now));
        Sent::Yes
    }

    fn send_batch(&mut self, f: usize, now: u64) -> Sent {
        let counted = self.measured(now);
        let (flow, size) = (&mut self.flows[f], self.job.size as usize);
        let Socket::Udp(socket) = &flow.socket else { return Sent::Failed };
        for part in self.buffer.chunks_exact_mut(size).take(AT_ONCE) {
            packet::put(part, if counted { ONE_WAY } else { WARM_UP }, flow.tag, 0, (now / 1000) as u32);
        }
        match send_many(socket, &mut self.buffer, size, AT_ONCE) {
            Ok(n) => {
                self.tally.sent += if counted { n as u64 } else { 0 };
                Sent::Yes
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Sent::Full,
            Err(e) => {
                self.tally.error("sendmmsg", &e);
                Sent::Failed
            }
        }
    }

    fn serve(&mut self, f: usize) {
        match self.job.protocol {
            Protocol::Udp => self.receive(f),
            Protocol::Tcp => self.receive_stream(f),
        }
    }

    fn receive(&mut self, f: usize) {
        for _ in 0..IN_A_ROW {
            let flow = &mut self.flows[f];
            let Socket::Udp(socket) = &flow.socket else { return };
            match socket.recv(&mut self.buffer) {
                Ok(n) => {
                    let head = packet::get(&self.buffer[..n])
                        .filter(|(kind, tag, _)| *kind == ANSWER && *tag == flow.tag && n == self.job.size as usize);
                    let Some((_, _, seq)) = head else {
                        self.tally.foreign += 1;
                        continue;
                    };
                    match flow.waiting.answer(seq) {
                        Some(intended) => self.answered(f, seq, intended),
                        None => self.tally.again += 1,
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // An error of an earlier send: no listener, no route, ...
                Err(e) => self.tally.error("receive", &e),
            }
        }
    }

    pub(super) fn answered(&mut self, f: usize, seq: u32, intended: u64) {
        let now = self.now();
        self.open -= 1;
        self.tally.done += u64::from(self.measured(now));
        if self.measured(intended) {
            self.tally.answered += 1;
            self.tally.latency.add(now.saturating_sub(intended));
        }
        // A request that was given up does not count twice; requests over a stream are never given up.
        let kept = || seq.wrapping_sub(self.flows[f].given_up) as i32 >= 0;
        if self.job.per_s.is_none() && (self.job.protocol == Protocol::Tcp || kept()) {
            self.free.push(f);
        }
    }

    fn sweep(&mut self, now: u64) {
        self.free.append(&mut self.resting);
        if self.job.protocol == Protocol::Tcp || self.one_way || self.open == 0 {
            return;
        }
        let lost_before = now.saturating_sub(LOST_AFTER.as_nanos() as u64);
        for f in 0..self.flows.len() {
            let flow = &mut self.flows[f];
            if self.job.per_s.is_none() {
                let first = flow.waiting.first();
                let overdue = first.wrapping_add(flow.waiting.before(now.saturating_sub(GIVE_UP)));
                let from = if flow.given_up.wrapping_sub(first) as i32 > 0 { flow.given_up } else { first };
                let unanswered = flow.waiting.unanswered(from, overdue);
                flow.given_up = if overdue.wrapping_sub(from) as i32 > 0 { overdue } else { from };
                self.free.extend(std::iter::repeat_n(f, unanswered));
            }
            self.open -= self.flows[f].waiting.forget(lost_before);
        }
    }
}
