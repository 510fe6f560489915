//! Settings that ethtool has words for, as lines of the script: what is told, and what must be read then.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, coalesce, features, rings, rss, rules};
use ringwise_model::Rule;

use super::{Way, quote};

/// The programs that the lines need, and what they must know.
pub(super) fn needs(lines: &str) -> Vec<String> {
    let any = |first: &str| lines.lines().any(|l| l.trim_start().split(' ').next() == Some(first));
    let functions = ["by_ethtool", "channels", "moderation", "feature", "rule", "no_rule", "context", "no_context"];
    if !functions.iter().any(|f| any(f)) {
        return Vec::new();
    }
    let mut out: Vec<String> = ["need ethtool", "need awk", "need grep"].map(String::from).into();
    if lines.contains(" xfrm symmetric-") {
        out.push("need ethtool xfrm".into());
    }
    if any("context") {
        out.push("need ethtool context".into());
    }
    if lines.contains("  moderation") && lines.contains(" 0x") {
        out.push("need ethtool per-queue".into());
    }
    out
}

pub(super) fn of_profile(parameter: &str) -> bool {
    parameter.contains("-profile.")
}

pub(super) fn line(way: &Way, setting: &Setting) -> Result<String, String> {
    Ok(match setting {
        Setting::Channels { dev, rx, tx, combined } => channels(way, dev, [*rx, *tx, *combined])?,
        Setting::Rings { dev, rx, tx } => {
            let expect: Vec<String> =
                [("RX", rx), ("TX", tx)].iter().filter_map(|(k, n)| n.map(|n| at_least(k, n))).collect();
            order(dev, "-g", "", "-G", &expect.join(" "), &rings::text(*rx, *tx))
        }
        Setting::Pause { dev, autoneg, rx, tx } => {
            let all = [("Autonegotiate", "autoneg", autoneg), ("RX", "rx", rx), ("TX", "tx", tx)];
            let all: Vec<_> = all.iter().filter_map(|(k, w, v)| v.map(|v| (k, w, features::text(v)))).collect();
            if all.is_empty() {
                return Ok(format!(": {} tells nothing of pause frames", quote(dev)));
            }
            let expect: Vec<String> = all.iter().map(|(k, _, v)| format!("{k}:{v}")).collect();
            let words: Vec<String> = all.iter().map(|(_, w, v)| format!("{w} {v}")).collect();
            order(dev, "-a", "", "-A", &expect.join(" "), &words.join(" "))
        }
        Setting::Feature { dev, name, on } => feature(dev, name, *on),
        Setting::Ntuple { dev, on } => feature(dev, features::NTUPLE, *on),
        Setting::Coalesce { dev, params } => moderation(way, dev, None, params),
        Setting::QueueCoalesce { dev, queue, params } => moderation(way, dev, Some(*queue), params),
        Setting::RssHash { dev, function, key, symmetric } => hash(dev, [function, symmetric], key.as_deref())?,
        Setting::RssFields { dev, flow, fields } => {
            let command = rss::fields_command(dev, flow, fields);
            let words = command.strip_prefix(&format!("ethtool -N {dev} rx-flow-hash ")).unwrap_or_default();
            let Some((flow, letters)) = words.split_once(' ').filter(|(f, l)| HASHED.contains(f) && !l.is_empty())
            else {
                return Err(format!("{dev}: ethtool has no words for hashing {flow} by {fields:?}"));
            };
            let sorted: String = rss::LETTERS.chars().filter(|c| letters.contains(*c)).collect();
            let more = format!("rx-flow-hash {flow}");
            order(dev, "-n", &more, "-N", &format!("fields:{sorted}"), &format!("{more} {letters}"))
        }
        Setting::RssTable { dev, table } => {
            order(dev, "-x", "", "-X", &format!("table:{}", commas(table)), &table_words(way, dev, table, true)?)
        }
        Setting::RssContext { dev, context, table: None, .. } => format!("no_context {} {context}", quote(dev)),
        Setting::RssContext { dev, context, table: Some(table), key } => {
            let (mut expect, mut words) = (format!("table:{}", commas(table)), table_words(way, dev, table, false)?);
            if let Some(k) = key {
                expect += &format!(" key:{}", colons(k));
                words += &format!(" hkey {}", colons(k));
            }
            format!("context {} {context} {} {words}", quote(dev), quote(&expect))
        }
        Setting::FlowRule { dev, location, rule } => flow_rule(way, dev, *location, rule.as_ref())?,
        other => return Err(format!("{}: not known to the script", other.value_text())),
    })
}

