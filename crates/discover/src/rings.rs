//! Ring sizes (`ethtool -g`): RINGS_GET.

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::{Fact, Rings};

use crate::ethtool::get;
use crate::read::Reader;

pub(crate) fn rings(r: &mut Reader, dev: &str) -> Fact<Rings> {
    get(r, dev, msg::RINGS_GET, "rings-get", ethtool_nl::rings)
}
