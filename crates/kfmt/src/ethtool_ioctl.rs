//! Structs of the ethtool ioctl (`SIOCETHTOOL`): the whole struct as bytes in host order, before and after the call.
//! Offsets are those of linux/ethtool.h on every 64- and 32-bit architecture for which ringwise is built.

pub mod fields;
pub mod perqueue;
pub mod rxnfc;

use crate::ParseError;

/// `ETHTOOL_GDRVINFO` and so on: the number is in the first word of every struct.
pub(crate) mod cmd {
    pub(crate) const GDRVINFO: u32 = 0x03;
    pub(crate) const GRXFH: u32 = 0x29;
    pub(crate) const SRXFH: u32 = 0x2a;
    pub(crate) const GRSSH: u32 = 0x46;
    pub(crate) const SRSSH: u32 = 0x47;
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_ne_bytes)
}

fn set_word(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn short(what: &'static str, bytes: &[u8], expected: &'static str) -> ParseError {
    ParseError::new(what, format!("{} bytes", bytes.len()), expected)
}

/// `struct ethtool_drvinfo`: cmd 0, driver 4, version 36, fw_version 68, bus_info 100, 32 bytes each;
/// erom_version 132, n_priv_flags 176, regdump_len 192.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drvinfo {
    /// Name of the kernel driver (`ixgbe`, `virtio_net`).
    pub driver: String,
    /// Version of the driver; most drivers report the kernel release.
    pub version: String,
    /// Version of the firmware in the driver's own format; empty if it is not reported.
    pub fw_version: String,
    /// PCI address, `virtio1`'s PCI function, or empty.
    pub bus_info: String,
}

/// `sizeof(struct ethtool_drvinfo)`.
pub const DRVINFO_SIZE: usize = 196;
const DRVINFO_TEXTS: [usize; 4] = [4, 36, 68, 100];
const DRVINFO_TEXT: usize = 32;

/// Payload of an `ETHTOOL_GDRVINFO`: [`DRVINFO_SIZE`] bytes, zero after the command.
pub fn drvinfo_request() -> Vec<u8> {
    let mut b = vec![0; DRVINFO_SIZE];
    set_word(&mut b, 0, cmd::GDRVINFO);
    b
}

/// Decodes the answer to [`drvinfo_request`]. A reply that is too short is an error.
pub fn drvinfo(reply: &[u8]) -> Result<Drvinfo, ParseError> {
    if reply.len() < DRVINFO_SIZE {
        return Err(short("ethtool_drvinfo", reply, "196 bytes"));
    }
    let [driver, version, fw_version, bus_info] = DRVINFO_TEXTS.map(|at| {
        let field = &reply[at..at + DRVINFO_TEXT];
        let end = field.iter().position(|&b| b == 0).unwrap_or(DRVINFO_TEXT);
        String::from_utf8_lossy(&field[..end]).into_owned()
    });
    Ok(Drvinfo { driver, version, fw_version, bus_info })
}

/// The struct after the call, for simulated hosts. Texts are cut to 31 bytes, as the kernel does.
pub fn drvinfo_reply(d: &Drvinfo) -> Vec<u8> {
    let mut b = drvinfo_request();
    for (at, text) in DRVINFO_TEXTS.into_iter().zip([&d.driver, &d.version, &d.fw_version, &d.bus_info]) {
        let n = text.len().min(DRVINFO_TEXT - 1);
        b[at..at + n].copy_from_slice(&text.as_bytes()[..n]);
    }
    b
}

/// `struct ethtool_rxfh`: cmd 0, rss_context 4, indir_size 8, key_size 12, hfunc 16, then 3 reserved bytes
/// (the first is input_xfrm since 6.8), 4 reserved bytes, and at 24 the table, then the key.
const RXFH_CONTEXT: usize = 4;
const RXFH_INDIR_SIZE: usize = 8;
const RXFH_KEY_SIZE: usize = 12;
const RXFH_HFUNC: usize = 16;
const RXFH_INPUT_XFRM: usize = 17;
const RXFH_CONFIG: usize = 24;
/// `ETH_RXFH_INDIR_NO_CHANGE`.
const INDIR_NO_CHANGE: u32 = u32::MAX;
/// Largest table and key that are accepted; the largest known tables have 4,096 entries.
const MAX_INDIR: u32 = 1 << 16;
const MAX_KEY: u32 = 1 << 10;
const RXFH: &str = "ethtool_rxfh";

