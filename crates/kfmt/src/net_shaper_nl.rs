//! Messages of the `net-shaper` generic netlink family (Documentation/netlink/specs/net_shaper.yaml, 6.13 and later):
//! rate limits of transmit queues, of groups of them, and of the whole device. net/shaper/shaper.c.

use ringwise_model::{IfIndex, RateUnit, Shaper, ShaperPlace};

use crate::ParseError;
use crate::nl::{Attrs, Builder, TooLong, attrs};

/// `NET_SHAPER_A_*`.
mod attr {
    pub(super) const HANDLE: u16 = 1;
    pub(super) const METRIC: u16 = 2;
    pub(super) const BW_MIN: u16 = 3;
    pub(super) const BW_MAX: u16 = 4;
    pub(super) const BURST: u16 = 5;
    pub(super) const PRIORITY: u16 = 6;
    pub(super) const WEIGHT: u16 = 7;
    pub(super) const IFINDEX: u16 = 8;
    pub(super) const PARENT: u16 = 9;
}

/// `NET_SHAPER_A_HANDLE_*`.
mod handle {
    pub(super) const SCOPE: u16 = 1;
    pub(super) const ID: u16 = 2;
}

const WHAT: &str = "net-shaper get reply";

/// Decodes one message of a `get` dump. `net_shaper_fill_one` omits each value that is 0, which means that it is not set,
/// and the unit where no rate is set.
pub fn shaper(reply: &[u8]) -> Result<Shaper, ParseError> {
    let in_reply = |e| ParseError { what: WHAT, ..e };
    let mut own = None;
    let mut unit = None;
    let mut out = Shaper::unset(ShaperPlace::Device);
    for attr in attrs(reply) {
        let a = attr.map_err(in_reply)?;
        let (rate, number) = (|| a.uint().map_err(in_reply), || a.u32().map_err(in_reply));
        match a.kind {
            attr::HANDLE => own = place(a.nested()).map_err(in_reply)?,
            attr::PARENT => out.parent = place(a.nested()).map_err(in_reply)?,
            attr::METRIC => {
                unit = Some(match number()? {
                    0 => RateUnit::BitsPerSecond,
                    1 => RateUnit::PacketsPerSecond,
                    n => return Err(ParseError::new(WHAT, format!("metric {n}"), "metric 0 (bps) or 1 (pps)")),
                });
            }
            attr::BW_MIN => out.min_rate = set(rate()?),
            attr::BW_MAX => out.max_rate = set(rate()?),
            attr::BURST => out.burst = set(rate()?),
            attr::PRIORITY => out.priority = Some(number()?).filter(|n| *n > 0),
            attr::WEIGHT => out.weight = Some(number()?).filter(|n| *n > 0),
            _ => {}
        }
    }
    // A unit without a rate means nothing.
    if [out.min_rate, out.max_rate, out.burst].iter().any(Option::is_some) {
        out.unit = unit.ok_or_else(|| ParseError::new(WHAT, "a rate without it", "metric of the rates"))?;
    }
    let place = own.ok_or_else(|| ParseError::new(WHAT, "a message without it", "handle of the shaper"))?;
    Ok(Shaper { place, ..out })
}

fn set(rate: u64) -> Option<u64> {
    Some(rate).filter(|r| *r > 0)
}

/// `None`: scope 0, which names no shaper.
fn place(nest: Attrs) -> Result<Option<ShaperPlace>, ParseError> {
    let (mut scope, mut id) = (0, None);
    for attr in nest {
        let a = attr?;
        match a.kind {
            handle::SCOPE => scope = a.u32()?,
            handle::ID => id = Some(a.u32()?),
            _ => {}
        }
    }
    let id = || id.ok_or_else(|| ParseError::new(WHAT, format!("scope {scope} without it"), "id of the handle"));
    Ok(Some(match scope {
        0 => return Ok(None),
        1 => ShaperPlace::Device,
        2 => ShaperPlace::Queue(id()?),
        3 => ShaperPlace::Group(id()?),
        n => return Err(ParseError::new(WHAT, format!("scope {n}"), "scope 1 (netdev), 2 (queue) or 3 (node)")),
    }))
}

fn handle_of(place: ShaperPlace) -> Builder {
    let mut b = Builder::new();
    match place {
        ShaperPlace::Device => b.u32(handle::SCOPE, 1),
        ShaperPlace::Queue(id) => b.u32(handle::SCOPE, 2).u32(handle::ID, id),
        ShaperPlace::Group(id) => b.u32(handle::SCOPE, 3).u32(handle::ID, id),
    };
    b
}

