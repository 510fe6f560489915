//! `--what-if`: the snapshot as it would be. Only what decides where flows go can be asked.

use std::path::Path;

use ringwise_config::Config;
use ringwise_knob::{Of, Setting, rss};
use ringwise_model::wish::Table;
use ringwise_model::{Channels, CpuSet, Dir, Fact, Knob, Nic, RssContext, RxQueue, Snapshot};

use crate::cmd::reviewed;
use crate::exit::{Fail, Result};

pub(super) fn apply(s: &Snapshot, dev: &str, asked: &[String]) -> Result<Snapshot> {
    let mut out = s.clone();
    let mut configs = Vec::new();
    for a in asked {
        if a.contains('=') && !Path::new(a).exists() {
            let set = format!("{}.{a}", quoted(dev));
            configs.push(
                ringwise_config::parse_set(&set)
                    .map_err(|f| Fail::usage(f.to_string().replace("--set", "--what-if")))?,
            );
        } else {
            let plan = reviewed::load(Path::new(a))?.plan;
            for setting in &plan.target {
                by_setting(&mut out, setting);
            }
        }
    }
    let bound = ringwise_config::bind(&Config::default(), &configs, &s.nics).map_err(|w| Fail::usage(w.join("\n")))?;
    let mut knobs: Vec<Knob> = bound.intent.wishes.into_iter().map(|w| w.knob).collect();
    // A change of channels resets the table: it comes first, whatever the order of the words.
    knobs.sort_by_key(|k| !matches!(k, Knob::Channels { .. }));
    for knob in knobs {
        by_wish(nic(&mut out, dev)?, &knob)?;
    }
    Ok(out)
}

fn quoted(dev: &str) -> String {
    if dev.contains('.') { format!("\"{dev}\"") } else { dev.to_string() }
}

fn nic<'a>(s: &'a mut Snapshot, dev: &str) -> Result<&'a mut Nic> {
    s.nics.iter_mut().find(|n| n.dev.name == dev).ok_or_else(|| Fail::error(format!("there is no interface {dev}")))
}

fn by_wish(n: &mut Nic, knob: &Knob) -> Result<()> {
    let dev = n.dev.name.clone();
    let queues = ringwise_flow::steering::receive_queues(n);
    match knob {
        Knob::Channels { rx, tx, combined } => channels(n, *rx, *tx, *combined),
        Knob::RssTable { context, table } => {
            let Fact::Known(r) = &mut n.rss else { return Err(no_rss(&dev)) };
            let size = r.table.len();
            let queues =
                queues.ok_or_else(|| Fail::error(format!("{dev}: the number of its receive queues is unknown")))?;
            let new = rss::simulate(table, size, queues).map_err(|e| Fail::usage(format!("{dev}: {e}")))?;
            match context {
                None => r.table = new,
                Some(c) => {
                    let key = None;
                    let all = match &mut r.contexts {
                        Fact::Known(all) => all,
                        _ => return Err(Fail::error(format!("{dev}: its RSS contexts are not known"))),
                    };
                    all.entry(*c).or_insert(RssContext { table: Vec::new(), key }).table = new;
                }
            }
        }
        Knob::RssHash { function, key, symmetric } => hash(n, function, key, symmetric).ok_or_else(|| no_rss(&dev))?,
        Knob::RssFields { flow, fields } => {
            let Fact::Known(r) = &mut n.rss else { return Err(no_rss(&dev)) };
            r.fields.insert(flow.clone(), fields.clone());
        }
        Knob::FlowRule { location, rule } => {
            let Fact::Known(r) = &mut n.rules else {
                return Err(Fail::error(format!("{dev}: its rules are not known, or it has none")));
            };
            let free = (0..).find(|at| !r.rules.contains_key(at)).unwrap_or(0);
            r.rules.insert(location.unwrap_or(free), rule.clone());
        }
        Knob::Feature { name, on } if matches!(name.as_str(), "ntuple" | "ntuple-filters" | "rx-ntuple-filter") => {
            ntuple(n, *on)
        }
        Knob::IrqCpus { queues, cpus } => {
            let all: Vec<u32> = queues.clone().unwrap_or_else(|| n.rx_queues.iter().map(|q| q.id).collect());
            all.iter().for_each(|q| irq(n, Of::Rx(*q), cpus));
        }
        Knob::RpsCpus { queues, cpus } => {
            let meant = |id: u32| queues.as_ref().is_none_or(|q| q.contains(&id));
            n.rx_queues.iter_mut().filter(|q| meant(q.id)).for_each(|q| q.rps_cpus = Fact::Known(cpus.clone()));
        }
        Knob::XpsCpus { queues, cpus } => {
            let meant = |id: u32| queues.as_ref().is_none_or(|q| q.contains(&id));
            n.tx_queues.iter_mut().filter(|q| meant(q.id)).for_each(|q| q.xps_cpus = Fact::Known(cpus.clone()));
        }
        _ => {
            return Err(Fail::usage(
                "--what-if: this does not decide where flows go; rss.*, channels.*, rule, features.ntuple, irq, rps and xps do",
            ));
        }
    }
    Ok(())
}

