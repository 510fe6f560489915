//! Flows that are named by a program or a systemd unit: where it listens now.

use ringwise_discover::sockets::{Listener, listeners};
use ringwise_model::{Flow, Intent};
use ringwise_sys::Host;

use crate::args::Common;
use crate::exit::{Fail, Result};
use crate::out;

/// Puts the fields beside the names, which stay for what is proposed about the programs. One that does not run
/// is an error: a group without its flows is none.
pub fn look_up(host: &dyn Host, intent: &mut Intent, common: &Common) -> Result<()> {
    let mut wrong = Vec::new();
    for g in &mut intent.groups {
        let mut flows = Vec::new();
        for f in std::mem::take(&mut g.flows) {
            let name = match &f {
                Flow::Match { .. } => {
                    flows.push(f);
                    continue;
                }
                Flow::Program(n) | Flow::Unit(n) => n.clone(),
            };
            if host.is_recorded() {
                let text = format!("ringwise: group {}: where {name} listened stands in no recording", g.name);
                out::note(common.quiet, &text);
                flows.push(f);
                continue;
            }
            match listeners(host, &f) {
                Ok(found) => {
                    let matches: Vec<_> = found.iter().flat_map(Listener::matches).collect();
                    if matches.is_empty() {
                        wrong.push(format!("{}: group {}: {name} listens on loopback only", g.said, g.name));
                    }
                    flows.push(f);
                    flows.extend(matches.into_iter().map(|(flow, fields)| Flow::Match { flow, fields }));
                }
                Err(e) => wrong.push(format!("{}: group {}: {e}", g.said, g.name)),
            }
        }
        // The same port in two programs is one flow.
        for f in flows {
            if !g.flows.contains(&f) {
                g.flows.push(f);
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Fail::error(wrong.join("\nringwise: "))) }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{GroupQueues, GroupWish};
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
            said: "/etc/ringwise/ringwise.toml line 9".into(),
        };
        Intent { groups: vec![group], ..Intent::default() }
    }

    #[test]
    fn a_program_that_does_not_run_is_an_error_with_its_place() {
        let sim = Sim::new(&build::host(4, 1).mqnic("mq0", 0, 4).done());
        let common = Common::default();
        let mut i = wanted(Flow::Program("nosuch".into()));
        let e = look_up(&sim, &mut i, &common).unwrap_err().message;
        assert!(e.starts_with("/etc/ringwise/ringwise.toml line 9: group web: program \"nosuch\": "), "{e}");
        let fields: std::collections::BTreeMap<_, _> = [("dst-port".to_string(), "80".to_string())].into();
        let mut i = wanted(Flow::Match { flow: "tcp4".into(), fields });
        let before = i.clone();
        look_up(&sim, &mut i, &common).unwrap();
        assert_eq!(i, before);
    }
}
