use super::*;

#[test]
fn drvinfo_by_offset() {
    let d = Drvinfo {
        driver: "igb".into(),
        version: "6.12.117".into(),
        fw_version: "3.25".into(),
        bus_info: "0000:03:00.0".into(),
    };
    let b = drvinfo_reply(&d);
    assert_eq!(
        (b.len(), &b[4..8], &b[36..39], &b[68..72], &b[100..104]),
        (196, &b"igb\0"[..], &b"6.1"[..], &b"3.25"[..], &b"0000"[..])
    );
    assert_eq!(drvinfo(&b).unwrap(), d);
    assert_eq!(drvinfo_request()[..4], 3u32.to_ne_bytes());
    assert!(drvinfo(&b[..195]).is_err());
    // A text without a terminating NUL fills its field.
    let mut full = b;
    full[4..36].fill(b'x');
    assert_eq!(drvinfo(&full).unwrap().driver.len(), 32);
}

#[test]
fn rss_is_requested_in_two_steps() {
    let state =
        Rxfh { context: 0, indir: (0..128).map(|i| i % 8).collect(), key: (0..40).collect(), hfunc: 1, input_xfrm: 2 };
    let ask = grssh_sizes_request(0);
    let sizes = grssh_sizes(&grssh_reply(&ask, &state).unwrap()).unwrap();
    assert_eq!(sizes, RxfhSizes { indir: 128, key: 40 });
    let ask = grssh_request(0, sizes);
    assert_eq!(ask.len(), 24 + 128 * 4 + 40);
    assert_eq!(grssh(&grssh_reply(&ask, &state).unwrap()).unwrap(), state);
}

#[test]
fn rss_by_offset() {
    let order = RssOrder { context: 7, table: TableOrder::Set(vec![1, 2]), key: vec![9], hfunc: 4, input_xfrm: 1 };
    let b = srssh(&order);
    let words: Vec<u32> = [0, 4, 8, 12, 24, 28].map(|at| word(&b, at).unwrap()).into();
    assert_eq!((words, &b[16..20], b[32], b.len()), (vec![0x47, 7, 2, 1, 1, 2], &[4, 1, 0, 0][..], 9, 33));
    let made = srssh_reply(&b, 3);
    assert_eq!((srssh_context(&made).unwrap(), made.len()), (3, 33));
    assert!(srssh_context(&[0; 7]).is_err());
    assert_eq!(word(&srssh(&RssOrder::table(TableOrder::Default)), 8), Some(0));
    assert_eq!(word(&srssh(&RssOrder::table(TableOrder::Keep)), 8), Some(u32::MAX));
}

#[test]
fn orders_go_round() {
    for table in [TableOrder::Keep, TableOrder::Default, TableOrder::Set(vec![0, 1, 2, 3])] {
        let order = RssOrder { context: 0, table, key: vec![1, 2, 3], hfunc: 2, input_xfrm: 1 };
        assert_eq!(srssh_decode(&srssh(&order)).unwrap(), order);
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let mut b = grssh_request(0, RxfhSizes { indir: 4, key: 4 });
    set_word(&mut b, 8, 5);
    assert!(grssh(&b).is_err());
    set_word(&mut b, 8, u32::MAX);
    assert!(grssh(&b).is_err() && grssh_sizes(&b).is_err());
    assert!(grssh(&[]).is_err() && grssh_sizes(&[0; 23]).is_err() && srssh_decode(&[255; 20]).is_err());
}

#[test]
fn hash_fields_by_offset() {
    let ask = grxfh_request("udp4").unwrap();
    assert_eq!((ask.len(), word(&ask, 0), word(&ask, 4)), (192, Some(0x29), Some(2)));
    assert_eq!(grxfh_flow(&ask).unwrap(), "udp4");
    let reply = grxfh_reply(&ask, "sdfn").unwrap();
    assert_eq!(reply[8..16], 0xf0u64.to_ne_bytes());
    assert_eq!(grxfh(&reply).unwrap(), "sdfn");
    assert_eq!(grxfh_request("tcp5"), None);
    let set = srxfh_request("gtpu6d", "sdfn").unwrap();
    assert_eq!((set.len(), word(&set, 0), word(&set, 4), word(&set, 8)), (192, Some(0x2a), Some(0x1e), Some(0xf0)));
    assert_eq!((grxfh_flow(&set).unwrap(), grxfh(&set).unwrap()), ("gtpu6d", "sdfn".to_string()));
    assert!(srxfh_request("tcp5", "sd").is_err() && srxfh_request("tcp4", "sx").is_err());
    assert!(grxfh(&reply[..15]).is_err() && grxfh_flow(&[0; 3]).is_err());
}

/// Both interfaces have the same flow types under the same names.
#[test]
fn flow_types_by_ioctl_and_by_netlink() {
    let mut ours: Vec<&str> = FLOW_TYPES.iter().map(|f| f.0).collect();
    let mut theirs = crate::ethtool_nl::ids::FLOWS.to_vec();
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
}

/// net/ethtool/ioctl.c, `ethtool_set_rxfh`: the key is read after a table of the device's size, not of the sent size.
#[test]
fn a_key_never_goes_with_the_default_table() {
    let order = RssOrder { context: 0, table: TableOrder::Default, key: vec![1, 2], hfunc: 4, input_xfrm: 1 };
    let calls = order.clone().calls();
    assert_eq!(calls[0], RssOrder { table: TableOrder::Keep, ..order.clone() });
    assert_eq!(calls[1], RssOrder { key: Vec::new(), hfunc: 0, ..order.clone() });
    assert_eq!(calls.len(), 2);
    let table = TableOrder::Set(vec![0, 1]);
    for one in [RssOrder { key: Vec::new(), ..order.clone() }, RssOrder { table, ..order }] {
        assert_eq!(one.clone().calls(), [one]);
    }
}
