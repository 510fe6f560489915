//! Interrupt moderation of a device: COALESCE_GET and COALESCE_SET.

use std::collections::BTreeMap;

use ringwise_model::Coalesce;

use crate::ParseError;
use crate::nl::{Attr, Builder, attrs};

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
/// The DIM profiles are nests: see [`PROFILES`].
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
    // In 7.3, not in 6.18.
    (31, "rx-cqe-frames", Number),
    (32, "rx-cqe-nsecs", Number),
];

/// Values among which adaptive moderation chooses (`net_dim`, since 6.11). Each is a list of steps, and each step
/// becomes parameters of its own: `rx-profile.0.usec`. The kernel accepts only whole lists.
pub const PROFILES: [(u16, &str); 2] = [(29, "rx-profile"), (30, "tx-profile")];
/// `ETHTOOL_A_PROFILE_IRQ_MODERATION`, and the attributes within one.
const STEP: u16 = 1;
const STEP_FIELDS: [(u16, &str); 3] = [(1, "usec"), (2, "pkts"), (3, "comps")];
/// `NET_DIM_PARAMS_NUM_PROFILES`. More must never be sent: kernels before 2026 write a longer list beyond the end of
/// their own.
const MAX_STEPS: usize = 5;

/// Profile, step and attribute of `rx-profile.0.usec`.
fn profile_field(name: &str) -> Option<(u16, usize, u16)> {
    let mut parts = name.split('.');
    let (profile, step, field) = (parts.next()?, parts.next()?, parts.next()?);
    let (kind, _) = PROFILES.iter().find(|p| p.1 == profile)?;
    let step = step.parse::<usize>().ok().filter(|s| *s < MAX_STEPS && s.to_string() == step)?;
    let (attr, _) = STEP_FIELDS.iter().find(|f| f.1 == field)?;
    parts.next().is_none().then_some((*kind, step, *attr))
}

/// Whether the kernel has a parameter of this name.
pub fn is_parameter(name: &str) -> bool {
    PARAMETERS.iter().any(|p| p.1 == name) || profile_field(name).is_some()
}

/// A parameter name that the kernel does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParameter(pub String);

impl std::fmt::Display for UnknownParameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is not a coalescing parameter (expected e.g. rx-usecs)", self.0)
    }
}

impl std::error::Error for UnknownParameter {}

/// Parameters of a COALESCE_GET reply, which contains only those that the driver supports. Numbers that are not in this
/// table (newer kernels) are ignored.
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
        if let Some((_, name)) = PROFILES.iter().find(|p| p.0 == attr.kind) {
            profile(&mut out, name, &attr).map_err(|e| ParseError { what: "coalesce reply", ..e })?;
        }
    }
    Ok(out)
}

fn profile(out: &mut Coalesce, name: &str, nest: &Attr) -> Result<(), ParseError> {
    let steps = nest.nested().filter(|s| s.as_ref().map_or(true, |s| s.kind == STEP));
    for (i, step) in steps.enumerate().take(MAX_STEPS) {
        for field in step?.nested() {
            let field = field?;
            if let Some((_, f)) = STEP_FIELDS.iter().find(|f| f.0 == field.kind) {
                out.0.insert(format!("{name}.{i}.{f}"), field.u32()?);
            }
        }
    }
    Ok(())
}

/// Attributes of a COALESCE_SET after the header: only parameters that change, but whole profiles.
pub fn coalesce_set(parameters: &[(&str, u32)]) -> Result<Vec<u8>, UnknownParameter> {
    let mut b = Builder::new();
    let mut profiles: BTreeMap<u16, BTreeMap<usize, Builder>> = BTreeMap::new();
    for &(name, value) in parameters {
        if let Some((profile, step, attr)) = profile_field(name) {
            profiles.entry(profile).or_default().entry(step).or_default().u32(attr, value);
            continue;
        }
        let &(kind, _, width) =
            PARAMETERS.iter().find(|p| p.1 == name).ok_or_else(|| UnknownParameter(name.to_string()))?;
        match width {
            Flag => b.u8(kind, u8::from(value != 0)),
            Number => b.u32(kind, value),
        };
    }
    // A few steps of 28 bytes: they always fit.
    let unknown = |_| UnknownParameter("a profile that does not fit".into());
    for (kind, steps) in profiles {
        let mut list = Builder::new();
        // A step without values still has its position in the list.
        let last = steps.keys().last().copied().unwrap_or(0);
        for i in 0..=last {
            list.nested(STEP, steps.get(&i).unwrap_or(&Builder::new())).map_err(unknown)?;
        }
        b.nested(kind, &list).map_err(unknown)?;
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
    fn profiles_go_round_as_whole_lists() {
        let list =
            [("rx-profile.0.usec", 1), ("rx-profile.0.pkts", 256), ("rx-profile.1.usec", 8), ("tx-profile.0.comps", 4)];
        let all = Coalesce(list.iter().map(|(k, v)| (k.to_string(), *v)).collect());
        let bytes = coalesce_reply(&all).unwrap();
        assert_eq!(coalesce(&bytes).unwrap(), all);
        let first = attrs(&bytes).next().unwrap().unwrap();
        assert_eq!((first.kind, first.nested().count()), (29, 2));
        for bad in [
            "rx-profile.0",
            "rx-profile.x.usec",
            "rx-profile.00.usec",
            "rx-profile.0.usec.1",
            "ry-profile.0.usec",
            "rx-profile.5.usec",
        ] {
            assert!(coalesce_set(&[(bad, 1)]).is_err() && !is_parameter(bad), "{bad}");
        }
        let mut b = Builder::new();
        let mut step = Builder::new();
        step.u8(1, 1);
        let mut nest = Builder::new();
        nest.nested(1, &step).unwrap();
        b.nested(29, &nest).unwrap();
        assert!(coalesce(&b.finish()).is_err());
    }

    #[test]
    fn a_wrong_width_is_an_error() {
        let mut b = Builder::new();
        b.u32(11, 1);
        assert!(coalesce(&b.finish()).is_err());
    }

    #[test]
    fn a_torn_reply_is_an_error_that_names_the_reply() {
        let mut b = Builder::new();
        b.u32(2, 50);
        let whole = b.finish();
        let e = coalesce(&whole[..whole.len() - 1]).unwrap_err();
        assert_eq!(e.what, "coalesce reply");
    }
}
