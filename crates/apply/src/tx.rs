//! A transaction under way: the steps, the side effects, the verification.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_kfmt::cpulist;
use ringwise_knob::{
    Address, Family, IfRefused, Learned, Match, Setting, SettingMap, Step, coalesce, collateral, compare, diff,
    features::waits, irq, learned::What, live, overlap, rss, rules,
};
use ringwise_model::{DevId, Dir, Fact, Snapshot, Unread};

use crate::cx::Cx;
use crate::journal::{Journal, Record};
use crate::names::Names;
use crate::put::{Put, put};
use crate::replan::{Disk, Replan};
use crate::{Adjusted, Armed, Event, Failure, Ignored, Outcome, Phase, Refused, fallback, features};

/// Times that the host is brought to what is wanted and looked at again, before it counts as not to be had.
const ROUNDS: u32 = 3;

/// An error: it has to be put back, for this reason.
pub(crate) type Done = Result<(), Box<Failure>>;

pub(crate) struct Tx<'a> {
    pub cx: Cx<'a>,
    pub events: &'a mut dyn FnMut(&Event),
    pub journal: Journal,
    pub devices: Vec<DevId>,
    pub steps: Vec<Step>,
    /// The host before; its devices under the names they had then.
    pub before: Snapshot,
    /// Values before of everything that is touched or may be disturbed.
    pub start: SettingMap,
    pub now: Snapshot,
    /// Devices that were restarted by a step and not looked at since.
    pub stale: BTreeSet<String>,
    pub out: Outcome,
    pub learned: Vec<Learned>,
    /// Steps that need not hold in the end: refused or ignored, and allowed to be.
    pub given_up: BTreeSet<Address>,
    /// Who puts it back if this process dies.
    pub guard: Option<Box<dyn Armed>>,
    pub replan: Replan,
}

/// Values before the steps: of what they name, and of what naming it may disturb.
pub(crate) fn start_of(now: &Snapshot, steps: &[Step]) -> SettingMap {
    let touched: Vec<Address> = fallback::settings(steps).filter_map(Setting::address).collect();
    let mut start = collateral(now, &touched);
    let canonical = touched.iter().map(|a| canonical(now, a));
    start.extend(canonical.filter_map(|a| live(now, &a).known().cloned().map(|s| (a, s))));
    start.into_iter().map(|(a, s)| (a, crate::irq::with_place(now, s))).collect::<BTreeMap<_, _>>()
}

/// A vector that serves a receive and a transmit queue has one affinity: one address for it.
fn canonical(now: &Snapshot, address: &Address) -> Address {
    let Address::IrqCpus { dev, of } = address else { return address.clone() };
    let found = now.nic(dev).and_then(|n| irq::vector(n, *of)).and_then(irq::canonical);
    found.map_or_else(|| address.clone(), |of| Address::IrqCpus { dev: dev.clone(), of })
}

