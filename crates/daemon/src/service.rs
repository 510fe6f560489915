//! The loop: it waits for notifications, requests and signals, and looks at the host when it is time.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Guardian, ProcessId, Store};
use ringwise_intent::Wanted;
use ringwise_kfmt::notification;
use ringwise_knob::SettingMap;
use ringwise_model::{CpuSet, IntentFlags};
use ringwise_sys::monitor::{Channel, Heard, Monitor};
use ringwise_sys::proc::{SignalFlag, install_signal_flag};
use ringwise_sys::service::Manager;
use ringwise_sys::{Host, guardian, io_text, memory};

use crate::control::{Answer, Ask, Control, answer};
use crate::event::Event;
use crate::evidence::Evidence;
use crate::look::Records;
use crate::pauses::{Moment, Pauses};
use crate::schedule::{Due, Schedule};
use crate::state::{ServiceState, Totals};
use crate::unchanged::{Seen, ToRead};

/// Directories whose files other programs replace, and that decide which CPUs are free.
const WATCHED: [&str; 1] = ["/var/lib/kubelet"];
/// SIGHUP on every architecture of Linux.
const HANGUP: i32 = 1;

/// How the service is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where transactions are recorded.
    pub store: Store,
    /// The configuration file. `None`: the default one, if it exists; `none`: no file.
    pub config: Option<PathBuf>,
    /// Starts the guard of each transaction.
    pub guard: Option<Arc<dyn Guardian>>,
}

/// What happens after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// What was heard is settled.
    Done,
    /// Another run holds the lock, or it is too early: look again.
    Later,
}

pub(crate) struct Service<'a> {
    pub host: &'a Arc<dyn Host>,
    pub setup: &'a Setup,
    pub log: &'a mut dyn FnMut(&Event),
    pub manager: Manager,
    pub signals: SignalFlag,
    pub schedule: Schedule,
    pub evidence: Evidence,
    /// What was heard is not settled yet: another run held the lock, or the host could not be read.
    pub unsettled: bool,
    pub pauses: Pauses,
    pub state: ServiceState,
    pub records: Option<Records>,
    /// What the next comparison reads, and what it saw the last time.
    pub to_read: Option<ToRead>,
    pub seen: Option<Seen>,
    /// Manual changes that were reported, with their values.
    pub known: SettingMap,
    /// Why interfaces had no new plan at the last look.
    pub noted: Vec<String>,
    /// CPUs that were isolated at the last look.
    pub isolated: Option<CpuSet>,
    pub wanted: Option<Wanted>,
    /// The configuration was applied, or a person decides instead.
    pub configured: bool,
    /// When this boot counts as survived, on the clock since boot.
    pub lived_at: Option<Duration>,
    published: Option<ServiceState>,
}

/// Runs until a signal or a request ends it.
///
/// Errors: another service runs, the directory of its socket cannot be used, or no signal can be handled. A host that cannot be
/// read is no error: the service says so and tries again.
pub fn run(host: &Arc<dyn Host>, setup: &Setup, log: &mut dyn FnMut(&Event)) -> io::Result<()> {
    memory::one_arena();
    let signals = install_signal_flag().map_err(io::Error::other)?;
    let control = Control::open(&setup.store)?;
    let (mut monitor, missing) = Monitor::open();
    let watched = WATCHED.iter().filter(|d| Path::new(d).is_dir() && monitor.watch(Path::new(d)).is_ok()).count();
    let process = ProcessId::me(host.as_ref()).ok_or_else(|| io::Error::other("cannot read /proc/self/stat"))?;
    let mut service = Service::new(host, setup, process, signals, log);
    service.state.deaf = missing.iter().map(|(_, e)| e.to_string()).collect();
    for (_, e) in &missing {
        service.say(&Event::Note(format!("{e}: changes without a notification are found within 10 s")));
    }
    service.load();
    service.schedule.heard(Duration::ZERO);
    service.first();
    service.serve(&mut monitor, watched > 0, &control);
    service.end();
    Ok(())
}

