//! Formats that only `check` reads: packet sockets, the PCI Express capability, first lines of long files.

use ringwise_model::{Eee, PacketSocket, PciControl};

use crate::ParseError;
use crate::nl::{Builder, attrs};

/// `/proc/net/packet`: `sk RefCnt Type Proto Iface R Rmem User Inode`, one line per socket.
pub fn packet_sockets(text: &str) -> Result<Vec<PacketSocket>, ParseError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let bad = || ParseError::at("/proc/net/packet", i + 1, line, "a protocol and an interface");
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let protocol = words.get(3).and_then(|w| u16::from_str_radix(w, 16).ok()).ok_or_else(bad)?;
        let ifindex = words.get(4).and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        out.push(PacketSocket { protocol, ifindex });
    }
    Ok(out)
}

/// PCI configuration space. `None`: no PCI Express capability in what was read (64 bytes without root).
pub fn pci_control(config: &[u8]) -> Option<PciControl> {
    let byte = |at: usize| config.get(at).copied();
    let word = |at: usize| Some(u32::from(byte(at)?) | u32::from(byte(at + 1)?) << 8);
    // Status: there is a list of capabilities.
    if word(6)? & 0x10 == 0 {
        return None;
    }
    let mut at = usize::from(byte(0x34)? & 0xfc);
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if byte(at)? == 0x10 {
            // DevCap, DevCtl, LnkCtl (linux/pci_regs.h).
            let (cap, control, link) = (word(at + 4)?, word(at + 8)?, word(at + 16)?);
            let size = |code: u32| 128 << code.min(5);
            return Some(PciControl {
                max_payload: size(control >> 5 & 7),
                max_payload_capable: size(cap & 7),
                max_read_request: size(control >> 12 & 7),
                aspm: link & 3 != 0,
            });
        }
        at = usize::from(byte(at + 1)? & 0xfc);
    }
    None
}

/// `ETHTOOL_MSG_EEE_GET` and its attributes (linux/ethtool_netlink.h).
pub const EEE_GET: u8 = 23;
const EEE_ACTIVE: u16 = 4;
const EEE_ENABLED: u16 = 5;
/// `ETHTOOL_A_RINGS_TCP_DATA_SPLIT`: 0 not reported, 1 off, 2 on.
const TCP_DATA_SPLIT: u16 = 11;

fn byte_of(reply: &[u8], kind: u16) -> Result<Option<u8>, ParseError> {
    for a in attrs(reply) {
        let a = a?;
        if a.kind == kind {
            return a.u8().map(Some);
        }
    }
    Ok(None)
}

/// Decodes an `EEE_GET` reply; an attribute that is missing counts as off.
pub fn eee(reply: &[u8]) -> Result<Eee, ParseError> {
    let on = |kind| byte_of(reply, kind).map(|b| b == Some(1));
    Ok(Eee { active: on(EEE_ACTIVE)?, enabled: on(EEE_ENABLED)? })
}

/// A reply with this content, for simulated hosts.
pub fn eee_reply(active: bool, enabled: bool) -> Vec<u8> {
    let mut b = Builder::new();
    b.u8(EEE_ACTIVE, active.into()).u8(EEE_ENABLED, enabled.into());
    b.finish()
}

/// The attribute of a RINGS_GET reply with this content, for simulated hosts.
pub fn tcp_data_split_reply(on: bool) -> Vec<u8> {
    let mut b = Builder::new();
    b.u8(TCP_DATA_SPLIT, if on { 2 } else { 1 });
    b.finish()
}

/// From a RINGS_GET reply. `None`: the driver does not report it.
pub fn tcp_data_split(reply: &[u8]) -> Result<Option<bool>, ParseError> {
    Ok(match byte_of(reply, TCP_DATA_SPLIT)? {
        Some(1) => Some(false),
        Some(2) => Some(true),
        _ => None,
    })
}

/// Flags of the first CPU in `/proc/cpuinfo`; `None` on machines that have no such line.
pub fn cpu_flags(text: &str) -> Option<&str> {
    let line = text.lines().find(|l| l.starts_with("flags") || l.starts_with("Features"))?;
    line.split_once(':').map(|(_, flags)| flags.trim())
}

/// Names of `/proc/modules`, in one line.
pub fn modules(text: &str) -> String {
    text.lines().filter_map(|l| l.split_ascii_whitespace().next()).collect::<Vec<_>>().join(" ")
}

/// Kilobytes of `MemTotal` in `/proc/meminfo`.
pub fn mem_total_kb(text: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_sockets_by_interface() {
        let head = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n";
        let one = "0000000000000000 3      3    0003   2     1 0      0      12345\n";
        let got = packet_sockets(&format!("{head}{one}")).unwrap();
        assert_eq!(got, [PacketSocket { protocol: 3, ifindex: 2 }]);
        assert_eq!(packet_sockets(head).unwrap(), []);
        assert!(packet_sockets(&format!("{head}x y\n")).is_err());
    }

    #[test]
    fn the_express_capability_behind_others() {
        let mut c = vec![0u8; 256];
        assert_eq!(pci_control(&c), None, "no list");
        c[6] = 0x10;
        c[0x34] = 0x40;
        (c[0x40], c[0x41]) = (0x01, 0x70);
        c[0x70] = 0x10;
        c[0x74] = 2; // capable of 512
        (c[0x78], c[0x79]) = (0x20, 0x20); // payload 256, read request 512
        c[0x80] = 2;
        let want = PciControl { max_payload: 256, max_payload_capable: 512, max_read_request: 512, aspm: true };
        assert_eq!(pci_control(&c), Some(want));
        assert_eq!(pci_control(&c[..64]), None, "not root");
        (c[0x41], c[0x40]) = (0x40, 1);
        assert_eq!(pci_control(&c), None, "a ring");
    }

    #[test]
    fn bytes_of_replies() {
        let mut b = crate::nl::Builder::new();
        b.u8(EEE_ACTIVE, 1);
        b.u8(EEE_ENABLED, 0);
        b.u8(TCP_DATA_SPLIT, 2);
        let reply = b.finish();
        assert_eq!(eee(&reply).unwrap(), Eee { enabled: false, active: true });
        assert_eq!(tcp_data_split(&reply).unwrap(), Some(true));
        assert_eq!(tcp_data_split(&[]).unwrap(), None);
    }

    #[test]
    fn first_lines() {
        assert_eq!(cpu_flags("processor: 0\nflags\t\t: fpu erms\n"), Some("fpu erms"));
        assert_eq!(modules("nf_tables 1 0 - Live 0x0\nigb 1 0 -\n"), "nf_tables igb");
        assert_eq!(mem_total_kb("MemTotal:       1024 kB\n"), Some(1024));
    }
}
