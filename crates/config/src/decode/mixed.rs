//! What `[host]` and the groups of interfaces say of latency and bulk groups against each other.

use super::{Ctx, Keys};
use crate::value::Config;

pub(crate) fn check(host: Option<Keys<'_, '_>>, config: &Config, cx: &mut Ctx<'_>) {
    let Some(host) = host else { return };
    let at = |said: &str, cx: &Ctx<'_>, key: &str| cx.line(said).or_else(|| host.at(key)).unwrap_or_default();
    for g in config.entries.iter().flat_map(|e| &e.groups) {
        if config.host.pair_as_article == Some(true) {
            let found =
                format!("pair_as_article makes groups of all queues itself, group \"{}\" is beside them", g.name);
            cx.fault(at(&g.said, cx, "pair_as_article"), found, "the group, or pair_as_article");
        }
    }
}
