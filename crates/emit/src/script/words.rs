//! Settings that ethtool supports, as lines of the script: the arguments that set a value, and the output that is
//! expected then.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, coalesce, features, rings, rss, rules};
use ringwise_model::{RingKind, Rule};

use super::call::{Call, Order, Place};
use super::{Way, quote};

pub(super) fn of_profile(parameter: &str) -> bool {
    parameter.contains("-profile.")
}

pub(super) fn calls(way: &Way, setting: &Setting) -> Result<Vec<Call>, String> {
    let one = match setting {
        Setting::Channels { dev, rx, tx, combined } => channels(way, dev, [*rx, *tx, *combined])?,
        Setting::Rings { dev, values } => {
            let expect = values.iter().map(|(part, n)| {
                // The expected values are separated by spaces, so the script replaces spaces within a name.
                let name = part.printed.replace(' ', "-");
                match part.kind {
                    RingKind::Size => at_least(&name, n),
                    RingKind::Number(_) | RingKind::Switch | RingKind::Mode => format!("{name}:{}", part.text(n)),
                }
            });
            let expect: Vec<String> = expect.collect();
            Call::Ethtool(order(dev, "-g", "-G", expect.join(" "), rings::text(values)))
        }
        Setting::Pause { dev, autoneg, rx, tx } => {
            let all = [("Autonegotiate", "autoneg", autoneg), ("RX", "rx", rx), ("TX", "tx", tx)];
            let all: Vec<_> = all.iter().filter_map(|(k, w, v)| v.map(|v| (k, w, features::text(v)))).collect();
            let expect: Vec<String> = all.iter().map(|(k, _, v)| format!("{k}:{v}")).collect();
            let words: Vec<String> = all.iter().map(|(_, w, v)| format!("{w} {v}")).collect();
            match all.is_empty() {
                true => Call::Nothing(format!("{} reports no pause settings", quote(dev))),
                false => Call::Ethtool(order(dev, "-a", "-A", expect.join(" "), words.join(" "))),
            }
        }
        Setting::Feature { dev, name, on } => feature(dev, name, *on),
        Setting::Ntuple { dev, on } => feature(dev, features::NTUPLE, *on),
        Setting::Coalesce { dev, params } => moderation(way, dev, None, params),
        Setting::QueueCoalesce { dev, queue, params } => moderation(way, dev, Some(*queue), params),
        Setting::RssHash { dev, function, key, symmetric } => {
            return hash(dev, [function.as_deref(), key.as_deref(), symmetric.as_deref()]);
        }
        Setting::RssFields { dev, flow: of, fields } => {
            let flow = rss::ethtool_flow(of);
            if !HASHED.contains(&flow) || fields.is_empty() {
                return Err(format!("{dev}: ethtool cannot express hashing {of} by {fields:?}"));
            }
            let sorted: String = rss::LETTERS.chars().filter(|c| fields.contains(*c)).collect();
            let more = format!("rx-flow-hash {flow}");
            let words = format!("{more} {fields}");
            Call::Ethtool(Order { ask: ("-n", more), ..order(dev, "-n", "-N", format!("fields:{sorted}"), words) })
        }
        Setting::RssTable { dev, table } => Call::Ethtool(order(
            dev,
            "-x",
            "-X",
            format!("table:{}", commas(table)),
            table_words(way, dev, table, true)?,
        )),
        Setting::RssContext { dev, context, table: None, .. } => {
            Call::NoContext { dev: dev.clone(), context: *context }
        }
        Setting::RssContext { dev, context, table: Some(table), key } => {
            let (mut expect, mut words) = (format!("table:{}", commas(table)), table_words(way, dev, table, false)?);
            if let Some(k) = key {
                expect += &format!(" key:{}", colons(k));
                words += &format!(" hkey {}", colons(k));
            }
            Call::Context { dev: dev.clone(), context: *context, expect, words }
        }
        Setting::FlowRule { dev, location, rule } => flow_rule(way, dev, *location, rule.as_ref())?,
        other => return Err(format!("{}: a script cannot write this setting", other.value_text())),
    };
    Ok(vec![one])
}

/// Flow types for which every supported ethtool can set hash fields.
const HASHED: [&str; 10] = ["tcp4", "udp4", "ah4", "esp4", "sctp4", "tcp6", "udp6", "ah6", "esp6", "sctp6"];

/// A call whose show option has no arguments after the device.
fn order(dev: &str, ask: &'static str, tell: &'static str, expect: String, words: String) -> Order {
    Order { dev: dev.into(), ask: (ask, String::new()), tell, expect, words, transform: false }
}

fn channels(way: &Way, dev: &str, [rx, tx, combined]: [Option<u32>; 3]) -> Result<Call, String> {
    let has = [("RX", "rx", rx), ("TX", "tx", tx), ("Combined", "combined", combined)];
    let all: Vec<_> = has.iter().filter_map(|(k, w, n)| n.map(|n| (k, w, n))).collect();
    // ethtool prints n/a for counts that a driver does not have.
    let expect = |(k, _, n): &(_, _, u32)| if *n > 0 { format!("{k}:{n}") } else { format!("{k}:0|n/a") };
    let expect: Vec<String> = all.iter().map(expect).collect();
    // Set a count to 0 only if no other count is set: drivers refuse counts that they do not have.
    let some = all.iter().any(|(.., n)| *n > 0);
    let words: Vec<String> = all.iter().filter(|(.., n)| *n > 0 || !some).map(|(_, w, n)| format!("{w} {n}")).collect();
    let left = way
        .rx_queues(dev)
        .ok_or_else(|| format!("{dev}: the number of receive queues after the channel change is unknown"))?;
    let contexts = way.contexts.get(dev).into_iter().flatten().copied().collect();
    Ok(Call::Channels { left, contexts, order: order(dev, "-l", "-L", expect.join(" "), words.join(" ")) })
}

