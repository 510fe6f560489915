//! Notifications of the kernel: datagrams of rtnetlink, of the groups `monitor` (ethtool) and `mgmt` (netdev), and uevents.
//!
//! Only what happened, and to which interface, is decoded: a reader discovers the values by itself.
//! Formats: `linux/rtnetlink.h`, `linux/ethtool_netlink.h`, `linux/netdev.h`, `lib/kobject_uevent.c`.

use crate::ethtool_nl::ids;
use crate::nl::attrs;
use crate::{ParseError, rtnl};

const WHAT: &str = "netlink notification";
/// `sizeof(struct nlmsghdr)`.
const HEADER: usize = 16;
/// `sizeof(struct genlmsghdr)`.
const GENERIC_HEADER: usize = 4;
/// Below it are messages of netlink itself (`NLMSG_MIN_TYPE`).
const FIRST_TYPE: u16 = 0x10;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
/// `NETDEV_A_DEV_IFINDEX`.
const NETDEV_IFINDEX: u16 = 1;

/// What happened to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterfaceNotification {
    /// It appeared, was renamed, or its flags, link or membership changed.
    Link,
    /// It vanished from this network namespace.
    Gone,
    /// Its channel counts were set.
    Channels,
    /// Its ring sizes were set.
    Rings,
    /// Its interrupt moderation was set.
    Coalesce,
    /// Its offload features changed.
    Features,
    /// Its pause frame settings were set.
    Pause,
    /// An RSS table, key or context was set (since 6.17).
    Rss,
    /// The netdev family reports another state of the device (XDP features).
    Netdev,
    /// Another setting that ringwise does not manage.
    Other,
}

/// Something that happened to an interface. The kernel reports its index, its name or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceChange {
    /// What happened.
    pub change: InterfaceNotification,
    /// `None`: not in the message.
    pub ifindex: Option<u32>,
    /// `None`: not in the message.
    pub name: Option<String>,
}

/// The messages of one datagram: type and body after `nlmsghdr`.
fn messages(datagram: &[u8]) -> Result<Vec<(u16, &[u8])>, ParseError> {
    let mut rest = datagram;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let short = || ParseError::new(WHAT, format!("{} bytes", rest.len()), "whole messages");
        let head: [u8; HEADER] = rest.get(..HEADER).and_then(|h| h.try_into().ok()).ok_or_else(short)?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let body = rest.get(HEADER..length).ok_or_else(short)?;
        out.push((u16::from_ne_bytes([head[4], head[5]]), body));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(out)
}

/// A datagram of the rtnetlink group for links.
pub fn links(datagram: &[u8]) -> Result<Vec<InterfaceChange>, ParseError> {
    let mut out = Vec::new();
    for (kind, body) in messages(datagram)? {
        let change = match kind {
            RTM_NEWLINK => InterfaceNotification::Link,
            RTM_DELLINK => InterfaceNotification::Gone,
            _ => continue,
        };
        let link = rtnl::link(body)?;
        out.push(InterfaceChange { change, ifindex: Some(link.ifindex), name: Some(link.name) });
    }
    Ok(out)
}

/// What a notification of ethtool with this number reports.
fn setting(number: u8) -> InterfaceNotification {
    match ids::NOTIFICATIONS.iter().find(|(_, n)| *n == number).map(|(name, _)| *name) {
        Some("FEATURES") => InterfaceNotification::Features,
        Some("RINGS") => InterfaceNotification::Rings,
        Some("CHANNELS") => InterfaceNotification::Channels,
        Some("COALESCE") => InterfaceNotification::Coalesce,
        Some("PAUSE") => InterfaceNotification::Pause,
        Some("RSS" | "RSS_CREATE" | "RSS_DELETE") => InterfaceNotification::Rss,
        _ => InterfaceNotification::Other,
    }
}

