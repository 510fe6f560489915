//! Counts received packets for each entry of an RSS table, in the kernel: a filter of eBPF on a packet socket counts each packet
//! and drops it, so that nothing is copied. Programs that also run on a simulated host open it by
//! [`Host::count_entries`](crate::Host::count_entries).
//!
//! The kernel runs the filter for each packet that the driver hands over, after GRO and generic XDP. Packets that native XDP
//! drops or redirects, or that AF_XDP receives, are not counted. Fields: `struct __sk_buff` in include/uapi/linux/bpf.h; the
//! ones that a socket filter may read: `sk_filter_is_valid_access` in net/core/filter.c.

use std::io;
use std::os::fd::OwnedFd;

use crate::bpf::{Assembler, BpfProgram, Condition, Instruction, LoadError, Map, MapKind, Register, Width};
use crate::entry_counts::{EntryCount, EntryCounts};
use crate::host::{CountEntries, Error, Result};
use crate::packet_socket;

/// Longest table that can be counted, because each entry takes memory on each CPU.
pub const MOST_ENTRIES: usize = 4096;

/// Since 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// `BPF_FUNC_map_lookup_elem`.
const MAP_LOOKUP_ELEM: i32 = 1;

// Offsets in `struct __sk_buff`.
const SKB_LEN: i16 = 0;
const SKB_QUEUE_MAPPING: i16 = 12;
const SKB_HASH: i16 = 68;
const SKB_GSO_SEGS: i16 = 164;

// Words of an element of the map of counts.
const PACKETS: usize = 0;
const BYTES: usize = 1;
const SEGMENTS: usize = 2;
const OTHER_QUEUE: usize = 3;
const UNKNOWN_QUEUE: usize = 4;
const WORDS: usize = 5;

/// Counts until it is dropped. Does not change the interface, and does not make it promiscuous. When the process ends, the
/// kernel removes the filter and its memory.
#[derive(Debug)]
pub struct EntryCounter {
    what: String,
    index: u32,
    table: Vec<u32>,
    counts: Map<u64, WORDS>,
    /// The queue of each entry.
    queues: Map<u32, 1>,
    socket: OwnedFd,
    segments: bool,
}

impl EntryCounter {
    /// Counts the packets that the interface with this number receives from now on. `table` has the queue of each entry; the
    /// entry of a packet is the remainder of its hash divided by the number of entries. Needs `CAP_NET_RAW` and `CAP_BPF`
    /// (before 5.8 `CAP_SYS_ADMIN`), in the first user namespace. Kernel memory: about 40 bytes for each entry and possible CPU;
    /// before 5.11 it counts against `RLIMIT_MEMLOCK`.
    ///
    /// Errors: no errno: the table is empty or has more than [`MOST_ENTRIES`] entries; ENODEV: there is no such interface; EPERM:
    /// what is needed is in `words`; EACCES, EINVAL: the kernel's verifier rejected the filter, and `words` has its reason.
    pub fn open(index: u32, table: &[u32]) -> Result<Self> {
        Self::open_as(format!("count packets by table entry on interface {index}"), index, table)
    }

    /// The same; `what` begins the text of errors.
    pub(crate) fn open_as(what: String, index: u32, table: &[u32]) -> Result<Self> {
        check_table(&what, table, None)?;
        if index == 0 || i32::try_from(index).is_err() {
            return Err(Error::other(what, "expected the number of one interface"));
        }
        let entries = table.len() as u32;
        let failed = |words: &str, e: io::Error| socket_error(&what, words, &e);
        let socket = packet_socket::open().map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM) => failed("CAP_NET_RAW is needed to count packets (root has it)", e),
            _ => failed("packet socket", e),
        })?;
        packet_socket::set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(|e| failed("PACKET_IGNORE_OUTGOING, which Linux has since 4.20", e))?;
        let counts = Map::create(&what, MapKind::PerCpuArray, entries + 1, "rw_counts")?;
        let queues = Map::create(&what, MapKind::Array, entries, "rw_queues")?;
        for (entry, queue) in (0..).zip(table) {
            queues.write(entry, &[*queue])?;
        }
        let load = |segments| {
            let program = filter(entries, counts.descriptor(), queues.descriptor(), segments);
            BpfProgram::load(&what, &program, "rw_entries")
        };
        let (program, segments) = match load(true) {
            Ok(program) => (program, true),
            // The verifier of an early kernel does not let a socket filter read `gso_segs`.
            Err(LoadError { rejected: true, .. }) => (load(false).map_err(|e| e.error)?, false),
            Err(LoadError { error, .. }) => return Err(error),
        };
        program.attach(&socket)?;
        packet_socket::bind(&socket, index).map_err(|e| failed("bind", e))?;
        Ok(Self { what, index, table: table.to_vec(), counts, queues, socket, segments })
    }

    /// The table with which packets are compared.
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    fn sum(&mut self, entry: u32) -> Result<EntryCount> {
        let mut sum = EntryCount::default();
        for words in self.counts.read(entry)? {
            sum = sum.with(count(*words), u64::wrapping_add);
        }
        Ok(sum)
    }
}

