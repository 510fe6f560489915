//! Features: FEATURES_SET. The kernel records the requested features and answers 0 even if they cannot be enabled, so the
//! features are read back.

use ringwise_kfmt::ethtool_nl as nl;
use ringwise_knob::{Address, Setting, features};
use ringwise_model::{Fact, Snapshot, Unread};
use ringwise_sys::{Error, Request};

use crate::error::NotWritten;
use crate::host_access::HostAccess;

/// Writes the feature. A request that is not met would stay recorded, and take effect some day when the obstacle is gone, so it
/// is withdrawn.
pub(crate) fn write(cx: &HostAccess, now: &Snapshot, dev: &str, name: &str, on: bool) -> Result<(), NotWritten> {
    wish(cx, dev, name, on)?;
    let of = |s: &Snapshot| s.nic(dev).and_then(|n| n.features.known()?.get(name)).copied();
    let mut then = now.clone();
    let address = Address::Feature { dev: dev.to_string(), name: name.to_string() };
    match cx.read(&mut then, &address) {
        Fact::Known(_) => {}
        Fact::Absent => return Err(NotWritten::Read(Unread::new(address.to_string(), None, "it does not exist now"))),
        Fact::Unknown(u) => return Err(NotWritten::Read(u)),
    }
    let (was, is) = (of(now), of(&then));
    if let (Some(was), Some(is)) = (was, is)
        && is.on != on
        && is.wanted != was.wanted
    {
        wish(cx, dev, name, was.wanted)?;
    }
    Ok(())
}

fn wish(cx: &HostAccess, dev: &str, name: &str, on: bool) -> ringwise_sys::Result<()> {
    let attrs =
        nl::features_set(&[(name, on)]).map_err(|e| Error::other(format!("features-set {dev}"), e.to_string()))?;
    cx.order(Request::EthtoolSet { cmd: nl::msg::FEATURES_SET, name: "features-set", dev: dev.to_string(), attrs })
}

/// Features of the same device that changed together with the written one, as sentences.
pub(crate) fn followed(before: &Snapshot, now: &Snapshot, written: &Setting) -> Vec<String> {
    let Setting::Feature { dev, name, .. } = written else { return Vec::new() };
    let of = |s: &Snapshot| s.nic(dev).map(|n| n.features.clone());
    let (Some(Fact::Known(a)), Some(Fact::Known(b))) = (of(before), of(now)) else { return Vec::new() };
    let moved = b.iter().filter(|(k, f)| *k != name && a.get(*k).is_some_and(|was| was.on != f.on));
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    moved.for_each(|(k, f)| if f.on { come.push(k.as_str()) } else { gone.push(k.as_str()) });
    let mut out = Vec::new();
    if !gone.is_empty() {
        out.push(format!("{dev}: changing {name} also turned off {}, until {name} is restored", gone.join(" ")));
    }
    if !come.is_empty() {
        out.push(format!("{dev}: changing {name} also turned on {}", come.join(" ")));
    }
    out
}

/// Why the feature is not as requested, if the reason is known.
pub(crate) fn meaning(setting: &Setting) -> Option<String> {
    match setting {
        Setting::Feature { on, .. } => Some(features::not_kept(*on).to_string()),
        _ => None,
    }
}
