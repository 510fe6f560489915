//! Writes one setting and reads it back.

use ringwise_kfmt::cpumask;
use ringwise_knob::{Address, Match, Reaction, Setting, compare, live, react};
use ringwise_model::{CpuId, CpuSet, Fact, Snapshot};
use ringwise_sys::{Error, Result};

use crate::error::NotWritten;
use crate::host_access::HostAccess;
use crate::{Failure, channels, coalesce, features, free_vectors, irq, irqbalance, napi, pause, rings, rss, rules};

/// Meaning of a failed read that a write needs.
const UNREAD: &str = "writing this setting requires reading the device, which failed";

/// The result of a write.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// The setting has the requested value, within the rounding that the kernel documents.
    Kept {
        now: Setting,
        how: Match,
    },
    /// The kernel accepted the value, but reads back another one.
    NotKept {
        now: Fact<Setting>,
    },
    /// The kernel refused the value for good.
    Refused(Failure),
    Failed(Failure),
}

/// Writes `setting`, with a limited number of attempts while the kernel is busy, and reads it back into `now`.
pub(crate) fn put(cx: &HostAccess, now: &mut Snapshot, setting: &Setting) -> WriteOutcome {
    let Some(address) = setting.address() else {
        return WriteOutcome::Failed(failure(
            setting,
            &Error::other("setting", "written by a newer ringwise; this version does not know it"),
            "",
        ));
    };
    let mut wait = cx.policy.retry_wait;
    for left in (0..cx.policy.tries.get()).rev() {
        let e = match write(cx, now, setting) {
            Ok(()) => break,
            Err(NotWritten::Read(u)) => return WriteOutcome::Failed(failure(setting, &u.into(), UNREAD)),
            Err(NotWritten::Write(e)) => e,
        };
        // A driver may stop at the first queue that refuses, and leave the other queues as they are by then.
        if matches!(address, Address::Coalesce { .. } | Address::NapiDevice { .. }) {
            let _ = read(cx, now, &address);
        }
        match react(&address, e.errno) {
            (Reaction::Retry, _) if left > 0 => {
                cx.host.sleep(wait);
                wait *= 2;
            }
            (Reaction::Refused, meaning) => return WriteOutcome::Refused(failure(setting, &e, meaning)),
            (_, meaning) => {
                let mut failure = failure(setting, &e, meaning);
                if let Some(numbers) = free_vectors::numbers(cx, setting, e.errno) {
                    failure.meaning = format!("{meaning}; {numbers}");
                }
                return WriteOutcome::Failed(failure);
            }
        }
    }
    if let Err(e) = read_back(cx, now, setting, &address) {
        return WriteOutcome::Failed(failure(setting, &e, "written, but it cannot be read back"));
    }
    match (compare(setting, now), live(now, &address)) {
        (how @ (Match::Same | Match::Pending | Match::Adjusted), Fact::Known(now)) => WriteOutcome::Kept { now, how },
        (Match::Unknown(u), _) => {
            WriteOutcome::Failed(failure(setting, &u.into(), "written, but it cannot be read back"))
        }
        (_, now) => WriteOutcome::NotKept { now },
    }
}

/// Reads the setting back. After a write, an interrupt's mask may read as the previous one for a moment, while the kernel takes
/// up a pending move (kernel/irq/migration.c, `irq_move_masked_irq`), so a mask that differs is read again before it counts.
fn read_back(cx: &HostAccess, now: &mut Snapshot, setting: &Setting, address: &Address) -> Result<()> {
    read(cx, now, address)?;
    let mut wait = cx.policy.retry_wait;
    for _ in 1..cx.policy.tries.get() {
        if !matches!(address, Address::IrqCpus { .. }) || compare(setting, now).holds() {
            break;
        }
        cx.host.sleep(wait);
        wait *= 2;
        read(cx, now, address)?;
    }
    Ok(())
}

pub(crate) fn failure(setting: &Setting, e: &Error, meaning: &str) -> Failure {
    Failure {
        setting: Some(setting.clone()),
        errno: e.errno,
        words: e.reason(),
        meaning: meaning.to_string(),
        path: Some(e.object().to_string()),
        data: e.data.as_ref().map(|d| d.trim_end().to_string()),
        late: e.is_late(),
    }
}