/// Sizes that a device returns for a request with sizes of zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxfhSizes {
    /// Entries of the table.
    pub indir: u32,
    /// Bytes of the key.
    pub key: u32,
}

/// Table, key and function of an RSS context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rxfh {
    /// Number of the RSS context; 0 is the device's own.
    pub context: u32,
    /// Receive queue of each entry of the indirection table, in order.
    pub indir: Vec<u32>,
    /// Hash key; empty if the driver reports none.
    pub key: Vec<u8>,
    /// `ETH_RSS_HASH_*` mask; 0: not reported. See [`crate::ethtool_nl::hfunc_name`].
    pub hfunc: u8,
    /// `RXH_XFRM_*` mask; kernels before 6.8 have 0.
    pub input_xfrm: u8,
}

fn rxfh_head(cmd: u32, context: u32, indir: u32, key: u32) -> Vec<u8> {
    let mut b = vec![0; RXFH_CONFIG];
    set_word(&mut b, 0, cmd);
    set_word(&mut b, RXFH_CONTEXT, context);
    set_word(&mut b, RXFH_INDIR_SIZE, indir);
    set_word(&mut b, RXFH_KEY_SIZE, key);
    b
}

/// An ETHTOOL_GRSSH that requests only the sizes.
pub fn grssh_sizes_request(context: u32) -> Vec<u8> {
    rxfh_head(cmd::GRSSH, context, 0, 0)
}

/// Sizes in the answer to either request.
pub fn grssh_sizes(reply: &[u8]) -> Result<RxfhSizes, ParseError> {
    let (Some(indir), Some(key), true) =
        (word(reply, RXFH_INDIR_SIZE), word(reply, RXFH_KEY_SIZE), reply.len() >= RXFH_CONFIG)
    else {
        return Err(short(RXFH, reply, "24 bytes or more"));
    };
    if indir > MAX_INDIR || key > MAX_KEY {
        return Err(ParseError::new(
            RXFH,
            format!("{indir} entries, {key} bytes of key"),
            "at most 65536 entries and 1024 bytes of key",
        ));
    }
    Ok(RxfhSizes { indir, key })
}

/// An ETHTOOL_GRSSH for everything, with space for `sizes` (at most 65,536 entries and 1,024 bytes of key are
/// requested).
pub fn grssh_request(context: u32, sizes: RxfhSizes) -> Vec<u8> {
    let (indir, key) = (sizes.indir.min(MAX_INDIR), sizes.key.min(MAX_KEY));
    let mut b = rxfh_head(cmd::GRSSH, context, indir, key);
    b.resize(RXFH_CONFIG + indir as usize * 4 + key as usize, 0);
    b
}

/// Decodes the answer to [`grssh_request`].
pub fn grssh(reply: &[u8]) -> Result<Rxfh, ParseError> {
    let sizes = grssh_sizes(reply)?;
    let (table, end) =
        (RXFH_CONFIG + sizes.indir as usize * 4, RXFH_CONFIG + sizes.indir as usize * 4 + sizes.key as usize);
    let (Some(indir), Some(key)) = (reply.get(RXFH_CONFIG..table), reply.get(table..end)) else {
        return Err(short(RXFH, reply, "the table and the key that the sizes announce"));
    };
    Ok(Rxfh {
        context: word(reply, RXFH_CONTEXT).unwrap_or(0),
        indir: indir.as_chunks::<4>().0.iter().map(|&w| u32::from_ne_bytes(w)).collect(),
        key: key.to_vec(),
        hfunc: reply[RXFH_HFUNC],
        input_xfrm: reply[RXFH_INPUT_XFRM],
    })
}

/// The struct after an ETHTOOL_GRSSH, for simulated hosts: sizes only where the request gave none.
pub fn grssh_reply(request: &[u8], state: &Rxfh) -> Result<Vec<u8>, ParseError> {
    let asked = grssh_sizes(request)?;
    let have = RxfhSizes { indir: state.indir.len() as u32, key: state.key.len() as u32 };
    let mut b = rxfh_head(cmd::GRSSH, state.context, have.indir, have.key);
    b[RXFH_HFUNC] = state.hfunc;
    b[RXFH_INPUT_XFRM] = state.input_xfrm;
    if asked != RxfhSizes::default() {
        b.extend(state.indir.iter().flat_map(|v| v.to_ne_bytes()));
        b.extend_from_slice(&state.key);
    }
    Ok(b)
}

