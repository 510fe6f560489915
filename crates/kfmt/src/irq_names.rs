//! Which queues an interrupt serves, by the name that its driver gave it.
//!
//! Names are a convention of each driver, so they are the second source after the kernel's own links (netdev generic
//! netlink). Match only vectors that are known to belong to the device (`device/msi_irqs`), and trust a match less if
//! `exact_driver` of [`NameMatch::Queues`] is false. If the device's list of vectors is unknown, only
//! [`NameMatch::Queues`] is meaningful, because some control vectors have neither an interface name nor an address.

mod rank;
mod shape;
mod table;

pub use rank::RankedNumbers;
pub use table::{PATTERNS, Pattern, QueueDirection, RankScope, Serves};

/// What is known about the device of the vector.
#[derive(Debug, Clone, Copy, Default)]
pub struct NameContext<'a> {
    /// Present name of the interface; empty if the device has none.
    pub ifname: &'a str,
    /// Alternative and earlier names: vectors keep the name that the device had when it was opened, and those of some
    /// virtual functions contain the name of the physical function.
    pub other_names: &'a [&'a str],
    /// `device/driver`, e.g. `igb`, `virtio_net`, `mlx5_core`.
    pub driver: Option<&'a str>,
    /// `0000:03:00.0`; for platform devices their name.
    pub bus_address: Option<&'a str>,
    /// The virtio device's own name, e.g. `virtio1`.
    pub virtio_name: Option<&'a str>,
    /// Existing receive and transmit queues.
    pub rx_queues: Option<u32>,
    /// The number of existing queues. `None`: unknown.
    pub tx_queues: Option<u32>,
    /// Vectors of the device (`msi_irqs`, or 1 for a line interrupt).
    pub vectors: Option<u32>,
    /// gve: vectors of the device whose name has the notification block's form.
    pub ntfy_blocks: Option<u32>,
    /// idpf, hns3 and vmxnet3: the numbers in the names of all vectors of the device.
    pub ranked: Option<&'a RankedNumbers>,
}

/// The meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameMatch {
    /// The vector of these queues. Either list may be empty, but not both.
    Queues {
        /// Receive queues, by number.
        rx: Vec<u32>,
        /// Transmit queues, by number.
        tx: Vec<u32>,
        /// The form is that of the device's own driver, and its number is that of the queue.
        exact_driver: bool,
    },
    /// Link changes, mailbox, management, RDMA: not a queue of the network stack.
    Control,
    /// Requested, but serves no queue now.
    Unused,
    /// The form of a queue or control vector, with the name of another device.
    NotOurs,
    /// No entry of the table shows what it serves.
    Unknown,
}

/// Longest name that is examined; the kernel's own names are far shorter.
const MAX_NAME: usize = 256;
/// Largest queue number that is accepted.
const MAX_QUEUE: u32 = 65_535;

/// Looks up the action name of an interrupt in [`PATTERNS`].
///
/// For a driver in the table, only the forms of that driver count. For an unknown driver or one that is not in the
/// table, the forms that several drivers share count, and `exact_driver` is false.
pub fn classify(name: &str, ctx: &NameContext) -> NameMatch {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME {
        return NameMatch::Unknown;
    }
    let listed = ctx.driver.is_some_and(|d| PATTERNS.iter().any(|p| p.drivers.contains(&d)));
    let own = |p: &&Pattern| ctx.driver.is_some_and(|d| p.drivers.contains(&d));
    let candidates = PATTERNS.iter().filter(|p| if listed { own(p) } else { p.shared });
    let mut foreign = false;
    for p in candidates {
        if let Some(found) = shape::matches(p.shape, name, ctx) {
            let by_number = matches!(p.serves, Serves::Pair | Serves::Rx | Serves::Tx);
            if listed && by_number && vectors_are_shared(ctx) {
                return NameMatch::Unknown;
            }
            return interpret(p, &found, ctx, listed);
        }
        foreign = foreign || shape::matches_another_device(p.shape, name, ctx);
    }
    if foreign && !shape::starts_with_own_name(name, ctx) { NameMatch::NotOurs } else { NameMatch::Unknown }
}

/// These drivers number vectors, one of which is not for queues. If there are fewer vectors than queues, each serves
/// several, and its name does not show which.
fn vectors_are_shared(ctx: &NameContext) -> bool {
    let numbers_vectors = ctx.driver.is_some_and(|d| table::NUMBER_VECTORS.contains(&d));
    let most = ctx.rx_queues.max(ctx.tx_queues);
    numbers_vectors
        && matches!((ctx.vectors, most), (Some(vectors), Some(queues)) if queues > vectors.saturating_sub(1))
}

