//! Traffic classes of transmit queues. Most interfaces have none: the queueing disciplines are read only if the link dump names one
//! that assigns queues to classes.

use std::collections::HashMap;

use ringwise_kfmt::ParseError;
use ringwise_kfmt::qdisc::{self, Qdisc};
use ringwise_model::{Fact, TrafficClasses};
use ringwise_sys::Request;

use crate::links::Port;

/// The root queueing disciplines by index of the interface. `None`: no interface needs them.
pub(crate) type Roots = Option<Fact<HashMap<u32, Qdisc>>>;

/// Whether the queueing discipline of the interface has traffic classes. `None`: not in the link dump.
fn has_classes(port: &Port) -> Option<bool> {
    let kind = port.info.as_ref()?.qdisc.as_deref()?;
    Some(qdisc::WITH_CLASSES.contains(&kind))
}

pub(crate) fn needed(ports: &[Port]) -> bool {
    ports.iter().any(|p| has_classes(p) == Some(true))
}

pub(crate) fn roots(reply: &[Vec<u8>]) -> Result<HashMap<u32, Qdisc>, ParseError> {
    let all: Vec<Qdisc> = reply.iter().map(|m| qdisc::qdisc(m)).collect::<Result<_, _>>()?;
    Ok(all.into_iter().filter(Qdisc::is_root).map(|q| (q.ifindex, q)).collect())
}

/// Traffic classes of one interface.
pub(crate) fn classes(roots: &Roots, port: &Port) -> Fact<TrafficClasses> {
    match (has_classes(port), roots) {
        (Some(false), _) => Fact::Absent,
        (Some(true), Some(roots)) => roots.as_ref().and_then(|all| of_root(all, port)),
        // A recording of an earlier version, or a tree without a link dump.
        (None, _) | (Some(true), None) => ringwise_model::not_requested(),
    }
}

fn of_root(all: &HashMap<u32, Qdisc>, port: &Port) -> Fact<TrafficClasses> {
    let what = || Request::Qdiscs.to_string();
    match port.ifindex.and_then(|i| all.get(&i.0)) {
        None => Fact::unknown(what(), "the interface has no root discipline there"),
        // The kernel always sends options, possibly with zero classes.
        Some(q) if !q.has_options => Fact::unknown(what(), "the reply has no options of the discipline"),
        Some(q) => q.classes.clone().map_or(Fact::Absent, Fact::Known),
    }
}
