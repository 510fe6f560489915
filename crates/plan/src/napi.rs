//! NAPI threads run on the CPU that handles the interrupt of their queue.

use ringwise_knob::{Address, Reason, Setting, VectorName, napi as knob_napi};
use ringwise_model::{CpuSet, Fact};

use crate::dev::{Dev, LearnedIndex};
use crate::machine::Machine;
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;

pub(crate) fn plan(m: &Machine, devs: &[Dev], learned: &LearnedIndex, out: &mut PlanBuilder) {
    for d in devs {
        let Some(napi) = d.nic.napi.known() else { continue };
        let restarted = d.channels.is_some();
        let device = match out.entries.get(&Address::NapiDevice { dev: d.name().to_string() }) {
            Some((_, Setting::NapiDevice { values, .. }, _)) => values.threaded,
            _ => None,
        };
        let mut all: Vec<VectorName> = Vec::new();
        if restarted {
            // New instances get the device's value. The driver chooses which queues share an instance: the plan sets both
            // directions.
            if device.or(napi.device.threaded).is_some_and(|t| t > 0) && !napi.instances.is_empty() {
                all.extend((0..d.rx).map(VectorName::Rx).chain((0..d.tx.unwrap_or(0)).map(VectorName::Tx)));
            }
        } else {
            let names = napi.instances.iter().filter_map(knob_napi::name);
            all.extend(names.filter(|of| threaded(d, *of, device, out)));
        }
        for of in all {
            let Some(cpus) = cpus(m, d, of, out) else { continue };
            let live = knob_napi::live_thread(d.nic, of);
            let dev = d.name().to_string();
            let setting = Setting::NapiThread { dev, of, cpus };
            let matched = match &live {
                Fact::Known(s) if *s == setting => ringwise_knob::Match::Same,
                Fact::Known(_) => ringwise_knob::Match::Differs,
                _ => ringwise_knob::Match::Gone,
            };
            // A thread that an earlier step creates does not exist yet.
            let anew = restarted || live.is_absent();
            let w = RequestedSetting { setting, live, matched, anew, needed: false };
            out.want(Some(d.nic), learned, w, || StepReason { rule: "R0.13", reason: Reason::ThreadWithInterrupt });
        }
    }
}

/// Whether a thread polls the queue, with the settings of the plan applied.
fn threaded(d: &Dev, of: VectorName, device: Option<u32>, out: &PlanBuilder) -> bool {
    let first = Address::Napi { dev: d.name().to_string(), of: VectorName::Rx(0) };
    let wanted = out.entries.alike(&first).into_iter().find_map(|(_, s, _)| match s {
        Setting::Napi { of: o, values, .. } if same(d, *o, of) => values.threaded,
        _ => None,
    });
    let there = knob_napi::instance(d.nic, of).is_some_and(|i| i.thread.is_some());
    wanted.or(device).map_or(there, |t| t > 0)
}

fn same(d: &Dev, a: VectorName, b: VectorName) -> bool {
    let id = |of| knob_napi::instance(d.nic, of).map(|i| i.id);
    a == b || id(a).is_some() && id(a) == id(b)
}

/// The CPUs of the interrupt in the plan, else its current ones.
fn cpus(m: &Machine, d: &Dev, of: VectorName, out: &PlanBuilder) -> Option<CpuSet> {
    let first = Address::IrqCpus { dev: d.name().to_string(), of: VectorName::Rx(0) };
    let laid = out.entries.alike(&first).into_iter().find_map(|(_, s, _)| match s {
        Setting::IrqCpus { of: o, cpus, .. } if same(d, *o, of) => Some(cpus.clone()),
        _ => None,
    });
    let (VectorName::Rx(q) | VectorName::Tx(q) | VectorName::Control(q)) = of;
    laid.or_else(|| Some(m.set([d.cpu.get(q as usize).copied().flatten()?])))
}
