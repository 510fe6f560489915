//! What one load thread counts.

use std::time::Duration;

use ringwise_model::words::plural;

use crate::error::LoadError;
use crate::hist::Hist;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests whose time was within the measured stretch, and that were given to the kernel.
    pub asked: u64,
    /// Those of them that were answered.
    pub answered: u64,
    /// Handed to the kernel within the stretch, whenever they were intended.
    pub sent: u64,
    /// Answered within the stretch, whenever they were intended.
    pub done: u64,
    /// One way over TCP: taken by the kernel within the stretch.
    pub bytes: u64,
    pub latency: Hist,
    /// Intended within the stretch, and more than 1 ms late, or never sent.
    pub late: u64,
    /// Times that the kernel took no more, at an intended time.
    pub full: u64,
    /// Answers to nothing that was still waited for: a second time, or after [`super::LOST_AFTER`].
    pub again: u64,
    /// Datagrams that were not answers to us.
    pub foreign: u64,
    pub errors: u64,
    pub first_error: Option<LoadError>,
    /// Of the thread within the stretch, without what it spent waiting for an intended time.
    pub cpu: Duration,
}

impl Tally {
    pub(super) fn error(&mut self, call: &'static str, e: &std::io::Error) {
        self.errors += 1;
        if self.first_error.is_none() {
            self.first_error = Some(LoadError::Call { call, error: e.into() });
        }
    }

    pub(super) fn merge(&mut self, o: &Self) {
        self.asked += o.asked;
        self.answered += o.answered;
        self.sent += o.sent;
        self.done += o.done;
        self.bytes += o.bytes;
        self.latency.merge(&o.latency);
        self.late += o.late;
        self.full += o.full;
        self.again += o.again;
        self.foreign += o.foreign;
        self.errors += o.errors;
        if self.first_error.is_none() {
            self.first_error.clone_from(&o.first_error);
        }
        self.cpu = self.cpu.max(o.cpu);
    }

    /// What a reader has to know besides the numbers.
    pub(super) fn trouble(&self) -> Option<String> {
        let mut out = Vec::new();
        if let Some(first) = &self.first_error {
            out.push(format!("{} failed, the first one: {first}", plural(self.errors as usize, "call")));
        }
        if self.late * 100 > self.asked.max(self.sent) {
            let full = if self.full > 0 {
                format!(" (its sockets were full {})", plural(self.full as usize, "time"))
            } else {
                String::new()
            };
            let late = self.late;
            out.push(format!(
                "{late} requests were more than 1 ms late or never sent: the generator was the limit{full}"
            ));
        }
        for (n, words) in
            [(self.again, "answers came twice or too late"), (self.foreign, "foreign datagrams were ignored")]
        {
            if n > 0 {
                out.push(format!("{n} {words}"));
            }
        }
        (!out.is_empty()).then(|| out.join("; "))
    }
}
