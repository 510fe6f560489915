//! The state of a bond and its members: `/sys/class/net/B/bonding` and `bonding_slave` of each. A team shows its state
//! only to its own daemon, so only the links of its members are known.

use ringwise_kfmt::ParseError;
use ringwise_model::order::Order;
use ringwise_model::{Bond, BondMember, Fact};
use ringwise_sys::Host;

use crate::links::{NET, Port, Sort};
use crate::natural;
use crate::read::Reader;

/// Whether the dump shows a bond or a team.
pub(crate) fn is_bond(port: &Port) -> bool {
    matches!(&port.sort, Sort::Software(k) if k == "bond" || k == "team")
}

/// The bond of this name in its present state. `None`: there is no such bond.
pub fn bond(host: &dyn Host, name: &str) -> Option<Bond> {
    let mut r = Reader::new(host);
    read(&mut r, name)
}

pub(crate) fn read(r: &mut Reader, name: &str) -> Option<Bond> {
    let dir = format!("{NET}/{name}/bonding");
    let members = match r.text(&format!("{dir}/slaves")) {
        Fact::Known(list) => list,
        Fact::Absent => return team(r, name),
        Fact::Unknown(u) => {
            let unknown = || Fact::Unknown(u.clone());
            return Some(Bond {
                mode: unknown(),
                active: unknown(),
                aggregator: Fact::Unknown(u.clone()),
                members: vec![],
            });
        }
    };
    let mut members: Vec<BondMember> = members.split_whitespace().map(|m| member(r, m)).collect();
    members.order_by(|a, b| natural::compare(&a.name, &b.name));
    Some(Bond {
        mode: r.parse(&format!("{dir}/mode"), first_word).and_then(some),
        active: r.parse(&format!("{dir}/active_slave"), first_word).and_then(some),
        // Empty in other modes.
        aggregator: r.parse(&format!("{dir}/ad_aggregator"), number).and_then(some),
        members,
    })
}

fn team(r: &mut Reader, name: &str) -> Option<Bond> {
    let entries = r.list(&format!("{NET}/{name}"));
    let mut names: Vec<&str> = entries.known()?.iter().filter_map(|e| e.strip_prefix("lower_")).collect();
    names.order_by(|a, b| natural::compare(a, b));
    let member = |m: &str| BondMember {
        name: m.to_string(),
        state: Fact::Absent,
        // EINVAL: the interface is switched off.
        mii_status: r.parse_or_absent(&format!("{NET}/{m}/carrier"), &[22], |t| {
            Ok(if t == "1" { "up" } else { "down" }.to_string())
        }),
        aggregator: Fact::Absent,
        actor: Fact::Absent,
        partner: Fact::Absent,
    };
    let members = names.into_iter().map(member).collect();
    Some(Bond { mode: Fact::Known("team".into()), active: Fact::Absent, aggregator: Fact::Absent, members })
}

fn member(r: &mut Reader, name: &str) -> BondMember {
    let dir = format!("{NET}/{name}/bonding_slave");
    BondMember {
        name: name.to_string(),
        state: r.text(&format!("{dir}/state")),
        mii_status: r.text(&format!("{dir}/mii_status")),
        aggregator: r.parse(&format!("{dir}/ad_aggregator_id"), number).and_then(some),
        actor: r.parse(&format!("{dir}/ad_actor_oper_port_state"), number).and_then(some),
        partner: r.parse(&format!("{dir}/ad_partner_oper_port_state"), number).and_then(some),
    }
}

fn some<T>(o: Option<T>) -> Fact<T> {
    o.map_or(Fact::Absent, Fact::Known)
}

/// `802.3ad 4`: the name, not the number.
fn first_word(text: &str) -> Result<Option<String>, ParseError> {
    Ok(text.split_whitespace().next().map(str::to_string))
}

/// Empty or `N/A` (drivers/net/bonding/bond_sysfs_slave.c): the bond has no such value in its mode.
fn number(text: &str) -> Result<Option<u32>, ParseError> {
    match text.trim() {
        "" | "N/A" => Ok(None),
        n => n.parse().map(Some).map_err(|_| ParseError::new("bonding", text, "a number or N/A")),
    }
}
