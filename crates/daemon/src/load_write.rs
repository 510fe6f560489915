//! Writes what an adapter wants, as a transaction: a table, the CPU of an interrupt with the XPS masks that follow it, or an RPS mask.

use std::collections::BTreeSet;
use std::time::Duration;

use ringwise_adapt::Settled;
use ringwise_adapt::moves::InterruptMove;
use ringwise_apply::{BalancedSetting, Refusal, Request, RunResult, balance_step};
use ringwise_discover::{Options, Parts};
use ringwise_knob::{Address, Reason, Setting, VectorName, irq};
use ringwise_model::words::with_causes;
use ringwise_model::{CpuId, CpuSet, Dir, Nic, Title, TxQueue};

use crate::act::action;
use crate::event::Event;
use crate::follow::{LoadChange, LoadWrite, WriteReason};
use crate::link_watch::LinkWatch;
use crate::load::by_service;
use crate::service::Service;
use crate::setting_move::SettingMove;
use crate::state::{ActionCause, ActionEnding};

/// For reading the device before a write.
const DEADLINE: Duration = Duration::from_secs(2);

impl Service<'_> {
    /// Writes what an adapter wants, and reports to it what became of that.
    pub(crate) fn write_move(&mut self, write: &LoadWrite) {
        let settled = match self.guard_of_tables() {
            Ok(()) => self.changes(write).map_or_else(|settled| settled, |changes| self.try_write(write, changes)),
            Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => Settled::NotWritten,
            Err(e) => {
                let what = match write.change {
                    LoadChange::Table { .. } => "the RSS table is not changed",
                    LoadChange::Interrupt(_) => "no interrupt is moved",
                    LoadChange::Rps(_) => "no RPS mask is changed",
                };
                self.note_once(format!("{}: {what}: {}", write.dev, with_causes(&e)));
                Settled::Refused
            }
        };
        let host = self.host.clone();
        if let Some(follow) = &mut self.follow {
            follow.settled(host.as_ref(), write, settled);
        }
        let (WriteReason::Better { finding, .. } | WriteReason::Restore { finding }) = &write.why;
        if settled == Settled::Written {
            self.state.count_move(&write.dev, write.actuator, write.reason);
            self.found(write.dev.clone(), finding.clone());
        }
    }

    /// The setting that follows the load, and those that follow it.
    ///
    /// Errors: nothing can be written.
    fn changes(&self, write: &LoadWrite) -> Result<Vec<SettingMove>, Settled> {
        let dev = || write.dev.clone();
        let base_of = |address: &Address, from: &Setting| self.base_of(address, from);
        match &write.change {
            LoadChange::Table { from, to } => {
                let table = |queues: &[u32]| Setting::RssTable { dev: dev(), table: queues.to_vec() };
                let (address, from, to) = (Address::RssTable { dev: dev() }, table(from), table(to));
                let base = base_of(&address, &from).unwrap_or_else(|| from.clone());
                Ok(vec![SettingMove { address, from, to, base }])
            }
            LoadChange::Rps(m) => {
                let mask = |cpus: &BTreeSet<u32>| Setting::RpsCpus {
                    dev: dev(),
                    queue: m.queue,
                    cpus: cpus.iter().map(|c| CpuId(*c)).collect(),
                };
                let address = Address::RpsCpus { dev: dev(), queue: m.queue };
                let (from, to) = (mask(&m.from), mask(&m.to));
                let base = base_of(&address, &from).unwrap_or_else(|| from.clone());
                Ok(vec![SettingMove { address, from, to, base }])
            }
            LoadChange::Interrupt(m) => {
                let nic =
                    ringwise_discover::device(self.host, &write.dev, DEADLINE).map_err(|_| Settled::NotWritten)?;
                let (of, mask) = interrupt(&nic, m)?;
                let address = Address::IrqCpus { dev: dev(), of };
                let cpus = |cpus: CpuSet, on| Setting::IrqCpus { dev: dev(), of, cpus, on };
                let from = cpus(mask.clone(), None);
                let (now, next) = (CpuId(m.from), CpuId(m.to));
                // A base of several CPUs comes back with the one that serves the interrupt now.
                let found = || cpus(mask.clone(), Some(now).filter(|_| mask.len() > 1));
                let base = base_of(&address, &from).unwrap_or_else(found);
                let to = match &base {
                    Setting::IrqCpus { cpus, on, .. } if *on == Some(next) || *cpus == CpuSet::one(next) => {
                        base.clone()
                    }
                    _ => cpus(CpuSet::one(next), None),
                };
                let mut out = vec![SettingMove { address, from, to, base }];
                for (address, from, to) in self.xps(&nic, m).unwrap_or_default() {
                    let base = base_of(&address, &from).unwrap_or_else(|| from.clone());
                    out.push(SettingMove { address, from, to, base });
                }
                Ok(out)
            }
        }
    }

    /// The base of a setting that was moved before. `None`: its present value is the base.
    fn base_of(&self, address: &Address, from: &Setting) -> Option<Setting> {
        let earlier = self.balanced.iter().find(|t| t.address == *address && t.moved == *from);
        earlier.map(|t| t.base.clone())
    }

    /// XPS masks that follow the interrupt: as the plan would lay them out, if they are so for the present CPUs. `None`: they stay.
    fn xps(&self, nic: &Nic, m: &InterruptMove) -> Option<Vec<(Address, Setting, Setting)>> {
        let goal = *self.machine.xps.get(nic.name())?;
        let devs = [nic.name().to_string()];
        let parts = Parts { cores: true, ..Parts::LEAST };
        let options = Options { parts, ..Options::layout(&devs) };
        let host = ringwise_discover::snapshot(self.host, &options).ok()?;
        let vector = |q: &TxQueue| nic.vector_of(Dir::Tx, q.id);
        let moved = nic.vector_of(Dir::Rx, *m.queues.first()?)?.irq;
        let cpu = |q: &TxQueue| vector(q)?.taken_by().filter(|c| c.len() == 1)?.first();
        let next = |q: &TxQueue| if vector(q)?.irq == moved { Some(CpuId(m.to)) } else { cpu(q) };
        let of = |cpu: &dyn Fn(&TxQueue) -> Option<CpuId>| -> Option<Vec<CpuSet>> {
            let cpus: Vec<CpuId> = nic.tx_queues.iter().map(cpu).collect::<Option<_>>()?;
            ringwise_intent::xps_masks(nic, &host.topology, goal, &cpus)
        };
        let (now, next) = (of(&cpu)?, of(&next)?);
        let live: Vec<CpuSet> = nic.tx_queues.iter().map(|q| q.xps_cpus.known().cloned()).collect::<Option<_>>()?;
        if live != now {
            return None;
        }
        let changes = nic.tx_queues.iter().zip(live.into_iter().zip(next)).filter(|(_, (from, to))| from != to);
        let mask = |q: &TxQueue, cpus| Setting::XpsCpus { dev: nic.name().into(), queue: q.id, cpus };
        let of = |(q, (from, to)): (&TxQueue, (CpuSet, CpuSet))| {
            let address = Address::XpsCpus { dev: nic.name().into(), queue: q.id };
            (address, mask(q, from), mask(q, to))
        };
        Some(changes.map(of).collect())
    }

    fn try_write(&mut self, write: &LoadWrite, changes: Vec<SettingMove>) -> Settled {
        let (cause, reason) = match &write.why {
            WriteReason::Better { before_percent, predicted_percent, .. } => {
                let (before_percent, predicted_percent) = (*before_percent, *predicted_percent);
                let reason = match &write.change {
                    LoadChange::Table { .. } => Reason::UnevenLoad { before_percent, predicted_percent },
                    LoadChange::Interrupt(m) => {
                        Reason::InterruptOnBusyCpu { cpu: m.from, before_percent, predicted_percent }
                    }
                    LoadChange::Rps(m) => Reason::MaskWithBusyCpu { cpu: m.cpu, before_percent, predicted_percent },
                };
                (ActionCause::Load, reason)
            }
            WriteReason::Restore { .. } => (ActionCause::LoadRestored, Reason::MoveTakenBack),
        };
        let of = |change: &SettingMove| match (&change.address, &write.change, &write.why) {
            (Address::XpsCpus { .. }, LoadChange::Interrupt(m), WriteReason::Better { .. }) => {
                Reason::XpsFollowsInterrupt { cpu: m.to }
            }
            _ => reason.clone(),
        };
        let steps = changes.into_iter().map(|c| (of(&c), c)).map(|(reason, c)| (c, reason)).collect();
        self.write_changes(&write.dev, cause, steps)
    }

    /// Writes these settings of an interface in one transaction, each for its reason.
    pub(crate) fn write_changes(
        &mut self,
        dev: &str,
        cause: ActionCause,
        steps: Vec<(SettingMove, Reason)>,
    ) -> Settled {
        let request = Request {
            title: Title::Balance { dev: dev.into() },
            base: steps.iter().map(|(c, _)| c.base.clone()).collect(),
            steps: steps.iter().map(|(c, why)| balance_step(c.to.clone(), c.from.clone(), why.clone())).collect(),
            ..by_service()
        };
        let watch = LinkWatch::before(self.host.as_ref(), dev, steps.iter().map(|(c, _)| &c.to));
        let result = self.run(&request, &self.policy());
        match &result {
            Ok(o) if o.verdict == RunResult::NothingToDo => return Settled::Written,
            Err(e) if matches!(e.refusal(), Some(Refusal::Changed { .. })) => return Settled::ChangedOutside,
            Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => return Settled::NotWritten,
            _ => {}
        }
        if result.is_ok() {
            self.watch_link(dev, watch);
        }
        let action = action(self.host.unix_time(), cause, vec![dev.into()], &result);
        let settled = match action.ending {
            ActionEnding::Kept => {
                let first = action.transaction.unwrap_or_default();
                for (SettingMove { address, to, base, .. }, _) in steps {
                    self.balanced.retain(|t| t.address != address);
                    self.balanced.push(BalancedSetting { dev: dev.into(), address, base, moved: to, first });
                }
                Settled::Written
            }
            // The adapter waits before the next one; corrections of the interface go on.
            _ => {
                self.state.totals.failed += 1;
                self.log(&Event::Acted(action.clone()));
                Settled::Refused
            }
        };
        self.remember(action);
        settled
    }
}

/// The name of the interrupt, and the CPUs that it may use now.
///
/// Errors: another CPU serves the queues than when the step was made, or this is unknown.
fn interrupt(nic: &Nic, m: &InterruptMove) -> Result<(VectorName, CpuSet), Settled> {
    let vectors = m.queues.iter().map(|q| nic.vector_of(Dir::Rx, *q));
    let vectors: Vec<_> = vectors.collect::<Option<_>>().ok_or(Settled::ChangedOutside)?;
    let vector = vectors.first().ok_or(Settled::NotWritten)?;
    let of = irq::canonical(vector).ok_or(Settled::NotWritten)?;
    let mask = vector.asked.known().ok_or(Settled::NotWritten)?;
    let there = vector.taken_by().is_some_and(|cpus| *cpus == CpuSet::one(CpuId(m.from)));
    match there && vectors.iter().all(|v| v.irq == vector.irq) {
        true => Ok((of, mask.clone())),
        false => Err(Settled::ChangedOutside),
    }
}
