//! Competing programs that would move interrupts: the line of `status`, and irqbalance in the plan.

use ringwise_knob::irqbalance::{BannedInterrupts, live_ban, live_restart};
use ringwise_knob::{Family, Setting, Step};
use ringwise_model::{CompetingProgram, Fact, Irqbalance, Snapshot};
use ringwise_plan::Plan;

use ringwise_text::Style;
use ringwise_text::{hang, pad, plural};

/// Nothing was found: neither a program that runs, nor a file that would set the same things later.
const NONE: &str = "none (no program, script, crontab, unit, udev rule or .link file)";

/// irqbalance (`irqbalance running, 16 interrupts of eth1 eth2 banned`), then other programs.
pub fn line(s: &Snapshot) -> String {
    let mut parts = Vec::new();
    match (&s.host.irqbalance, &s.host.rivals) {
        (Fact::Known(b), _) => parts.push(irqbalance(s, b)),
        (Fact::Unknown(u), Fact::Known(names)) if names.iter().any(|n| n == "irqbalance") => {
            parts.push(format!("irqbalance running; its banned interrupts are unknown ({})", u.why));
        }
        _ => {}
    }
    let (running, at_rest): (Vec<&CompetingProgram>, Vec<&CompetingProgram>) =
        s.host.rival_details.iter().filter(|r| r.name != "irqbalance").partition(|r| r.running);
    parts.extend(running.iter().map(|r| other(r)));
    if !at_rest.is_empty() {
        let names: Vec<String> = at_rest.iter().map(|r| format!("{} ({})", r.evidence, r.sets)).collect();
        let what = match names.len() {
            1 => "not running, sets its values again when it runs",
            _ => "not running, set their values again when they run",
        };
        parts.push(format!("{what}: {}", names.join(", ")));
    }
    if !s.held.is_empty() {
        let held: Vec<String> = s.held.iter().map(|h| format!("{} ({})", h.bus_address, h.driver)).collect();
        parts.push(format!("bound to a user-space driver: {}", held.join(", ")));
    }
    // Old recordings have only the names of programs.
    for name in s.host.rivals.known().into_iter().flatten() {
        let told = name == "irqbalance" && (s.host.irqbalance.is_known() || !parts.is_empty())
            || s.host.rival_details.iter().any(|r| r.running && r.name.starts_with(name.as_str()));
        if !told {
            parts.push(format!("{name} running; may move interrupts"));
        }
    }
    match &s.host.rivals {
        Fact::Unknown(u) if parts.is_empty() => format!("unknown ({})", u.why),
        Fact::Unknown(u) => format!("{}; others unknown ({})", parts.join("; "), u.why),
        _ if parts.is_empty() => NONE.into(),
        _ => parts.join("; "),
    }
}

/// Devices with all interrupts banned from irqbalance, and the number of these interrupts.
fn left_alone(s: &Snapshot) -> (Vec<&str>, usize) {
    let all = |n: &&ringwise_model::Nic| {
        matches!(live_ban(s, n.name()), Fact::Known(Setting::IrqbalanceBan { left: BannedInterrupts::All, .. }))
    };
    let nics: Vec<_> = s.nics.iter().filter(all).collect();
    (nics.iter().map(|n| n.name()).collect(), nics.iter().map(|n| n.vectors.len()).sum())
}

fn irqbalance(s: &Snapshot, b: &Irqbalance) -> String {
    let every = b.interval_s.known().map(|n| format!(" every {n} s")).unwrap_or_default();
    let (devs, n) = left_alone(s);
    if devs.is_empty() {
        return match &b.banned {
            Fact::Unknown(u) => format!("irqbalance running; its banned interrupts are unknown ({})", u.why),
            _ => format!("irqbalance running, may move interrupts{every}"),
        };
    }
    let restart = devs.iter().all(|d| {
        b.by_policy || matches!(live_restart(s, d), Fact::Known(Setting::IrqbalanceRestart { left: true, .. }))
    });
    let after = if restart { "" } else { " (until it restarts)" };
    format!("irqbalance running, {} of {} banned{after}", plural(n, "interrupt"), devs.join(" "))
}

fn other(r: &CompetingProgram) -> String {
    let how = r.setup.as_ref().map(|s| format!(", {s}")).unwrap_or_default();
    match r.sets.as_str() {
        "" if r.name == "tuned" => format!("{} running{how}: sets nothing that ringwise manages", r.name),
        "" => format!("{} running: ringwise does not change its interfaces' channels", r.name),
        sets => format!("{} running{how}: sets {sets}", r.name),
    }
}

/// Steps of the plan that change settings of irqbalance.
pub fn steps(plan: &Plan) -> Vec<&Step> {
    plan.steps.iter().filter(|st| st.setting.address().is_some_and(|a| a.family() == Family::Rivals)).collect()
}

/// The present and the planned state of irqbalance, as one band of the host.
pub fn band(steps: &[&Step], s: Option<&Snapshot>, style: &Style) -> String {
    let mut devs: Vec<String> = Vec::new();
    let mut bans = false;
    for st in steps {
        bans |= matches!(st.setting, Setting::IrqbalanceBan { .. });
        let dev = st.setting.address().and_then(|a| a.dev().map(str::to_string));
        devs.extend(dev.filter(|d| !devs.contains(d)));
    }
    let vectors = |s: &Snapshot| -> usize { devs.iter().filter_map(|d| s.nic(d)).map(|n| n.vectors.len()).sum() };
    let what = s.map(vectors).filter(|n| *n > 0).map_or_else(|| "interrupts".into(), |n| plural(n, "interrupt"));
    let every = s.and_then(|s| s.host.irqbalance.known()).and_then(|b| b.interval_s.known());
    let every = every.map(|n| format!(" within {n} s")).unwrap_or_default();
    let now = match bans {
        true => format!("running, would move {what} of {}{every}", devs.join(" ")),
        false => format!("running, {what} of {} banned until it restarts", devs.join(" ")),
    };
    // If the systemd unit cannot be extended, no setting keeps the ban across a restart.
    let lasts = |d: &String| s.is_some_and(|s| live_restart(s, d).is_known());
    let after = if devs.iter().all(lasts) { "also after its restart" } else { "until it restarts" };
    let then = format!("running, all of them banned ({after})");
    format!(
        "{}{}",
        hang(&format!("{}now   ", pad("~ irqbalance", 20)), &now, style.width),
        hang(&format!("{}then  ", pad("", 20)), &then, style.width)
    )
}
