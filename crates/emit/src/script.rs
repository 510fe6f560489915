//! A plan as a POSIX shell script with its undo, for hosts where ringwise is not to run.
//!
//! The script needs sh, cat, echo and sed; steps that use ethtool also need ethtool, awk, grep and sleep. It looks up
//! interrupts when it runs, by the name of their action among the vectors of the device.

mod call;
mod files;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use ringwise_knob::{Address, Setting, SettingMap, VectorName, collateral, irq, order, rules};
use ringwise_model::shell::quote;
use ringwise_model::{Dir, Fact, Nic, Rule, Snapshot};
use ringwise_plan::Plan;

use self::call::{Call, Need};

/// The script, or why the plan cannot be written as one.
pub fn text(plan: &Plan, s: &Snapshot) -> Result<String, String> {
    let steps: Vec<&Setting> = plan.steps.iter().map(|st| &st.setting).filter(|st| st.address().is_some()).collect();
    let (left_out, planned): (Vec<&Setting>, Vec<&Setting>) = steps.into_iter().partition(|st| netlink_alone(st));
    let by_address = |all: &[&Setting]| -> SettingMap {
        all.iter().filter_map(|st| Some((st.address()?, (*st).clone()))).collect::<BTreeMap<_, _>>()
    };
    let wanted = by_address(&planned);
    let found: Vec<&Setting> =
        plan.steps.iter().filter(|st| !netlink_alone(&st.setting)).filter_map(|st| st.from.known()).collect();
    let found = by_address(&found);
    let addresses: Vec<_> = wanted.keys().cloned().collect();
    let restarted: BTreeSet<String> =
        addresses.iter().filter(|a| a.interrupts_traffic_on(s)).filter_map(|a| a.dev().map(str::to_string)).collect();
    let mut before = collateral(s, &addresses);
    before.extend(found.clone());
    // The undo goes from the planned values to the previous ones. There, too, rules are removed before the number of
    // queues is reduced.
    let mut back: Vec<(Fact<Setting>, Setting)> =
        before.iter().map(|(a, v)| (Fact::Known(wanted.get(a).unwrap_or(v).clone()), v.clone())).collect();
    order(&mut back, |(from, to)| (from, to));
    let there = Way::new(s, &restarted, &wanted, [&wanted, &before]);
    let back_again = Way::new(s, &restarted, &before, [&wanted, &before]);

    let mut lists = Lists::default();
    lists.add("devices", plan.devices.iter().map(|d| Ok(vec![device_check(&d.name, d.bus_address.as_deref())])))?;
    lists.text.push_str("# Settings that no common tool can write.\n");
    lists.add("left_out", left_out.iter().map(|st| Ok(vec![Call::Echo(setting_text(st))])))?;
    lists.text.push_str("# The planned values.\n");
    lists.add("planned", planned.iter().map(|st| there.calls(st)))?;
    lists.text.push_str("# The values that were found.\n");
    lists.add("found", found.values().map(|v| back_again.calls(v)))?;
    lists.text.push_str("# The values to restore, with all settings that the script may disturb.\n");
    let calls = back.iter().map(|(_, v)| match (v.address(), back_again.calls(v)) {
        // The plan does not change this setting, but the script may cause it to be lost, so the script reports it.
        (Some(a), Err(_)) if !found.contains_key(&a) && may_be_lost(v) => Ok(vec![Call::Unable(a.to_string())]),
        (_, other) => other,
    });
    lists.add("before", calls)?;

    let mut out = String::from("#!/bin/sh\n");
    let _ = writeln!(
        out,
        "# Made by ringwise {} for {}, kernel {}: {}",
        env!("CARGO_PKG_VERSION"),
        word(&crate::summary::name(plan)),
        word(&ringwise_text::word(&plan.host.kernel, String::clone)),
        crate::summary::summary(plan)
    );
    out.push_str("# Run as root: apply writes the planned values, undo puts back the values that were found.\n");
    out.push_str("# Exit status: 0 done, 1 nothing changed, 3 done except what this script cannot write,\n");
    out.push_str("#   4 failed and restored, 5 failed and not restored, 6 refused.\n");
    out.push_str("set -u\nLC_ALL=C\nexport LC_ALL\n\n");
    list(&mut out, "tools", lists.needs.iter());
    out.push_str(&lists.text);
    out.push_str(include_str!("script.sh"));
    if !lists.needs.is_empty() {
        out.push_str(include_str!("script-ethtool.sh").trim_start());
        out.push('\n');
    }
    out.push_str(include_str!("script-main.sh"));
    Ok(out)
}