impl CountEntries for EntryCounter {
    fn counts_segments(&self) -> bool {
        self.segments
    }

    fn read(&mut self) -> Result<EntryCounts> {
        let bound = packet_socket::bound_to(&self.socket).map_err(|e| socket_error(&self.what, "getsockname", &e))?;
        if bound != Some(self.index) {
            let words = Some("the interface was removed, or moved to another network namespace".into());
            return Err(Error { words, ..Error::errno(&self.what, libc::ENODEV) });
        }
        let entries = (0..self.table.len() as u32).map(|entry| self.sum(entry)).collect::<Result<_>>()?;
        Ok(EntryCounts { entries, unhashed: self.sum(self.table.len() as u32)? })
    }

    fn set_table(&mut self, table: &[u32]) -> Result<()> {
        check_table(&self.what, table, Some(self.table.len()))?;
        for (entry, (now, queue)) in (0..).zip(self.table.iter_mut().zip(table)) {
            if now != queue {
                self.queues.write(entry, &[*queue])?;
                *now = *queue;
            }
        }
        Ok(())
    }
}

/// The limits of tables that can be counted, before anything is opened; `length`: that of the table so far.
///
/// Errors: no errno: the table is empty, has more than [`MOST_ENTRIES`] entries, or has another length.
pub fn check_table(what: &str, table: &[u32], length: Option<usize>) -> Result<()> {
    let found = table.len();
    match length {
        Some(length) if length != found => {
            Err(Error::other(what, format!("expected a table of {length} entries, found {found}")))
        }
        None if !(1..=MOST_ENTRIES).contains(&found) => {
            Err(Error::other(what, format!("expected a table of 1 to {MOST_ENTRIES} entries, found {found}")))
        }
        _ => Ok(()),
    }
}

fn count(words: [u64; WORDS]) -> EntryCount {
    EntryCount {
        packets: words[PACKETS],
        bytes: words[BYTES],
        segments: words[SEGMENTS],
        other_queue: words[OTHER_QUEUE],
        unknown_queue: words[UNKNOWN_QUEUE],
    }
}

fn socket_error(what: &str, words: &str, error: &io::Error) -> Error {
    Error { words: Some(words.into()), ..Error::errno(what, error.raw_os_error().unwrap_or(0)) }
}

