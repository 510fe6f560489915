//! Features of a device (FEATURES_GET, FEATURES_SET) and its private flags (PRIVFLAGS_GET).
//! net/ethtool/features.c, privflags.c.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::Feature;

use super::bitset::{self, Bit};
use super::ids::{features as id, privflags};
use super::{ParseError, Table};
use crate::nl::{Builder, TooLong};

fn set(t: &Table, kind: u16, names: &[String]) -> Result<Vec<Bit>, ParseError> {
    Ok(t.get(kind, |a| bitset::bits(a, names))?.unwrap_or_default())
}

fn on(bits: Vec<Bit>) -> BTreeSet<String> {
    bits.into_iter().filter(|b| b.on).map(|b| b.name).collect::<BTreeSet<_>>()
}

/// Decodes a FEATURES_GET reply: every feature that this kernel has, by its name. `names`: the string set `features`,
/// for compact replies only.
pub fn features(reply: &[u8], names: &[String]) -> Result<BTreeMap<String, Feature>, ParseError> {
    let t = Table::read("features reply", reply)?;
    let changeable = set(&t, id::HW, names)?;
    let wanted = on(set(&t, id::WANTED, names)?);
    let active = on(set(&t, id::ACTIVE, names)?);
    let never = on(set(&t, id::NOCHANGE, names)?);
    let one = |b: Bit| {
        let fixed = !b.on || never.contains(&b.name);
        let on = active.contains(&b.name);
        // The kernel keeps requests only for features that can be changed.
        let wanted = if fixed { on } else { wanted.contains(&b.name) };
        (b.name, Feature { on, wanted, fixed })
    };
    Ok(changeable.into_iter().map(one).collect::<BTreeMap<_, _>>())
}

/// A FEATURES_GET reply as the kernel would send it, for simulated hosts.
pub fn features_reply(all: &BTreeMap<String, Feature>) -> Result<Vec<u8>, TooLong> {
    let names = |f: fn(&Feature) -> bool| all.iter().filter(move |(_, v)| f(v)).map(|(k, _)| k.as_str());
    let mut b = Builder::new();
    b.nested(id::HW, &bitset::masked(all.iter().map(|(k, f)| (k.as_str(), !f.fixed)))?)?;
    b.nested(id::WANTED, &bitset::list(names(|f| f.wanted && !f.fixed))?)?;
    b.nested(id::ACTIVE, &bitset::list(names(|f| f.on))?)?;
    b.nested(id::NOCHANGE, &bitset::list([])?)?;
    Ok(b.finish())
}

/// Attributes of a FEATURES_SET after the header: only features that change.
pub fn features_set(wanted: &[(&str, bool)]) -> Result<Vec<u8>, TooLong> {
    let mut b = Builder::new();
    b.nested(id::WANTED, &bitset::masked(wanted.iter().copied())?)?;
    Ok(b.finish())
}

/// Decodes what [`features_set`] encoded (for simulated hosts).
pub fn features_set_decode(attrs: &[u8]) -> Result<BTreeMap<String, bool>, ParseError> {
    let t = Table::read("features set", attrs)?;
    Ok(set(&t, id::WANTED, &[])?.into_iter().map(|b| (b.name, b.on)).collect::<BTreeMap<_, _>>())
}

/// Decodes a PRIVFLAGS_GET reply. `names` as in [`features`].
pub fn private_flags(reply: &[u8], names: &[String]) -> Result<BTreeMap<String, bool>, ParseError> {
    let t = Table::read("private flags reply", reply)?;
    Ok(set(&t, privflags::FLAGS, names)?.into_iter().map(|b| (b.name, b.on)).collect::<BTreeMap<_, _>>())
}

/// A PRIVFLAGS_GET reply as the kernel would send it, for simulated hosts.
pub fn private_flags_reply(flags: &BTreeMap<String, bool>) -> Result<Vec<u8>, TooLong> {
    let mut b = Builder::new();
    b.nested(privflags::FLAGS, &bitset::masked(flags.iter().map(|(k, on)| (k.as_str(), *on)))?)?;
    Ok(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(on: bool, wanted: bool, fixed: bool) -> Feature {
        Feature { on, wanted, fixed }
    }

    #[test]
    fn replies_go_round() {
        let all = BTreeMap::from([
            ("rx-gro".to_string(), feature(true, true, false)),
            ("rx-lro".to_string(), feature(false, true, false)),
            ("rx-vlan-filter".to_string(), feature(true, true, true)),
            ("rx-fcs".to_string(), feature(false, false, true)),
        ]);
        assert_eq!(features(&features_reply(&all).unwrap(), &[]).unwrap(), all);
        let flags = BTreeMap::from([("legacy-rx".to_string(), false), ("x".to_string(), true)]);
        assert_eq!(private_flags(&private_flags_reply(&flags).unwrap(), &[]).unwrap(), flags);
        assert!(features(&[], &[]).unwrap().is_empty());
    }

    #[test]
    fn what_can_never_change_is_fixed() {
        let mut b = Builder::new();
        b.nested(id::HW, &bitset::masked([("highdma", true), ("rx-gro", true)]).unwrap()).unwrap();
        b.nested(id::ACTIVE, &bitset::list(["highdma"]).unwrap()).unwrap();
        b.nested(id::NOCHANGE, &bitset::list(["highdma"]).unwrap()).unwrap();
        let f = features(&b.finish(), &[]).unwrap();
        assert_eq!((f["highdma"], f["rx-gro"]), (feature(true, true, true), feature(false, false, false)));
    }

    #[test]
    fn orders_hold_only_what_changes() {
        let bytes = features_set(&[("rx-gro", false), ("rx-lro", true)]).unwrap();
        let got = features_set_decode(&bytes).unwrap();
        assert_eq!(got.into_iter().collect::<Vec<_>>(), [("rx-gro".into(), false), ("rx-lro".into(), true)]);
    }

    /// A set with index and name, byte by byte as a little-endian kernel reads it.
    #[test]
    #[cfg(target_endian = "little")]
    fn an_order_is_byte_exact() {
        let bytes = features_set(&[("rx-lro", true)]).unwrap();
        let want = [
            28, 0, 3, 0x80, // requested
            24, 0, 3, 0x80, // bits
            20, 0, 1, 0x80, // one bit
            11, 0, 2, 0, b'r', b'x', b'-', b'l', b'r', b'o', 0, 0, // its name
            4, 0, 3, 0, // on
        ];
        assert_eq!(bytes, want);
    }
}
