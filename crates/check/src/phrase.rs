//! A step's reason says what will be; a finding says what is. The same judgement in other words.

/// Groups of steps with different reasons that are told in one line; -v and JSON have all of them as evidence.
const TOLD: usize = 2;

/// What the plan says of one thing, as words about `what` (`queues 4-5`). Reasons that are not known here stay as they are.
pub(crate) fn finding(reason: &str, what: &str, several: bool) -> String {
    let by = |one: &'static str, more: &'static str| if several { more } else { one };
    let wide = "it may wander over CPUs ";
    if let Some(rest) = reason.strip_prefix(wide)
        && let Some((cpus, to)) = rest.split_once("; ")
    {
        let held = if to == "it is held on one" { ", and is at the right one by chance" } else { "" };
        let held = if several { held.replace("is at", "each is at") } else { held.into() };
        return format!("{} of {what} may go to any of CPUs {cpus}{held}", by("the interrupt", "the interrupts"));
    }
    if let Some(rest) = reason.strip_prefix("its CPU is on ") {
        return format!("{what} {} {rest}", by("interrupts a CPU on", "interrupt CPUs on"));
    }
    match reason {
        "its core carries another queue while a near core has none" => {
            return format!("{what} {}", by("shares its core", "share cores"))
                + " with others while a near core has none";
        }
        "its CPU takes more queues of all interfaces than the new one" => {
            return format!("{what} {}", by("is on a CPU that takes", "are on CPUs that take"))
                + " queues of other interfaces too, while a near CPU has fewer";
        }
        "each CPU sends on the queue whose interrupt is nearest to it" => {
            return format!(
                "XPS of {what} is not for the CPUs that are nearest to {}",
                by("its interrupt", "their interrupts")
            );
        }
        _ => {}
    }
    if let Some((missing, _)) = reason.split_once(": each CPU sends on ") {
        return missing.to_string();
    }
    // Where its interrupt goes is the plan's, and not so yet.
    if let Some((_, help)) =
        reason.split_once("one receive queue: ").and_then(|(_, r)| r.split_once(" takes the interrupts, "))
    {
        let help = help.replacen(" helps, ", " help, ", 1).replacen(" help, ", " could help, ", 1);
        return format!("one receive queue: one CPU takes all interrupts; {help}");
    }
    let reason = reason.replace("; RPS would add an", "; RPS on top adds an");
    // These name what they are about.
    let whole = ["queue interrupts", " queues of ", " queues already ", "the device itself spreads"];
    if what.is_empty() || whole.iter().any(|w| reason.contains(w)) { reason } else { format!("{what}: {reason}") }
}

/// Several of them in one line.
pub(crate) fn joined(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(TOLD);
    if more < 2 {
        return all.join("; ");
    }
    all.truncate(TOLD);
    format!("{}; {more} more like this", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn said_as_it_is() {
        let says =
            |reason: &str, what: &str, want: &str| assert_eq!(finding(reason, what, what.contains("queues")), want);
        says(
            "it may wander over CPUs 0-7; one CPU is laid down",
            "queues 0-2",
            "the interrupts of queues 0-2 may go to any of CPUs 0-7",
        );
        says(
            "it may wander over CPUs 0-7; it is held on one",
            "queue 3",
            "the interrupt of queue 3 may go to any of CPUs 0-7, and is at the right one by chance",
        );
        says(
            "its CPU is on node 1, away from eth1",
            "queues 4-5",
            "queues 4-5 interrupt CPUs on node 1, away from eth1",
        );
        says(
            "no XPS on 8 transmit queues: each CPU sends on the queue whose interrupt is nearest to it",
            "transmit queues 0-7",
            "no XPS on 8 transmit queues",
        );
        says("4 queues of eth1 share CPU 0", "queues 0-3", "4 queues of eth1 share CPU 0");
        says(
            "one receive queue: CPU 0 takes the interrupts, CPU 1 helps, the nearest one outside its own core",
            "queue 0",
            "one receive queue: one CPU takes all interrupts; CPU 1 could help, the nearest one outside its own core",
        );
        says("flow rules need it", "ntuple", "ntuple: flow rules need it");
        let all: Vec<String> = (0..5).map(|i| format!("{i}")).collect();
        assert_eq!(joined(all.clone()), "0; 1; 3 more like this");
        assert_eq!(joined(all[..3].to_vec()), "0; 1; 2");
    }
}
