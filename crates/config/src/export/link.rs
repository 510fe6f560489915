//! systemd.link(5)

use std::fmt::{Display, Write as _};

use ringwise_model::{Intent, Knob, Nic, RingValues, Wish};

use super::{Exported, HEAD, devs, kernel_names, nic, of};

/// Files of systemd.link(5): rings, channels, moderation, offloads and pause frames.
pub fn link(i: &Intent, nics: &[Nic]) -> Exported {
    let mut out = Exported::beyond(i);
    for dev in devs(i) {
        let n = nic(nics, dev);
        let mut text = String::new();
        for w in of(i, dev) {
            lines(w, n, &mut text, &mut out);
        }
        let Some(n) = n.filter(|_| !text.is_empty()) else { continue };
        let found = match (&n.dev.permanent_mac, &n.dev.bus_address) {
            (Some(mac), _) => format!("PermanentMACAddress={mac}"),
            (None, Some(bus)) => format!("Path=*-{bus}*"),
            (None, None) => format!("OriginalName={dev}"),
        };
        // Only one .link file applies to a device, so names and addresses stay as in the distribution's file.
        let text = format!(
            "{HEAD}[Match]\n{found}\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\n\
             AlternativeNamesPolicy=database onboard slot path\nMACAddressPolicy=persistent\n{text}"
        );
        out.files.push((format!("60-ringwise-{dev}.link"), text));
    }
    out.leave_host(i);
    out
}

fn lines(w: &Wish, n: Option<&Nic>, text: &mut String, out: &mut Exported) {
    let mut line = |k: &str, v: &dyn Display| {
        let _ = writeln!(text, "{k}={v}");
    };
    match &w.knob {
        // systemd.link accepts no 0 here; where the other counts are set, 0 is implied.
        Knob::Channels { rx, tx, combined } if *combined != Some(0) => {
            for (k, v) in [("RxChannels", rx), ("TxChannels", tx), ("CombinedChannels", combined)] {
                v.iter().filter(|v| **v > 0).for_each(|v| line(k, v));
            }
        }
        Knob::Rings { values } => {
            let RingValues { rx, tx, .. } = out.ring_sizes(w, values);
            for (k, v) in [("RxBufferSize", rx), ("TxBufferSize", tx)] {
                v.iter().for_each(|v| line(k, v));
            }
        }
        Knob::Pause { autoneg, rx, tx } => {
            for (k, v) in [("AutoNegotiationFlowControl", autoneg), ("RxFlowControl", rx), ("TxFlowControl", tx)] {
                v.iter().for_each(|v| line(k, v));
            }
        }
        Knob::Coalesce { queues: None, params } => {
            for (p, v) in params {
                match parameter(p) {
                    Some(key) if key.starts_with("Use") => line(key, &(*v == 1)),
                    Some(key) if key.ends_with("Sec") => line(key, &format_args!("{v}us")),
                    Some(key) => line(key, v),
                    None => out.leave_out(w, &format!("coalesce.{p}")),
                }
            }
        }
        Knob::Feature { name, on } => {
            if matches!(name.as_str(), "tx" | "tx-checksumming") {
                return line("TransmitChecksumOffload", on);
            }
            let Some(names) = kernel_names(name, n) else { return out.leave(w) };
            for k in names {
                match feature(&k) {
                    Some(key) => line(key, on),
                    None => out.leave_out(w, &format!("feature {k}")),
                }
            }
        }
        _ => out.leave(w),
    }
}

pub(crate) fn parameter(p: &str) -> Option<&'static str> {
    Some(match p {
        "use-adaptive-rx" => "UseAdaptiveRxCoalesce",
        "use-adaptive-tx" => "UseAdaptiveTxCoalesce",
        "rx-usecs" => "RxCoalesceSec",
        "tx-usecs" => "TxCoalesceSec",
        "rx-max-frames" => "RxMaxCoalescedFrames",
        "tx-max-frames" => "TxMaxCoalescedFrames",
        "rx-usecs-irq" => "RxCoalesceIrqSec",
        "tx-usecs-irq" => "TxCoalesceIrqSec",
        "rx-max-frames-irq" => "RxMaxCoalescedIrqFrames",
        "tx-max-frames-irq" => "TxMaxCoalescedIrqFrames",
        "rx-usecs-low" => "RxCoalesceLowSec",
        "tx-usecs-low" => "TxCoalesceLowSec",
        "rx-max-frames-low" => "RxMaxCoalescedLowFrames",
        "tx-max-frames-low" => "TxMaxCoalescedLowFrames",
        "rx-usecs-high" => "RxCoalesceHighSec",
        "tx-usecs-high" => "TxCoalesceHighSec",
        "rx-max-frames-high" => "RxMaxCoalescedHighFrames",
        "tx-max-frames-high" => "TxMaxCoalescedHighFrames",
        "pkt-rate-low" => "CoalescePacketRateLow",
        "pkt-rate-high" => "CoalescePacketRateHigh",
        "stats-block-usecs" => "StatisticsBlockCoalesceSec",
        // The kernel has seconds here, systemd.link microseconds.
        _ => return None,
    })
}

pub(crate) fn feature(name: &str) -> Option<&'static str> {
    Some(match name {
        "rx-gro" => "GenericReceiveOffload",
        "rx-gro-hw" => "GenericReceiveOffloadHardware",
        "rx-lro" => "LargeReceiveOffload",
        "tx-generic-segmentation" => "GenericSegmentationOffload",
        "tx-tcp-segmentation" => "TCPSegmentationOffload",
        "tx-tcp6-segmentation" => "TCP6SegmentationOffload",
        "rx-checksum" => "ReceiveChecksumOffload",
        "rx-ntuple-filter" => "NTupleFilter",
        "rx-vlan-hw-parse" => "ReceiveVLANCTAGHardwareAcceleration",
        "tx-vlan-hw-insert" => "TransmitVLANCTAGHardwareAcceleration",
        "rx-vlan-filter" => "ReceiveVLANCTAGFilter",
        "tx-vlan-stag-hw-insert" => "TransmitVLANSTAGHardwareAcceleration",
        _ => return None,
    })
}
