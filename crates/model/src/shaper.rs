//! Rate limits inside a NIC, which the kernel's `net-shaper` family reports (since 6.13).

use serde::{Deserialize, Serialize};

/// What the kernel reports about the rate limits of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shapers {
    /// This kernel has no `net-shaper` family (before 6.13, or built without it), so it can set no such limit.
    NotInKernel,
    /// Every shaper that is set, in the order of their places. Empty: nothing is limited.
    Set(Vec<Shaper>),
}

/// One limit. A number that the kernel does not report is `None`: not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shaper {
    /// What it limits.
    pub place: ShaperPlace,
    /// The shaper above it. `None`: none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ShaperPlace>,
    /// Unit of the rates.
    pub unit: RateUnit,
    /// Guaranteed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<u64>,
    /// Largest rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<u64>,
    /// Largest burst, as the driver counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Priority among the shapers with the same parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Share among the shapers with the same parent and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

impl Shaper {
    /// A shaper in which nothing is set. Its unit has no meaning.
    pub fn unset(place: ShaperPlace) -> Self {
        Self {
            place,
            parent: None,
            unit: RateUnit::BitsPerSecond,
            min_rate: None,
            max_rate: None,
            burst: None,
            priority: None,
            weight: None,
        }
    }
}

/// What a shaper limits (`enum net_shaper_scope`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShaperPlace {
    /// The whole interface.
    Device,
    /// A transmit queue, by its number.
    Queue(u32),
    /// A group of queues or of other groups, by its number.
    Group(u32),
}

/// What a rate counts (`enum net_shaper_metric`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Bits per second.
    BitsPerSecond,
    /// Packets per second.
    PacketsPerSecond,
}

impl RateUnit {
    /// A rate in the largest unit in which it is a whole number: `100 Mb/s`, `1500 kb/s`, `7 b/s`, `900 packets/s`.
    pub fn text(self, rate: u64) -> String {
        match self {
            Self::PacketsPerSecond => format!("{rate} packets/s"),
            Self::BitsPerSecond if rate.is_multiple_of(1_000_000) => format!("{} Mb/s", rate / 1_000_000),
            Self::BitsPerSecond if rate.is_multiple_of(1000) => format!("{} kb/s", rate / 1000),
            Self::BitsPerSecond => format!("{rate} b/s"),
        }
    }

    /// Whether a rate is below the speed of a link. `None`: packets cannot be compared with bits.
    pub fn is_below(self, rate: u64, link_mbps: u32) -> Option<bool> {
        match self {
            Self::BitsPerSecond => Some(rate < u64::from(link_mbps) * 1_000_000),
            Self::PacketsPerSecond => None,
        }
    }
}

impl Shapers {
    /// Every shaper. Empty also where the kernel has none.
    pub fn list(&self) -> &[Shaper] {
        match self {
            Self::NotInKernel => &[],
            Self::Set(list) => list,
        }
    }

    /// The largest rate of a transmit queue by itself. `None`: its own shaper has none. Its group and the interface may
    /// have a limit that it shares with other queues.
    pub fn max_of_queue(&self, queue: u32) -> Option<(u64, RateUnit)> {
        let own = self.list().iter().find(|s| s.place == ShaperPlace::Queue(queue))?;
        own.max_rate.map(|rate| (rate, own.unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_the_limit_of_its_own_shaper() {
        let of = |place, max_rate| Shaper { max_rate, ..Shaper::unset(place) };
        let set = Shapers::Set(vec![
            of(ShaperPlace::Device, Some(5)),
            of(ShaperPlace::Queue(1), Some(3)),
            of(ShaperPlace::Queue(2), None),
            of(ShaperPlace::Group(0), Some(4)),
        ]);
        let found: Vec<_> = (0..3).map(|q| set.max_of_queue(q)).collect();
        assert_eq!(found, [None, Some((3, RateUnit::BitsPerSecond)), None]);
        assert_eq!((Shapers::NotInKernel.max_of_queue(1), Shapers::NotInKernel.list().len()), (None, 0));
        let rates = [100_000_000, 1_500_000, 7].map(|r| RateUnit::BitsPerSecond.text(r));
        assert_eq!(rates, ["100 Mb/s", "1500 kb/s", "7 b/s"]);
        assert_eq!(RateUnit::PacketsPerSecond.text(900), "900 packets/s");
        let below = |unit: RateUnit, rate| unit.is_below(rate, 100);
        assert_eq!(below(RateUnit::BitsPerSecond, 100_000_000), Some(false));
        assert_eq!(below(RateUnit::BitsPerSecond, 99_999_999), Some(true));
        assert_eq!(below(RateUnit::PacketsPerSecond, 1), None);
        let text = serde_json::to_string(&Shapers::Set(vec![of(ShaperPlace::Queue(1), Some(3))])).unwrap();
        assert_eq!(text, r#"{"set":[{"place":{"queue":1},"unit":"bits_per_second","max_rate":3}]}"#);
    }
}
