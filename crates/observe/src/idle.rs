//! How long CPUs were in each of their idle states (`cpuN/cpuidle/stateN/time`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ringwise_model::{CpuId, Unread};
use ringwise_sys::Host;

use crate::counters::CpuSample;
use crate::device::Notes;

/// There is a file for each state of each CPU. With more CPUs than this, none is read.
const CPUS: usize = 64;
const STATES: u32 = 10;

/// `C6` for `2C6`, the form of [`CpuSample::idle_us`].
pub(crate) fn name(state: &str) -> String {
    state.get(1..).unwrap_or_default().into()
}

/// The known idle states.
#[derive(Default)]
pub(crate) struct Idle {
    /// By CPU; CPUs without idle states are listed, too.
    states: BTreeMap<CpuId, Vec<Arc<str>>>,
    told: bool,
}

impl Idle {
    /// Reads the idle states of these CPUs, which are those that handle interrupts.
    pub(crate) fn read(
        &mut self,
        host: &dyn Host,
        of: BTreeSet<CpuId>,
        out: &mut BTreeMap<CpuId, CpuSample>,
        notes: &mut Notes,
    ) {
        if of.len() > CPUS {
            if !std::mem::replace(&mut self.told, true) {
                let why = format!("{} CPUs handle interrupts; idle states are read for at most {CPUS}", of.len());
                notes.0.push(Unread::new("/sys/devices/system/cpu/cpuN/cpuidle", None, why));
            }
            return;
        }
        for cpu in of {
            let Some(sample) = out.get_mut(&cpu) else { continue };
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state");
            let states = self.states.entry(cpu).or_insert_with(|| {
                let name = |i: u32| Some((i, host.read_text(&format!("{dir}{i}/name")).ok()?));
                (0..STATES).map_while(name).map(|(i, n)| format!("{i}{}", word(&n)).into()).collect()
            });
            for (i, state) in states.iter().enumerate() {
                if let Ok(text) = host.read_text(&format!("{dir}{i}/time"))
                    && let Ok(us) = text.parse()
                {
                    sample.idle_us.push((state.clone(), us));
                }
            }
        }
    }
}

/// The name of a state may contain spaces (`haltpoll idle`); the name of a counter may not.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_whitespace() || matches!(c, '/' | '=') { '_' } else { c }).collect()
}
