//! Groups of queues in a plan: their moderation, how flows are steered to them, the CPUs for their programs, and what
//! the plan cannot know.

use ringwise_model::{CpuSet, Goal};
use ringwise_plan::{Group, Plan, Program};

use ringwise_text::{hang, plural};

/// `, policy latency (rx-usecs 5 tx-usecs 10 on each queue), no entry of the table, 2 rules to context 1`
pub(super) fn reached(g: &Group) -> String {
    let mut out = String::new();
    if let Some(p) = &g.policy {
        let how = g.moderation.as_deref().unwrap_or("no moderation of its own");
        out.push_str(&format!(", policy {p} ({how})"));
    }
    match g.entries {
        Some(0) => out.push_str(", no entry of the RSS table"),
        Some(1) => out.push_str(", 1 entry of the RSS table"),
        Some(n) => out.push_str(&format!(", {n} entries of the RSS table")),
        None => {}
    }
    if let Some(n) = g.rules {
        out.push_str(&format!(", {}", plural(n as usize, "flow rule")));
        if let Some(c) = g.context {
            out.push_str(&format!(" to RSS context {c}"));
        }
    }
    out
}

pub(super) fn advice(plan: &Plan, w: Option<usize>) -> String {
    plan.advice.iter().map(|a| hang("Note: ", a, w)).collect()
}

/// Programs that would be slow on the CPUs of the interrupts.
const MANY: &str = "many processes or threads (a database)";
/// Comments of a drop-in: short enough for one line, because a folded one would not be a comment.
const MANY_OR_BUSY: &str = "many processes or threads (a database), or a busy program";
const FEW_FIRST: &str = ". For one of few threads that do not keep their CPUs busy:";
const FEW: &str = "few threads that do not keep their CPUs busy";

/// CPUs for programs, one line each, and how to set them with systemd: for every configured unit, and one example.
pub(super) fn programs(plan: &Plan, w: Option<usize>) -> String {
    let Some(first) = plan.programs.first() else { return String::new() };
    let of = |p: &Program| p.group.as_ref().map_or_else(|| p.dev.clone(), |g| format!("{} group {g}", p.dev));
    let few = if plan.programs.iter().all(|p| p.group.is_some()) { ":" } else { FEW_FIRST };
    let head =
        format!("Recommended CPUs for a program that uses mainly one interface (ringwise moves no program){few}");
    let mut out = hang("", &head, w);
    for (i, p) in plan.programs.iter().enumerate() {
        // The same reason comes once.
        let known = plan.programs[..i].iter().any(|o| o.why == p.why);
        let why = if known { String::new() } else { format!(": {}", p.why) };
        out.push_str(&hang("  ", &format!("{}: CPUs {}{why}", of(p), p.cpus), w));
    }
    out.extend(limits(plan).map(|text| hang("  ", &text, w)));
    let configured = || plan.programs.iter().filter(|p| !p.names.is_empty());
    let shown: Vec<&Program> = if configured().next().is_some() { configured().collect() } else { vec![first] };
    for p in shown {
        let file = format!("for {}, in /etc/systemd/system/{}.d/cpus.conf:", of(p), unit(p));
        out.push_str(&hang("  ", &file, w));
        match p.node_cpus.as_ref().filter(|_| p.group.is_none()) {
            Some(node) => out.push_str(&alternatives(p, node, plan.intent.goal_of(&p.dev))),
            None => {
                out.extend(p.drop_in.lines().map(|l| format!("      {l}\n")));
                out.push_str(&format!("  or {}\n", p.cpuset));
            }
        }
    }
    out.push('\n');
    out
}

/// The drop-in and the line for a cgroup with both sets of CPUs, each with the kind of program that it suits. With goal `rpc`
/// the CPUs of the node come first: most servers, databases among them, have many processes or threads.
fn alternatives(p: &Program, node: &CpuSet, goal: Goal) -> String {
    let kinds = [(MANY_OR_BUSY, node), (FEW, &p.cpus)];
    let [(kind, cpus), (other, instead)] = if goal == Goal::Rpc { kinds } else { [kinds[1], kinds[0]] };
    let mut out = String::new();
    for l in p.drop_in.lines() {
        if l.starts_with("CPUAffinity=") {
            out.push_str(&format!("      # {kind}:\n      CPUAffinity={cpus}\n"));
            out.push_str(&format!("      # instead, {other}:\n      # CPUAffinity={instead}\n"));
        } else {
            out.push_str(&format!("      {l}\n"));
        }
    }
    let cpuset = p.cpuset.replacen(&p.cpus.to_string(), &cpus.to_string(), 1);
    out.push_str(&format!("  or {cpuset}\n"));
    out
}

/// Which programs these CPUs suit, and which need more. `None`: all CPUs are for groups.
fn limits(plan: &Plan) -> Option<String> {
    let mut node: Vec<(&CpuSet, Vec<&str>)> = Vec::new();
    let all = || plan.programs.iter().filter(|p| p.group.is_none());
    for p in all() {
        let Some(cpus) = &p.node_cpus else { continue };
        match node.iter_mut().find(|(c, _)| *c == cpus) {
            Some((_, devs)) => devs.push(&p.dev),
            None => node.push((cpus, vec![&p.dev])),
        }
    }
    all().next()?;
    let sets: Vec<String> = node.iter().map(|(cpus, devs)| format!("{}: CPUs {cpus}", devs.join(" "))).collect();
    let nodeless = |p: &Program| plan.layout.iter().any(|l| l.dev == p.dev && l.node.is_none());
    let unknown = if all().any(|p| p.node_cpus.is_none() && nodeless(p)) { ", or is unknown" } else { "" };
    let gets = || format!("gets those of the node, CPUs without a queue included ({})", sets.join("; "));
    let kept = kept_free(plan);
    let more = if kept.is_empty() { "no more" } else { "no other usable CPUs" };
    let many = match (sets.is_empty(), all().all(|p| p.node_cpus.is_some())) {
        (true, _) => {
            format!("The node has {more}{unknown}, so leave the file out for a busy program, or one of {MANY}.")
        }
        (false, true) => format!("A busy program, or one of {MANY}, {}.", gets()),
        (false, false) => {
            format!("A busy program, or one of {MANY}, {}, or no limit if it has {more}{unknown}.", gets())
        }
    };
    Some(format!("{many}{kept} A program that uses several interfaces needs no limit."))
}

/// The CPUs that the user keeps free of queues are not recommended either.
fn kept_free(plan: &Plan) -> String {
    let kept = plan.intent.reserve.union(&plan.intent.exclude_cpus);
    match kept.len() {
        0 => String::new(),
        1 => format!(" CPU {kept} is kept free of queues, so it is in none of these lists."),
        _ => format!(" CPUs {kept} are kept free of queues, so they are in none of these lists."),
    }
}

/// The systemd unit, or a placeholder if its name is not known.
fn unit(p: &Program) -> String {
    match p.names.as_slice() {
        [one] if one.contains('.') => one.clone(),
        [one] => format!("{one}.service"),
        _ => "NAME.service".into(),
    }
}
