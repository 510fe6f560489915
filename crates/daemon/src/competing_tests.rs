//! irqbalance that loses its bans again and again: the service leaves the interface alone. The lab has the same in 367-daemon-irqbalance.sh.

use std::sync::Arc;

use ringwise_model::Goal;
use ringwise_testkit::sim::{Sim, build};

use crate::event::Event;
use crate::pauses::PauseReason;
use crate::service_tests::{Rig, later};

/// A host whose irqbalance has banned the interrupts of the only interface.
fn beside_irqbalance() -> Rig {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done()));
    sim.irqbalance(&["--foreground"], false);
    let rig = Rig::of(sim, Goal::Forward);
    assert!(rig.holds() && !rig.sim.irqbalance_bans().is_empty());
    rig
}

/// It forgets its bans and moves every interrupt.
fn moves_back(rig: &Rig) {
    rig.sim.irqbalance_restart();
    rig.sim.irqbalance_scan();
    assert!(!rig.holds());
}

#[test]
fn a_program_that_moves_settings_back_twice_is_left_alone() {
    let rig = beside_irqbalance();
    let events = rig.serve(|service| {
        // The first two times, its bans and the interrupts are set again.
        for transactions in [2, 3] {
            moves_back(&rig);
            later(service);
            service.look(true);
            assert!(rig.holds(), "{:?}", service.state);
            assert_eq!((rig.journals(), service.pauses.list()), (transactions, Vec::new()));
        }
        // It has now undone the service's work twice.
        moves_back(&rig);
        later(service);
        service.look(true);
        let pauses = service.pauses.list();
        assert_eq!(pauses.len(), 1, "{pauses:?}");
        assert_eq!(pauses[0].why, PauseReason::Competing { program: "irqbalance".into() });
        later(service);
        service.look(true);
        assert!(!rig.holds(), "nothing is written during the pause");
        assert_eq!(rig.journals(), 3);
        // `ringwise daemon resume eth0`
        service.pauses.resume("eth0");
        later(service);
        service.look(true);
        assert!(rig.holds(), "{:?}", service.state);
    });
    let named: Vec<&Event> = events.iter().filter(|e| matches!(e, Event::Paused { .. })).collect();
    assert_eq!(named.len(), 1, "it is named once: {named:?}");
    let Event::Paused { interface, program, until_unix } = named[0] else { unreachable!() };
    assert_eq!((interface.as_str(), program.as_str()), ("eth0", "irqbalance"));
    assert!(*until_unix > 0);
}
