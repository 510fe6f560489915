//! Flow steering rules (`ethtool -n`): ETHTOOL_GRXCLSRLCNT, GRXCLSRLALL and GRXCLSRULE.

use ringwise_model::{Fact, Rules};

use crate::parts::NOT_ASKED;
use crate::read::Reader;

pub fn rules(_r: &mut Reader, _dev: &str) -> Fact<Rules> {
    Fact::unknown("flow rules", NOT_ASKED)
}
