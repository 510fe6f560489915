//! Rules about PCI Express: lanes, speed, sizes of transfers, sleep states of the link.

use ringwise_model::{Goal, Pcie};

use super::host::is_guest;
use crate::finding_sink::FindingSink;
use crate::found::HostFound;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

/// Reports each PCI Express link with a property below what the device supports. `now_and_most` returns the negotiated
/// and the supported value, or `None` if the kernel does not report both.
fn reduced_links(
    cx: &RuleContext,
    say: &mut FindingSink,
    now_and_most: impl Fn(&Pcie) -> Option<(u32, u32)>,
    found: impl Fn(u32, u32) -> HostFound,
) -> Option<()> {
    if is_guest(cx) {
        return None;
    }
    cx.each(say, |n, say| {
        let p = say.get(&n.pcie)?;
        let (now, most) = now_and_most(p)?;
        if now < most {
            // The reduced link may still carry everything that the port can send.
            let fits = enough(p.now.mtps, p.now.lanes, n.link.speed_mbps.known().copied());
            say.found(found(now, most)).severity(if fits { Severity::Info } else { Severity::Error });
        }
        Some(())
    })
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "H01",
        title: "PCI Express link too narrow",
        reads: "current_link_width, max_link_width",
        guard: "not in a virtual machine",
        condition: "the link uses fewer lanes than the device has",
        confirm: "lspci -vv -s ADDRESS (LnkSta, LnkCap)",
        severity: Severity::Error,
        why: "The card is in a slot with fewer lanes, or some lanes are defective: the bandwidth is reduced by the same factor.",
        source: "kernel source, drivers/pci/pci.c: pcie_print_link_status",
        by_hand: &["reseat the card, or use another slot; dmesg shows what limits the link"],
        judge: |cx, say| {
            let lanes = |p: &Pcie| (p.now.lanes > 0 && p.max.lanes > 0).then_some((p.now.lanes, p.max.lanes));
            reduced_links(cx, say, lanes, |lanes, most| HostFound::FewLanes { lanes, most })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H02",
        title: "PCI Express link too slow",
        reads: "current_link_speed, max_link_speed",
        guard: "not in a virtual machine",
        condition: "the link is slower than the device supports",
        confirm: "lspci -vv -s ADDRESS (LnkSta, LnkCap), under load",
        severity: Severity::Error,
        why: "The slot or the training of the link limits the rate of each lane. Power management may lower the rate while there is no traffic.",
        source: "kernel source, drivers/pci/pci.c: pcie_print_link_status",
        by_hand: &["check again under load; then check slot, riser and firmware settings"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            let rate = |p: &Pcie| p.now.mtps.zip(p.max.mtps);
            reduced_links(cx, say, rate, |mtps, most_mtps| HostFound::SlowLanes { mtps, most_mtps })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H03",
        title: "PCI Express link too slow for the ports",
        reads: "current link of the bus, speed of all ports of the device",
        guard: "not in a virtual machine",
        condition: "80 % of the link's data rate is less than the combined speed of all ports of the card",
        confirm: "lspci -vv -s ADDRESS (LnkSta); ethtool DEV (Speed) of each port",
        why: "The ports together can receive more at full rate than the slot can carry.",
        source: "PCI Express base specification: encoding and overhead",
        by_hand: &["use a slot with more lanes or of a later generation, or use fewer ports"],
        under: &["H01", "H02"],
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let p = say.get(&n.pcie)?;
                let (mtps, lanes) = (p.now.mtps?, p.now.lanes);
                let card = |a: &str| a.rsplit_once('.').map(|(c, _)| c.to_string());
                let mine = card(n.dev.bus_address.as_deref()?)?;
                let ports: Vec<_> =
                    cx.s.tunable()
                        .filter(|o| o.dev.bus_address.as_deref().and_then(card).as_deref() == Some(&mine))
                        .filter_map(|o| o.link.speed_mbps.known().copied())
                        .collect();
                let need: u64 = ports.iter().map(|s| u64::from(*s)).sum();
                let have = u64::from(mtps) * u64::from(lanes) * encoding(mtps) / 100 * 8 / 10;
                if need > have && lanes > 0 {
                    say.found(HostFound::LinkTooNarrow {
                        mtps,
                        lanes,
                        carries_mbps: have,
                        ports: ports.len() as u32,
                        needs_mbps: need,
                    });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H04",
        title: "small PCI Express payload",
        reads: "configuration space: DevCap, DevCtl",
        guard: "not in a virtual machine; a port of 10 Gbit/s or more; needs root",
        condition: "MaxPayload is 128 bytes, although the device supports more",
        confirm: "lspci -vv -s ADDRESS (DevCap, DevCtl: MaxPayload)",
        severity: Severity::Info,
        why: "Small payloads need more headers for the same data. The device with the smallest limit on the path to the CPU determines the size.",
        source: "kernel parameters: pci=pcie_bus_perf",
        by_hand: &[
            "boot with pci=pcie_bus_perf, with care: every device below the same root port must support the value",
        ],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                if n.link.speed_mbps.known().is_none_or(|s| *s < 10_000) {
                    return None;
                }
                if c.max_payload == 128 && c.max_payload_capable > 128 {
                    say.found(HostFound::SmallPayload { bytes: c.max_payload, most: c.max_payload_capable });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H05",
        title: "small PCI Express read requests",
        reads: "configuration space: DevCtl",
        guard: "not in a virtual machine; a port of 10 Gbit/s or more; needs root",
        condition: "MaxReadReq is below 512 bytes, or below 4096 bytes on a port of 100 Gbit/s or more",
        confirm: "lspci -vv -s ADDRESS (DevCtl: MaxReadReq)",
        severity: Severity::Info,
        why: "The device reads packets to send from memory in requests of at most this size, and can only have a limited number of requests in flight.",
        source: "Ubuntu wiki, FirmwareTestSuite: maxreadreq",
        by_hand: &[
            "change the setting in the firmware, or write DevCtl with setpci (read it first: the register has other fields too)",
        ],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                let speed = *n.link.speed_mbps.known()?;
                if speed < 10_000 {
                    return None;
                }
                let least = if speed >= 100_000 { 4096 } else { 512 };
                if c.max_read_request < least {
                    say.found(HostFound::SmallReadRequests { bytes: c.max_read_request, mbps: speed });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H06",
        title: "PCI Express link may sleep",
        reads: "policy of pcie_aspm, LnkCtl",
        guard: "the goal is latency; not in a virtual machine",
        condition: "ASPM is on for the link, and its policy is not performance",
        confirm: "lspci -vv -s ADDRESS (LnkCtl: ASPM); cat /sys/module/pcie_aspm/parameters/policy",
        why: "A sleeping link takes microseconds to wake up, and the packet waits.",
        source: "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)",
        by_hand: &["echo performance > /sys/module/pcie_aspm/parameters/policy"],
        judge: |cx, say| {
            if cx.goal() != Goal::Latency || is_guest(cx) {
                return None;
            }
            let policy = cx.s.host.power.as_ref().and_then(|p| p.aspm.known().cloned());
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                if c.aspm && policy.as_deref() != Some("performance") {
                    say.found(HostFound::LinkMaySleep { policy: policy.clone() });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
];

/// The share of the raw rate that carries data, in per cent: 8b/10b up to 5 GT/s, 128b/130b above.
fn encoding(mtps: u32) -> u64 {
    if mtps <= 5000 { 80 } else { 98 }
}

/// Whether the lanes can carry one port at full rate; false if the rates are unknown.
fn enough(mtps: Option<u32>, lanes: u32, speed: Option<u32>) -> bool {
    let (Some(m), Some(s)) = (mtps, speed) else { return false };
    u64::from(s) <= u64::from(m) * u64::from(lanes) * encoding(m) / 100 * 8 / 10
}
