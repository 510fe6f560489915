//! Rules of the catalogue that ringwise does not judge, with the reasons.

/// A rule that ringwise deliberately does not judge.
pub struct UnjudgedRule {
    /// The id that it would have.
    pub id: &'static str,
    /// What it would be about.
    pub title: &'static str,
    /// Why it is not judged.
    pub why: &'static str,
}

const fn left(id: &'static str, title: &'static str, why: &'static str) -> UnjudgedRule {
    UnjudgedRule { id, title, why }
}

/// In the order of the catalogue.
pub const UNJUDGED_RULES: &[UnjudgedRule] = &[
    left(
        "D08",
        "transmit queue stops and wakes",
        "few drivers have the counters (tx-stop, tx-wake), and no document gives a limit for the rate",
    ),
    left(
        "Q24",
        "one flow uses a whole CPU",
        "needs sampled flows; queue counters do not distinguish one flow from many (Q23 reports what they show)",
    ),
    left(
        "Q29",
        "traffic that RSS cannot hash",
        "needs sampled packets, which check does not read: no counter of a device counts tunnels, ESP or PPPoE; \
         ringwise watch --per-flow DEV shows them and what helps",
    ),
    left("M12", "GRO in a packet rate test", "advice for a measurement, not a property of a host"),
    left(
        "M13",
        "UDP is forwarded packet by packet",
        "no counter shows how much forwarded traffic is UDP, so check would give the advice to every router",
    ),
    left(
        "H09",
        "CPUs throttled by heat",
        "the counters count since boot, so with a single sample check would report an old event forever",
    ),
    left("H15", "receive memory on the wrong node", "few drivers have such counters, and each uses its own names"),
    left(
        "H17",
        "audit rules for system calls",
        "reading audit rules needs a privileged socket that takes part in auditing",
    ),
    left(
        "H19",
        "transparent huge pages",
        "they do not affect packet processing, so ringwise must not change them for it",
    ),
    left(
        "F06",
        "many routes",
        "counting routes walks the whole table (fib_triestat), which is slow for a large table, and no setting would help",
    ),
];
