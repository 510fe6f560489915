//! Redacts rtnetlink replies: links, addresses, routes and queueing disciplines, attribute by attribute (`linux/if_link.h`,
//! `linux/if_addr.h`, `linux/rtnetlink.h`). Whatever is not known to be harmless is removed.

use super::names::Pseudonyms;
use super::strings::{Strings, TextKind};
use super::text;

/// `IFLA_*`
mod ifla {
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const BROADCAST: u16 = 2;
    pub(super) const IFNAME: u16 = 3;
    pub(super) const QDISC: u16 = 6;
    pub(super) const LINKINFO: u16 = 18;
    pub(super) const IFALIAS: u16 = 20;
    pub(super) const PHYS_PORT_ID: u16 = 34;
    pub(super) const PHYS_SWITCH_ID: u16 = 36;
    pub(super) const PHYS_PORT_NAME: u16 = 38;
    pub(super) const XDP: u16 = 43;
    pub(super) const PROP_LIST: u16 = 52;
    pub(super) const ALT_IFNAME: u16 = 53;
    pub(super) const PERM_ADDRESS: u16 = 54;
    pub(super) const PARENT_DEV_NAME: u16 = 56;
    pub(super) const PARENT_DEV_BUS_NAME: u16 = 57;
    /// Numbers: MTU, LINK, MASTER, TXQLEN, OPERSTATE, LINKMODE, NUM_VF, GROUP, PROMISCUITY, NUM_TX_QUEUES, NUM_RX_QUEUES,
    /// CARRIER, CARRIER_CHANGES, LINK_NETNSID, PROTO_DOWN, GSO_MAX_SEGS, GSO_MAX_SIZE, carrier counts, MIN_MTU, MAX_MTU,
    /// GRO_MAX_SIZE, TSO_MAX_SIZE, TSO_MAX_SEGS, ALLMULTI, GSO_IPV4_MAX_SIZE, GRO_IPV4_MAX_SIZE.
    pub(super) const NUMBERS: [u16; 27] =
        [4, 5, 10, 13, 16, 17, 21, 27, 30, 31, 32, 33, 35, 37, 39, 40, 41, 47, 48, 50, 51, 58, 59, 60, 61, 63, 64];
}

const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_SLAVE_KIND: u16 = 4;
const INFO_SLAVE_DATA: u16 = 5;

/// Flag bits of an attribute type: nested, network byte order.
const FLAGS: u16 = 0xc000;

