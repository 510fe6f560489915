//! irqbalance: its list of banned interrupts, set over its socket, and the configuration that makes it skip devices after systemd
//! has restarted it. ringwise never stops irqbalance.

use ringwise_discover::competing_programs::{BANS, DEVICES, POLICY, dropin, irqbalance, run_of, scripts};
use ringwise_kfmt::irqbalance::ban_order;
use ringwise_knob::irqbalance::{BannedInterrupts, bans_of_others, list, live_restart};
use ringwise_knob::{Address, IfRefused, Reason, Setting, Step, compare, live};
use ringwise_model::errno::{EMSGSIZE, ENODEV, ENOENT};
use ringwise_model::{Fact, Irqbalance, Nic, Snapshot};
use ringwise_sys::{Error, Request, Result};

use crate::host_access::HostAccess;
use crate::{Request as Wish, Store};

/// irqbalance as it is now: it may have been restarted since the host was discovered.
fn fresh(cx: &HostAccess) -> Fact<Irqbalance> {
    cx.reading(|h| irqbalance(h, None)).unwrap_or_else(|| Fact::late("irqbalance", cx.policy.deadline))
}

fn running(cx: &HostAccess) -> Result<Irqbalance> {
    match fresh(cx) {
        Fact::Known(b) => Ok(b),
        Fact::Absent => Err(Error::errno("irqbalance", ENOENT)),
        Fact::Unknown(u) => Err(u.into()),
    }
}

fn nic<'a>(now: &'a Snapshot, dev: &str) -> Result<&'a Nic> {
    now.nic(dev).ok_or_else(|| Error::errno(dev, ENODEV))
}

/// Whether irqbalance made a change of this setting, rather than a user: after a restart it has lost its bans, and moves the
/// interrupts. `loose`: whether irqbalance should skip this device but does not.
pub(crate) fn moved_by_it(address: &Address, loose: impl Fn(&str) -> bool) -> bool {
    match address {
        Address::IrqbalanceRestart { .. } | Address::IrqbalanceBan { .. } => true,
        Address::IrqCpus { dev, .. } => loose(dev),
        _ => false,
    }
}

/// Whether irqbalance may have moved this interrupt since the plan was made, and these steps ban it.
pub(crate) fn will_be_banned(address: &Address, steps: &[Step], now: &Snapshot) -> bool {
    let Address::IrqCpus { dev, .. } = address else { return false };
    let ban =
        |s: &&Step| matches!(&s.setting, Setting::IrqbalanceBan { dev: d, left: BannedInterrupts::All } if d == dev);
    now.host.irqbalance.is_known() && steps.iter().find(ban).is_some_and(|s| !compare(&s.setting, now).holds())
}

/// irqbalance may move interrupts that were already on the planned CPUs, until ringwise has banned them. They become steps, which
/// write only the interrupts that moved meanwhile, and are verified like the others.
pub(crate) fn hold_too(request: &mut Wish, now: &Snapshot) {
    let will = |s: &Setting| s.address().is_some_and(|a| will_be_banned(&a, &request.steps, now));
    let (more, rest): (Vec<Setting>, Vec<Setting>) = request.already.drain(..).partition(will);
    request.already = rest;
    request.steps.extend(more.into_iter().map(|setting| Step {
        from: setting.address().map_or(Fact::Absent, |a| live(now, &a)),
        setting,
        rule: "A06".into(),
        reason: Reason::UntilBanned,
        source: "irqbalance(1)".into(),
        interrupts_traffic: false,
        if_refused: IfRefused::Skip,
        instead: Vec::new(),
    }));
}

/// A note if the ban does not survive a restart of the running irqbalance.
pub(crate) fn note_restart(now: &Snapshot, steps: &[Step]) -> Option<String> {
    let mut banned = steps.iter().filter_map(|s| match &s.setting {
        Setting::IrqbalanceBan { dev, left: BannedInterrupts::All } => Some(dev),
        _ => None,
    });
    let b = now.host.irqbalance.known()?;
    banned.find(|dev| !live_restart(now, dev).is_known())?;
    let why = match (&b.unit, &b.start) {
        (Fact::Known(u), None) => format!("{u} starts it with a command that ringwise cannot extend"),
        (Fact::Known(_), _) => "the device has no bus address".into(),
        _ => "systemd did not start it".into(),
    };
    Some(format!(
        "irqbalance loses its bans when it restarts ({why}): ringwise verify reports that, ringwise apply fixes it"
    ))
}

/// irqbalance accepts only the whole list, so the bans of other programs are sent again.
pub(crate) fn write_ban(cx: &HostAccess, now: &Snapshot, dev: &str, left: &BannedInterrupts) -> Result<()> {
    let b = running(cx)?;
    let nic = nic(now, dev)?;
    let unread = || Error::other("irqbalance setup", "its list of banned interrupts could not be read");
    let wanted = list(&b, nic, left).ok_or_else(unread)?;
    let before = bans_of_others(&b, nic).ok_or_else(unread)?;
    let bus = nic.dev.bus_address.clone().unwrap_or_else(|| dev.to_string());
    let mut ours: Vec<(String, u32)> = b.ours.iter().filter(|(d, _)| *d != bus).cloned().collect();
    ours.extend(wanted.iter().filter(|n| !before.contains(n)).map(|n| (bus.clone(), *n)));
    // Recorded first: an unrecorded ban could not be withdrawn after interrupts were renumbered.
    note(cx, &b, &ours)?;
    send_banned_interrupts(cx, &b, &wanted)
}

