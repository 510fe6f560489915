//! Groups of queues in a plan: their moderation, how flows are steered to them, the CPUs for their programs, and what
//! the plan cannot know.

use std::collections::BTreeSet;

use ringwise_model::{CpuSet, Fact, Goal, Snapshot};
use ringwise_plan::{Group, Plan, ProgramPlacement, affinity_of_others, interrupts_of_others, program_drop_in};

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

/// Kinds of programs: headings of the lists of CPUs, and comments of a drop-in. Short enough for one line, because a folded
/// comment would not be one.
const MANY_OR_BUSY: &str = "many processes or threads (a database), or a busy program";
/// Beside the reserved CPUs.
pub(super) const OTHER_MANY_OR_BUSY: &str = "many processes or threads, or a busy program";
const APART: &str = "must not share CPUs with interrupts (a database): the reserved CPUs";
pub(super) const FEW: &str = "few threads, and not busy";

/// A set of CPUs for people, with its size and that of the host: `CPUs 80-95,208-223 (32 of 256)`. `s`: the host, if it is
/// known.
fn cpus_of(cpus: &CpuSet, s: Option<&Snapshot>) -> String {
    let name = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let size = s.map_or_else(String::new, |s| format!(" ({} of {})", cpus.len(), s.topology.online.len()));
    format!("{name} {cpus}{size}")
}

/// CPUs for programs, and how to set them with systemd: for every configured unit, and one example.
pub(super) fn programs(plan: &Plan, s: Option<&Snapshot>, w: Option<usize>) -> String {
    let Some(first) = plan.programs.first() else { return String::new() };
    let head = "Recommended CPUs for a program that uses mainly one interface (ringwise moves no program):";
    let mut out = hang("", head, w);
    let kept = KeptFree::of(plan, s);
    let apart = kept.as_ref().filter(|k| k.by.is_empty()).and_then(|k| Some((&k.cpus, s?)));
    let many = if apart.is_some() { OTHER_MANY_OR_BUSY } else { MANY_OR_BUSY };
    let (groups, devs): (Vec<&ProgramPlacement>, Vec<&ProgramPlacement>) =
        plan.programs.iter().partition(|p| p.group.is_some());
    out.push_str(&list("  ", groups.iter().map(|p| (of(p), cpus_of(&p.cpus, s), p.why.clone())), w));
    if let Some(first) = devs.first() {
        let node = (many, list("    ", of_nodes(plan, s, &devs).into_iter(), w));
        let few = devs.iter().map(|p| (of(p), cpus_of(&p.cpus, s), p.why.clone()));
        let few = (FEW, list("    ", few, w));
        for (kind, list) in in_order(plan.intent.goal_of(&first.dev), node, few) {
            out.push_str(&format!("  {kind}:\n{list}"));
        }
        let several = "A program that uses several interfaces of one node: their CPUs together; of different nodes: no limit. \
                       No limit either if it needs more CPUs or memory than that.";
        out.push_str(&hang("  ", several, w));
        out.push_str(
            &without_queues(plan, kept.as_ref(), s).iter().map(|line| hang("  ", line, w)).collect::<String>(),
        );
    }
    let configured = || plan.programs.iter().filter(|p| !p.names.is_empty());
    let shown: Vec<&ProgramPlacement> =
        if configured().next().is_some() { configured().collect() } else { vec![first] };
    let shown_devs: Vec<&str> = shown.iter().map(|p| p.dev.as_str()).collect();
    // Then the file begins with these CPUs, and those of the interface follow as comments.
    let kept_free = |p: &ProgramPlacement| apart.is_some() && p.node_cpus.is_some() && p.group.is_none();
    let begins_with_kept_free = shown.iter().any(|p| kept_free(p));
    for p in shown {
        let only = p.group.is_none() && p.node_cpus.is_none();
        let only = if only { " and a program with few threads that is not busy" } else { "" };
        let reserved = if kept_free(p) { "the CPUs that are kept free, or for " } else { "" };
        let file = format!("for {reserved}{}{only}, in /etc/systemd/system/{}.d/cpus.conf:", of(p), unit(p));
        out.push_str(&hang("  ", &file, w));
        out.push_str(&match (&p.node_cpus, &p.group) {
            (Some(node), None) if *node != p.cpus || apart.is_some() => {
                alternatives(p, node, plan.intent.goal_of(&p.dev), many, apart, s)
            }
            (None, None) => {
                let only = format!("{FEW}; other programs need no file");
                drop_in(&[(&only, &p.drop_in)]) + &in_cgroup(&p.cpuset)
            }
            // One set of CPUs for all programs.
            (Some(_), None) | (_, Some(_)) => drop_in(&[("", &p.drop_in)]) + &in_cgroup(&p.cpuset),
        });
    }
    let others = plan.programs.iter().map(|p| p.dev.as_str()).find(|dev| shown_devs.iter().all(|d| d != dev));
    if let Some(dev) = others {
        let text = match begins_with_kept_free {
            true => format!(
                "for another interface, such as {dev}: CPUAffinity= with its CPUs from the list above, and its node"
            ),
            false => format!(
                "for another interface, such as {dev}: the same file with its CPUs from the list above, and with its node where the file names one"
            ),
        };
        out.push_str(&hang("  ", &text, w));
    }
    out.push('\n');
    out
}

