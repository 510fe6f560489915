use std::collections::HashMap;

use super::*;
use ringwise_model::{RingValues, Rings};

const HEADER_FILE: &str = "/usr/include/linux/ethtool_netlink.h";

/// Numbers of the anonymous enums of a header, counted as a C compiler does.
fn enums(text: &str) -> HashMap<String, u32> {
    let (mut out, mut next, mut inside, mut comment) = (HashMap::new(), 0, false, false);
    for line in text.lines() {
        let mut line = line.to_string();
        if comment {
            let Some(end) = line.find("*/") else { continue };
            line = line[end + 2..].to_string();
            comment = false;
        }
        while let Some(start) = line.find("/*") {
            match line[start..].find("*/") {
                Some(end) => line.replace_range(start..start + end + 2, ""),
                None => {
                    line.truncate(start);
                    comment = true;
                }
            }
        }
        let line = line.trim();
        if line.starts_with("enum") {
            (inside, next) = (true, 0);
        } else if line.starts_with('}') {
            inside = false;
        } else if inside {
            for item in line.split(',').map(str::trim).filter(|i| !i.is_empty()) {
                let (name, value) = item.split_once('=').map_or((item, None), |(n, v)| (n.trim(), Some(v.trim())));
                match value.map(str::parse) {
                    Some(Ok(v)) => next = v,
                    Some(Err(_)) => continue,
                    None => {}
                }
                out.insert(name.to_string(), next);
                next += 1;
            }
        }
    }
    out
}

#[test]
fn numbers_agree_with_the_installed_header() {
    let Ok(text) = std::fs::read_to_string(HEADER_FILE) else {
        return ringwise_testkit::skipped(
            "numbers_agree_with_the_installed_header",
            &format!("{HEADER_FILE} is not installed"),
        );
    };
    let known = enums(&text);
    let mut compared = 0;
    let mut compare = |name: String, ours: u32| match known.get(&name) {
        Some(&theirs) => {
            assert_eq!(ours, theirs, "{name}");
            compared += 1;
        }
        None => println!("{name}: newer than the installed header, not compared"),
    };
    for (name, id) in ids::COMMANDS {
        compare(format!("ETHTOOL_MSG_{name}"), u32::from(*id));
    }
    for (name, id) in ids::NOTIFICATIONS {
        compare(format!("ETHTOOL_MSG_{name}_NTF"), u32::from(*id));
    }
    for (name, id) in ids::ATTRIBUTES.iter().chain(rings::NAMES) {
        compare(format!("ETHTOOL_A_{name}"), u32::from(*id));
    }
    for (id, name, _) in coalesce::PARAMETERS {
        compare(format!("ETHTOOL_A_COALESCE_{}", name.to_uppercase().replace('-', "_")), u32::from(*id));
    }
    for (i, flow) in ids::FLOWS.iter().enumerate() {
        compare(format!("ETHTOOL_A_FLOW_{}", flow.to_uppercase().replace('-', "_")), i as u32 + 1);
    }
    assert!(compared > 70, "only {compared} numbers compared: is the header read right?");
}

#[test]
fn channels_of_igb_and_of_a_device_with_split_queues() {
    let igb = Channels {
        rx: None,
        tx: None,
        combined: Some(Count { now: 8, max: 8 }),
        other: Some(Count { now: 1, max: 1 }),
    };
    assert_eq!(channels(&channels_reply(&igb)).unwrap(), igb);
    let split = Channels { rx: Some(Count { now: 4, max: 16 }), tx: Some(Count { now: 2, max: 8 }), ..igb };
    assert_eq!(channels(&channels_reply(&split)).unwrap(), split);
    let none = channels(&[]).unwrap();
    assert_eq!((none.rx, none.combined), (None, None));
}

/// A reply that begins with the header nest, byte by byte as a little-endian kernel sends it.
#[test]
#[cfg(target_endian = "little")]
fn channels_reply_of_a_kernel() {
    let bytes = [
        24, 0, 1, 0x80, 8, 0, 1, 0, 2, 0, 0, 0, 9, 0, 2, 0, b'e', b't', b'h', b'0', 0, 0, 0, 0, // header
        8, 0, 5, 0, 8, 0, 0, 0, // combined max
        8, 0, 9, 0, 4, 0, 0, 0, // combined count
    ];
    assert_eq!(channels(&bytes).unwrap().combined, Some(Count { now: 4, max: 8 }));
}

#[test]
fn a_count_without_its_maximum_is_an_error() {
    let mut b = Builder::new();
    b.u32(ids::channels::RX_COUNT, 4);
    let e = channels(&b.finish()).unwrap_err();
    assert_eq!((e.what, e.expected), ("channels reply", "a current number together with its maximum"));
}

#[test]
fn sets_hold_only_what_changes() {
    let c = ChannelCounts { combined: Some(4), ..Default::default() };
    let bytes = channels_set(&c);
    assert_eq!(bytes.len(), 8);
    assert_eq!(channels_set_decode(&bytes).unwrap(), c);
    assert_eq!(
        rings_set_decode(&rings_set(&RingValues::sizes(Some(512), None))).unwrap(),
        RingValues::sizes(Some(512), None)
    );
    assert!(channels_set(&ChannelCounts::default()).is_empty());
}

#[test]
fn rings_pause_and_link_go_round() {
    let r = Rings::sizes(Some(Count { now: 256, max: 4096 }), None);
    assert_eq!(rings(&rings_reply(&r)).unwrap(), r);
    let p = Pause { autoneg: Some(true), rx: Some(false), tx: None };
    assert_eq!(pause(&pause_reply(&p)).unwrap(), p);
    assert_eq!(pause(&pause_set(&p)).unwrap(), p);
    let up = LinkModes { autoneg: Some(true), speed_mbps: Some(25_000), duplex: Some(Duplex::Full) };
    assert_eq!(linkmodes(&linkmodes_reply(&up)).unwrap(), up);
    let down = LinkModes { autoneg: Some(true), ..Default::default() };
    assert_eq!(linkmodes(&linkmodes_reply(&down)).unwrap(), down);
    assert_eq!(up.duplex.unwrap().to_string(), "full");
}

#[test]
fn pause_frames_stand_in_a_nest() {
    let mut nest = Builder::new();
    nest.u64(ids::pause::STAT_TX_FRAMES, 3).u64(ids::pause::STAT_RX_FRAMES, 1 << 40);
    nest.u64(ids::pause::STAT_TX_STORMS, 219);
    let mut b = Builder::new();
    b.u8(ids::pause::RX, 1).nested(ids::pause::STATS, &nest).unwrap();
    let want = PauseFrames { rx: Some(1 << 40), tx: Some(3), storms: Some(219) };
    assert_eq!(pause_frames(&b.finish()).unwrap(), want);
    assert_eq!(pause_frames(&[]).unwrap(), PauseFrames::default());
}

#[test]
fn the_request_header_names_the_device() {
    let bytes = request_header("eth0").unwrap();
    let outer = attrs(&bytes).next().unwrap().unwrap();
    assert_eq!(outer.kind, ids::HEADER);
    let inner: Vec<_> = outer.nested().map(Result::unwrap).collect();
    assert_eq!((inner[0].kind, inner[0].str().unwrap()), (ids::header::DEV_NAME, "eth0".to_string()));
}
