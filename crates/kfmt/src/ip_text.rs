//! The output of `ip` and `tc`, as in support bundles.

use crate::ParseError;
use crate::qdisc::{Qdisc, ROOT};
use crate::rtnl::{ARPHRD_ETHER, ARPHRD_LOOPBACK, IFF_LOOPBACK, IFF_RUNNING, IFF_UP, LinkInfo, XdpAttached};

const LINKS: &str = "ip -d link";
const QDISCS: &str = "tc qdisc show";

/// One interface of `ip -s -d link`, with values that no kernel message contains in this form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkLine {
    /// What the kernel's link message contains; `None` for what the text does not show.
    pub info: LinkInfo,
    /// Transmit queue length in packets (`qlen`). `None`: not shown.
    pub tx_queue_len: Option<u32>,
}

/// `7: eth0.100@eth0:` without the last colon: index, name, and the interface below.
fn head(line: &str) -> Option<(u32, &str, Option<&str>, &str)> {
    let (index, rest) = line.split_once(": ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (name, below) = match name.split_once('@') {
        Some((n, b)) => (n, Some(b)),
        None => (name, None),
    };
    Some((index.parse().ok().filter(|i| *i > 0)?, name, below, rest))
        .filter(|_| !name.is_empty() && !name.contains(char::is_control))
}

/// The word that follows `key`.
fn after<'t>(words: &[&'t str], key: &str) -> Option<&'t str> {
    words.iter().position(|w| *w == key).and_then(|i| words.get(i + 1)).copied()
}

fn is_mac(word: &str) -> bool {
    word.contains(':') && word.split(':').all(|p| p.len() == 2 && u8::from_str_radix(p, 16).is_ok())
}

const STATES: [(&str, &str); 7] = [
    ("UP", "up"),
    ("DOWN", "down"),
    ("UNKNOWN", "unknown"),
    ("LOWERLAYERDOWN", "lowerlayerdown"),
    ("DORMANT", "dormant"),
    ("TESTING", "testing"),
    ("NOTPRESENT", "notpresent"),
];
/// How an attached XDP program is named on the first line, by its mode.
const XDP: [(&str, &str); 3] = [("xdp", "driver"), ("xdpgeneric", "generic"), ("xdpoffload", "offload")];

fn program(word: &str) -> Option<XdpAttached> {
    let (name, id) = word.split_once("/id:").map_or((word, None), |(n, id)| (n, id.parse().ok()));
    let (_, mode) = XDP.iter().find(|(w, _)| *w == name)?;
    Some(XdpAttached { mode, program_id: id })
}

/// `ip -s -d link`: every interface, with the indices of those above and below.
pub fn links(text: &str) -> Result<Vec<LinkLine>, ParseError> {
    let mut out: Vec<LinkLine> = Vec::new();
    // The names are known after all lines were read.
    let mut named: Vec<(Option<String>, Option<String>)> = Vec::new();
    let mut detail = 0;
    for (i, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            let bad = || ParseError::at(LINKS, i + 1, line, "an interface: 2: eth0: <FLAGS> mtu …");
            let (ifindex, name, below, rest) = head(line).ok_or_else(bad)?;
            let flags = rest.strip_prefix('<').and_then(|r| r.split_once('>')).map(|(f, _)| f).ok_or_else(bad)?;
            let flag = |name: &str| flags.split(',').any(|f| f == name);
            let up = flag("UP");
            let mut info = LinkInfo { ifindex, name: name.into(), link_type: u16::MAX, ..LinkInfo::default() };
            info.qdisc = after(&words, "qdisc").map(str::to_string);
            for (on, bit) in [(up, IFF_UP), (flag("LOOPBACK"), IFF_LOOPBACK), (up && !flag("NO-CARRIER"), IFF_RUNNING)]
            {
                info.flags |= if on { bit } else { 0 };
            }
            // LOWER_UP is shown only for interfaces that are switched on.
            info.carrier = up.then(|| flag("LOWER_UP"));
            info.mtu = after(&words, "mtu").and_then(|w| w.parse().ok());
            let state = after(&words, "state");
            info.operstate = STATES.iter().find(|(s, _)| Some(*s) == state).map(|(_, s)| *s);
            // "xdp", or "xdp/id:9".
            info.xdp = words.iter().filter_map(|w| program(w)).collect();
            // if9: index 9 in another network namespace.
            let elsewhere = below.and_then(|b| b.strip_prefix("if")?.parse().ok());
            (info.link, info.link_in_other_netns) = (elsewhere, elsewhere.is_some());
            let below = below.filter(|b| elsewhere.is_none() && *b != "NONE").map(str::to_string);
            named.push((after(&words, "master").map(str::to_string), below));
            let tx_queue_len = after(&words, "qlen").and_then(|w| w.parse().ok());
            out.push(LinkLine { info, tx_queue_len });
            detail = 0;
            continue;
        }
        let Some(info) = out.last_mut().map(|l| &mut l.info) else { continue };
        detail += 1;
        details(info, detail, &words);
    }
    if out.is_empty() {
        return Err(ParseError::new(LINKS, text, "interfaces"));
    }
    let index = |out: &[LinkLine], name: &str| out.iter().find(|l| l.info.name == name).map(|l| l.info.ifindex);
    for (i, (master, below)) in named.into_iter().enumerate() {
        let of = |name: Option<String>| name.and_then(|n| index(&out, &n));
        let (master, below) = (of(master), of(below));
        out[i].info.master = master;
        out[i].info.link = out[i].info.link.or(below);
    }
    Ok(out)
}

