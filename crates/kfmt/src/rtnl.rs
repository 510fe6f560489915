//! rtnetlink messages: links (`ifinfomsg` and attributes) and addresses (`ifaddrmsg` and attributes),
//! without `nlmsghdr`. Numbers: linux/if_link.h, linux/if_addr.h.

use std::net::{Ipv4Addr, Ipv6Addr};

use ringwise_model::IfIndex;

use crate::ParseError;
use crate::nl::{Attr, Builder, TooLong, attrs};

const LINK: &str = "link message";
const ADDR: &str = "address message";
/// `sizeof(struct ifinfomsg)`: family 0, type 2, index 4, flags 8, change 12.
const IFINFOMSG: usize = 16;
/// `sizeof(struct ifaddrmsg)`: family 0, prefix length 1, flags 2, scope 3, index 4.
const IFADDRMSG: usize = 8;

/// `IFLA_*`.
mod ifla {
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const IFNAME: u16 = 3;
    pub(super) const MTU: u16 = 4;
    pub(super) const LINK: u16 = 5;
    pub(super) const QDISC: u16 = 6;
    pub(super) const MASTER: u16 = 10;
    pub(super) const OPERSTATE: u16 = 16;
    pub(super) const LINKINFO: u16 = 18;
    pub(super) const INFO_KIND: u16 = 1;
    pub(super) const IFALIAS: u16 = 20;
    pub(super) const NUM_TX_QUEUES: u16 = 31;
    pub(super) const NUM_RX_QUEUES: u16 = 32;
    pub(super) const CARRIER: u16 = 33;
    pub(super) const LINK_NETNSID: u16 = 37;
    pub(super) const XDP: u16 = 43;
    pub(super) const PROP_LIST: u16 = 52;
    pub(super) const ALT_IFNAME: u16 = 53;
    pub(super) const PERM_ADDRESS: u16 = 54;
    pub(super) const PARENT_DEV_NAME: u16 = 56;
    pub(super) const PARENT_DEV_BUS_NAME: u16 = 57;
}

/// Within `IFLA_XDP`.
mod xdp {
    pub(super) const ATTACHED: u16 = 2;
    pub(super) const PROG_ID: u16 = 4;
    pub(super) const DRV_PROG_ID: u16 = 5;
    pub(super) const SKB_PROG_ID: u16 = 6;
    pub(super) const HW_PROG_ID: u16 = 7;
}

/// The loopback interface (`linux/if_arp.h`).
pub const ARPHRD_LOOPBACK: u16 = 772;
/// Ethernet, and every link type that looks like it (`linux/if_arp.h`).
pub const ARPHRD_ETHER: u16 = 1;
/// The interface is switched on (`linux/if.h`).
pub const IFF_UP: u32 = 0x1;
/// The interface is a loopback (`linux/if.h`).
pub const IFF_LOOPBACK: u32 = 0x8;
/// The interface is up and operational (`linux/if.h`).
pub const IFF_RUNNING: u32 = 0x40;

/// An XDP program on an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpAttached {
    /// `driver`, `generic` or `offload`.
    pub mode: &'static str,
    /// `IFLA_XDP_*PROG_ID`. `None`: not in the message.
    pub program_id: Option<u32>,
}

