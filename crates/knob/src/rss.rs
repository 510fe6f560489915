//! Receive-side scaling: tables, key, function and fields of the hash, contexts (`ethtool -X`, `-N rx-flow-hash`).

mod table;

use ringwise_model::errno::{EBUSY, EINVAL, ENOENT, ENOSPC, EOPNOTSUPP, ERANGE};
use ringwise_model::{Fact, Nic, Rss, RssContext, Snapshot};

use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, known, nic};

pub(crate) struct RssFamily;

impl Descriptor for RssFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let mut out = vec![Address::RssTable { dev: nic.dev.name.clone() }];
        out.extend(more_addresses(nic));
        out
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::RssHash { dev } => format!("{dev} RSS hash"),
            Address::RssFields { dev, flow } => format!("{dev} RSS fields {flow}"),
            Address::RssContext { dev, context } => format!("{dev} RSS context {context}"),
            other => format!("{} RSS table", other.dev().unwrap_or_default()),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        let Some(n) = address.dev().and_then(|d| s.nic(d)) else { return Fact::Absent };
        match address {
            Address::RssTable { .. } => live(n),
            Address::RssHash { .. } => live_hash(n),
            Address::RssFields { flow, .. } => live_fields(n, flow),
            Address::RssContext { context, .. } => live_context(n, *context),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        use Setting::{RssContext, RssHash};
        match (want, got) {
            (RssHash { function, key, symmetric, .. }, RssHash { function: f, key: k, symmetric: y, .. }) => {
                compare_hash((function, key, symmetric), (f, k, y))
            }
            (RssContext { table, key, .. }, RssContext { table: t, key: k, .. }) => {
                compare_context((table, key), (t, k))
            }
            _ if want == got => Match::Same,
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        let dev = setting.dev().ok_or(NotProjected::OTHER_FAMILY)?;
        let rss = known(&mut nic(s, dev)?.rss)?;
        match setting {
            Setting::RssHash { function, key, symmetric, .. } => {
                let parts = [(&mut rss.function, function), (&mut rss.key, key), (&mut rss.symmetric, symmetric)];
                for (to, value) in parts {
                    if let Some(v) = value {
                        *to = Fact::Known(v.clone());
                    }
                }
            }
            Setting::RssFields { flow, fields, .. } => _ = rss.fields.insert(flow.clone(), fields.clone()),
            Setting::RssTable { table, .. } => rss.table.clone_from(table),
            Setting::RssContext { context, table, key, .. } => {
                let all = known(&mut rss.contexts)?;
                // Without a key in the setting, the current key stays; the kernel chooses the key of a new context, which
                // cannot be known.
                let key = key.clone().or_else(|| all.get(context).and_then(|c| c.key.clone()));
                match table {
                    Some(t) => drop(all.insert(*context, RssContext { table: t.clone(), key })),
                    None => drop(all.remove(context)),
                }
            }
            _ => return Err(NotProjected::OTHER_FAMILY),
        }
        Ok(())
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        let Some(errno) = errno else {
            // ringwise never sends impossible tables, keys and contexts: the message gives the reason.
            return Some((Reaction::Fail, "the setting was not written, or the kernel did not answer"));
        };
        let meaning = match (address, errno) {
            (Address::RssTable { .. }, EINVAL) => (
                Reaction::Fail,
                "the table names a queue that does not exist, or its size differs from that of the device's table",
            ),
            (Address::RssHash { .. }, EINVAL) => (
                Reaction::Fail,
                "the driver does not accept this key or function, some flow type hashes fields that are not symmetric, or the \
                 kernel has no transforms (needs Linux 6.8 or later)",
            ),
            (Address::RssHash { .. }, EOPNOTSUPP) => {
                (Reaction::Refused, "the driver does not support this hash function, key or transform")
            }
            (Address::RssFields { .. }, EINVAL | EOPNOTSUPP) => {
                (Reaction::Refused, "the driver does not hash these fields for this flow type")
            }
            (Address::RssContext { .. }, EBUSY) => (Reaction::Fail, "a flow rule steers to this context"),
            (Address::RssContext { .. }, ENOENT) => {
                (Reaction::Fail, "the context no longer exists: it was deleted outside ringwise")
            }
            (Address::RssContext { .. }, ENOSPC | ERANGE) => {
                (Reaction::Fail, "the device has no room for another RSS context")
            }
            (Address::RssContext { .. }, EINVAL) => (
                Reaction::Fail,
                "the table names a queue that does not exist, or the device does not accept the table or key",
            ),
            _ => return None,
        };
        Some(meaning)
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::RssHash { function, key, symmetric, .. } => {
                hash_text(function.as_deref(), key.as_deref(), symmetric.as_deref())
            }
            Setting::RssFields { fields, .. } => fields.clone(),
            Setting::RssTable { table, .. } => text(table),
            Setting::RssContext { table, .. } => table.as_ref().map_or_else(|| "none".into(), |t| text(t)),
            _ => String::new(),
        }
    }

    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::RssHash { dev, function, key, symmetric } => {
                Some(hash_command(dev, function.as_deref(), key.as_deref(), symmetric.as_deref()))
            }
            Setting::RssFields { dev, flow, fields } => Some(fields_command(dev, flow, fields)),
            Setting::RssTable { dev, table } => Some(command(dev, table)),
            Setting::RssContext { dev, context, table, .. } => {
                Some(context_command(now.nic(dev), dev, *context, table.as_deref()))
            }
            _ => None,
        }
    }
}

