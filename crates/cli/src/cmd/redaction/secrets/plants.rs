//! Unique secrets of many kinds, and the search for them in an archive.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};

use ringwise_sys::{RecordedReply, Recording, RequestKey};

/// One secret: its kind, its place, and the bytes of each form in which it may occur.
pub(super) struct Plant {
    pub kind: &'static str,
    pub place: String,
    forms: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(super) struct Plants {
    pub list: Vec<Plant>,
    number: u32,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Plants {
    fn next(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    fn add(&mut self, kind: &'static str, place: &str, forms: Vec<Vec<u8>>) {
        self.list.push(Plant { kind, place: place.to_string(), forms });
    }

    /// A text with a unique number in it, at the place of `{}`.
    pub(super) fn text(&mut self, kind: &'static str, place: &str, pattern: &str) -> String {
        let n = self.next();
        // Letters, so that no parser reads the mark as a number. No mark is part of another one.
        let mark: String = format!("{n:03}").bytes().map(|b| (b - b'0' + b'g') as char).collect();
        let text = pattern.replace("{}", &format!("q{mark}z"));
        assert_ne!(text, pattern);
        // The mark alone is searched too, because a remaining part of a secret is a leak.
        self.add(kind, place, vec![format!("q{mark}z").into(), text.clone().into()]);
        text
    }

    pub(super) fn mac(&mut self, place: &str) -> [u8; 6] {
        let n = self.next().to_be_bytes();
        let mac = [0x3c, 0xec, 0xef, 0x70 + n[2], n[3], 0x5a ^ n[3]];
        let text = mac_text(mac);
        self.add("MAC address", place, vec![text.clone().into_bytes(), text.replace(':', "").into(), mac.to_vec()]);
        mac
    }

    pub(super) fn v4(&mut self, place: &str) -> Ipv4Addr {
        let n = self.next() as u8;
        let a = Ipv4Addr::new(203, 17, 113 ^ n, n);
        let mut back = a.octets();
        back.reverse();
        self.add("IPv4 address", place, vec![a.to_string().into(), a.octets().to_vec(), hex(&back).into()]);
        a
    }

    pub(super) fn v6(&mut self, place: &str) -> Ipv6Addr {
        let n = self.next() as u16;
        let a = Ipv6Addr::new(0x2a01, 0x4f8, 0x1c0c, 0x7000 + n, 0, 0, 0xbe, n);
        self.add("IPv6 address", place, vec![a.to_string().into(), a.octets().to_vec(), hex(&a.octets()).into()]);
        a
    }

    /// A binary secret: serial numbers in a configuration space, matches of a rule.
    pub(super) fn bytes(&mut self, kind: &'static str, place: &str, length: usize) -> Vec<u8> {
        let n = self.next();
        // No part of one secret occurs in another one.
        let mut state = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let out: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as u8 | 1
        })
        .take(length)
        .collect();
        self.add(kind, place, vec![out.clone()]);
        out
    }

    /// A text that is derived from its number.
    pub(super) fn exact(&mut self, kind: &'static str, place: &str, make: impl Fn(u32) -> String) -> String {
        let text = make(self.next());
        self.add(kind, place, vec![text.clone().into()]);
        text
    }

    pub(super) fn uuid(&mut self, place: &str) -> String {
        let n = self.next();
        let text = format!("6f1c2d3e-4a5b-4c6d-8e7f-9a0b1c2d{n:04x}");
        self.add("UUID", place, vec![text.clone().into()]);
        text
    }

    pub(super) fn kinds(&self) -> BTreeSet<&'static str> {
        self.list.iter().map(|p| p.kind).collect()
    }
}

pub(super) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

/// An unpacked archive: names and contents of its members, and the kernel's replies as bytes.
pub(super) struct Archive {
    parts: Vec<(String, Vec<u8>)>,
}

impl Archive {
    /// The archive as it is written, before it is packed.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut plain = Vec::new();
        recording.write_to(&mut plain, false).unwrap();
        let mut parts = vec![("archive".to_string(), plain.clone())];
        for entry in tar::Archive::new(&plain[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            if name == "kernel.json" {
                parts.extend(replies(&bytes));
            }
        }
        Self { parts }
    }

