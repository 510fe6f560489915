//! What a driver passes to XDP programs beside the packet, from `dev-get` of the netdev family.

use ringwise_kfmt::netdev_nl::{cmd, xdp_metadata};
use ringwise_model::{Fact, XdpMetadata};
use ringwise_sys::Request;

use crate::ethtool::first;
use crate::read::Reader;

/// Absent: the kernel does not have the family (before 6.3), and so no XDP program can read such values.
pub(crate) fn metadata(r: &mut Reader, dev: &str) -> Fact<XdpMetadata> {
    let request = Request::NetdevDump { cmd: cmd::DEV_GET, name: "dev-get", dev: dev.to_string() };
    let found = r.ask_later(&request, |reply| xdp_metadata(first(reply)?));
    let unknown = || Fact::unknown(request.to_string(), "the kernel reports it since Linux 6.7");
    found.and_then(|m| m.map_or_else(unknown, Fact::Known))
}
