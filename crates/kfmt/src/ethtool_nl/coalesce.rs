//! Interrupt moderation of a device: COALESCE_GET and COALESCE_SET.

use ringwise_model::Coalesce;

use crate::ParseError;
use crate::nl::{Builder, attrs};

/// Width of a parameter on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 0 or 1 in one byte.
    Flag,
    /// 32 bits.
    Number,
}

use Width::{Flag, Number};

/// Every parameter: attribute number (`ETHTOOL_A_COALESCE_*`), netlink name, width.
/// The DIM profiles (29, 30) are nests and no parameters of this kind.
pub const PARAMETERS: &[(u16, &str, Width)] = &[
    (2, "rx-usecs", Number),
    (3, "rx-max-frames", Number),
    (4, "rx-usecs-irq", Number),
    (5, "rx-max-frames-irq", Number),
    (6, "tx-usecs", Number),
    (7, "tx-max-frames", Number),
    (8, "tx-usecs-irq", Number),
    (9, "tx-max-frames-irq", Number),
    (10, "stats-block-usecs", Number),
    (11, "use-adaptive-rx", Flag),
    (12, "use-adaptive-tx", Flag),
    (13, "pkt-rate-low", Number),
    (14, "rx-usecs-low", Number),
    (15, "rx-max-frames-low", Number),
    (16, "tx-usecs-low", Number),
    (17, "tx-max-frames-low", Number),
    (18, "pkt-rate-high", Number),
    (19, "rx-usecs-high", Number),
    (20, "rx-max-frames-high", Number),
    (21, "tx-usecs-high", Number),
    (22, "tx-max-frames-high", Number),
    (23, "rate-sample-interval", Number),
    (24, "use-cqe-mode-tx", Flag),
    (25, "use-cqe-mode-rx", Flag),
    (26, "tx-aggr-max-bytes", Number),
    (27, "tx-aggr-max-frames", Number),
    (28, "tx-aggr-time-usecs", Number),
];

/// A parameter name that the kernel does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParameter(pub String);

impl std::fmt::Display for UnknownParameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is no coalescing parameter (right would be e.g. rx-usecs)", self.0)
    }
}

impl std::error::Error for UnknownParameter {}

/// Parameters of a COALESCE_GET reply. Only those the driver supports are in it; numbers that this
/// table does not have (newer kernels, DIM profiles) are passed over.
pub fn coalesce(reply: &[u8]) -> Result<Coalesce, ParseError> {
    let mut out = Coalesce::default();
    for attr in attrs(reply) {
        let attr = attr.map_err(|e| ParseError { what: "coalesce reply", ..e })?;
        if let Some(&(_, name, width)) = PARAMETERS.iter().find(|p| p.0 == attr.kind) {
            let value = match width {
                Flag => attr.u8().map(|b| u32::from(b != 0)),
                Number => attr.u32(),
            };
            out.0.insert(name.to_string(), value.map_err(|e| ParseError { what: "coalesce reply", ..e })?);
        }
    }
    Ok(out)
}

/// Attributes of a COALESCE_SET after the header: only what shall change.
pub fn coalesce_set(parameters: &[(&str, u32)]) -> Result<Vec<u8>, UnknownParameter> {
    let mut b = Builder::new();
    for &(name, value) in parameters {
        let &(kind, _, width) =
            PARAMETERS.iter().find(|p| p.1 == name).ok_or_else(|| UnknownParameter(name.to_string()))?;
        match width {
            Flag => b.u8(kind, u8::from(value != 0)),
            Number => b.u32(kind, value),
        };
    }
    Ok(b.finish())
}

/// A reply as the kernel would send it, for simulated hosts.
pub fn coalesce_reply(values: &Coalesce) -> Result<Vec<u8>, UnknownParameter> {
    let list: Vec<(&str, u32)> = values.0.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    coalesce_set(&list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_goes_round() {
        let all = Coalesce(
            PARAMETERS.iter().map(|p| (p.1.to_string(), if p.2 == Flag { 1 } else { u32::from(p.0) * 1000 })).collect(),
        );
        assert_eq!(coalesce(&coalesce_reply(&all).unwrap()).unwrap(), all);
    }

    #[test]
    fn unknown_names_and_numbers() {
        assert_eq!(coalesce_set(&[("rx-usec", 1)]).unwrap_err(), UnknownParameter("rx-usec".into()));
        let mut b = Builder::new();
        b.u32(2, 50).u32(99, 1);
        b.nested(29, &Builder::new()).unwrap();
        let c = coalesce(&b.finish()).unwrap();
        assert_eq!(c.0.into_iter().collect::<Vec<_>>(), [("rx-usecs".to_string(), 50)]);
    }

    #[test]
    fn a_wrong_width_is_an_error() {
        let mut b = Builder::new();
        b.u32(11, 1);
        assert!(coalesce(&b.finish()).is_err());
    }
}