/// Flow types for which every ethtool of these years sets hash fields.
const HASHED: [&str; 10] = ["tcp4", "udp4", "ah4", "esp4", "sctp4", "tcp6", "udp6", "ah6", "esp6", "sctp6"];

/// Device, what it is asked with and what stands behind the device there, what it is told with, what must be read,
/// the words.
fn order(dev: &str, ask: &str, more: &str, tell: &str, expect: &str, words: &str) -> String {
    format!("by_ethtool {} {ask} {} {tell} {} {words}", quote(dev), quote(more), quote(expect))
}

fn channels(way: &Way, dev: &str, [rx, tx, combined]: [Option<u32>; 3]) -> Result<String, String> {
    let has = [("RX", "rx", rx), ("TX", "tx", tx), ("Combined", "combined", combined)];
    let all: Vec<_> = has.iter().filter_map(|(k, w, n)| n.map(|n| (k, w, n))).collect();
    // ethtool prints n/a for counts that a driver does not have.
    let expect = |(k, _, n): &(_, _, u32)| if *n > 0 { format!("{k}:{n}") } else { format!("{k}:0|n/a") };
    let expect: Vec<String> = all.iter().map(expect).collect();
    // A zero is told only beside nothing else: drivers refuse counts that they do not have.
    let some = all.iter().any(|(.., n)| *n > 0);
    let words: Vec<String> = all.iter().filter(|(.., n)| *n > 0 || !some).map(|(_, w, n)| format!("{w} {n}")).collect();
    let left = way
        .rx_queues(dev)
        .ok_or_else(|| format!("{dev}: the number of receive queues after the channel change is unknown"))?;
    let contexts: Vec<String> = way.contexts.get(dev).into_iter().flatten().map(u32::to_string).collect();
    let rest = order(dev, "-l", "", "-L", &expect.join(" "), &words.join(" "));
    Ok(format!("channels {left} {} {}", quote(&contexts.join(" ")), rest.trim_start_matches("by_ethtool ")))
}

/// Drivers round up.
fn at_least(name: &str, n: u32) -> String {
    format!("{name}:{n}..{}", rings::most(n))
}

/// ethtool prints a name of its own for some.
fn feature(dev: &str, name: &str, on: bool) -> String {
    let printed = features::SHORT.iter().find(|(_, _, kernel)| *kernel == [name]).map_or(name, |(_, long, _)| long);
    format!("feature {} {name} {printed} {}", quote(dev), features::text(on))
}

fn moderation(way: &Way, dev: &str, queue: Option<u32>, params: &BTreeMap<String, u32>) -> String {
    let driver = way.s.nic(dev).and_then(|n| n.driver.known()).map(String::as_str);
    let adaptive = |name: &str| {
        let flag = if name.starts_with("rx-") { "use-adaptive-rx" } else { "use-adaptive-tx" };
        coalesce::MOVED_BY_ADAPTIVE.contains(&name) && params.get(flag).is_some_and(|v| *v != 0)
    };
    // Where only the first queue shows in what the device says, its value is right too.
    let shown = way.s.nic(dev).filter(|_| queue.is_none()).and_then(|n| n.queue_coalesce.known()?.keys().next());
    let address = |q: &u32| Address::QueueCoalesce { dev: dev.into(), queue: *q };
    let first = match shown.and_then(|q| way.after.get(&address(q))) {
        Some(Setting::QueueCoalesce { params, .. }) => Some(params),
        _ => None,
    };
    let mut words = Vec::new();
    for (name, value) in params.iter().filter(|(k, _)| !of_profile(k) && !adaptive(k)) {
        let one = BTreeMap::from([(name.clone(), *value)]);
        let text = coalesce::words(&one).replacen(' ', ":", 1);
        let mut word = text.clone();
        if let Some(r) = coalesce::rounded(driver, name, *value).filter(|r| r != value) {
            word += &format!("|{r}");
        }
        if let Some(v) = first.and_then(|f| f.get(name)).filter(|v| *v != value) {
            let other = coalesce::words(&BTreeMap::from([(name.clone(), *v)]));
            word += &format!("~{}", other.split(' ').nth(1).unwrap_or_default());
        }
        words.push(quote(&word));
    }
    if words.is_empty() {
        return format!(": {} has no moderation to put back", quote(dev));
    }
    let mask = queue.map(coalesce::queue_mask).unwrap_or_default();
    format!("moderation {} {} {}", quote(dev), quote(&mask), words.join(" "))
}

