use super::*;

const CHANNELS: &str = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\n\
                        Combined:\t8\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t4\n";

#[test]
fn channels_of_both_forms() {
    let c = channels(CHANNELS).unwrap();
    assert_eq!((c.combined, c.other), (Some(Count { now: 4, max: 8 }), Some(Count { now: 1, max: 1 })));
    assert_eq!((c.rx, c.tx), (None, None));
    // The ioctl format prints 0 for what does not exist.
    assert_eq!(channels(&CHANNELS.replace("n/a", "0")).unwrap(), c);
    for cut in [10, 60, 120] {
        assert!(channels(&CHANNELS[..cut]).is_err(), "{cut}");
    }
    assert!(channels(&CHANNELS.replace("\t4", "\t4x")).is_err());
    assert!(channels("").is_err());
}

#[test]
fn rings_and_the_split() {
    let text = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t\t4096\nRX Mini:\t\tn/a\nRX Jumbo:\t\tn/a\n\
                TX:\t\t\t4096\nTX push buff len:\tn/a\nCurrent hardware settings:\nRX:\t\t\t256\nRX Mini:\t\tn/a\n\
                RX Jumbo:\t\tn/a\nTX:\t\t\t512\nRX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\t\toff\n\
                RX Push:\t\toff\nTX push buff len:\tn/a\nTCP data split:\tn/a\n";
    let (r, split) = rings(text).unwrap();
    assert_eq!((r.rx, r.tx), (Some(Count { now: 256, max: 4096 }), Some(Count { now: 512, max: 4096 })));
    assert_eq!(split, None);
    assert_eq!(rings(&text.replace("split:\tn/a", "split:\toff")).unwrap().1, Some(false));
}

#[test]
fn moderation_of_both_forms() {
    let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs:\tn/a\n\
                sample-interval:\tn/a\n\nrx-usecs:\t0\nrx-frames:\t16\nrx-usecs-irq:\tn/a\nrx-frames-irq:\tn/a\n\n\
                tx-usecs:\t3\n\nrx-frame-low:\t7\n\ntx-frame-high:\tn/a\n\nCQE mode RX: n/a  TX: on\n";
    let c = coalesce(text).unwrap().0;
    let want = [
        ("rx-max-frames", 16),
        ("rx-max-frames-low", 7),
        ("rx-usecs", 0),
        ("tx-usecs", 3),
        ("use-adaptive-rx", 0),
        ("use-cqe-mode-tx", 1),
    ];
    assert_eq!(c.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(), want);
    // Without an n/a, 0 and off may mean "does not have it".
    let old = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: off\nrx-usecs: 3\nrx-frames: 0\ntx-usecs: 0\n\ntx-frame-high: 0\n";
    let c = coalesce(old).unwrap().0;
    assert_eq!(c.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(), [("rx-usecs", 3), ("use-adaptive-rx", 1)]);
    assert!(coalesce(&text[..text.len() / 2]).is_err(), "cut short");
    assert!(coalesce("").is_err() && coalesce("Coalesce parameters for eth0:\nrx-usecs: many\n").is_err());
}

#[test]
fn features_by_the_names_of_the_kernel() {
    let text = "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                \ttx-checksum-ip-generic: on\nscatter-gather: on\n\ttx-scatter-gather: on\n\
                tcp-segmentation-offload: off\n\ttx-tcp-segmentation: off [requested on]\n\
                generic-receive-offload: on\nlarge-receive-offload: off [fixed]\nntuple-filters: off\n\
                rx-gro-hw: off [requested on]\nhsr-dup-offload: on [requested off]\n";
    let f = features(text).unwrap();
    let names: Vec<&str> = f.keys().map(String::as_str).collect();
    let want = [
        "hsr-dup-offload",
        "rx-checksum",
        "rx-gro",
        "rx-gro-hw",
        "rx-lro",
        "rx-ntuple-filter",
        "tx-checksum-ip-generic",
        "tx-checksum-ipv4",
        "tx-scatter-gather",
        "tx-tcp-segmentation",
    ];
    assert_eq!(names, want);
    assert_eq!(f["rx-lro"], Feature { on: false, wanted: false, fixed: true });
    assert_eq!(f["rx-gro-hw"], Feature { on: false, wanted: true, fixed: false });
    assert_eq!(f["hsr-dup-offload"], Feature { on: true, wanted: false, fixed: false });
    assert!(features("Features for eth0:\nx: perhaps\n").is_err() && features("").is_err());
}

#[test]
fn the_rest() {
    let p = pause("Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\n").unwrap();
    assert_eq!((p.autoneg, p.rx, p.tx), (Some(true), Some(false), Some(true)));
    let d = drvinfo(
        "driver: igb\nversion: 6.12.0\nfirmware-version: 3.25, 0x800005cc\nexpansion-rom-version: \n\
         bus-info: 0000:01:00.0\nsupports-statistics: yes\n",
    )
    .unwrap();
    assert_eq!(
        (d.driver.as_str(), d.fw_version.as_str(), d.bus_info.as_str()),
        ("igb", "3.25, 0x800005cc", "0000:01:00.0")
    );
    let flags = private_flags("Private flags for eth0:\nlegacy-rx       : off\nlink-down-on-close: on\n").unwrap();
    assert_eq!(
        flags.into_iter().collect::<Vec<_>>(),
        [("legacy-rx".into(), false), ("link-down-on-close".into(), true)]
    );
    assert_eq!(permanent_mac("Permanent address: 52:54:00:AA:00:01\n").as_deref(), Some("52:54:00:aa:00:01"));
    assert_eq!(permanent_mac("Permanent address: not set\n"), None);
    assert_eq!(permanent_mac("Permanent address: 00:00:00:00:00:00\n"), None);
    assert_eq!(eee("EEE settings for eth0:\n\tEEE status: enabled - inactive\n"), Ok((false, true)));
    let l = link("Settings for eth0:\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n");
    assert_eq!(l, LinkText { speed_mbps: Some(Some(10_000)), duplex: Some("full"), carrier: Some(true) });
    let l = link("Settings for eth0:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: no (No cable)\n");
    assert_eq!(l, LinkText { speed_mbps: Some(None), duplex: Some("unknown"), carrier: Some(false) });
    assert_eq!(link("Settings for eth0:\nNo data available\n"), LinkText::default());
}

#[test]
fn refusals_are_the_errno_that_was() {
    assert_eq!(refused("netlink error: Operation not supported\n"), Some(95));
    assert_eq!(refused("Cannot get device channel parameters\n: Operation not supported\n"), Some(95));
    assert_eq!(refused("Cannot get EEE settings: Operation not supported\n"), Some(95));
    assert_eq!(refused("netlink error: No such device\n"), Some(19));
    assert_eq!(refused(CHANNELS), None);
    assert_eq!(refused("ethtool: command not found\n"), None);
    assert_eq!(refused(""), None);
}
