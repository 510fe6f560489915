//! RSS_GET: indirection table, key, function and, since 6.17, the hash fields. RSS_SET and related messages, since
//! 6.17.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Rss};

use super::ids::{FLOWS, rss as id};
use crate::ParseError;
use crate::ethtool_ioctl::fields;
use crate::nl::{Builder, attrs, hex};

const WHAT: &str = "rss reply";

/// Content of an RSS_GET reply, as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RssParts {
    /// RSS context; `None` is context 0.
    pub context: Option<u32>,
    /// Queue of each table entry. Empty: the device has no table.
    pub indir: Vec<u32>,
    /// Hash key, bytes in the order of the device. Empty: not reported.
    pub hkey: Vec<u8>,
    /// Hash function, one bit (`ETH_RSS_HASH_*`).
    pub hfunc: Option<u32>,
    /// Symmetric hashing: 1 = XOR, 2 = OR-XOR (since 6.8).
    pub input_xfrm: Option<u32>,
    /// Fields by flow type, as ethtool's letters. `None`: the kernel is older than 6.17 and does not report them here.
    pub fields: Option<BTreeMap<String, String>>,
}

/// Decodes an RSS_GET reply.
pub fn rss(reply: &[u8]) -> Result<RssParts, ParseError> {
    rss_inner(reply).map_err(|e| ParseError { what: WHAT, ..e })
}

fn rss_inner(reply: &[u8]) -> Result<RssParts, ParseError> {
    let mut out = RssParts::default();
    for attr in attrs(reply) {
        let a = attr?;
        match a.kind {
            id::CONTEXT => out.context = Some(a.u32()?),
            id::HFUNC => out.hfunc = Some(a.u32()?),
            id::INDIR => out.indir = a.u32s()?,
            id::HKEY => out.hkey = a.data.to_vec(),
            id::INPUT_XFRM => out.input_xfrm = Some(a.u32()?),
            id::FLOW_HASH => {
                let mut map = BTreeMap::new();
                for flow in a.nested() {
                    let flow = flow?;
                    if let Some(name) = usize::from(flow.kind).checked_sub(1).and_then(|i| FLOWS.get(i)) {
                        map.insert(name.to_string(), fields::letters(flow.uint()?));
                    }
                }
                out.fields = Some(map);
            }
            _ => {}
        }
    }
    Ok(out)
}

impl RssParts {
    /// As a model value. The hash fields stay empty if the reply has none; request them with
    /// [`crate::ethtool_ioctl::grxfh_request`].
    pub fn into_model(self) -> Rss {
        Rss {
            // The kernel omits 0; before 6.8 there is no other value.
            symmetric: Fact::Known(xfrm_name(self.input_xfrm.unwrap_or(0))),
            contexts: ringwise_model::not_requested(),
            function: self.hfunc.map_or(Fact::Absent, |f| Fact::Known(hfunc_name(f))),
            key: if self.hkey.is_empty() { Fact::Absent } else { Fact::Known(hex(&self.hkey)) },
            table: self.indir,
            fields: self.fields.unwrap_or_default(),
        }
    }
}

/// Names of `ETH_RSS_HASH_*` by bit (net/ethtool/common.c).
const FUNCTIONS: [&str; 3] = ["toeplitz", "xor", "crc32"];

/// `toeplitz`, `xor`, `crc32`, or the mask in hexadecimal if it is not a single known bit.
pub fn hfunc_name(mask: u32) -> String {
    match mask {
        1 | 2 | 4 => FUNCTIONS[mask.trailing_zeros() as usize].to_string(),
        other => format!("{other:#x}"),
    }
}

/// The mask of a name given by [`hfunc_name`].
pub fn hfunc_mask(name: &str) -> Option<u32> {
    match FUNCTIONS.iter().position(|f| *f == name) {
        Some(bit) => Some(1 << bit),
        None => u32::from_str_radix(name.strip_prefix("0x")?, 16).ok(),
    }
}

