//! Interfaces whose link goes down when their RSS table is written: the service does not write the table because of load again, also after
//! a restart. They are recorded with what devices refused (`ringwise learned`).

use ringwise_apply::Refusal;
use ringwise_kfmt::notification::{InterfaceChange, InterfaceNotification};
use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Learned, Setting};
use ringwise_model::words::with_causes;
use ringwise_model::{Nic, Snapshot};

use crate::event::Event;
use crate::link_watch::{Carrier, LinkVerdict, LinkWatch};
use crate::service::Service;

impl Service<'_> {
    /// From now on the link of this interface is watched.
    pub(crate) fn watch_link(&mut self, dev: &str, mut watch: LinkWatch) {
        watch.written(self.now());
        self.link_losses.watched.insert(dev.into(), watch);
    }

    /// Looks whether a write took a link down.
    pub(crate) fn check_links(&mut self) {
        let now = self.now();
        for (dev, watch) in std::mem::take(&mut self.link_losses.watched) {
            match watch.verdict(Carrier::read(self.host.as_ref(), &dev), now) {
                LinkVerdict::Open => _ = self.link_losses.watched.insert(dev, watch),
                LinkVerdict::StayedUp | LinkVerdict::Replaced => _ = self.link_losses.went_down.remove(&dev),
                LinkVerdict::WentDown { times } => self.link_went_down(dev, watch.table, times),
            }
        }
    }

    fn link_went_down(&mut self, dev: String, table: Option<Setting>, times: Option<u32>) {
        let now = self.now();
        self.link_losses.went_down.insert(dev.clone());
        self.follow.as_mut().into_iter().for_each(|f| f.link_went_down(&dev, now));
        self.groups.link_went_down(&dev, now);
        // The next look restores the base, also if nothing was heard.
        let change = InterfaceChange { change: InterfaceNotification::Link, ifindex: None, name: Some(dev.clone()) };
        self.evidence.interface(&change);
        self.prepared = None;
        self.schedule.heard(now);
        if let (Some(table), Some(times)) = (table, times) {
            self.link_losses.new.insert(dev.clone(), (table, times));
            self.link_losses.names.insert(dev.clone());
            self.publish_link_losses();
            self.log(&Event::TableTookLinkDown { interface: dev });
        }
    }

    /// Reads what earlier services have found, unless it is read. After an error the next look tries again.
    fn read_link_losses(&mut self) {
        if self.link_losses.learned.is_some() {
            return;
        }
        match self.setup.store.learned() {
            Ok(all) => {
                let went_down = |l: &Learned| matches!(l.what, LearnedWrite::LinkWentDown { .. });
                self.link_losses.learned = Some(all.into_iter().filter(went_down).collect());
            }
            Err(e) => {
                let text =
                    "no RSS table is changed because of load, because it is unknown which writes take a link down";
                self.note_once(format!("{text}: {}", with_causes(&e)));
            }
        }
    }

    /// No transaction is recorded, so no interface was read: any record may be about one of them.
    pub(crate) fn note_no_transactions(&mut self) {
        self.read_link_losses();
        let known = self.link_losses.learned.as_ref().is_some_and(Vec::is_empty);
        self.know_link_losses(known);
    }

    fn know_link_losses(&mut self, known: bool) {
        if std::mem::replace(&mut self.link_losses.known, known) != known {
            self.follow.as_mut().into_iter().for_each(|f| f.changed(true));
            self.groups.changed();
        }
    }

    /// Records what was found, and finds the interfaces of this host that it is about.
    pub(crate) fn note_link_losses(&mut self, now: &Snapshot) {
        self.read_link_losses();
        // What was found since is recorded once the file can be read: a write adds to it.
        let Some(mut learned) = self.link_losses.learned.take() else { return };
        let store = &self.setup.store;
        let mut note = None;
        let kernel = now.host.kernel.known().cloned();
        for (dev, (asked, times)) in std::mem::take(&mut self.link_losses.new) {
            let (Some(nic), Some(kernel), Some(address)) = (now.nic(&dev), &kernel, asked.address()) else {
                self.link_losses.new.insert(dev, (asked, times));
                continue;
            };
            let found = Learned {
                device: nic.dev.clone(),
                driver: nic.driver.known().cloned(),
                kernel: kernel.clone(),
                address,
                asked: asked.clone(),
                what: LearnedWrite::LinkWentDown { times },
                unix_time: self.host.unix_time(),
            };
            match store.add_learned(std::slice::from_ref(&found)) {
                Ok(()) => {}
                // The next look tries again.
                Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => {
                    self.retry = true;
                    self.link_losses.new.insert(dev, (asked, times));
                    continue;
                }
                Err(e) => {
                    let text = "is forgotten when the service is restarted";
                    note = Some(format!("that a write takes the link of {dev} down {text}: {}", with_causes(&e)));
                }
            }
            learned.push(found);
        }
        // Records are about one kernel.
        let known = kernel.is_some() || learned.is_empty();
        let about = |n: &&Nic| {
            let driver = n.driver.known().map(String::as_str);
            let applies = |l: &Learned| kernel.as_ref().is_some_and(|k| l.takes_link_down_for_rss(&n.dev, driver, k));
            learned.iter().any(applies)
        };
        let names = now.nics.iter().filter(about).map(|n| n.name().to_string());
        self.link_losses.names = names.chain(self.link_losses.new.keys().cloned()).collect();
        self.link_losses.learned = Some(learned);
        self.know_link_losses(known);
        self.publish_link_losses();
        note.into_iter().for_each(|text| self.note_once(text));
    }

    fn publish_link_losses(&mut self) {
        self.state.no_table_writes = self.link_losses.names.iter().cloned().collect();
    }
}
