//! Finds the steps of a plan that interrupt the control path (ssh, default route, network mounts).

use ringwise_knob::Step;
use ringwise_model::{ControlPath, ControlReason, Fact, Nic, Snapshot};

use crate::{ControlPathCut, Outage, UnknownPath};

/// The control paths for the head of the plan. Their devices are known, or the path is known down to an interface from
/// which on it may go through any device.
pub(crate) fn ways(s: &Snapshot) -> Vec<ControlPath> {
    let all = s.control.known().into_iter().flatten();
    all.filter(|p| p.members.is_known() || p.may_be_over_any().is_some()).cloned().collect()
}

/// Steps that interrupt traffic of a control path, or may do so because the path could not be followed.
pub(crate) fn cuts(s: &Snapshot, steps: &[Step]) -> Vec<ControlPathCut> {
    let mut out = Vec::new();
    for step in steps.iter().filter(|s| s.interrupts_traffic) {
        let Some(address) = step.setting.address() else { continue };
        let Some(dev) = address.dev() else { continue };
        let (mut ways, mut unknown): (Vec<String>, Vec<UnknownPath>) = (Vec::new(), Vec::new());
        match &s.control {
            Fact::Known(paths) => {
                let mut unread = Vec::new();
                for p in paths.iter().filter(|p| p.over(dev) != Ok(false)) {
                    match (&p.reason, &p.members) {
                        (ControlReason::Unread { what }, Fact::Unknown(u)) => {
                            unread.push(p.to_string());
                            unknown.push(UnknownPath { what: what.clone(), why: u.why.clone() });
                        }
                        _ => ways.push(p.to_string()),
                    }
                }
                ways.append(&mut unread);
            }
            Fact::Absent => {}
            Fact::Unknown(u) => {
                ways.push(format!("possibly the control path, which could not be determined ({u})"));
                unknown.push(UnknownPath { what: "the control path".into(), why: u.to_string() });
            }
        }
        if !ways.is_empty() {
            out.push(ControlPathCut { address, ways, unknown });
        }
    }
    out
}

/// The observed effect of a channel change on the link, by driver.
pub(crate) fn outage(driver: Option<&str>) -> &'static str {
    match driver {
        Some("igb") => "link down about 3 s",
        Some("virtio_net") => "packets may be lost for a moment, the link stays up",
        _ => "link may drop for some seconds",
    }
}

fn is_down(n: &Nic) -> bool {
    let down = n.link.carrier.known() == Some(&false) || n.link.operstate.known().is_some_and(|s| s == "down");
    down && !n.link_is_up()
}

/// The interfaces that the steps interrupt. One that is known to have no link has no traffic to lose.
pub(crate) fn outages(s: &Snapshot, steps: &[Step]) -> Vec<Outage> {
    let mut out: Vec<Outage> = Vec::new();
    for step in steps.iter().filter(|s| s.interrupts_traffic) {
        let Some(nic) = step.setting.dev().and_then(|d| s.nic(d)).filter(|n| !is_down(n)) else { continue };
        match out.iter_mut().find(|o| o.dev == nic.name()) {
            Some(o) => o.steps += 1,
            None => {
                let effect = outage(nic.driver.known().map(String::as_str)).to_string();
                out.push(Outage { dev: nic.name().to_string(), effect, steps: 1 });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::sim::build;

    use super::*;

    #[test]
    fn the_head_of_a_plan_has_paths_that_are_lost_on_the_way_down() {
        let mut s = build::host(4, 1).igb("eth0", 0, 4).done();
        let path = |reason, out: Option<&str>, members| ControlPath {
            reason,
            out: out.map(str::to_string),
            via: out.map(str::to_string).into_iter().collect(),
            members,
        };
        let route = || ControlReason::DefaultRoute { gateway: None };
        let lost = || Fact::unknown("ppp0", "it is unknown where packets of ppp0 (a ppp) go");
        let shown =
            [path(route(), Some("ppp0"), lost()), path(route(), Some("eth0"), Fact::Known(vec!["eth0".to_string()]))];
        let unread =
            path(ControlReason::Unread { what: "ssh sessions".into() }, None, Fact::unknown("x", "needs root"));
        s.control = Fact::Known([shown.to_vec(), vec![unread]].concat());
        assert_eq!(ways(&s), shown);
    }
}
