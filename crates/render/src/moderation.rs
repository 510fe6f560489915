//! Moderation of queues that differ from each other, and NAPI settings, as text.

use std::collections::BTreeMap;

use ringwise_apply::Outcome;
use ringwise_knob::{Setting, overlap};
use ringwise_model::{CpuId, CpuSet, Fact, NapiValues, Nic};

use super::facts;
use ringwise_text::hang;

fn set(queues: impl IntoIterator<Item = u32>) -> String {
    queues.into_iter().map(CpuId).collect::<CpuSet>().to_string()
}

/// `0-3 rx 5 us, tx 10 us; 4-7 rx 62 us, tx 122 us`. `None`: all queues have the values that the device's own line
/// shows.
pub(crate) fn of_queues(n: &Nic) -> Option<String> {
    let (Fact::Known(all), Fact::Known(device)) = (&n.queue_coalesce, &n.coalesce) else { return None };
    let values: BTreeMap<u32, BTreeMap<String, u32>> = all.iter().map(|(q, c)| (*q, c.0.clone())).collect();
    let groups = overlap::alike(&values);
    if groups.iter().all(|(v, _)| v.iter().all(|(k, n)| device.0.get(k) == Some(n))) {
        return None;
    }
    let one = |v: &BTreeMap<String, u32>| {
        super::steering::moderation(&n.driver, &Fact::Known(ringwise_model::Coalesce(v.clone())))
    };
    let parts: Vec<String> = groups.iter().map(|(v, q)| format!("{} {}", set(q.iter().copied()), one(v))).collect();
    Some(parts.join("; "))
}

fn values(v: &NapiValues) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(d), flush) = (v.defer_hard_irqs.filter(|d| *d > 0), v.gro_flush_timeout_ns.unwrap_or(0)) {
        out.push(format!("interrupts deferred for {d} empty polls, polled every {} us", flush / 1000));
    } else if let Some(f) = v.gro_flush_timeout_ns.filter(|f| *f > 0) {
        out.push(format!("GRO flushed after {} us", f / 1000));
    }
    if let Some(s) = v.irq_suspend_timeout_ns.filter(|s| *s > 0) {
        out.push(format!("interrupts suspended up to {} us while an application polls", s / 1000));
    }
    match v.threaded {
        Some(1) => out.push("threaded".into()),
        Some(2) => out.push("threaded, busy polling".into()),
        _ => {}
    }
    out
}

/// `None`: nothing is set, or the recording does not have it.
pub(crate) fn napi(n: &Nic) -> Option<String> {
    let napi = match &n.napi {
        Fact::Known(napi) => napi,
        Fact::Unknown(u) if !facts::silent(&n.napi) => return Some(format!("unknown ({})", u.why)),
        _ => return None,
    };
    let mut parts: Vec<String> = Vec::new();
    let device = values(&napi.device);
    if !device.is_empty() {
        parts.push(device.join(", "));
    }
    let mut groups: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
    for i in &napi.instances {
        let own = i.values.known().map(values).unwrap_or_default();
        if i.values.is_known() && own != device {
            let queue = i.rx.first().or(i.tx.first()).copied();
            groups.entry(own).or_default().extend(queue);
        }
    }
    for (v, queues) in groups {
        let text = if v.is_empty() { "none of these".into() } else { v.join(", ") };
        parts.push(format!("queues {} {text}", set(queues)));
    }
    let pinned = napi.instances.iter().filter_map(|i| {
        let cpus = i.thread.as_ref()?.cpus.known()?;
        (cpus.len() == 1).then(|| format!("{}@{}", i.rx.first().or(i.tx.first()).copied().unwrap_or(0), cpus))
    });
    let pinned: Vec<String> = pinned.collect();
    if !pinned.is_empty() {
        parts.push(format!("threads of queues pinned (queue@CPU): {}", pinned.join(" ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The values in effect instead of settings that were refused or not kept: one line for each reason and kind.
pub(crate) fn instead(o: &Outcome, width: Option<usize>) -> String {
    let mut groups: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
    for i in &o.instead {
        let Some((asked, kept)) = i.asked.address().zip(i.kept.address()) else { continue };
        let why = format!("{}: {}", i.failure.words, i.failure.meaning);
        let what = match &i.kept {
            Setting::Coalesce { .. } => "the whole device instead".to_string(),
            _ => format!("{} instead", kept.family().title()),
        };
        let first = format!("{asked} requested {}, set {kept} {}", i.asked.value_text(), i.kept.value_text());
        groups.entry((why, what)).or_insert((0, first)).0 += 1;
    }
    let mut out = String::new();
    for ((why, what), (n, first)) in groups {
        let more = if n > 1 { format!(" (and {} more)", n - 1) } else { String::new() };
        out.push_str(&hang("instead: ", &format!("{first}{more}: {what}, because of {why}"), width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_words() {
        let v = NapiValues {
            defer_hard_irqs: Some(2),
            gro_flush_timeout_ns: Some(62_000),
            threaded: Some(1),
            ..NapiValues::default()
        };
        assert_eq!(values(&v), ["interrupts deferred for 2 empty polls, polled every 62 us", "threaded"]);
        assert!(values(&NapiValues { defer_hard_irqs: Some(0), gro_flush_timeout_ns: Some(0), ..v }).len() == 1);
        assert_eq!(
            values(&NapiValues { gro_flush_timeout_ns: Some(20_000), ..NapiValues::default() }),
            ["GRO flushed after 20 us"]
        );
    }
}
