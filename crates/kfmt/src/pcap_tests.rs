use super::*;

/// Link type, bytes, length on the wire.
type Read = (u32, Vec<u8>, u32);

/// Every packet, until the end; each time `chunk` more bytes are given.
fn all(file: &[u8], chunk: usize) -> Result<(Vec<Read>, bool), String> {
    let mut r = Reader::new();
    let (mut at, mut have, mut out) = (0usize, chunk.min(file.len()), Vec::new());
    loop {
        match r.step(&file[at..have]).map_err(|e| e.to_string())? {
            PcapStep::Need(_) if have == file.len() => return Ok((out, at == file.len())),
            PcapStep::Need(_) => have = (have + chunk).min(file.len()),
            PcapStep::Skip(n) => {
                let to = at.saturating_add(n as usize);
                if to > file.len() {
                    return Ok((out, false));
                }
                at = to;
                have = have.max(at);
            }
            PcapStep::Packet { used, link, data, wire } => {
                out.push((link, data.to_vec(), wire));
                at += used;
            }
        }
    }
}

fn pcap(big: bool, magic: u32, link: u32, packets: &[&[u8]]) -> Vec<u8> {
    let w = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut f = [w(magic), w(0x0004_0002), w(0), w(0), w(65_535), w(link)].concat();
    for p in packets {
        f.extend([w(1), w(2), w(p.len() as u32), w(p.len() as u32 + 7)].concat());
        if magic == MODIFIED {
            f.extend([0; 8]);
        }
        f.extend_from_slice(p);
    }
    f
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let w = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let padded = body.len().next_multiple_of(4);
    let size = w(padded as u32 + 12);
    let mut b = [w(kind), size].concat();
    b.extend_from_slice(body);
    b.resize(8 + padded, 0);
    b.extend(size);
    b
}

fn pcapng(big: bool) -> Vec<u8> {
    let w = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let h = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let section = block(big, SECTION, &[w(ORDER).as_slice(), &h(1), &h(0), &[0xff; 8]].concat());
    let interface = |link: u16, snap: u32| block(big, 1, &[h(link).as_slice(), &h(0), &w(snap)].concat());
    let enhanced =
        |i: u32, p: &[u8]| block(big, 6, &[w(i).as_slice(), &w(0), &w(0), &w(p.len() as u32), &w(1500), p].concat());
    let simple = block(big, 3, &[w(9).as_slice(), &[7, 8, 9]].concat());
    let names = block(big, 4, &[0; 4]);
    [section, interface(1, 3), interface(101, 0), names, enhanced(1, &[1, 2, 3, 4, 5]), simple].concat()
}

#[test]
fn both_formats_in_both_orders_whatever_the_chunks() {
    for big in [false, true] {
        for magic in [MICRO, NANO, MODIFIED] {
            let f = pcap(big, magic, 1, &[&[1, 2, 3], &[], &[4]]);
            for chunk in [1, 5, 1000] {
                let (got, whole) = all(&f, chunk).unwrap();
                assert!(whole);
                assert_eq!(got, [(1, vec![1, 2, 3], 10), (1, vec![], 7), (1, vec![4], 8)]);
            }
        }
        let f = pcapng(big);
        for chunk in [1, 7, 1000] {
            let (got, whole) = all(&f, chunk).unwrap();
            assert!(whole);
            assert_eq!(got, [(101, vec![1, 2, 3, 4, 5], 1500), (1, vec![7, 8, 9], 9)]);
        }
    }
}

#[test]
fn truncation_is_distinguished_from_the_end() {
    for f in [pcap(false, MICRO, 1, &[&[1, 2, 3], &[4, 5]]), pcapng(false)] {
        let full = all(&f, 1000).unwrap().0.len();
        for at in 1..f.len() {
            let (got, _) = all(&f[..at], 1000).unwrap();
            assert!(got.len() <= full);
        }
    }
    assert!(!all(&pcap(false, MICRO, 1, &[&[1, 2, 3]])[..41], 1000).unwrap().1);
}

#[test]
fn damage_is_reported() {
    let mut huge = pcap(false, MICRO, 1, &[&[1, 2, 3]]);
    huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(all(&huge, 1000).unwrap_err().contains("262144"));
    assert!(all(&[0; 64], 1000).unwrap_err().contains("pcap or pcapng"));
    let zip = [&[0x1f, 0x8b][..], &[0; 64]].concat();
    assert!(all(&zip, 1000).unwrap_err().contains("compressed"));
    let mut stranger = pcapng(false);
    let at = stranger.windows(4).rposition(|w| w == [1, 0, 0, 0]).unwrap();
    stranger[at] = 9;
    assert!(all(&stranger, 1000).is_err());
}