/// A `get` message as the kernel would send it, for simulated hosts.
pub fn shaper_reply(ifindex: IfIndex, s: &Shaper) -> Result<Vec<u8>, TooLong> {
    let mut b = Builder::new();
    b.u32(attr::IFINDEX, ifindex.0);
    if let Some(p) = s.parent {
        b.nested(attr::PARENT, &handle_of(p))?;
    }
    b.nested(attr::HANDLE, &handle_of(s.place))?;
    let rates = [(attr::BW_MIN, s.min_rate), (attr::BW_MAX, s.max_rate), (attr::BURST, s.burst)];
    if rates.iter().any(|(_, rate)| rate.is_some()) {
        b.u32(attr::METRIC, u32::from(s.unit == RateUnit::PacketsPerSecond));
    }
    for (kind, rate) in rates {
        match rate.map(|r| (r, u32::try_from(r))) {
            Some((_, Ok(small))) => b.u32(kind, small),
            Some((large, Err(_))) => b.u64(kind, large),
            None => continue,
        };
    }
    for (kind, n) in [(attr::PRIORITY, s.priority), (attr::WEIGHT, s.weight)] {
        if let Some(n) = n {
            b.u32(kind, n);
        }
    }
    Ok(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(place: ShaperPlace) -> Shaper {
        Shaper { max_rate: Some(100_000_000), ..Shaper::unset(place) }
    }

    /// As `net_shaper_fill_one` of net/shaper/shaper.c writes it for a queue below the device: 100 Mbit/s.
    #[test]
    fn bytes_of_the_kernel_are_a_limit_of_a_queue() {
        let bytes = b"\x08\0\x08\0\x03\0\0\0\
            \x0c\0\x09\x80\x08\0\x01\0\x01\0\0\0\
            \x14\0\x01\x80\x08\0\x01\0\x02\0\0\0\x08\0\x02\0\x05\0\0\0\
            \x08\0\x02\0\0\0\0\0\
            \x08\0\x04\0\x00\xe1\xf5\x05";
        let want = Shaper { parent: Some(ShaperPlace::Device), ..limit(ShaperPlace::Queue(5)) };
        assert_eq!(shaper(bytes).unwrap(), want);
        assert_eq!(shaper_reply(IfIndex(3), &want).unwrap(), bytes);
    }

    #[test]
    fn a_rate_without_its_unit_is_an_error() {
        let mut b = Builder::new();
        b.nested(attr::HANDLE, &handle_of(ShaperPlace::Queue(5))).unwrap().u32(attr::BW_MAX, 100);
        let e = shaper(&b.finish()).unwrap_err().to_string();
        assert!(e.contains("metric of the rates"), "{e}");
    }

    #[test]
    fn shapers_go_round() {
        let all = Shaper {
            unit: RateUnit::PacketsPerSecond,
            min_rate: Some(1),
            max_rate: Some(100_000_000_000),
            burst: Some(64_000),
            priority: Some(2),
            weight: Some(7),
            ..limit(ShaperPlace::Group(1))
        };
        for s in [
            all,
            limit(ShaperPlace::Device),
            Shaper { max_rate: None, weight: Some(3), ..limit(ShaperPlace::Queue(0)) },
        ] {
            assert_eq!(shaper(&shaper_reply(IfIndex(2), &s).unwrap()).unwrap(), s);
        }
    }

    #[test]
    fn what_is_missing_or_strange_is_an_error() {
        assert_eq!(shaper(&[]).unwrap_err().expected, "handle of the shaper");
        let with = |scope, id: Option<u32>, metric| {
            let (mut b, mut h) = (Builder::new(), Builder::new());
            h.u32(handle::SCOPE, scope);
            if let Some(id) = id {
                h.u32(handle::ID, id);
            }
            b.nested(attr::HANDLE, &h).unwrap().u32(attr::METRIC, metric).u32(attr::BW_MAX, 0);
            shaper(&b.finish())
        };
        assert_eq!(with(9, Some(1), 0).unwrap_err().found, "scope 9");
        assert_eq!(with(2, None, 0).unwrap_err().found, "scope 2 without it");
        assert_eq!(with(2, Some(1), 4).unwrap_err().found, "metric 4");
        assert_eq!(with(0, Some(1), 0).unwrap_err().found, "a message without it");
        let unlimited = with(2, Some(1), 1).unwrap();
        assert_eq!((unlimited.max_rate, unlimited.unit), (None, RateUnit::BitsPerSecond), "0: not limited");
    }
}
