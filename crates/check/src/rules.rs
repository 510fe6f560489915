//! All rules, and those that were left out with the reason.

mod drops;
mod forward;
mod host;
mod irq;
mod left_out;
mod moderation;
mod rss;
mod soft;
mod steer;
mod text;

pub use left_out::{LEFT_OUT, LeftOut};
pub(crate) use rss::SYMMETRIC;

use crate::rule::Rule;

const ALL: [&[Rule]; 8] =
    [drops::RULES, irq::RULES, rss::RULES, steer::RULES, moderation::RULES, soft::RULES, host::RULES, forward::RULES];

/// Every rule, in the order in which they are judged.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.into_iter().flatten()
}

/// By its id, or by one that leads to the same page.
pub fn find(id: &str) -> Option<&'static Rule> {
    let same = |a: &str| a.eq_ignore_ascii_case(id);
    rules().find(|r| same(r.id)).or_else(|| rules().find(|r| r.also.iter().any(|a| same(a))))
}