fn of(p: &ProgramPlacement) -> String {
    p.group.as_ref().map_or_else(|| p.dev.clone(), |g| format!("{} group {g}", p.dev))
}

/// The case of the goal comes first. Most servers, databases among them, have many processes or threads.
fn in_order<T>(goal: Goal, many: T, few: T) -> [T; 2] {
    if goal == Goal::Rpc { [many, few] } else { [few, many] }
}

/// A line for each subject with its CPUs and the reason, which is given once.
fn list(indent: &str, lines: impl Iterator<Item = (String, String, String)>, w: Option<usize>) -> String {
    let mut known: Vec<String> = Vec::new();
    let mut out = String::new();
    for (subject, cpus, why) in lines {
        let reason = if why.is_empty() || known.contains(&why) { String::new() } else { format!(": {why}") };
        out.push_str(&hang(indent, &format!("{subject}: {cpus}{reason}"), w));
        known.push(why);
    }
    out
}

/// CPUs for programs with many threads: interfaces with the same CPUs share a line.
fn of_nodes(plan: &Plan, s: Option<&Snapshot>, devs: &[&ProgramPlacement]) -> Vec<(String, String, String)> {
    let mut lines: Vec<(String, String, String)> = Vec::new();
    for p in devs {
        let nodeless = plan.layout.iter().any(|l| l.dev == p.dev && l.node.is_none());
        let (cpus, why) = match &p.node_cpus {
            Some(cpus) if plan.intent.goal_of(&p.dev) == Goal::Stream => {
                (cpus_of(cpus, s), format!("the physical cores{} without a queue", of_node(nodeless)))
            }
            Some(cpus) => (cpus_of(cpus, s), usable(&node_of(plan, s, p, cpus), &p.beside_interrupts)),
            None if nodeless && !s.is_some_and(has_one_node) => {
                ("no limit, because its node is unknown".to_string(), String::new())
            }
            None => ("no limit, because all CPUs of the host are local".to_string(), String::new()),
        };
        match lines.iter_mut().find(|(_, known, reason)| *known == cpus && *reason == why) {
            Some((all, ..)) => all.push_str(&format!(" {}", p.dev)),
            None => lines.push((p.dev.clone(), cpus, why)),
        }
    }
    lines
}

/// Whether the node of a device does not matter, because all CPUs of the host are on one node.
fn has_one_node(s: &Snapshot) -> bool {
    match &s.topology.nodes {
        Fact::Known(nodes) => nodes.values().filter(|n| !n.cpus.is_empty()).count() <= 1,
        Fact::Absent => true,
        Fact::Unknown(_) => false,
    }
}

fn of_node(nodeless: bool) -> &'static str {
    if nodeless { "" } else { " of the node" }
}

/// ` of the node`, and which one if the interface is on another.
fn node_of(plan: &Plan, s: Option<&Snapshot>, p: &ProgramPlacement, cpus: &CpuSet) -> String {
    let Some(home) = plan.layout.iter().find(|l| l.dev == p.dev).map(|l| l.node) else { return of_node(false).into() };
    let nodes: BTreeSet<_> = s.into_iter().flat_map(|s| cpus.iter().filter_map(|c| s.topology.node_of(c))).collect();
    match home {
        Some(home) if !nodes.is_empty() && !nodes.contains(&home) => {
            let all: Vec<String> = nodes.iter().map(|n| n.0.to_string()).collect();
            let nodes = if all.len() == 1 { "node" } else { "nodes" };
            format!(" of {nodes} {}, because no CPU of {}'s node may be used", all.join(","), p.dev)
        }
        home => of_node(home.is_none()).into(),
    }
}

