//! Configured settings of the host.

use ringwise_knob::{Address, Setting};
use ringwise_model::{Cause, CpuSet, Fact, Knob, Unread};

use super::{WishContext, steer};
use crate::{Mistake, Obstacle};

pub(super) fn host(cx: &mut WishContext) {
    let host = &cx.s.host;
    match &cx.wish.knob {
        Knob::RfsEntries { entries } => {
            if steer::too_many(cx, *entries) {
                return;
            }
            if cx.have(&host.rps_sock_flow_entries, Address::RfsEntries, Obstacle::NoRps).is_some() {
                cx.configure(Setting::RfsEntries { entries: *entries });
            }
        }
        Knob::Sysctl { name, value } => {
            // Only a recording of an earlier version, or one that is not a capture, has none at all.
            if host.sysctls.is_empty() {
                let unread = Unread::new(name, None, "not in this capture").because(Cause::NotRecorded);
                cx.cannot(Address::Sysctl { name: name.clone() }, Obstacle::not_readable(&unread));
                return;
            }
            let Some(now) = host.sysctls.get(name) else {
                cx.wrong(name.clone(), Mistake::NoSysctl { have: host.sysctls.keys().cloned().collect() });
                return;
            };
            if cx.have(now, Address::Sysctl { name: name.clone() }, Obstacle::NoSysctl).is_some() {
                cx.configure(Setting::Sysctl { name: name.clone(), value: value.clone() });
            }
        }
        Knob::CpuLatency { cpus, value } => {
            if value != "n/a" && value.parse::<i32>().map_or(true, |n| n < 0) {
                cx.wrong(format!("resume latency {value}"), Mistake::NotALatency);
                return;
            }
            let set: CpuSet = cpus.iter().copied().collect();
            if !cx.online(&set, "resume latency") {
                return;
            }
            for cpu in cpus {
                let address = Address::CpuLatency { cpu: *cpu };
                let now =
                    host.cpu_latency.get(cpu).cloned().unwrap_or_else(|| Fact::not_requested(address.to_string()));
                if cx.have(&now, address, Obstacle::NoFile).is_some() {
                    cx.configure(Setting::CpuLatency { cpu: *cpu, value: value.clone() });
                }
            }
        }
        _ => {}
    }
}
