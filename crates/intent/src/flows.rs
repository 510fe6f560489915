//! Looks up the flows of programs and systemd units by the sockets on which they listen now.

use ringwise_discover::sockets::{Listener, listeners, who};
use ringwise_model::{Flow, FlowsUnknown, Intent};
use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::missing::UnsteeredFlow;

/// Adds the looked-up flows to `intent`; the names stay, because the plan mentions them. A program that does not listen
/// is an error, because a group needs at least one flow. At boot it is skipped, because programs may start later.
pub fn look_up(host: &dyn Host, intent: &mut Intent, at_boot: bool) -> Result<Vec<UnsteeredFlow>> {
    let mut missing = Vec::new();
    for g in &mut intent.groups {
        let mut flows = Vec::new();
        for f in std::mem::take(&mut g.flows) {
            let Some(who) = who(&f) else {
                flows.push(f);
                continue;
            };
            let found = match listeners(host, &f) {
                _ if host.is_recorded() => Err(FlowsUnknown::NotRecorded),
                Ok(found) => {
                    let matches: Vec<_> = found.iter().flat_map(Listener::matches).collect();
                    if matches.is_empty() { Err(FlowsUnknown::LoopbackOnly) } else { Ok(matches) }
                }
                Err(e) => Err(e.why),
            };
            flows.push(f);
            match found {
                Ok(all) => flows.extend(all.into_iter().map(|(flow, fields)| Flow::Match { flow, fields })),
                Err(why) => {
                    let (dev, group, by) = (g.dev.clone(), g.name.clone(), g.by.clone());
                    missing.push(UnsteeredFlow { dev, group, who, why, by });
                }
            }
        }
        // Two programs may listen on the same port; it is one flow.
        for f in flows {
            if !g.flows.contains(&f) {
                g.flows.push(f);
            }
        }
    }
    if missing.is_empty() || host.is_recorded() || (at_boot && !intent.strict) {
        return Ok(missing);
    }
    Err(Error::FlowsUnknown(missing))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpListener;

    use ringwise_model::{ConfiguredBy, GroupQueues, GroupWish};
    use ringwise_plan::Obstacle;
    use ringwise_sys::{Captured, Real};
    use ringwise_testkit::sim::{Sim, build};

    use super::*;

    fn wanted(flow: Flow) -> Intent {
        let group = GroupWish {
            name: "web".into(),
            dev: "mq0".into(),
            policy: "latency".into(),
            queues: GroupQueues::Auto,
            cpus: None,
            weight: None,
            context: false,
            flows: vec![flow],
            by: ConfiguredBy::File { path: "/etc/ringwise/ringwise.toml".into(), line: 9 },
        };
        Intent { groups: vec![group], ..Intent::default() }
    }

    fn sim() -> Sim {
        Sim::new(&build::host(4, 1).mqnic("mq0", 0, 4).done())
    }

    #[test]
    fn a_program_that_does_not_run_is_an_error_with_its_place() {
        let sim = sim();
        let mut i = wanted(Flow::Program("nosuch".into()));
        let e = look_up(&sim, &mut i, false).unwrap_err().to_string();
        assert!(
            e.starts_with("/etc/ringwise/ringwise.toml line 9: group web: program \"nosuch\": not running ("),
            "{e}"
        );
        let mut i = wanted(Flow::Unit("nosuch".into()));
        let e = look_up(&sim, &mut i, false).unwrap_err().to_string();
        assert!(e.contains(": group web: unit \"nosuch.service\": not running ("), "{e}");
        let fields: std::collections::BTreeMap<_, _> = [("dst-port".to_string(), "80".to_string())].into();
        let mut i = wanted(Flow::Match { flow: "tcp4".into(), fields });
        let before = i.clone();
        assert_eq!(look_up(&sim, &mut i, false).unwrap(), []);
        assert_eq!(i, before);
    }

    #[test]
    fn at_boot_it_is_skipped_and_named() {
        let sim = sim();
        let mut i = wanted(Flow::Unit("late".into()));
        let missing = look_up(&sim, &mut i, true).unwrap();
        assert_eq!(missing.len(), 1);
        let n = missing[0].not_possible();
        assert_eq!((n.what.as_str(), n.needed), ("mq0 group web: flows of unit \"late.service\"", true));
        let Obstacle::Configured { obstacle, by } = &n.why else { panic!("{:?}", n.why) };
        assert!(
            matches!(**obstacle, Obstacle::FlowsNotFound { why: FlowsUnknown::NotRunning { processes: 1.. } }),
            "{obstacle:?}"
        );
        assert_eq!(by[..], [ConfiguredBy::File { path: "/etc/ringwise/ringwise.toml".into(), line: 9 }]);
        assert_eq!(i.groups[0].flows, [Flow::Unit("late".into())], "the name stays");
        i.strict = true;
        assert!(look_up(&sim, &mut i, true).is_err());
    }

    #[test]
    fn a_recording_does_not_contain_listeners() {
        let dir = std::env::temp_dir().join(format!("ringwise-flows-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sys/class/net")).unwrap();
        let host = Captured::open(&dir).unwrap();
        let mut i = wanted(Flow::Program("nginx".into()));
        let missing = look_up(&host, &mut i, false).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(
            missing[0].to_string(),
            "/etc/ringwise/ringwise.toml line 9: group web: program \"nginx\": the recording does not contain where it \
             listened"
        );
    }

    /// The test process itself listens, on a port that the kernel chose.
    #[test]
    fn the_name_stays_beside_what_was_found() {
        let socket = match TcpListener::bind("0.0.0.0:0") {
            Ok(s) => s,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return,
            Err(e) => panic!("{e}"),
        };
        let port = socket.local_addr().unwrap().port().to_string();
        let name = std::env::current_exe().unwrap().display().to_string();
        let mut i = wanted(Flow::Program(name.clone()));
        assert_eq!(look_up(&Real::new().unwrap(), &mut i, false).unwrap(), []);
        assert_eq!(i.groups[0].flows[0], Flow::Program(name));
        let fields = [("dst-port".to_string(), port)].into();
        assert!(i.groups[0].flows.contains(&Flow::Match { flow: "tcp4".into(), fields }), "{:?}", i.groups[0].flows);
    }
}
