//! Interrupts of a device that irqbalance ignores: now (its list of bans) and after its restart (ringwise's policy
//! script). These settings are neither read nor written while irqbalance does not run.

use std::collections::BTreeSet;

use ringwise_model::errno::{ECONNREFUSED, EMSGSIZE, ENOENT};
use ringwise_model::{Fact, Irqbalance, Nic, Snapshot};
use serde::{Deserialize, Serialize};

use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, VectorName, irq, known, path};

pub(crate) struct RivalsFamily;

impl Descriptor for RivalsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let dev = || nic.dev.name.clone();
        vec![Address::IrqbalanceRestart { dev: dev() }, Address::IrqbalanceBan { dev: dev() }]
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::IrqbalanceRestart { dev } => format!("{dev} irqbalance after its restart"),
            other => format!("{} irqbalance", other.dev().unwrap_or_default()),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::IrqbalanceRestart { dev } => live_restart(s, dev),
            Address::IrqbalanceBan { dev } => live_ban(s, dev),
            _ => Fact::Absent,
        }
    }

    fn compare(&self, s: &Snapshot, want: &Setting, got: &Fact<Setting>) -> Match {
        compare(s, want, got)
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::IrqbalanceRestart { dev, left } => project_restart(s, dev, *left),
            Setting::IrqbalanceBan { dev, left } => project_ban(s, dev, left),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        match (address, errno) {
            (Address::IrqbalanceRestart { .. }, _) => {
                Some((Reaction::Refused, "when irqbalance is restarted, it will move these interrupts again"))
            }
            (_, Some(EMSGSIZE)) => {
                Some((Reaction::Refused, "the list of bans is longer than irqbalance reads from its socket"))
            }
            (_, Some(ENOENT | ECONNREFUSED)) => {
                Some((Reaction::Retry, "irqbalance is being restarted, or has stopped"))
            }
            _ => None,
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::IrqbalanceRestart { left, .. } => text_restart(*left),
            Setting::IrqbalanceBan { left, .. } => text(left),
            _ => String::new(),
        }
    }

    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::IrqbalanceRestart { dev, left } => command_restart(now, dev, *left),
            Setting::IrqbalanceBan { dev, left } => command(now, dev, left),
            _ => None,
        }
    }
}

/// Interrupts of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BannedInterrupts {
    /// All interrupts, including those of future queues.
    All,
    /// Only these interrupts; none if the set is empty.
    These(BTreeSet<VectorName>),
}

impl BannedInterrupts {
    /// No interrupts.
    pub fn none() -> Self {
        Self::These(BTreeSet::new())
    }

    fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::These(_), Self::All) => false,
            (Self::These(a), Self::These(b)) => b.is_subset(a),
        }
    }
}

fn running<'a>(s: &'a Snapshot, dev: &str) -> Fact<(&'a Irqbalance, &'a Nic)> {
    match (&s.host.irqbalance, s.nic(dev)) {
        (Fact::Known(b), Some(n)) => Fact::Known((b, n)),
        (Fact::Unknown(u), Some(_)) => Fact::Unknown(u.clone()),
        _ => Fact::Absent,
    }
}

fn bus(nic: &Nic) -> Option<&str> {
    // Domain, bus, slot and function: the form in which irqbalance names a device.
    nic.dev.bus_address.as_deref().filter(|b| b.matches(':').count() == 2)
}

/// Absent: irqbalance does not run, or the device has no interrupts now.
pub fn live_ban(s: &Snapshot, dev: &str) -> Fact<Setting> {
    let (b, nic) = match running(s, dev) {
        Fact::Known(k) => k,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(u) => return Fact::Unknown(u),
    };
    if nic.vectors.is_empty() {
        return Fact::Absent;
    }
    let left = if bus(nic).is_some_and(|a| b.bans_device(a)) {
        BannedInterrupts::All
    } else {
        match &b.banned {
            Fact::Known(list) => of_list(nic, list),
            Fact::Absent => return Fact::Absent,
            Fact::Unknown(u) => return Fact::Unknown(u.clone()),
        }
    };
    Fact::Known(Setting::IrqbalanceBan { dev: dev.to_string(), left })
}