pub(crate) use table::after_channels;
pub use table::{TableError, by_weight, default, is_even, moved, simulate};

/// Letters of hash fields, in the order of the kernel's bits.
pub const LETTERS: &str = "mvtsdfnelr";

/// Indirection table of the device in this snapshot.
pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    match &nic.rss {
        Fact::Known(Rss { table, .. }) if table.is_empty() => Fact::Absent,
        other => other.as_ref().map(|r: &Rss| Setting::RssTable { dev, table: r.table.clone() }),
    }
}

/// Entries per queue: `128 entries: 0-7 16 each`, else `0:24 1:8`.
pub fn text(table: &[u32]) -> String {
    let mut per: std::collections::BTreeMap<u32, u32> = Default::default();
    for q in table {
        *per.entry(*q).or_default() += 1;
    }
    let counts: Vec<u32> = per.values().copied().collect();
    let queues: ringwise_model::CpuSet = per.keys().map(|q| ringwise_model::CpuId(*q)).collect();
    if counts.windows(2).all(|w| w[0] == w[1]) && !counts.is_empty() {
        format!("{} entries: queues {} {} each", table.len(), queues, counts[0])
    } else {
        let s: Vec<String> = per.iter().map(|(q, n)| format!("{q}:{n}")).collect();
        format!("{} entries: {}", table.len(), s.join(" "))
    }
}

/// The arguments of `ethtool -X DEV` for a table. `None`: ethtool cannot express this table.
///
/// `equal N` and weights, from a given first queue on, are used only if ethtool's rule reproduces every entry of the
/// table (round robin; or cumulative weights, `domain.md` 0.1).
pub fn words(table: &[u32]) -> Option<String> {
    let start = table.iter().min().copied().unwrap_or(0);
    let from = if start == 0 { String::new() } else { format!(" start {start}") };
    let table_from: Vec<u32> = table.iter().map(|q| q - start).collect();
    let queues = table_from.iter().max().map_or(0, |m| m + 1);
    if default(table.len(), queues) == table_from {
        return Some(format!("equal {queues}{from}"));
    }
    let mut weights = vec![0u32; queues as usize];
    for q in &table_from {
        weights[*q as usize] += 1;
    }
    let w: Vec<String> = weights.iter().map(u32::to_string).collect();
    (by_weight(&weights, table.len()) == table_from).then(|| format!("weight {}{from}", w.join(" ")))
}