/// Names of `RXH_XFRM_*` (net/ethtool; ethtool's words).
const TRANSFORMS: [&str; 3] = ["none", "symmetric-xor", "symmetric-or-xor"];

/// `none`, `symmetric-xor`, `symmetric-or-xor`, or the mask in hexadecimal.
pub fn xfrm_name(mask: u32) -> String {
    TRANSFORMS.get(mask as usize).map_or_else(|| format!("{mask:#x}"), ToString::to_string)
}

/// The mask of a name given by [`xfrm_name`].
pub fn xfrm_mask(name: &str) -> Option<u32> {
    match TRANSFORMS.iter().position(|t| *t == name) {
        Some(mask) => Some(mask as u32),
        None => u32::from_str_radix(name.strip_prefix("0x")?, 16).ok(),
    }
}

/// Attributes of an RSS_SET, RSS_CREATE_ACT or RSS_DELETE_ACT after the header. `None` leaves a value unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RssSet {
    /// `None` or 0: the device's own context; for a new context, any free number.
    pub context: Option<u32>,
    /// Empty: the kernel's default layout, and the table counts as not set by the user again.
    pub indir: Option<Vec<u32>>,
    /// Hash key with exactly the device's number of bytes.
    pub hkey: Option<Vec<u8>>,
    /// `ETH_RSS_HASH_*` bit. See [`hfunc_name`].
    pub hfunc: Option<u32>,
    /// `RXH_XFRM_*` mask. See [`xfrm_name`].
    pub input_xfrm: Option<u32>,
    /// Letters by flow type.
    pub fields: BTreeMap<String, String>,
}

/// Errors: a table or key that is too long for one attribute, invalid flow types or letters.
pub fn rss_set(order: &RssSet) -> Result<Vec<u8>, ParseError> {
    let mut b = Builder::new();
    for (kind, value) in
        [(id::CONTEXT, order.context.filter(|c| *c > 0)), (id::HFUNC, order.hfunc), (id::INPUT_XFRM, order.input_xfrm)]
    {
        if let Some(v) = value {
            b.u32(kind, v);
        }
    }
    if let Some(table) = &order.indir {
        b.u32s(id::INDIR, table)?;
    }
    if let Some(key) = &order.hkey {
        b.binary(id::HKEY, key)?;
    }
    if !order.fields.is_empty() {
        b.nested(id::FLOW_HASH, &flows(&order.fields)?)?;
    }
    Ok(b.finish())
}

/// Decodes what [`rss_set`] encoded (for simulated hosts).
pub fn rss_set_decode(bytes: &[u8]) -> Result<RssSet, ParseError> {
    let all = rss(bytes)?;
    let has = |kind: u16| attrs(bytes).flatten().any(|a| a.kind == kind);
    Ok(RssSet {
        context: all.context,
        indir: has(id::INDIR).then_some(all.indir),
        hkey: has(id::HKEY).then_some(all.hkey),
        hfunc: all.hfunc,
        input_xfrm: all.input_xfrm,
        fields: all.fields.unwrap_or_default(),
    })
}

fn flows(map: &BTreeMap<String, String>) -> Result<Builder, ParseError> {
    let mut nest = Builder::new();
    for (flow, letters) in map {
        let number = FLOWS.iter().position(|f| f == flow);
        let number = number.ok_or_else(|| ParseError::new(WHAT, flow, "a flow type with hash fields"))? as u16 + 1;
        // Sent as a `uint`: 4 bytes where they suffice.
        let mask = fields::mask(letters)?;
        match u32::try_from(mask) {
            Ok(m) => nest.u32(number, m),
            Err(_) => nest.u64(number, mask),
        };
    }
    Ok(nest)
}

