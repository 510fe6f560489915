//! Ring parameters (`ethtool -G`): sizes in descriptors, length of receive buffers, header split.

use ringwise_model::errno::ERANGE;
use ringwise_model::{Count, Fact, Nic, RingKind, RingValues, Rings, Snapshot};

use crate::{Address, Descriptor, Family, Match, NotProjected, Reaction, Setting, known, nic};

pub(crate) struct RingsFamily;

impl Descriptor for RingsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        vec![Address::Rings { dev: nic.dev.name.clone() }]
    }

    fn label(&self, address: &Address) -> String {
        format!("{} rings", address.dev().unwrap_or_default())
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        address.dev().and_then(|d| s.nic(d)).map_or(Fact::Absent, live)
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::Rings { values, .. }, Setting::Rings { values: got, .. }) => compare(values, got),
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Rings { dev, values } => project(known(&mut nic(s, dev)?.rings)?, values),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        (errno == Some(ERANGE))
            .then_some((Reaction::Fail, "the value is above the largest one that the driver accepts (hds-thresh)"))
    }

    fn invalidates(&self, _: &Address) -> &'static [Family] {
        &[Family::Rivals, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi]
    }

    fn interrupts_traffic(&self, _: &Address) -> bool {
        true
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Rings { values, .. } => text(values),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Rings { dev, values } => Some(command(dev, values)),
            _ => None,
        }
    }
}

/// What the device has now. A parameter that the driver does not report is not part of the setting.
pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rings.as_ref().map(|r: &Rings| Setting::Rings { dev, values: r.now() })
}

/// Compares only the values that were requested. Drivers round sizes up (igb: multiples of 8, at least 64; vmxnet3:
/// multiples of 32; others: powers of two).
pub fn compare(want: &RingValues, got: &RingValues) -> Match {
    let each = want.iter().map(|(part, w)| match (part.kind, part.value(got)) {
        (_, Some(g)) if w == g => Match::Same,
        (RingKind::Mode, None) if w == 0 => Match::Same,
        (RingKind::Size, Some(g)) if g > w && g <= most(w) => Match::Adjusted,
        _ => Match::Differs,
    });
    each.max().unwrap_or(Match::Same)
}

/// Keeps the requested value: how far a driver rounds up differs by driver.
pub(crate) fn project(rings: &mut Rings, want: &RingValues) -> Result<(), NotProjected> {
    for (part, value) in want.iter() {
        let found = match part.kind {
            RingKind::Mode => (value != 0).then_some(Count { now: value, max: 0 }),
            _ => part.found(rings).map(|count| Count { now: value, ..count }),
        };
        part.store(rings, found);
    }
    Ok(())
}

/// The largest size that a driver may round up to.
pub fn most(want: u32) -> u32 {
    want.checked_next_power_of_two().unwrap_or(want).max(64)
}

/// The values with ethtool's names.
pub fn text(values: &RingValues) -> String {
    let all: Vec<String> = values.iter().map(|(part, n)| format!("{} {}", part.word, part.text(n))).collect();
    all.join(" ")
}

/// The `ethtool -G` command.
pub fn command(dev: &str, values: &RingValues) -> String {
    format!("ethtool -G {dev} {}", text(values))
}
