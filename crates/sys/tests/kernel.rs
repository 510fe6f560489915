//! The real kernel: `lo` in the present namespace, and a veth pair in a private one.
//!
//! The private tests run this binary again under `unshare --net`. Without permission for that they print `skipped`, which is a
//! failure if `RINGWISE_REQUIRE_ALL` is set (in the lane that exists to run them).

mod ip;
mod netns;

use std::process::Command;

use ip::ip;
use netns::in_private_netns;
use ringwise_sys::{Clock, Error, Host, IoctlCmd, Real, Request, ifindex};

const CHANNELS: &str = "channels-get";

fn real() -> Real {
    Real::new().unwrap()
}

fn get(cmd: u8, name: &'static str, dev: &str) -> Result<Vec<Vec<u8>>, Error> {
    real().kernel(&Request::EthtoolGet { cmd, name, dev: dev.into() })
}

/// Attributes of a message as (type, value).
fn attrs(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut out = Vec::new();
    while bytes.len() >= 4 {
        let length = u16::from_ne_bytes([bytes[0], bytes[1]]) as usize;
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]) & 0x3fff;
        out.push((kind, bytes[4..length].to_vec()));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    out
}

fn number(message: &[u8], kind: u16) -> Option<u32> {
    let found = attrs(message).into_iter().find(|(k, _)| *k == kind)?;
    Some(u32::from_ne_bytes(found.1.try_into().unwrap()))
}

#[test]
fn refusals_of_the_kernel_keep_their_errno() {
    let error = get(17, CHANNELS, "lo").unwrap_err();
    assert_eq!(error.errno, Some(95), "{error}");
    assert!(error.to_string().starts_with("channels-get lo: EOPNOTSUPP"), "{error}");
    assert!(error.is_absent());
    let error = get(17, CHANNELS, "nonesuch0").unwrap_err();
    assert_eq!(error.errno, Some(19), "{error}");
    assert!(error.words.is_some(), "the kernel adds a message to ENODEV: {error}");
    let dump = Request::NetdevDump { cmd: 10, name: "queue-get", dev: "nonesuch0".into() };
    assert_eq!(real().kernel(&dump).unwrap_err().errno, Some(19));
    let bad = get(250, "no-such-command", "lo").unwrap_err();
    assert_eq!(bad.errno, Some(95), "{bad}");
}

#[test]
fn links_and_addresses() {
    let links = real().kernel(&Request::Links).unwrap();
    // ifinfomsg: 16 bytes, the index at 4; IFLA_IFNAME is 3
    let lo = links.iter().find(|m| m[4..8] == 1u32.to_ne_bytes()).unwrap();
    assert!(attrs(&lo[16..]).contains(&(3, b"lo\0".to_vec())));
    // The mask excludes IFLA_AF_SPEC 26 → AF_INET6 10 → IFLA_INET6_STATS 3
    let spec = attrs(&lo[16..]).into_iter().find(|(k, _)| *k == 26).map(|(_, v)| attrs(&v)).unwrap_or_default();
    let inet6 = spec.into_iter().find(|(k, _)| *k == 10).map(|(_, v)| attrs(&v)).unwrap_or_default();
    assert!(inet6.iter().all(|(k, _)| *k != 3), "statistics of address families are left out");
    let names = real().list("/sys/class/net").unwrap();
    let devices = names.iter().filter(|n| *n != "bonding_masters").count();
    assert_eq!(links.len(), devices);
    // ifaddrmsg: 8 bytes
    assert!(real().kernel(&Request::Addrs).unwrap().iter().all(|m| m.len() >= 8));
}

#[test]
fn many_threads_at_once() {
    let host = real();
    std::thread::scope(|s| {
        for _ in 0..16 {
            s.spawn(|| {
                for _ in 0..50 {
                    assert!(!host.kernel(&Request::Links).unwrap().is_empty());
                    let get = Request::EthtoolGet { cmd: 17, name: CHANNELS, dev: "lo".into() };
                    assert_eq!(host.kernel(&get).unwrap_err().errno, Some(95));
                }
            });
        }
    });
}

#[test]
fn files_read_whole_and_errors_name_them() {
    let host = real();
    assert_eq!(host.read("/proc/interrupts").unwrap().last(), Some(&b'\n'));
    assert_eq!(host.read_text("/proc/sys/kernel/ostype").unwrap(), "Linux");
    let error = host.read("/proc/nonesuch").unwrap_err();
    assert_eq!(error.to_string(), "read /proc/nonesuch: ENOENT (No such file or directory)");
    assert_eq!(host.read("/proc").unwrap_err().errno, Some(21));
    assert_eq!(host.list("/proc/stat").unwrap_err().errno, Some(20));
    assert_eq!(host.readlink("/proc/stat").unwrap_err().errno, Some(22));
    let error = host.write("/proc/nonesuch", b"3\n").unwrap_err();
    assert_eq!(error.to_string(), "write /proc/nonesuch <- \"3\": ENOENT (No such file or directory)");
    let big = std::env::temp_dir().join(format!("ringwise-big-{}", std::process::id()));
    let content: Vec<u8> = (0..1_000_003u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&big, &content).unwrap();
    assert!(host.read(big.to_str().unwrap()).unwrap() == content);
    std::fs::remove_file(&big).unwrap();
    assert!(!big.exists() && host.write(big.to_str().unwrap(), b"x").is_err() && !big.exists());
}

