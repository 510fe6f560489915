//! Ring parameters: RINGS_GET and RINGS_SET.

use ringwise_model::{Count, RingPart, RingValues, Rings};

use super::Table;
use crate::ParseError;
use crate::nl::Builder;

const RX_MAX: u16 = 2;
const TX_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 9;

/// Attributes in the header file's words with their numbers, for the comparison with the header.
#[cfg(test)]
pub(crate) const NAMES: &[(&str, u16)] =
    &[("RINGS_RX_MAX", RX_MAX), ("RINGS_TX_MAX", TX_MAX), ("RINGS_RX", RX), ("RINGS_TX", TX)];

/// How the kernel sends a parameter.
#[derive(Clone, Copy)]
enum Form {
    /// 32 bits, together with the largest value in this attribute.
    Limited(u16),
}

/// The attribute of each parameter.
const ATTRIBUTES: &[(&str, u16, Form)] = &[("rx", RX, Form::Limited(RX_MAX)), ("tx", TX, Form::Limited(TX_MAX))];

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
            Form::Limited(_) => b.u32(id, value),
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
            Form::Limited(_) => t.u32(id)?,
        };
        part.set(&mut out, value);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

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
