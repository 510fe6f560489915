//! The counters of one load thread.

use std::time::Duration;

use ringwise_model::words::plural;

use crate::error::LoadError;
use crate::hist::Hist;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests whose intended time was in the measured interval, and that the kernel accepted.
    pub asked: u64,
    /// How many of these were answered.
    pub answered: u64,
    /// Requests that the kernel accepted in the interval, whatever their intended time.
    pub sent: u64,
    /// Requests that were answered in the interval, whatever their intended time.
    pub done: u64,
    /// One way over TCP: bytes that the kernel accepted in the interval.
    pub bytes: u64,
    pub latency: Hist,
    /// Requests whose intended time was in the interval, and that were more than 1 ms late or never sent.
    pub late: u64,
    /// How often the kernel accepted no more at an intended time.
    pub full: u64,
    /// Answers without a waiting request: duplicates, or answers after [`super::LOST_AFTER`].
    pub again: u64,
    /// Datagrams that were not answers to this load.
    pub foreign: u64,
    pub errors: u64,
    pub first_error: Option<LoadError>,
    /// CPU time of the thread in the interval, without busy waiting for an intended time.
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

    /// Notes for the reader of the numbers.
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