impl Tx<'_> {
    pub(crate) fn event(&mut self, event: Event) {
        (self.events)(&event);
    }

    pub(crate) fn note(&mut self, text: String) {
        self.event(Event::Note { text: text.clone() });
        self.out.notes.push(text);
    }

    pub(crate) fn record(&mut self, record: Record) -> Done {
        self.journal.add(&record).map_err(|e| self.journal_failure(&e).into())
    }

    pub(crate) fn journal_failure(&self, e: &std::io::Error) -> Failure {
        Failure {
            errno: e.raw_os_error(),
            path: Some(self.journal.path().display().to_string()),
            ..Failure::new(e.to_string(), "the journal cannot be written")
        }
    }

    /// The steps, and then everything as wanted. An error: it has to be put back.
    pub(crate) fn forward(&mut self, disk: Disk) -> Done {
        let mut next = 0;
        loop {
            self.check_stop()?;
            if self.replan_due(self.steps.get(next)) {
                next = self.plan_again(disk, next)?;
                continue;
            }
            let Some(step) = self.steps.get(next).cloned() else { break };
            self.refresh(true)?;
            self.step(&step)?;
            next += 1;
        }
        self.settle()
    }

    pub(crate) fn check_stop(&mut self) -> Done {
        if self.guard.as_mut().is_some_and(|g| !g.is_there()) {
            return Err(self.guard_lost().into());
        }
        if !self.cx.policy.stopped() {
            return Ok(());
        }
        Err(Failure::new("stopped on request", "").into())
    }

    /// Looks again where a step has restarted a device, after its link is back.
    pub(crate) fn refresh(&mut self, link_needed: bool) -> Done {
        if self.stale.is_empty() {
            return Ok(());
        }
        let waited = std::mem::take(&mut self.stale);
        let known: Vec<Option<DevId>> = waited.iter().map(|d| self.now.nic(d).map(|n| n.dev.clone())).collect();
        for dev in waited.clone() {
            let was_up = self.before.nic(&self.name_before(&dev)).is_some_and(ringwise_model::Nic::link_is_up);
            if was_up && !self.wait_for_link(&dev) {
                let wait = self.cx.policy.link_wait.as_secs_f32();
                let words = format!("the link of {dev} did not come back within {wait} s");
                if link_needed {
                    return Err(Failure::new(words, "it was up before the device was restarted").into());
                }
                self.note(words);
                continue;
            }
            let before = self.name_before(&dev);
            if was_up && !self.wait_for_bond(&dev, &before) {
                let wait = self.cx.policy.bond_wait.as_secs_f32();
                let bond = self.bond_of(&dev).map_or_else(|| "its bond".into(), |b| b.name().to_string());
                let words = format!("{bond} did not use {dev} again within {wait} s");
                if link_needed {
                    return Err(Failure::new(words, "it carried before the device was restarted").into());
                }
                self.note(words);
            }
        }
        self.look()?;
        // Renamed while it was waited for: what was waited for had another name.
        for (name, id) in waited.iter().zip(known) {
            let found = id.and_then(|id| self.now.nics.iter().find(|n| n.dev.same_device(&id)));
            self.stale.extend(found.filter(|n| n.name() != name).map(|n| n.name().to_string()));
        }
        if self.stale.is_empty() { Ok(()) } else { self.refresh(link_needed) }
    }

    fn name_before(&self, dev: &str) -> String {
        let Some(nic) = self.now.nic(dev) else { return dev.to_string() };
        self.before.nics.iter().find(|n| n.dev.same_device(&nic.dev)).map_or(dev, |n| n.dev.name.as_str()).to_string()
    }

    fn wait_for_link(&mut self, dev: &str) -> bool {
        const EACH: Duration = Duration::from_millis(100);
        let begin = self.cx.now();
        let path = format!("/sys/class/net/{dev}/carrier");
        let mut told = false;
        loop {
            let up = self.cx.read_text(&path);
            let took = self.cx.now().saturating_sub(begin);
            match up {
                Ok(t) if t == "1" => {
                    if told {
                        self.event(Event::LinkBack { dev: dev.to_string(), took });
                    }
                    return true;
                }
                // The device is gone: not a matter of waiting.
                Err(e) if e.is_absent() => return true,
                _ if took >= self.cx.policy.link_wait => return false,
                _ => {}
            }
            if !told {
                self.event(Event::LinkWait { dev: dev.to_string() });
                told = true;
            }
            self.cx.host.sleep(EACH);
        }
    }

    /// Discovers again, and follows devices that were renamed meanwhile.
    pub(crate) fn look(&mut self) -> Done {
        self.now = self.cx.look().map_err(|e| {
            let words = std::error::Error::source(&e).map_or(e.to_string(), |s| format!("{e}: {s}"));
            Failure::new(words, "the host cannot be discovered again")
        })?;
        let names = Names::new(&self.devices, &self.now);
        let changed: Vec<String> = names.changed().map(|(a, b)| format!("{a} is {b} now")).collect();
        if changed.is_empty() {
            return Ok(());
        }
        self.start = self
            .start
            .values()
            .map(|s| names.setting(s))
            .filter_map(|s| s.address().map(|a| (a, s)))
            .collect::<BTreeMap<_, _>>();
        self.steps = self.steps.iter().map(|s| names.step(s)).collect();
        self.given_up = self.given_up.iter().map(|a| names.address(a)).collect::<BTreeSet<_>>();
        for d in &mut self.devices {
            if let Some(n) = self.now.nics.iter().find(|n| d.same_device(&n.dev)) {
                d.name.clone_from(&n.dev.name);
            }
        }
        changed.into_iter().for_each(|c| self.note(c));
        Ok(())
    }

    /// Notes that writing this setting restarted its device.
    fn wrote(&mut self, address: &Address) {
        if address.interrupts_traffic()
            && let Some(dev) = address.dev()
        {
            self.stale.insert(dev.to_string());
        }
    }

    /// Writes it, says so, and keeps account of side effects on what is known.
    pub(crate) fn put(&mut self, phase: Phase, setting: &Setting) -> Put {
        self.event(Event::Writing { phase, setting: setting.clone() });
        let begin = self.cx.now();
        let before = matches!(setting, Setting::Feature { .. }).then(|| self.now.clone());
        let done = put(&self.cx, &mut self.now, setting);
        let took = self.cx.now().saturating_sub(begin);
        if phase == Phase::Apply
            && let Some(before) = before
        {
            features::followed(&before, &self.now, setting).into_iter().for_each(|t| self.note(t));
        }
        if let Some(a) = setting.address() {
            self.wrote(&a);
        }
        match &done {
            Put::Kept { now, how } => {
                let (now, how) = (now.clone(), how.clone());
                self.event(Event::Done { phase, setting: setting.clone(), now, how, took });
            }
            Put::NotKept { .. } | Put::Refused(_) => {}
            Put::Failed(failure) => self.event(Event::Failed { phase, failure: failure.clone() }),
        }
        done
    }

    /// True: something else has taken the step's place. An error where nothing has and nothing may be left out.
    pub(crate) fn replaced(&mut self, step: &Step, failure: &Failure, learned: bool) -> Result<bool, Box<Failure>> {
        if self.instead(step, failure)? {
            return Ok(true);
        }
        let fails = match step.if_refused {
            IfRefused::PutBack => true,
            IfRefused::Replan => !(learned && self.can_replan()),
            IfRefused::Skip => false,
        };
        if fails {
            self.event(Event::Failed { phase: Phase::Apply, failure: failure.clone() });
            return Err(failure.clone().into());
        }
        if learned {
            self.replan_later(step, failure);
        }
        Ok(false)
    }

    fn step(&mut self, step: &Step) -> Done {
        let setting = &step.setting;
        let Some(address) = setting.address() else { return Ok(()) };
        if compare(setting, &self.now).holds() {
            self.out.already_so.push(setting.clone());
            self.event(Event::AlreadySo { phase: Phase::Apply, setting: setting.clone() });
            return Ok(());
        }
        self.others_carry(setting)?;
        self.record(Record::Step { setting: setting.clone() })?;
        match self.put(Phase::Apply, setting) {
            Put::Kept { now, how } => {
                self.out.applied.push(setting.clone());
                if how == Match::Adjusted {
                    self.out.adjusted_by_driver.push(Adjusted { asked: setting.clone(), kept: now.clone() });
                }
                self.record(Record::Done { setting: setting.clone(), now })
            }
            Put::Refused(failure) => {
                let words = failure.words.clone();
                let learned = self.learn(setting, What::Refused { errno: failure.errno.unwrap_or(0), words });
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                if self.replaced(step, &failure, learned)? {
                    return Ok(());
                }
                self.event(Event::Refused { phase: Phase::Apply, setting: setting.clone(), failure: failure.clone() });
                self.out.refused.push(Refused { asked: setting.clone(), failure });
                self.given_up.insert(address);
                Ok(())
            }
            Put::NotKept { now } => {
                let learned = now.known().is_some_and(|got| self.learn(setting, What::Ignored { got: got.clone() }));
                let failure = not_kept(setting, &now);
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                if self.replaced(step, &failure, learned)? {
                    return Ok(());
                }
                self.event(Event::Ignored { phase: Phase::Apply, setting: setting.clone(), now: now.known().cloned() });
                self.out.ignored.push(Ignored { asked: setting.clone(), now });
                self.given_up.insert(address);
                Ok(())
            }
            Put::Failed(failure) => {
                self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
                Err(failure.into())
            }
        }
    }

    /// What the host should be like now: the steps, and of the start what a step may have disturbed.
    fn wanted(&self) -> SettingMap {
        let steps = self.steps.iter().filter_map(|s| s.setting.address().map(|a| (a, s.setting.clone())));
        let mut wanted: SettingMap = steps.filter(|(a, _)| !self.given_up.contains(a)).collect::<BTreeMap<_, _>>();
        let asked: Vec<Setting> = wanted.values().cloned().collect();
        // Vectors that were two may be one now: the steps come first, then what served the receive queue.
        let mut taken: BTreeSet<Address> = wanted.keys().map(|a| canonical(&self.now, a)).collect();
        for (address, setting) in &self.start {
            let setting = &self.possible(setting);
            if !self.given_up.contains(address)
                && self.fits(address, setting)
                && let Some(setting) = overlap::beside(setting, asked.iter())
                && taken.insert(canonical(&self.now, address))
            {
                wanted.insert(address.clone(), setting);
            }
        }
        wanted
    }

    /// A value from before without what the device no longer has.
    fn possible(&self, setting: &Setting) -> Setting {
        match setting {
            Setting::Coalesce { dev, params } => {
                let params = self.now.nic(dev).map_or_else(|| params.clone(), |n| coalesce::told(n, params));
                Setting::Coalesce { dev: dev.clone(), params }
            }
            other => other.clone(),
        }
    }

    /// Whether a value from before still makes sense: the queue is there, and a table names only queues that are.
    fn fits(&self, address: &Address, setting: &Setting) -> bool {
        if matches!(live(&self.now, address), Fact::Absent) || waits(&self.now, setting) {
            return false;
        }
        if let Setting::FlowRule { dev, rule: Some(rule), .. } = setting {
            return self.rule_fits(dev, rule);
        }
        let Some(nic) = address.dev().and_then(|d| self.now.nic(d)) else { return true };
        let queues = nic.queues_in_use(Dir::Rx);
        match setting {
            Setting::RssContext { table: Some(table), .. } => within(table, queues),
            Setting::RssTable { dev, table } => {
                let before = self.before.nic(&self.name_before(dev)).and_then(|n| n.queues_in_use(Dir::Rx));
                within(table, queues) && !follows_queues(table, before, queues)
            }
            _ => true,
        }
    }

    /// A rule of before: the feature was not switched off, and what it sends to is there.
    fn rule_fits(&self, dev: &str, rule: &ringwise_model::Rule) -> bool {
        let off = |s: &Step| matches!(&s.setting, Setting::Ntuple { dev: d, on: false } if d == dev);
        let Some(nic) = self.now.nic(dev) else { return false };
        let context = |c: u32| nic.rss.known().and_then(|r| r.contexts.known()).is_none_or(|all| all.contains_key(&c));
        !self.steps.iter().any(off)
            && rules::queue(rule).is_none_or(|q| nic.queues_in_use(Dir::Rx).is_none_or(|n| q < n))
            && rule.context.is_none_or(context)
    }

    /// Discovers everything again and puts right what a later step or a driver has moved, until all is as wanted.
    fn settle(&mut self) -> Done {
        for round in 0..ROUNDS {
            self.refresh(true)?;
            self.look()?;
            let wanted = self.wanted();
            let mut todo = diff(&self.now, &wanted);
            crate::bond::order_changes(&self.now, &mut todo);
            if todo.is_empty() {
                self.verified(&wanted);
                return Ok(());
            }
            if round + 1 == ROUNDS {
                let c = &todo[0];
                return Err(not_kept(&c.to, &c.from).into());
            }
            for change in todo {
                self.check_stop()?;
                self.refresh(true)?;
                if compare(&change.to, &self.now).holds() {
                    continue;
                }
                self.mend(&change.to)?;
            }
        }
        Ok(())
    }

    fn mend(&mut self, setting: &Setting) -> Done {
        let Some(address) = setting.address() else { return Ok(()) };
        let ours = self.steps.iter().any(|s| s.setting.address().as_ref() == Some(&address));
        let phase = if ours { Phase::Apply } else { Phase::SideEffect };
        self.others_carry(setting)?;
        self.record(Record::Step { setting: setting.clone() })?;
        match self.put(phase, setting) {
            Put::Kept { now, .. } => {
                let list = if ours { &mut self.out.applied } else { &mut self.out.side_effects };
                if !list.contains(setting) {
                    list.push(setting.clone());
                }
                self.out.already_so.retain(|s| s != setting);
                self.record(Record::Done { setting: setting.clone(), now })
            }
            // Also where it was not asked for: what was set before must not be lost without a word.
            Put::Refused(failure) | Put::Failed(failure) => Err(failure.into()),
            Put::NotKept { now } => Err(not_kept(setting, &now).into()),
        }
    }

    fn verified(&mut self, wanted: &SettingMap) {
        let mut pending = Vec::new();
        for (address, setting) in wanted {
            if compare(setting, &self.now) == Match::Pending {
                pending.push(address.clone());
            }
        }
        self.out.verified = wanted.len();
        self.out.verified_of = wanted.len();
        self.out.pending = pending.clone();
        self.event(Event::Verified { phase: Phase::Apply, ok: wanted.len(), of: wanted.len(), pending });
    }

    /// The settings of the transaction as they are now, for those who ask later what somebody else has changed.
    pub(crate) fn after(&self) -> Vec<Setting> {
        let steps = self.steps.iter().filter_map(|s| s.setting.address());
        let all: BTreeSet<Address> = self.start.keys().cloned().chain(steps).collect();
        all.iter().filter_map(|a| live(&self.now, a).known().cloned()).collect()
    }

    /// As of this moment: the CPU may have gone since the host was looked at. What cannot be read counts as offline.
    fn asks_for_an_offline_cpu(&self, setting: &Setting) -> bool {
        let (Setting::IrqCpus { cpus, .. }
        | Setting::XpsCpus { cpus, .. }
        | Setting::RpsCpus { cpus, .. }
        | Setting::NapiThread { cpus, .. }) = setting
        else {
            return false;
        };
        let online = self.cx.read_text("/sys/devices/system/cpu/online").ok().and_then(|t| cpulist::parse(&t).ok());
        online.is_none_or(|online| !cpus.is_subset(&online))
    }

    /// False: it says nothing about the device.
    pub(crate) fn learn(&mut self, setting: &Setting, what: What) -> bool {
        let (Some(address), Fact::Known(kernel)) = (setting.address(), &self.now.host.kernel) else { return false };
        // What a program refuses is no property of the device, nor what cannot be while a CPU is offline.
        if address.family() == Family::Rivals || self.asks_for_an_offline_cpu(setting) {
            return false;
        }
        let Some(nic) = address.dev().and_then(|d| self.now.nic(d)) else { return false };
        self.learned.push(Learned {
            device: nic.dev.clone(),
            driver: nic.driver.known().cloned(),
            kernel: kernel.clone(),
            address,
            asked: setting.clone(),
            what,
            unix_time: self.cx.host.unix_time(),
        });
        true
    }
}

