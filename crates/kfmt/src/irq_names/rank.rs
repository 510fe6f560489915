//! Forms whose number is not that of the queue but grows with it: the queue is the rank of the name among the names of
//! the device.

use super::table::{PATTERNS, Pattern, QueueDirection, RankScope, Serves};
use super::{NameContext, shape};

/// The numbers in a device's names of these forms, for [`NameContext::ranked`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankedNumbers(Vec<(&'static str, u32)>);

impl RankedNumbers {
    /// From the names of all vectors of the device. If some are missing, the ranks are wrong.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>, ctx: &NameContext) -> Self {
        let own =
            |p: &&Pattern| matches!(p.serves, Serves::Ranked(..)) && ctx.driver.is_some_and(|d| p.drivers.contains(&d));
        let forms: Vec<&Pattern> = PATTERNS.iter().filter(own).collect();
        if forms.is_empty() {
            return Self::default();
        }
        let number =
            |name: &str| forms.iter().find_map(|p| shape::matches(p.shape, name.trim(), ctx)?.n.map(|n| (p.shape, n)));
        Self(names.into_iter().filter_map(number).collect())
    }

    /// `None` if two names have the number, or if there are fewer names than queues: then a vector serves several
    /// queues, or a name is missing.
    pub(super) fn rank(&self, p: &Pattern, n: u32, ctx: &NameContext) -> Option<u32> {
        let Serves::Ranked(direction, among) = p.serves else { return None };
        let pool =
            || self.0.iter().filter(|(shape, _)| among == RankScope::Driver || *shape == p.shape).map(|(_, n)| *n);
        let queues = match (direction, among) {
            (QueueDirection::Rx, RankScope::Form) => ctx.rx_queues?,
            (QueueDirection::Tx, RankScope::Form) => ctx.tx_queues?,
            _ => ctx.rx_queues?.max(ctx.tx_queues?),
        };
        let alone = pool().filter(|other| *other == n).count() == 1;
        let enough = pool().count() >= queues as usize;
        (alone && enough).then(|| pool().filter(|other| *other < n).count() as u32)
    }
}
