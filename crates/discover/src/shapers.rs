//! Rate limits inside the NIC, from the kernel's `net-shaper` family.

use ringwise_kfmt::net_shaper_nl::shaper;
use ringwise_model::errno::ENOENT;
use ringwise_model::order::Order;
use ringwise_model::{Fact, Shapers};
use ringwise_sys::Request;

use crate::read::{Reader, failed};

/// Absent: the driver has no such limits (EOPNOTSUPP). ENOENT is the kernel's answer where it does not have the family; an
/// interface that was removed meanwhile gets it as well, and then nothing of it is left to limit.
pub(crate) fn shapers(r: &mut Reader, dev: &str) -> Fact<Shapers> {
    let request = Request::NetShaperDump { dev: dev.into() };
    let what = request.to_string();
    let found = match r.host.kernel(&request) {
        Ok(reply) => match reply.iter().map(|m| shaper(m)).collect::<Result<Vec<_>, _>>() {
            Ok(mut list) => {
                list.order_by_key(|s| s.place);
                Fact::Known(Shapers::Set(list))
            }
            Err(e) => Fact::unknown(what, e.to_string()),
        },
        Err(e) if e.errno == Some(ENOENT) => Fact::Known(Shapers::NotInKernel),
        Err(e) => failed(&what, &e),
    };
    match &found {
        // A recording of an earlier version.
        Fact::Unknown(u) if u.errno.is_none() && r.host.is_recorded() => found,
        _ => r.note(found),
    }
}
