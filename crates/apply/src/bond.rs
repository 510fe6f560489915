//! Members of a bond are interrupted one at a time, and never the last member that carries traffic.

use std::time::Duration;

use ringwise_knob::{Address, Change, Setting, Step, compare};
use ringwise_model::order::Order;
use ringwise_model::{Bond, Nic, Snapshot};
use ringwise_sys::read_with_deadline;

use crate::host_access::HostAccess;
use crate::tx::{Done, Tx};
use crate::{Error, Event, Failure, Refusal};

const EACH: Duration = Duration::from_millis(200);

/// The bond that the device is a member of, with its name.
fn of<'a>(s: &'a Snapshot, dev: &str) -> Option<(&'a str, &'a Bond)> {
    let master = s.nic_by_index(s.nic(dev)?.master?)?;
    Some((master.name(), master.bond.as_ref()?))
}

/// The bond as it is at this moment.
fn fresh(cx: &HostAccess, bond: &str) -> Option<Bond> {
    let (host, bond) = (cx.host.clone(), bond.to_string());
    read_with_deadline(cx.policy.deadline, move || ringwise_discover::bond(host.as_ref(), &bond)).flatten()
}

/// The device, if the setting at this address interrupts a member of a bond.
fn interrupted<'a>(now: &Snapshot, address: Option<&'a Address>) -> Option<&'a str> {
    let dev = address.filter(|a| a.interrupts_traffic_on(now))?.dev()?;
    of(now, dev).map(|_| dev)
}

/// Sorts neighbouring entries that interrupt members so that those of one member come before those of the next. Other entries keep their
/// places, and none is moved past them: the RSS table of a member has to wait for its channels.
fn together<T>(now: &Snapshot, list: &mut [T], address: impl Fn(&T) -> Option<Address>) {
    by_member(list, |t| interrupted(now, address(t).as_ref()).map(str::to_string));
}

/// `dev`: the member that the entry interrupts.
fn by_member<T>(list: &mut [T], dev: impl Fn(&T) -> Option<String>) {
    for run in list.chunk_by_mut(|a, b| dev(a).is_some() == dev(b).is_some()) {
        let order: Vec<Option<String>> = run.iter().map(&dev).collect();
        // In the order in which the members first appear.
        run.order_by_key(|t| order.iter().position(|o| *o == dev(t)));
    }
}

pub(crate) fn order_steps(now: &Snapshot, steps: &mut [Step]) {
    together(now, steps, |s| s.setting.address());
}

pub(crate) fn order_changes(now: &Snapshot, changes: &mut [Change]) {
    together(now, changes, |c| Some(c.address.clone()));
}

fn last_one(bond: &str, b: &Bond, dev: &str) -> String {
    let others: Vec<&str> = b.members.iter().map(|m| m.name.as_str()).filter(|n| *n != dev).collect();
    match others.as_slice() {
        [] => format!("{dev} is the only member of {bond}"),
        [other] => format!("{dev} is the last member of {bond} that carries traffic ({other} does not)"),
        o => format!("{dev} is the last member of {bond} that carries traffic ({} do not)", o.join(" and ")),
    }
}

/// Before anything is changed: refuses steps that would cut a bond off. Steps are judged one by one by the present state, because
/// each member has the other members beside it while it is interrupted.
pub(crate) fn check(now: &Snapshot, steps: &[Step]) -> Result<(), Error> {
    for step in steps.iter().filter(|s| !compare(&s.setting, now).holds()) {
        let Some(address) = step.setting.address() else { continue };
        if let Some(dev) = interrupted(now, Some(&address))
            && let Some((bond, b)) = of(now, dev)
            && b.depends_on(dev)
        {
            let why = last_one(bond, b, dev);
            return Err(Refusal::LastMember { address, why }.into());
        }
    }
    Ok(())
}

