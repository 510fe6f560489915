//! What a plan improves, and what gets worse in exchange.

use ringwise_plan::{Expected, Plan};
use ringwise_text::hang;

/// `Better` and `Costs`, with the numbers before and after.
pub(super) fn text(plan: &Plan, w: Option<usize>) -> String {
    let worse = |e: &&Expected| matches!((e.before, e.after), (Some(b), Some(a)) if a > b);
    let (costs, better): (Vec<&Expected>, Vec<&Expected>) = plan.expected.iter().partition(worse);
    let mut out = String::new();
    for (title, list) in [("Better", better), ("Costs", costs)] {
        if list.is_empty() {
            continue;
        }
        out.push_str(&format!("{title}:\n"));
        for (e, alike) in over_devices(&list) {
            let text = e.text.trim_end_matches(['.', ';']);
            let more = if alike.is_empty() { String::new() } else { format!(" (same for {})", alike.join(" ")) };
            out.push_str(&hang("  ", &format!("{text}{more}"), w));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Each number once, with the other devices that have the same numbers.
fn over_devices<'a>(list: &[&'a Expected]) -> Vec<(&'a Expected, Vec<&'a str>)> {
    let mut out: Vec<(&Expected, Vec<&str>)> = Vec::new();
    let same = |a: &Expected, b: &Expected| {
        (a.before, a.after, &a.unit, &a.worth) == (b.before, b.after, &b.unit, &b.worth) && a.dev.is_some()
    };
    for &e in list {
        match (e.dev.as_deref(), out.iter_mut().find(|(o, _)| same(o, e))) {
            (Some(dev), Some((_, more))) => more.push(dev),
            _ => out.push((e, Vec::new())),
        }
    }
    out
}
