//! Identifiers inside raw replies of the kernel. Links and addresses are taken apart attribute by attribute
//! (`linux/if_link.h`, `linux/if_addr.h`); in all other replies known addresses and names are overwritten in place.

use super::names::Names;

const IFLA_ADDRESS: u16 = 1;
const IFLA_BROADCAST: u16 = 2;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_VFINFO_LIST: u16 = 22;
const IFLA_VF_PORTS: u16 = 24;
const IFLA_PORT_SELF: u16 = 25;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_PHYS_PORT_ID: u16 = 31;
const IFLA_PHYS_SWITCH_ID: u16 = 36;
const IFLA_PERM_ADDRESS: u16 = 54;

const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_XSTATS: u16 = 3;
const INFO_SLAVE_KIND: u16 = 4;
const INFO_SLAVE_DATA: u16 = 5;

type Strings<'a> = &'a [(String, String, &'static str)];

/// (type with its flag bits, value) of each attribute; the rest that is none.
fn split(mut bytes: &[u8]) -> (Vec<(u16, &[u8])>, &[u8]) {
    let mut out = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]);
        let Some(value) = bytes.get(4..length) else { break };
        out.push((kind, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    (out, bytes)
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend(((4 + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_string()
}

/// Alias of a link message, when it has one.
pub fn alias(message: &[u8]) -> Option<String> {
    let (attrs, _) = split(message.get(16..)?);
    attrs.iter().find(|(kind, _)| kind & 0x3fff == IFLA_IFALIAS).map(|(_, v)| text_of(v)).filter(|t| !t.is_empty())
}

/// One RTM_NEWLINK: ifinfomsg and attributes.
pub fn link(message: &[u8], names: &mut Names, strings: Strings) -> Vec<u8> {
    let Some(head) = message.get(..16) else { return Vec::new() };
    let mut out = head.to_vec();
    let (attrs, _) = split(&message[16..]);
    for (kind, value) in attrs {
        match kind & 0x3fff {
            IFLA_ADDRESS | IFLA_BROADCAST | IFLA_PERM_ADDRESS => put(&mut out, kind, &names.address(value)),
            IFLA_PHYS_PORT_ID | IFLA_PHYS_SWITCH_ID => put(&mut out, kind, &names.hardware(value)),
            IFLA_IFALIAS => {
                let name = names.string("alias", &text_of(value), true);
                put(&mut out, kind, format!("{name}\0").as_bytes());
            }
            // Addresses, tokens and secrets that no reader of a capture needs.
            IFLA_VFINFO_LIST | IFLA_VF_PORTS | IFLA_PORT_SELF | IFLA_AF_SPEC => names.count("left out"),
            IFLA_LINKINFO => put(&mut out, kind, &link_info(value, names)),
            _ => put(&mut out, kind, &in_place(value, names, strings)),
        }
    }
    out
}

/// Of each kind only the attributes that hold no address: VLAN numbers, bond and MACVLAN modes.
fn link_info(info: &[u8], names: &mut Names) -> Vec<u8> {
    let (attrs, _) = split(info);
    let name = |wanted: u16| {
        attrs.iter().find(|(kind, _)| kind & 0x3fff == wanted).map(|(_, v)| text_of(v)).unwrap_or_default()
    };
    let (own, slave) = (name(INFO_KIND), name(INFO_SLAVE_KIND));
    let mut out = Vec::new();
    for (kind, value) in &attrs {
        let keep: &[u16] = match (kind & 0x3fff, own.as_str(), slave.as_str()) {
            (INFO_DATA, "vlan", _) => &[1, 2, 3, 4, 5],
            // mode, active member, link supervision, hash policy, LACP rate and choice
            (INFO_DATA, "bond", _) => &[1, 2, 3, 4, 5, 6, 14, 21, 22],
            (INFO_DATA, "macvlan" | "macvtap", _) => &[1, 2],
            // state, link, failures, queue
            (INFO_SLAVE_DATA, _, "bond") => &[1, 2, 3, 5],
            (INFO_DATA | INFO_SLAVE_DATA | INFO_XSTATS, ..) => &[],
            _ => {
                put(&mut out, *kind, value);
                continue;
            }
        };
        let mut kept = Vec::new();
        for (kind, value) in split(value).0 {
            if keep.contains(&(kind & 0x3fff)) {
                put(&mut kept, kind, value);
            } else {
                names.count("left out");
            }
        }
        put(&mut out, *kind, &kept);
    }
    out
}

/// One RTM_NEWADDR: ifaddrmsg and attributes; types 1, 2, 4, 5 and 7 are addresses.
pub fn addr(message: &[u8], names: &mut Names, strings: Strings) -> Vec<u8> {
    let Some(head) = message.get(..8) else { return Vec::new() };
    let mut out = head.to_vec();
    for (kind, value) in split(&message[8..]).0 {
        match kind & 0x3fff {
            1 | 2 | 4 | 5 | 7 => put(&mut out, kind, &names.address(value)),
            _ => put(&mut out, kind, &in_place(value, names, strings)),
        }
    }
    out
}

/// One RTM_NEWROUTE: rtmsg and attributes; types 1, 2, 5, 7 are addresses, 18 is one after its family.
pub fn route(message: &[u8], names: &mut Names, strings: Strings) -> Vec<u8> {
    let Some(head) = message.get(..12) else { return Vec::new() };
    let mut out = head.to_vec();
    for (kind, value) in split(&message[12..]).0 {
        match (kind & 0x3fff, value.split_at_checked(2)) {
            (1 | 2 | 5 | 7, _) => put(&mut out, kind, &names.address(value)),
            (18, Some((family, address))) => put(&mut out, kind, &[family, &names.address(address)].concat()),
            _ => put(&mut out, kind, &in_place(value, names, strings)),
        }
    }
    out
}

/// The same length, so that every offset stays: known hardware addresses as bytes and as digits, known names.
pub fn in_place(bytes: &[u8], names: &mut Names, strings: Strings) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at + 6 <= out.len() {
        let window = &out[at..at + 6];
        // Addresses with many zeros would be found in any number.
        let telling = window.iter().filter(|b| **b != 0).count() >= 4;
        if telling && names.knows_hardware(window) {
            let name = names.hardware(&bytes[at..at + 6]);
            out[at..at + 6].copy_from_slice(&name);
            at += 6;
        } else {
            at += 1;
        }
    }
    // Shapes whose pseudonym is as long as they are.
    let text = super::text::text(&out, names, &[], super::text::V4::Keep);
    if text.len() == out.len() {
        out = text;
    }
    for (from, _, kind) in strings {
        let from = from.as_bytes();
        let mut at = 0;
        while at + from.len() <= out.len() {
            if &out[at..at + from.len()] == from {
                names.count(kind);
                out[at..at + from.len()].fill(b'x');
            }
            at += 1;
        }
    }
    out
}
