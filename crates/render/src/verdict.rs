//! The first line of `status`: whether anything is wrong, from what the page reads anyway.

use std::collections::BTreeSet;

use ringwise_apply::Verify;
use ringwise_knob::Address;
use ringwise_model::{Nic, Snapshot};
use ringwise_text::{Style, Tint, hang, is_down, is_listed, no_answer, plural};

use super::misplaced::{self, Misplaced};

/// The interface whose interrupts are worst placed, or that does not answer.
pub(super) struct Worst<'a> {
    pub nic: &'a Nic,
    /// `2 queues on the far node`
    what: String,
    /// Other interfaces with a problem.
    others: Vec<&'a str>,
}

/// The worst interface of the host. Interfaces whose interrupts ringwise has placed are as requested and do not count.
pub(super) fn worst<'a>(s: &'a Snapshot, v: Option<&Verify>) -> Option<Worst<'a>> {
    let placed: BTreeSet<&str> = v
        .into_iter()
        .flat_map(|v| &v.settings)
        .filter(|st| matches!(st.want.address(), Some(Address::IrqCpus { .. })))
        .filter_map(|st| st.want.dev())
        .collect();
    let mut bad: Vec<(usize, &Nic, String)> = s
        .nics
        .iter()
        .filter(|n| is_listed(n) && n.has_own_queues() && !placed.contains(n.name()))
        .filter_map(|n| trouble(s, n).map(|(rank, what)| (rank, n, what)))
        .collect();
    // The sort is stable: of equally bad interfaces the first one is named, as in `check`.
    bad.sort_by_key(|(rank, ..)| *rank);
    let mut bad = bad.into_iter();
    let (_, nic, what) = bad.next()?;
    Some(Worst { nic, what, others: bad.map(|(_, n, _)| n.name()).collect() })
}

/// What is wrong with an interface, and its rank: the worst is 0.
fn trouble(s: &Snapshot, n: &Nic) -> Option<(usize, String)> {
    if let Some(why) = no_answer(n) {
        return Some((0, why.to_string()));
    }
    if is_down(n) {
        return None;
    }
    let bad: Vec<Misplaced> = misplaced::of(s, n).into_iter().filter(|m| !m.is_unavoidable()).collect();
    let rank = bad.iter().map(Misplaced::rank).min()?;
    Some((rank + 1, bad.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")))
}

/// With more, their number is shown instead of their names.
const NAMED: usize = 4;

/// `Needs attention: ...`, `Could be better: ...` or `Interrupts of 3 interfaces: ...`. `problem`: what needs the user, if
/// anything does.
pub(super) fn line(problem: Option<&str>, worst: Option<&Worst>, s: &Snapshot, style: &Style) -> String {
    let (tint, text) = match (problem, worst) {
        (Some(p), _) => (Tint::Red, format!("Needs attention: {p}")),
        (None, Some(w)) => {
            let name = w.nic.name();
            let what = match no_answer(w.nic) {
                Some(why) => format!("{name}: {why}"),
                None => format!("{name} has {}", w.what),
            };
            let more = match w.others.len() {
                0 => String::new(),
                1..=NAMED => format!("; also {}", w.others.join(" ")),
                n => format!("; also {n} other interfaces"),
            };
            (Tint::Yellow, format!("Could be better: {what}{more}"))
        }
        (None, None) => match s.nics.iter().filter(|n| is_listed(n) && n.has_own_queues()).count() {
            0 => return String::new(),
            n => {
                let text = "none on a remote or isolated CPU; ringwise check looks at the rest";
                (Tint::Bold, format!("Interrupts of {}: {text}", plural(n, "interface")))
            }
        },
    };
    format!("{}\n", style.paint(tint, hang("", &text, style.width).trim_end()))
}
