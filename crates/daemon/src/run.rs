//! The loop: it waits for notifications, requests and signals, and looks at the host when it is time.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::ProcessId;
use ringwise_kfmt::notification::{self, InterfaceChange};
use ringwise_model::words::with_causes;
use ringwise_sys::monitor::{Channel, Monitor, MonitorEvent};
use ringwise_sys::proc::install_signal_flag;
use ringwise_sys::{Host, guardian, io_text, memory};

use crate::control::{Control, ControlReply, ControlRequest, answer};
use crate::event::Event;
use crate::evidence::NotificationEvidence;
use crate::schedule::Due;
use crate::service::{HANGUP, Service, ServiceSetup};
use crate::state::Notifications;

/// Directories whose files other programs replace, and that decide which CPUs are free.
const WATCHED: [&str; 1] = ["/var/lib/kubelet"];

/// Runs until a signal or a request ends it.
///
/// Errors: another service runs, the directory of its socket cannot be used, or no signal can be handled. A host that cannot be
/// read is not an error: the service reports it and tries again.
pub fn run(host: &Arc<dyn Host>, setup: &ServiceSetup, log: &mut dyn FnMut(&Event)) -> io::Result<()> {
    memory::one_arena();
    let signals = install_signal_flag().map_err(io::Error::other)?;
    let control = Control::open(&setup.store)?;
    let (mut monitor, missing) = Monitor::open();
    for dir in WATCHED.map(Path::new).into_iter().filter(|d| d.is_dir()) {
        // Without the watch, the comparison finds other CPUs within 10 s.
        let _ = monitor.watch(dir);
    }
    let process = ProcessId::me(host.as_ref()).ok_or_else(|| io::Error::other("cannot read /proc/self/stat"))?;
    let mut service = Service::new(host, setup, process, signals, log);
    service.state.deaf = missing.iter().map(|(_, e)| e.to_string()).collect();
    for (_, e) in &missing {
        service.log(&Event::Note(format!("{e}: changes without a notification are found within 10 s")));
    }
    service.load();
    service.schedule.heard(Duration::ZERO);
    service.take_over_tables();
    service.first();
    service.serve(&mut monitor, &control);
    service.end();
    Ok(())
}