impl Tx<'_> {
    /// Just before the write: checks that another member carries traffic now.
    pub(crate) fn others_carry(&self, setting: &Setting) -> Done {
        let Some(address) = setting.address() else { return Ok(()) };
        let Some(dev) = interrupted(&self.now, Some(&address)) else { return Ok(()) };
        let Some((bond, _)) = of(&self.now, dev) else { return Ok(()) };
        match fresh(&self.cx, bond) {
            Some(b) if b.depends_on(dev) => Err(Failure {
                setting: Some(setting.clone()),
                ..Failure::new(last_one(bond, &b, dev), format!("interrupting it would take {bond} down"))
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// While restoring, the write follows in any case, but first the other members get time to carry traffic.
    pub(crate) fn wait_for_others(&mut self, setting: &Setting) {
        let Some(address) = setting.address() else { return };
        let Some(dev) = interrupted(&self.now, Some(&address)).map(str::to_string) else { return };
        let Some(bond) = of(&self.now, &dev).map(|(n, _)| n.to_string()) else { return };
        // If no other member has a link, waiting is pointless.
        let hopeless = |b: &Bond| {
            let up = |m: &&ringwise_model::BondMember| m.mii_status.known().is_some_and(|s| s == "up");
            !b.members.iter().filter(|m| m.name != dev).any(|m| up(&m))
        };
        let begin = self.cx.now();
        while let Some(b) = fresh(&self.cx, &bond) {
            if !b.depends_on(&dev) || hopeless(&b) {
                return;
            }
            if self.cx.now().saturating_sub(begin) >= self.cx.policy.bond_wait {
                let wait = self.cx.policy.bond_wait.as_secs_f32();
                self.note(format!(
                    "no other member of {bond} carried traffic within {wait} s; {dev} is restored anyway"
                ));
                return;
            }
            self.cx.host.sleep(EACH);
        }
    }

    /// After its link is back: waits until the bond uses the member as before. `false`: not in time.
    pub(crate) fn wait_for_bond(&mut self, dev: &str, before: &str) -> bool {
        let carried = |(_, b): (&str, &Bond)| b.carries(before) == Some(true);
        if !of(&self.before, before).is_some_and(carried) {
            return true;
        }
        let Some(bond) = of(&self.now, dev).map(|(n, _)| n.to_string()) else { return true };
        let begin = self.cx.now();
        let mut wait_reported = false;
        loop {
            // The device left the bond, or the bond is gone, so waiting does not help.
            let Some(b) = fresh(&self.cx, &bond) else { return true };
            if b.member(dev).is_none() {
                return true;
            }
            let took = self.cx.now().saturating_sub(begin);
            if b.carries(dev) == Some(true) {
                if wait_reported {
                    self.event(Event::BondBack { dev: dev.to_string(), bond, took });
                }
                return true;
            }
            if took >= self.cx.policy.bond_wait || self.cx.policy.stopped() && took >= self.cx.policy.link_wait {
                return false;
            }
            if !wait_reported {
                self.event(Event::BondWait { dev: dev.to_string(), bond: bond.clone() });
                wait_reported = true;
            }
            self.cx.host.sleep(EACH);
        }
    }

    /// The bond of a member, for messages.
    pub(crate) fn bond_of(&self, dev: &str) -> Option<&Nic> {
        self.now.nic_by_index(self.now.nic(dev)?.master?).filter(|n| n.bond.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::by_member;

    #[test]
    fn a_table_stays_behind_the_channels_of_its_member() {
        let member = |step: &&str| {
            let (what, dev) = step.split_once(' ').unwrap();
            (what != "table").then(|| dev.to_string())
        };
        let mut list = ["channels a", "channels b", "rings a", "rings b", "table a", "table b", "ntuple a", "ntuple b"];
        by_member(&mut list, member);
        let expected = ["channels a", "rings a", "channels b", "rings b", "table a", "table b", "ntuple a", "ntuple b"];
        assert_eq!(list, expected);
    }
}
