//! The table of originals and their pseudonyms. One original has the same pseudonym everywhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::strings::Strings;
use crate::capture::Redacted;

/// Names that identify nothing, and occur as words in any text.
pub(super) const COMMON: [&str; 10] =
    ["localhost", "(none)", "linux", "debian", "ubuntu", "fedora", "default", "unknown", "none", "root"];

/// Where a known text is replaced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Here,
    /// Also as a word in ringwise's own texts.
    Ours,
    /// Also in every other text.
    Everywhere,
}

struct Known {
    name: String,
    reach: Reach,
}

#[derive(Default)]
pub(super) struct Pseudonyms {
    hardware: HashMap<Vec<u8>, u32>,
    v4: HashMap<Ipv4Addr, u32>,
    v6: HashMap<Ipv6Addr, u32>,
    uuids: HashMap<String, usize>,
    /// Parts of addresses that flow rules match: value and mask.
    masked: HashMap<(Vec<u8>, Vec<u8>), u32>,
    /// By kind and text.
    strings: BTreeMap<&'static str, HashMap<String, Known>>,
    /// Words of paths (interfaces, drivers, `vm`), which cannot be replaced in running text.
    pub taken: BTreeSet<String>,
    counts: BTreeMap<&'static str, usize>,
}

fn next<K: std::hash::Hash + Eq>(table: &mut HashMap<K, u32>, key: K) -> u32 {
    let n = table.len() as u32 + 1;
    *table.entry(key).or_insert(n)
}

impl Pseudonyms {
    pub(super) fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// A hardware address or ID of any length: the pseudonym is locally administered, and numbered in its last three bytes. All
    /// zeros, all ones and values shorter than 4 bytes identify nothing and stay.
    pub(super) fn hardware(&mut self, bytes: &[u8]) -> Vec<u8> {
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

    pub(super) fn knows_hardware(&self, bytes: &[u8]) -> bool {
        self.hardware.contains_key(bytes)
    }

    /// Wildcard, loopback, masks, broadcast and multicast addresses stay; others come from the range for tests (198.18.0.0/15).
    pub(super) fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
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

    /// Wildcard, loopback and multicast addresses stay; link-local stays link-local; others come from 2001:db8::/32.
    pub(super) fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        if let [0xff02, 0, 0, 0, 0, 1, high @ 0xff00..=0xffff, _] = address.segments() {
            // A solicited-node multicast address: its last three bytes are those of a host's address.
            self.count("ipv6");
            let n = next(&mut self.v6, address);
            return Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high & 0xff00 | (n >> 16) as u16 & 0xff, n as u16);
        }
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
    pub(super) fn address(&mut self, bytes: &[u8]) -> Vec<u8> {
        if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
            self.v4(v4.into()).octets().to_vec()
        } else if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
            self.v6(v6.into()).octets().to_vec()
        } else {
            self.hardware(bytes)
        }
    }

    /// An address of which only the bits in `mask` count, as in a flow rule. Different addresses stay different.
    pub(super) fn masked(&mut self, value: &[u8], mask: &[u8]) -> Vec<u8> {
        let counts: Vec<u8> = value.iter().zip(mask).map(|(v, m)| v & m).collect();
        let is_group = counts.len() == 4 && counts[0] >= 224 || counts.len() == 16 && counts[0] == 0xff;
        if counts.iter().all(|b| *b == 0) || is_group || counts.len() > 16 || counts.len() != mask.len() {
            return counts;
        }
        if mask.iter().all(|b| *b == 0xff) {
            return self.address(value);
        }
        self.count(match value.len() {
            4 => "ipv4",
            16 => "ipv6",
            _ => "mac",
        });
        let base = match value.len() {
            4 => vec![198, 18, 0, 0],
            16 => [&[0x20, 1, 0x0d, 0xb8][..], &[0; 12]].concat(),
            n => [&[2][..], &vec![0; n - 1]].concat(),
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0u128, |n, b| n << 8 | u128::from(*b));
        let bits = number(mask);
        let n = u128::from(next(&mut self.masked, (counts, mask.to_vec())));
        // The number goes into the lowest bits of the mask.
        let out = (number(&base) & bits).wrapping_add(n << bits.trailing_zeros()) & bits;
        out.to_be_bytes()[16 - value.len()..].to_vec()
    }

    pub(super) fn uuid(&mut self, uuid: &str) -> String {
        self.count("uuid");
        let n = self.uuids.len() + 1;
        let n = *self.uuids.entry(uuid.to_lowercase()).or_insert(n);
        format!("00000000-0000-4000-8000-{n:012x}")
    }

    /// Remembers a text and returns its pseudonym. [`Pseudonyms::reach`] decides where else it is replaced.
    pub(super) fn string(&mut self, kind: &'static str, text: &str) -> String {
        let reach = self.reach(text);
        self.remember(kind, text, reach)
    }

    fn remember(&mut self, kind: &'static str, text: &str, reach: Reach) -> String {
        self.count(kind);
        let known = self.strings.entry(kind).or_default();
        if let Some(known) = known.get(text) {
            return known.name.clone();
        }
        let n = known.len() + 1;
        let name = match kind {
            "machine id" => format!("{n:032x}"),
            _ => format!("{}-{n}", kind.replace(' ', "-")),
        };
        known.insert(text.to_string(), Known { name: name.clone(), reach });
        name
    }

    fn reach(&self, text: &str) -> Reach {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        if text.len() < 2 || digits && text.len() < 9 || COMMON.contains(&text.to_lowercase().as_str()) {
            // It would match ordinary words or numbers.
            Reach::Here
        } else if text.len() < 4 || self.taken.contains(text) {
            Reach::Ours
        } else {
            Reach::Everywhere
        }
    }

    /// A value that was found by its label.
    pub(super) fn hidden(&mut self, kind: &'static str, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        // `user=eth0`: a word that identifies nothing, and occurs in many other places.
        let plain = text.len() < 6 || self.taken.contains(text.as_ref());
        let reach = if plain { Reach::Here } else { self.reach(&text) };
        self.remember(kind, &text, reach)
    }

    /// Texts that are replaced everywhere.
    pub(super) fn everywhere(&self) -> Strings {
        self.reaching(Reach::Everywhere)
    }

    /// Includes short ones and words of paths: for ringwise's own texts, in which no other program looks anything up.
    pub(super) fn all(&self) -> Strings {
        self.reaching(Reach::Ours)
    }

    fn reaching(&self, least: Reach) -> Strings {
        let all = self.strings.iter().flat_map(|(kind, known)| known.iter().map(move |(text, k)| (text, k, *kind)));
        let wanted = all.filter(|(_, k, _)| k.reach >= least);
        Strings::new(wanted.map(|(text, k, kind)| (text.clone(), k.name.clone(), kind)).collect())
    }

    /// Starts counting places again; the pseudonyms stay.
    pub(super) fn reset_counts(&mut self) {
        self.counts.clear();
    }

    pub(super) fn report(&self) -> Vec<Redacted> {
        let distinct = |kind: &str, places: usize| match kind {
            "mac" => self.hardware.len(),
            "ipv4" => self.v4.len(),
            "ipv6" => self.v6.len(),
            "uuid" => self.uuids.len(),
            _ => match self.strings.get(kind).map_or(0, HashMap::len) {
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
