use super::*;

fn igb() -> LinkInfo {
    LinkInfo {
        ifindex: 2,
        link_type: ARPHRD_ETHER,
        flags: IFF_UP | IFF_RUNNING,
        name: "eth0".into(),
        mac: Some("52:54:00:12:34:56".into()),
        perm_mac: Some("52:54:00:12:34:56".into()),
        mtu: Some(1500),
        operstate: Some("up"),
        carrier: Some(true),
        num_rx_queues: Some(8),
        num_tx_queues: Some(8),
        altnames: vec!["enp3s0".into(), "lan0".into()],
        alias: Some("uplink to core1".into()),
        parent_dev: Some("0000:03:00.0".into()),
        parent_bus: Some("pci".into()),
        ..LinkInfo::default()
    }
}

#[test]
fn a_physical_link_goes_round() {
    let l = igb();
    assert_eq!(link(&link_reply(&l).unwrap()).unwrap(), l);
    assert!(l.is_up() && !l.is_loopback());
}

#[test]
fn a_vlan_in_a_bond_and_its_programs() {
    let l = LinkInfo {
        kind: Some("vlan".into()),
        link: Some(2),
        link_in_other_netns: true,
        master: Some(9),
        perm_mac: None,
        xdp: vec![XdpAttached { mode: "generic", program_id: Some(42) }],
        ..igb()
    };
    assert_eq!(link(&link_reply(&l).unwrap()).unwrap(), l);
    let two = LinkInfo {
        xdp: vec![
            XdpAttached { mode: "driver", program_id: Some(1) },
            XdpAttached { mode: "offload", program_id: Some(2) },
        ],
        ..igb()
    };
    assert_eq!(link(&link_reply(&two).unwrap()).unwrap().xdp, two.xdp);
}

#[test]
fn broken_links() {
    let good = link_reply(&igb()).unwrap();
    assert!(link(&good[..15]).is_err());
    assert!(link(&good[..16]).is_err(), "no name");
    assert_eq!(link(&good[..40]).unwrap_err().what, LINK);
}

#[test]
fn addresses_go_round() {
    for text in ["192.0.2.1/24", "2001:db8::1/64", "fe80::1/128"] {
        let got = addr(&addr_reply(7, text).unwrap()).unwrap().unwrap();
        assert_eq!((got.ifindex, got.address.as_str()), (7, text));
    }
    assert!(addr_reply(7, "192.0.2.1").is_err());
}

#[test]
fn point_to_point_gives_the_own_address() {
    let mut msg = vec![AF_INET, 32, 0, 0, 3, 0, 0, 0];
    let mut b = Builder::new();
    b.binary(IFA_ADDRESS, &[10, 0, 0, 2]).unwrap().binary(IFA_LOCAL, &[10, 0, 0, 1]).unwrap();
    msg.extend(b.finish());
    assert_eq!(addr(&msg).unwrap().unwrap().address, "10.0.0.1/32");
}

#[test]
fn broken_addresses() {
    assert!(addr(&[2, 0]).is_err());
    assert!(addr(&[2, 24, 0, 0, 1, 0, 0, 0]).is_err(), "no address");
    assert_eq!(addr(&[7, 0, 0, 0, 1, 0, 0, 0]).unwrap(), None);
    let mut msg = vec![10, 64, 0, 0, 3, 0, 0, 0];
    let mut b = Builder::new();
    b.binary(IFA_ADDRESS, &[10, 0, 0, 2]).unwrap();
    msg.extend(b.finish());
    assert!(addr(&msg).is_err(), "four bytes of IPv6");
}