/// What an ETHTOOL_SRSSH does to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOrder {
    /// `ETH_RXFH_INDIR_NO_CHANGE`.
    Keep,
    /// A size of zero: the kernel's default layout, and the table counts as not set by the user again.
    Default,
    /// Must have exactly the device's number of entries, else EINVAL.
    Set(Vec<u32>),
}

/// Context number of an ETHTOOL_SRSSH that creates a context: the kernel replaces it with the new number.
pub const CONTEXT_ALLOC: u32 = u32::MAX;

/// An ETHTOOL_SRSSH. An empty key and `hfunc` 0 leave those unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RssOrder {
    /// RSS context to change; 0 is the device's own, [`CONTEXT_ALLOC`] creates one.
    pub context: u32,
    /// What happens to the indirection table.
    pub table: TableOrder,
    /// Hash key with exactly the device's number of bytes; empty keeps the present one.
    pub key: Vec<u8>,
    /// `ETH_RSS_HASH_*` bit; 0 keeps the present function.
    pub hfunc: u8,
    /// The present value, if it is not to change: before 6.8 the kernel refuses everything but 0, and since then 0
    /// means "none".
    pub input_xfrm: u8,
}

impl RssOrder {
    /// Changes only the table of context 0.
    pub fn table(table: TableOrder) -> Self {
        Self { context: 0, table, key: Vec::new(), hfunc: 0, input_xfrm: 0 }
    }
}

impl RssOrder {
    /// Encodes the struct so that the kernel reads it correctly. The kernel looks for the key after a whole table even
    /// if the default table is requested and no table is sent, and uses the bytes there. Therefore the key is sent
    /// alone first, and then the default.
    pub fn calls(self) -> Vec<Self> {
        let mixed = self.table == TableOrder::Default && !self.key.is_empty();
        if !mixed {
            return vec![self];
        }
        let table = Self { key: Vec::new(), hfunc: 0, ..self.clone() };
        vec![Self { table: TableOrder::Keep, ..self }, table]
    }
}

/// Payload of the `ETHTOOL_SRSSH`: `struct ethtool_rxfh`, then the table, then the key.
pub fn srssh(order: &RssOrder) -> Vec<u8> {
    let (size, entries): (u32, &[u32]) = match &order.table {
        TableOrder::Keep => (INDIR_NO_CHANGE, &[]),
        TableOrder::Default => (0, &[]),
        TableOrder::Set(t) => (t.len() as u32, t),
    };
    let mut b = rxfh_head(cmd::SRSSH, order.context, size, order.key.len() as u32);
    b[RXFH_HFUNC] = order.hfunc;
    b[RXFH_INPUT_XFRM] = order.input_xfrm;
    b.extend(entries.iter().flat_map(|v| v.to_ne_bytes()));
    b.extend_from_slice(&order.key);
    b
}

/// Decodes what [`srssh`] encoded (for simulated hosts).
pub fn srssh_decode(payload: &[u8]) -> Result<RssOrder, ParseError> {
    if word(payload, RXFH_INDIR_SIZE) != Some(INDIR_NO_CHANGE) {
        let all = grssh(payload)?;
        let table = if all.indir.is_empty() { TableOrder::Default } else { TableOrder::Set(all.indir) };
        return Ok(RssOrder {
            context: all.context,
            table,
            key: all.key,
            hfunc: all.hfunc,
            input_xfrm: all.input_xfrm,
        });
    }
    let mut plain = payload.to_vec();
    set_word(&mut plain, RXFH_INDIR_SIZE, 0);
    let all = grssh(&plain)?;
    let (context, table) = (all.context, TableOrder::Keep);
    Ok(RssOrder { context, table, key: all.key, hfunc: all.hfunc, input_xfrm: all.input_xfrm })
}

/// Number of the context in the struct after an ETHTOOL_SRSSH.
pub fn srssh_context(reply: &[u8]) -> Result<u32, ParseError> {
    word(reply, RXFH_CONTEXT).ok_or_else(|| short(RXFH, reply, "8 bytes or more"))
}

/// The struct after an ETHTOOL_SRSSH that made this context, for simulated hosts.
pub fn srssh_reply(request: &[u8], context: u32) -> Vec<u8> {
    let mut b = request.to_vec();
    b.resize(RXFH_CONFIG.max(b.len()), 0);
    set_word(&mut b, RXFH_CONTEXT, context);
    b
}