/// The lists of the script, and what their calls need.
#[derive(Default)]
struct Lists {
    text: String,
    needs: BTreeSet<Need>,
}

impl Lists {
    fn add(&mut self, name: &str, calls: impl Iterator<Item = Result<Vec<Call>, String>>) -> Result<(), String> {
        let calls: Vec<Call> = calls.collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect();
        self.needs.extend(calls.iter().flat_map(Call::needs));
        list(&mut self.text, name, calls.iter());
        Ok(())
    }
}

fn list<T: Display>(out: &mut String, name: &str, lines: impl Iterator<Item = T>) {
    let _ = writeln!(out, "{name}() {{");
    // A shell function must not be empty.
    out.push_str("  :\n");
    for l in lines {
        let _ = writeln!(out, "  {l}");
    }
    out.push_str("}\n\n");
}

/// Address and value as text for people.
fn setting_text(setting: &Setting) -> String {
    let address = setting.address().map(|a| a.to_string()).unwrap_or_default();
    word(&format!("{address}: {}", setting.value_text()))
}

/// Settings of single queues that only the netdev netlink family has: neither ethtool nor a file can set them. ethtool
/// has no options for profiles of DIM either.
fn netlink_alone(setting: &Setting) -> bool {
    match setting {
        Setting::Napi { .. } | Setting::NapiThread { .. } => true,
        Setting::NapiDevice { values, .. } => values.irq_suspend_timeout_ns.is_some(),
        Setting::Coalesce { params, .. } => params.keys().any(|k| words::of_profile(k)),
        _ => false,
    }
}

/// Text for a comment of one line.
fn word(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Checks that the device has the same bus address as before. The network device of a virtio device is one directory
/// deeper.
fn device_check(dev: &str, bus: Option<&str>) -> Call {
    let places = match bus {
        Some(b) => format!("/sys/bus/*/devices/{b}/net/{dev} /sys/bus/*/devices/{b}/virtio*/net/{dev}"),
        None => format!("/sys/class/net/{dev}"),
    };
    Call::SameDevice { dev: dev.into(), places }
}

/// One direction of the script (apply or undo): the snapshot, and the settings after it.
struct Way<'a> {
    s: &'a Snapshot,
    restarted: &'a BTreeSet<String>,
    after: &'a SettingMap,
    all: [&'a SettingMap; 2],
    /// Numbers of RSS contexts that may exist while the script runs, by device.
    contexts: BTreeMap<&'a str, BTreeSet<u32>>,
}

impl<'a> Way<'a> {
    fn new(s: &'a Snapshot, restarted: &'a BTreeSet<String>, after: &'a SettingMap, all: [&'a SettingMap; 2]) -> Self {
        let mut contexts: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for a in all.into_iter().flat_map(|m| m.keys()) {
            if let Address::RssContext { dev, context } = a {
                contexts.entry(dev).or_default().insert(*context);
            }
        }
        for n in &s.nics {
            let there = n.rss.known().and_then(|r| r.contexts.known()).into_iter().flat_map(|c| c.keys());
            contexts.entry(n.name()).or_default().extend(there);
        }
        Self { s, restarted, after, all, contexts }
    }

    /// The rule behind an address that is derived from the content of the rule.
    fn rule_by_content(&self, dev: &str, location: u32) -> Option<Rule> {
        let address = Address::FlowRule { dev: dev.into(), location };
        let planned = self.all.iter().find_map(|m| match m.get(&address) {
            Some(Setting::FlowRule { rule, .. }) => rule.clone(),
            _ => None,
        });
        let listed =
            || self.s.nic(dev)?.rules.known()?.rules.values().find(|r| rules::by_content(r) == location).cloned();
        planned.or_else(listed)
    }

    fn calls(&self, setting: &Setting) -> Result<Vec<Call>, String> {
        let one = match setting {
            Setting::IrqCpus { dev, of, cpus, .. } => {
                let actions = names(action(self.s, dev, *of)?, *of, self.restarted.contains(dev));
                Call::Irq { dev: dev.clone(), actions, cpus: cpus.to_string() }
            }
            Setting::IrqbalanceRestart { dev, .. } | Setting::IrqbalanceBan { dev, .. } => {
                Call::ByHand { dev: dev.clone() }
            }
            Setting::Other(v) => return Err(format!("a setting of a newer version of ringwise: {v}")),
            other => {
                return match files::calls(other) {
                    Some(calls) => Ok(calls),
                    None => words::calls(self, other),
                };
            }
        };
        Ok(vec![one])
    }

    /// Receive queues of the device after this direction; `None`: unknown.
    fn rx_queues(&self, dev: &str) -> Option<u32> {
        let nic = self.s.nic(dev)?;
        let Some(Setting::Channels { rx, combined, .. }) = self.after.get(&Address::Channels { dev: dev.into() })
        else {
            return nic.queues_in_use(Dir::Rx);
        };
        let now = nic.channels.known();
        let rx = rx.or(now.and_then(|c| c.rx).map(|c| c.now));
        let combined = combined.or(now.and_then(|c| c.combined).map(|c| c.now));
        // A device has at least one queue. If no number is above 0, the driver reported none, and the number of queues
        // stays as it is.
        Some(rx.unwrap_or(0) + combined.unwrap_or(0)).filter(|n| *n > 0).or(nic.queues_in_use(Dir::Rx))
    }
}

