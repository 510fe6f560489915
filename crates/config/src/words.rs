//! Small languages inside strings: lists of numbers, RSS tables, name patterns; and the search for similar words.

use ringwise_model::{Action, CpuSet, Rule, Table};
use std::collections::BTreeMap;

/// Queues that one list may name: more than any device has.
const MAX_QUEUE: u32 = 4096;

/// `0-3,8` as numbers of queues.
pub(crate) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let set = list(text)?;
    let out: Vec<u32> = set.iter().map(|c| c.0).collect();
    match out.last() {
        None => Err("the list is empty".into()),
        Some(n) if *n >= MAX_QUEUE => Err(format!("{n} is not a queue number (at most {MAX_QUEUE} queues)")),
        Some(_) => Ok(out),
    }
}

fn list(text: &str) -> Result<CpuSet, String> {
    ringwise_kfmt::cpulist::parse(text).map_err(|e| match e.found.is_empty() {
        true => format!("\"{text}\" is not a list: {} at its end", e.expected),
        false => format!("\"{text}\" is not a list: {} at \"{}\"", e.expected, e.found),
    })
}

pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    let set = list(text)?;
    if set.is_empty() { Err("the list is empty".into()) } else { Ok(set) }
}

/// The shortest list text of some numbers.
pub(crate) fn list_text(numbers: &[u32]) -> String {
    numbers.iter().map(|n| ringwise_model::CpuId(*n)).collect::<CpuSet>().to_string()
}

pub(crate) const TABLE_RIGHT: &str =
    "\"equal 4\" or \"weight 3 1\" (start N is optional), \"default\", or a list of queues";

/// Parses an RSS table in ethtool's syntax.
pub(crate) fn table(text: &str) -> Result<Table, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut start = 0;
    if let Some(at) = words.iter().position(|w| *w == "start") {
        let value = words.get(at + 1).ok_or("\"start\" needs a queue number")?;
        start = value.parse().map_err(|_| format!("start \"{value}\" is not a number"))?;
        words.drain(at..at + 2);
    }
    let number = |w: &&str| w.parse::<u32>().map_err(|_| format!("\"{w}\" is not a number"));
    match words.as_slice() {
        ["default"] if start == 0 => Ok(Table::Default),
        ["default"] => Err("\"default\" cannot have a start".into()),
        ["equal", n] => match number(n)? {
            0 => Err("\"equal 0\" leaves no queue".into()),
            queues => Ok(Table::Equal { queues, start }),
        },
        ["weight", weights @ ..] if !weights.is_empty() => {
            let weights = weights.iter().map(number).collect::<Result<Vec<u32>, _>>()?;
            if weights.iter().all(|w| *w == 0) {
                return Err("the weights sum to zero: no queue would receive packets".into());
            }
            Ok(Table::Weight { weights, start })
        }
        _ => Err(format!("\"{text}\" is not an RSS table")),
    }
}

pub(crate) fn table_text(table: &Table) -> String {
    let from = |start: u32| if start == 0 { String::new() } else { format!(" start {start}") };
    match table {
        Table::Default => "default".into(),
        Table::Equal { queues, start } => format!("equal {queues}{}", from(*start)),
        Table::Weight { weights, start } => {
            let w: Vec<String> = weights.iter().map(u32::to_string).collect();
            format!("weight {}{}", w.join(" "), from(*start))
        }
        Table::Explicit(_) => String::new(),
    }
}

pub(crate) fn rule_text(r: &Rule) -> String {
    let mut out = flow_text(&r.flow, &r.fields);
    if let Some(c) = r.context {
        out += &format!(" context {c}");
    }
    match r.action {
        Action::Queue(q) => out += &format!(" action {q}"),
        Action::Drop => out += " action -1",
        Action::Wake => out += " action -2",
        Action::Vf { vf, queue } => out += &format!(" vf {vf} queue {queue}"),
    }
    out
}

pub(crate) fn flow_text(flow: &str, fields: &BTreeMap<String, String>) -> String {
    let mut out = flow.to_string();
    for (k, v) in fields {
        out += &format!(" {k} {v}");
    }
    out
}

/// `eth*`, `enp?s0`: shell patterns with `*` and `?`.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < n.len() {
        match p.get(i) {
            Some('*') => {
                star = Some((i, j));
                i += 1;
            }
            Some(c) if *c == '?' || *c == n[j] => {
                i += 1;
                j += 1;
            }
            // The last star matches one more character.
            _ => match star {
                Some((s, from)) => {
                    star = Some((s, from + 1));
                    i = s + 1;
                    j = from + 1;
                }
                None => return false,
            },
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

pub(crate) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_pattern() {
        for (p, n, yes) in [
            ("eth*", "eth12", true),
            ("eth*", "et", false),
            ("*", "", true),
            ("enp?s0f*", "enp3s0f1", true),
            ("enp?s0", "enp10s0", false),
            ("*a*b", "xxaxxbxb", true),
            ("eth1", "eth10", false),
        ] {
            assert_eq!(glob_matches(p, n), yes, "{p} {n}");
        }
    }

    #[test]
    fn tables_in_words() {
        assert_eq!(table("equal 4 start 2"), Ok(Table::Equal { queues: 4, start: 2 }));
        assert_eq!(table("weight 3 1"), Ok(Table::Weight { weights: vec![3, 1], start: 0 }));
        for bad in ["", "equal", "equal 0", "weight", "weight 0 0", "weight a", "start", "default start 1", "even 4"] {
            assert!(table(bad).is_err(), "{bad}");
        }
    }
}