/// Each part by itself: drivers refuse a key or a function that they have already.
fn hash(dev: &str, [function, symmetric]: [&Option<String>; 2], key: Option<&str>) -> Result<String, String> {
    let mut lines = Vec::new();
    let mut one = |expect: &str, words: &str| lines.push(order(dev, "-x", "", "-X", expect, words));
    if let Some(f) = function {
        if f.chars().all(|c| c.is_ascii_digit()) {
            return Err(format!("{dev}: ethtool has no name for its hash function {f}"));
        }
        one(&format!("{f}:on"), &format!("hfunc {f}"));
    }
    if let Some(k) = key {
        one(&format!("key:{}", colons(k)), &format!("hkey {}", colons(k)));
    }
    match symmetric.as_deref() {
        None => {}
        // An ethtool that does not print it cannot set it either.
        Some("none") => one("symmetric-xor:off|- symmetric-or-xor:off|-", "xfrm none"),
        Some(x) => one(&format!("{x}:on"), &format!("xfrm {x}")),
    }
    Ok(if lines.is_empty() { format!(": {} tells nothing of its hash", quote(dev)) } else { lines.join("\n  ") })
}

fn commas(table: &[u32]) -> String {
    table.iter().map(|q| format!("{q},")).collect()
}

fn colons(hex: &str) -> String {
    let bytes: Vec<&str> = (0..hex.len() / 2).filter_map(|i| hex.get(2 * i..2 * i + 2)).collect();
    bytes.join(":")
}

/// The kernel's default as such: a table set by somebody would stand in the way of fewer queues.
fn table_words(way: &Way, dev: &str, table: &[u32], own: bool) -> Result<String, String> {
    if own && way.rx_queues(dev).is_some_and(|n| rss::default(table.len(), n) == table) {
        return Ok("default".into());
    }
    let command = rss::command(dev, table);
    let words = command.strip_prefix(&format!("ethtool -X {dev} ")).map(str::to_string);
    words.ok_or_else(|| format!("{dev}: its RSS table cannot be written with ethtool, so it could not be put back"))
}

fn flow_rule(way: &Way, dev: &str, location: u32, rule: Option<&Rule>) -> Result<String, String> {
    let chosen = location & rules::BY_CONTENT != 0;
    let place = if chosen { "any".to_string() } else { location.to_string() };
    let words = |r: &Rule| {
        // Under ip4 and ip6 these are ethtool's other names for the same four bytes.
        let unclear =
            r.flow.starts_with("ip") && ["spi", "src-port", "dst-port"].iter().any(|f| r.fields.contains_key(*f));
        let command = rules::command(None, dev, location, Some(r)).filter(|_| !unclear);
        command
            .map(|_| rules::text(r))
            .ok_or_else(|| format!("{dev}: ethtool cannot write this rule and show it: {}", rules::text(r)))
    };
    Ok(match rule {
        Some(r) => format!("rule {} {place} {}", quote(dev), words(r)?),
        None if chosen => {
            let wanted =
                way.rule_by_content(dev, location).ok_or_else(|| format!("{dev}: a rule that is not known"))?;
            format!("no_rule {} any {}", quote(dev), words(&wanted)?)
        }
        None => format!("no_rule {} {place}", quote(dev)),
    })
}
