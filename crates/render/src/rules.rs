//! Flow steering rules of a device.

use ringwise_knob::features::NTUPLE;
use ringwise_knob::rules::text;
use ringwise_model::{Fact, Nic};

use super::facts::silent;
use ringwise_text::Style;
use ringwise_text::{hang, pad};

/// The number of rules that `-v` prints; the JSON has all of them.
const MOST: usize = 256;

/// `2 in 64 locations, ntuple on`. `None`: nothing is known about rules.
pub(crate) fn line(n: &Nic) -> Option<String> {
    let ntuple = n.features.known().and_then(|all| all.get(NTUPLE));
    let all = match &n.rules {
        f if silent(f) => return None,
        Fact::Known(r) => r,
        Fact::Absent => return Some("none: not supported by the driver".into()),
        Fact::Unknown(u) => return Some(format!("unknown ({})", u.why)),
    };
    let feature = match ntuple {
        Some(f) if f.on => ", ntuple on",
        Some(f) if f.fixed => ", ntuple off (fixed)",
        Some(_) => ", ntuple off",
        None => "",
    };
    let count = match all.rules.len() {
        0 => "none".to_string(),
        n => n.to_string(),
    };
    let places = match all.capacity {
        0 => String::new(),
        n => format!(" in {n} locations"),
    };
    let chosen = if all.chooses_location { ", the driver chooses the location" } else { "" };
    Some(format!("{count}{places}{feature}{chosen}"))
}

/// With `-v`: each rule with its location.
pub(crate) fn list(n: &Nic, style: &Style) -> String {
    let Some(all) = n.rules.known() else { return String::new() };
    let mut out = String::new();
    for (i, (at, rule)) in all.rules.iter().take(MOST).enumerate() {
        let name = if i == 0 { "flow rules" } else { "" };
        out += &hang(&pad(name, 13), &format!("{at}: {}", text(rule)), style.width);
    }
    if all.rules.len() > MOST {
        out += &hang(&pad("", 13), &format!("and {} more (show -j)", all.rules.len() - MOST), style.width);
    }
    out
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::sim::build;

    use super::*;

    #[test]
    fn what_there_is() {
        let words = "tcp4 src-ip 10.0.0.0/8 dst-port 443 action 2";
        let (rule, _) = ringwise_kfmt::rule::parse_rule(words).unwrap();
        let s = build::host(4, 1).mqnic("mq0", 0, 4).virtio("eth1", 0, 2).done();
        let mut n = s.nics[0].clone();
        assert_eq!(line(&n).unwrap(), "none in 64 locations, ntuple off");
        if let Fact::Known(all) = &mut n.rules {
            all.rules.insert(7, rule);
            all.chooses_location = true;
        }
        assert_eq!(line(&n).unwrap(), "1 in 64 locations, ntuple off, the driver chooses the location");
        let listed = list(&n, &Style::plain(Some(100)));
        assert_eq!(listed, "flow rules   7: tcp4 dst-port 443 src-ip 10.0.0.0 m 0.255.255.255 action 2\n");
        assert_eq!(line(&s.nics[1]).unwrap(), "none: not supported by the driver");
        n.rules = ringwise_model::not_requested();
        assert_eq!(line(&n), None);
    }
}
