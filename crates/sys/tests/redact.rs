//! After redaction nothing of the original identifiers is left in the bytes of the archive.

use std::collections::BTreeSet;

use ringwise_sys::{
    CaptureRecorder, Captured, Host, Knowledge, Real, RecordedRefusal, RecordedReply, Recording, Request, RequestKey,
};

const MAC: [u8; 6] = [0x3c, 0xec, 0xef, 0x12, 0x34, 0x56];
const PERM: [u8; 6] = [0x3c, 0xec, 0xef, 0xab, 0xcd, 0xef];

fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = [&((4 + value.len()) as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn request_key(kind: &str, dev: &str, cmd: u32) -> RequestKey {
    RequestKey { kind: kind.into(), dev: dev.into(), cmd, payload: Vec::new() }
}

fn link() -> Vec<u8> {
    let bond = [attr(1, &[1]), attr(26, &[0x3c, 0xec, 0xef, 0x77, 0x77, 0x77])].concat();
    let info = [attr(1, b"bond\0"), attr(2, &bond)].concat();
    let mut message = vec![0u8; 16];
    message[4] = 7;
    message.extend(
        [
            attr(3, b"enx3cecef123456\0"),
            attr(1, &MAC),
            attr(2, &[0xff; 6]),
            attr(54, &PERM),
            attr(20, b"uplink of Anna\0"),
            attr(4, &1500u32.to_ne_bytes()),
            attr(18 | 0x8000, &info),
            attr(26 | 0x8000, &attr(10, &attr(7, &[0x20, 1, 0x67, 0xc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xef]))),
        ]
        .concat(),
    );
    message
}

fn sample() -> Recording {
    let mut r = Recording::default();
    let mut file = |path: &str, text: &str| r.files.insert(path.into(), Ok(text.as_bytes().to_vec()));
    file("/proc/sys/kernel/hostname", "frankfurt7.corp-acme.example\n");
    file("/proc/sys/kernel/random/boot_id", "6f1c2d3e-aaaa-bbbb-cccc-0123456789ab\n");
    file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    file("/proc/cmdline", "root=UUID=6f1c2d3e-1111-2222-3333-0123456789ab isolcpus=2-5 ip=203.0.113.77 tok=hunter2\n");
    file("/proc/interrupts", "  CPU0\n 30: 5 enx3cecef123456-TxRx-0\n 31: 5 frankfurt7 x\n");
    file("/sys/class/net/enx3cecef123456/address", "3c:ec:ef:12:34:56\n");
    file("/sys/class/net/enx3cecef123456/ifalias", "uplink of Anna\n");
    file("/sys/class/net/enx3cecef123456/phys_switch_id", "3cecef123456\n");
    file("/sys/class/dmi/id/product_serial", "SN-ZX81-0042\n");
    file("/proc/net/arp", "203.0.113.1 0x1 0x2 3c:ec:ef:99:88:77 * eth0\n");
    file("/proc/net/route", "Iface\tDestination\tGateway\nenx3cecef123456\t00000000\t017100CB\n");
    file("/proc/net/if_inet6", "2001067c00000000000000000000beef 02 40 00 80 eth0\n");
    file("/proc/net/unix", "0: @/home/anna/secret\n");
    file("/proc/12/cmdline", "qemu\0-serial\0hunter2\0");
    file("/proc/mounts", "filer3.corp-acme.example:/vol/anna /mnt nfs rw,addr=203.0.113.9 0 0\n");
    file("/proc/net/bonding/bond0", "Permanent HW addr: 3c:ec:ef:ab:cd:ef\nnote SN-ZX81-0042 uplink of Anna\n");
    r.dirs.insert("/sys/class/net".into(), Ok(vec!["enx3cecef123456".into(), "lo".into()]));
    let target = "../../devices/pci0000:00/0000:03:00.0/net/enx3cecef123456";
    r.links.insert("/sys/class/net/enx3cecef123456".into(), Ok(target.into()));
    let gone = RecordedRefusal {
        errno: Some(19),
        words: Some("no device enx3cecef123456 at 203.0.113.77".into()),
        late: false,
    };
    r.files.insert("/sys/class/net/enx3cecef123456/duplex".into(), Err(gone));
    r.kernel.insert(request_key("links", "", 0), RecordedReply { name: "link-get".into(), answer: Ok(vec![link()]) });
    let v4 = [vec![2u8, 24, 0, 0, 7, 0, 0, 0], attr(1, &[203, 0, 113, 77]), attr(2, &[203, 0, 113, 77])].concat();
    let v6 = [0x20, 1, 0x06, 0x7c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xef];
    let v6 = [vec![10u8, 64, 0, 0, 7, 0, 0, 0], attr(1, &v6)].concat();
    r.kernel.insert(request_key("addrs", "", 0), RecordedReply { name: "addr-get".into(), answer: Ok(vec![v4, v6]) });
    let header = attr(1 | 0x8000, &attr(2, b"enx3cecef123456\0"));
    let channels = [header, attr(6, &4u32.to_ne_bytes()), attr(99, &PERM)].concat();
    let reply = RecordedReply { name: "channels-get".into(), answer: Ok(vec![channels]) };
    r.kernel.insert(request_key("ethtool-get", "enx3cecef123456", 17), reply);
    r
}

fn archive(r: &Recording) -> Vec<u8> {
    let mut out = Vec::new();
    r.write_to(&mut out, false).unwrap();
    out
}

fn holds(archive: &[u8], needle: &str) -> bool {
    let needle = needle.to_lowercase();
    archive.to_ascii_lowercase().windows(needle.len()).any(|w| w == needle.as_bytes())
}

const ORIGINALS: [&str; 25] = [
    "frankfurt7",
    "corp-acme",
    "6f1c2d3e",
    "0123456789ab",
    "203.0.113",
    "hunter2",
    "3cecef123456",
    "3c:ec:ef",
    "3cecefabcdef",
    "3cecef777777",
    "Anna",
    "ZX81",
    "SN-",
    "017100CB",
    "2001067c",
    "2001:67c",
    "beef",
    "filer3",
    // as digits of raw bytes: names, alias, addresses
    "cb00714d",
    "75706c696e6b",
    "33636563656631",
    "2001670c",
    "3c:ec:ef:99",
    "secret",
    "/vol",
];

#[test]
fn nothing_of_the_originals_is_left() {
    let mut r = sample();
    let before = archive(&r);
    for original in ["frankfurt7", "3cecef777777", "cb00714d", "75706c696e6b", "33636563656631", "2001670c", "hunter2"]
    {
        assert!(holds(&before, original), "the sample is to hold {original}");
    }
    let report = r.redact();
    let after = archive(&r);
    for original in ORIGINALS {
        let text = String::from_utf8_lossy(&after).to_lowercase();
        let place = text
            .find(&original.to_lowercase())
            .map(|i| text[i.saturating_sub(80)..].chars().take(120).collect::<String>());
        assert_eq!(place, None, "{original} is left");
    }
    let kinds: BTreeSet<_> = report.iter().map(|k| k.kind.as_str()).collect();
    for kind in
        ["mac", "ipv4", "ipv6", "host name", "alias", "serial", "uuid", "machine id", "command line", "left out"]
    {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    assert!(report.iter().all(|k| k.distinct >= 1 && k.places >= k.distinct || k.kind == "mac"), "{report:?}");
    assert!(holds(&after, "\"kind\": \"mac\""), "the manifest lists what was replaced");
    // the same recording gives the same pseudonyms
    let mut again = sample();
    again.redact();
    assert_eq!(archive(&again), after);
}

#[test]
fn what_belongs_together_still_does() {
    let mut r = sample();
    r.redact();
    let host = Captured::from(r);
    let names = host.list("/sys/class/net").unwrap();
    let name = names.iter().find(|n| n.starts_with("enx")).unwrap();
    let address = host.read_text(&format!("/sys/class/net/{name}/address")).unwrap();
    assert_eq!(format!("enx{}", address.replace(':', "")), *name);
    assert!(host.readlink(&format!("/sys/class/net/{name}")).unwrap().ends_with(name));
    assert!(host.read_text("/proc/interrupts").unwrap().contains(&format!("{name}-TxRx-0")));
    let get = Request::EthtoolGet { cmd: 17, name: "channels-get", dev: name.clone() };
    let channels = &host.kernel(&get).unwrap()[0];
    assert!(channels.windows(name.len()).any(|w| w == name.as_bytes()));
    let link = &host.kernel(&Request::Links).unwrap()[0];
    let mac: Vec<u8> = address.split(':').map(|h| u8::from_str_radix(h, 16).unwrap()).collect();
    assert!(link.windows(6).any(|w| w == mac) && link.windows(8).any(|w| w == attr(4, &1500u32.to_ne_bytes())));
    assert!(link.windows(6).any(|w| w == b"alias-"));
    assert_eq!(host.read_text(&format!("/sys/class/net/{name}/ifalias")).unwrap(), "alias-1");
    let error = host.read(&format!("/sys/class/net/{name}/duplex")).unwrap_err();
    assert_eq!(error.errno, Some(19));
    assert!(host.read_text("/proc/net/bonding/bond0").unwrap().contains("alias-1"));
    let line = host.read_text("/proc/cmdline").unwrap();
    assert_eq!(line, "root= isolcpus=2-5 ip= tok=");
}

#[test]
fn a_recording_of_this_machine_names_it_no_more() {
    let recorder = CaptureRecorder::new(Real::new().unwrap());
    for path in [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/random/boot_id",
        "/proc/cmdline",
        "/proc/interrupts",
        "/proc/net/route",
        "/proc/net/if_inet6",
        "/proc/net/arp",
        "/proc/net/tcp",
        "/proc/mounts",
        "/etc/machine-id",
    ] {
        let _ = recorder.read(path); // missing files are recorded as such
    }
    let mut originals = BTreeSet::new();
    for dev in recorder.list("/sys/class/net").unwrap() {
        if let Ok(mac) = recorder.read_text(&format!("/sys/class/net/{dev}/address")) {
            originals.insert(mac.replace(':', ""));
            originals.insert(mac);
        }
    }
    recorder.kernel(&Request::Links).unwrap();
    let addrs = recorder.kernel(&Request::Addrs).unwrap();
    for a in addrs.iter().filter(|a| a[0] == 2) {
        let end = 12 + 4;
        originals.insert(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(&a[12..end]).unwrap()).to_string());
    }
    originals.insert(recorder.read_text("/proc/sys/kernel/random/boot_id").unwrap());
    originals.retain(|o| o.len() > 6 && !o.starts_with("127.") && o.bytes().any(|b| !matches!(b, b'0' | b':' | b'f')));
    assert!(originals.len() >= 2, "{originals:?}");
    let mut r = recorder.finish();
    let before = archive(&r);
    assert!(originals.iter().any(|o| holds(&before, o)));
    let files = (r.files.len(), r.kernel.len());
    r.redact();
    assert_eq!((r.files.len(), r.kernel.len()), files);
    let after = archive(&r);
    for original in &originals {
        assert!(!holds(&after, original), "{original} is left");
    }
}

/// Limits inside the NIC are numbers, which are kept; any other attribute is left out.
#[test]
fn limits_of_queues_are_kept() {
    let limit = b"\x08\0\x08\0\x03\0\0\0\
        \x0c\0\x09\x80\x08\0\x01\0\x01\0\0\0\
        \x14\0\x01\x80\x08\0\x01\0\x02\0\0\0\x08\0\x02\0\x05\0\0\0\
        \x08\0\x02\0\0\0\0\0\
        \x0c\0\x04\0\x00\xe1\xf5\x05\x01\0\0\0";
    let secret = b"\x0c\0\x0b\0hunter2\0";
    let mut r = Recording::default();
    let messages = vec![limit.to_vec(), [&limit[..], secret].concat()];
    let reply = RecordedReply { name: "net-shaper-get".into(), answer: Ok(messages) };
    r.kernel.insert(request_key("net-shaper", "eth0", 1), reply);
    r.dirs.insert("/sys/class/net".into(), Ok(vec!["eth0".into()]));
    r.redact_with(&Knowledge::default());
    let kept = r.kernel[&request_key("net-shaper", "eth0", 1)].answer.clone().unwrap();
    assert_eq!(kept, [limit.to_vec(), limit.to_vec()]);
}

/// Random bytes, with texts that look like ringwise's own among them.
/// Of the options of queueing disciplines, only the numbers of traffic classes and their queues are kept.
#[test]
fn traffic_classes_are_kept() {
    let (qopt, rest) = ([3u8; 82], attr(3, &[9; 8]));
    let message = |kind: &[u8], options: &[u8]| [vec![0; 20], attr(1, kind), attr(2, options)].concat();
    let padded = [&qopt[..], &[0; 2]].concat();
    let redacted = |message: Vec<u8>| {
        let mut r = Recording::default();
        r.kernel.insert(
            request_key("qdiscs", "", 0),
            RecordedReply { name: "qdisc-get".into(), answer: Ok(vec![message]) },
        );
        r.redact_with(&Knowledge::default());
        r.kernel[&request_key("qdiscs", "", 0)].answer.clone().unwrap().remove(0)
    };
    let of_mqprio = redacted(message(b"mqprio\0", &[&padded[..], &rest].concat()));
    assert_eq!(of_mqprio, message(b"mqprio\0", &qopt));
    let of_taprio = redacted(message(b"taprio\0", &[attr(1, &qopt), rest.clone()].concat()));
    assert_eq!(of_taprio, message(b"taprio\0", &attr(1, &qopt)));
    assert_eq!(redacted(message(b"fq\0", &padded)), [vec![0; 20], attr(1, b"fq\0")].concat());
}

fn noise(state: &mut u64, length: usize) -> Vec<u8> {
    const WORDS: [&[u8]; 20] = [
        b"password=",
        b"://",
        b"//a/b",
        b"@x.y",
        b"<6>[ 1.0] ",
        b"igb ",
        b"eth0: ",
        b"10.1.2.3",
        b"fe80::",
        b"aa:bb:cc:dd:ee:ff",
        b"iqn.2",
        b"serial ",
        b"\n",
        b"=",
        b":",
        b"\"",
        b"{\"who\":",
        b"\xff\xfe",
        b"\xc3\xa4",
        b"\0",
    ];
    let mut next = || {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*state >> 33) as usize
    };
    let mut out = Vec::new();
    while out.len() < length {
        match next() % 3 {
            0 => out.extend(WORDS[next() % WORDS.len()]),
            1 => out.push(next() as u8),
            _ => out.push(b' ' + (next() % 95) as u8),
        }
    }
    out
}

#[test]
fn damaged_replies_and_texts_end_no_capture() {
    let mut state = 7;
    let kinds = [
        ("links", 0),
        ("addrs", 0),
        ("route", 0),
        ("qdiscs", 0),
        ("default-routes", 0),
        ("sessions", 0),
        ("irqbalance", 0),
    ];
    let genl = [11, 13, 15, 17, 19, 21, 23, 38, 99].map(|c| ("ethtool-get", c));
    let ioctl = [3, 0x29, 0x2e, 0x2f, 0x30, 0x46, 0x4b, 0x77].map(|c| ("ioctl", c));
    let paths = [
        "/support/kernel.log",
        "/support/state/tx-0001.jsonl",
        "/support/status.txt",
        "/ringwise/standing",
        "/proc/self/mounts",
        "/proc/cmdline",
        "/proc/7/cmdline",
        "/proc/7/cgroup",
        "/proc/version",
        "/proc/modules",
        "/sys/bus/pci/devices/0000:03:00.0/config",
        "/sys/class/net/eth0/phys_port_id",
        "/sys/class/net/eth0/device/uevent",
        "/usr/lib/systemd/system/irqbalance.service",
        "/etc/systemd/network/a.link",
        "/etc/tuned/a/tuned.conf",
        "/etc/os-release",
        "/proc/net/route",
        "/proc/net/tcp6",
        "/proc/interrupts",
    ];
    for round in 0..60 {
        let mut r = Recording::default();
        for (kind, cmd) in
            kinds.into_iter().chain(genl).chain(ioctl).chain([("netdev", 10), ("net-shaper", 1), ("later", 1)])
        {
            let message = noise(&mut state, round * 5);
            r.kernel
                .insert(request_key(kind, "eth0", cmd), RecordedReply { name: kind.into(), answer: Ok(vec![message]) });
        }
        for path in paths {
            r.files.insert(path.into(), Ok(noise(&mut state, round * 9)));
        }
        r.dirs.insert("/sys/class/net".into(), Ok(vec!["eth0".into()]));
        let known = Knowledge { drivers: vec!["igb".into()], ..Knowledge::default() };
        r.redact_with(&known);
        let later = &r.kernel[&request_key("later", "eth0", 1)];
        assert!(later.answer.is_err(), "a reply that is not known is left out");
    }
}