/// Whether a table names only queues that exist; where their number is unknown, the kernel judges.
fn within(table: &[u32], queues: Option<u32>) -> bool {
    queues.is_none_or(|n| table.iter().all(|q| *q < n))
}

/// A table that was even over all queues was not set by anyone: with another number of queues it is even over those.
fn follows_queues(table: &[u32], before: Option<u32>, now: Option<u32>) -> bool {
    before.zip(now).is_some_and(|(before, now)| before != now && rss::is_even(table, before))
}

pub(crate) fn guard_gone() -> Failure {
    Failure::new("the guard is gone", "nobody would put it back if this process died")
}

pub(crate) fn not_kept(setting: &Setting, now: &Fact<Setting>) -> Failure {
    let family = setting.address().map_or("setting", |a: Address| Family::title(a.family()));
    let words = match now {
        Fact::Known(n) => format!("accepted, but reads back as {}", n.value_text()),
        Fact::Absent => "it is gone".to_string(),
        Fact::Unknown(Unread { why, .. }) => format!("it cannot be read back: {why}"),
    };
    let somebody = || format!("the device or somebody else does not leave the {family} at {}", setting.value_text());
    let meaning = features::meaning(setting).unwrap_or_else(somebody);
    Failure { setting: Some(setting.clone()), ..Failure::new(words, meaning) }
}

#[cfg(test)]
mod tests {
    use super::{follows_queues, within};

    #[test]
    fn a_table_is_judged_by_the_kernel_where_the_number_of_queues_is_unknown() {
        let even = [0, 1, 2, 3, 0, 1, 2, 3];
        assert!(within(&even, Some(4)) && !within(&even, Some(3)) && within(&even, None));
        assert!(follows_queues(&even, Some(4), Some(8)) && !follows_queues(&even, Some(4), Some(4)));
        // Not even over 0 queues, and not over other queues than before either: it comes back.
        assert!(!follows_queues(&even, None, Some(8)) && !follows_queues(&even, Some(4), None));
        assert!(!follows_queues(&[], None, Some(8)));
    }
}
