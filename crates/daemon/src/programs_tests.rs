//! Flow rules follow a program that starts, listens elsewhere and ends. The lab has the same in 379-daemon-programs.sh.

use std::sync::Arc;

use ringwise_model::Goal;
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Sim, build};

use crate::event::Event;
use crate::service_tests::{Rig, later};
use crate::state::ActionCause;

/// A group to which this flow is steered.
fn group(flow: &str) -> String {
    format!(
        "version = 1
[[interface]]
match = {{ name = \"mq0\" }}
goal = \"mixed\"
[[interface.group]]
name = \"cache\"
policy = \"latency\"
queues = 2
flows = [{{ {flow} }}]
"
    )
}

/// The TCP ports that rules of `mq0` steer.
fn steered(rig: &Rig) -> Vec<String> {
    let now = rig.now();
    let rules = now.nic("mq0").unwrap().rules.known().unwrap();
    rules.rules.values().filter_map(|r| r.fields.get("dst-port").cloned()).collect()
}

/// A host with a service whose only group has this flow. No rule is set yet.
fn rig(flow: &str) -> (Rig, Dir) {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("mq0", 0, 8).done()));
    let mut rig = Rig::of(sim, Goal::Balanced);
    let dir = Dir::new();
    rig.setup.store =
        ringwise_apply::Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-daemon{}", dir.0.display()));
    let file = dir.0.join("ringwise.toml");
    std::fs::write(&file, group(flow)).unwrap();
    rig.setup.config = Some(file);
    (rig, dir)
}

#[test]
fn rules_follow_a_program_that_starts_and_listens_elsewhere() {
    follows("program = \"cached\"", "/user.slice/session-1.scope");
}

#[test]
fn rules_follow_the_processes_of_a_service() {
    follows("unit = \"cache\"", "/system.slice/cache.service");
    follows("unit = \"cache@1.service\"", "/system.slice/system-cache.slice/cache@1.service/workers");
}

/// A slice or a scope is a control group with processes below it; pods and containers are in such.
#[test]
fn rules_follow_the_processes_of_a_control_group() {
    follows("unit = \"kubepods-pod7.slice\"", "/kubepods.slice/kubepods-pod7.slice/cri-containerd-1a.scope");
    follows("unit = \"cri-containerd-1a.scope\"", "/kubepods.slice/kubepods-pod7.slice/cri-containerd-1a.scope");
}

/// The rules of a flow, while `cached` runs in this control group.
fn follows(flow: &str, control_group: &str) {
    let (rig, _dir) = rig(flow);
    rig.sim.control_group("cached", control_group);
    // Another program beside it.
    rig.sim.control_group("other", "/system.slice/other.service");
    rig.sim.listens("other", Some(9000));
    let mut events = Vec::new();
    let mut log = |e: &Event| events.push(e.clone());
    let process = ringwise_apply::ProcessId { pid: std::process::id(), started: 1 };
    let signals = ringwise_sys::proc::install_signal_flag().unwrap();
    let mut service = crate::service::Service::new(&rig.host, &rig.setup, process, signals, &mut log);
    service.load();
    service.look(true);
    assert_eq!((rig.journals(), steered(&rig)), (1, Vec::new()), "{:?}", service.state);

    // It starts after the host: the rule is added, and nothing else is changed.
    for (transactions, port) in [(2, 7000), (3, 7001)] {
        rig.sim.listens("cached", Some(port));
        later(&mut service);
        service.look(false);
        assert_eq!((rig.journals(), steered(&rig)), (transactions, vec![port.to_string()]), "{:?}", service.state);
        assert_eq!(service.state.actions.last().map(|a| a.cause), Some(ActionCause::Programs));
        later(&mut service);
        service.look(false);
        service.look(true);
        assert_eq!(rig.journals(), transactions, "then there is nothing to do");
    }

    // What happens during a pause is found when it ends.
    service.pauses.pause("mq0");
    rig.sim.listens("cached", Some(7002));
    later(&mut service);
    service.look(false);
    service.look(true);
    assert_eq!((rig.journals(), steered(&rig)), (3, vec!["7001".to_string()]));
    service.pauses.resume("mq0");
    service.look(false);
    assert_eq!((rig.journals(), steered(&rig)), (4, vec!["7002".to_string()]), "{:?}", service.state);

    // While it does not run, its rule stays.
    rig.sim.listens("cached", None);
    later(&mut service);
    service.look(false);
    service.look(true);
    assert_eq!((rig.journals(), steered(&rig)), (4, vec!["7002".to_string()]));
    rig.sim.listens("cached", Some(7002));
    service.look(false);
    assert_eq!(rig.journals(), 4, "it listens where it did");

    // Where its sockets cannot be read, nothing is written, and the reason is reported once.
    rig.sim.sockets_unreadable(true);
    service.look(false);
    service.look(true);
    assert_eq!((rig.journals(), steered(&rig)), (4, vec!["7002".to_string()]));
    drop(service);
    let refused = |e: &&Event| matches!(e, Event::Note(text) if text.contains("EACCES"));
    assert_eq!(events.iter().filter(refused).count(), 1, "{events:?}");
}

/// A process that moves to another unit, and one that joins.
#[test]
fn rules_follow_processes_into_and_out_of_a_unit() {
    let (rig, _dir) = rig("unit = \"cache\"");
    rig.sim.control_group("cached", "/user.slice/session-1.scope");
    rig.sim.listens("cached", Some(7000));
    let mut log = |_: &Event| {};
    let process = ringwise_apply::ProcessId { pid: std::process::id(), started: 1 };
    let signals = ringwise_sys::proc::install_signal_flag().unwrap();
    let mut service = crate::service::Service::new(&rig.host, &rig.setup, process, signals, &mut log);
    service.load();
    service.look(true);
    let next = |service: &mut crate::service::Service| {
        later(service);
        service.look(false);
        let mut ports = steered(&rig);
        ports.sort_unstable();
        ports
    };
    assert!(next(&mut service).is_empty(), "it was started outside of the unit");
    rig.sim.control_group("cached", "/system.slice/cache.service");
    assert_eq!(next(&mut service), ["7000"], "{:?}", service.state);
    // A second process of the unit, under another name.
    rig.sim.control_group("helper", "/system.slice/cache.service");
    rig.sim.listens("helper", Some(7100));
    assert_eq!(next(&mut service), ["7000", "7100"], "{:?}", service.state);
    rig.sim.control_group("cached", "/system.slice/other.service");
    assert_eq!(next(&mut service), ["7100"], "{:?}", service.state);
    // The unit is empty: its last rules match nothing, and stay.
    rig.sim.listens("helper", None);
    assert_eq!(next(&mut service), ["7100"], "{:?}", service.state);
}
