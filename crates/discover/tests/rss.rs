//! RSS of kernels before 6.17: hash fields, and before 6.2 everything, by ioctl.

use crate::common::Tree;
use crate::common::machine::{Machine, eth1_plan};
use ringwise_discover::{Options, snapshot};
use ringwise_kfmt::ethtool_ioctl::{self, Rxfh, RxfhSizes};
use ringwise_kfmt::ethtool_nl::msg;
use ringwise_model::{Fact, Nic};
use ringwise_sys::{IoctlCmd, Request};

fn tree() -> Tree {
    let mut m = Machine::new(4, 1);
    m.nic(&eth1_plan("igb"));
    m.finish()
}

fn eth1(t: &Tree) -> Nic {
    snapshot(&t.shared(), &Options::all()).unwrap().nic("eth1").unwrap().clone()
}

fn ioctl(cmd: IoctlCmd, payload: Vec<u8>) -> Request {
    Request::Ioctl { cmd, dev: "eth1".into(), payload }
}

fn netlink() -> Request {
    Request::EthtoolGet { cmd: msg::RSS_GET, name: "rss-get", dev: "eth1".into() }
}

fn fields(t: &mut Tree) {
    for (flow, letters) in [("tcp4", "sdfn"), ("udp4", "sd"), ("tcp6", "sdfn")] {
        let ask = ethtool_ioctl::grxfh_request(flow).unwrap();
        let reply = ethtool_ioctl::grxfh_reply(&ask, letters).unwrap();
        t.reply(ioctl(IoctlCmd::RxfhFieldsGet, ask), vec![reply]);
    }
}

#[test]
fn fields_by_ioctl_where_netlink_does_not_tell() {
    let mut t = tree();
    fields(&mut t);
    let rss = eth1(&t).rss.known().unwrap().clone();
    let told: Vec<_> = rss.fields.iter().map(|(f, l)| (f.as_str(), l.as_str())).collect();
    // udp6 is answered by EOPNOTSUPP and left out.
    assert_eq!(told, [("tcp4", "sdfn"), ("tcp6", "sdfn"), ("udp4", "sd")]);
    assert_eq!(rss.table[..5], [0, 1, 2, 3, 0]);
}

#[test]
fn everything_by_ioctl_on_old_kernels() {
    let mut t = tree();
    fields(&mut t);
    t.kernel.insert(netlink(), Err(95));
    let state =
        Rxfh { context: 0, indir: (0..128).map(|i| i / 32).collect(), key: vec![0xab; 40], hfunc: 1, input_xfrm: 0 };
    let sizes = ethtool_ioctl::grssh_sizes_request(0);
    t.reply(ioctl(IoctlCmd::RssGet, sizes.clone()), vec![ethtool_ioctl::grssh_reply(&sizes, &state).unwrap()]);
    let all = ethtool_ioctl::grssh_request(0, RxfhSizes { indir: 128, key: 40 });
    t.reply(ioctl(IoctlCmd::RssGet, all.clone()), vec![ethtool_ioctl::grssh_reply(&all, &state).unwrap()]);
    let n = eth1(&t);
    let rss = n.rss.known().unwrap();
    assert_eq!((rss.table[31], rss.table[32], rss.table.len()), (0, 1, 128));
    assert_eq!(rss.function, Fact::Known("toeplitz".into()));
    assert_eq!(rss.key, Fact::Known("ab".repeat(40)));
    assert_eq!((rss.fields["udp4"].as_str(), n.unread.len()), ("sd", 0));
}

#[test]
fn absent_only_where_both_say_so() {
    let mut t = tree();
    t.kernel.insert(netlink(), Err(95));
    assert!(eth1(&t).rss.is_absent());
    t.kernel.insert(netlink(), Err(5));
    let n = eth1(&t);
    assert_eq!(n.rss.unread().unwrap().errno, Some(5));
    assert_eq!(n.unread.len(), 1);
}
