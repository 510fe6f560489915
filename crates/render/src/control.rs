//! Connections that control the host, and how a plan would affect them.
use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::ControlPath;
use ringwise_plan::{ControlPathCut, Plan, UnknownPath};

use ringwise_text::hang;
use ringwise_text::{Style, Tint};

/// The heading of the plan: the connections that must stay up.
pub fn head(plan: &Plan, w: Option<usize>) -> String {
    if plan.control.is_empty() {
        return String::new();
    }
    let mut ways: Vec<String> = Vec::new();
    for text in plan.control.iter().map(way) {
        // Several sessions over an interface without a known port have the same text.
        if !ways.contains(&text) {
            ways.push(text);
        }
    }
    hang("Control path: ", &format!("{}.", ways.join("; ")), w)
}

fn way(p: &ControlPath) -> String {
    match p.may_be_over_any() {
        Some((dev, why)) => format!("every interface may carry {} ({dev}): {}", p.what(), why.why),
        None => p.to_string(),
    }
}

/// What would interrupt what, as sentences without the last full stop: `eth0 channels would interrupt the default route`.
fn interrupted(plan: &Plan) -> String {
    let (sure, unsure): (Vec<_>, Vec<_>) = plan.cuts.iter().partition(|c| !c.known().is_empty());
    let settings = |cuts: &[&ControlPathCut]| -> String {
        cuts.iter().map(|c| c.address.to_string()).collect::<Vec<_>>().join(", ")
    };
    let mut sentences = Vec::new();
    if !sure.is_empty() {
        let ways: BTreeSet<&str> = sure.iter().flat_map(|c| c.known()).map(String::as_str).collect();
        let ways: Vec<&str> = ways.into_iter().collect();
        sentences.push(format!("{} would interrupt {}", settings(&sure), ways.join("; ")));
    }
    for (cuts, also) in [(sure, "they also interrupt"), (unsure, "")] {
        let unknown: BTreeSet<&UnknownPath> = cuts.iter().flat_map(|c| &c.unknown).collect();
        if unknown.is_empty() {
            continue;
        }
        let mut by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        unknown.iter().for_each(|u| by.entry(&u.why).or_default().push(&u.what));
        let lists: Vec<String> = by.values().map(|what| alternatives(what)).collect();
        let whys: Vec<&str> = by.keys().copied().collect();
        let verb = if also.is_empty() { format!("{} would interrupt", settings(&cuts)) } else { also.to_string() };
        sentences.push(format!("Whether {verb} {} is unknown: {}", alternatives(&lists), whys.join("; ")));
    }
    sentences.join(". ")
}

/// `default routes, iSCSI sessions or ssh sessions`
fn alternatives<T: AsRef<str>>(all: &[T]) -> String {
    let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => all.concat(),
    }
}

/// Why a boot makes a plan that has such steps again, without any step that interrupts traffic.
pub fn skipped_at_boot(plan: &Plan) -> String {
    format!(
        "ringwise: {}. Changes that interrupt traffic are skipped, because no user can confirm a trial at boot",
        interrupted(plan)
    )
}

/// Steps that would interrupt such a connection, and the options that they need.
pub fn cuts(plan: &Plan, style: &Style) -> String {
    if plan.cuts.is_empty() {
        return String::new();
    }
    let only_unknown = plan.cuts.iter().all(|c| c.known().is_empty());
    let why = match (only_unknown, style.recording.is_one()) {
        (true, true) => {
            "Only for this reason the command below has --force and --confirm: apply looks again on the host itself,"
        }
        (true, false) => "Only for this reason apply needs --force and --confirm,",
        (false, _) => "apply does that only with --force and --confirm,",
    };
    let text = format!("{}. {why} and restores everything unless you confirm.", interrupted(plan));
    style.paint(Tint::Yellow, hang("", &text, style.width).trim_end()) + "\n"
}

/// For the question of `apply`: how the plan affects the connection of the user.
pub fn before_asking(plan: &Plan, style: &Style) -> String {
    if !plan.cuts.is_empty() {
        return cuts(plan, style);
    }
    match plan.control.iter().find(|p| p.members.is_known()) {
        Some(p) => {
            let way = p.to_string();
            let mut first = way.chars();
            let start = first.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
            hang("", &format!("{start}{} is not interrupted.", first.as_str()), style.width)
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{ControlReason, Fact, Intent};
    use ringwise_testkit::sim::build;

    use super::*;

    fn path(out: &str, members: Fact<Vec<String>>) -> ControlPath {
        let reason = ControlReason::DefaultRoute { gateway: None };
        ControlPath { reason, out: Some(out.into()), via: vec![out.into()], members }
    }

    #[test]
    fn a_path_that_may_be_over_any_interface() {
        let mut s = build::host(4, 1).igb("eth0", 0, 4).done();
        let lost = path("ppp0", Fact::unknown("ppp0", "it is unknown where packets of ppp0 (a ppp) go"));
        let known = path("eth0", Fact::Known(vec!["eth0".into()]));
        let mut of = |paths: &[ControlPath]| {
            s.control = Fact::Known(paths.to_vec());
            let plan = ringwise_plan::plan(&s, &Intent::default(), &[]).unwrap();
            (head(&plan, None), before_asking(&plan, &Style::plain(None)))
        };
        let unknown =
            "every interface may carry the default route (ppp0): it is unknown where packets of ppp0 (a ppp) go";
        assert_eq!(of(std::slice::from_ref(&lost)), (format!("Control path: {unknown}.\n"), String::new()));
        assert_eq!(
            of(&[lost, known]),
            (
                format!("Control path: {unknown}; the default route (over eth0).\n"),
                "The default route (over eth0) is not interrupted.\n".to_string()
            )
        );
    }
}
