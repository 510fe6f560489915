//! Which counter of `ethtool -S` belongs to which queue, by the name that its driver gave it.
//!
//! The forms are data (`FORMS`); several forms may be added up to one counter (unicast, multicast, broadcast). Names
//! are examined once, when the list of a device is learned ([`StatLayout`]); in a sample, values are found by their
//! positions.

mod layout;
mod table;

use ringwise_model::{Dir, QueueCounter};

pub use layout::StatLayout;
use table::{FORMS, Names};

/// `ETH_GSTRING_LEN`
const NAME: usize = 32;
/// Largest queue number that is accepted.
const MAX_QUEUE: u32 = 65_535;

/// A counter of a queue, and its position in the list of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Index into the list of names and the list of values.
    at: usize,
    dir: Dir,
    queue: u32,
    counter: QueueCounter,
}

/// Whether the names of this driver's counters of queues are known.
pub fn counts_queues(driver: &str) -> bool {
    FORMS.iter().any(|f| f.drivers.contains(&driver))
}

/// Whether this driver counts packets that the provider held back (see [`StatLayout::allowances`]).
pub fn counts_allowances(driver: &str) -> bool {
    table::ALLOWANCES.0.contains(&driver)
}

/// The names in the kernel's format: 32 bytes each, terminated by a NUL. Bytes that are not UTF-8 are replaced.
fn names(bytes: &[u8]) -> Vec<String> {
    let text = |n: &[u8; NAME]| String::from_utf8_lossy(n.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
    bytes.as_chunks::<NAME>().0.iter().map(text).collect()
}

/// The counters of queues among these names. Empty for a driver that is not in the table.
fn places(driver: &str, names: &[String]) -> Vec<Place> {
    let mut out = Vec::new();
    for form in FORMS.iter().filter(|f| f.drivers.contains(&driver)) {
        match form.names {
            Names::Each(list) => {
                for (at, name) in names.iter().enumerate() {
                    for (shape, dir, counter) in list {
                        if let Some(queue) = number(shape, name) {
                            out.push(Place { at, dir: *dir, queue, counter: *counter });
                        }
                    }
                }
            }
            Names::Blocks(list) => blocks(list, names, &mut out),
        }
    }
    out
}

/// vmxnet3: one headline per queue, whose value is the queue's number. The headlines of a direction are in the order of
/// the queues (drivers/net/vmxnet3/vmxnet3_ethtool.c), so the names alone show the queue.
fn blocks(list: &[(&str, Dir, QueueCounter)], names: &[String], out: &mut Vec<Place>) {
    let (mut rx, mut tx, mut now) = (0, 0, None);
    for (at, name) in names.iter().enumerate() {
        let next = |n: &mut u32| {
            *n += 1;
            *n - 1
        };
        match name.trim() {
            "Rx Queue#" => now = Some((Dir::Rx, next(&mut rx))),
            "Tx Queue#" => now = Some((Dir::Tx, next(&mut tx))),
            word => {
                let found = now.and_then(|(d, q)| Some((q, list.iter().find(|l| l.0 == word && l.1 == d)?)));
                if let Some((queue, (_, dir, counter))) = found {
                    out.push(Place { at, dir: *dir, queue, counter: *counter });
                }
            }
        }
    }
}

/// The number at `{n}` of the shape, if the rest matches.
fn number(shape: &str, name: &str) -> Option<u32> {
    let (before, after) = shape.split_once("{n}")?;
    let digits = name.strip_prefix(before)?.strip_suffix(after)?;
    let plain = !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|n| plain && *n <= MAX_QUEUE)
}

#[cfg(test)]
#[path = "stat_names/tests.rs"]
mod tests;
