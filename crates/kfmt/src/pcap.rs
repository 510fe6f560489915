//! Reads packet captures, pcap and pcapng, as a stream: no file is held in memory, and no packet is longer than
//! [`LONGEST`]. Written from the descriptions of the formats (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use crate::ParseError;

const WHAT: &str = "capture of packets";
/// tcpdump captures no more than this of a packet. Blocks of pcapng without a packet may be longer, and are skipped.
pub const LONGEST: usize = 262_144;
const MOST_INTERFACES: usize = 65_536;

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
/// Variants by Kuznetzov and others with longer record headers.
const MODIFIED: u32 = 0xa1b2_cd34;
const SECTION: u32 = 0x0a0d_0d0a;
const ORDER: u32 = 0x1a2b_3c4d;

/// What is at the beginning of the given bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PcapStep<'a> {
    /// At least this many bytes are needed, beginning with the same ones.
    Need(usize),
    /// This many bytes are consumed, which may be more than were given.
    Skip(u64),
    /// One packet.
    Packet {
        /// Consumed bytes.
        used: usize,
        /// `LINKTYPE_*`
        link: u32,
        /// Bytes captured, from the link-layer header on; at most `wire`.
        data: &'a [u8],
        /// Bytes on the wire.
        wire: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Pcap { big: bool, link: u32, modified: bool },
    Ng { big: bool },
}

/// Reads one file. The caller holds the bytes.
#[derive(Debug, Clone)]
pub struct Reader {
    kind: Kind,
    /// Link type and snap length of each interface of the section.
    interfaces: Vec<(u32, u32)>,
    packets: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self { kind: Kind::Start, interfaces: Vec::new(), packets: 0 }
    }
}

fn word(b: &[u8], at: usize, big: bool) -> u32 {
    let w = b.get(at..at + 4).and_then(|w| w.try_into().ok()).unwrap_or([0; 4]);
    if big { u32::from_be_bytes(w) } else { u32::from_le_bytes(w) }
}

fn half(b: &[u8], at: usize, big: bool) -> u32 {
    let w = b.get(at..at + 2).and_then(|w| w.try_into().ok()).unwrap_or([0; 2]);
    u32::from(if big { u16::from_be_bytes(w) } else { u16::from_le_bytes(w) })
}

