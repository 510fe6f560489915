//! The host within bounds: every read and write has a deadline.

use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::ParseError;
use ringwise_model::{Fact, Nic, Snapshot, Unread};
use ringwise_sys::{Error, Host, Request, Result, with_deadline};

use crate::{Error as Failed, Policy, Refusal};

#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub host: &'a Arc<dyn Host>,
    pub policy: &'a Policy,
}

impl<'a> Cx<'a> {
    /// A recording cannot be changed.
    pub(crate) fn new(host: &'a Arc<dyn Host>, policy: &'a Policy) -> std::result::Result<Self, Failed> {
        if host.is_recorded() {
            return Err(Refusal::Recorded.into());
        }
        Ok(Self { host, policy })
    }

    /// Boot, machine and whether the host can be written: no interface is read.
    pub(crate) fn facts(&self) -> ringwise_model::Host {
        ringwise_discover::host_without_rivals(self.host.as_ref()).0
    }

    /// Refused where `/proc` or `/sys` cannot be written.
    pub(crate) fn writable(&self) -> std::result::Result<(), Failed> {
        if self.facts().read_only.known() == Some(&true) { Err(Refusal::ReadOnly.into()) } else { Ok(()) }
    }

    /// A late call is left behind: what it does after that is found when everything is discovered again.
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

    pub(crate) fn read_text(&self, path: &str) -> Result<String> {
        let path = path.to_string();
        self.bounded(format!("read {path}"), None, move |h| h.read_text(&path))
    }

    pub(crate) fn order(&self, request: Request) -> Result<()> {
        self.ask(request).map(|_| ())
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Vec<Vec<u8>>> {
        self.bounded(request.to_string(), None, move |h| h.kernel(&request))
    }

    /// A part of one device, read again by discovery into the snapshot.
    pub(crate) fn again(
        &self,
        now: &mut Snapshot,
        dev: &str,
        what: &str,
        read: impl FnOnce(&dyn Host, &mut Nic) + Send + 'static,
    ) -> Result<()> {
        let what = format!("{what} of {dev}");
        let Some(nic) = now.nics.iter_mut().find(|n| n.dev.name == dev) else {
            return Err(Error::other(what, "the device went away"));
        };
        let mut fresh = nic.clone();
        *nic = self.bounded(what, None, move |h| {
            read(h, &mut fresh);
            Ok(fresh)
        })?;
        Ok(())
    }

    /// One file as a fact, with the parser that discovery uses for it.
    pub(crate) fn fact<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> std::result::Result<T, ParseError>,
    ) -> Fact<T> {
        match self.read_text(path) {
            Ok(text) => match parse(&text) {
                Ok(v) => Fact::Known(v),
                Err(e) => Fact::Unknown(Unread::new(path, None, e.to_string())),
            },
            Err(e) if e.is_absent() => Fact::Absent,
            Err(e) => Fact::Unknown(Unread::new(path, e.errno, e.reason()).because(e.cause)),
        }
    }

    pub(crate) fn look(&self) -> std::result::Result<Snapshot, Failed> {
        let options = ringwise_discover::Options {
            deadline: self.policy.deadline,
            skip_rivals: true,
            skip_control: true,
            ..ringwise_discover::Options::all()
        };
        ringwise_discover::snapshot(self.host, &options).map_err(Failed::Discover)
    }

    pub(crate) fn now(&self) -> Duration {
        self.host.since_boot()
    }
}
