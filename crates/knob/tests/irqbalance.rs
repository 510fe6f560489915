//! Interrupts that irqbalance ignores: what counts as done, now and after a restart of irqbalance.

use ringwise_knob::irqbalance::BannedInterrupts;
use ringwise_knob::{Address, Match, Setting, compare, live, project};
use ringwise_model::{Fact, Irqbalance, Snapshot};

use crate::commands::host;

/// A host whose irqbalance runs as a service, without anything from ringwise.
fn balanced() -> Snapshot {
    let mut s = host();
    s.host.irqbalance = Fact::Known(Irqbalance {
        pid: 812,
        socket: Fact::Known("/run/irqbalance/irqbalance812.sock".into()),
        interval_s: Fact::Known(10),
        args: Fact::Known(vec!["--foreground".into()]),
        banned: Fact::Known(Vec::new()),
        unit: Fact::Known("irqbalance.service".into()),
        start: Some("/usr/sbin/irqbalance --foreground".into()),
        kept: Vec::new(),
        addition: false,
        by_policy: false,
        ours: Vec::new(),
    });
    s
}

fn irqbalance(s: &mut Snapshot) -> &mut Irqbalance {
    match &mut s.host.irqbalance {
        Fact::Known(b) => b,
        other => panic!("{other:?}"),
    }
}

fn bus(s: &Snapshot) -> String {
    s.nics[0].dev.bus_address.clone().expect("a PCI device")
}

fn restart(left: bool) -> Setting {
    Setting::IrqbalanceRestart { dev: "eth0".into(), left }
}

fn ban(left: BannedInterrupts) -> Setting {
    Setting::IrqbalanceBan { dev: "eth0".into(), left }
}

/// The unit is extended for the first device, and its extension is removed with the last one.
#[test]
fn the_unit_is_extended_while_a_device_needs_it() {
    let mut s = balanced();
    let address = Address::IrqbalanceRestart { dev: "eth0".into() };
    for left in [true, false] {
        project(&mut s, &restart(left)).expect("can be projected");
        assert_eq!(irqbalance(&mut s).addition, left);
        assert_eq!(live(&s, &address), Fact::Known(restart(left)));
    }
    // Another device still needs it.
    irqbalance(&mut s).kept.push("0000:99:00.0".into());
    for left in [true, false] {
        project(&mut s, &restart(left)).expect("can be projected");
        assert!(irqbalance(&mut s).addition);
    }
}

#[test]
fn nothing_is_left_to_do_while_irqbalance_does_not_run() {
    let mut s = balanced();
    for setting in [ban(BannedInterrupts::All), restart(true)] {
        s.host.irqbalance = balanced().host.irqbalance;
        assert_eq!(compare(&setting, &s), Match::Differs);
        s.host.irqbalance = Fact::Absent;
        assert_eq!(compare(&setting, &s), Match::Same);
    }
    // A running irqbalance does not know a device that is gone.
    let gone = Setting::IrqbalanceBan { dev: "eth9".into(), left: BannedInterrupts::All };
    assert_eq!(compare(&gone, &balanced()), Match::Gone);
}

/// A ban of a former interrupt number is still to be removed, although no interrupt of the device is banned.
#[test]
fn bans_of_former_interrupt_numbers_are_not_done() {
    let mut s = balanced();
    let none = ban(BannedInterrupts::none());
    assert_eq!(compare(&none, &s), Match::Same);
    let (bus, former) = (bus(&s), 9999);
    let b = irqbalance(&mut s);
    (b.banned, b.ours) = (Fact::Known(vec![former]), vec![(bus, former)]);
    assert_eq!(live(&s, &Address::IrqbalanceBan { dev: "eth0".into() }), Fact::Known(none.clone()));
    assert_eq!(compare(&none, &s), Match::Differs);
    // A ban that ringwise did not add stays.
    irqbalance(&mut s).ours.clear();
    assert_eq!(compare(&none, &s), Match::Same);
}

/// After a crash: the device is in ringwise's list, but the unit is not extended.
#[test]
fn a_device_in_the_list_without_the_extension_is_not_done() {
    let mut s = balanced();
    assert_eq!(compare(&restart(false), &s), Match::Same);
    let bus = bus(&s);
    irqbalance(&mut s).kept.push(bus);
    assert_eq!(compare(&restart(false), &s), Match::Differs);
    irqbalance(&mut s).kept = vec!["0000:99:00.0".into()];
    assert_eq!(compare(&restart(false), &s), Match::Same, "another device");
}
