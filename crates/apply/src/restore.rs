//! Restoring: the same machine runs forward, towards the values at the start.

use std::collections::BTreeMap;

use ringwise_knob::features::waits;
use ringwise_knob::{Address, compare, diff, live, offline};
use ringwise_model::{CpuSet, Fact};

use crate::record::Record;
use crate::tx::{Done, Tx, not_kept};
use crate::write_setting::WriteOutcome;
use crate::{Event, Failure, NotPutBack, Phase, RunResult};

/// Restoring one setting may disturb another (channels after XPS was written), so the host is read and restored this often.
const ROUNDS: u32 = 3;

impl Tx<'_> {
    /// Restores as much of the start as possible, continues after every failure, and reports what is left.
    pub(crate) fn restore(&mut self, why: Failure) {
        let text = match &why.setting {
            Some(s) => format!("{}: {}", s.address().map(|a| a.to_string()).unwrap_or_default(), why.words),
            None => why.words.clone(),
        };
        self.event(Event::PuttingBack { why: text.clone() });
        if why.late {
            self.note("the call that timed out may still take effect: check with ringwise verify".into());
        }
        self.out.failed = Some(why);
        self.back_to_start(text);
        self.out.verdict =
            if self.out.put_back_incomplete.is_empty() { RunResult::PutBack } else { RunResult::PutBackIncomplete };
        self.out.changed = !self.out.put_back_incomplete.is_empty();
        self.out.pending.clear();
    }

    pub(crate) fn back_to_start(&mut self, why: String) {
        if let Err(e) = self.record(Record::PutBack { why }) {
            let path = self.journal.path().display();
            self.note(format!("{}: {path}: {}", e.meaning, e.words));
        }
        let mut errors: BTreeMap<Address, String> = BTreeMap::new();
        // A call that exceeded its deadline may have restarted a device.
        let restarted = self.start.keys().filter(|a| a.interrupts_traffic_on(&self.now)).filter_map(Address::dev);
        self.stale.extend(restarted.map(str::to_string).collect::<Vec<_>>());
        for _ in 0..ROUNDS {
            // An earlier call that exceeded its deadline may have taken effect since the last look.
            if !self.look_again(&mut errors) || !self.look_at_all(&mut errors) {
                break;
            }
            let mut todo = diff(&self.now, &self.start);
            crate::bond::order_changes(&self.now, &mut todo);
            if todo.is_empty() {
                break;
            }
            let mut wrote = false;
            for change in todo {
                if !self.look_again(&mut errors) {
                    break;
                }
                // An earlier channel change may have restored this setting already, or may not have created its queue.
                let compared = compare(&change.to, &self.now);
                if compared.holds() || matches!(live(&self.now, &change.address), Fact::Absent) {
                    continue;
                }
                // The setting is restored when the setting that it depends on is.
                if waits(&self.now, &change.to) {
                    continue;
                }
                // The remaining part, or all of it, waits for CPUs that are offline.
                let Some(to) = offline::accepted(&change.to, &self.now.topology.online) else { continue };
                if to != change.to && compare(&to, &self.now).holds() {
                    continue;
                }
                self.wait_for_others(&to);
                match self.put(Phase::PutBack, &to) {
                    WriteOutcome::Kept { .. } => {
                        wrote = true;
                        errors.remove(&change.address);
                        if !self.out.put_back.contains(&to) {
                            self.out.put_back.push(to);
                        }
                    }
                    WriteOutcome::NotKept { now } => {
                        let failure = not_kept(&to, &now);
                        errors.insert(change.address, failure.words.clone());
                        self.event(Event::Failed { phase: Phase::PutBack, failure });
                    }
                    WriteOutcome::Refused(failure) => {
                        errors.insert(change.address, failure_text(&failure));
                        self.event(Event::Failed { phase: Phase::PutBack, failure });
                    }
                    WriteOutcome::Failed(failure) => {
                        errors.insert(change.address, failure_text(&failure));
                    }
                }
            }
            if !wrote {
                break;
            }
            // Only reading the host again shows whether everything stayed as written.
            if let Err(f) = self.look() {
                self.note(failure_text(&f));
                break;
            }
        }
        self.account(&errors);
    }

    /// Waits for devices that restarted. `false`: the host cannot be discovered, so nothing more can be done.
    fn look_again(&mut self, errors: &mut BTreeMap<Address, String>) -> bool {
        let looked = self.refresh(false);
        self.or_unreadable(looked, errors)
    }

    /// Discovers the host again after a write. `false`: as above.
    fn look_at_all(&mut self, errors: &mut BTreeMap<Address, String>) -> bool {
        let looked = self.look_after_writes();
        self.or_unreadable(looked, errors)
    }

    fn or_unreadable(&self, looked: Done, errors: &mut BTreeMap<Address, String>) -> bool {
        let Err(f) = looked else { return true };
        for a in self.start.keys() {
            errors.entry(a.clone()).or_insert_with(|| failure_text(&f));
        }
        false
    }

    /// Verifies by discovering the host again, and lists each setting that is not as before with the command that restores it.
    fn account(&mut self, errors: &BTreeMap<Address, String>) {
        let looked = self.look_after_writes().map_err(|f| failure_text(&f));
        let mut left = Vec::new();
        for (address, was) in &self.start {
            if looked.is_ok() {
                if let Some(waiting) = NotPutBack::waiting(was, &self.now) {
                    left.push(waiting);
                    continue;
                }
                if compare(was, &self.now).holds() {
                    continue;
                }
            }
            let now = match &looked {
                Ok(()) => live(&self.now, address),
                Err(why) => Fact::unknown(address.to_string(), why.clone()),
            };
            let gone = address.dev().is_some_and(|d| looked.is_ok() && self.now.nic(d).is_none());
            let why = match (errors.get(address), &now) {
                _ if gone => "the device went away".to_string(),
                (Some(e), _) => e.clone(),
                (None, Fact::Absent) => "it does not exist now".to_string(),
                (None, Fact::Unknown(u)) => u.why.clone(),
                (None, Fact::Known(_)) => "it does not keep this value".to_string(),
            };
            left.push(NotPutBack {
                address: address.clone(),
                was: was.clone(),
                now,
                why,
                command: was.command(&self.now),
                offline: CpuSet::new(),
            });
        }
        if looked.is_ok() {
            let text = crate::irq::elsewhere(&self.now, self.out.put_back.iter());
            text.into_iter().for_each(|t| self.note(t));
        }
        self.out.verified_of = self.start.len();
        self.out.verified = self.start.len() - left.len();
        let (ok, of) = (self.out.verified, self.out.verified_of);
        self.out.put_back_incomplete = left;
        self.event(Event::Verified { phase: Phase::PutBack, ok, of, pending: Vec::new() });
    }
}

fn failure_text(f: &Failure) -> String {
    if f.meaning.is_empty() { f.words.clone() } else { format!("{}: {}", f.words, f.meaning) }
}
