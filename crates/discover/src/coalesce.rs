//! Interrupt moderation of the device (`ethtool -c`): COALESCE_GET. Only supported parameters are in the reply.

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::{Coalesce, Fact};

use crate::ethtool::get;
use crate::read::Reader;

pub fn coalesce(r: &mut Reader, dev: &str) -> Fact<Coalesce> {
    get(r, dev, msg::COALESCE_GET, "coalesce-get", ethtool_nl::coalesce)
}

/// Moderation of each queue (`ETHTOOL_PERQUEUE`).
pub fn of_queues(_r: &mut Reader, _dev: &str) -> Fact<std::collections::BTreeMap<u32, Coalesce>> {
    Fact::unknown("moderation of queues", crate::parts::NOT_ASKED)
}
