//! Connections that control the host, and how a plan would affect them.
use ringwise_plan::Plan;

use ringwise_text::hang;
use ringwise_text::{Style, Tint};

/// The heading of the plan: the connections that must stay up.
pub fn head(plan: &Plan, w: Option<usize>) -> String {
    if plan.control.is_empty() {
        return String::new();
    }
    let ways: Vec<String> = plan.control.iter().map(|p| p.to_string()).collect();
    hang("Control path: ", &format!("{}.", ways.join("; ")), w)
}

/// What would interrupt what: `eth0 channels would interrupt the default route`.
fn interrupted(plan: &Plan) -> String {
    let mut ways: Vec<&str> = plan.cuts.iter().flat_map(|c| &c.ways).map(String::as_str).collect();
    ways.sort();
    ways.dedup();
    let what: Vec<String> = plan.cuts.iter().map(|c| c.address.to_string()).collect();
    format!("{} would interrupt {}", what.join(", "), ways.join("; "))
}

/// Why a boot makes a plan that has such steps again, without any step that interrupts traffic.
pub fn skipped_at_boot(plan: &Plan) -> String {
    format!(
        "ringwise: {}: changes that interrupt traffic are skipped, because no user can confirm a trial at boot",
        interrupted(plan)
    )
}

/// Steps that would interrupt such a connection, and the options that they need.
pub fn cuts(plan: &Plan, style: &Style) -> String {
    if plan.cuts.is_empty() {
        return String::new();
    }
    let text = format!(
        "{}. apply does that only with --force and --confirm, and restores everything unless you confirm.",
        interrupted(plan)
    );
    style.paint(Tint::Yellow, hang("", &text, style.width).trim_end()) + "\n"
}

/// For the question of `apply`: how the plan affects the connection of the user.
pub fn before_asking(plan: &Plan, style: &Style) -> String {
    if !plan.cuts.is_empty() {
        return cuts(plan, style);
    }
    match plan.control.first() {
        Some(p) => {
            let way = p.to_string();
            let mut first = way.chars();
            let start = first.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
            hang("", &format!("{start}{} is not interrupted.", first.as_str()), style.width)
        }
        None => String::new(),
    }
}