/// (type with its flag bits, value) of each attribute. Stops at invalid data.
pub(super) fn split(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut out = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]);
        let Some(value) = bytes.get(4..length) else { break };
        out.push((kind, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    out
}

pub(super) fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // A longer value does not fit the length field; the kernel sends none.
    let value = &value[..value.len().min(usize::from(u16::MAX) - 4)];
    out.extend(((4 + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

pub(super) fn number(kind: u16) -> u16 {
    kind & !FLAGS
}

/// Whether the value has the length of a number of the kernel, or of a flag.
pub(super) fn is_scalar(value: &[u8]) -> bool {
    matches!(value.len(), 0 | 1 | 2 | 4 | 8)
}

/// Text up to the first NUL.
pub(super) fn text_of(value: &[u8]) -> String {
    let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// The same attribute with the private parts of its text replaced.
pub(super) fn put_text(out: &mut Vec<u8>, kind: u16, value: &[u8], names: &mut Pseudonyms, strings: &Strings) {
    let mut text = text::text(text_of(value).as_bytes(), names, strings, TextKind::Tables);
    text.push(0);
    put(out, kind, &text);
}

fn put_name(out: &mut Vec<u8>, kind: u16, value: &[u8], what: &'static str, names: &mut Pseudonyms) {
    let text = text_of(value);
    let name = if text.is_empty() { text } else { names.string(what, &text) };
    put(out, kind, format!("{name}\0").as_bytes());
}

/// Names of the interface in a link message besides its main name: alias, alternative names, port name.
pub(super) fn given(message: &[u8]) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for (kind, value) in split(message.get(16..).unwrap_or_default()) {
        match number(kind) {
            ifla::IFALIAS => out.push(("alias", text_of(value))),
            ifla::PHYS_PORT_NAME => out.push(("port name", text_of(value))),
            ifla::PROP_LIST => {
                let inner = split(value).into_iter().filter(|(k, _)| number(*k) == ifla::ALT_IFNAME);
                out.extend(inner.map(|(_, v)| ("alternative name", text_of(v))));
            }
            _ => {}
        }
    }
    out.retain(|(_, t)| !t.is_empty());
    out
}

/// Name of the interface of a link message.
pub(super) fn interface(message: &[u8]) -> Option<String> {
    let all = split(message.get(16..)?);
    all.iter().find(|(k, _)| number(*k) == ifla::IFNAME).map(|(_, v)| text_of(v))
}

/// One RTM_NEWLINK: ifinfomsg and attributes.
pub(super) fn link(message: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Vec<u8> {
    let Some(head) = message.get(..16) else { return Vec::new() };
    let mut out = head.to_vec();
    for (kind, value) in split(&message[16..]) {
        match number(kind) {
            ifla::ADDRESS | ifla::BROADCAST | ifla::PERM_ADDRESS => put(&mut out, kind, &names.address(value)),
            ifla::PHYS_PORT_ID | ifla::PHYS_SWITCH_ID => put(&mut out, kind, &names.hardware(value)),
            ifla::IFALIAS => put_name(&mut out, kind, value, "alias", names),
            ifla::PHYS_PORT_NAME => put_name(&mut out, kind, value, "port name", names),
            ifla::PROP_LIST => {
                let mut list = Vec::new();
                for (kind, value) in split(value).into_iter().filter(|(k, _)| number(*k) == ifla::ALT_IFNAME) {
                    put_name(&mut list, kind, value, "alternative name", names);
                }
                put(&mut out, kind, &list);
            }
            ifla::IFNAME | ifla::QDISC | ifla::PARENT_DEV_NAME | ifla::PARENT_DEV_BUS_NAME => {
                put_text(&mut out, kind, value, names, strings);
            }
            ifla::LINKINFO => put(&mut out, kind, &link_info(value, names)),
            ifla::XDP => put(&mut out, kind, &scalars(value, |_| true, names)),
            n if ifla::NUMBERS.contains(&n) && is_scalar(value) => put(&mut out, kind, value),
            // Virtual functions, ports, settings of IP, counters, memory of the device.
            _ => names.count("left out"),
        }
    }
    out
}

/// The numeric attributes that `keep` accepts; all others are removed.
fn scalars(value: &[u8], keep: impl Fn(u16) -> bool, names: &mut Pseudonyms) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, value) in split(value) {
        if keep(number(kind)) && is_scalar(value) {
            put(&mut out, kind, value);
        } else {
            names.count("left out");
        }
    }
    out
}

/// For each kind, only the attributes without addresses: VLAN numbers, bond and MACVLAN modes.
fn link_info(info: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let all = split(info);
    let name =
        |wanted: u16| all.iter().find(|(kind, _)| number(*kind) == wanted).map(|(_, v)| text_of(v)).unwrap_or_default();
    let (own, slave) = (name(INFO_KIND), name(INFO_SLAVE_KIND));
    let mut out = Vec::new();
    for (kind, value) in &all {
        let keep: &[u16] = match (number(*kind), own.as_str(), slave.as_str()) {
            // Nested, but all numbers: protocol, flags; the maps are removed.
            (INFO_DATA, "vlan", _) => &[1, 2, 5],
            // mode, active member, link supervision, hash policy, LACP rate and choice
            (INFO_DATA, "bond", _) => &[1, 2, 3, 4, 5, 6, 14, 21, 22],
            (INFO_DATA, "macvlan" | "macvtap", _) => &[1, 2],
            // state, link, failures, queue
            (INFO_SLAVE_DATA, _, "bond") => &[1, 2, 3, 5],
            (INFO_KIND | INFO_SLAVE_KIND, ..) => {
                // Names of modules.
                put(&mut out, *kind, value);
                continue;
            }
            _ => &[],
        };
        put(&mut out, *kind, &scalars(value, |n| keep.contains(&n), names));
    }
    out
}

/// One RTM_NEWADDR: ifaddrmsg and attributes. 1, 2, 4, 5 and 7 are addresses, 3 is a label (`eth0:web`), 8, 9 and 11 are
/// flags, metric and origin.
pub(super) fn addr(message: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let Some(head) = message.get(..8) else { return Vec::new() };
    let mut out = head.to_vec();
    for (kind, value) in split(&message[8..]) {
        match number(kind) {
            1 | 2 | 4 | 5 | 7 => put(&mut out, kind, &names.address(value)),
            8 | 9 | 11 if is_scalar(value) => put(&mut out, kind, value),
            _ => names.count("left out"),
        }
    }
    out
}

/// One RTM_NEWROUTE: rtmsg and attributes. 1, 2, 5 and 7 are addresses, 18 is one after its family; 3 and 4 are
/// interfaces, 6 the metric, 15 the table, 20 the preference.
pub(super) fn route(message: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let Some(head) = message.get(..12) else { return Vec::new() };
    let mut out = head.to_vec();
    route_attributes(&message[12..], &mut out, names);
    out
}

const MULTIPATH: u16 = 9;

fn route_attributes(bytes: &[u8], out: &mut Vec<u8>, names: &mut Pseudonyms) {
    for (kind, value) in split(bytes) {
        match (number(kind), value.split_at_checked(2)) {
            (1 | 2 | 5 | 7, _) => put(out, kind, &names.address(value)),
            (18, Some((family, address))) => put(out, kind, &[family, &names.address(address)].concat()),
            (MULTIPATH, _) => put(out, kind, &hops(value, names)),
            (3 | 4 | 6 | 15 | 20, _) if is_scalar(value) => put(out, kind, value),
            _ => names.count("left out"),
        }
    }
}

/// `struct rtnexthop` (length of all, flags, hops, interface) with attributes of its own, several in a row.
fn hops(mut bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let mut out = Vec::new();
    while bytes.len() >= 8 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let Some(one) = bytes.get(..length).filter(|o| o.len() >= 8) else { break };
        let mut hop = one[..8].to_vec();
        route_attributes(&one[8..], &mut hop, names);
        let whole = (hop.len() as u16).to_ne_bytes();
        hop[..2].copy_from_slice(&whole);
        out.extend(hop);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    out
}

/// Length of `struct tc_mqprio_qopt` (linux/pkt_sched.h), which contains numbers of classes and queues only.
const MQPRIO_QOPT: usize = 82;

/// One RTM_NEWQDISC: tcmsg, the kind, whether the device offloads it, and the traffic classes of mqprio and taprio.
pub(super) fn qdisc(message: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Vec<u8> {
    const KIND: u16 = 1;
    const OPTIONS: u16 = 2;
    const OFFLOADED: u16 = 12;
    /// Of taprio: a `struct tc_mqprio_qopt`.
    const TAPRIO_PRIOMAP: u16 = 1;
    let Some(head) = message.get(..20) else { return Vec::new() };
    let mut out = head.to_vec();
    let all = split(&message[20..]);
    let name = all.iter().find(|(kind, _)| number(*kind) == KIND).map(|(_, value)| text_of(value)).unwrap_or_default();
    for (kind, value) in all {
        match number(kind) {
            OPTIONS if name == "mqprio" && value.len() >= MQPRIO_QOPT => put(&mut out, kind, &value[..MQPRIO_QOPT]),
            OPTIONS if name == "taprio" => {
                let mut inner = Vec::new();
                for (k, v) in split(value) {
                    if number(k) == TAPRIO_PRIOMAP && v.len() == MQPRIO_QOPT {
                        put(&mut inner, k, v);
                    }
                }
                put(&mut out, kind, &inner);
            }
            KIND => put_text(&mut out, kind, value, names, strings),
            OFFLOADED if is_scalar(value) => put(&mut out, kind, value),
            // Options and counters, which a reader of a capture does not need.
            _ => names.count("left out"),
        }
    }
    out
}
