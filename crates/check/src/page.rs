//! The page of a rule. `check --explain ID` and `docs/rules/ID.md` are made from the same data.

use crate::rule::Rule;
use crate::rules::{UNJUDGED_RULES, find, rules, same};
use crate::severity::{Confidence, Severity};
use ringwise_model::order::Order;

/// Heading and text of each part. Each entry of a list is a line with a dash.
fn parts(r: &Rule) -> Vec<(&'static str, String)> {
    let mut out = vec![("Inputs", r.reads.to_string())];
    if r.rates {
        out.push(("Samples", "two, because the rule compares counters: check takes them on this host (1 s apart, or --for), except with --passive; a recording has them only if it was made with capture --for 5s".into()));
    }
    out.push(("Precondition", r.guard.into()));
    out.push(("Condition", r.condition.into()));
    out.push(("Impact", r.why().into()));
    if !r.confirm.is_empty() {
        out.push(("Confirmation", r.confirm.into()));
    }
    match r.ours {
        Some(a) => out.push(("Fix", fix(r, a))),
        None => out.push(("Fix", "not by ringwise: see the manual steps".into())),
    }
    if !r.by_hand.is_empty() {
        out.push(("Manual steps", r.by_hand.iter().map(|c| format!("- {c}")).collect::<Vec<_>>().join("\n")));
    }
    let sure = match r.confidence {
        Confidence::Sure if r.severity == Severity::Info => "certain: the condition is met",
        Confidence::Sure => "certain: the problem exists",
        Confidence::Likely => "likely: the condition is met; whether it matters depends on the load",
    };
    out.push(("Confidence", sure.into()));
    let others: Vec<String> =
        Some(r.other_severity.to_string()).filter(|o| !o.is_empty()).into_iter().chain(raised(r)).collect();
    if !others.is_empty() {
        out.push(("Other severity", others.join("; ")));
    }
    if !r.under.is_empty() {
        let which = if r.under.len() == 1 { "it" } else { "one of them" };
        let ids = r.under.join(" ");
        out.push(("Consequence of", format!("{ids}. If {which} is found too, this finding is listed below it")));
    }
    if !r.also.is_empty() {
        out.push(("Other ids", r.also.join(" ")));
    }
    if !r.more.is_empty() {
        out.push(("Background", r.more.into()));
    }
    out.push(("Source", r.source().into()));
    let explained = terms(r.title, &out);
    out.extend(explained.map(|t| ("Terms", t)));
    out
}

/// The commands that remove the finding. They name the goal, because `plan` and `apply` remember none.
fn fix(r: &Rule, arguments: &str) -> String {
    let goal = if arguments.contains("--goal") { "" } else { "--goal GOAL " };
    let all = format!("{goal}{arguments}");
    let which = if r.of_applied { "the applied goal" } else { "the goal of the check" };
    let which = if all.contains("GOAL") { format!("; GOAL is {which}") } else { String::new() };
    format!("ringwise plan {}; then ringwise apply with the same arguments and --confirm 60s{which}", all.trim_end())
}

/// The severity that a finding gets from its consequences, if they are worse.
fn raised(r: &Rule) -> Option<String> {
    let worse = |o: &&Rule| o.under.contains(&r.id) && o.severity > r.severity;
    let severity = rules().filter(worse).map(|o| o.severity).max()?;
    let ids: Vec<&str> = rules().filter(worse).filter(|o| o.severity == severity).map(|o| o.id).collect();
    Some(format!("{} if a finding of {} is listed below this one", severity.name(), ids.join(" or ")))
}

/// Abbreviations and terms that pages use without an explanation.
const TERMS: &[(&str, &str)] = &[
    ("AF_XDP", "sockets for packets that bypass the network stack"),
    ("ASPM", "active state power management of PCI Express"),
    ("ATR", "application targeted routing, the flow steering of Intel devices"),
    ("CLS", "the column of ps for the scheduling class; FF, RR and DLN are real-time classes"),
    ("DDIO", "data direct I/O, by which devices write to the CPU cache"),
    ("DMA", "direct memory access"),
    ("EDT", "earliest departure time"),
    ("EEE", "energy-efficient Ethernet"),
    ("FEC", "forward error correction"),
    ("GRO", "generic receive offload"),
    ("IOMMU", "I/O memory management unit"),
    ("IOTLB", "the cache of the IOMMU for address translations"),
    ("KVM", "kernel-based virtual machine"),
    ("L3", "third-level cache"),
    ("LRO", "large receive offload"),
    ("MAC", "media access control; a MAC address is the hardware address of an interface"),
    ("MMIO", "memory-mapped I/O"),
    ("MTU", "maximum transmission unit"),
    ("NAPI", "the kernel's interface for polling network devices"),
    ("NIC", "network interface card"),
    ("NMI", "non-maskable interrupt"),
    ("NUMA", "non-uniform memory access"),
    ("PSR", "the column of ps for the CPU of a thread"),
    ("RDMA", "remote direct memory access"),
    ("RFS", "receive flow steering, RPS that follows the CPU of the reading program"),
    ("RPS", "receive packet steering, by which the kernel distributes packets to CPUs"),
    ("RSS", "receive side scaling, by which the device distributes flows to queues"),
    ("SMT", "simultaneous multithreading"),
    ("TID", "the number of a thread"),
    ("VFIO", "virtual function I/O"),
    ("VLAN", "virtual LAN"),
    ("VXLAN", "virtual extensible LAN, a tunnel of Ethernet frames in UDP"),
    ("XDP", "eXpress Data Path"),
    ("XPS", "transmit packet steering, which maps CPUs to transmit queues"),
    ("aRFS", "accelerated RFS"),
    ("interrupt time", "the share of a CPU's time in interrupts and softirqs"),
    ("ksoftirqd", "the kernel thread of a CPU for softirqs"),
    ("local", "on the NUMA node of the device"),
    ("node", "NUMA node, a group of CPUs with memory of its own"),
    ("ntuple", "the device feature for flow rules"),
    ("queue pair", "the receive and the transmit queue with the same number"),
    ("remote", "on another NUMA node than the device"),
    ("softirq", "software interrupt, in which the kernel processes packets"),
];

