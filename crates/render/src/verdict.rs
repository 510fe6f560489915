//! The first line of `status`: whether anything is wrong, from what the page reads anyway.

use std::collections::BTreeSet;

use ringwise_apply::Verify;
use ringwise_knob::Address;
use ringwise_model::order::Order;
use ringwise_model::{Nic, Snapshot, Subject};
use ringwise_text::{Style, Tint, hang, is_down, is_listed, no_answer, plural};

use super::misplaced::{self, Misplaced};

/// The interface whose interrupts are worst placed, or that does not answer.
pub(super) struct Worst<'a> {
    pub nic: &'a Nic,
    /// `2 queues on the far node`
    what: String,
    /// Whether `check` reports an error for it.
    error: bool,
    /// Other interfaces with a problem, and whether `check` reports an error for it.
    others: Vec<(&'a str, bool)>,
}

/// The worst interface of the host. Interfaces whose interrupts ringwise has placed are as requested and do not count.
pub(super) fn worst<'a>(s: &'a Snapshot, v: Option<&Verify>) -> Option<Worst<'a>> {
    let placed: BTreeSet<&str> = v
        .into_iter()
        .flat_map(|v| &v.settings)
        .filter(|st| matches!(st.want.address(), Some(Address::IrqCpus { .. })))
        .filter_map(|st| st.want.dev())
        .collect();
    let mut bad: Vec<(&Nic, Trouble)> = s
        .nics
        .iter()
        .filter(|n| is_listed(n) && n.has_own_queues() && !placed.contains(n.name()))
        .filter_map(|n| trouble(s, n).map(|t| (n, t)))
        .collect();
    // The sort is stable: of equally bad interfaces the first one is named, as in `check`.
    bad.order_by_key(|(_, t)| t.rank);
    let mut bad = bad.into_iter();
    let (nic, Trouble { what, error, .. }) = bad.next()?;
    Some(Worst { nic, what, error, others: bad.map(|(n, t)| (n.name(), t.error)).collect() })
}

/// What is wrong with an interface. The worst has rank 0.
struct Trouble {
    rank: usize,
    what: String,
    error: bool,
}

fn trouble(s: &Snapshot, n: &Nic) -> Option<Trouble> {
    if let Some(why) = no_answer(n) {
        return Some(Trouble { rank: 0, what: why.to_string(), error: false });
    }
    if is_down(n) {
        return None;
    }
    let bad: Vec<Misplaced> = misplaced::of(s, n).into_iter().filter(|m| !m.is_unavoidable()).collect();
    let rank = bad.iter().map(Misplaced::rank).min()?;
    let error = bad.iter().any(Misplaced::is_error);
    Some(Trouble { rank: rank + 1, what: bad.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "), error })
}

/// Whether it is unknown where the interrupts of an interface are: their CPUs, or on a host with several nodes its own node.
fn is_unknown(s: &Snapshot, n: &Nic) -> bool {
    if is_down(n) {
        return false;
    }
    let no_interrupts = n.queue_vectors().next().is_none();
    let one_node = s.topology.nodes.known().is_some_and(|nodes| nodes.len() < 2);
    n.queues_unread().is_some()
        || (no_interrupts && n.unread.iter().any(|u| u.subject == Some(Subject::QueueInterrupts)))
        || n.queue_vectors().any(|v| v.taken_by().is_none())
        || (n.node.unread().is_some() && !one_node)
}

/// With more, their number is shown instead of their names.
const NAMED: usize = 4;

/// `; also eth1 eth2`; empty if there are none.
fn list(title: &str, names: &[&str]) -> String {
    match names.len() {
        0 => String::new(),
        1..=NAMED => format!("; {title}{}", names.join(" ")),
        n => format!("; {title}{n} other interfaces"),
    }
}

/// `Needs attention: ...`, `Placement error: ...` where `check` reports an error, `Could be better: ...` or
/// `Interrupts of 3 interfaces: ...`. `problem`: what needs the user, if anything does.
pub(super) fn line(problem: Option<&str>, worst: Option<&Worst>, s: &Snapshot, style: &Style) -> String {
    let (tint, text) = match (problem, worst) {
        (Some(p), _) => (Tint::Red, format!("Needs attention: {p}")),
        (None, Some(w)) => {
            let name = w.nic.name();
            let what = match no_answer(w.nic) {
                Some(why) => format!("{name}: {why}"),
                None => format!("{name} has {}", w.what),
            };
            let others = |of: &dyn Fn(bool) -> bool| -> Vec<&str> {
                w.others.iter().filter(|(_, error)| of(*error)).map(|(name, _)| *name).collect()
            };
            // After an error the others with warnings are counted apart.
            let more = match w.error {
                true => list("also ", &others(&|error| error)) + &list("warnings on ", &others(&|error| !error)),
                false => list("also ", &others(&|_| true)),
            };
            let verdict = if w.error { "Placement error" } else { "Could be better" };
            (Tint::Yellow, format!("{verdict}: {what}{more}"))
        }
        (None, None) => {
            let own = s.nics.iter().filter(|n| is_listed(n) && (n.has_own_queues() || n.queues_unread().is_some()));
            let (unknown, known): (Vec<&Nic>, Vec<&Nic>) = own.partition(|n| is_unknown(s, n));
            let of = match unknown.as_slice() {
                [] => String::new(),
                some if some.len() > NAMED => plural(some.len(), "interface"),
                some => some.iter().map(|n| n.name()).collect::<Vec<_>>().join(" "),
            };
            let rest = "ringwise check looks at the rest";
            let text = match (known.len(), of.as_str()) {
                (0, "") => return String::new(),
                (0, of) => {
                    format!("Interrupts of {of}: their CPUs are unknown; ringwise check lists what could not be read")
                }
                (n, "") => {
                    format!("Interrupts of {}: none on a remote or isolated CPU; {rest}", plural(n, "interface"))
                }
                (n, of) => format!(
                    "Interrupts of {}: none on a remote or isolated CPU; of {of}: unknown; {rest}",
                    plural(n, "interface")
                ),
            };
            (Tint::Bold, text)
        }
    };
    format!("{}\n", style.paint(tint, hang("", &text, style.width).trim_end()))
}
