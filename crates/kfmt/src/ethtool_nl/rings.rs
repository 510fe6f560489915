//! Ring parameters: RINGS_GET and RINGS_SET.

use ringwise_model::{Count, RingPart, RingValues, Rings};

use super::Table;
use crate::ParseError;
use crate::nl::{Attr, Builder};

const RX_MAX: u16 = 2;
const TX_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 9;
const RX_BUF_LEN: u16 = 10;
const TCP_DATA_SPLIT: u16 = 11;
const CQE_SIZE: u16 = 12;
const TX_PUSH: u16 = 13;
const RX_PUSH: u16 = 14;
const TX_PUSH_BUF_LEN: u16 = 15;
const TX_PUSH_BUF_LEN_MAX: u16 = 16;
const HDS_THRESH: u16 = 17;
const HDS_THRESH_MAX: u16 = 18;

/// Attributes in the header file's words with their numbers, for the comparison with the header.
#[cfg(test)]
pub(crate) const NAMES: &[(&str, u16)] = &[
    ("RINGS_RX_MAX", RX_MAX),
    ("RINGS_TX_MAX", TX_MAX),
    ("RINGS_RX", RX),
    ("RINGS_TX", TX),
    ("RINGS_RX_BUF_LEN", RX_BUF_LEN),
    ("RINGS_TCP_DATA_SPLIT", TCP_DATA_SPLIT),
    ("RINGS_CQE_SIZE", CQE_SIZE),
    ("RINGS_TX_PUSH", TX_PUSH),
    ("RINGS_RX_PUSH", RX_PUSH),
    ("RINGS_TX_PUSH_BUF_LEN", TX_PUSH_BUF_LEN),
    ("RINGS_TX_PUSH_BUF_LEN_MAX", TX_PUSH_BUF_LEN_MAX),
    ("RINGS_HDS_THRESH", HDS_THRESH),
    ("RINGS_HDS_THRESH_MAX", HDS_THRESH_MAX),
];

/// How the kernel sends a parameter.
#[derive(Clone, Copy)]
enum Form {
    /// 32 bits, together with the largest value in this attribute.
    Limited(u16),
    /// 32 bits without a limit. The kernel leaves the attribute out where it is 0.
    Alone,
    /// 8 bits: 0 where the driver does not report it, 1 off, 2 on.
    OffOn,
    /// 8 bits: 1 on. 0 is off, and also what the kernel sends for drivers without the mode (net/ethtool/rings.c,
    /// `rings_fill_reply`), so it is read as not reported.
    On,
}

/// `ETHTOOL_TCP_DATA_SPLIT_DISABLED` and `ETHTOOL_TCP_DATA_SPLIT_ENABLED`.
const OFF: u8 = 1;
const ON: u8 = 2;

/// `None`: not reported, or what a later kernel may mean.
fn switch(value: u8) -> Option<u32> {
    match value {
        OFF => Some(0),
        ON => Some(1),
        _ => None,
    }
}

/// The attribute of each parameter.
const ATTRIBUTES: &[(&str, u16, Form)] = &[
    ("rx", RX, Form::Limited(RX_MAX)),
    ("tx", TX, Form::Limited(TX_MAX)),
    ("rx_buf_len", RX_BUF_LEN, Form::Alone),
    ("tcp_data_split", TCP_DATA_SPLIT, Form::OffOn),
    ("hds_thresh", HDS_THRESH, Form::Limited(HDS_THRESH_MAX)),
    ("cqe_size", CQE_SIZE, Form::Alone),
    ("tx_push", TX_PUSH, Form::On),
    ("rx_push", RX_PUSH, Form::On),
    ("tx_push_buf_len", TX_PUSH_BUF_LEN, Form::Limited(TX_PUSH_BUF_LEN_MAX)),
];

/// Each parameter that has an attribute.
fn attributes() -> impl Iterator<Item = (&'static RingPart, u16, Form)> {
    ATTRIBUTES.iter().filter_map(|(key, id, form)| Some((RingPart::of(key)?, *id, *form)))
}

/// Decodes a RINGS_GET reply.
pub fn rings(reply: &[u8]) -> Result<Rings, ParseError> {
    let t = Table::read("rings reply", reply)?;
    let mut out = Rings::default();
    for (part, id, form) in attributes() {
        let found = match form {
            Form::Limited(max) => t.count(id, max)?,
            Form::Alone => t.u32(id)?.map(|now| Count { now, max: 0 }),
            Form::OffOn => t.get(id, Attr::u8)?.and_then(switch).map(|now| Count { now, max: 0 }),
            Form::On => t.get(id, Attr::u8)?.filter(|on| *on != 0).map(|_| Count { now: 1, max: 0 }),
        };
        part.store(&mut out, found);
    }
    Ok(out)
}