/// Explains the abbreviations and terms of the page. `None`: it has none.
fn terms(title: &str, parts: &[(&str, String)]) -> Option<String> {
    let mut text = format!(" {title} ");
    for (_, part) in parts {
        text.push_str(part);
        text.push(' ');
    }
    // With a space on both sides of every word, only whole words match.
    let text = text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', " ");
    let has = |short: &str| text.contains(&format!(" {short} ")) || text.contains(&format!(" {short}s "));
    let found = TERMS.iter().filter(|t| has(t.0));
    let lines: Vec<String> = found.map(|(short, long)| format!("- {short}: {long}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The page for a terminal. `None`: no rule has this id.
pub fn explain(id: &str, width: usize) -> Option<String> {
    let Some(r) = find(id) else {
        let l = UNJUDGED_RULES.iter().find(|l| same(l.id, id))?;
        return Some(format!("{}  {}\nNot judged: {}\n", l.id, l.title, wrap(l.why, width.saturating_sub(12), 12)));
    };
    let mut out = format!("{}  {}  ({})\n\n", r.id, r.title, r.severity.name());
    for (name, text) in parts(r) {
        let lines: Vec<String> = text.lines().map(|l| wrap(l, width.saturating_sub(20).max(30), 20)).collect();
        out += &format!("{name:<18}  {}\n", lines.join(&format!("\n{}", " ".repeat(20))));
    }
    Some(out)
}

/// Wraps text at `width`; every line but the first is indented.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    for word in text.split(' ') {
        let n = word.chars().count();
        if at > 0 && at + 1 + n > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            at = 0;
        } else if at > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += n;
    }
    out
}

/// `docs/rules/ID.md`
pub fn markdown(r: &Rule) -> String {
    let mut out = format!("# {}: {}\n\nSeverity: {}\n", r.id, r.title, r.severity.name());
    for (name, text) in parts(r) {
        out += &format!("\n**{name}.** {}{text}\n", if text.starts_with("- ") { "\n\n" } else { "" });
    }
    out
}

/// `docs/rules.md`
pub fn index_page() -> String {
    let mut out = format!(
        "# Rules of `ringwise check`\n\n{} rules with a page each; `ringwise check --explain ID` prints the same text. Rules marked \
         *two samples* compare counters: `check` takes both on this host, and a recording has them if it was made with `capture --for`. [rules-left-out.md](rules-left-out.md) lists the rules that \
         `check` does not judge, and why.\n\n\
         An id is a name without an order. Its letter names the subject: A interrupts and their CPUs, D lost packets, F forwarding, H \
         hardware and system, M interrupt moderation, Q queues and steering, W the configuration. An id with R and two numbers, such as \
         R0.09, belongs to a setting that `ringwise plan` decides by this rule; the number before the dot has no meaning of its \
         own. `ringwise plan` prints the ids of both kinds.\n\n\
         | rule | subject | severity | two samples | fix |\n|---|---|---|---|---|\n",
        rules().count()
    );
    let mut all: Vec<&Rule> = rules().collect();
    all.order_by_key(|r| r.id);
    for r in all {
        let by = if r.ours.is_some() { "`ringwise plan`" } else { "manual" };
        let rates = if r.rates { "yes" } else { "" };
        out += &format!("| [{0}](rules/{0}.md) | {1} | {2} | {rates} | {by} |\n", r.id, r.title, r.severity.name());
    }
    out
}

/// `docs/rules-left-out.md`
pub fn left_out_page() -> String {
    let mut out = "# Rules that are not judged\n\n`ringwise check` does not judge these rules of the catalogue of 136.\n\n| rule | subject | reason |\n|---|---|---|\n".to_string();
    for l in UNJUDGED_RULES {
        out += &format!("| {} | {} | {} |\n", l.id, l.title, l.why);
    }
    out
}