/// A reply as the kernel would send it, for simulated hosts. Fields are sent only if there are any.
/// Errors: a table that is too long for one attribute, invalid letters.
pub fn rss_reply(parts: &RssParts) -> Result<Vec<u8>, ParseError> {
    let mut b = Builder::new();
    if let Some(c) = parts.context {
        b.u32(id::CONTEXT, c);
    }
    if let Some(f) = parts.hfunc {
        b.u32(id::HFUNC, f);
    }
    if let Some(x) = parts.input_xfrm {
        b.u32(id::INPUT_XFRM, x);
    }
    if !parts.indir.is_empty() {
        b.u32s(id::INDIR, &parts.indir)?;
    }
    if !parts.hkey.is_empty() {
        b.binary(id::HKEY, &parts.hkey)?;
    }
    if let Some(map) = &parts.fields {
        b.nested(id::FLOW_HASH, &flows(map)?)?;
    }
    Ok(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round() {
        let parts = RssParts {
            context: Some(1),
            indir: (0..128).map(|i| i % 6).collect(),
            hkey: (0..40).collect(),
            hfunc: Some(1),
            input_xfrm: Some(1),
            fields: Some([("tcp4", "sdfn"), ("udp6", "sd")].map(|(a, b)| (a.to_string(), b.to_string())).into()),
        };
        let back = rss(&rss_reply(&parts).unwrap()).unwrap();
        assert_eq!(back, parts);
        let m = back.into_model();
        assert_eq!((m.table.len(), m.function.known().unwrap().as_str()), (128, "toeplitz"));
        assert_eq!(&m.key.known().unwrap()[..6], "000102");
    }

    #[test]
    fn a_device_without_table_or_key() {
        let m = rss(&rss_reply(&RssParts::default()).unwrap()).unwrap().into_model();
        assert!(m.table.is_empty() && m.key.is_absent() && m.function.is_absent());
    }

    #[test]
    fn orders_go_round() {
        let none = RssSet::default();
        assert!(rss_set(&none).unwrap().is_empty());
        let fields = [("udp4", "sdfn"), ("gtpu6d", "sde"), ("ip6", "sdl")].map(|(a, b)| (a.to_string(), b.to_string()));
        for order in [
            none,
            RssSet { indir: Some(Vec::new()), ..RssSet::default() },
            RssSet { context: Some(3), ..RssSet::default() },
            RssSet {
                context: Some(1),
                indir: Some((0..128).map(|i| i % 6).collect()),
                hkey: Some((0..52).collect()),
                hfunc: Some(2),
                input_xfrm: Some(0),
                fields: fields.into(),
            },
        ] {
            assert_eq!(rss_set_decode(&rss_set(&order).unwrap()).unwrap(), order);
        }
        let wrong = |flow: &str, letters: &str| RssSet {
            fields: [(flow.to_string(), letters.to_string())].into(),
            ..RssSet::default()
        };
        assert!(rss_set(&wrong("tcp5", "sd")).is_err() && rss_set(&wrong("tcp4", "sx")).is_err());
        assert!(rss_set(&RssSet { indir: Some(vec![0; 1 << 14]), ..RssSet::default() }).is_err());
        assert!(rss_set_decode(&[4, 0, 4]).is_err());
    }

    #[test]
    fn transforms() {
        for mask in [0, 1, 2, 4] {
            assert_eq!(xfrm_mask(&xfrm_name(mask)), Some(mask));
        }
        assert_eq!((xfrm_name(2).as_str(), xfrm_mask("symmetric")), ("symmetric-or-xor", None));
    }

    #[test]
    fn functions() {
        for mask in [1, 2, 4, 8, 3] {
            assert_eq!(hfunc_mask(&hfunc_name(mask)), Some(mask));
        }
        assert_eq!(hfunc_mask("md5"), None);
    }

    #[test]
    fn a_torn_table_is_an_error() {
        let mut b = Builder::new();
        b.binary(id::INDIR, &[1, 2, 3]).unwrap();
        assert_eq!(rss(&b.finish()).unwrap_err().what, WHAT);
    }
}
