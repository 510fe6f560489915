//! `--what-if`: the snapshot as it would be. Accepts only settings that decide where flows go.

use std::path::Path;

use ringwise_config::Config;
use ringwise_knob::{Setting, VectorName, project, rss};
use ringwise_model::order::Order;
use ringwise_model::{Fact, Knob, Nic, Snapshot};

use crate::exit::{Fail, Result};

pub(super) fn apply(s: &Snapshot, dev: &str, asked: &[String]) -> Result<Snapshot> {
    let mut out = s.clone();
    let mut configs = Vec::new();
    for a in asked {
        if a.contains('=') && !Path::new(a).exists() {
            let set = format!("{}.{a}", quoted(dev));
            let config = ringwise_config::parse_set_of("--what-if", a, &set);
            configs.push(config.map_err(|f| Fail::usage(f.to_string()))?);
        } else {
            let plan = ringwise_intent::load_plan(Path::new(a))?.plan;
            for setting in &plan.target {
                written(&mut out, setting);
            }
        }
    }
    let bound = ringwise_config::bind(&Config::default(), &configs, s).map_err(|w| Fail::usage(w.join("\n")))?;
    let mut knobs: Vec<Knob> = bound.intent.wishes.into_iter().map(|w| w.knob).collect();
    // A change of channels resets the table, so it comes first, whatever the order on the command line.
    knobs.order_by_key(|k| !matches!(k, Knob::Channels { .. }));
    for knob in knobs {
        for setting in settings(nic(&out, dev)?, &knob)? {
            written(&mut out, &setting);
        }
    }
    Ok(out)
}

fn quoted(dev: &str) -> String {
    if dev.contains('.') { format!("\"{dev}\"") } else { dev.to_string() }
}

fn nic<'a>(s: &'a Snapshot, dev: &str) -> Result<&'a Nic> {
    s.nic(dev).ok_or_else(|| Fail::error(format!("there is no interface {dev}")))
}

/// Applies a setting to the snapshot. Settings of devices that it does not contain are ignored.
fn written(s: &mut Snapshot, setting: &Setting) {
    let _ = project(s, setting);
}

/// The settings of a knob on this device. Knobs that do not decide where flows go are refused.
fn settings(n: &Nic, knob: &Knob) -> Result<Vec<Setting>> {
    let dev = n.dev.name.clone();
    let of = |queues: &Option<Vec<u32>>, all: &mut dyn Iterator<Item = u32>| -> Vec<u32> {
        all.filter(|id| queues.as_ref().is_none_or(|q| q.contains(id))).collect()
    };
    Ok(match knob {
        Knob::Channels { rx, tx, combined } => {
            vec![Setting::Channels { dev, rx: *rx, tx: *tx, combined: *combined }]
        }
        Knob::RssTable { context, table } => {
            let r = n.rss.known().ok_or_else(|| no_rss(&dev))?;
            let queues = ringwise_flow::steering::receive_queues(n)
                .ok_or_else(|| Fail::error(format!("{dev}: the number of its receive queues is unknown")))?;
            let table = rss::simulate(table, r.table.len(), queues).map_err(|e| Fail::usage(format!("{dev}: {e}")))?;
            if context.is_some() && !r.contexts.is_known() {
                return Err(Fail::error(format!("{dev}: its RSS contexts are unknown")));
            }
            vec![match context {
                None => Setting::RssTable { dev, table },
                Some(c) => Setting::RssContext { dev, context: *c, table: Some(table), key: None },
            }]
        }
        Knob::RssHash { function, key, symmetric } => {
            n.rss.known().ok_or_else(|| no_rss(&dev))?;
            let (function, key, symmetric) = (function.clone(), key.clone(), symmetric.clone());
            vec![Setting::RssHash { dev, function, key, symmetric }]
        }
        Knob::RssFields { flow, fields } => {
            n.rss.known().ok_or_else(|| no_rss(&dev))?;
            vec![Setting::RssFields { dev, flow: flow.clone(), fields: fields.clone() }]
        }
        Knob::FlowRule { location, rule } => {
            let Fact::Known(r) = &n.rules else {
                return Err(Fail::error(format!("{dev}: its rules are unknown, or it does not support rules")));
            };
            let free = (0..).find(|at| !r.rules.contains_key(at)).unwrap_or(0);
            vec![Setting::FlowRule { dev, location: location.unwrap_or(free), rule: Some(rule.clone()) }]
        }
        Knob::Feature { name, on } if matches!(name.as_str(), "ntuple" | "ntuple-filters" | "rx-ntuple-filter") => {
            vec![Setting::Ntuple { dev, on: *on }]
        }
        Knob::IrqCpus { queues, cpus } => {
            let all: Vec<u32> = queues.clone().unwrap_or_else(|| n.rx_queues.iter().map(|q| q.id).collect());
            let one =
                |q: u32| Setting::IrqCpus { dev: dev.clone(), of: VectorName::Rx(q), cpus: cpus.clone(), on: None };
            all.into_iter().map(one).collect()
        }
        Knob::RpsCpus { queues, cpus } => {
            let all = of(queues, &mut n.rx_queues.iter().map(|q| q.id));
            let one = |queue| Setting::RpsCpus { dev: dev.clone(), queue, cpus: cpus.clone() };
            all.into_iter().map(one).collect()
        }
        Knob::XpsCpus { queues, cpus } => {
            let all = of(queues, &mut n.tx_queues.iter().map(|q| q.id));
            let one = |queue| Setting::XpsCpus { dev: dev.clone(), queue, cpus: cpus.clone() };
            all.into_iter().map(one).collect()
        }
        _ => {
            return Err(Fail::usage(
                "--what-if: this setting does not decide where flows go; rss.*, channels.*, rule, features.ntuple, irq, rps and xps do",
            ));
        }
    })
}

fn no_rss(dev: &str) -> Fail {
    Fail::error(format!("{dev}: its receive-side scaling is unknown, or it does not support it"))
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn what_a_plan_writes_reads_as_the_kernel_rounds_it() {
        let nic = NicSpec::new("eth0", "ice", Some(0), 2, 2);
        let mut s = machines::host("one", CpuSpec::flat(2, 1), vec![nic]).snapshot();
        let queue = |dev: &str| Setting::RpsFlowCnt { dev: dev.into(), queue: 1, entries: 500 };
        for setting in [Setting::RfsEntries { entries: 1000 }, queue("eth0"), queue("eth9")] {
            written(&mut s, &setting);
        }
        assert_eq!(s.host.rps_sock_flow_entries, Fact::Known(1024));
        assert_eq!(s.nics[0].rx_queues[1].rps_flow_cnt, Fact::Known(512));
    }
}
