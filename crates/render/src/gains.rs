//! What a plan improves, and what gets worse in exchange.

use ringwise_plan::{Expected, Outage, Plan};
use ringwise_text::hang;

/// `Better` and `Costs`, with the numbers before and after.
pub(super) fn text(plan: &Plan, w: Option<usize>) -> String {
    let grows = |e: &Expected| matches!((e.before, e.after), (Some(b), Some(a)) if a > b);
    let worse = |e: &&Expected| grows(e) || (e.before.is_none() && e.worth.is_some());
    let (costs, better): (Vec<&Expected>, Vec<&Expected>) = plan.expected.iter().partition(worse);
    let mut out = String::new();
    let outages = outages(&plan.outages, w);
    for (title, list, more) in [("Better", better, ""), ("Costs", costs, outages.as_str())] {
        if list.is_empty() && more.is_empty() {
            continue;
        }
        out.push_str(&format!("{title}:\n"));
        for (e, alike) in over_devices(&list) {
            let text = e.text.trim_end_matches(['.', ';']);
            let more = if alike.is_empty() { String::new() } else { format!(" (same for {})", alike.join(" ")) };
            out.push_str(&hang("  ", &format!("{text}{more}"), w));
        }
        out.push_str(more);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The interfaces whose traffic is interrupted, those with the same effect in one line. `apply` waits until a link is back
/// before it runs the next step.
fn outages(list: &[Outage], w: Option<usize>) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for o in list {
        let times = if o.steps > 1 { format!(", {} times", o.steps) } else { String::new() };
        let text = format!("{}{times}", o.effect);
        match lines.iter_mut().find(|(t, _)| *t == text) {
            Some((_, devs)) => devs.push(&o.dev),
            None => lines.push((text, vec![&o.dev])),
        }
    }
    let mut out: String =
        lines.iter().map(|(text, devs)| hang("  ", &format!("{}: {text}", devs.join(" ")), w)).collect();
    if list.len() > 1 {
        let order = "each interface in turn: apply continues with the next one when the link is up again";
        out.push_str(&hang("  ", order, w));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_lose_their_link() {
        let outage = |dev: &str, effect: &str, steps| Outage { dev: dev.into(), effect: effect.into(), steps };
        let down = "link down about 3 s";
        assert_eq!(outages(&[], None), "");
        assert_eq!(outages(&[outage("eth0", down, 1)], None), "  eth0: link down about 3 s\n");
        let three = [outage("eth0", down, 1), outage("eth1", down, 2), outage("eth2", down, 1)];
        assert_eq!(
            outages(&three, None),
            "  eth0 eth2: link down about 3 s\n  eth1: link down about 3 s, 2 times\n  each interface in turn: apply \
             continues with the next one when the link is up again\n"
        );
    }
}
