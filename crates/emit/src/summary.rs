//! The host of a plan, and a line about its changes.

use std::collections::BTreeSet;

use ringwise_plan::Plan;
use ringwise_text::{plural, visible};

/// The host that the plan is for.
pub fn name(plan: &Plan) -> String {
    plan.host.name.known().map_or_else(|| "host of unknown name".into(), |n| visible(n).into_owned())
}

/// `41 changes (40 on eth1 eth2, 1 on the host), 45 settings checked. None interrupts traffic.`
pub fn summary(plan: &Plan) -> String {
    let of_host = plan.steps_of(None).count();
    let changed = plan.steps.iter().filter_map(|st| st.setting.dev()).collect::<BTreeSet<_>>();
    let devs: Vec<&str> = plan.considered.iter().map(String::as_str).filter(|d| changed.contains(d)).collect();
    let of_devs = plan.steps.len() - of_host;
    let devs = devs.join(" ");
    let places = match (of_devs, of_host) {
        (0, _) => " on the host".to_string(),
        (_, 0) => format!(" on {devs}"),
        _ => format!(" ({of_devs} on {devs}, {of_host} on the host)"),
    };
    let harm: Vec<String> = plan
        .steps
        .iter()
        .filter(|s| s.interrupts_traffic)
        .filter_map(|s| s.setting.address())
        .map(|a| format!("{} of {}", a.family().title(), a.dev().unwrap_or("the host")))
        .collect();
    let harm = match harm.len() {
        0 => "None interrupts traffic.".into(),
        n => format!("{n} of them interrupt{} traffic: {}.", if n == 1 { "s" } else { "" }, harm.join(", ")),
    };
    let checked = plural(plan.target.len(), "setting");
    format!("{}{places}, {checked} checked. {harm}", plural(plan.steps.len(), "change"))
}