/// One of the lines after the first.
fn details(info: &mut LinkInfo, line: usize, words: &[&str]) {
    let Some(first) = words.first() else { return };
    let text = |key: &str| after(words, key).map(str::to_string);
    let number = |key: &str| after(words, key).and_then(|w| w.parse().ok());
    match *first {
        w if w.starts_with("link/") => {
            info.link_type = match &w[5..] {
                "ether" => ARPHRD_ETHER,
                "loopback" => ARPHRD_LOOPBACK,
                _ => u16::MAX,
            };
            info.mac = words.get(1).filter(|w| is_mac(w)).map(|w| w.to_string());
            info.perm_mac = text("permaddr").filter(|w| is_mac(w));
        }
        "altname" => return info.altnames.extend(words.get(1).map(|w| w.to_string())),
        "alias" => return info.alias = Some(words[1..].join(" ")).filter(|t| !t.is_empty()),
        "prog/xdp" => {
            let id = number("id");
            return info.xdp.iter_mut().for_each(|x| x.program_id = id);
        }
        // The kind is directly below the address, alone or before its parameters.
        w if line == 2 && !w.ends_with("_slave") && is_kind(w) => info.kind = Some(w.to_string()),
        _ => {}
    }
    info.num_tx_queues = number("numtxqueues").or(info.num_tx_queues);
    info.num_rx_queues = number("numrxqueues").or(info.num_rx_queues);
    let (bus, dev) = (text("parentbus"), text("parentdev"));
    info.parent_bus = bus.or(info.parent_bus.take());
    info.parent_dev = dev.or(info.parent_dev.take());
}

fn is_kind(word: &str) -> bool {
    const OTHERS: [&str; 4] = ["addrgenmode", "vf", "parentbus", "numtxqueues"];
    let shape = word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    shape && !OTHERS.contains(&word)
}

/// `ip -o addr` (and `ip -o -d addr`): index of the interface and `192.0.2.1/24`.
pub fn addresses(text: &str) -> Vec<(u32, String)> {
    let one = |line: &str| {
        let (index, rest) = line.split_once(": ")?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let address = after(&words, "inet").or_else(|| after(&words, "inet6"))?;
        // For point-to-point links the own address has no length: `192.0.2.1 peer 192.0.2.2/32`.
        let address = match (address.contains('/'), after(&words, "peer").and_then(|p| p.split_once('/'))) {
            (true, _) => address.to_string(),
            (false, Some((_, length))) => format!("{address}/{length}"),
            (false, None) => return None,
        };
        Some((index.parse().ok()?, address))
    };
    text.lines().filter_map(one).collect()
}

