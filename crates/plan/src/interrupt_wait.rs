//! How long a received packet may wait for its interrupt, with the planned moderation.

use ringwise_knob::{Address, Setting, coalesce};

use crate::Expected;
use crate::dev::Dev;
use crate::entries::PlannedSetting;
use crate::moderation::driver;

const WORTH: &str = "longer intervals need less CPU time";

/// Adaptive moderation starts with intervals up to this one (lib/dim/net_dim.c: 1 and 8 us, or 2, 8 and 16 us), so a longer fixed
/// interval counts as a cost.
const SHORT_USECS: u32 = 20;

/// One number for each interface with another fixed interval. `before` is `None` where the interval is adaptive now.
pub(crate) fn expected(devs: &[Dev], entries: &[PlannedSetting]) -> Vec<Expected> {
    let change = |(address, to, step): &PlannedSetting| {
        let (Address::Coalesce { dev }, Setting::Coalesce { params, .. }) = (address, to) else { return None };
        let d = devs.iter().find(|d| d.name() == dev)?;
        let from = step.as_ref()?.from.known()?;
        let Setting::Coalesce { params: has, .. } = from else { return None };
        let after = *params.get("rx-usecs")?;
        const SWITCH: &str = "use-adaptive-rx";
        let is_adaptive = |flag: Option<&u32>, usecs: u32| flag.is_some_and(|f| *f != 0) || is_own_mode(d, usecs);
        if is_adaptive(params.get(SWITCH).or(has.get(SWITCH)), after) {
            return None;
        }
        let now = *has.get("rx-usecs")?;
        let before = (!is_adaptive(has.get(SWITCH), now)).then_some(now);
        (before != Some(after)).then(|| of(dev, before, after))
    };
    entries.iter().filter_map(change).collect()
}

fn of(dev: &str, before: Option<u32>, after: u32) -> Expected {
    let costs = before.map_or(after > SHORT_USECS, |b| after > b);
    let now = before.map_or("; the interval is adaptive now".into(), |b| format!(" instead of {b} us"));
    let text = format!("received packets of {dev} wait up to {after} us for an interrupt{now}");
    Expected {
        dev: Some(dev.to_string()),
        text: if costs { format!("{text}: {WORTH}") } else { text },
        before: before.map(f64::from),
        after: Some(f64::from(after)),
        unit: "microseconds".into(),
        worth: costs.then(|| WORTH.to_string()),
    }
}

/// Whether the driver takes this value of `rx-usecs` for a mode in which it selects the interval itself.
fn is_own_mode(d: &Dev, usecs: u32) -> bool {
    coalesce::own_mode(driver(d.nic), usecs) == Some(usecs)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_longer_wait_is_a_cost() {
        let is = |before, after| (of("eth0", before, after).text, of("eth0", before, after).worth.is_some());
        let text = |t: &str| format!("received packets of eth0 wait up to {t}");
        assert_eq!(
            is(Some(10), 62),
            (text("62 us for an interrupt instead of 10 us: longer intervals need less CPU time"), true)
        );
        assert_eq!(is(Some(62), 10), (text("10 us for an interrupt instead of 62 us"), false));
        assert_eq!(is(None, 10), (text("10 us for an interrupt; the interval is adaptive now"), false));
        assert_eq!(
            is(None, 62),
            (text("62 us for an interrupt; the interval is adaptive now: longer intervals need less CPU time"), true)
        );
    }
}