/// One interface. `None`: not in the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// `ifi_index` of the message.
    pub ifindex: u32,
    /// `ARPHRD_*`.
    pub link_type: u16,
    /// `IFF_*`.
    pub flags: u32,
    /// `IFLA_IFNAME`.
    pub name: String,
    /// `IFLA_INFO_KIND`: `vlan`, `bond`, `veth`, …; `None` for hardware.
    pub kind: Option<String>,
    /// `IFLA_LINK`: the interface below (VLAN, macvlan) or the peer (veth).
    pub link: Option<u32>,
    /// `IFLA_LINK` is an index in another network namespace.
    pub link_in_other_netns: bool,
    /// `IFLA_QDISC`: kind of the root queueing discipline: `mq`, `mqprio`, `noqueue`, …
    pub qdisc: Option<String>,
    /// The bond, bridge or team of which this interface is a member.
    pub master: Option<u32>,
    /// Lower-case hexadecimal with colons.
    pub mac: Option<String>,
    /// `IFLA_PERM_ADDRESS`.
    pub perm_mac: Option<String>,
    /// `IFLA_MTU`, in bytes.
    pub mtu: Option<u32>,
    /// As in sysfs: `up`, `down`, `unknown`, `lowerlayerdown`, `dormant`, `testing`, `notpresent`.
    pub operstate: Option<&'static str>,
    /// `IFLA_CARRIER`: the link is detected.
    pub carrier: Option<bool>,
    /// `IFLA_NUM_RX_QUEUES`: receive queues that were allocated, in use or not.
    pub num_rx_queues: Option<u32>,
    /// `IFLA_NUM_TX_QUEUES`: transmit queues that were allocated, in use or not.
    pub num_tx_queues: Option<u32>,
    /// More than one if programs are attached in several modes.
    pub xdp: Vec<XdpAttached>,
    /// `IFLA_ALT_IFNAME`, in the kernel's order.
    pub altnames: Vec<String>,
    /// `ifalias`, a description by the administrator.
    pub alias: Option<String>,
    /// Parent device, e.g. `0000:03:00.0` (since 5.14).
    pub parent_dev: Option<String>,
    /// Its bus: `pci`, `virtio`, `vmbus`.
    pub parent_bus: Option<String>,
}

impl LinkInfo {
    /// Whether the flag or the link type marks a loopback.
    pub fn is_loopback(&self) -> bool {
        self.flags & IFF_LOOPBACK != 0 || self.link_type == ARPHRD_LOOPBACK
    }

    /// Whether an administrator switched it on; the link may still be down.
    pub fn is_up(&self) -> bool {
        self.flags & IFF_UP != 0
    }

    /// `ifindex` as the id of the model.
    pub fn index(&self) -> IfIndex {
        IfIndex(self.ifindex)
    }
}

/// `IF_OPER_*` by number (RFC 2863, net/core/net-sysfs.c).
const OPERSTATES: [&str; 7] = ["unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"];