/// `8001:4`, `:1`, `8001:`: major number in the upper half.
fn handle(word: &str) -> Option<u32> {
    let (major, minor) = word.split_once(':')?;
    let half = |t: &str| if t.is_empty() { Some(0) } else { u32::from_str_radix(t, 16).ok().filter(|n| *n <= 0xffff) };
    Some(half(major)? << 16 | half(minor)?)
}

/// `tc -s qdisc show`, with the name of the interface of each; the caller fills in the index.
pub fn qdiscs(text: &str) -> Result<Vec<(String, Qdisc)>, ParseError> {
    let mut out: Vec<(String, Qdisc)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.first() == Some(&"qdisc") {
            let bad = || ParseError::at(QDISCS, i + 1, line, "qdisc KIND HANDLE: dev NAME root|parent ID");
            let (Some(kind), Some(id), Some(dev)) = (words.get(1), words.get(2), after(&words, "dev")) else {
                return Err(bad());
            };
            let id = handle(id).ok_or_else(bad)?;
            let parent = match after(&words, "parent") {
                Some(p) => handle(p).ok_or_else(bad)?,
                None if words.contains(&"root") => ROOT,
                // ingress and clsact are attached elsewhere.
                None => continue,
            };
            out.push((
                dev.into(),
                Qdisc { ifindex: 0, handle: id, parent, kind: kind.to_string(), ..Qdisc::default() },
            ));
        } else if let (Some("Sent"), Some((_, q))) = (words.first().copied(), out.last_mut()) {
            q.drops = after(&words, "(dropped").and_then(|w| w.trim_end_matches(',').parse().ok());
        }
    }
    if out.is_empty() { Err(ParseError::new(QDISCS, text, "qdiscs")) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 allmulti 0 minmtu 0 maxmtu 0 addrgenmode eui64 numtxqueues 1 numrxqueues 1 gso_max_size 65536
    RX:  bytes packets errors dropped  missed   mcast
          5040      60      0       0       0       0
2: eth0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP mode DEFAULT group default qlen 1000
    link/ether 52:54:00:aa:00:01 brd ff:ff:ff:ff:ff:ff permaddr 52:54:00:aa:00:02 promiscuity 0 minmtu 68 maxmtu 9216
    bond_slave state ACTIVE mii_status UP link_failure_count 0 addrgenmode eui64 numtxqueues 8 numrxqueues 8 parentbus pci parentdev 0000:01:00.0
    RX:  bytes packets errors dropped  missed   mcast
    alias to the core switch
    altname enp1s0
3: eth1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 xdp/id:9 qdisc mq state DOWN mode DEFAULT group default qlen 1000
    link/ether 52:54:00:aa:00:03 brd ff:ff:ff:ff:ff:ff promiscuity 0 addrgenmode eui64 numtxqueues 4 numrxqueues 4 parentbus pci parentdev 0000:02:00.0
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 52:54:00:aa:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    bond mode 802.3ad miimon 100 updelay 0 addrgenmode eui64 numtxqueues 16 numrxqueues 16
5: bond0.7@bond0: <BROADCAST,MULTICAST> mtu 9000 qdisc noop state DOWN mode DEFAULT group default qlen 1000
    link/ether 52:54:00:aa:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    vlan protocol 802.1Q id 7 <REORDER_HDR> addrgenmode eui64 numtxqueues 1 numrxqueues 1
9: veth0@if8: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 52:54:00:aa:00:09 brd ff:ff:ff:ff:ff:ff link-netnsid 0 promiscuity 0
    veth addrgenmode eui64 numtxqueues 1 numrxqueues 1
";

    #[test]
    fn a_line_without_a_name_starts_no_interface() {
        let line = |name: &str| format!("2: {name}: <UP> mtu 1500 state UP\n    link/ether 52:54:00:aa:00:01\n");
        assert_eq!(links(&line("eth0")).unwrap().len(), 1);
        for name in ["", "@eth0", "et\u{7}h0"] {
            assert!(links(&line(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn links_with_what_is_above_and_below() {
        let all = links(TEXT).unwrap();
        let of = |name: &str| all.iter().find(|l| l.info.name == name).unwrap();
        assert_eq!(all.iter().map(|l| l.info.ifindex).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 9]);
        assert!(of("lo").info.is_loopback() && of("lo").info.kind.is_none());
        let e = &of("eth0").info;
        assert_eq!((e.kind.as_deref(), e.master, e.mtu, e.operstate), (None, Some(4), Some(9000), Some("up")));
        assert_eq!((e.num_rx_queues, e.parent_dev.as_deref()), (Some(8), Some("0000:01:00.0")));
        assert_eq!((e.mac.as_deref(), e.perm_mac.as_deref()), (Some("52:54:00:aa:00:01"), Some("52:54:00:aa:00:02")));
        assert_eq!(
            (e.altnames.as_slice(), e.alias.as_deref()),
            (&["enp1s0".to_string()][..], Some("to the core switch"))
        );
        assert_eq!((e.carrier, of("eth0").tx_queue_len), (Some(true), Some(1000)));
        let e = &of("eth1").info;
        assert_eq!((e.carrier, e.is_up(), e.kind.as_deref(), e.flags & IFF_RUNNING), (Some(false), true, None, 0));
        assert_eq!(e.xdp, [XdpAttached { mode: "driver", program_id: Some(9) }]);
        assert_eq!(of("bond0").info.kind.as_deref(), Some("bond"));
        let v = &of("bond0.7").info;
        assert_eq!((v.kind.as_deref(), v.link, v.is_up(), v.carrier), (Some("vlan"), Some(4), false, None));
        let v = &of("veth0").info;
        assert_eq!((v.kind.as_deref(), v.link, v.link_in_other_netns), (Some("veth"), Some(8), true));
        // As a message and back, as in discovery.
        for l in &all {
            let again = crate::rtnl::link(&crate::rtnl::link_reply(&l.info).unwrap()).unwrap();
            assert_eq!(again.name, l.info.name);
            assert_eq!((again.master, again.link, &again.kind), (l.info.master, l.info.link, &l.info.kind));
        }
        assert!(links("").is_err() && links("2: eth0 up\n").is_err());
    }

    #[test]
    fn programs() {
        let e = links(
            "2: e: <UP> mtu 1500 xdp qdisc mq state UP\n    link/ether x brd y\n    prog/xdp id 17 tag ab jited\n",
        );
        let x = &e.unwrap()[0].info.xdp;
        assert_eq!((x[0].mode, x[0].program_id), ("driver", Some(17)));
    }

    #[test]
    fn addresses_and_qdiscs() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: eth0    inet6 fe80::1/64 scope link \\       valid_lft forever
3: tun0    inet 192.0.2.1 peer 192.0.2.2/32 scope global tun0
4: x    link/ether 00:00
";
        let got = addresses(text);
        let want = [(1, "127.0.0.1/8"), (2, "fe80::1/64"), (3, "192.0.2.1/32")];
        assert_eq!(got.iter().map(|(i, a)| (*i, a.as_str())).collect::<Vec<_>>(), want);
        let text = "qdisc mq 0: dev eth0 root\n Sent 9 bytes 1 pkt (dropped 5, overlimits 0 requeues 0)\n\
                    qdisc fq_codel 0: dev eth0 parent :2 limit 10240p\n Sent 9 bytes 1 pkt (dropped 0, overlimits 0)\n\
                    qdisc clsact ffff: dev eth0 parent ffff:fff1\n";
        let q = qdiscs(text).unwrap();
        assert_eq!((q[0].1.is_root(), q[0].1.drops, q[1].1.drops), (true, Some(5), Some(0)));
        assert_eq!(q[1].1.queue_of(&q[0].1), Some(1));
        assert_eq!((q[2].1.handle, q[2].1.parent), (0xffff_0000, 0xffff_fff1));
        assert!(qdiscs("").is_err() && qdiscs("qdisc mq\n").is_err());
        let e = qdiscs("qdisc mq 0: dev eth0 root\n\nqdisc mq\n").unwrap_err();
        assert_eq!((e.line, e.found.as_str()), (Some(3), "qdisc mq"));
    }
}
