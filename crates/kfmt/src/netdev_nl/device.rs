//! `dev-get`: what the driver passes to XDP programs (net/core/netdev-genl.c, `netdev_nl_dev_fill`).

use ringwise_model::XdpMetadata;

use crate::ParseError;
use crate::nl::{Builder, attrs};

/// `NETDEV_A_DEV_XDP_RX_METADATA_FEATURES`, with the bits of `enum netdev_xdp_rx_metadata` (include/uapi/linux/netdev.h).
const XDP_RX_METADATA_FEATURES: u16 = 5;
const TIMESTAMP: u64 = 1;
const HASH: u64 = 2;
const VLAN_TAG: u64 = 4;

const WHAT: &str = "dev-get reply";

/// Decodes one `dev-get` message. `None`: the kernel does not report it (before 6.7).
pub fn xdp_metadata(reply: &[u8]) -> Result<Option<XdpMetadata>, ParseError> {
    let mut found = None;
    for attr in attrs(reply) {
        let in_device = |e| ParseError { what: WHAT, ..e };
        let a = attr.map_err(in_device)?;
        if a.kind == XDP_RX_METADATA_FEATURES {
            let bits = a.uint().map_err(in_device)?;
            let has = |bit| bits & bit != 0;
            found = Some(XdpMetadata { hash: has(HASH), timestamp: has(TIMESTAMP), vlan_tag: has(VLAN_TAG) });
        }
    }
    Ok(found)
}

/// A `dev-get` message as the kernel would send it, for simulated hosts.
pub fn xdp_metadata_reply(metadata: Option<&XdpMetadata>) -> Vec<u8> {
    let mut b = Builder::new();
    if let Some(m) = metadata {
        let bits = [(m.hash, HASH), (m.timestamp, TIMESTAMP), (m.vlan_tag, VLAN_TAG)];
        b.u64(XDP_RX_METADATA_FEATURES, bits.iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum());
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `netdev_nl_dev_fill` writes it: ifindex, XDP features, metadata, AF_XDP features.
    fn message(bits: u64) -> Vec<u8> {
        let mut b = Builder::new();
        b.u32(1, 2).u64(3, 0x7f).u64(XDP_RX_METADATA_FEATURES, bits).u64(6, 3);
        b.finish()
    }

    #[test]
    fn each_bit_has_its_meaning() {
        let read = |bits| xdp_metadata(&message(bits)).unwrap().unwrap();
        let none = XdpMetadata { hash: false, timestamp: false, vlan_tag: false };
        assert_eq!(read(0), none);
        assert_eq!(read(1), XdpMetadata { timestamp: true, ..none });
        assert_eq!(read(2), XdpMetadata { hash: true, ..none });
        assert_eq!(read(4), XdpMetadata { vlan_tag: true, ..none });
        // A bit of a later kernel.
        assert_eq!(read(8 + 2), XdpMetadata { hash: true, ..none });
    }

    #[test]
    fn kernels_without_the_attribute_do_not_answer_no() {
        let mut b = Builder::new();
        b.u32(1, 2).u64(3, 0x7f);
        assert_eq!(xdp_metadata(&b.finish()), Ok(None));
        let mut b = Builder::new();
        b.u8(XDP_RX_METADATA_FEATURES, 2);
        assert_eq!(xdp_metadata(&b.finish()).unwrap_err().what, WHAT);
    }

    #[test]
    fn replies_go_round() {
        let all = XdpMetadata { hash: true, timestamp: true, vlan_tag: true };
        for m in [None, Some(all), Some(XdpMetadata { hash: false, ..all })] {
            assert_eq!(xdp_metadata(&xdp_metadata_reply(m.as_ref())), Ok(m));
        }
    }
}
