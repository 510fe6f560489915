//! Bit sets of the ethtool family (Documentation/networking/ethtool-netlink.rst): verbose with a nest and a name for
//! each bit, or compact with words whose bits are named by a string set.

use super::ids::bitset::*;
use crate::ParseError;
use crate::nl::{Attr, Builder, TooLong, attrs};

const WHAT: &str = "bit set";
/// No set of the family is as large. A forged size must not cost memory.
const MOST: u32 = 4096;

/// One bit of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bit {
    /// Name of the bit, from the message or from its string set.
    pub name: String,
    /// Value of the bit.
    pub on: bool,
}

/// The named bits (with a mask: those in the mask). `names` is the string set for the compact form; the verbose form
/// contains the names.
pub fn bits(set: &Attr, names: &[String]) -> Result<Vec<Bit>, ParseError> {
    let (mut list, mut nests, mut value, mut mask, mut size) = (false, None, None, None, None);
    for a in set.nested() {
        let a = a?;
        match a.kind {
            NOMASK => list = true,
            SIZE => size = Some(a.u32()?),
            BITS => nests = Some(a),
            VALUE => value = Some(a.u32s()?),
            MASK => mask = Some(a.u32s()?),
            _ => {}
        }
    }
    if let Some(nests) = nests {
        return verbose(&nests, list, names);
    }
    // An empty list contains no words.
    let Some(value) = value else { return Ok(Vec::new()) };
    let bit = |words: &[u32], i: u32| words.get(i as usize / 32).is_some_and(|w| w & (1 << (i % 32)) != 0);
    let size = size.unwrap_or(value.len() as u32 * 32).min(MOST);
    let told = (0..size).filter(|i| bit(mask.as_ref().unwrap_or(&value), *i));
    told.filter(|i| names.get(*i as usize).is_none_or(|n| !n.is_empty()))
        .map(|i| Ok(Bit { name: named(names, i)?, on: bit(&value, i) }))
        .collect()
}

fn named(names: &[String], index: u32) -> Result<String, ParseError> {
    let found = names.get(index as usize).filter(|n| !n.is_empty());
    found.cloned().ok_or_else(|| ParseError::new(WHAT, format!("bit {index}"), "a bit with a name"))
}

fn verbose(nests: &Attr, list: bool, names: &[String]) -> Result<Vec<Bit>, ParseError> {
    let mut out = Vec::new();
    for nest in nests.nested() {
        let nest = nest?;
        if nest.kind != BITS_BIT {
            continue;
        }
        let (mut index, mut name, mut on) = (None, None, list);
        for a in attrs(nest.data) {
            let a = a?;
            match a.kind {
                BIT_INDEX => index = Some(a.u32()?),
                BIT_NAME => name = Some(a.str()?),
                BIT_VALUE => on = true,
                _ => {}
            }
        }
        let name = match (name, index) {
            (Some(n), _) => n,
            (None, Some(i)) => named(names, i)?,
            (None, None) => return Err(ParseError::new(WHAT, "a bit", "an index or a name")),
        };
        // Numbers that this kernel does not use any more.
        if !name.is_empty() {
            out.push(Bit { name, on });
        }
    }
    Ok(out)
}

/// A set with a mask, by names: the content of a request, and of a reply.
pub fn masked<'a>(bits: impl IntoIterator<Item = (&'a str, bool)>) -> Result<Builder, TooLong> {
    build(bits, false)
}

/// A list: the named bits are on.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Builder, TooLong> {
    build(names.into_iter().map(|n| (n, false)), true)
}

fn build<'a>(bits: impl IntoIterator<Item = (&'a str, bool)>, list: bool) -> Result<Builder, TooLong> {
    let mut nests = Builder::new();
    for (name, on) in bits {
        let mut bit = Builder::new();
        bit.string(BIT_NAME, name)?;
        if on {
            bit.flag(BIT_VALUE);
        }
        nests.nested(BITS_BIT, &bit)?;
    }
    let mut set = Builder::new();
    if list {
        set.flag(NOMASK);
    }
    set.nested(BITS, &nests)?;
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: Builder, names: &[&str]) -> Result<Vec<(String, bool)>, ParseError> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let bytes = set.finish();
        bits(&Attr { kind: 2, data: &bytes }, &names).map(|v| v.into_iter().map(|b| (b.name, b.on)).collect())
    }

    fn pairs(list: &[(&str, bool)]) -> Vec<(String, bool)> {
        list.iter().map(|(n, on)| (n.to_string(), *on)).collect()
    }

    #[test]
    fn verbose_sets_bring_their_names() {
        let set = masked([("rx-gro", true), ("rx-lro", false)]).unwrap();
        assert_eq!(read(set, &[]).unwrap(), pairs(&[("rx-gro", true), ("rx-lro", false)]));
        assert_eq!(read(list(["rx-gro"]).unwrap(), &[]).unwrap(), pairs(&[("rx-gro", true)]));
        assert_eq!(read(list([]).unwrap(), &[]).unwrap(), pairs(&[]));
    }

    /// As a kernel sends it: index and name, and numbers without a name.
    #[test]
    fn indices_and_nameless_bits() {
        let mut one = Builder::new();
        one.u32(BIT_INDEX, 1).string(BIT_NAME, "b").unwrap().flag(BIT_VALUE);
        let mut bare = Builder::new();
        bare.u32(BIT_INDEX, 0);
        let mut unused = Builder::new();
        unused.u32(BIT_INDEX, 2).string(BIT_NAME, "").unwrap();
        let mut nests = Builder::new();
        nests.nested(BITS_BIT, &one).unwrap().nested(BITS_BIT, &bare).unwrap().nested(BITS_BIT, &unused).unwrap();
        let mut set = Builder::new();
        set.u32(SIZE, 3).nested(BITS, &nests).unwrap();
        assert_eq!(read(set.clone(), &["a", "b", ""]).unwrap(), pairs(&[("b", true), ("a", false)]));
        assert!(read(set, &[]).unwrap_err().to_string().contains("bit 0"));
    }

    #[test]
    fn compact_sets_are_named_by_the_table() {
        let mut set = Builder::new();
        set.u32(SIZE, 34).u32s(VALUE, &[1, 2]).unwrap().u32s(MASK, &[3, 3]).unwrap();
        let names: Vec<String> = (0..34).map(|i| format!("f{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let want = pairs(&[("f0", true), ("f1", false), ("f32", false), ("f33", true)]);
        assert_eq!(read(set.clone(), &names).unwrap(), want);
        assert!(read(set, &names[..2]).is_err());
        let mut bare = Builder::new();
        bare.flag(NOMASK).u32(SIZE, u32::MAX).u32s(VALUE, &[0b101]).unwrap();
        assert_eq!(read(bare, &["a", "b", "c"]).unwrap(), pairs(&[("a", true), ("c", true)]));
    }

    #[test]
    fn malformed_ones_are_errors() {
        let mut set = Builder::new();
        set.u16(SIZE, 1);
        assert!(read(set, &[]).is_err());
        let mut nests = Builder::new();
        nests.nested(BITS_BIT, &Builder::new()).unwrap();
        let mut set = Builder::new();
        set.nested(BITS, &nests).unwrap();
        assert!(read(set, &[]).is_err());
        assert!(bits(&Attr { kind: 2, data: &[9, 0, 3, 0, 1] }, &[]).is_err());
        assert!(bits(&Attr { kind: 2, data: &[] }, &[]).unwrap().is_empty());
    }
}
