//! Policies of interrupt moderation as data: the values for a group of queues, when they are useful, and the nearest
//! alternative if the driver moderates only the whole device.

use std::collections::BTreeMap;

use ringwise_model::{NapiValues, Policy};

/// The policy for messages whose sender waits, and the group of `mixed` that has it.
pub const LATENCY: &str = "latency";

/// The policy for streams on idle CPUs, and the group of `mixed` that has it, or [`CPU`].
pub const BULK: &str = "bulk";

/// The policy for streams on busy CPUs.
pub const CPU: &str = "cpu";

/// Source of the three values.
pub const SOURCE: &str = "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)";

/// Source of the NAPI equivalents: a device that interrupts at once is polled by a timer instead.
pub const NAPI_SOURCE: &str = "kernel documentation, networking/napi: software IRQ coalescing";

/// Name, microseconds between receive and between transmit interrupts, when the policy is useful.
const BUILT_IN: [(&str, u32, u32, &str); 3] = [
    (LATENCY, 5, 10, "Small messages whose sender waits for the answer; costs the most CPU time per packet."),
    (
        BULK,
        62,
        122,
        "Streams and packets of any size while the CPUs are lightly loaded: the highest throughput, with more interrupts.",
    ),
    (
        CPU,
        125,
        250,
        "Streams and packets of any size while the CPUs are busy: high throughput with the fewest interrupts, but higher latency.",
    ),
];

/// Below this value the timer of a deferral costs more than the saved interrupts, so nothing is deferred.
const WORTH_DEFERRING_USECS: u32 = 20;

/// Empty polls after which the interrupt is enabled again; the kernel's documentation and its selftests use 2 and more.
const DEFER_HARD_IRQS: u32 = 2;

/// The NAPI values nearest to `rx_usecs`: the timer polls as often as the interrupt would occur.
pub fn napi_of(rx_usecs: u32) -> NapiValues {
    let (defer, flush) = match rx_usecs {
        n if n < WORTH_DEFERRING_USECS => (0, 0),
        n => (DEFER_HARD_IRQS, u64::from(n) * 1000),
    };
    NapiValues { defer_hard_irqs: Some(defer), gro_flush_timeout_ns: Some(flush), ..NapiValues::default() }
}

/// `latency`, `bulk` and `cpu`. All of them switch adaptive moderation off: fixed values are ignored or refused while it
/// is on.
pub fn built_in() -> Vec<Policy> {
    let policy = |(name, rx, tx, when): (&str, u32, u32, &str)| Policy {
        name: name.into(),
        params: BTreeMap::from([
            ("use-adaptive-rx".to_string(), 0),
            ("use-adaptive-tx".to_string(), 0),
            ("rx-usecs".to_string(), rx),
            ("tx-usecs".to_string(), tx),
        ]),
        napi: napi_of(rx),
        when: when.into(),
    };
    BUILT_IN.into_iter().map(policy).collect()
}

/// Finds a policy by name, `own` ones first. Case is ignored.
pub fn find(name: &str, own: &[Policy]) -> Option<Policy> {
    let is = |p: &&Policy| p.name.eq_ignore_ascii_case(name);
    own.iter().find(is).cloned().or_else(|| built_in().into_iter().find(|p| is(&p)))
}

/// Names that [`find`] knows, own ones first, without duplicates.
pub fn names(own: &[Policy]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for p in own.iter().cloned().chain(built_in()) {
        if !out.iter().any(|n| n.eq_ignore_ascii_case(&p.name)) {
            out.push(p.name);
        }
    }
    out
}

/// A policy adapted to a driver that has only some of the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Parameters that can be requested.
    pub params: BTreeMap<String, u32>,
    /// Parameters that the driver lacks and that the policy sets to a value. A missing parameter that the policy only
    /// switches off is not included.
    pub missing: Vec<String>,
}

/// `have`: the parameters that the device, or the queue, reports.
pub fn fit(policy: &Policy, have: &BTreeMap<String, u32>) -> Fit {
    let (can, cannot): (BTreeMap<_, _>, BTreeMap<_, _>) =
        policy.params.iter().map(|(k, v)| (k.clone(), *v)).partition(|(k, _)| have.contains_key(k));
    let missing = cannot.into_iter().filter(|(k, v)| !(*v == 0 && k.starts_with("use-"))).map(|(k, _)| k).collect();
    Fit { params: can, missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_the_article() {
        for (name, rx, tx) in [("LATENCY", 5, 10), ("Bulk", 62, 122), ("cpu", 125, 250)] {
            let p = find(name, &[]).unwrap();
            assert_eq!((p.params["rx-usecs"], p.params["tx-usecs"]), (rx, tx));
            assert_eq!((p.params["use-adaptive-rx"], p.params["use-adaptive-tx"]), (0, 0));
            assert!(p.when.ends_with('.'));
        }
        assert!(find("fast", &[]).is_none());
    }

    #[test]
    fn an_own_policy_overrides_a_built_in_one() {
        let mut mine = find("bulk", &[]).unwrap();
        mine.params.insert("rx-usecs".into(), 80);
        let voice = Policy { name: "voice".into(), ..mine.clone() };
        let own = [mine, voice];
        assert_eq!(find("BULK", &own).unwrap().params["rx-usecs"], 80);
        assert_eq!(names(&own), ["bulk", "voice", "latency", "cpu"]);
    }

    #[test]
    fn deferral_as_often_as_the_interrupt_would_come() {
        assert_eq!(find("latency", &[]).unwrap().napi.defer_hard_irqs, Some(0));
        let cpu = find("cpu", &[]).unwrap().napi;
        assert_eq!((cpu.defer_hard_irqs, cpu.gro_flush_timeout_ns), (Some(2), Some(125_000)));
    }

    #[test]
    fn what_a_driver_has_and_lacks() {
        let p = find("latency", &[]).unwrap();
        let have = BTreeMap::from([("rx-usecs".to_string(), 50), ("use-adaptive-rx".to_string(), 1)]);
        let fit = fit(&p, &have);
        assert_eq!(fit.params.keys().collect::<Vec<_>>(), ["rx-usecs", "use-adaptive-rx"]);
        assert_eq!(fit.missing, ["tx-usecs"]);
    }
}
