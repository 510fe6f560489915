//! The TCP part of a load thread: messages are bytes of one stream, and answers arrive in order.

use std::io::{ErrorKind, Read, Write};

use crate::load::flow::Socket;
use crate::load::thread::{Sent, Thread};

impl Thread {
    /// Sends a request. The kernel accepts as much as fits into its buffer; the rest follows later.
    pub(super) fn send_stream(&mut self, f: usize, intended: u64) -> Sent {
        let counted = self.measured(intended);
        let flow = &mut self.flows[f];
        if flow.dead {
            return Sent::Failed;
        }
        flow.owed += u64::from(self.job.size);
        if !self.one_way {
            flow.waiting.push(intended);
            self.open += 1;
            self.tally.asked += u64::from(counted);
        }
        self.write_owed(f);
        Sent::Yes
    }

    /// One way: a single write, of as much as the kernel accepts.
    pub(super) fn stream(&mut self, f: usize) -> Sent {
        if self.flows[f].dead {
            return Sent::Failed;
        }
        self.flows[f].listed = true;
        self.flows[f].owed = u64::from(self.job.size);
        self.write_owed(f);
        match (self.flows[f].dead, self.flows[f].owed) {
            (true, _) => Sent::Failed,
            // Bytes that were not accepted are written again; all bytes are equal.
            (_, 1..) => Sent::Full,
            _ => Sent::Yes,
        }
    }

    fn write_owed(&mut self, f: usize) {
        while self.flows[f].owed > 0 && !self.flows[f].dead {
            let flow = &mut self.flows[f];
            let Socket::Tcp(stream) = &mut flow.socket else { return };
            let n = usize::try_from(flow.owed).unwrap_or(usize::MAX).min(self.buffer.len());
            match stream.write(&self.buffer[..n]) {
                Ok(n) => {
                    flow.owed -= n as u64;
                    flow.written += n as u64;
                    let size = u64::from(self.job.size);
                    let complete = flow.written / size;
                    flow.written %= size;
                    if self.measured(self.now()) {
                        self.tally.sent += complete;
                        self.tally.bytes += if self.one_way { n as u64 } else { 0 };
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => {
                    flow.dead = true;
                    self.tally.error("send", &e);
                }
            }
        }
    }

    pub(super) fn receive_stream(&mut self, f: usize) {
        if self.one_way {
            if self.job.per_s.is_some() {
                self.write_owed(f);
            } else if !self.flows[f].listed && !self.flows[f].dead {
                self.flows[f].listed = true;
                self.free.push(f);
            }
            return;
        }
        self.write_owed(f);
        let size = u64::from(self.job.size);
        // The kernel reports only once that data has arrived, so all of it is read.
        while !self.flows[f].dead {
            let flow = &mut self.flows[f];
            let Socket::Tcp(stream) = &mut flow.socket else { return };
            match stream.read(&mut self.buffer) {
                Ok(0) => {
                    flow.dead = true;
                    let e = std::io::Error::new(ErrorKind::UnexpectedEof, "the other end closed the connection");
                    self.tally.error("receive", &e);
                }
                Ok(n) => {
                    flow.read += n as u64;
                    while self.flows[f].read >= size {
                        self.flows[f].read -= size;
                        let seq = self.flows[f].waiting.first();
                        match self.flows[f].waiting.answer(seq) {
                            Some(intended) => self.answered(f, seq, intended),
                            None => self.tally.again += 1,
                        }
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => {
                    flow.dead = true;
                    self.tally.error("receive", &e);
                }
            }
        }
    }
}