impl<'a> Service<'a> {
    pub(crate) fn new(
        host: &'a Arc<dyn Host>,
        setup: &'a Setup,
        process: ProcessId,
        signals: SignalFlag,
        log: &'a mut dyn FnMut(&Event),
    ) -> Self {
        let (facts, _) = ringwise_discover::host_without_rivals(host.as_ref());
        let boot_id = facts.boot_id.known().cloned();
        // Manual changes of before a restart are known, and so are pauses that a person asked for.
        let last = ServiceState::last(&setup.store).ok().flatten();
        let last = last.filter(|l| l.boot_id.is_some() && l.boot_id == boot_id);
        let known = last.iter().flat_map(|l| &l.manual).filter_map(|m| Some((m.address()?, m.setting.clone())));
        let state = ServiceState {
            schema: "ringwise.daemon".into(),
            version: 1,
            process,
            boot_id,
            since_unix: host.unix_time(),
            config: None,
            keeps: 0,
            paused: last.as_ref().is_some_and(|l| l.paused),
            pauses: Vec::new(),
            manual: Vec::new(),
            actions: last.as_ref().map(|l| l.actions.clone()).unwrap_or_default(),
            totals: Totals::default(),
            problem: None,
            deaf: Vec::new(),
        };
        Self {
            host,
            setup,
            log,
            manager: Manager::of_environment(),
            signals,
            schedule: Schedule::default(),
            evidence: Evidence::incomplete(),
            unsettled: false,
            pauses: Pauses::asked_for(last.iter().flat_map(|l| &l.pauses)),
            state,
            records: None,
            to_read: None,
            seen: None,
            known: known.collect(),
            noted: Vec::new(),
            isolated: None,
            wanted: None,
            configured: false,
            lived_at: None,
            published: None,
        }
    }

    pub(crate) fn say(&mut self, event: &Event) {
        (self.log)(event);
    }

    pub(crate) fn now(&self) -> Duration {
        self.host.since_boot()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { since_boot: self.host.since_boot(), unix: self.host.unix_time() }
    }

    fn first(&mut self) {
        self.look(true);
        let (settings, config) = (self.kept(), self.state.config.clone());
        self.say(&Event::Started { settings, config });
        self.manager.ready();
        self.tell();
    }

    fn serve(&mut self, monitor: &mut Monitor, files: bool, control: &Control) {
        loop {
            match self.signals.raised() {
                Some(HANGUP) => {
                    self.signals.clear();
                    self.reload();
                }
                Some(_) => return,
                None => {}
            }
            self.manager.alive();
            let now = self.now();
            if self.lived_at.is_some_and(|at| at <= now) {
                self.lived();
            }
            let wait = match self.schedule.due(now) {
                Due::Look => {
                    self.look(true);
                    continue;
                }
                Due::Compare => {
                    self.look(false);
                    continue;
                }
                Due::Wait(wait) => wait,
            };
            // A signal between the check above and the wait is seen after the wait, which is at most 10 s.
            let wait = self.manager.watchdog.map_or(wait, |w| wait.min(w / 2));
            let mut fds: Vec<BorrowedFd> = monitor.descriptors();
            fds.push(control.descriptor());
            if let Err(e) = guardian::readable(&fds, wait + Duration::from_millis(1)) {
                self.trouble(&format!("cannot wait for notifications: {}", io_text(&e)));
                std::thread::sleep(Duration::from_secs(1));
            }
            self.hear(monitor, files);
            while let Some((ask, stream)) = control.next() {
                let (told, ends) = self.answer(&ask);
                answer(&stream, &told);
                if ends {
                    return;
                }
            }
        }
    }

    fn hear(&mut self, monitor: &mut Monitor, files: bool) {
        let (evidence, totals) = (&mut self.evidence, &mut self.state.totals);
        let mut heard = false;
        monitor.drain(&mut |h| match h {
            Heard::Lost(_) => {
                totals.overflows += 1;
                evidence.lost();
                heard = true;
            }
            Heard::File(_) => {
                evidence.cpus |= files;
                heard |= files;
            }
            Heard::Datagram(channel, bytes) => match understood(channel, bytes, evidence) {
                Some(matters) => heard |= matters,
                // What cannot be read may have been anything.
                None => {
                    evidence.lost();
                    heard = true;
                }
            },
        });
        if heard {
            let now = self.now();
            self.schedule.heard(now);
        }
    }