fn no_rss(dev: &str) -> Fail {
    Fail::error(format!("{dev}: its receive-side scaling is not known, or it has none"))
}

fn hash(n: &mut Nic, function: &Option<String>, key: &Option<String>, symmetric: &Option<String>) -> Option<()> {
    let Fact::Known(r) = &mut n.rss else { return None };
    for (to, value) in [(&mut r.function, function), (&mut r.key, key), (&mut r.symmetric, symmetric)] {
        if let Some(v) = value {
            *to = Fact::Known(v.clone());
        }
    }
    Some(())
}

fn ntuple(n: &mut Nic, on: bool) {
    if let Fact::Known(f) = &mut n.features
        && let Some(f) = f.get_mut("rx-ntuple-filter")
    {
        f.on = on;
    }
}

/// Queues that were not there have no interrupt yet.
fn channels(n: &mut Nic, rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) {
    let before = ringwise_flow::steering::receive_queues(n);
    if let Fact::Known(c) = &mut n.channels {
        let Channels { rx: r, tx: t, combined: b, .. } = c;
        for (have, want) in [(r, rx), (t, tx), (b, combined)] {
            if let (Some(have), Some(want)) = (have, want) {
                have.now = want;
            }
        }
    }
    // Still unknown: the counts that were requested are not those of a driver that reports any.
    let Some(queues) = ringwise_flow::steering::receive_queues(n) else { return };
    if let (Fact::Known(r), Some(before)) = (&mut n.rss, before) {
        let driver = n.driver.known().map_or("", String::as_str);
        r.table = table_for(driver, &r.table, before, queues);
    }
    n.rx_queues.retain(|q| q.id < queues);
    for id in n.rx_queues.len() as u32..queues.min(4096) {
        let new = || Fact::unknown("queue", "it is not there yet");
        n.rx_queues.push(RxQueue { id, rps_cpus: Fact::Known(CpuSet::new()), rps_flow_cnt: new() });
    }
}

fn irq(n: &mut Nic, of: Of, cpus: &CpuSet) {
    let (dir, queue) = match of {
        Of::Rx(q) => (Dir::Rx, q),
        Of::Tx(q) => (Dir::Tx, q),
        Of::Control(_) => return,
    };
    let at = n.vectors.iter().position(|v| match dir {
        Dir::Rx => v.rx().contains(&queue),
        Dir::Tx => v.tx().contains(&queue),
    });
    if let Some(v) = at.and_then(|at| n.vectors.get_mut(at)) {
        v.asked = Fact::Known(cpus.clone());
        // Of several the kernel takes the one with the fewest vectors.
        v.effective = match cpus.len() {
            1 => Fact::Known(cpus.clone()),
            _ => Fact::unknown("effective CPU", format!("the kernel chooses one of {cpus}")),
        };
    }
}

