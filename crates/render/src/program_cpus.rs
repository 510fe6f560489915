//! Listening programs in `verify`: the CPUs that they may use, and those that the plan in effect proposes.

use ringwise_plan::{ProgramCpus, ProgramReport};
use ringwise_text::{Style, Tint, hang, plural, visible};

use crate::groups::{FEW, OTHER_MANY_OR_BUSY};

/// Lines without `-v`.
const MOST_LINES: usize = 16;
/// Process IDs of one line.
const MOST_PIDS: usize = 3;

/// One line for each program and each reason for a missing one. Programs that may use other CPUs come first.
pub(super) fn lines(r: &ProgramReport, style: &Style) -> String {
    let (good, other): (Vec<&ProgramCpus>, Vec<&ProgramCpus>) = r.list.iter().partition(|p| p.as_proposed);
    let most = if style.verbose > 0 || style.width.is_none() { usize::MAX } else { MOST_LINES };
    let mut out = String::new();
    for p in other.iter().chain(&good).take(most) {
        let text = if p.as_proposed { line(p) } else { style.paint(Tint::Yellow, &line(p)) };
        out.push_str(&hang("  ", &text, style.width));
    }
    let left = r.list.len().saturating_sub(most);
    if left > 0 {
        out.push_str(&hang("  ", &format!("and {} (ringwise verify -v)", plural(left, "other program")), style.width));
    }
    if let Some(u) = &r.unread {
        let text =
            format!("not every program was compared with its proposed CPUs: {}: {}", visible(&u.what), visible(&u.why));
        out.push_str(&hang("  ", &text, style.width));
    }
    for why in &r.unplanned {
        let text = format!("the CPUs proposed for programs are unknown: {}", visible(why));
        out.push_str(&hang("  ", &text, style.width));
    }
    out
}

fn line(p: &ProgramCpus) -> String {
    let cpus = |all: &ringwise_model::CpuSet| {
        let name = if all.len() == 1 { "CPU" } else { "CPUs" };
        format!("{name} {all}")
    };
    let who = format!("{} ({})", visible(&p.name), pids(&p.pids));
    if p.as_proposed {
        return format!("{who} may run on {} only, as proposed", cpus(&p.allowed));
    }
    let of: Vec<String> = p
        .proposed_for
        .iter()
        .map(|f| match &f.group {
            Some(group) => format!("{} group {group}", f.dev),
            None => f.dev.clone(),
        })
        .collect();
    let proposed = match &p.proposed_for_many {
        Some(many) => format!("{many} ({OTHER_MANY_OR_BUSY}), {} ({FEW})", p.proposed),
        None => p.proposed.to_string(),
    };
    format!("{who} may run on {}; proposed for {}: {proposed}", cpus(&p.allowed), of.join(" "))
}

/// `pid 812`, `pids 812, 813, 814 and 5 more`
fn pids(all: &[u32]) -> String {
    let shown: Vec<String> = all.iter().take(MOST_PIDS).map(u32::to_string).collect();
    let more = match all.len().saturating_sub(MOST_PIDS) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{} {}{more}", if all.len() == 1 { "pid" } else { "pids" }, shown.join(", "))
}
