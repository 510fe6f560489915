//! The table of what was found and what stands in its place. One original has one pseudonym throughout.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::capture::Redacted;

/// Names that tell nothing, and are words of every text.
pub const COMMON: [&str; 10] =
    ["localhost", "(none)", "linux", "debian", "ubuntu", "fedora", "default", "unknown", "none", "root"];

#[derive(Default)]
pub struct Names {
    hardware: HashMap<Vec<u8>, u32>,
    v4: HashMap<Ipv4Addr, u32>,
    v6: HashMap<Ipv6Addr, u32>,
    uuids: HashMap<String, usize>,
    /// (original, pseudonym, kind, also to be replaced where it stands as a word in other texts)
    strings: Vec<(String, String, &'static str, bool)>,
    counts: BTreeMap<&'static str, usize>,
}

fn next<K: std::hash::Hash + Eq>(table: &mut HashMap<K, u32>, key: K) -> u32 {
    let n = table.len() as u32 + 1;
    *table.entry(key).or_insert(n)
}

impl Names {
    pub fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// A hardware address or id of any length: locally administered, numbered in its last three bytes.
    /// All zeros, all ones and what is shorter than 4 bytes tell nothing and stay.
    pub fn hardware(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.len() < 4 || bytes.iter().all(|b| *b == 0) || bytes.iter().all(|b| *b == 0xff) {
            return bytes.to_vec();
        }
        self.count("mac");
        let n = next(&mut self.hardware, bytes.to_vec());
        let mut out = vec![0; bytes.len()];
        out[0] = 2;
        let last = out.len() - 3;
        out[last..].copy_from_slice(&n.to_be_bytes()[1..]);
        out
    }

    pub fn knows_hardware(&self, bytes: &[u8]) -> bool {
        self.hardware.contains_key(bytes)
    }

    /// Wildcard, loopback, masks, broadcast and groups stay; the rest comes from the range for tests (198.18.0.0/15).
    pub fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        let bits = u32::from(address);
        let is_mask = bits.leading_ones() >= 8 && bits.leading_ones() + bits.trailing_zeros() == 32;
        if address.octets()[0] == 0
            || address.is_loopback()
            || is_mask
            || address.is_broadcast()
            || address.is_multicast()
        {
            return address;
        }
        self.count("ipv4");
        let n = next(&mut self.v4, address);
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + n % (1 << 17))
    }

    /// Wildcard, loopback and groups stay; link-local stays link-local; the rest comes from 2001:db8::/32.
    pub fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
            return address;
        }
        if let Some(v4) = address.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        self.count("ipv6");
        let n = next(&mut self.v6, address);
        let first = if address.is_unicast_link_local() { [0xfe80, 0] } else { [0x2001, 0xdb8] };
        Ipv6Addr::new(first[0], first[1], 0, 0, 0, 0, (n >> 16) as u16, n as u16)
    }

    /// 4 bytes: IPv4, 16 bytes: IPv6, else a hardware address.
    pub fn address(&mut self, bytes: &[u8]) -> Vec<u8> {
        if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
            self.v4(v4.into()).octets().to_vec()
        } else if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
            self.v6(v6.into()).octets().to_vec()
        } else {
            self.hardware(bytes)
        }
    }

    pub fn uuid(&mut self, uuid: &str) -> String {
        self.count("uuid");
        let n = self.uuids.len() + 1;
        let n = *self.uuids.entry(uuid.to_lowercase()).or_insert(n);
        format!("00000000-0000-4000-8000-{n:012x}")
    }

    /// Remembers a text and gives its pseudonym. `everywhere`: it is also looked for in all other texts.
    pub fn string(&mut self, kind: &'static str, text: &str, everywhere: bool) -> String {
        self.count(kind);
        if let Some((_, name, ..)) = self.strings.iter().find(|(t, _, k, _)| t == text && *k == kind) {
            return name.clone();
        }
        let n = self.strings.iter().filter(|(_, _, k, _)| *k == kind).count() + 1;
        let name = match kind {
            "machine id" => format!("{n:032x}"),
            _ => format!("{}-{n}", kind.replace(' ', "-")),
        };
        self.strings.push((text.to_string(), name.clone(), kind, everywhere));
        name
    }

    /// Texts to look for everywhere, longest first, so that no part of one hides another.
    pub fn everywhere(&self) -> Vec<(String, String, &'static str)> {
        self.longest_first(&|_, everywhere| everywhere)
    }

    /// Short ones and words of paths as well: for texts of our own, which nothing is looked up in.
    pub fn all(&self) -> Vec<(String, String, &'static str)> {
        self.longest_first(&|text, _| !text.is_empty() && !COMMON.contains(&text.to_lowercase().as_str()))
    }

    fn longest_first(&self, wanted: &dyn Fn(&str, bool) -> bool) -> Vec<(String, String, &'static str)> {
        let mut all: Vec<_> = self
            .strings
            .iter()
            .filter(|(text, .., everywhere)| wanted(text, *everywhere))
            .map(|(text, name, kind, _)| (text.clone(), name.clone(), *kind))
            .collect();
        all.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.0.cmp(&b.0)));
        all
    }

    /// Places are counted anew; the pseudonyms stay.
    pub fn reset_counts(&mut self) {
        self.counts.clear();
    }

    pub fn report(&self) -> Vec<Redacted> {
        let distinct = |kind: &str, places: usize| match kind {
            "mac" => self.hardware.len(),
            "ipv4" => self.v4.len(),
            "ipv6" => self.v6.len(),
            "uuid" => self.uuids.len(),
            _ => match self.strings.iter().filter(|(_, _, k, _)| *k == kind).count() {
                0 => places,
                n => n,
            },
        };
        self.counts
            .iter()
            .map(|(kind, places)| Redacted {
                kind: (*kind).to_string(),
                distinct: distinct(kind, *places),
                places: *places,
            })
            .collect()
    }
}