pub(crate) fn command(dev: &str, table: &[u32]) -> String {
    match words(table) {
        Some(words) => format!("ethtool -X {dev} {words}"),
        None => no_command(dev),
    }
}

fn no_command(dev: &str) -> String {
    format!("# {dev}: this RSS table has no ethtool command; ringwise recover restores it")
}

/// Function, key and transform; omits the parts that the driver does not report.
pub fn live_hash(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rss.as_ref().and_then(|r: &Rss| {
        let part = |f: &Fact<String>| f.known().cloned();
        let (function, key, symmetric) = (part(&r.function), part(&r.key), part(&r.symmetric));
        if function.is_none() && key.is_none() && symmetric.is_none() {
            return Fact::Absent;
        }
        Fact::Known(Setting::RssHash { dev, function, key, symmetric })
    })
}

/// Hashed fields of a flow type in this snapshot.
pub fn live_fields(nic: &Nic, flow: &str) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rss.as_ref().and_then(|r: &Rss| match r.fields.get(flow) {
        Some(f) => Fact::Known(Setting::RssFields { dev, flow: flow.to_string(), fields: f.clone() }),
        None => Fact::Absent,
    })
}

/// Known without a table: the device supports contexts, but does not have this one.
pub fn live_context(nic: &Nic, context: u32) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rss.as_ref().and_then(|r: &Rss| {
        r.contexts.as_ref().map(|all| {
            let c = all.get(&context);
            Setting::RssContext { dev, context, table: c.map(|c| c.table.clone()), key: c.and_then(|c| c.key.clone()) }
        })
    })
}

/// Addresses of the RSS settings beside the table.
pub fn more_addresses(nic: &Nic) -> Vec<crate::Address> {
    use crate::Address;
    let dev = || nic.dev.name.clone();
    let Some(r) = nic.rss.known() else { return Vec::new() };
    let mut out = vec![Address::RssHash { dev: dev() }];
    out.extend(r.fields.keys().map(|flow| Address::RssFields { dev: dev(), flow: flow.clone() }));
    let contexts = r.contexts.known().into_iter().flat_map(|all| all.keys());
    out.extend(contexts.map(|c| Address::RssContext { dev: dev(), context: *c }));
    out
}

type Parts<'a> = (&'a Option<String>, &'a Option<String>, &'a Option<String>);

/// The transform that leaves fields as they are.
pub const NO_TRANSFORM: &str = "none";

/// Compares only the parts that were requested.
pub fn compare_hash(want: Parts, got: Parts) -> crate::Match {
    let same = |w: &Option<String>, g: &Option<String>| w.is_none() || w == g;
    // A kernel without transforms applies none; journals of earlier versions record this as `none`.
    let none = want.2.as_deref() == Some(NO_TRANSFORM) && got.2.is_none();
    if same(want.0, got.0) && same(want.1, got.1) && (none || same(want.2, got.2)) {
        crate::Match::Same
    } else {
        crate::Match::Differs
    }
}

type Context<'a> = (&'a Option<Vec<u32>>, &'a Option<String>);

/// Ignores a key that was not requested.
pub fn compare_context(want: Context, got: Context) -> crate::Match {
    let key = want.1.is_none() || want.1 == got.1;
    if want.0 == got.0 && key { crate::Match::Same } else { crate::Match::Differs }
}

/// Text of function, key and transform for people.
pub fn hash_text(function: Option<&str>, key: Option<&str>, symmetric: Option<&str>) -> String {
    let parts = [("", function), ("key ", key), ("transform ", symmetric)];
    let s: Vec<String> = parts.iter().filter_map(|(k, v)| v.map(|v| format!("{k}{v}"))).collect();
    s.join(", ")
}