/// `beside`: the CPUs that are left out because they share a core with an interrupt.
fn usable(of_node: &str, beside: &CpuSet) -> String {
    let (them, share) = match beside.len() {
        0 => return format!("the usable CPUs{of_node}, with and without a queue"),
        1 => (format!("CPU {beside}"), "shares"),
        _ => (format!("CPUs {beside}"), "share"),
    };
    format!(
        "the usable CPUs{of_node}, except {them}, which {share} a core with an interrupt: a program there and the interrupt \
         would slow each other down (a rule of thumb, not measured on this host)"
    )
}

/// The CPUs that are kept free of queues, for programs that must not share CPUs with interrupts.
struct KeptFree {
    cpus: CpuSet,
    /// Those of them that interfaces outside the plan interrupt.
    interrupted: CpuSet,
    /// These interfaces.
    by: Vec<String>,
    /// Interfaces outside the plan whose interrupts may move there, with their affinity.
    may_move: Vec<(String, CpuSet)>,
}

impl KeptFree {
    /// `None`: there are none. Without the host nothing is known of other interfaces.
    fn of(plan: &Plan, s: Option<&Snapshot>) -> Option<Self> {
        let cpus = plan.intent.reserve.union(&plan.intent.exclude_cpus);
        let is_planned = |name: &str| plan.considered.iter().any(|d| d == name);
        let others = s.into_iter().flat_map(|s| interrupts_of_others(s, is_planned));
        let movable = s.into_iter().flat_map(|s| affinity_of_others(s, is_planned));
        let may_move =
            movable.filter(|(_, all)| all.intersects(&cpus)).map(|(dev, all)| (dev.to_string(), all)).collect();
        let mut out = Self { cpus, interrupted: CpuSet::new(), by: Vec::new(), may_move };
        for (dev, taken) in others.filter(|(_, taken)| taken.intersects(&out.cpus)).collect::<Vec<_>>() {
            out.interrupted = out.interrupted.union(&taken.intersection(&out.cpus));
            out.by.push(dev.to_string());
        }
        (!out.cpus.is_empty()).then_some(out)
    }
}

/// The drop-in and the line for a cgroup with all sets of CPUs, each with the kind of program that it suits. `apart`: the reserved CPUs,
/// on this host.
fn alternatives(
    p: &ProgramPlacement,
    node: &CpuSet,
    goal: Goal,
    many: &str,
    apart: Option<(&CpuSet, &Snapshot)>,
    s: Option<&Snapshot>,
) -> String {
    let with_node = |text: &str| text.replacen(&p.cpus.to_string(), &node.to_string(), 1);
    // A plan file of an earlier version has one drop-in.
    let node_drop_in = p.node_drop_in.clone().unwrap_or_else(|| with_node(&p.drop_in));
    let apart = apart.map(|(cpus, s)| {
        let cpuset = p.cpuset.replacen(&p.cpus.to_string(), &cpus.to_string(), 1);
        (APART, program_drop_in(&s.topology, cpus), cpuset)
    });
    let part = s.filter(|s| is_part_of_socket(node, s)).map_or_else(String::new, |s| {
        let size = format!("{} of {} CPUs", node.len(), s.topology.online.len());
        // systemd accepts one node with `preferred` (numa_policy_is_valid in src/shared/numa-util.c).
        format!(
            "\n      # (one of several nodes of the socket, {size}; for all of\n      # them: their CPUs, NUMAPolicy=local, no NUMAMask=)"
        )
    });
    let many = format!("{many}{part}");
    let many = (many.as_str(), node_drop_in, with_node(&p.cpuset));
    let few = (FEW, p.drop_in.clone(), p.cpuset.clone());
    let mut kinds: Vec<(&str, String, String)> = apart.into_iter().chain(in_order(goal, many, few)).collect();
    if *node == p.cpus {
        kinds.truncate(2); // the same CPUs for both
    }
    let texts: Vec<(&str, &str)> = kinds.iter().map(|(kind, text, _)| (*kind, text.as_str())).collect();
    drop_in(&texts) + &in_cgroup(&kinds[0].2)
}