/// The filter for a table with this many entries. It finds two maps by their descriptors: one with the counts of each entry,
/// and behind them those of packets without a hash; and one with the queue of each entry. It returns 0, which drops the packet
/// for this socket only.
///
/// Counts need no atomic additions: each CPU has its own, and receives one packet after the other. (With PREEMPT_RT one receiver
/// may preempt another, and a count can be lost.)
fn filter(entries: u32, counts: i32, queues: i32, segments: bool) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R6, R7, R8, R9, R10};
    /// Where the number of the element is on the stack.
    const KEY: i16 = -4;
    let mut a = Assembler::default();
    let (mut end, mut unhashed, mut known) = (a.label(), a.label(), a.label());
    let element = |a: &mut Assembler, map| {
        a.load_map(R1, map);
        a.copy(R2, R10);
        a.add(R2, KEY.into());
        a.call(MAP_LOOKUP_ELEM);
    };
    let word = |word: usize| (word * size_of::<u64>()) as i16;
    let count_one = |a: &mut Assembler, at: usize| {
        a.load(Width::Double, R1, R9, word(at));
        a.add(R1, 1);
        a.store(Width::Double, R9, word(at), R1);
    };
    a.copy(R6, R1);
    a.load(Width::Word, R8, R6, SKB_QUEUE_MAPPING);
    a.load(Width::Word, R7, R6, SKB_HASH);
    // R2: the element.
    a.set(R2, entries as i32);
    a.jump_if(Condition::Is(R7, 0), &mut unhashed);
    a.copy(R2, R7);
    a.remainder(R2, entries);
    a.place(unhashed);
    a.store(Width::Word, R10, KEY, R2);
    element(&mut a, counts);
    a.jump_if(Condition::Is(R0, 0), &mut end);
    a.copy(R9, R0);
    count_one(&mut a, PACKETS);
    a.load(Width::Double, R1, R9, word(BYTES));
    a.load(Width::Word, R2, R6, SKB_LEN);
    a.add_register(R1, R2);
    a.store(Width::Double, R9, word(BYTES), R1);
    let mut one = a.label();
    if segments {
        a.load(Width::Word, R2, R6, SKB_GSO_SEGS);
        // 0: the packet was not merged.
        a.jump_if(Condition::IsNot(R2, 0), &mut one);
    }
    a.set(R2, 1);
    a.place(one);
    a.load(Width::Double, R1, R9, word(SEGMENTS));
    a.add_register(R1, R2);
    a.store(Width::Double, R9, word(SEGMENTS), R1);
    a.jump_if(Condition::IsNot(R8, 0), &mut known);
    count_one(&mut a, UNKNOWN_QUEUE);
    a.jump(&mut end);
    a.place(known);
    a.jump_if(Condition::Is(R7, 0), &mut end);
    element(&mut a, queues);
    a.jump_if(Condition::Is(R0, 0), &mut end);
    // On the receive path `queue_mapping` is the number of the queue plus 1 (`skb_record_rx_queue`).
    a.subtract(R8, 1);
    a.load(Width::Word, R1, R0, 0);
    a.jump_if(Condition::Same(R1, R8), &mut end);
    count_one(&mut a, OTHER_QUEUE);
    a.place(end);
    a.set(R0, 0);
    a.exit();
    a.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_cannot_be_counted_are_refused_before_anything_is_opened() {
        for length in [0, MOST_ENTRIES + 1] {
            let e = EntryCounter::open(1, &vec![0; length]).unwrap_err();
            assert!(e.errno.is_none() && e.reason().contains(&format!("found {length}")), "{e}");
        }
        let e = EntryCounter::open(0, &[0]).unwrap_err();
        assert!(e.errno.is_none() && e.reason().contains("one interface"), "{e}");
    }

    /// The filter for a kernel whose verifier forbids `gso_segs`, and tables whose length is no power of two.
    #[test]
    fn the_verifier_accepts_every_form_of_the_filter() {
        let create = |entries| {
            let counts = Map::<u64, WORDS>::create("counts", MapKind::PerCpuArray, entries + 1, "rw_test")?;
            Ok::<_, Error>((counts, Map::<u32, 1>::create("queues", MapKind::Array, entries, "rw_test")?))
        };
        for entries in [1, 100, 128, MOST_ENTRIES as u32] {
            let (counts, queues) = match create(entries) {
                Ok(maps) => maps,
                Err(e) if e.errno == Some(libc::EPERM) => {
                    ringwise_testkit::skipped("the_verifier_accepts_every_form_of_the_filter", &e.to_string());
                    return;
                }
                Err(e) => panic!("{e}"),
            };
            for segments in [true, false] {
                let program = filter(entries, counts.descriptor(), queues.descriptor(), segments);
                if let Err(e) = BpfProgram::load("filter", &program, "rw_test") {
                    // Only the field that a kernel may forbid can be the reason.
                    assert!(segments && e.rejected, "{entries} entries: {}", e.error);
                }
            }
        }
    }
}
