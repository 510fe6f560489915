//! Text below the picture, for what its lines cannot show.

use ringwise_model::{CpuId, Fact, Nic, Role, Snapshot};

use super::groups::{self, Groups};
use super::links::Steering;
use crate::steering;
use ringwise_text::Style;
use ringwise_text::{no_answer, plural, sentence};

/// A longer text belongs to `show`, not to a picture.
const MAX: usize = 240;

pub(super) fn notes(s: &Snapshot, n: &Nic, links: &Steering, g: &Groups) -> Vec<(&'static str, String)> {
    let plain = Style::plain(None);
    let mut out = Vec::new();
    if let Some(why) = no_answer(n) {
        out.push(("device", format!("{why}: values that only the device can report are unknown")));
    }
    let not_drawn = |text: String, lines: usize| match lines {
        0 => text,
        k => format!("{text} ({} not drawn)", plural(k, "line")),
    };
    out.push(("RSS", sentence(&n.rss, "none: the device has no table", |r| steering::table(&r.table))));
    if !n.rx_queues.is_empty() {
        let known = n.rx_queues.iter().all(|q| !matches!(q.rps_cpus, Fact::Unknown(_)));
        let text = drawn(&links.rps, n.rx_queues.len()).filter(|_| known);
        let text = text.unwrap_or_else(|| cut(steering::rps(n, &plain)));
        out.push(("RPS", not_drawn(text, links.rps_left_out)));
        out.push(("RFS", rfs(s, n)));
    }
    if !n.tx_queues.is_empty() {
        let known = n.tx_queues.iter().all(|q| !matches!(q.xps_cpus, Fact::Unknown(_)));
        let by_rx = n.tx_queues.iter().any(|q| q.xps_rxqs.known().is_some_and(|r| !r.is_empty()));
        let text = drawn(&links.xps, n.tx_queues.len()).filter(|_| known && !by_rx);
        let text = text.unwrap_or_else(|| cut(steering::xps(n, &plain)));
        out.push(("XPS", not_drawn(text, links.xps_left_out)));
    }
    if g.is_empty()
        && let Some(text) = groups::unknown(n)
    {
        out.push(("groups", text));
    }
    if let Fact::Unknown(u) = &n.node {
        out.push(("node", format!("unknown ({}): no line can be marked as local or remote", u.why)));
    }
    let mut left = Vec::new();
    if let Some(off) = s.topology.present.known().map(|p| p.difference(&s.topology.online)).filter(|o| !o.is_empty()) {
        left.push(format!("offline CPUs {off}"));
    }
    let other = n.vectors.iter().filter(|v| !v.is_queue()).count();
    let odd = n.vectors.iter().filter(|v| matches!(v.role, Role::Unknown)).count();
    if other > 0 {
        let odd = if odd > 0 { format!(", {odd} of unknown purpose") } else { String::new() };
        left.push(format!("{} without a queue{odd}", plural(other, "interrupt")));
    }
    if !left.is_empty() {
        out.push(("not drawn", left.join("; ")));
    }
    out
}

/// A short text for settings that the lines show already.
fn drawn(lines: &[(u32, Vec<CpuId>)], queues: usize) -> Option<String> {
    (!lines.is_empty()).then(|| format!("set on {} of {}, as drawn", lines.len(), plural(queues, "queue")))
}

fn rfs(s: &Snapshot, n: &Nic) -> String {
    let text = cut(steering::rfs(n, &s.host));
    let on = n.rx_queues.iter().any(|q| q.rps_flow_cnt.known().is_some_and(|c| *c > 0))
        && s.host.rps_sock_flow_entries.known().is_some_and(|c| *c > 0);
    if on { format!("{text}: flows go to the CPU of the reading program (no line)") } else { text }
}

fn cut(text: String) -> String {
    if text.chars().count() <= MAX {
        return text;
    }
    let head: String = text.chars().take(MAX).collect();
    let end = head.rfind("; ").or_else(|| head.rfind(' ')).unwrap_or(head.len());
    format!("{} … (complete in ringwise show)", &head[..end])
}