fn write(cx: &HostAccess, now: &Snapshot, setting: &Setting) -> std::result::Result<(), NotWritten> {
    let written = match setting {
        Setting::IrqbalanceRestart { dev, left } => irqbalance::write_restart(cx, now, dev, *left),
        Setting::IrqbalanceBan { dev, left } => irqbalance::write_ban(cx, now, dev, left),
        Setting::Channels { dev, rx, tx, combined } => channels::write(cx, now, dev, (*rx, *tx, *combined)),
        Setting::Rings { dev, values } => rings::write(cx, now, dev, values),
        Setting::Coalesce { dev, params } => coalesce::write(cx, now, dev, params),
        Setting::RssTable { dev, table } => rss::write(cx, now, dev, table),
        Setting::Feature { dev, name, on } => return features::write(cx, now, dev, name, *on),
        Setting::Ntuple { dev, on } => return features::write(cx, now, dev, ringwise_knob::features::NTUPLE, *on),
        Setting::Pause { dev, autoneg, rx, tx } => pause::write(cx, dev, (*autoneg, *rx, *tx)),
        Setting::QueueCoalesce { dev, queue, params } => coalesce::write_queue(cx, dev, *queue, params),
        Setting::RssHash { dev, function, key, symmetric } => {
            rss::write_hash(cx, now, dev, function.as_deref(), key.as_deref(), symmetric.as_deref())
        }
        Setting::RssFields { dev, flow, fields } => rss::write_fields(cx, dev, flow, fields),
        Setting::RssContext { dev, context, table, key } => {
            rss::write_context(cx, now, dev, *context, table.as_deref(), key.as_deref())
        }
        Setting::FlowRule { dev, location, rule } => rules::write(cx, now, dev, *location, rule.as_ref()),
        Setting::NapiDevice { dev, values } => napi::write_device(cx, now, dev, values),
        Setting::Napi { dev, of, values } => return napi::write(cx, now, dev, *of, values),
        Setting::NapiThread { dev, of, cpus } => return napi::write_thread(cx, now, dev, *of, cpus),
        Setting::Sysctl { value, .. } | Setting::CpuLatency { value, .. } => file(cx, setting, value),
        Setting::IrqCpus { dev, of, cpus, on } => irq::write(cx, now, dev, *of, cpus, *on),
        Setting::XpsCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } => {
            file(cx, setting, &cpumask::format(cpus, None))
        }
        Setting::XpsRxqs { rxqs, .. } => {
            let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
            file(cx, setting, &cpumask::format(&set, None))
        }
        Setting::RpsFlowCnt { entries, .. } | Setting::RfsEntries { entries } => {
            file(cx, setting, &entries.to_string())
        }
        Setting::Other(_) => Err(Error::other("setting", "written by a newer ringwise; this version does not know it")),
    };
    Ok(written?)
}

/// Writes the file of the setting.
fn file(cx: &HostAccess, setting: &Setting, text: &str) -> Result<()> {
    let path = setting.address().and_then(|a| a.file());
    let path = path.ok_or_else(|| {
        let name = setting.address().map(|a| a.to_string()).unwrap_or_default();
        Error::other(name, "not the name of a sysctl (expected a name like net.core.netdev_budget)")
    })?;
    cx.write(&path, format!("{text}\n"))
}

/// Reads the setting again, or discovers the whole host if the device may have changed many settings.
fn read(cx: &HostAccess, now: &mut Snapshot, address: &Address) -> Result<()> {
    match address {
        Address::Channels { .. }
        | Address::Rings { .. }
        | Address::Pause { .. }
        | Address::Feature { .. }
        | Address::Ntuple { .. } => {
            *now = cx.look().map_err(|e| Error::other("discovery", e.to_string()))?;
        }
        // A value that cannot be read is unknown, and compares as such.
        one => _ = cx.read(now, one),
    }
    Ok(())
}
