//! Channel counts (`ethtool -l`): CHANNELS_GET.

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::{Channels, Fact};

use crate::ethtool::get;
use crate::read::Reader;

/// Absent: the driver does not report channels (EOPNOTSUPP).
pub(crate) fn channels(r: &mut Reader, dev: &str) -> Fact<Channels> {
    get(r, dev, msg::CHANNELS_GET, "channels-get", ethtool_nl::channels)
}
