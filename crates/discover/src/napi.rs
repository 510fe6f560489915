//! NAPI settings: of the device from sysfs, of its instances from the netdev family.

use ringwise_model::{Fact, Napi};

use crate::parts::NOT_ASKED;
use crate::read::Reader;

pub fn napi(_r: &mut Reader, _dev: &str) -> Fact<Napi> {
    Fact::unknown("NAPI", NOT_ASKED)
}