    /// What a person asked for, and whether the service ends.
    fn answer(&mut self, ask: &Ask) -> (Answer, bool) {
        let mut told = Answer::default();
        match ask {
            Ask::Pause { interface: None } => self.state.paused = true,
            Ask::Pause { interface: Some(dev) } => self.pauses.pause(dev),
            Ask::Resume { interface: None } => {
                self.state.paused = false;
                self.pauses.resume_all();
            }
            Ask::Resume { interface: Some(dev) } => self.pauses.resume(dev),
            Ask::Stop { restore: false } => return (told, true),
            Ask::Stop { restore: true } => match self.restore() {
                Ok(transaction) => return (Answer { error: None, transaction }, true),
                Err(why) => told.error = Some(why),
            },
        }
        if matches!(ask, Ask::Resume { .. }) {
            // What was heard meanwhile was judged without consequence.
            self.evidence.lost();
            let now = self.now();
            self.schedule.heard(now);
        }
        self.tell();
        (told, false)
    }

    /// Reads the configuration. A file with faults is reported, and the earlier one stays.
    pub(crate) fn load(&mut self) -> bool {
        match ringwise_intent::read(&IntentFlags::default(), self.setup.config.as_deref(), false) {
            Ok(wanted) => {
                self.state.config = wanted.file().map(|f| f.display().to_string());
                self.wanted = Some(wanted);
                true
            }
            Err(e) => {
                self.trouble(&e.to_string());
                false
            }
        }
    }

    fn reload(&mut self) {
        self.manager.reloading(self.now());
        if self.load() {
            self.say(&Event::Loaded { config: self.state.config.clone() });
            if self.state.config.is_some()
                && let Err(why) = self.configure()
            {
                self.trouble(&why);
            }
        }
        self.manager.ready();
        self.tell();
    }

    /// Says what is wrong, once.
    pub(crate) fn trouble(&mut self, why: &str) {
        if self.state.problem.as_deref() != Some(why) {
            self.state.problem = Some(why.to_string());
            self.say(&Event::Problem(why.to_string()));
        }
    }

    pub(crate) fn well(&mut self) {
        if self.state.problem.take().is_some() {
            self.say(&Event::Well);
        }
    }

    /// Publishes the state, if it differs from what was published.
    pub(crate) fn tell(&mut self) {
        self.state.pauses = self.pauses.list();
        if self.published.as_ref() == Some(&self.state) {
            return;
        }
        match self.state.publish(&self.setup.store) {
            Ok(()) => self.published = Some(self.state.clone()),
            Err(e) if self.published.is_some() || self.state.problem.is_none() => {
                self.published = None;
                self.trouble(&format!("cannot write daemon.json: {}", io_text(&e)));
            }
            Err(_) => {}
        }
        self.manager.status(&self.line());
    }

    /// For `systemctl status`.
    fn line(&self) -> String {
        if self.state.paused {
            return "paused".into();
        }
        match (&self.state.problem, self.state.actions.last()) {
            (Some(why), _) => why.clone(),
            (None, Some(last)) => Event::Acted(last.clone()).to_string(),
            (None, None) => format!("keeps {} settings", self.kept()),
        }
    }

    fn end(&mut self) {
        self.manager.stopping();
        if self.lived_at.is_some() {
            self.lived();
        }
        self.say(&Event::Stopping);
    }

    fn lived(&mut self) {
        self.lived_at = None;
        let dir = self.setup.store.dirs().first().cloned().unwrap_or_default();
        if let Err(e) = ringwise_persist::lived(&dir) {
            self.trouble(&e.to_string());
        }
    }
}

/// Whether the datagram matters. `None`: it cannot be read.
fn understood(channel: Channel, bytes: &[u8], evidence: &mut Evidence) -> Option<bool> {
    let changes = match channel {
        Channel::Links => notification::links(bytes),
        Channel::Ethtool => notification::ethtool(bytes),
        Channel::Netdev => notification::netdev(bytes),
        Channel::Uevents => return notification::uevent(bytes).ok().map(|e| evidence.uevent(&e)),
    };
    // Each of them is evidence, so this must not stop at the first.
    let matter: Vec<bool> = changes.ok()?.iter().map(|c| evidence.interface(c)).collect();
    Some(matter.contains(&true))
}