/// Flow types whose hash fields can be requested: name as in [`crate::ethtool_nl::ids::FLOWS`], number (`TCP_V4_FLOW`
/// …, linux/ethtool.h).
pub const FLOW_TYPES: &[(&str, u32)] = &[
    ("tcp4", 0x01),
    ("udp4", 0x02),
    ("sctp4", 0x03),
    ("ah-esp4", 0x04),
    ("tcp6", 0x05),
    ("udp6", 0x06),
    ("sctp6", 0x07),
    ("ah-esp6", 0x08),
    ("ah4", 0x09),
    ("esp4", 0x0a),
    ("ah6", 0x0b),
    ("esp6", 0x0c),
    ("ip4", 0x10),
    ("ip6", 0x11),
    ("ether", 0x12),
    ("gtpu4", 0x13),
    ("gtpu6", 0x14),
    ("gtpc4", 0x15),
    ("gtpc6", 0x16),
    ("gtpc4t", 0x17),
    ("gtpc6t", 0x18),
    ("gtpu4e", 0x19),
    ("gtpu6e", 0x1a),
    ("gtpu4u", 0x1b),
    ("gtpu6u", 0x1c),
    ("gtpu4d", 0x1d),
    ("gtpu6d", 0x1e),
];

/// `struct ethtool_rxnfc`: cmd 0, flow_type 4, data 8 (64 bits), fs 16, rule_cnt 184; 192 bytes.
pub const RXNFC_SIZE: usize = 192;
const RXNFC_FLOW: usize = 4;
const RXNFC_DATA: usize = 8;

/// ETHTOOL_GRXFH for one flow type; `None` for a name that is not in [`FLOW_TYPES`].
pub fn grxfh_request(flow: &str) -> Option<Vec<u8>> {
    let (_, number) = FLOW_TYPES.iter().find(|f| f.0 == flow)?;
    let mut b = vec![0; RXNFC_SIZE];
    set_word(&mut b, 0, cmd::GRXFH);
    set_word(&mut b, RXNFC_FLOW, *number);
    Some(b)
}

/// ETHTOOL_SRXFH: the fields of one flow type.
///
/// Errors: a name that is not in [`FLOW_TYPES`], or invalid letters.
pub fn srxfh_request(flow: &str, letters: &str) -> Result<Vec<u8>, ParseError> {
    let number = FLOW_TYPES.iter().find(|f| f.0 == flow).map(|f| f.1);
    let number = number.ok_or_else(|| ParseError::new("ethtool_rxnfc", flow, "a flow type with hash fields"))?;
    let mut b = vec![0; RXNFC_SIZE];
    set_word(&mut b, 0, cmd::SRXFH);
    set_word(&mut b, RXNFC_FLOW, number);
    b[RXNFC_DATA..RXNFC_DATA + 8].copy_from_slice(&fields::mask(letters)?.to_ne_bytes());
    Ok(b)
}

/// Fields in the answer, as ethtool's letters (see [`fields`]).
pub fn grxfh(reply: &[u8]) -> Result<String, ParseError> {
    match reply.get(RXNFC_DATA..RXNFC_DATA + 8).and_then(|b| b.try_into().ok()) {
        Some(b) => Ok(fields::letters(u64::from_ne_bytes(b))),
        None => Err(short("ethtool_rxnfc", reply, "16 bytes or more")),
    }
}

/// Flow type named in a GRXFH or SRXFH request (for simulated hosts).
pub fn grxfh_flow(request: &[u8]) -> Result<&'static str, ParseError> {
    let number = word(request, RXNFC_FLOW).ok_or_else(|| short("ethtool_rxnfc", request, "16 bytes or more"))?;
    let known = FLOW_TYPES.iter().find(|f| f.1 == number).map(|f| f.0);
    known.ok_or_else(|| ParseError::new("ethtool_rxnfc", number.to_string(), "a flow type of the table"))
}

/// The struct after the call, for simulated hosts.
pub fn grxfh_reply(request: &[u8], letters: &str) -> Result<Vec<u8>, ParseError> {
    let mut b = request.to_vec();
    b.resize(RXNFC_SIZE.max(b.len()), 0);
    b[RXNFC_DATA..RXNFC_DATA + 8].copy_from_slice(&fields::mask(letters)?.to_ne_bytes());
    Ok(b)
}

#[cfg(test)]
#[path = "ethtool_ioctl_tests.rs"]
mod tests;