/// Settings outside of the plan that the script cannot restore exactly. They do not prevent a script.
fn may_be_lost(setting: &Setting) -> bool {
    netlink_alone(setting)
        || matches!(
            setting,
            Setting::RssHash { .. } | Setting::RssFields { .. } | Setting::RssContext { .. } | Setting::FlowRule { .. }
        )
}

/// The name by which the script finds the vector when it runs.
fn action(s: &Snapshot, dev: &str, of: VectorName) -> Result<String, String> {
    let nic = s.nic(dev).ok_or_else(|| format!("{dev} is not in the snapshot"))?;
    let name = match irq::vector(nic, of) {
        Some(v) => v
            .names
            .first()
            .cloned()
            .ok_or_else(|| format!("{dev} {of}: its interrupt has no name (is the link down?)"))?,
        None => {
            by_pattern(nic, of).ok_or_else(|| format!("{dev} {of}: the future name of its interrupt is unknown"))?
        }
    };
    if nic.vectors.iter().filter(|v| v.names.contains(&name)).count() > 1 {
        return Err(format!("{dev}: more than one of its interrupts is named {name}; use ringwise apply"));
    }
    if name.contains(|c: char| c == ',' || c.is_whitespace()) {
        return Err(format!("{dev}: the interrupt name {name:?} cannot be looked up by a script"));
    }
    Ok(name)
}

/// The name. If the script changes the channels, also the name of the same queue when the driver combines or separates
/// the two directions (igb, ixgbe, i40e).
fn names(name: String, of: VectorName, restarted: bool) -> String {
    let single = if matches!(of, VectorName::Tx(_)) { "-tx-" } else { "-rx-" };
    let other = match () {
        () if name.contains("-TxRx-") => name.replace("-TxRx-", single),
        () if name.contains(single) => name.replace(single, "-TxRx-"),
        () => return name,
    };
    if restarted { format!("{name} {other}") } else { name }
}

/// The name for a queue that an earlier step creates: that of another queue with the number replaced.
fn by_pattern(nic: &Nic, of: VectorName) -> Option<String> {
    let (dir, queue) = match of {
        VectorName::Rx(q) => (Dir::Rx, q),
        VectorName::Tx(q) => (Dir::Tx, q),
        VectorName::Control(_) => return None,
    };
    nic.queue_vectors().find_map(|v| {
        let have = *if dir == Dir::Rx { v.rx().first() } else { v.tx().first() }?;
        let name = v.names.first()?;
        let number = have.to_string();
        let at = name.rfind(&number)?;
        let (head, tail) = (&name[..at], &name[at + number.len()..]);
        let whole = !head.ends_with(|c: char| c.is_ascii_digit()) && !tail.starts_with(|c: char| c.is_ascii_digit());
        whole.then(|| format!("{head}{queue}{tail}"))
    })
}