impl Service<'_> {
    fn first(&mut self) {
        self.look(true);
        let (settings, config) = (self.kept(), self.state.config.clone());
        self.log(&Event::Started { settings, config });
        self.manager.ready();
        self.publish_state();
    }

    fn serve(&mut self, monitor: &mut Monitor, control: &Control) {
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
            if self.boot_good_at.is_some_and(|at| at <= now) {
                self.mark_boot_good();
            }
            let wait = match self.schedule.due(now) {
                Due::Prepare => {
                    self.prepare();
                    // What was heard meanwhile may not be in what was read.
                    self.hear(monitor);
                    continue;
                }
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
            let wait = match self.follow.as_ref().and_then(|f| f.wait(now)) {
                Some(Duration::ZERO) => {
                    self.follow_load();
                    continue;
                }
                Some(next) => wait.min(next),
                None => wait,
            };
            let wait = match self.groups.wait(now) {
                Some(Duration::ZERO) => {
                    self.follow_groups();
                    continue;
                }
                Some(next) => wait.min(next),
                None => wait,
            };
            // A signal between the check above and the wait is seen after the wait, which is at most 10 s.
            let wait = self.manager.watchdog.map_or(wait, |w| wait.min(w / 2));
            let mut fds: Vec<BorrowedFd> = monitor.descriptors();
            fds.push(control.descriptor());
            if let Err(e) = guardian::readable(&fds, wait + Duration::from_millis(1)) {
                self.report_problem(&format!("cannot wait for notifications: {}", io_text(&e)));
                std::thread::sleep(Duration::from_secs(1));
            }
            self.hear(monitor);
            while let Some((ask, stream)) = control.next() {
                let (told, ends) = self.answer(&ask);
                answer(&stream, &told);
                if ends {
                    return;
                }
            }
        }
    }

    fn hear(&mut self, monitor: &mut Monitor) {
        let now = self.now();
        let (evidence, totals, links) = (&mut self.evidence, &mut self.state.totals, &mut self.link_losses);
        let mut heard = false;
        monitor.drain(&mut |h| match h {
            MonitorEvent::Lost(_) => {
                totals.overflows += 1;
                evidence.lost();
                heard = true;
            }
            MonitorEvent::File(_) => {
                evidence.cpus = true;
                totals.heard.files += 1;
                heard = true;
            }
            MonitorEvent::Datagram(channel, bytes) => {
                match understood(channel, bytes, evidence, &mut |change| links.heard(change, now)) {
                    Some(matters) => {
                        *count(&mut totals.heard, channel) += u64::from(matters);
                        heard |= matters;
                    }
                    // What cannot be read may have been anything.
                    None => {
                        evidence.lost();
                        heard = true;
                    }
                }
            }
        });
        if heard {
            self.prepared = None;
            self.schedule.heard(now);
            self.check_links();
        }
    }

    /// Handles the command of a user. Returns the answer, and whether the service ends.
    pub(crate) fn answer(&mut self, ask: &ControlRequest) -> (ControlReply, bool) {
        let mut told = ControlReply::default();
        self.log(&Event::Request(ask.clone()));
        match ask {
            ControlRequest::Pause { interface: None } => self.state.paused = true,
            ControlRequest::Pause { interface: Some(dev) } => self.pauses.pause(dev),
            ControlRequest::Resume { interface: None } => {
                self.state.paused = false;
                self.pauses.resume_all();
                self.moved().keys().for_each(|dev| self.follow_again(dev));
            }
            ControlRequest::Resume { interface: Some(dev) } => {
                self.pauses.resume(dev);
                self.follow_again(dev);
            }
            ControlRequest::Stop { restore: false } => return (told, true),
            ControlRequest::Stop { restore: true } => match self.restore() {
                Ok(answer) if answer.error.is_none() => {
                    self.restored = true;
                    return (answer, true);
                }
                Ok(answer) => told = answer,
                Err(e) => told = ControlReply { error: Some(with_causes(&e)), status: Some(e.exit_status()), ..told },
            },
        }
        if matches!(ask, ControlRequest::Resume { .. }) {
            // What was heard meanwhile was judged without consequence.
            self.evidence.lost();
            let now = self.now();
            self.schedule.heard(now);
        }
        self.publish_state();
        (told, false)
    }

    /// A table that was changed outside ringwise is the new base.
    pub(crate) fn follow_again(&mut self, dev: &str) {
        self.follow.as_mut().into_iter().for_each(|f| f.begin_again(dev));
        self.state.loads.retain(|l| l.interface != dev);
    }

    pub(crate) fn reload(&mut self) {
        self.manager.reloading(self.now());
        if self.load() {
            // It may name other interfaces whose load is followed.
            self.unsettled = true;
            self.log(&Event::Loaded { config: self.state.config.clone() });
            if self.state.config.is_some() {
                // If another run holds the lock, or the file does not fit yet, the next look tries again.
                (self.reloaded, self.configured) = (true, false);
                self.look(true);
            }
        }
        self.manager.ready();
        self.publish_state();
    }

    fn end(&mut self) {
        self.manager.stopping();
        if self.boot_good_at.is_some() {
            self.mark_boot_good();
        }
        self.leave_tables();
        self.log(&Event::Stopping { restored: self.restored });
    }
}

fn count(heard: &mut Notifications, channel: Channel) -> &mut u64 {
    match channel {
        Channel::Links => &mut heard.links,
        Channel::Ethtool => &mut heard.ethtool,
        Channel::Netdev => &mut heard.netdev,
        Channel::Uevents => &mut heard.uevents,
    }
}

/// Whether the datagram matters. `None`: it cannot be read. `each`: receives each change of an interface.
fn understood(
    channel: Channel,
    bytes: &[u8],
    evidence: &mut NotificationEvidence,
    each: &mut dyn FnMut(&InterfaceChange),
) -> Option<bool> {
    let changes = match channel {
        Channel::Links => notification::links(bytes),
        Channel::Ethtool => notification::ethtool(bytes),
        Channel::Netdev => notification::netdev(bytes),
        Channel::Uevents => return notification::uevent(bytes).ok().map(|e| evidence.uevent(&e)),
    };
    let changes = changes.ok()?;
    changes.iter().for_each(each);
    // Each of them is evidence, so this must not stop at the first.
    let matter: Vec<bool> = changes.iter().map(|c| evidence.interface(c)).collect();
    Some(matter.contains(&true))
}