#[test]
fn time_goes_on() {
    let host = real();
    let uptime: f64 = host.read_text("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
    let now = host.since_boot().as_secs_f64();
    assert!((now - uptime).abs() < 5.0, "{now} {uptime}");
    assert!(host.unix_time() > 1_700_000_000);
}

fn veth() {
    ip("link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 numtxqueues 4 numrxqueues 4");
    ip("link set v0 up");
    ip("link set v1 up");
}

fn u32_attr(kind: u16, value: u32) -> Vec<u8> {
    [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value.to_ne_bytes()].concat()
}

// linux/ethtool_netlink.h: ETHTOOL_A_CHANNELS_*
const RX_MAX: u16 = 2;
const RX_COUNT: u16 = 6;
const TX_COUNT: u16 = 7;

#[test]
fn veth_channels_are_read_set_and_refused() {
    if !in_private_netns("veth_channels_are_read_set_and_refused") {
        return;
    }
    veth();
    let before = get(17, CHANNELS, "v0").unwrap();
    assert_eq!((before.len(), number(&before[0], RX_MAX)), (1, Some(4)));
    let set = |rx, tx| {
        let attrs = [u32_attr(RX_COUNT, rx), u32_attr(TX_COUNT, tx)].concat();
        real().kernel(&Request::EthtoolSet { cmd: 18, name: "channels-set", dev: "v0".into(), attrs })
    };
    assert_eq!(set(2, 1).unwrap(), Vec::<Vec<u8>>::new());
    let after = &get(17, CHANNELS, "v0").unwrap()[0];
    assert_eq!((number(after, RX_COUNT), number(after, TX_COUNT)), (Some(2), Some(1)));
    let error = set(99, 1).unwrap_err();
    assert_eq!(error.errno, Some(22));
    let words = error.words.clone().unwrap();
    assert!(words.contains("exceeds maximum"), "{words}");
    assert!(error.to_string().starts_with("channels-set v0: EINVAL"), "{error}");
}

#[test]
fn veth_driver_queues_and_masks() {
    if !in_private_netns("veth_driver_queues_and_masks") {
        return;
    }
    veth();
    let info = Request::Ioctl { cmd: IoctlCmd::DrvinfoGet, dev: "v0".into(), payload: vec![0; 196] };
    let info = real().kernel(&info).unwrap();
    assert!(info[0][4..].starts_with(b"veth\0"));
    // netdev family: since 6.8 (queue-get); older kernels refuse with an errno
    match real().kernel(&Request::NetdevDump { cmd: 10, name: "queue-get", dev: "v0".into() }) {
        Ok(queues) => {
            let index = ifindex("ifindex v0", "v0").unwrap();
            assert!(!queues.is_empty());
            assert!(queues.iter().all(|q| number(q, 2) == Some(index)), "only this device");
            let dev = real().kernel(&Request::NetdevDump { cmd: 1, name: "dev-get", dev: "v0".into() }).unwrap();
            assert_eq!((dev.len(), number(&dev[0], 1)), (1, Some(index)));
        }
        Err(e) => assert!(matches!(e.errno, Some(2 | 95)), "{e}"),
    }
    let mask = "/sys/class/net/v0/queues/rx-1/rps_cpus";
    real().write(mask, b"1").unwrap();
    assert_eq!(real().read_text(mask).unwrap().trim_start_matches(['0', ',']), "1");
    let error = real().write(mask, b"junk").unwrap_err();
    assert_eq!((error.errno, error.data.as_deref()), (Some(22), Some("junk")));
}

#[test]
fn a_thousand_links_in_one_dump() {
    if !in_private_netns("a_thousand_links_in_one_dump") {
        return;
    }
    let batch: String = (0..500).map(|i| format!("link add a{i} type veth peer name b{i}\n")).collect();
    let file = std::env::temp_dir().join(format!("ringwise-links-{}", std::process::id()));
    std::fs::write(&file, batch).unwrap();
    let made = Command::new("ip").arg("-batch").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let begin = std::time::Instant::now();
    let links = real().kernel(&Request::Links).unwrap();
    let bytes: usize = links.iter().map(Vec::len).sum();
    println!("{} links, {bytes} bytes in {:?}", links.len(), begin.elapsed());
    assert!(links.len() >= 1001);
}