fn of_list(nic: &Nic, list: &[u32]) -> BannedInterrupts {
    let has = |irq: u32| list.binary_search(&irq).is_ok();
    if nic.vectors.iter().all(|v| has(v.irq.0)) {
        return BannedInterrupts::All;
    }
    let of = irq::addresses(nic).into_iter();
    BannedInterrupts::These(
        of.filter(|of| irq::vector(nic, *of).is_some_and(|v| has(v.irq.0))).collect::<BTreeSet<_>>(),
    )
}

/// Absent: irqbalance is not a systemd service, or its unit cannot be extended.
pub fn live_restart(s: &Snapshot, dev: &str) -> Fact<Setting> {
    let (b, nic) = match running(s, dev) {
        Fact::Known(k) => k,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(u) => return Fact::Unknown(u),
    };
    let Some(bus) = bus(nic).filter(|_| b.unit.is_known() && b.start.is_some()) else {
        return Fact::Absent;
    };
    let left = b.addition && b.kept.iter().any(|k| k == bus);
    Fact::Known(Setting::IrqbalanceRestart { dev: dev.to_string(), left })
}

pub(crate) fn project_ban(s: &mut Snapshot, dev: &str, left: &BannedInterrupts) -> Result<(), NotProjected> {
    let nic = s.nics.iter().find(|n| n.dev.name == dev).ok_or(NotProjected("no such device"))?;
    let b = known(&mut s.host.irqbalance)?;
    let (before, wanted) = (bans_of_others(b, nic), list(b, nic, left));
    let (Some(before), Some(wanted)) = (before, wanted) else {
        return Err(NotProjected("the bans of irqbalance are unknown"));
    };
    let bus = nic.dev.bus_address.clone().unwrap_or_default();
    b.ours.retain(|(a, _)| *a != bus);
    b.ours.extend(wanted.iter().filter(|n| !before.contains(n)).map(|n| (bus.clone(), *n)));
    b.banned = Fact::Known(wanted);
    Ok(())
}

pub(crate) fn project_restart(s: &mut Snapshot, dev: &str, left: bool) -> Result<(), NotProjected> {
    let nic = s.nics.iter().find(|n| n.dev.name == dev).ok_or(NotProjected("no such device"))?;
    let bus = bus(nic).ok_or(NotProjected("the device has no bus address"))?;
    let b = known(&mut s.host.irqbalance)?;
    b.kept.retain(|k| k != bus);
    if left {
        b.kept.push(bus.to_string());
        b.kept.sort();
    }
    b.addition = !b.kept.is_empty();
    Ok(())
}

/// irqbalance moves nothing while it does not run.
pub fn compare(s: &Snapshot, want: &Setting, got: &Fact<Setting>) -> Match {
    match got {
        _ if s.host.irqbalance.is_absent() => Match::Same,
        Fact::Known(got) if got == want && !half_way(s, got) => Match::Same,
        Fact::Known(_) => Match::Differs,
        Fact::Absent => Match::Gone,
        Fact::Unknown(u) => Match::Unknown(u.clone()),
    }
}

/// Whether ringwise left something incomplete: banned numbers that no longer belong to the device, or (after a crash) the
/// list of devices without the extension of the unit.
fn half_way(s: &Snapshot, got: &Setting) -> bool {
    let dev = match got {
        Setting::IrqbalanceBan { dev, .. } | Setting::IrqbalanceRestart { dev, left: false } => dev,
        _ => return false,
    };
    let Some((b, nic)) = running(s, dev).known().copied() else { return false };
    if matches!(got, Setting::IrqbalanceRestart { .. }) {
        return b.kept.iter().any(|k| Some(k.as_str()) == nic.dev.bus_address.as_deref());
    }
    let banned = |n: u32| b.banned.known().is_some_and(|l| l.binary_search(&n).is_ok());
    let own = |n: u32| nic.vectors.iter().any(|v| v.irq.0 == n);
    b.ours.iter().any(|(a, n)| Some(a.as_str()) == nic.dev.bus_address.as_deref() && banned(*n) && !own(*n))
}

