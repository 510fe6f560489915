//! The user must not be disconnected: a step that interrupts traffic on the user's own connection needs `--force` and a trial, so
//! that the settings are restored if the connection is lost.

use ringwise_discover::control;
use ringwise_knob::{Address, Step, compare};
use ringwise_model::{ControlPath, Fact, Snapshot};

use crate::host_access::HostAccess;
use crate::{Error, Refusal};

/// Looks for the user's connections now; one that cannot be determined counts as affected. Returns a note for each that is
/// forced.
pub(crate) fn check(cx: &HostAccess, now: &Snapshot, steps: &[Step]) -> Result<Vec<String>, Error> {
    let todo = steps.iter().filter(|s| !compare(&s.setting, now).holds()).filter_map(|s| s.setting.address());
    let todo: Vec<Address> = todo.filter(|a| a.interrupts_traffic_on(now)).collect();
    if todo.is_empty() {
        return Ok(Vec::new());
    }
    let paths = control(cx.host, cx.policy.deadline);
    let (mut addresses, mut ways) = (Vec::new(), Vec::new());
    for a in todo {
        let over = ways_over(&paths, &a);
        if !over.is_empty() {
            addresses.push(a);
        }
        for w in over {
            if !ways.contains(&w) {
                ways.push(w);
            }
        }
    }
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    if cx.policy.force && cx.policy.trial.is_some() {
        return Ok(ways.into_iter().map(|w| format!("forced: this interrupts {w}")).collect());
    }
    let (force, trial) = (cx.policy.force, cx.policy.trial.is_some());
    Err(Refusal::ControlPath { addresses, ways, force, trial }.into())
}

/// Connections that use (or may use) the device of this setting, as text.
fn ways_over(paths: &Fact<Vec<ControlPath>>, address: &Address) -> Vec<String> {
    let Some(dev) = address.dev() else { return Vec::new() };
    match paths {
        Fact::Known(paths) => paths.iter().filter(|p| p.over(dev) != Ok(false)).map(ControlPath::to_string).collect(),
        Fact::Absent => Vec::new(),
        Fact::Unknown(u) => vec![format!("possibly the control path, which could not be determined ({u})")],
    }
}