/// A datagram of the ethtool group `monitor`.
pub fn ethtool(datagram: &[u8]) -> Result<Vec<InterfaceChange>, ParseError> {
    let mut out = Vec::new();
    for (command, body) in generic(datagram)? {
        let change = setting(command);
        let mut found = InterfaceChange { change, ifindex: None, name: None };
        for attr in attrs(body) {
            let attr = attr?;
            // The header is the first attribute of every message of this family.
            if attr.kind != ids::HEADER {
                continue;
            }
            for inner in attr.nested() {
                let inner = inner?;
                match inner.kind {
                    ids::header::DEV_INDEX => found.ifindex = Some(inner.u32()?),
                    ids::header::DEV_NAME => found.name = Some(inner.str()?),
                    _ => {}
                }
            }
            break;
        }
        out.push(found);
    }
    Ok(out)
}

/// A datagram of the netdev group `mgmt`.
pub fn netdev(datagram: &[u8]) -> Result<Vec<InterfaceChange>, ParseError> {
    let mut out = Vec::new();
    for (_, body) in generic(datagram)? {
        let mut found = InterfaceChange { change: InterfaceNotification::Netdev, ifindex: None, name: None };
        for attr in attrs(body) {
            let attr = attr?;
            if attr.kind == NETDEV_IFINDEX {
                found.ifindex = Some(attr.u32()?);
            }
        }
        out.push(found);
    }
    Ok(out)
}

/// Command and attributes of each message of a generic netlink family.
fn generic(datagram: &[u8]) -> Result<Vec<(u8, &[u8])>, ParseError> {
    let mut out = Vec::new();
    for (kind, body) in messages(datagram)? {
        if kind < FIRST_TYPE {
            continue;
        }
        let short = || ParseError::new(WHAT, format!("{} bytes", body.len()), "a generic netlink header");
        let rest = body.get(GENERIC_HEADER..).ok_or_else(short)?;
        out.push((body[0], rest));
    }
    Ok(out)
}

/// What a uevent reports, as far as it matters for interfaces and CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uevent {
    /// A CPU went online or offline.
    Cpu {
        /// Its number.
        cpu: u32,
        /// Whether it is online now.
        online: bool,
    },
    /// An interface was added, removed or renamed.
    Interface {
        /// Its present name.
        name: String,
    },
    /// A driver was bound to a device, or unbound from it.
    Driver {
        /// Bus address: `0000:03:00.0`; for virtio and auxiliary devices that of the function above.
        device: String,
    },
    /// Anything else.
    Other,
}