fn interpret(p: &Pattern, found: &shape::ShapeMatch, ctx: &NameContext, exact_driver: bool) -> NameMatch {
    let queues = |rx: Vec<u32>, tx: Vec<u32>| {
        if rx.is_empty() && tx.is_empty() {
            return NameMatch::Unknown;
        }
        NameMatch::Queues { rx, tx, exact_driver }
    };
    let n = found.n.filter(|&n| n <= MAX_QUEUE);
    match (p.serves, n) {
        (Serves::Control, _) => NameMatch::Control,
        (Serves::Unused, _) => NameMatch::Unused,
        (Serves::SomeQueue, _) => NameMatch::Unknown,
        (Serves::Pair, Some(n)) => queues(vec![n], vec![n]),
        (Serves::PairIfEqual, Some(n)) if ctx.rx_queues.is_some() && ctx.rx_queues == ctx.tx_queues => {
            queues(vec![n], vec![n])
        }
        (Serves::PairIfEqual, _) => NameMatch::Unknown,
        (Serves::Rx, Some(n)) => queues(vec![n], vec![]),
        (Serves::Tx, Some(n)) => queues(vec![], vec![n]),
        (Serves::NumberedFromOne(QueueDirection::Tx), Some(0)) => queues(vec![], vec![0]),
        (Serves::NumberedFromOne(direction), Some(n)) => match n.checked_sub(1) {
            Some(queue) => directed(direction, queue, exact_driver),
            None => NameMatch::Unknown,
        },
        (Serves::Range, Some(first)) => match found.m {
            Some(last) if first <= last && last <= MAX_QUEUE => {
                let all: Vec<u32> = (first..=last).collect();
                queues(all.clone(), all)
            }
            _ => NameMatch::Unknown,
        },
        (Serves::Ranked(direction, _), Some(n)) => match ctx.ranked.and_then(|r| r.rank(p, n, ctx)) {
            Some(queue) => directed(direction, queue, false),
            None => NameMatch::Unknown,
        },
        (Serves::GveBlock, Some(n)) => gve_block(n, ctx, queues),
        (Serves::AllIfSole, _) if ctx.vectors != Some(1) => NameMatch::Unknown,
        (Serves::All | Serves::AllIfOnly | Serves::AllIfSole, _) => {
            if p.serves == Serves::AllIfOnly && ctx.vectors != Some(1) {
                return match ctx.vectors {
                    Some(_) => NameMatch::Control,
                    None => NameMatch::Unknown,
                };
            }
            match (ctx.rx_queues, ctx.tx_queues) {
                (Some(rx), Some(tx)) if rx <= MAX_QUEUE && tx <= MAX_QUEUE => {
                    queues((0..rx).collect(), (0..tx).collect())
                }
                _ => NameMatch::Unknown,
            }
        }
        (_, None) => NameMatch::Unknown,
    }
}

fn directed(direction: QueueDirection, queue: u32, exact_driver: bool) -> NameMatch {
    let of = |directions: [QueueDirection; 2]| if directions.contains(&direction) { vec![queue] } else { vec![] };
    let (rx, tx) = (of([QueueDirection::Both, QueueDirection::Rx]), of([QueueDirection::Both, QueueDirection::Tx]));
    NameMatch::Queues { rx, tx, exact_driver }
}

/// gve has as many blocks as its maximum of queues needs: the lower half for transmit queues, the
/// upper for receive queues (drivers/net/ethernet/google/gve/gve.h, `gve_tx_idx_to_ntfy`, `gve_rx_idx_to_ntfy`).
fn gve_block(n: u32, ctx: &NameContext, queues: impl Fn(Vec<u32>, Vec<u32>) -> NameMatch) -> NameMatch {
    let half = match ctx.ntfy_blocks {
        Some(blocks) if blocks % 2 == 0 && n < blocks => blocks / 2,
        _ => return NameMatch::Unknown,
    };
    let (queue, exist, is_tx) = if n < half { (n, ctx.tx_queues, true) } else { (n - half, ctx.rx_queues, false) };
    if exist.is_some_and(|count| queue >= count) {
        return NameMatch::Unused;
    }
    if is_tx { queues(vec![], vec![queue]) } else { queues(vec![queue], vec![]) }
}

/// Counts the names that have the form of a gve notification block of this device: the value for
/// [`NameContext::ntfy_blocks`].
pub fn count_ntfy_blocks<'n>(names: impl IntoIterator<Item = &'n str>, ctx: &NameContext) -> u32 {
    let blocks: Vec<_> = PATTERNS.iter().filter(|p| p.serves == Serves::GveBlock).collect();
    let is_block = |name: &&str| blocks.iter().any(|p| shape::matches(p.shape, name.trim(), ctx).is_some());
    names.into_iter().filter(is_block).count() as u32
}

#[cfg(test)]
#[path = "irq_names/tests.rs"]
mod tests;