fn send_banned_interrupts(cx: &HostAccess, b: &Irqbalance, list: &[u32]) -> Result<()> {
    let socket = match &b.socket {
        Fact::Known(s) => s.clone(),
        Fact::Absent => return Err(Error::errno("irqbalance socket", ENOENT)),
        Fact::Unknown(u) => return Err(u.clone().into()),
    };
    let command = ban_order(list).ok_or_else(|| Error::errno(format!("irqbalance {socket}"), EMSGSIZE))?;
    cx.order(Request::Irqbalance { socket, command })
}

fn place(cx: &HostAccess, path: &str, content: Option<String>, executable: bool) -> Result<()> {
    cx.order(Request::Place { path: path.to_string(), content, executable })
}

/// Records which of the bans ringwise made, for as long as this irqbalance runs.
fn note(cx: &HostAccess, b: &Irqbalance, ours: &[(String, u32)]) -> Result<()> {
    if ours == b.ours.as_slice() {
        return Ok(());
    }
    let run = run_of(cx.host.as_ref(), b.pid).unwrap_or_default();
    let lines: String = ours.iter().map(|(d, n)| format!("{d} {n}\n")).collect();
    place(cx, BANS, (!ours.is_empty()).then(|| format!("{run}\n{lines}")), false)
}

/// Writes a policy script that makes irqbalance skip these devices, and a drop-in for the unit that names the script. That covers the
/// interrupt numbers after a restart too.
pub(crate) fn write_restart(cx: &HostAccess, now: &Snapshot, dev: &str, left: bool) -> Result<()> {
    let b = running(cx)?;
    let bus = nic(now, dev)?.dev.bus_address.clone().unwrap_or_default();
    let (Fact::Known(unit), Some(start)) = (&b.unit, &b.start) else {
        return Err(Error::other("irqbalance", "no systemd unit starts it with a command that ringwise can extend"));
    };
    let mut kept: Vec<String> = b.kept.iter().filter(|k| **k != bus).cloned().collect();
    if left {
        kept.push(bus);
        kept.sort();
    }
    let store = Store::open(None);
    let script = store.dirs().first().map(|d| d.join(POLICY).display().to_string()).unwrap_or_default();
    let dropin = dropin(unit);
    if kept.is_empty() {
        place(cx, &dropin, None, false)?;
        cx.order(Request::DaemonReload)?;
        place(cx, &script, None, false)?;
        if b.ours.is_empty() {
            // The file belongs to an irqbalance that is gone.
            place(cx, BANS, None, false)?;
        }
        // Removed last: as long as this file exists, `recover` knows that something has to be removed.
        place(cx, DEVICES, None, false)?;
    } else {
        place(cx, DEVICES, Some(kept.iter().map(|k| format!("{k}\n")).collect()), false)?;
        if !b.addition {
            let before = b.args.known().map(|a| scripts(a)).unwrap_or_default();
            // If this irqbalance runs with ringwise's script, that is the last one, so it is skipped.
            let next = before.into_iter().rfind(|s| !s.ends_with(POLICY));
            let done = place(cx, &script, Some(policy(next.as_deref())), true)
                .and_then(|()| place(cx, &dropin, Some(addition(start, &script)), false))
                .and_then(|()| cx.order(Request::DaemonReload));
            if done.is_err() {
                // A partial configuration would be worse than none: the next start would fail or not find its script.
                for path in [&dropin, DEVICES, &script] {
                    let _ = place(cx, path, None, false);
                }
                return done;
            }
        }
    }
    if b.by_policy {
        // Sending the same list again makes irqbalance run the script again.
        send_banned_interrupts(cx, &b, b.banned.known().map_or(&[], Vec::as_slice))?;
    }
    Ok(())
}

fn addition(start: &str, script: &str) -> String {
    format!(
        "# Written by ringwise; removed by a reboot and by ringwise \
         rollback.\n[Service]\nExecStart=\nExecStart={start} --policyscript={script}\n"
    )
}

/// irqbalance runs it with the device's directory and the interrupt's number, and reads its output.
fn policy(next: Option<&str>) -> String {
    let mut out = format!(
        "#!/bin/sh\n# Written by ringwise for irqbalance, which skips the devices listed in {DEVICES}.\n\
         if [ -r {DEVICES} ]; then\n\twhile read -r device; do\n\t\tcase $1 in */\"$device\")\n\t\t\techo ban=true\n\
         \t\t\texit 0 ;;\n\t\tesac\n\tdone <{DEVICES}\nfi\n"
    );
    if let Some(next) = next {
        let next = format!("'{}'", next.replace('\'', "'\\''"));
        // In a directory of scripts, irqbalance uses the first script that exits with 0 (irqbalance(1)).
        out.push_str(&format!(
            "# The policy script with which irqbalance was started before.\nnext={next}\nif [ -d \"$next\" ]; then\n\
             \tfor script in \"$next\"/*; do\n\t\t[ -f \"$script\" ] && [ -x \"$script\" ] || continue\n\
             \t\tanswer=$(\"$script\" \"$@\") || continue\n\t\tprintf '%s\\n' \"$answer\"\n\t\texit 0\n\tdone\n\
             elif [ -x \"$next\" ]; then\n\texec \"$next\" \"$@\"\nfi\n"
        ));
    }
    out.push_str("exit 0\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_one() {
        for next in [None, Some("/etc/it's mine")] {
            let text = policy(next);
            let mut sh = std::process::Command::new("/bin/sh");
            let mut child = sh.arg("-n").stdin(std::process::Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), text.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "{text}");
        }
        assert!(policy(Some("/etc/it's mine")).contains(r"next='/etc/it'\''s mine'"));
    }
}
