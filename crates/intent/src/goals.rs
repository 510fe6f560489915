//! The settings that the goals of a configuration imply, as comments in its syntax; and the goal that fits a host's role.

use std::collections::BTreeSet;

use ringwise_check::RoleGuess;
use ringwise_config::{Config, InterfaceEntry};
use ringwise_knob::features::NTUPLE;
use ringwise_model::{ConfiguredBy, Goal, Intent, Knob, Snapshot, Wish};
use ringwise_sys::Host;

/// The settings of each goal in the file. They are comments, because a goal's setting that a device does not support is
/// reported and skipped. The same setting as a key is a request of the user, and the device must support it.
pub fn implied(c: &Config) -> String {
    let mut goals: BTreeSet<Goal> = c.entries.iter().filter_map(|e| e.goal).collect();
    goals.insert(c.host.goal.unwrap_or_default());
    goals.into_iter().map(|g| of_goal(g, c)).collect()
}

fn of_goal(goal: Goal, c: &Config) -> String {
    let settings = ringwise_plan::goal_settings(goal, &c.policies);
    let wish =
        |knob: &Knob| Wish { dev: None, knob: knob.clone(), by: ConfiguredBy::Unknown, params_by: Default::default() };
    let entry = InterfaceEntry { wishes: settings.device.iter().map(wish).collect(), ..InterfaceEntry::default() };
    // Only the keys, because they apply to every interface.
    let text = ringwise_config::print_knobs(&entry);
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let mut out = String::new();
    let mut section = |title: &str, lines: &mut Vec<String>| {
        if !lines.is_empty() {
            out += &format!("\n# Goal {goal}, {title}:\n");
            lines.drain(..).for_each(|l| out += &format!("#   {l}\n"));
        }
    };
    let each = "on each interface that supports it, unless the file configures it";
    match settings.device.iter().any(|k| matches!(k, Knob::Pause { .. })) {
        true => section(&format!("{each} (pause not where an RDMA device may depend on it)"), &mut lines),
        false => section(each, &mut lines),
    }
    if goal == Goal::Rpc {
        let feature = wish(&Knob::Feature { name: NTUPLE.into(), on: true });
        let entry = InterfaceEntry { wishes: vec![feature], ..InterfaceEntry::default() };
        lines.extend(ringwise_config::print_knobs(&entry).lines().map(str::to_string));
        let drivers = ringwise_plan::arfs_drivers().collect::<Vec<_>>().join(" ");
        lines.push(format!("drivers: {drivers}"));
        section(
            "on each interface whose driver steers flows to the CPUs of their programs, unless the file configures it",
            &mut lines,
        );
    }
    lines.extend(settings.rfs_entries.map(|n| format!("rfs_entries = {n}")));
    lines.extend(settings.cpu_latency.map(|n| format!("cpu_latency = {n} on the CPUs of its queues")));
    section("on the host, unless the file configures it", &mut lines);
    if goal == Goal::Mixed && c.host.pair_as_article != Some(true) {
        let groups = ringwise_plan::implied(&Intent { latency_queues: c.host.latency_queues, ..Intent::default() });
        let text = ringwise_config::print_entry(&InterfaceEntry { groups: groups.into(), ..InterfaceEntry::default() });
        let at = text.find("[[interface.group]]").unwrap_or(text.len());
        lines.extend(text[at..].lines().filter(|l| !l.is_empty()).map(str::to_string));
        section("in each entry of an interface with queues to divide, unless it has groups", &mut lines);
    }
    out
}

/// The role of the host, guessed from its state.
pub fn role(host: &dyn Host, s: &Snapshot) -> RoleGuess {
    let sockets = host.read_text("/proc/net/sockstat").ok();
    let sockets = sockets.and_then(|t| ringwise_check::tcp_in_use(&t));
    ringwise_check::guess_role(s, sockets)
}
