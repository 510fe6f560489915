//! A transaction in progress: its state, a single write, and reading the host again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_knob::{Address, Family, Learned, Setting, SettingMap, Step, learned::LearnedWrite, live};
use ringwise_model::{DevId, Fact, Snapshot, Unread};

use crate::host_access::HostAccess;
use crate::journal::Journal;
use crate::names::DeviceRenames;
use crate::record::Record;
use crate::write_setting::{WriteOutcome, put};
use crate::{Armed, Event, Failure, Outcome, Phase, features};

/// An error means that the settings have to be restored, for this reason.
pub(crate) type Done = Result<(), Box<Failure>>;

pub(crate) struct Tx<'a> {
    pub cx: HostAccess<'a>,
    pub events: &'a mut dyn FnMut(&Event),
    pub journal: Journal,
    pub devices: Vec<DevId>,
    pub steps: Vec<Step>,
    /// The host before the transaction; its devices have the names that they had then.
    pub before: Snapshot,
    /// Values at the start of every setting that is changed or may be disturbed.
    pub start: SettingMap,
    pub now: Snapshot,
    /// Nothing was written since the whole host was read into `now`.
    pub fresh: bool,
    /// Devices that were restarted by a step and not read again since.
    pub stale: BTreeSet<String>,
    pub out: Outcome,
    pub learned: Vec<Learned>,
    /// Steps that were refused or ignored, and are allowed to be. The verification skips them.
    pub given_up: BTreeSet<Address>,
    /// The guard, which restores the settings if this process dies.
    pub guard: Option<Box<dyn Armed>>,
    pub replan: Replan,
}

/// State of planning again after refusals.
#[derive(Debug, Default)]
pub(crate) struct Replan {
    pub plans: u32,
    /// Something was learned since the last plan.
    pub due: Option<Due>,
    /// Settings that were refused or ignored; the new plan is complete without them.
    pub not_needed: BTreeSet<Address>,
    /// Addresses whose steps interrupt traffic in the plan that the user has approved.
    pub approved: Option<BTreeSet<Address>>,
}

#[derive(Debug)]
pub(crate) struct Due {
    pub family: Family,
    /// Later steps depend on the refused one: they cannot be done without a new plan.
    pub or_fail: Option<Failure>,
}