    /// Finds each secret: as it is, in other case, as digits, in UTF-16, in base64. Names of members are searched too.
    pub(super) fn search(&self, plants: &[Plant]) -> Vec<Option<String>> {
        let (mut exact, mut low) = (Needles::default(), Needles::default());
        for (i, form) in plants.iter().enumerate().flat_map(|(i, p)| p.forms.iter().map(move |f| (i, f))) {
            exact.add(i, form.clone());
            exact.add(i, form.iter().flat_map(|b| [*b, 0]).collect());
            (0..3).for_each(|skip| exact.add(i, base64(form, skip)));
            low.add(i, form.to_ascii_lowercase());
            low.add(i, hex(form).into_bytes());
        }
        let mut out = vec![None; plants.len()];
        for (name, bytes) in &self.parts {
            let small = bytes.to_ascii_lowercase();
            for (i, at) in exact.within(bytes).into_iter().chain(low.within(&small)) {
                let near = &bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())];
                let line = || format!("{name}: …{}…", String::from_utf8_lossy(near));
                out[i].get_or_insert_with(line);
            }
        }
        out
    }

    pub(super) fn holds(&self, plant: Plant) -> bool {
        self.search(&[plant])[0].is_some()
    }
}

/// Searched bytes by their first four bytes, so that one pass over the archive finds all of them.
#[derive(Default)]
struct Needles(HashMap<[u8; 4], Vec<(usize, Vec<u8>)>>);

impl Needles {
    fn add(&mut self, plant: usize, needle: Vec<u8>) {
        if let Some(first) = needle.first_chunk::<4>() {
            self.0.entry(*first).or_default().push((plant, needle));
        }
    }

    fn within(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for at in 0..bytes.len().saturating_sub(3) {
            let Some(all) = bytes[at..].first_chunk::<4>().and_then(|key| self.0.get(key)) else { continue };
            out.extend(all.iter().filter(|(_, n)| bytes[at..].starts_with(n)).map(|(i, _)| (*i, at)));
        }
        out
    }
}

/// The bytes of each reply, and of each request.
fn replies(json: &[u8]) -> Vec<(String, Vec<u8>)> {
    let all: Vec<serde_json::Value> = serde_json::from_slice(json).unwrap();
    let bytes = |text: &str| -> Vec<u8> {
        text.as_bytes().chunks(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect()
    };
    let mut out = Vec::new();
    for e in all {
        let name =
            format!("reply {} {}", e["name"].as_str().unwrap_or_default(), e["dev"].as_str().unwrap_or_default());
        let texts = e["reply"].as_array().into_iter().flatten().chain([&e["payload"]]);
        out.extend(texts.filter_map(|t| t.as_str()).map(|t| (name.clone(), bytes(t))));
    }
    out
}

/// The base64 digits that do not depend on the bytes before and after.
fn base64(bytes: &[u8], skip: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let whole = &bytes[skip.min(bytes.len())..];
    // Short texts leave too few digits to be unique.
    if whole.len() < 6 {
        return Vec::new();
    }
    whole
        .as_chunks::<3>()
        .0
        .iter()
        .flat_map(|c| {
            let n = u32::from(c[0]) << 16 | u32::from(c[1]) << 8 | u32::from(c[2]);
            [18, 12, 6, 0].map(|shift| DIGITS[(n >> shift & 63) as usize])
        })
        .collect()
}

#[test]
fn what_is_looked_for_is_found_in_every_form() {
    let plant = || {
        let mut plants = Plants::default();
        plants.text("word", "x", "secret{}");
        plants.list.remove(0)
    };
    let secret = plant().forms[1].clone();
    let holds = |path: &str, content: Vec<u8>| {
        let mut r = Recording::default();
        r.files.insert(path.into(), Ok(content));
        Archive::of(&r).holds(plant())
    };
    let wide: Vec<u8> = secret.iter().flat_map(|b| [*b, 0]).collect();
    let packed = base64(&[b"ab", &secret[..], b"cd"].concat(), 0);
    for content in [secret.clone(), secret.to_ascii_uppercase(), hex(&secret).into(), wide, packed] {
        assert!(holds("/proc/x", [b"x ", &content[..], b" y"].concat()));
    }
    assert!(!holds("/proc/x", secret[..8].to_vec()), "the mark is at its end");
    assert!(holds(&format!("/proc/{}", String::from_utf8(secret.clone()).unwrap()), Vec::new()));
    let mut r = Recording::default();
    let asked = RequestKey { kind: "links".into(), dev: String::new(), cmd: 0, payload: Vec::new() };
    r.kernel.insert(asked, RecordedReply { name: "link-get".into(), answer: Ok(vec![secret.to_ascii_uppercase()]) });
    assert!(Archive::of(&r).holds(plant()), "in other letters within a reply");
}
