//! One look at the host: what differs from what was applied, why, and what follows.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_apply::{Ending, HistoryEntry, JournalFiles, Journals, SettingInEffect, TransactionKind, Verify};
use ringwise_discover::Options;
use ringwise_intent::Wanted;
use ringwise_knob::{Address, Family, ManualChange, Match, Setting, SettingMap};
use ringwise_model::words::with_causes;
use ringwise_model::{CpuSet, Nic, Snapshot};

use crate::act::PendingWrites;
use crate::compared::{Ahead, Compared, LoadLayout, Prepared};
use crate::event::Event;
use crate::evidence::NotificationEvidence;
use crate::keep::{KeepDecision, KeepInput, decide, steers_flows};
use crate::losses::SettingLoss;
use crate::replan::{Basis, configured, part, plan_again, standing};
use crate::service::{Next, Service};
use crate::state::ActionCause;
use crate::unchanged::{WatchList, WatchedValues};

/// The program that `Loss::Ban` is about.
const IRQBALANCE: &str = "irqbalance";

impl Service<'_> {
    /// `full`: something was heard; otherwise only what is in effect is compared.
    pub(crate) fn look(&mut self, full: bool) {
        let moment = self.moment();
        let full = if self.pauses.expire(moment) {
            // What was heard before the pause is forgotten.
            self.evidence.lost();
            true
        } else {
            full || self.unsettled
        };
        let prepared = self.prepared.take().filter(|_| full && self.knows_all_journals());
        // What was prepared has been read already; time matters then.
        let read = match prepared {
            Some(_) => None,
            None => self.to_read.as_mut().and_then(|r| r.read(self.host)),
        };
        let programs = self.notice_programs();
        if !full && !programs && self.is_unchanged(read.as_ref()) {
            let now = self.now();
            self.schedule.looked(now);
            return;
        }
        if let Some(follow) = &mut self.follow {
            follow.changed(full);
        }
        if full {
            self.groups.changed();
        }
        let before = self.to_read.take();
        let next = if self.state.paused { Ok(Next::Done) } else { self.decide(full, prepared) };
        // What was read before the host was read is a basis only if the same has to be read again.
        let is_basis = next == Ok(Next::Done) && before.is_some();
        self.seen = read.filter(|_| is_basis && self.reads_as(before.as_ref()));
        let now = self.now();
        self.schedule.looked(now);
        match next {
            Ok(Next::Done) => {
                self.evidence = NotificationEvidence::default();
                self.unsettled = std::mem::take(&mut self.retry);
                self.clear_problem();
            }
            // What was heard explains what the next look finds. While a person's trial runs, the interval is soon enough.
            Ok(Next::Later) => {
                self.unsettled = true;
                if !self.schedule.may_write(now) {
                    self.schedule.heard(now);
                }
            }
            Err(why) => {
                self.unsettled = true;
                self.report_problem(&why);
            }
        }
        if let Some(guardian) = &self.setup.guard {
            guardian.release();
        }
        self.publish_state();
        ringwise_sys::memory::give_back();
    }

    /// Nothing that the last comparison depended on has changed, and it read what it needed.
    pub(crate) fn is_unchanged(&self, read: Option<&WatchedValues>) -> bool {
        let is_complete = self.link_losses.known && !self.unsettled;
        is_complete && self.knows_all_journals() && read.is_some() && read == self.seen.as_ref()
    }

    /// No transaction began or ended since the last comparison.
    pub(crate) fn knows_all_journals(&self) -> bool {
        self.journals.as_ref().is_some_and(JournalFiles::are_current)
    }

    fn reads_as(&self, before: Option<&WatchList>) -> bool {
        self.to_read.as_ref().zip(before).is_some_and(|(a, b)| a.reads_the_same(b))
    }

    /// How many settings are in effect.
    pub(crate) fn kept(&self) -> usize {
        self.state.keeps
    }

    fn decide(&mut self, full: bool, prepared: Option<Prepared>) -> Result<Next, String> {
        let mut next = Next::Done;
        // A host that was as configured has no transaction; what it loses, or gets, later is applied like the first time.
        if full && (!self.configured || self.unrecorded) {
            next = self.configure_once()?;
        }
        let (seen, ahead) = match prepared {
            Some(p) => (Some(p.seen), Some(p.ahead)),
            None => (self.compare()?, None),
        };
        self.unrecorded = seen.is_none();
        let Some(mut seen) = seen else {
            self.permitted.clear();
            self.machine = LoadLayout::default();
            self.note_no_transactions();
            return Ok(next);
        };
        self.state.keeps = seen.in_effect.settings.len();
        self.to_read = Some(WatchList::of(&seen.in_effect, &seen.now));
        if seen.in_effect.running.is_some() || seen.in_effect.trial.is_some() {
            return Ok(Next::Later);
        }
        if let Some(id) = seen.in_effect.unfinished {
            return self.recover(id, &seen.now);
        }
        if let Some(newer) = seen.in_effect.newer.first() {
            return Err(format!("transaction {} cannot be read: {}", newer.transaction, newer.why));
        }
        let newly_isolated = self.notice(&seen.now);
        self.notice_rollbacks(&seen.undone);
        self.check_links();
        self.note_link_losses(&seen.now);
        if ahead.is_none() {
            self.note_requests(&seen);
        }
        if self.named_flows.iter().any(|n| n.last.is_none()) {
            self.notice_programs();
        }
        if self.end_moves(&seen)
            && let Some(again) = self.compare()?
        {
            seen = again;
        }
        let resting = self.pauses.names();
        let t = self.keep_decision(&seen, &resting, &newly_isolated);
        self.report_manual(&t, &seen);
        let work = self.work(full, t, &seen, &resting, ahead)?;
        self.note(&work.notes);
        if work.steps.is_empty() && !work.record {
            return Ok(next);
        }
        let now = self.now();
        if !self.schedule.may_write(now) {
            return Ok(Next::Later);
        }
        Ok(if self.act(work, &seen.now)? == Next::Later { Next::Later } else { next })
    }

    /// What has to be written, from what was read.
    pub(crate) fn keep_decision(
        &self,
        seen: &Compared,
        resting: &BTreeSet<String>,
        newly_isolated: &CpuSet,
    ) -> KeepDecision {
        decide(KeepInput {
            now: &seen.now,
            in_effect: &seen.in_effect,
            base: &seen.base,
            balanced: &seen.balanced,
            programs: &self.devices_of_programs(),
            evidence: &self.evidence,
            anew: &seen.anew,
            resting,
            newly_isolated,
            known: &self.known,
        })
    }

    /// Looks for changes that the kernel does not report with a notification. Returns the CPUs that were isolated since the first look.
    pub(crate) fn notice(&mut self, now: &Snapshot) -> CpuSet {
        self.notice_queues(now);
        self.notice_isolation(now)
    }

    /// Reads what is needed for the comparison. `None`: no transaction was ever recorded.
    pub(crate) fn compare(&mut self) -> Result<Option<Compared>, String> {
        self.journals = None;
        let (seen, files) = self.compared()?;
        self.journals = Some(files);
        if seen.is_none() {
            self.state.keeps = 0;
        }
        Ok(seen)
    }

    /// The same, with the journals that were read. Nothing is noted: only a look may take note of new journals.
    pub(crate) fn compared(&self) -> Result<(Option<Compared>, JournalFiles), String> {
        let all = self.read_journals()?;
        let families = all.families();
        if families.is_empty() {
            return Ok((None, all.files().clone()));
        }
        let skip_rivals = !families.contains(&Family::Rivals);
        let parts = ringwise_apply::parts(&families);
        let follow = self.wanted.as_ref().map(Wanted::named).unwrap_or_default();
        let options = Options { parts, skip_rivals, skip_control: true, follow, ..Options::all() };
        let mut now = ringwise_discover::snapshot(self.host, &options).map_err(|e| e.to_string())?;
        // A transaction that ended meanwhile must not look like a manual change.
        let all = all.fresh().map_err(|e| with_causes(&e))?;
        let files = all.files().clone();
        let mut in_effect = all.verify(&now);
        if !skip_rivals && in_effect.settings.iter().any(interrupt_differs) && bans_hold(&in_effect) {
            // irqbalance was read at the same time as the interrupts: it may have been started, and have moved them, after that.
            let again = ringwise_discover::competing_programs::irqbalance(self.host.as_ref(), None);
            if !again.is_absent() {
                now.host.irqbalance = again;
                in_effect = all.verify(&now);
            }
        }
        let (anew, balanced) = (all.reinitialized(&now), all.balanced(&now));
        let base = all.without_service();
        let undone = undone(&base.history(&now.host));
        Ok((Some(Compared { base: base.verify(&now), now, in_effect, anew, balanced, undone }), files))
    }

    fn read_journals(&self) -> Result<Journals, String> {
        Journals::read(&self.setup.store).map_err(|e| with_causes(&e))
    }

    /// Drivers change their queues without a notification for `ethtool -L`: igb when virtual functions are made and removed.
    fn notice_queues(&mut self, now: &Snapshot) {
        let count = |n: &Nic| (n.name().to_string(), [n.rx_queues.len(), n.tx_queues.len()]);
        let counts: BTreeMap<_, _> = now.nics.iter().map(count).collect();
        let before = std::mem::replace(&mut self.queue_counts, counts);
        for (name, queues) in &self.queue_counts {
            if before.get(name).is_some_and(|b| b != queues) {
                self.evidence.other_queues(name);
            }
        }
    }

    /// Neither a cpuset that isolates CPUs at run time nor a kubelet or container runtime sends a notification.
    /// Returns the CPUs that were isolated since the first look.
    fn notice_isolation(&mut self, now: &Snapshot) -> CpuSet {
        let isolated: CpuSet = now.topology.isolated_all();
        if self.isolated.as_ref().is_some_and(|before| *before != isolated) {
            self.evidence.cpus = true;
        }
        let first = self.isolated_at_first.get_or_insert_with(|| isolated.clone());
        let newly = isolated.difference(first);
        self.isolated = Some(isolated);
        newly
    }

    /// Reports each manual change once.
    fn report_manual(&mut self, t: &KeepDecision, seen: &Compared) {
        let present: SettingMap =
            t.manual.iter().filter_map(|m| Some((m.address()?, m.setting.clone()))).collect::<BTreeMap<_, _>>();
        for m in &t.manual {
            let old = m.address().is_some_and(|a| self.known.get(&a) == Some(&m.setting));
            if !old {
                self.state.totals.manual += 1;
                self.log(&Event::Manual(Box::new(m.clone())));
            }
        }
        // A setting of an interface that is away may come back as it was.
        let resting = self.pauses.names();
        let away = |a: &Address| a.dev().is_some_and(|d| seen.now.nic(d).is_none() || resting.contains(d));
        self.known.retain(|a, _| away(a));
        self.known.extend(present);
        self.state.manual.retain(|m| m.setting.dev().is_some_and(|d| resting.contains(d)));
        self.state.manual.extend(t.manual.iter().cloned());
    }

    /// The steps of this look.
    fn work(
        &mut self,
        full: bool,
        t: KeepDecision,
        seen: &Compared,
        resting: &BTreeSet<String>,
        ahead: Option<Ahead>,
    ) -> Result<PendingWrites, String> {
        let mut paused = self.contested(&t);
        paused.extend(resting.iter().cloned());
        let basis = self.basis(seen, &t.manual);
        let mut plan = t.plan.clone();
        let (appeared, planned) = match ahead {
            Some(ahead) => (ahead.appeared, ahead.planned),
            None if full => (self.appeared(seen, &basis), None),
            None => (BTreeSet::new(), None),
        };
        plan.extend(appeared.iter().cloned());
        plan.extend(t.flows.iter().cloned());
        plan.retain(|d| !paused.contains(d));
        let mut undone = t.undone;
        undone.retain(|s| s.dev().is_none_or(|d| !paused.contains(d)));
        let record = !undone.is_empty();
        let mut work = PendingWrites { steps: t.steps, record, already: undone, ..PendingWrites::default() };
        work.already.extend(t.held.into_iter().filter(|s| s.dev().is_none_or(|d| !paused.contains(d))));
        work.steps.retain(|s| s.setting.dev().is_none_or(|d| !paused.contains(d)));
        work.cause = match t.lost.values().next() {
            Some(loss) => ActionCause::of(*loss),
            None if self.evidence.cpus => ActionCause::Cpus,
            None if t.plan.is_empty() && !t.flows.is_empty() => ActionCause::Programs,
            None if t.plan.is_empty() && !appeared.is_empty() => ActionCause::Appeared,
            None => ActionCause::Reset,
        };
        if !plan.is_empty() {
            let again = match planned.filter(|p| p.interfaces == plan) {
                Some(p) => p.result?,
                None => plan_again(&plan, &basis)?,
            };
            let flows_only = |s: &Setting| {
                s.dev().is_some_and(|d| t.flows.contains(d) && !t.plan.contains(d) && !appeared.contains(d))
            };
            let taken = |s: &Setting| !flows_only(s) || s.address().as_ref().is_some_and(steers_flows);
            // The plan covers what steers flows, also where some of it was lost.
            let planned = |s: &Setting| {
                let steers = s.address().as_ref().is_some_and(steers_flows);
                steers && s.dev().is_some_and(|d| t.flows.contains(d))
            };
            work.steps.retain(|s| !planned(&s.setting));
            work.steps.extend(again.steps.into_iter().filter(|s| taken(&s.setting)));
            work.already.extend(again.already.into_iter().filter(taken));
            work.notes = again.why_not;
        }
        Ok(work)
    }

    pub(crate) fn basis<'b>(&'b self, seen: &'b Compared, manual: &'b [ManualChange]) -> Basis<'b> {
        Basis {
            host: self.host,
            store: &self.setup.store,
            wanted: self.wanted.as_ref(),
            in_effect: &seen.in_effect,
            manual,
            anew: &seen.anew,
        }
    }

    /// Logs once why an interface has no new plan.
    fn note(&mut self, notes: &[String]) {
        let new: Vec<&String> = notes.iter().filter(|n| !self.noted.contains(n)).collect();
        for text in new.into_iter().cloned().collect::<Vec<_>>() {
            self.log(&Event::Note(text));
        }
        self.noted = notes.to_vec();
    }

    /// Interfaces on which a competing program moved settings back too often.
    fn contested(&mut self, t: &KeepDecision) -> BTreeSet<String> {
        let moment = self.moment();
        let banned = t.lost.iter().filter(|(_, loss)| **loss == SettingLoss::Ban).map(|(dev, _)| dev.clone());
        let mut out = BTreeSet::new();
        for dev in banned.collect::<Vec<_>>() {
            if !self.wrote_to(&dev) || !self.pauses.moved_back(&dev, IRQBALANCE, moment) {
                continue;
            }
            let list = self.pauses.list();
            let until = list.iter().find(|p| p.interface == dev).and_then(|p| p.until_unix).unwrap_or_default();
            self.log(&Event::Paused { interface: dev.clone(), program: IRQBALANCE.into(), until_unix: until });
            out.insert(dev);
        }
        out
    }

    /// Interfaces that what was requested covers, and that have no setting in effect.
    pub(crate) fn appeared(&self, seen: &Compared, basis: &Basis) -> BTreeSet<String> {
        let standing = standing(&seen.now, basis);
        let parts = standing.parts(&seen.now);
        let has = |dev: &str| seen.in_effect.settings.iter().any(|s| s.want.dev() == Some(dev));
        let wanted = configured(&seen.now, basis);
        let covered = |dev: &str| part(&parts.list, dev, wanted.as_ref()).is_some();
        let tunable = seen.now.tunable().map(|n| n.name().to_string());
        tunable.filter(|d| !has(d) && covered(d) && !seen.undone.contains(d)).collect()
    }

    /// Whether a person, or the configuration, has applied or undone anything in this boot.
    pub(crate) fn has_transaction_of_a_person(&self) -> Result<bool, String> {
        let base = self.read_journals()?.without_service();
        let (host, _) = ringwise_discover::host_without_rivals(self.host.as_ref());
        Ok(base.history(&host).iter().any(of_this_boot))
    }
}

fn bans_hold(v: &Verify) -> bool {
    v.settings.iter().filter(|s| matches!(s.want, Setting::IrqbalanceBan { .. })).all(|s| s.how.holds())
}

fn interrupt_differs(s: &SettingInEffect) -> bool {
    matches!(s.want, Setting::IrqCpus { .. }) && s.how == Match::Differs
}

/// Interfaces whose last transaction is a rollback.
fn undone(history: &[HistoryEntry]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for e in history.iter().filter(|e| of_this_boot(e)) {
        match e.kind {
            TransactionKind::Rollback { .. } => out.extend(e.devices.iter().cloned()),
            _ => e.devices.iter().for_each(|d| _ = out.remove(d)),
        }
    }
    out
}

fn of_this_boot(e: &HistoryEntry) -> bool {
    e.this_boot && matches!(e.ending, Ending::Kept | Ending::OnTrial { .. })
}