/// Another number of queues makes igb and igc deal their entries out in blocks, whatever stood there (Linux 6.12). Other
/// drivers leave alone what somebody wrote, where it fits, and else deal out as they have done so far.
fn table_for(driver: &str, now: &[u32], before: u32, queues: u32) -> Vec<u32> {
    let size = now.len() as u32;
    let blocks = |queues: u32| -> Vec<u32> {
        (0..size).map(|e| (u64::from(e) * u64::from(queues) / u64::from(size)) as u32).collect()
    };
    let one_by_one = |queues: u32| rss::simulate(&Table::Default, now.len(), queues).unwrap_or_default();
    let in_blocks = matches!(driver, "igb" | "igc") || (before > 1 && now == blocks(before));
    if before == queues {
        now.to_vec()
    } else if in_blocks {
        blocks(queues)
    } else if now != one_by_one(before) && now.iter().all(|q| *q < queues) {
        now.to_vec()
    } else {
        one_by_one(queues)
    }
}

/// What a plan would write.
fn by_setting(s: &mut Snapshot, setting: &Setting) {
    if let Setting::RfsEntries { entries } = setting {
        s.host.rps_sock_flow_entries = Fact::Known(*entries);
        return;
    }
    let Some(dev) = setting.address().and_then(|a| a.dev().map(str::to_string)) else { return };
    let Some(n) = s.nics.iter_mut().find(|n| n.dev.name == dev) else { return };
    let rx = |n: &mut Nic, id: u32, f: &dyn Fn(&mut RxQueue)| n.rx_queues.iter_mut().filter(|q| q.id == id).for_each(f);
    match setting {
        Setting::Channels { rx, tx, combined, .. } => channels(n, *rx, *tx, *combined),
        Setting::RssTable { table, .. } => {
            if let Fact::Known(r) = &mut n.rss {
                r.table.clone_from(table);
            }
        }
        Setting::RssHash { function, key, symmetric, .. } => _ = hash(n, function, key, symmetric),
        Setting::RssFields { flow, fields, .. } => {
            if let Fact::Known(r) = &mut n.rss {
                r.fields.insert(flow.clone(), fields.clone());
            }
        }
        Setting::RssContext { context, table, key, .. } => {
            if let Fact::Known(r) = &mut n.rss
                && let Fact::Known(all) = &mut r.contexts
            {
                match table {
                    Some(t) => _ = all.insert(*context, RssContext { table: t.clone(), key: key.clone() }),
                    None => _ = all.remove(context),
                }
            }
        }
        Setting::FlowRule { location, rule, .. } => {
            if let Fact::Known(r) = &mut n.rules {
                match rule {
                    Some(rule) => _ = r.rules.insert(*location, rule.clone()),
                    None => _ = r.rules.remove(location),
                }
            }
        }
        Setting::Ntuple { on, .. } => ntuple(n, *on),
        Setting::IrqCpus { of, cpus, .. } => irq(n, *of, cpus),
        Setting::RpsCpus { queue, cpus, .. } => rx(n, *queue, &|q| q.rps_cpus = Fact::Known(cpus.clone())),
        Setting::RpsFlowCnt { queue, entries, .. } => rx(n, *queue, &|q| q.rps_flow_cnt = Fact::Known(*entries)),
        Setting::XpsCpus { queue, cpus, .. } => {
            n.tx_queues.iter_mut().filter(|t| t.id == *queue).for_each(|t| t.xps_cpus = Fact::Known(cpus.clone()));
        }
        Setting::XpsRxqs { queue, rxqs, .. } => {
            n.tx_queues.iter_mut().filter(|t| t.id == *queue).for_each(|t| t.xps_rxqs = Fact::Known(rxqs.clone()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::table_for;

    #[test]
    fn tables_after_a_change_of_channels() {
        assert_eq!(table_for("ice", &[0, 0, 1, 1, 2, 2, 3, 3], 4, 2), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(table_for("ice", &[0, 1, 2, 3, 0, 1, 2, 3], 4, 2), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(
            table_for("ice", &[0, 0, 0, 1, 1, 1, 1, 1], 4, 2),
            [0, 0, 0, 1, 1, 1, 1, 1],
            "somebody's, and it fits"
        );
        assert_eq!(table_for("ice", &[3, 0, 0, 1], 4, 2), [0, 1, 0, 1]);
        assert_eq!(table_for("igb", &[0, 1, 2, 3], 4, 2), [0, 0, 1, 1], "as 760-explain.sh sees it");
        assert_eq!(table_for("igb", &[1, 0, 2, 3], 4, 4), [1, 0, 2, 3]);
        assert!(table_for("ice", &[], 4, 2).is_empty());
    }
}
