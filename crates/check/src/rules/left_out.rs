//! Rules of the catalogue that are not judged.

/// A rule that ringwise deliberately does not judge.
pub struct LeftOut {
    /// The id that it would have.
    pub id: &'static str,
    /// What it would be about.
    pub title: &'static str,
    /// Why it is not judged.
    pub why: &'static str,
}

const fn left(id: &'static str, title: &'static str, why: &'static str) -> LeftOut {
    LeftOut { id, title, why }
}

/// In the order of the catalogue.
pub const LEFT_OUT: &[LeftOut] = &[
    left(
        "D08",
        "transmit queue stops and wakes",
        "the counters (tx-stop, tx-wake) are told by few drivers, and no rate of them is known to be too high",
    ),
    left(
        "A05",
        "program on the sibling of an interrupt's CPU",
        "needs every thread's CPU twice (/proc/PID/task/TID/stat); reading them all costs more than the rest of the audit together",
    ),
    left(
        "Q24",
        "one flow takes a CPU",
        "needs sampled flows; the counters of queues cannot tell one flow from many (Q23 tells what they can)",
    ),
    left(
        "Q29",
        "traffic that RSS cannot hash",
        "needs sampled packets: no counter tells tunnels, ESP or PPPoE by device",
    ),
    left("M12", "GRO in a test of packet rates", "a remark for a measurement, not a state of a host"),
    left(
        "M13",
        "UDP is forwarded packet by packet",
        "no counter tells how much of what is forwarded is UDP; without it the advice would be given to every router",
    ),
    left(
        "H09",
        "CPUs run slower because of heat",
        "the counters are since boot; without two readings of them an old event would be told for ever",
    ),
    left("H14", "program far from the device", "needs every thread's CPU; see A05"),
    left(
        "H15",
        "receive memory of the wrong node",
        "the counters exist under a name of each driver's own, in few drivers",
    ),
    left(
        "H17",
        "audit rules for system calls",
        "the audit rules can only be asked by a socket that needs privileges and takes part in audit",
    ),
    left(
        "H19",
        "transparent huge pages",
        "they do not matter to the way of packets and must not be changed for it: there is nothing to find",
    ),
    left("H21", "real-time threads on interrupt CPUs", "needs the policy and the time of every thread; see A05"),
    left(
        "F06",
        "many routes",
        "counting them walks the whole table (fib_triestat), on the very hosts where it is large; and there is nothing to change about them",
    ),
];