/// A uevent of the kernel: `ACTION@DEVPATH`, then `KEY=VALUE`, each with a NUL at its end.
pub fn uevent(datagram: &[u8]) -> Result<Uevent, ParseError> {
    let bad = |expected| ParseError::new("uevent", &datagram[..datagram.len().min(64)], expected);
    let text = std::str::from_utf8(datagram).map_err(|_| bad("UTF-8"))?;
    let (head, keys) = text.split_once('\0').unwrap_or((text, ""));
    let (action, path) = head.split_once('@').ok_or_else(|| bad("ACTION@DEVPATH"))?;
    let keys = crate::uevent::parse(&keys.replace('\0', "\n"))?;
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or_default();
    Ok(match (keys.get("SUBSYSTEM").map_or("", String::as_str), action) {
        ("cpu", "online" | "offline") => {
            let cpu =
                last.strip_prefix("cpu").and_then(|n| n.parse().ok()).ok_or_else(|| bad("a path that ends in cpuN"))?;
            Uevent::Cpu { cpu, online: action == "online" }
        }
        // Queues and their directories have the subsystem `queues`.
        ("net", "add" | "remove" | "move") => Uevent::Interface { name: last.to_string() },
        ("pci" | "platform", "bind" | "unbind") => Uevent::Driver { device: last.to_string() },
        // Below the PCI function, which is the address of the interface.
        ("virtio" | "auxiliary", "bind" | "unbind") => {
            Uevent::Driver { device: parts.next().unwrap_or_default().to_string() }
        }
        _ => Uevent::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl::Builder;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut m = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        m.extend(kind.to_ne_bytes());
        m.extend([0; 10]);
        m.extend(body);
        m.resize(m.len().next_multiple_of(4), 0);
        m
    }

    fn newlink(index: u32, name: &str) -> Vec<u8> {
        let mut body = vec![0; 16];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut b = Builder::new();
        b.string(3, name).unwrap();
        body.extend(b.finish());
        body
    }

    fn ethtool_message(command: u8, index: u32, name: &str) -> Vec<u8> {
        let mut head = Builder::new();
        head.u32(ids::header::DEV_INDEX, index).string(ids::header::DEV_NAME, name).unwrap();
        let mut b = Builder::new();
        b.nested(ids::HEADER, &head).unwrap();
        [&[command, 1, 0, 0][..], &b.finish()].concat()
    }

    fn of(change: InterfaceNotification, ifindex: u32, name: &str) -> InterfaceChange {
        InterfaceChange { change, ifindex: Some(ifindex), name: Some(name.into()) }
    }

    #[test]
    fn links_of_one_datagram() {
        let both = [message(RTM_NEWLINK, &newlink(4, "eth1")), message(RTM_DELLINK, &newlink(4, "eth1"))].concat();
        assert_eq!(
            links(&both).unwrap(),
            [of(InterfaceNotification::Link, 4, "eth1"), of(InterfaceNotification::Gone, 4, "eth1")]
        );
        assert!(links(&message(20, &[0; 8])).unwrap().is_empty(), "an address");
    }

    #[test]
    fn settings_of_ethtool() {
        let of_command = |c: u8| ethtool(&message(0x15, &ethtool_message(c, 7, "eth2"))).unwrap();
        for (command, change) in [
            (13, InterfaceNotification::Features),
            (17, InterfaceNotification::Rings),
            (19, InterfaceNotification::Channels),
            (21, InterfaceNotification::Coalesce),
            (23, InterfaceNotification::Pause),
            (50, InterfaceNotification::Rss),
            (52, InterfaceNotification::Rss),
            (53, InterfaceNotification::Rss),
            (12, InterfaceNotification::Other),
            (10, InterfaceNotification::Other),
        ] {
            assert_eq!(of_command(command), [of(change, 7, "eth2")], "{command}");
        }
    }

    #[test]
    fn a_device_of_the_netdev_family() {
        let mut b = Builder::new();
        b.u32(NETDEV_IFINDEX, 5);
        let bytes = message(0x1b, &[&[4, 1, 0, 0][..], &b.finish()].concat());
        let found = InterfaceChange { change: InterfaceNotification::Netdev, ifindex: Some(5), name: None };
        assert_eq!(netdev(&bytes).unwrap(), [found]);
    }

    #[test]
    fn uevents() {
        let of = |text: &str| uevent(text.as_bytes()).unwrap();
        let cpu = "offline@/devices/system/cpu/cpu5\0ACTION=offline\0DEVPATH=/devices/system/cpu/cpu5\0SUBSYSTEM=cpu\0SEQNUM=9\0";
        assert_eq!(of(cpu), Uevent::Cpu { cpu: 5, online: false });
        assert_eq!(of(&cpu.replace("offline", "online")), Uevent::Cpu { cpu: 5, online: true });
        let net = "move@/devices/pci0000:00/0000:00:02.0/net/lan0\0ACTION=move\0SUBSYSTEM=net\0INTERFACE=lan0\0";
        assert_eq!(of(net), Uevent::Interface { name: "lan0".into() });
        let bind = "unbind@/devices/pci0000:00/0000:00:02.0\0ACTION=unbind\0SUBSYSTEM=pci\0";
        assert_eq!(of(bind), Uevent::Driver { device: "0000:00:02.0".into() });
        let bind = "bind@/devices/pci0000:00/0000:00:03.0/virtio0\0ACTION=bind\0SUBSYSTEM=virtio\0";
        assert_eq!(of(bind), Uevent::Driver { device: "0000:00:03.0".into() });
        assert_eq!(of("add@/devices/x/queues/rx-0\0SUBSYSTEM=queues\0"), Uevent::Other);
        assert!(uevent(b"libudev\0\xfe\xed").is_err());
        assert!(uevent(b"online@/devices/system/cpu/cpux\0SUBSYSTEM=cpu\0").is_err());
    }

    #[test]
    fn cut_datagrams_are_errors() {
        let whole = message(0x15, &ethtool_message(19, 7, "eth2"));
        for end in 1..whole.len() {
            assert!(ethtool(&whole[..end]).is_err(), "{end}");
        }
        assert!(links(&message(RTM_NEWLINK, &[0; 8])).is_err());
    }
}