/// A RINGS_GET reply as the kernel would send it, for simulated hosts.
pub fn rings_reply(r: &Rings) -> Vec<u8> {
    let mut b = Builder::new();
    for (part, id, form) in attributes() {
        let Some(Count { now, max }) = part.found(r) else { continue };
        match form {
            Form::Limited(limit) => b.u32(limit, max).u32(id, now),
            Form::Alone => b.u32(id, now),
            Form::OffOn => b.u8(id, if now == 0 { OFF } else { ON }),
            Form::On => b.u8(id, u8::from(now != 0)),
        };
    }
    b.finish()
}

/// Attributes of a RINGS_SET after the header; `None` leaves a parameter as it is.
pub fn rings_set(values: &RingValues) -> Vec<u8> {
    let mut b = Builder::new();
    for (part, id, form) in attributes() {
        let Some(value) = part.value(values) else { continue };
        match form {
            Form::Limited(_) | Form::Alone => b.u32(id, value),
            Form::OffOn => b.u8(id, if value == 0 { OFF } else { ON }),
            Form::On => b.u8(id, u8::from(value != 0)),
        };
    }
    b.finish()
}

/// Decodes what [`rings_set`] encoded (for simulated hosts).
pub fn rings_set_decode(attrs: &[u8]) -> Result<RingValues, ParseError> {
    let t = Table::read("rings set", attrs)?;
    let mut out = RingValues::default();
    for (part, id, form) in attributes() {
        let value = match form {
            Form::Limited(_) | Form::Alone => t.u32(id)?,
            Form::OffOn => t.get(id, Attr::u8)?.and_then(switch),
            Form::On => t.get(id, Attr::u8)?.map(u32::from),
        };
        part.set(&mut out, value);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel sends it: what it does not report is absent, never 0 or off.
    #[test]
    fn what_is_not_reported_is_absent() {
        let mut b = Builder::new();
        b.u32(RX_MAX, 4096).u32(RX, 256).u8(TCP_DATA_SPLIT, 0);
        assert_eq!(rings(&b.finish()).unwrap(), Rings::sizes(Some(Count { now: 256, max: 4096 }), None));
        let mut b = Builder::new();
        b.u32(RX_BUF_LEN, 2048).u8(TCP_DATA_SPLIT, 2).u32(HDS_THRESH, 0).u32(HDS_THRESH_MAX, 1023);
        let found = rings(&b.finish()).unwrap();
        let thresh = Some(Count { now: 0, max: 1023 });
        assert_eq!((found.rx_buf_len, found.tcp_data_split, found.hds_thresh), (Some(2048), Some(true), thresh));
        assert_eq!(rings(&rings_reply(&found)).unwrap(), found);
        let mut b = Builder::new();
        b.u8(TCP_DATA_SPLIT, 1);
        assert_eq!(rings_set(&RingValues { tcp_data_split: Some(false), ..RingValues::default() }), b.finish());
    }

    /// Every driver reports 0 for the push modes, whether it has them or not.
    #[test]
    fn push_modes_that_are_off_are_not_reported() {
        let mut b = Builder::new();
        b.u32(CQE_SIZE, 128).u8(TX_PUSH, 1).u8(RX_PUSH, 0).u32(TX_PUSH_BUF_LEN_MAX, 224).u32(TX_PUSH_BUF_LEN, 96);
        let found = rings(&b.finish()).unwrap();
        assert_eq!((found.cqe_size, found.tx_push, found.rx_push), (Some(128), Some(true), None));
        assert_eq!(found.tx_push_buf_len, Some(Count { now: 96, max: 224 }));
        assert_eq!(rings(&rings_reply(&found)).unwrap(), found);
        let mut b = Builder::new();
        b.u8(TX_PUSH, 0);
        let off = RingValues { tx_push: Some(false), ..RingValues::default() };
        assert_eq!((rings_set(&off), rings_set_decode(&rings_set(&off)).unwrap()), (b.finish(), off));
    }

    #[test]
    fn each_parameter_has_an_attribute_of_its_own() {
        let keys: Vec<&str> = attributes().map(|(part, ..)| part.key).collect();
        assert_eq!(keys, RingPart::ALL.iter().map(|p| p.key).collect::<Vec<_>>());
        for part in RingPart::ALL {
            let mut values = RingValues::default();
            part.set(&mut values, Some(1));
            assert_eq!(rings_set_decode(&rings_set(&values)).unwrap(), values, "{}", part.key);
        }
    }
}
