//! RSS_GET: indirection table, key, function and, since 6.17, the hash fields.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Rss};

use super::ids::{FLOWS, rss as id};
use crate::ParseError;
use crate::ethtool_ioctl::fields;
use crate::nl::{Builder, attrs, hex};

const WHAT: &str = "rss reply";

/// What an RSS_GET reply holds, as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RssParts {
    /// RSS context; `None` is context 0.
    pub context: Option<u32>,
    /// Queue of each table entry. Empty: the device has no table.
    pub indir: Vec<u32>,
    /// Hash key, bytes as the device has them. Empty: not told.
    pub hkey: Vec<u8>,
    /// Hash function, one bit (`ETH_RSS_HASH_*`).
    pub hfunc: Option<u32>,
    /// Symmetric hashing: 1 = XOR, 2 = OR-XOR (since 6.8).
    pub input_xfrm: Option<u32>,
    /// Fields by flow type in ethtool's letters. `None`: the kernel is older than 6.17 and does not tell here.
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
    /// As a model value. The hash fields stay empty when the reply has none: ask with
    /// [`crate::ethtool_ioctl::grxfh_request`].
    pub fn into_model(self) -> Rss {
        Rss {
            symmetric: ringwise_model::not_asked(),
            contexts: ringwise_model::not_asked(),
            function: self.hfunc.map_or(Fact::Absent, |f| Fact::Known(hfunc_name(f))),
            key: if self.hkey.is_empty() { Fact::Absent } else { Fact::Known(hex(&self.hkey)) },
            table: self.indir,
            fields: self.fields.unwrap_or_default(),
        }
    }
}

/// Names of `ETH_RSS_HASH_*` by bit (net/ethtool/common.c).
const FUNCTIONS: [&str; 3] = ["toeplitz", "xor", "crc32"];

/// `toeplitz`, `xor`, `crc32`, or the mask in hexadecimal where it is no single known bit.
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

/// A reply as the kernel would send it, for simulated hosts. Fields are sent only if they are some.
/// Errors: a table too long for one attribute, letters that are none.
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
        let mut nest = Builder::new();
        for (i, flow) in FLOWS.iter().enumerate() {
            if let Some(letters) = map.get(*flow) {
                // Sent as a `uint`: 4 bytes where they suffice.
                let mask = fields::mask(letters)?;
                match u32::try_from(mask) {
                    Ok(m) => nest.u32(i as u16 + 1, m),
                    Err(_) => nest.u64(i as u16 + 1, mask),
                };
            }
        }
        b.nested(id::FLOW_HASH, &nest)?;
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
