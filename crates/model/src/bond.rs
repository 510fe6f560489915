//! A bond and the state of its members.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// Collecting and distributing in an LACP port state (IEEE 802.1AX; include/net/bond_3ad.h).
const CARRYING: u32 = 0x10 | 0x20;

/// The state of a bond, from `/sys/class/net/B/bonding` and `bonding_slave` of its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bond {
    /// `802.3ad`, `active-backup`, `balance-rr`, …; `team` for a team, whatever it runs.
    pub mode: Fact<String>,
    /// The member in use; absent in modes that use several.
    pub active: Fact<String>,
    /// 802.3ad: the aggregator in use.
    pub aggregator: Fact<u32>,
    /// In the order of `bonding/slaves`.
    pub members: Vec<BondMember>,
}

/// One interface of a bond or team, from `/sys/class/net/MEMBER/bonding_slave` and `/proc/net/bonding`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondMember {
    /// Name of the interface.
    pub name: String,
    /// `active` or `backup`.
    pub state: Fact<String>,
    /// Link as the bond sees it: `up`, `going down`, `down`, `going back`.
    pub mii_status: Fact<String>,
    /// 802.3ad only, as are the two below.
    pub aggregator: Fact<u32>,
    /// LACP port state of this side, and of the other.
    pub actor: Fact<u32>,
    /// As `actor`, of the other end.
    pub partner: Fact<u32>,
}

impl Bond {
    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&BondMember> {
        self.members.iter().find(|m| m.name == name)
    }

    fn is_lacp(&self) -> Option<bool> {
        self.mode.known().map(|m| m == "802.3ad")
    }

    /// Whether the bond could send and receive through this member alone. `None`: unknown.
    pub fn carries(&self, name: &str) -> Option<bool> {
        let m = self.member(name)?;
        if m.mii_status.is_absent() || m.mii_status.known()? != "up" {
            return Some(false);
        }
        if !self.is_lacp()? {
            return Some(true);
        }
        // The number of the aggregator may change while members come and go, so it is compared with that of the bond.
        let same = m.aggregator.known()? == self.aggregator.known()?;
        let both = m.actor.known()? & CARRYING == CARRYING && m.partner.known()? & CARRYING == CARRYING;
        Some(same && both)
    }

    /// Other members that carry traffic.
    pub fn others(&self, name: &str) -> Vec<&str> {
        let others = self.members.iter().map(|m| m.name.as_str()).filter(|n| *n != name);
        others.filter(|n| self.carries(n) == Some(true)).collect()
    }

    /// Whether it carries traffic (or may do so), and no other member is known to carry any.
    pub fn depends_on(&self, name: &str) -> bool {
        self.member(name).is_some() && self.carries(name) != Some(false) && self.others(name).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bond(mode: &str, members: &[(&str, &str, u32, u32)]) -> Bond {
        let known = |s: &str| Fact::Known(s.to_string());
        let member = |(name, mii, aggregator, state): &(&str, &str, u32, u32)| BondMember {
            name: (*name).into(),
            state: known("active"),
            mii_status: known(mii),
            aggregator: Fact::Known(*aggregator),
            actor: Fact::Known(*state),
            partner: Fact::Known(*state),
        };
        let members = members.iter().map(member).collect();
        Bond { mode: known(mode), active: Fact::Absent, aggregator: Fact::Known(1), members }
    }

    #[test]
    fn who_carries() {
        let b = bond("active-backup", &[("a", "up", 0, 0), ("b", "down", 0, 0)]);
        assert!(b.depends_on("a"), "the other has no link");
        assert!(!b.depends_on("b"), "it carries nothing itself");
        let b = bond("802.3ad", &[("a", "up", 1, 61), ("b", "up", 1, 61)]);
        assert_eq!(b.others("a"), ["b"]);
        let b = bond("802.3ad", &[("a", "up", 1, 61), ("b", "up", 2, 61)]);
        assert!(b.depends_on("a"), "the other is in an aggregator of its own");
        let b = bond("802.3ad", &[("a", "up", 1, 61), ("b", "up", 1, 7)]);
        assert!(b.depends_on("a"), "the other neither collects nor distributes");
        let mut b = bond("802.3ad", &[("a", "up", 1, 61), ("b", "up", 1, 61)]);
        b.mode = Fact::unknown("mode", "needs root");
        assert!(b.depends_on("a"), "not known is not enough");
        assert!(!b.depends_on("c"), "no member");
    }
}
