//! What is checked before the first write: each setting still has the value that its step expects, and can be restored.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Setting, Step, compare, live};
use ringwise_model::{Fact, Snapshot};

use crate::host_access::HostAccess;
use crate::{ChangedSetting, Error, Refusal, Request, irqbalance};

/// Runs the preflight, and repeats it if only interrupt masks differ, because the kernel may still be applying them. Returns the
/// host as last read.
pub(crate) fn settled_preflight(cx: &HostAccess, now: Snapshot, request: &Request) -> Result<Snapshot, Error> {
    let Err(e) = preflight(&now, &request.steps, &request.relies_on) else { return Ok(now) };
    let Error::Refused(refusal) = &e else { return Err(e) };
    let masks = |m: &ChangedSetting| matches!(m.address, Address::IrqCpus { .. });
    if !matches!(&**refusal, Refusal::Changed { moved } if moved.iter().all(masks)) {
        return Err(e);
    }
    cx.host.sleep(cx.policy.retry_wait);
    let now = cx.look()?;
    preflight(&now, &request.steps, &request.relies_on)?;
    Ok(now)
}

/// Checks before the first write that each setting has the value that its step expects, and can be restored.
pub(crate) fn preflight(now: &Snapshot, steps: &[Step], relies_on: &[Setting]) -> Result<(), Error> {
    let mut moved = not_as_reviewed(now, relies_on);
    let mut restarted: BTreeSet<&str> = BTreeSet::new();
    for step in steps {
        let Some(address) = step.setting.address() else { continue };
        let is = live(now, &address);
        let made_before = address.dev().is_some_and(|d| restarted.contains(d));
        if let (true, Some(dev)) = (!address.invalidates().is_empty(), step_dev(step)) {
            restarted.insert(dev);
        }
        if compare(&step.setting, now).holds() {
            continue;
        }
        match (&is, &step.from) {
            (Fact::Unknown(u), _) => {
                let why = u.to_string();
                return Err(Refusal::Unreadable { address, why }.into());
            }
            (Fact::Absent, _) if made_before => {}
            (Fact::Absent, _) if crate::fallback::may_be_absent(step, now) || threaded(&address, steps) => {}
            (Fact::Absent, Fact::Known(_)) | (Fact::Known(_), Fact::Absent) => {
                moved.push(ChangedSetting { address, expected: step.from.clone(), now: is });
            }
            (Fact::Absent, _) => return Err(Refusal::NotThere { address }.into()),
            // The step was made without permission to read the value; ringwise can read it now, so it can restore it.
            (Fact::Known(_), Fact::Unknown(_)) => {}
            (Fact::Known(_), Fact::Known(from)) => {
                if !compare(from, now).holds() && !irqbalance::will_be_banned(&address, steps, now) {
                    moved.push(ChangedSetting { address, expected: step.from.clone(), now: is });
                }
            }
        }
    }
    if moved.is_empty() { Ok(()) } else { Err(Refusal::Changed { moved }.into()) }
}

/// Whether an earlier step creates this thread.
fn threaded(address: &Address, steps: &[Step]) -> bool {
    let Address::NapiThread { dev, .. } = address else { return false };
    steps.iter().any(|s| match &s.setting {
        Setting::NapiDevice { dev: d, values } | Setting::Napi { dev: d, values, .. } => {
            d == dev && values.threaded.is_some_and(|t| t > 0)
        }
        _ => false,
    })
}

/// Settings that a reviewed plan found right and did not change, and that have another value now.
fn not_as_reviewed(now: &Snapshot, relies_on: &[Setting]) -> Vec<ChangedSetting> {
    let moved = relies_on.iter().filter(|s| !compare(s, now).holds());
    let entry = |s: &Setting| {
        let address = s.address()?;
        Some(ChangedSetting { expected: Fact::Known(s.clone()), now: live(now, &address), address })
    };
    moved.filter_map(entry).collect()
}

fn step_dev(step: &Step) -> Option<&str> {
    match &step.setting {
        Setting::Channels { dev, .. } | Setting::Rings { dev, .. } => Some(dev),
        _ => None,
    }
}
