//! Access to the host with limits: every read and write has a deadline.

use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::Parts;
use ringwise_knob::{Address, Setting};
use ringwise_model::{Fact, Snapshot};
use ringwise_sys::{Error, Host, Request, Result, read_with_deadline, with_deadline};

use crate::{Error as Failed, Policy, Refusal};

#[derive(Clone, Copy)]
pub(crate) struct HostAccess<'a> {
    pub host: &'a Arc<dyn Host>,
    pub policy: &'a Policy,
}

impl<'a> HostAccess<'a> {
    /// Errors: the host is a recording, which cannot be changed.
    pub(crate) fn new(host: &'a Arc<dyn Host>, policy: &'a Policy) -> std::result::Result<Self, Failed> {
        if host.is_recorded() {
            return Err(Refusal::Recorded.into());
        }
        Ok(Self { host, policy })
    }

    /// Boot, machine and whether the host can be written. Reads no interface.
    pub(crate) fn facts(&self) -> ringwise_model::Host {
        ringwise_discover::host_without_rivals(self.host.as_ref()).0
    }

    /// Refused if `/proc` or `/sys` cannot be written.
    pub(crate) fn writable(&self) -> std::result::Result<(), Failed> {
        if self.facts().read_only.known() == Some(&true) { Err(Refusal::ReadOnly.into()) } else { Ok(()) }
    }

    /// A call that exceeds its deadline is abandoned: what it does later is found when the host is discovered again.
    fn bounded<T: Send + 'static>(
        &self,
        what: String,
        data: Option<String>,
        call: impl FnOnce(&dyn Host) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let host = Arc::clone(self.host);
        let time = self.policy.deadline;
        with_deadline(time, move || call(host.as_ref()))
            .unwrap_or_else(|| Err(Error { data, ..Error::late(what, time) }))
    }

    pub(crate) fn write(&self, path: &str, text: String) -> Result<()> {
        let (path, data) = (path.to_string(), text.clone());
        self.bounded(format!("write {path}"), Some(text), move |h| h.write(&path, data.as_bytes()))
    }

    pub(crate) fn order(&self, request: Request) -> Result<()> {
        self.ask(request).map(|_| ())
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Vec<Vec<u8>>> {
        self.bounded(request.to_string(), None, move |h| h.kernel(&request))
    }

    /// What one of discovery's readers returns at this moment. `None`: it exceeded the deadline, or panicked.
    pub(crate) fn reading<T: Send + 'static>(&self, read: impl FnOnce(&dyn Host) -> T + Send + 'static) -> Option<T> {
        let host = Arc::clone(self.host);
        read_with_deadline(self.policy.deadline, move || read(host.as_ref()))
    }

    /// The same for calls that return their own errors.
    pub(crate) fn trying<T: Send + 'static>(
        &self,
        what: impl FnOnce() -> String,
        read: impl FnOnce(&dyn Host) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.reading(read).unwrap_or_else(|| Err(Error::late(what(), self.policy.deadline)))
    }

    /// Reads the setting at this address again into the snapshot.
    pub(crate) fn read(&self, now: &mut Snapshot, address: &Address) -> Fact<Setting> {
        ringwise_discover::read_address(self.host, now, address, self.policy.deadline)
    }

    pub(crate) fn look(&self) -> std::result::Result<Snapshot, Failed> {
        self.look_at(ringwise_discover::Options::all().parts)
    }

    /// The same, but only these parts of every device.
    pub(crate) fn look_at(&self, parts: Parts) -> std::result::Result<Snapshot, Failed> {
        let options = ringwise_discover::Options {
            deadline: self.policy.deadline,
            skip_rivals: true,
            skip_control: true,
            parts,
            ..ringwise_discover::Options::all()
        };
        ringwise_discover::snapshot(self.host, &options).map_err(Failed::Discover)
    }

    pub(crate) fn now(&self) -> Duration {
        self.host.since_boot()
    }
}