/// Whether irqbalance may move interrupts again that it ignores now. A rollback does this last, because irqbalance moves
/// them at once.
pub fn lifts_ban(from: &Fact<Setting>, to: &Setting) -> bool {
    match (from.known(), to) {
        (_, Setting::IrqbalanceRestart { left, .. }) => !left,
        (Some(Setting::IrqbalanceBan { left: from, .. }), Setting::IrqbalanceBan { left: to, .. }) => !to.holds(from),
        _ => false,
    }
}

/// The complete list of bans for irqbalance. It keeps the bans that ringwise did not add, and the bans of other devices.
pub fn list(b: &Irqbalance, nic: &Nic, left: &BannedInterrupts) -> Option<Vec<u32>> {
    let mut out: BTreeSet<u32> = bans_of_others(b, nic)?.into_iter().collect();
    match left {
        BannedInterrupts::All => out.extend(nic.vectors.iter().map(|v| v.irq.0)),
        BannedInterrupts::These(of) => {
            // Bans of this device's vectors are replaced, whoever added them.
            nic.vectors.iter().for_each(|v| _ = out.remove(&v.irq.0));
            out.extend(of.iter().filter_map(|of| irq::vector(nic, *of)).map(|v| v.irq.0));
        }
    }
    Some(out.into_iter().collect())
}

/// The current list without the bans that ringwise added for this device, including those of its former interrupt
/// numbers.
pub fn bans_of_others(b: &Irqbalance, nic: &Nic) -> Option<Vec<u32>> {
    let bus = nic.dev.bus_address.as_deref();
    let ours = b.ours.iter().filter(|(a, _)| Some(a.as_str()) == bus).map(|(_, n)| *n).collect::<BTreeSet<_>>();
    Some(b.banned.known()?.iter().copied().filter(|n| !ours.contains(n)).collect())
}

/// Text of the ignored interrupts for people.
pub fn text(left: &BannedInterrupts) -> String {
    match left {
        BannedInterrupts::All => "all banned".into(),
        BannedInterrupts::These(of) if of.is_empty() => "none banned".into(),
        BannedInterrupts::These(of) => {
            let of: Vec<String> = of.iter().map(VectorName::to_string).collect();
            format!("{} banned", of.join(" "))
        }
    }
}

/// Text of [`Setting::IrqbalanceRestart`] for people.
pub fn text_restart(left: bool) -> String {
    if left { "banned".into() } else { "balanced".into() }
}

/// irqbalance comes without a tool that sends it a list; socat can write to its socket.
pub fn command(now: &Snapshot, dev: &str, left: &BannedInterrupts) -> Option<String> {
    let (b, nic) = running(now, dev).known().copied()?;
    let list: Vec<String> = list(b, nic, left)?.iter().map(u32::to_string).collect();
    let list = if list.is_empty() { "NONE".to_string() } else { list.join(" ") };
    let socket = b.socket.known()?;
    Some(format!("printf 'settings ban irqs {list}' | socat - UNIX-CONNECT:{socket}"))
}

/// The command for the state after a restart of irqbalance.
pub fn command_restart(now: &Snapshot, dev: &str, left: bool) -> Option<String> {
    let (_, nic) = running(now, dev).known().copied()?;
    let bus = bus(nic)?;
    let file = path::IRQBALANCE_DEVICES;
    Some(if left { format!("echo {bus} >> {file}") } else { format!("sed -i '/^{bus}$/d' {file}") })
}
