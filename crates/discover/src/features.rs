//! Features (`ethtool -k`): FEATURES_GET; private flags: PRIVFLAGS_GET.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Feature};

use crate::parts::NOT_ASKED;
use crate::read::Reader;

pub fn features(_r: &mut Reader, _dev: &str) -> Fact<BTreeMap<String, Feature>> {
    Fact::unknown("features-get", NOT_ASKED)
}

pub fn private_flags(_r: &mut Reader, _dev: &str) -> Fact<BTreeMap<String, bool>> {
    Fact::unknown("privflags-get", NOT_ASKED)
}
