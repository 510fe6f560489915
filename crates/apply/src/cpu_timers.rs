//! Before the first write, checks that every CPU that gets work serves timers: a queue whose interrupt goes to a CPU that does
//! not would be stuck.

use std::collections::BTreeMap;

use ringwise_knob::{Setting, Step, compare};
use ringwise_model::{CpuId, CpuSet, Snapshot};
use ringwise_sys::Request;

use crate::host_access::HostAccess;
use crate::{Error, Refusal};

/// CPUs to which these steps send work and that do not have it now.
fn targets(now: &Snapshot, steps: &[Step]) -> CpuSet {
    let mut all = CpuSet::new();
    for s in steps.iter().filter(|s| !compare(&s.setting, now).holds()) {
        if let Setting::IrqCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } | Setting::NapiThread { cpus, .. } =
            &s.setting
        {
            all = all.union(cpus);
        }
    }
    all.intersection(&now.topology.online)
}

/// Returns notes for the user.
///
/// Errors: on a CPU, neither the sleeper woke up nor did the timer interrupt count increase meanwhile.
pub(crate) fn check(cx: &HostAccess, now: &Snapshot, steps: &[Step]) -> Result<Vec<String>, Error> {
    let cpus = targets(now, steps);
    if cpus.is_empty() {
        return Ok(Vec::new());
    }
    let timers = || cx.reading(ringwise_discover::timers).flatten();
    let before = timers();
    let reply = match cx.ask(Request::Sleep { cpus: cpus.iter().map(|c| c.0).collect() }) {
        Ok(r) => r,
        Err(e) => return Ok(vec![format!("could not check whether timers work on {}: {e}", cpus_text(&cpus))]),
    };
    let (mut late, mut untried) = (CpuSet::new(), BTreeMap::new());
    for m in &reply {
        let ([cpu, errno], []) = m.as_chunks::<4>() else { continue };
        match i32::from_ne_bytes(*errno) {
            0 => late.insert(CpuId(u32::from_ne_bytes(*cpu))),
            e => untried.entry(e).or_insert_with(CpuSet::new).insert(CpuId(u32::from_ne_bytes(*cpu))),
        }
    }
    let after = if late.is_empty() { None } else { timers() };
    let counted = |c: &CpuId| Some((before.as_ref()?.get(c)?, after.as_ref()?.get(c)?));
    let deaf: CpuSet = late.iter().filter(|c| counted(c).is_some_and(|(b, a)| b == a)).collect();
    if !deaf.is_empty() {
        return Err(Refusal::DeafCpus { cpus: deaf }.into());
    }
    let text = |(errno, cpus): (i32, CpuSet)| {
        let why = ringwise_sys::errno_text(errno);
        format!("could not check whether timers work on {}: {why}", cpus_text(&cpus))
    };
    let mut notes: Vec<String> = untried.into_iter().map(text).collect();
    if !late.is_empty() {
        notes.push(format!(
            "a sleep of 10 ms on {} took more than 2 s, probably because of other load",
            cpus_text(&late)
        ));
    }
    Ok(notes)
}

/// `CPU 3`, `CPUs 3-5`
pub(crate) fn cpus_text(cpus: &CpuSet) -> String {
    format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" })
}
