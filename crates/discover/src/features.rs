//! Features (`ethtool -k`): FEATURES_GET; private flags: PRIVFLAGS_GET. Verbose bit sets are requested, whose answer
//! names each bit: one request is enough, and a recording contains all names.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::{Fact, Feature};

use crate::ethtool::{first, request};
use crate::read::Reader;

pub(crate) fn features(r: &mut Reader, dev: &str) -> Fact<BTreeMap<String, Feature>> {
    r.ask_later(&request(dev, msg::FEATURES_GET, "features-get"), |reply| ethtool_nl::features(first(reply)?, &[]))
}

/// Absent: the driver has none.
pub(crate) fn private_flags(r: &mut Reader, dev: &str) -> Fact<BTreeMap<String, bool>> {
    let ask = request(dev, msg::PRIVFLAGS_GET, "privflags-get");
    let found = r.ask_later(&ask, |reply| ethtool_nl::private_flags(first(reply)?, &[]));
    found.and_then(|all| if all.is_empty() { Fact::Absent } else { Fact::Known(all) })
}