impl<'a> Tx<'a> {
    /// A transaction without steps and without a guard.
    pub(crate) fn new(
        cx: HostAccess<'a>,
        events: &'a mut dyn FnMut(&Event),
        journal: Journal,
        now: Snapshot,
        out: Outcome,
    ) -> Self {
        Self {
            cx,
            events,
            journal,
            devices: Vec::new(),
            steps: Vec::new(),
            before: now.clone(),
            start: SettingMap::new(),
            now,
            fresh: true,
            stale: BTreeSet::new(),
            out,
            learned: Vec::new(),
            given_up: BTreeSet::new(),
            guard: None,
            replan: Replan::default(),
        }
    }
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
            ..Failure::new(ringwise_sys::io_text(e), "the journal cannot be written")
        }
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

    /// Reads a device again that a step has restarted, after its link is back.
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
                    return Err(Failure::new(words, "it carried traffic before the device was restarted").into());
                }
                self.note(words);
            }
        }
        self.look()?;
        // The device was renamed during the wait, so the wait was for its old name.
        for (name, id) in waited.iter().zip(known) {
            let found = id.and_then(|id| self.now.nics.iter().find(|n| n.dev.same_device(&id)));
            self.stale.extend(found.filter(|n| n.name() != name).map(|n| n.name().to_string()));
        }
        if self.stale.is_empty() { Ok(()) } else { self.refresh(link_needed) }
    }

    pub(crate) fn name_before(&self, dev: &str) -> String {
        let Some(nic) = self.now.nic(dev) else { return dev.to_string() };
        self.before.nics.iter().find(|n| n.dev.same_device(&nic.dev)).map_or(dev, |n| n.dev.name.as_str()).to_string()
    }

    fn wait_for_link(&mut self, dev: &str) -> bool {
        const EACH: Duration = Duration::from_millis(100);
        let begin = self.cx.now();
        let mut wait_reported = false;
        loop {
            let name = dev.to_string();
            let up = self.cx.reading(move |h| ringwise_discover::carrier(h, &name));
            let took = self.cx.now().saturating_sub(begin);
            match up {
                Some(Fact::Known(true)) => {
                    if wait_reported {
                        self.event(Event::LinkBack { dev: dev.to_string(), took });
                    }
                    return true;
                }
                // The device is gone, so waiting does not help.
                Some(Fact::Absent) => return true,
                _ if took >= self.cx.policy.link_wait => return false,
                _ => {}
            }
            if !wait_reported {
                self.event(Event::LinkWait { dev: dev.to_string() });
                wait_reported = true;
            }
            self.cx.host.sleep(EACH);
        }
    }

    /// Discovers the host again, and follows devices that were renamed meanwhile.
    pub(crate) fn look(&mut self) -> Done {
        self.now = self.cx.look().map_err(|e| {
            let words = std::error::Error::source(&e).map_or(e.to_string(), |s| format!("{e}: {s}"));
            Failure::new(words, "the host cannot be read again")
        })?;
        self.fresh = true;
        let names = DeviceRenames::new(&self.devices, &self.now);
        let changed: Vec<String> = names.changed().map(|(a, b)| format!("{a} was renamed to {b}")).collect();
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

    /// Discovers the host again unless nothing was written since the last time.
    pub(crate) fn look_after_writes(&mut self) -> Done {
        if self.fresh { Ok(()) } else { self.look() }
    }

    /// Notes that writing this setting restarted its device.
    fn wrote(&mut self, address: &Address) {
        if address.interrupts_traffic_on(&self.now)
            && let Some(dev) = address.dev()
        {
            self.stale.insert(dev.to_string());
        }
    }

    /// Writes the setting, reports it, and tracks its side effects on what is known.
    pub(crate) fn put(&mut self, phase: Phase, setting: &Setting) -> WriteOutcome {
        self.event(Event::Writing { phase, setting: setting.clone() });
        let begin = self.cx.now();
        let before = matches!(setting, Setting::Feature { .. }).then(|| self.now.clone());
        self.fresh = false;
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
            WriteOutcome::Kept { now, how } => {
                let (now, how) = (now.clone(), how.clone());
                self.event(Event::Done { phase, setting: setting.clone(), now, how, took });
            }
            WriteOutcome::NotKept { .. } | WriteOutcome::Refused(_) => {}
            WriteOutcome::Failed(failure) => self.event(Event::Failed { phase, failure: failure.clone() }),
        }
        done
    }

    /// The present values of the transaction's settings, so that changes made outside ringwise can be found later.
    pub(crate) fn after(&self) -> Vec<Setting> {
        let steps = self.steps.iter().filter_map(|s| s.setting.address());
        let all: BTreeSet<Address> = self.start.keys().cloned().chain(steps).collect();
        all.iter().filter_map(|a| live(&self.now, a).known().cloned()).collect()
    }

    /// Checks at this moment: the CPU may have gone offline since the host was read. A CPU whose state cannot be read counts as
    /// offline.
    fn asks_for_an_offline_cpu(&self, setting: &Setting) -> bool {
        let (Setting::IrqCpus { cpus, .. }
        | Setting::XpsCpus { cpus, .. }
        | Setting::RpsCpus { cpus, .. }
        | Setting::NapiThread { cpus, .. }) = setting
        else {
            return false;
        };
        let online = self.cx.reading(ringwise_discover::online_now);
        online.as_ref().and_then(Fact::known).is_none_or(|online| !cpus.is_subset(online))
    }

    /// Returns `false` if the result is not a property of the device.
    pub(crate) fn learn(&mut self, setting: &Setting, what: LearnedWrite) -> bool {
        let (Some(address), Fact::Known(kernel)) = (setting.address(), &self.now.host.kernel) else { return false };
        // A refusal by a program is not a property of the device, and neither is a failure because a CPU is offline.
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

pub(crate) fn guard_gone() -> Failure {
    Failure::new("the guard is gone", "without it, nothing would be restored if this process died")
}

pub(crate) fn not_kept(setting: &Setting, now: &Fact<Setting>) -> Failure {
    let family = setting.address().map_or("setting", |a: Address| Family::title(a.family()));
    let words = match now {
        Fact::Known(n) => format!("accepted, but reads back as {}", n.value_text_beside(setting)),
        Fact::Absent => "it is gone".to_string(),
        Fact::Unknown(Unread { why, .. }) => format!("it cannot be read back: {why}"),
    };
    let by_others = || format!("the driver or another program does not keep the {family} at {}", setting.value_text());
    let meaning = features::meaning(setting).unwrap_or_else(by_others);
    Failure { setting: Some(setting.clone()), ..Failure::new(words, meaning) }
}
