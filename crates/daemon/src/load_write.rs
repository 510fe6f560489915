//! Writes what an adapter wants: a table, or the CPU of an interrupt, as a transaction.

use std::time::Duration;

use ringwise_adapt::Settled;
use ringwise_adapt::moves::InterruptMove;
use ringwise_apply::{BalancedSetting, Refusal, Request, Verdict, balance_step};
use ringwise_knob::{Address, Reason, Setting, irq};
use ringwise_model::words::with_causes;
use ringwise_model::{CpuId, CpuSet, Dir, Title};

use crate::act::action;
use crate::event::Event;
use crate::follow::{LoadChange, LoadWrite, WriteReason};
use crate::load::by_service;
use crate::service::Service;
use crate::state::{ActionEnding, Cause};

/// For reading the device before a write.
const DEADLINE: Duration = Duration::from_secs(2);

/// A setting that follows the load: its value now, as it shall be, and from before the first move.
struct Change {
    address: Address,
    from: Setting,
    to: Setting,
    base: Setting,
}

impl Service<'_> {
    /// Writes what an adapter wants, and reports to it what became of that.
    pub(crate) fn write_move(&mut self, write: &LoadWrite) {
        let settled = match self.guard_of_tables() {
            Ok(()) => self.change(write).map_or_else(|settled| settled, |change| self.try_write(write, change)),
            Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => Settled::NotWritten,
            Err(e) => {
                let what = match write.change {
                    LoadChange::Table { .. } => "the RSS table is not changed",
                    LoadChange::Interrupt(_) => "no interrupt is moved",
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
            self.found(write.dev.clone(), finding.clone());
        }
    }

    /// Errors: nothing can be written.
    fn change(&self, write: &LoadWrite) -> Result<Change, Settled> {
        let dev = || write.dev.clone();
        let base_of = |address: &Address, from: &Setting| {
            let earlier = self.balanced.iter().find(|t| t.address == *address && t.moved == *from);
            earlier.map(|t| t.base.clone())
        };
        match &write.change {
            LoadChange::Table { from, to } => {
                let table = |queues: &[u32]| Setting::RssTable { dev: dev(), table: queues.to_vec() };
                let (address, from, to) = (Address::RssTable { dev: dev() }, table(from), table(to));
                let base = base_of(&address, &from).unwrap_or_else(|| from.clone());
                Ok(Change { address, from, to, base })
            }
            LoadChange::Interrupt(m) => {
                let (of, mask) = self.interrupt(&write.dev, m)?;
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
                Ok(Change { address, from, to, base })
            }
        }
    }

    /// The name of the interrupt, and the CPUs that it may use now.
    ///
    /// Errors: another CPU serves the queues than when the step was made, or this is unknown.
    fn interrupt(&self, dev: &str, m: &InterruptMove) -> Result<(ringwise_knob::VectorName, CpuSet), Settled> {
        let nic = ringwise_discover::device(self.host, dev, DEADLINE).map_err(|_| Settled::NotWritten)?;
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

    fn try_write(&mut self, write: &LoadWrite, change: Change) -> Settled {
        let Change { address, from, to, base } = change;
        let (cause, reason) = match &write.why {
            WriteReason::Better { before_percent, predicted_percent, .. } => {
                let (before_percent, predicted_percent) = (*before_percent, *predicted_percent);
                let reason = match &write.change {
                    LoadChange::Table { .. } => Reason::UnevenLoad { before_percent, predicted_percent },
                    LoadChange::Interrupt(m) => {
                        Reason::InterruptOnBusyCpu { cpu: m.from, before_percent, predicted_percent }
                    }
                };
                (Cause::Load, reason)
            }
            WriteReason::Restore { .. } => (Cause::LoadRestored, Reason::MoveTakenBack),
        };
        let request = Request {
            title: Title::Balance { dev: write.dev.clone() },
            base: vec![base.clone()],
            steps: vec![balance_step(to.clone(), from, reason)],
            ..by_service()
        };
        let result = self.run(&request, &self.policy());
        match &result {
            Ok(o) if o.verdict == Verdict::NothingToDo => return Settled::Written,
            Err(e) if matches!(e.refusal(), Some(Refusal::Changed { .. })) => return Settled::ChangedOutside,
            Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => return Settled::NotWritten,
            _ => {}
        }
        let action = action(self.host.unix_time(), cause, vec![write.dev.clone()], &result);
        let settled = match action.ending {
            ActionEnding::Kept => {
                self.balanced.retain(|t| t.address != address);
                let first = action.transaction.unwrap_or_default();
                self.balanced.push(BalancedSetting { dev: write.dev.clone(), address, base, moved: to, first });
                Settled::Written
            }
            // The adapter waits before the next one; corrections of the interface go on.
            _ => {
                self.state.totals.failed += 1;
                self.say(&Event::Acted(action.clone()));
                Settled::Refused
            }
        };
        self.remember(action);
        settled
    }
}
