//! Flow steering rules (`ethtool -n`): ETHTOOL_GRXCLSRLCNT, GRXCLSRLALL and GRXCLSRULE.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl::rxnfc;
use ringwise_kfmt::{ParseError, rule::FlowSpec};
use ringwise_model::errno::{EINVAL, EMSGSIZE, ENOENT};
use ringwise_model::{Fact, Rule, Rules};
use ringwise_sys::{Error, Host, IoctlCmd, Result};

use crate::ethtool::{first, ioctl};
use crate::read::{Reader, failed};

/// How often the list is read again if another program changes the rules during the read.
const TRIES: u32 = 4;
/// Most rules that are read, one call each; on devices with more, a program manages the rules.
const MOST: u32 = 8192;

/// Absent: the driver does not count rules, so it has none.
pub(crate) fn rules(r: &mut Reader, dev: &str) -> Fact<Rules> {
    let ask = ioctl(dev, IoctlCmd::RuleCount, rxnfc::count_request());
    let counted = match r.ask_later(&ask, |reply| rxnfc::count(first(reply)?)) {
        Fact::Known(c) => c,
        other => return other.and_then(|_| Fact::Absent),
    };
    let mut again = counted;
    for _ in 0..TRIES {
        match read(r.host, dev, again) {
            Ok(Some(rules)) => return Fact::Known(rules),
            // The rules changed meanwhile, so count again.
            Ok(None) => {}
            Err(e) => return r.note(failed_or_unknown(&e)),
        }
        match r.host.kernel(&ask).and_then(|reply| first(&reply).and_then(rxnfc::count).map_err(broken)) {
            Ok(c) => again = c,
            Err(e) => return r.note(failed_or_unknown(&e)),
        }
    }
    r.note(Fact::unknown(format!("flow rules of {dev}"), "they changed during every attempt to read them"))
}

fn failed_or_unknown(e: &Error) -> Fact<Rules> {
    match failed(&e.what, e) {
        // The driver counts rules and cannot list them, which is not the same as having none.
        Fact::Absent => Fact::Unknown(crate::read::unread(&e.what, e)),
        other => other,
    }
}

fn broken(e: ParseError) -> Error {
    Error::other("flow rules", e.to_string())
}

/// `None`: they changed while they were read.
fn read(host: &dyn Host, dev: &str, count: rxnfc::FlowRuleCount) -> Result<Option<Rules>> {
    let mut out = Rules { capacity: count.capacity, chooses_location: count.chooses_location, rules: BTreeMap::new() };
    if count.rules == 0 {
        return Ok(Some(out));
    }
    if count.rules > MOST {
        let words = format!("there are {} rules; at most {MOST} are read", count.rules);
        return Err(Error::other(format!("flow rules of {dev}"), words));
    }
    let list = ioctl(dev, IoctlCmd::RuleList, rxnfc::all_request(count.rules));
    let places = match host.kernel(&list) {
        Ok(reply) => first(&reply).and_then(rxnfc::all).map_err(broken)?,
        Err(e) if e.errno == Some(EMSGSIZE) => return Ok(None),
        Err(e) => return Err(e),
    };
    for at in places {
        match one(host, dev, at) {
            Ok(rule) => _ = out.rules.insert(at, rule),
            Err(e) if matches!(e.errno, Some(ENOENT | EINVAL)) => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(Some(out))
}

/// The rule at one location. Absent: the location is empty.
pub(crate) fn rule(r: &mut Reader, dev: &str, location: u32) -> Fact<Rule> {
    match one(r.host, dev, location) {
        Ok(rule) => Fact::Known(rule),
        // Errnos that drivers return if there is no such rule.
        Err(e) if matches!(e.errno, Some(ENOENT | EINVAL)) => Fact::Absent,
        Err(e) => Fact::Unknown(crate::read::unread(&e.what, &e)),
    }
}

fn one(host: &dyn Host, dev: &str, location: u32) -> Result<Rule> {
    let ask = ioctl(dev, IoctlCmd::RuleGet, rxnfc::rule_request(location));
    let reply = host.kernel(&ask)?;
    let spec: std::result::Result<FlowSpec, ParseError> = first(&reply).and_then(rxnfc::rule);
    spec.map(|s| s.rule()).map_err(broken)
}