/// The `ethtool -X` command for function, key and transform.
pub fn hash_command(dev: &str, function: Option<&str>, key: Option<&str>, symmetric: Option<&str>) -> String {
    let mut out = format!("ethtool -X {dev}");
    if let Some(f) = function {
        out += &format!(" hfunc {f}");
    }
    if let Some(k) = key {
        let bytes: Vec<&str> = (0..k.len() / 2).map(|i| &k[2 * i..2 * i + 2]).collect();
        out += &format!(" hkey {}", bytes.join(":"));
    }
    if let Some(x) = symmetric {
        out += &format!(" xfrm {x}");
    }
    out
}

/// The context that this change deletes. Afterwards no rule may name it.
pub(crate) fn goes<'a>(from: &Fact<Setting>, to: &'a Setting) -> Option<(&'a str, u32)> {
    match (from.known(), to) {
        (Some(Setting::RssContext { table: Some(_), .. }), Setting::RssContext { dev, context, table: None, .. }) => {
            Some((dev, *context))
        }
        _ => None,
    }
}

/// ethtool's name of a kernel flow type: its `ah4` and `esp4` stand for the kernel's combined type. ethtool has no names
/// for the kernel's separate types.
pub fn ethtool_flow(flow: &str) -> &str {
    match flow {
        "ah-esp4" => "ah4",
        "ah-esp6" => "ah6",
        other => other,
    }
}

pub(crate) fn fields_command(dev: &str, flow: &str, fields: &str) -> String {
    format!("ethtool -N {dev} rx-flow-hash {} {fields}", ethtool_flow(flow))
}

/// The kernel chooses the number of a new context: the lowest free number.
pub fn context_command(nic: Option<&Nic>, dev: &str, context: u32, table: Option<&[u32]>) -> String {
    let contexts = nic.and_then(|n| n.rss.known()).and_then(|r| r.contexts.known());
    let there = contexts.is_none_or(|all| all.contains_key(&context));
    let Some(t) = table else { return format!("ethtool -X {dev} context {context} delete") };
    match words(t) {
        Some(words) if there => format!("ethtool -X {dev} context {context} {words}"),
        Some(words) => format!("ethtool -X {dev} context new {words}"),
        None => no_command(dev),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_only_where_it_gives_the_same_table() {
        assert_eq!(command("eth0", &[0, 1, 0, 1]), "ethtool -X eth0 equal 2");
        assert_eq!(command("eth0", &[0, 0, 1, 1]), "ethtool -X eth0 weight 2 2");
        assert_eq!(command("eth0", &[6, 7, 6, 7]), "ethtool -X eth0 equal 2 start 6");
        assert_eq!(command("eth0", &[2, 2, 2, 3]), "ethtool -X eth0 weight 3 1 start 2");
        assert!(command("eth0", &[1, 0, 0, 1]).starts_with("# eth0"));
        assert_eq!(context_command(None, "eth0", 2, Some(&[0, 1, 0, 1])), "ethtool -X eth0 context 2 equal 2");
        assert_eq!(context_command(None, "eth0", 2, None), "ethtool -X eth0 context 2 delete");
        assert_eq!(fields_command("eth0", "ah-esp6", "sd"), "ethtool -N eth0 rx-flow-hash ah6 sd");
    }

    #[test]
    fn tables_with_the_same_shares() {
        let of = |table: &[u32]| Setting::RssTable { dev: "eth0".into(), table: table.into() };
        let (spread, blocks) = (of(&[0, 1, 0, 1]), of(&[0, 0, 1, 1]));
        assert_eq!(spread.value_text(), blocks.value_text());
        assert_eq!(blocks.value_text_beside(&spread), format!("{}, in another order", spread.value_text()));
        assert_eq!(spread.value_text_beside(&spread), spread.value_text());
        assert_eq!(of(&[0, 1, 1, 1]).value_text_beside(&spread), of(&[0, 1, 1, 1]).value_text());
    }
}