fn mac(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() || bytes.len() > 32 {
        return None;
    }
    Some(bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"))
}

fn unmac(text: &str) -> Result<Vec<u8>, ParseError> {
    crate::nl::unhex(text)
}

/// Decodes an RTM_NEWLINK message.
pub fn link(msg: &[u8]) -> Result<LinkInfo, ParseError> {
    let (Some(head), Some(rest)) = (msg.get(..IFINFOMSG), msg.get(IFINFOMSG..)) else {
        return Err(ParseError::new(LINK, format!("{} bytes", msg.len()), "16 bytes or more"));
    };
    link_attrs(head, rest).map_err(|e| ParseError { what: LINK, ..e })
}

fn link_attrs(head: &[u8], rest: &[u8]) -> Result<LinkInfo, ParseError> {
    let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut l = LinkInfo {
        link_type: u16::from_ne_bytes([head[2], head[3]]),
        ifindex: word(4),
        flags: word(8),
        ..LinkInfo::default()
    };
    for attr in attrs(rest) {
        let a = attr?;
        match a.kind {
            ifla::ADDRESS => l.mac = mac(a.data),
            ifla::PERM_ADDRESS => l.perm_mac = mac(a.data),
            ifla::IFNAME => l.name = a.str()?,
            ifla::MTU => l.mtu = Some(a.u32()?),
            ifla::LINK => l.link = Some(a.u32()?).filter(|&i| i != 0),
            ifla::QDISC => l.qdisc = Some(a.str()?).filter(|t| !t.is_empty()),
            ifla::MASTER => l.master = Some(a.u32()?).filter(|&i| i != 0),
            ifla::OPERSTATE => l.operstate = OPERSTATES.get(usize::from(a.u8()?)).copied(),
            ifla::NUM_TX_QUEUES => l.num_tx_queues = Some(a.u32()?),
            ifla::NUM_RX_QUEUES => l.num_rx_queues = Some(a.u32()?),
            ifla::CARRIER => l.carrier = Some(a.u8()? != 0),
            ifla::LINK_NETNSID => l.link_in_other_netns = true,
            ifla::XDP => l.xdp = programs(&a)?,
            ifla::IFALIAS => l.alias = Some(a.str()?).filter(|t| !t.is_empty()),
            ifla::PARENT_DEV_NAME => l.parent_dev = Some(a.str()?),
            ifla::PARENT_DEV_BUS_NAME => l.parent_bus = Some(a.str()?),
            ifla::LINKINFO => {
                for inner in a.nested() {
                    let inner = inner?;
                    if inner.kind == ifla::INFO_KIND {
                        l.kind = Some(inner.str()?);
                    }
                }
            }
            ifla::PROP_LIST => {
                for inner in a.nested() {
                    let inner = inner?;
                    if inner.kind == ifla::ALT_IFNAME {
                        l.altnames.push(inner.str()?);
                    }
                }
            }
            _ => {}
        }
    }
    if l.name.is_empty() || l.ifindex == 0 {
        return Err(ParseError::new(LINK, format!("index {} name \"{}\"", l.ifindex, l.name), "an index and a name"));
    }
    Ok(l)
}

fn programs(nest: &Attr) -> Result<Vec<XdpAttached>, ParseError> {
    let (mut attached, mut any) = (0, None);
    let mut each = Vec::new();
    for attr in nest.nested() {
        let a = attr?;
        match a.kind {
            xdp::ATTACHED => attached = a.u8()?,
            xdp::PROG_ID => any = Some(a.u32()?),
            xdp::DRV_PROG_ID => each.push(("driver", a.u32()?)),
            xdp::SKB_PROG_ID => each.push(("generic", a.u32()?)),
            xdp::HW_PROG_ID => each.push(("offload", a.u32()?)),
            _ => {}
        }
    }
    // XDP_ATTACHED_*: none, driver, generic, offload, several.
    let mode = match attached {
        0 => return Ok(Vec::new()),
        1 => "driver",
        2 => "generic",
        3 => "offload",
        _ => return Ok(each.into_iter().map(|(mode, id)| XdpAttached { mode, program_id: Some(id) }).collect()),
    };
    let own = each.iter().find(|e| e.0 == mode).map(|e| e.1);
    Ok(vec![XdpAttached { mode, program_id: own.or(any) }])
}

/// An RTM_NEWLINK message as the kernel would send it, for simulated hosts.
/// Errors: an address that is not a MAC address, a name that is too long for an attribute.
pub fn link_reply(l: &LinkInfo) -> Result<Vec<u8>, ParseError> {
    let mut out = vec![0; IFINFOMSG];
    out[2..4].copy_from_slice(&l.link_type.to_ne_bytes());
    out[4..8].copy_from_slice(&l.ifindex.to_ne_bytes());
    out[8..12].copy_from_slice(&l.flags.to_ne_bytes());
    let mut b = Builder::new();
    b.string(ifla::IFNAME, &l.name)?;
    for (kind, value) in [
        (ifla::MTU, l.mtu),
        (ifla::LINK, l.link),
        (ifla::MASTER, l.master),
        (ifla::NUM_TX_QUEUES, l.num_tx_queues),
        (ifla::NUM_RX_QUEUES, l.num_rx_queues),
    ] {
        if let Some(v) = value {
            b.u32(kind, v);
        }
    }
    if let Some(n) = l.operstate.and_then(|s| OPERSTATES.iter().position(|o| *o == s)) {
        b.u8(ifla::OPERSTATE, n as u8);
    }
    if let Some(c) = l.carrier {
        b.u8(ifla::CARRIER, u8::from(c));
    }
    for (kind, text) in [(ifla::ADDRESS, &l.mac), (ifla::PERM_ADDRESS, &l.perm_mac)] {
        if let Some(text) = text {
            b.binary(kind, &unmac(text)?)?;
        }
    }
    if l.link_in_other_netns {
        b.u32(ifla::LINK_NETNSID, 0);
    }
    if let Some(kind) = &l.kind {
        let mut nest = Builder::new();
        nest.string(ifla::INFO_KIND, kind)?;
        b.nested(ifla::LINKINFO, &nest)?;
    }
    b.nested(ifla::XDP, &xdp_nest(&l.xdp))?;
    if !l.altnames.is_empty() {
        let mut nest = Builder::new();
        for name in &l.altnames {
            nest.string(ifla::ALT_IFNAME, name)?;
        }
        b.nested(ifla::PROP_LIST, &nest)?;
    }
    for (kind, text) in [
        (ifla::QDISC, &l.qdisc),
        (ifla::IFALIAS, &l.alias),
        (ifla::PARENT_DEV_NAME, &l.parent_dev),
        (ifla::PARENT_DEV_BUS_NAME, &l.parent_bus),
    ] {
        if let Some(text) = text {
            b.string(kind, text)?;
        }
    }
    out.extend(b.finish());
    Ok(out)
}

fn xdp_nest(list: &[XdpAttached]) -> Builder {
    let mut b = Builder::new();
    let number = |mode: &str| match mode {
        "driver" => (1, xdp::DRV_PROG_ID),
        "generic" => (2, xdp::SKB_PROG_ID),
        _ => (3, xdp::HW_PROG_ID),
    };
    b.u8(
        xdp::ATTACHED,
        match list {
            [] => 0,
            [one] => number(one.mode).0,
            _ => 4,
        },
    );
    if let [XdpAttached { program_id: Some(id), .. }] = list {
        b.u32(xdp::PROG_ID, *id);
    }
    for p in list {
        if let Some(id) = p.program_id {
            b.u32(number(p.mode).1, id);
        }
    }
    b
}

/// One address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddrInfo {
    /// `ifa_index` of the message.
    pub ifindex: u32,
    /// `AF_INET` 2, `AF_INET6` 10.
    pub family: u8,
    /// `192.0.2.1/24`, `2001:db8::1/64`.
    pub address: String,
}

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Decodes an RTM_NEWADDR message. For point-to-point links, the own address, not that of the peer.
/// `None` for families other than IPv4 and IPv6.
pub fn addr(msg: &[u8]) -> Result<Option<AddrInfo>, ParseError> {
    let (Some(head), Some(rest)) = (msg.get(..IFADDRMSG), msg.get(IFADDRMSG..)) else {
        return Err(ParseError::new(ADDR, format!("{} bytes", msg.len()), "8 bytes or more"));
    };
    let (family, prefix) = (head[0], head[1]);
    if family != AF_INET && family != AF_INET6 {
        return Ok(None);
    }
    let (mut own, mut any) = (None, None);
    for attr in attrs(rest) {
        let a = attr.map_err(|e| ParseError { what: ADDR, ..e })?;
        match a.kind {
            IFA_LOCAL => own = Some(a.data),
            IFA_ADDRESS => any = Some(a.data),
            _ => {}
        }
    }
    let bytes = own.or(any).ok_or_else(|| ParseError::new(ADDR, "none", "an address"))?;
    let text = match family {
        AF_INET => <[u8; 4]>::try_from(bytes).ok().map(|b| Ipv4Addr::from(b).to_string()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|b| Ipv6Addr::from(b).to_string()),
    };
    let Some(text) = text else {
        return Err(ParseError::new(ADDR, format!("{} bytes", bytes.len()), "4 or 16 bytes of address"));
    };
    let ifindex = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
    Ok(Some(AddrInfo { ifindex, family, address: format!("{text}/{prefix}") }))
}