/// An acceptable range, because drivers round up.
fn at_least(name: &str, n: u32) -> String {
    format!("{name}:{n}..{}", rings::most(n))
}

/// Switches a feature. For some features ethtool prints a name of its own.
fn feature(dev: &str, name: &str, on: bool) -> Call {
    let printed = features::SHORT.iter().find(|(_, _, kernel)| *kernel == [name]).map_or(name, |(_, long, _)| long);
    Call::Feature { dev: dev.into(), name: name.into(), printed: printed.into(), on }
}

fn moderation(way: &Way, dev: &str, queue: Option<u32>, params: &BTreeMap<String, u32>) -> Call {
    let driver = way.s.nic(dev).and_then(|n| n.driver.known()).map(String::as_str);
    let adaptive = |name: &str| {
        let flag = if name.starts_with("rx-") { "use-adaptive-rx" } else { "use-adaptive-tx" };
        coalesce::MOVED_BY_ADAPTIVE.contains(&name) && params.get(flag).is_some_and(|v| *v != 0)
    };
    // If the values of the device are those of its first queue, the value of that queue is correct, too.
    let shown = way.s.nic(dev).filter(|_| queue.is_none()).and_then(|n| n.queue_coalesce.known()?.keys().next());
    let address = |q: &u32| Address::QueueCoalesce { dev: dev.into(), queue: *q };
    let first = match shown.and_then(|q| way.after.get(&address(q))) {
        Some(Setting::QueueCoalesce { params, .. }) => Some(params),
        _ => None,
    };
    let mut expect = Vec::new();
    for (name, value) in params.iter().filter(|(k, _)| !of_profile(k) && !adaptive(k)) {
        let (word, mut values) = coalesce::word(name, *value);
        if let Some(r) = coalesce::rounded(driver, name, *value).filter(|r| r != value) {
            values += &format!("|{r}");
        }
        if let Some(v) = first.and_then(|f| f.get(name)).filter(|v| *v != value) {
            values += &format!("~{}", coalesce::word(name, *v).1);
        }
        expect.push(format!("{word}:{values}"));
    }
    if expect.is_empty() {
        return Call::Nothing(format!("{} has no moderation to restore", quote(dev)));
    }
    Call::Moderation { dev: dev.into(), queue, expect }
}

/// One call for each part, because some drivers refuse a key or a function that is set already.
fn hash(dev: &str, [function, key, symmetric]: [Option<&str>; 3]) -> Result<Vec<Call>, String> {
    let one = |expect: String, words: String| order(dev, "-x", "-X", expect, words);
    let mut orders = Vec::new();
    if let Some(f) = function {
        if f.chars().all(|c| c.is_ascii_digit()) {
            return Err(format!("{dev}: ethtool has no name for its hash function {f}"));
        }
        orders.push(one(format!("{f}:on"), format!("hfunc {f}")));
    }
    if let Some(k) = key {
        orders.push(one(format!("key:{}", colons(k)), format!("hkey {}", colons(k))));
    }
    match symmetric {
        None => {}
        // If ethtool does not print the transform, it cannot set it either.
        Some(rss::NO_TRANSFORM) => {
            orders.push(one("symmetric-xor:off|- symmetric-or-xor:off|-".into(), "xfrm none".into()));
        }
        Some(x) => orders.push(Order { transform: true, ..one(format!("{x}:on"), format!("xfrm {x}")) }),
    }
    if orders.is_empty() {
        return Ok(vec![Call::Nothing(format!("{} reports no hash settings", quote(dev)))]);
    }
    Ok(orders.into_iter().map(Call::Ethtool).collect())
}

fn commas(table: &[u32]) -> String {
    table.iter().map(|q| format!("{q},")).collect()
}

fn colons(hex: &str) -> String {
    let bytes: Vec<&str> = (0..hex.len() / 2).filter_map(|i| hex.get(2 * i..2 * i + 2)).collect();
    bytes.join(":")
}

/// Restores the kernel's default as `default`: a table that a user has set would prevent fewer queues.
fn table_words(way: &Way, dev: &str, table: &[u32], own: bool) -> Result<String, String> {
    if own && way.rx_queues(dev).is_some_and(|n| rss::default(table.len(), n) == table) {
        return Ok("default".into());
    }
    rss::words(table)
        .ok_or_else(|| format!("{dev}: its RSS table cannot be written with ethtool, so it could not be restored"))
}

fn flow_rule(way: &Way, dev: &str, location: u32, rule: Option<&Rule>) -> Result<Call, String> {
    let chosen = location & rules::BY_CONTENT != 0;
    let (dev, place) = (dev.to_string(), if chosen { Place::Any } else { Place::At(location) });
    let words = |r: &Rule| {
        // For ip4 and ip6 these are other names that ethtool has for the same four bytes.
        let unclear =
            r.flow.starts_with("ip") && ["spi", "src-port", "dst-port"].iter().any(|f| r.fields.contains_key(*f));
        let command = rules::command(None, &dev, location, Some(r)).filter(|_| !unclear);
        command
            .map(|_| rules::text(r))
            .ok_or_else(|| format!("{dev}: ethtool cannot write and show this rule: {}", rules::text(r)))
    };
    Ok(match rule {
        Some(r) => Call::Rule { words: words(r)?, dev, place },
        None if chosen => {
            let wanted = way
                .rule_by_content(&dev, location)
                .ok_or_else(|| format!("{dev}: the content of a rule is unknown"))?;
            Call::NoRule { words: Some(words(&wanted)?), dev, place }
        }
        None => Call::NoRule { dev, place, words: None },
    })
}
