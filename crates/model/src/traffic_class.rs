//! Traffic classes: ranges of transmit queues that the queueing disciplines mqprio and taprio assign to packet priorities.

use serde::{Deserialize, Serialize};

/// The traffic classes of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficClasses {
    /// Class of each packet priority from 0 on (`prio_tc_map`).
    pub of_priority: Vec<u8>,
    /// Transmit queues of each class from 0 on.
    pub queues: Vec<QueueRange>,
}

/// Consecutive queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRange {
    /// The first queue.
    pub first: u32,
    /// The number of queues.
    pub count: u32,
}

impl QueueRange {
    /// The number after the last queue.
    pub fn end(self) -> u32 {
        self.first.saturating_add(self.count)
    }

    /// Whether it contains the queue.
    pub fn contains(self, queue: u32) -> bool {
        (self.first..self.end()).contains(&queue)
    }
}

/// `tx 0-3`, `tx 4`; without a queue `no queue`.
impl std::fmt::Display for QueueRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            0 => f.write_str("no queue"),
            1 => write!(f, "tx {}", self.first),
            _ => write!(f, "tx {}-{}", self.first, self.end() - 1),
        }
    }
}

impl TrafficClasses {
    /// The class to which the queue belongs, as in `netdev_txq_to_tc` (net/core/dev.c). `None`: to none.
    pub fn of_queue(&self, queue: u32) -> Option<usize> {
        self.queues.iter().position(|r| r.contains(queue))
    }

    /// The priorities of a class.
    pub fn priorities(&self, class: usize) -> Vec<u32> {
        (0..).zip(&self.of_priority).filter(|(_, c)| usize::from(**c) == class).map(|(p, _)| p).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_and_priorities_of_classes() {
        let range = |first, count| QueueRange { first, count };
        let c = TrafficClasses { of_priority: vec![1, 0, 1], queues: vec![range(0, 2), range(2, 1), range(3, 0)] };
        let class: Vec<Option<usize>> = (0..5).map(|q| c.of_queue(q)).collect();
        assert_eq!(class, [Some(0), Some(0), Some(1), None, None]);
        assert_eq!((c.priorities(1), c.priorities(2)), (vec![0, 2], vec![]));
        assert_eq!(c.queues.iter().map(ToString::to_string).collect::<Vec<_>>(), ["tx 0-1", "tx 2", "no queue"]);
        assert!(!range(u32::MAX, 9).contains(3));
    }
}