/// An RTM_NEWADDR message as the kernel would send it, for simulated hosts.
/// Errors: an address that is not `ADDRESS/PREFIX`.
pub fn addr_reply(ifindex: u32, address: &str) -> Result<Vec<u8>, ParseError> {
    let bad = || ParseError::new(ADDR, address, "an address such as 192.0.2.1/24");
    let (ip, prefix) = address.split_once('/').ok_or_else(bad)?;
    let prefix: u8 = prefix.parse().map_err(|_| bad())?;
    let (family, bytes) = match ip.parse::<std::net::IpAddr>().map_err(|_| bad())? {
        std::net::IpAddr::V4(a) => (AF_INET, a.octets().to_vec()),
        std::net::IpAddr::V6(a) => (AF_INET6, a.octets().to_vec()),
    };
    let mut out = vec![family, prefix, 0, 0];
    out.extend(ifindex.to_ne_bytes());
    let mut b = Builder::new();
    let put = |b: &mut Builder, kind| -> Result<(), TooLong> { b.binary(kind, &bytes).map(|_| ()) };
    put(&mut b, IFA_ADDRESS)?;
    if family == AF_INET {
        put(&mut b, IFA_LOCAL)?;
    }
    out.extend(b.finish());
    Ok(out)
}

#[cfg(test)]
#[path = "rtnl_tests.rs"]
mod tests;