impl Reader {
    /// A reader at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// `bytes`: the data after everything that was consumed so far. If the answer at the end of the file is `Need`, the
    /// capture is truncated, unless no byte is left.
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<PcapStep<'a>, ParseError> {
        match self.kind {
            Kind::Start => self.start(bytes),
            Kind::Pcap { big, link, modified } => self.record(bytes, big, link, modified),
            Kind::Ng { big } => self.block(bytes, big),
        }
    }

    fn bad(&self, found: impl Into<String>, expected: &'static str) -> ParseError {
        ParseError::new(
            WHAT,
            format!("{} (after {})", found.into(), ringwise_model::words::plural(self.packets as usize, "packet")),
            expected,
        )
    }

    fn start<'a>(&mut self, b: &'a [u8]) -> Result<PcapStep<'a>, ParseError> {
        if b.len() < 24 {
            return Ok(PcapStep::Need(24));
        }
        let magic = word(b, 0, false);
        if magic == SECTION {
            let order = word(b, 8, false);
            let big = order.swap_bytes() == ORDER;
            if !big && order != ORDER {
                return Err(self.bad(format!("byte order {order:#x}"), "0x1a2b3c4d in a pcapng section"));
            }
            self.kind = Kind::Ng { big };
            return self.block(b, big);
        }
        for big in [false, true] {
            let magic = word(b, 0, big);
            if [MICRO, NANO, MODIFIED].contains(&magic) {
                // The upper bits describe checksums at the end of frames.
                let link = word(b, 20, big) & 0x0fff_ffff;
                self.kind = Kind::Pcap { big, link, modified: magic == MODIFIED };
                return Ok(PcapStep::Skip(24));
            }
        }
        if b.starts_with(&[0x1f, 0x8b])
            || b.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
            || b.starts_with(&[0xfd, b'7', b'z'])
        {
            return Err(
                self.bad("a compressed file", "pcap or pcapng, uncompressed (or through a pipe: zcat FILE | ... -)")
            );
        }
        Err(self.bad(format!("first bytes {magic:#010x}"), "a pcap or pcapng file"))
    }

    fn record<'a>(&mut self, b: &'a [u8], big: bool, link: u32, modified: bool) -> Result<PcapStep<'a>, ParseError> {
        let head = if modified { 24 } else { 16 };
        if b.len() < head {
            return Ok(PcapStep::Need(head));
        }
        let (held, wire) = (word(b, 8, big) as usize, word(b, 12, big));
        if held > LONGEST {
            return Err(self.bad(format!("a packet of {held} bytes"), "at most 262144 bytes (the file is damaged)"));
        }
        let Some(data) = b.get(head..head + held) else { return Ok(PcapStep::Need(head + held)) };
        self.packets += 1;
        Ok(PcapStep::Packet { used: head + held, link, data, wire })
    }

    fn block<'a>(&mut self, b: &'a [u8], big: bool) -> Result<PcapStep<'a>, ParseError> {
        if b.len() < 12 {
            return Ok(PcapStep::Need(12));
        }
        let kind = word(b, 0, big);
        if word(b, 0, false) == SECTION {
            let order = word(b, 8, false);
            let big = match order {
                ORDER => false,
                o if o.swap_bytes() == ORDER => true,
                o => return Err(self.bad(format!("byte order {o:#x}"), "0x1a2b3c4d in a pcapng section")),
            };
            self.kind = Kind::Ng { big };
            self.interfaces.clear();
            return Ok(PcapStep::Skip(u64::from(self.size(b, big, 28)?)));
        }
        let size = self.size(b, big, 12)?;
        // Only blocks with packets, and those of interfaces, are parsed.
        if !matches!(kind, 1 | 2 | 3 | 6) {
            return Ok(PcapStep::Skip(u64::from(size)));
        }
        if size as usize > LONGEST + 65_536 {
            return Err(
                self.bad(format!("a block of {size} bytes"), "at most 262144 bytes for a packet (the file is damaged)")
            );
        }
        let size = size as usize;
        let Some(all) = b.get(..size) else { return Ok(PcapStep::Need(size)) };
        let (interface, held, wire, at) = match kind {
            1 => {
                if self.interfaces.len() >= MOST_INTERFACES || size < 20 {
                    return Err(self.bad(
                        "too many interfaces, or an interface that is cut short",
                        "a description of an interface",
                    ));
                }
                self.interfaces.push((half(all, 8, big), word(all, 12, big)));
                return Ok(PcapStep::Skip(size as u64));
            }
            // Enhanced, obsolete, simple.
            6 => (word(all, 8, big), word(all, 20, big), word(all, 24, big), 28),
            2 => (half(all, 8, big), word(all, 20, big), word(all, 24, big), 28),
            _ => {
                let wire = word(all, 8, big);
                let most = self.interfaces.first().map_or(0, |i| i.1);
                (0, if most == 0 { wire } else { wire.min(most) }, wire, 12)
            }
        };
        let Some((link, _)) = self.interfaces.get(interface as usize).copied() else {
            return Err(
                self.bad(format!("a packet of interface {interface}"), "an interface that was described before")
            );
        };
        let end = at + held as usize;
        // The last four bytes of the block are its length.
        let Some(data) = all.get(at..end).filter(|_| end + 4 <= size) else {
            return Err(
                self.bad(format!("{held} bytes of a packet in a block of {size}"), "a packet that fits in its block")
            );
        };
        self.packets += 1;
        Ok(PcapStep::Packet { used: size, link, data, wire })
    }

    fn size(&self, b: &[u8], big: bool, least: u32) -> Result<u32, ParseError> {
        let size = word(b, 4, big);
        if size < least || !size.is_multiple_of(4) {
            return Err(self
                .bad(format!("a block of {size} bytes"), "a multiple of four bytes, and no shorter than its header"));
        }
        Ok(size)
    }
}

#[cfg(test)]
#[path = "pcap_tests.rs"]
mod tests;
