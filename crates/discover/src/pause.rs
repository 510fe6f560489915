//! Pause frames (`ethtool -a`): PAUSE_GET. Absent is normal for virtual devices.

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::Fact;
use ringwise_model::nic::Pause;

use crate::ethtool::get;
use crate::read::Reader;

pub(crate) fn pause(r: &mut Reader, dev: &str) -> Fact<Pause> {
    get(r, dev, msg::PAUSE_GET, "pause-get", ethtool_nl::pause)
}
