//! Records everything that is read from a host.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recording::{Info, RecordedAnswer, RecordedRefusal, RecordedReply, Recording, RequestKey};
use crate::host::{Error, Host, HostWrapper, Request, Result};

/// A host that passes every read to `H` and records the first answer to each. It writes nothing. Threads may read at the same
/// time, and late ones may continue after [`CaptureRecorder::finish`].
pub struct CaptureRecorder<H> {
    host: H,
    recording: Mutex<Recording>,
}

impl<H: Host> CaptureRecorder<H> {
    /// Starts with an empty recording.
    pub fn new(host: H) -> Self {
        Self { host, recording: Mutex::default() }
    }

    /// The wrapped host: reads through it are not recorded.
    pub fn host(&self) -> &H {
        &self.host
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was read so far, with the present time and privileges.
    pub fn finish(&self) -> Recording {
        let kernel = self.read_text("/proc/sys/kernel/osrelease").ok();
        let mut recording = self.lock().clone();
        recording.info = Info {
            tool: Some(env!("CARGO_PKG_VERSION").into()),
            unix_time: self.host.unix_time(),
            since_boot: self.host.since_boot(),
            euid: (!self.host.is_recorded()).then(crate::proc::euid),
            kernel,
            ..Info::default()
        };
        recording
    }
}

fn answer<T: Clone>(result: &Result<T>) -> RecordedAnswer<T> {
    result.clone().map_err(|e| RecordedRefusal::from(&e))
}

fn keep<T: Clone>(answers: &mut BTreeMap<String, RecordedAnswer<T>>, path: &str, result: &Result<T>) {
    if let Entry::Vacant(free) = answers.entry(path.to_string()) {
        free.insert(answer(result));
    }
}

impl<H: Host> Host for CaptureRecorder<H> {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let result = self.host.read(path);
        keep(&mut self.lock().files, path, &result);
        result
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        let data = Some(String::from_utf8_lossy(data).into_owned());
        Err(Error { data, ..Error::other(format!("write {path}"), "nothing is written while recording") })
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let result = self.host.list(path);
        let sorted = result.clone().map(|mut names| {
            names.sort_unstable();
            names
        });
        keep(&mut self.lock().dirs, path, &sorted);
        result
    }

    fn readlink(&self, path: &str) -> Result<String> {
        let result = self.host.readlink(path);
        keep(&mut self.lock().links, path, &result);
        result
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let Some(asked) = RequestKey::of(request) else {
            return Err(Error::other(request.to_string(), "nothing is written while recording"));
        };
        let result = self.host.kernel(request);
        if let Entry::Vacant(free) = self.lock().kernel.entry(asked) {
            let name = request.to_string();
            let name = name.split(' ').next().unwrap_or_default().to_string();
            free.insert(RecordedReply { name, answer: answer(&result) });
        }
        result
    }

    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }
}

impl<H: Host> HostWrapper for CaptureRecorder<H> {
    fn inside(&self) -> &dyn Host {
        &self.host
    }
}
