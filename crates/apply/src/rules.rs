//! Flow steering rules: ETHTOOL_SRXCLSRLINS and ETHTOOL_SRXCLSRLDEL.

use ringwise_kfmt::ethtool_ioctl::rxnfc;
use ringwise_kfmt::rule::FlowSpec;
use ringwise_knob::rules::{BY_CONTENT, real};
use ringwise_model::errno::{EEXIST, ENOENT};
use ringwise_model::{Rule, Rules, Snapshot};
use ringwise_sys::{Error, IoctlCmd, Request, Result};

use crate::host_access::HostAccess;

fn rules<'a>(now: &'a Snapshot, dev: &str) -> Option<&'a Rules> {
    now.nic(dev)?.rules.known()
}

fn order(cx: &HostAccess, dev: &str, cmd: IoctlCmd, payload: Vec<u8>) -> Result<()> {
    cx.order(Request::Ioctl { cmd, dev: dev.to_string(), payload })
}

/// Replaces the rule at the location; some drivers need the old one deleted first.
pub(crate) fn write(cx: &HostAccess, now: &Snapshot, dev: &str, location: u32, rule: Option<&Rule>) -> Result<()> {
    let there = rules(now, dev).and_then(|all| real(all, location).filter(|at| all.rules.contains_key(at)));
    let delete = |at: u32| match order(cx, dev, IoctlCmd::RuleDelete, rxnfc::delete(at)) {
        // Another program has deleted it already.
        Err(e) if e.errno == Some(ENOENT) => Ok(()),
        done => done,
    };
    let Some(rule) = rule else { return there.map_or(Ok(()), delete) };
    let at = if location & BY_CONTENT == 0 { location } else { rxnfc::LOC_ANY };
    let spec = FlowSpec::of(rule, at).map_err(|e| Error::other(format!("flow rule of {dev}"), e.to_string()))?;
    let insert = || order(cx, dev, IoctlCmd::RuleInsert, rxnfc::insert(&spec));
    match (insert(), there) {
        (Err(e), Some(old)) if e.errno == Some(EEXIST) && location & BY_CONTENT == 0 => {
            delete(old).and_then(|()| insert())
        }
        (done, _) => done,
    }
}
