//! Interfaces whose link goes down when their RSS table is written: the service does not write the table because of load again, also after
//! a restart. They are recorded with what devices refused (`ringwise learned`).

use ringwise_apply::Refusal;
use ringwise_kfmt::notification::{Change, InterfaceChange};
use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Learned, Setting};
use ringwise_model::words::with_causes;
use ringwise_model::{Nic, Snapshot};

use crate::event::Event;
use crate::link_watch::{LinkVerdict, LinkWatch, carrier_downs};
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
            match watch.verdict(carrier_downs(self.host.as_ref(), &dev), now) {
                LinkVerdict::Open => _ = self.link_losses.watched.insert(dev, watch),
                LinkVerdict::StayedUp => {}
                LinkVerdict::WentDown { times } => self.link_went_down(dev, watch.table, times),
            }
        }
    }

    fn link_went_down(&mut self, dev: String, table: Option<Setting>, times: Option<u32>) {
        let now = self.now();
        self.follow.as_mut().into_iter().for_each(|f| f.link_went_down(&dev, now));
        self.groups.link_went_down(&dev, now);
        // The next look restores the base, also if nothing was heard.
        let change = InterfaceChange { change: Change::Link, ifindex: None, name: Some(dev.clone()) };
        self.evidence.interface(&change);
        self.prepared = None;
        self.schedule.heard(now);
        if let (Some(table), Some(times)) = (table, times) {
            self.link_losses.new.insert(dev.clone(), (table, times));
            self.link_losses.names.insert(dev.clone());
            self.publish_link_losses();
            self.say(&Event::TableTookLinkDown { interface: dev });
        }
    }

    /// Records what was found, and finds the interfaces of this host that it is about.
    pub(crate) fn note_link_losses(&mut self, now: &Snapshot) {
        let store = &self.setup.store;
        let mut note = None;
        let mut learned = self.link_losses.learned.take().unwrap_or_else(|| {
            let all = store.learned().unwrap_or_else(|e| {
                note = Some(format!("which writes take a link down is unknown: {}", with_causes(&e)));
                Vec::new()
            });
            all.into_iter().filter(|l| matches!(l.what, LearnedWrite::LinkWentDown { .. })).collect()
        });
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
        let about = |n: &&Nic| {
            let driver = n.driver.known().map(String::as_str);
            let applies = |l: &Learned| kernel.as_ref().is_some_and(|k| l.takes_link_down_for_rss(&n.dev, driver, k));
            learned.iter().any(applies)
        };
        let names = now.nics.iter().filter(about).map(|n| n.name().to_string());
        self.link_losses.names = names.chain(self.link_losses.new.keys().cloned()).collect();
        self.link_losses.learned = Some(learned);
        self.publish_link_losses();
        note.into_iter().for_each(|text| self.note_once(text));
    }

    fn publish_link_losses(&mut self) {
        self.state.no_table_writes = self.link_losses.names.iter().cloned().collect();
    }
}