/// The line for a program that systemd does not start: a unit's own cgroup belongs to systemd.
fn in_cgroup(command: &str) -> String {
    format!("  or, for a cgroup GROUP that systemd does not manage:\n      {command}\n")
}

/// Whether the socket of these CPUs has other nodes, so that they may be a small part of the host.
fn is_part_of_socket(cpus: &CpuSet, s: &Snapshot) -> bool {
    let t = &s.topology;
    let package = |c| t.cpu(c).and_then(|c| c.package.known());
    let nodes: BTreeSet<_> = cpus.iter().filter_map(|c| t.node_of(c)).collect();
    let packages: BTreeSet<_> = cpus.iter().filter_map(package).collect();
    let other =
        |c| t.node_of(c).is_some_and(|n| !nodes.contains(&n)) && package(c).is_some_and(|p| packages.contains(p));
    t.online.iter().any(other)
}

/// A drop-in with the CPUs of the first kind of program; those of the others are comments. Lines that all kinds have in
/// common are at the end.
fn drop_in(kinds: &[(&str, &str)]) -> String {
    let own =
        |text: &str| -> Vec<String> { text.lines().filter(|l| !l.starts_with('[')).map(str::to_string).collect() };
    let all: Vec<(&str, Vec<String>)> = kinds.iter().map(|(kind, text)| (*kind, own(text))).collect();
    let memory = |lines: &[String]| lines.get(1..).unwrap_or_default().to_vec();
    let common = all.windows(2).all(|two| memory(&two[0].1) == memory(&two[1].1));
    let mut out = String::from("      [Service]\n");
    for (i, (kind, lines)) in all.iter().enumerate() {
        let (instead, mark) = if i == 0 { ("", "") } else { ("instead, ", "# ") };
        if !kind.is_empty() {
            out.push_str(&format!("      # {instead}{kind}:\n"));
        }
        for l in lines.iter().take(if common { 1 } else { lines.len() }) {
            out.push_str(&format!("      {mark}{l}\n"));
        }
    }
    if let Some((_, lines)) = all.first().filter(|_| common) {
        out.extend(memory(lines).iter().map(|l| format!("      {l}\n")));
    }
    out
}

/// The CPUs that the user keeps free of queues are in none of the lists.
fn without_queues(plan: &Plan, kept: Option<&KeptFree>, s: Option<&Snapshot>) -> Vec<String> {
    let name = |cpus: &CpuSet| format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" });
    let mut out = Vec::new();
    if let Some(KeptFree { cpus, interrupted, by, may_move }) = kept {
        let (kept, are) = (name(cpus), if cpus.len() == 1 { "is" } else { "are" });
        out.push(if by.is_empty() {
            let start = format!("start programs there that must not share CPUs with interrupts (CPUAffinity={cpus})");
            let movable: Vec<String> = may_move.iter().map(|(dev, all)| format!("{dev} (affinity {all})")).collect();
            match movable.as_slice() {
                [] => format!("{kept} {are} kept free of queues: {start}."),
                all => format!(
                    "{kept} {are} kept free of the queues of this plan: {start}. Interrupts of {} may still move there, because \
                     the plan does not cover them: plan all interfaces together.",
                    all.join(", ")
                ),
            }
        } else {
            format!(
                "{kept} {are} kept free of the queues of this plan, but the interrupts of {}, which the plan does not cover, \
                 go to {}: plan all interfaces together.",
                by.join(" "),
                name(interrupted)
            )
        });
    }
    let kept = kept.map_or_else(CpuSet::new, |k| k.cpus.clone());
    if let Some(cpus) = &plan.intent.cpus {
        let others = s.map(|s| s.topology.online.difference(cpus).difference(&kept)).filter(|c| !c.is_empty());
        let others = others.map_or_else(String::new, |c| format!(" No queue is placed on {}.", name(&c)));
        out.push(format!(
            "The limit to {} (--cpus, or cpus in the file) is for interrupts and for these lists.{others}",
            name(cpus)
        ));
    }
    out
}

/// The systemd unit, or a placeholder if its name is not known.
fn unit(p: &ProgramPlacement) -> String {
    match p.names.as_slice() {
        [one] if one.contains('.') => one.clone(),
        [one] => format!("{one}.service"),
        _ => "NAME.service".into(),
    }
}
