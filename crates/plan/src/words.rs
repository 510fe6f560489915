//! Helpers for texts.

use ringwise_model::{ConfiguredBy, CpuId, CpuSet};

/// `FILE line 3, --set eth0.rings.rx=512`
pub(crate) fn places(by: &[ConfiguredBy]) -> String {
    by.iter().map(ConfiguredBy::to_string).collect::<Vec<_>>().join(", ")
}

/// `0,2,5-9`
pub(crate) fn list(queues: &[u32]) -> String {
    queues.iter().map(|q| CpuId(*q)).collect::<CpuSet>().to_string()
}

/// `0-7`
pub(crate) fn span(n: u32) -> String {
    match n {
        0 => "none".into(),
        1 => "0".into(),
        n => format!("0-{}", n - 1),
    }
}
