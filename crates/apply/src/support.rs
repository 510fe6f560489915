//! Before the first write, asks the kernel whether a driver supports the calls that the steps need.
//!
//! A request of the family `ethtool` that sets nothing does not reach the driver: the kernel's core checks whether the driver has
//! the call, and returns before calling it, because nothing changes (net/ethtool/channels.c, rings.c, coalesce.c, pause.c; lab:
//! 615-support). Only EOPNOTSUPP counts. Any other answer proves nothing: a driver that has the call may still refuse the value.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_nl::msg;
use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Setting, Step, compare};
use ringwise_model::errno::EOPNOTSUPP;
use ringwise_sys::{Error, Request};

use crate::record::Record;
use crate::store::Disk;
use crate::tx::{Done, Tx};
use crate::write_setting;
use crate::{Event, Refused};

/// The request that would write this setting, without attributes. `None`: such a request would reach the driver.
fn question(setting: &Setting) -> Option<Request> {
    let (cmd, name, dev) = match setting {
        Setting::Channels { dev, .. } => (msg::CHANNELS_SET, "channels-set", dev),
        Setting::Rings { dev, .. } => (msg::RINGS_SET, "rings-set", dev),
        Setting::Coalesce { dev, .. } => (msg::COALESCE_SET, "coalesce-set", dev),
        Setting::Pause { dev, .. } => (msg::PAUSE_SET, "pause-set", dev),
        _ => return None,
    };
    Some(Request::EthtoolSet { cmd, name, dev: dev.clone(), attrs: Vec::new() })
}

impl Tx<'_> {
    /// Steps that the driver does not support count as refused before anything is changed.
    pub(crate) fn ask_for_support(&mut self, disk: Disk) -> Done {
        let mut asked: BTreeMap<String, Option<Error>> = BTreeMap::new();
        let mut refused: Vec<(Step, Error)> = Vec::new();
        for step in self.steps.iter().filter(|s| !compare(&s.setting, &self.now).holds()) {
            let Some(request) = question(&step.setting) else { continue };
            let answer = asked.entry(request.to_string()).or_insert_with(|| self.cx.order(request).err());
            if let Some(e) = answer.as_ref().filter(|e| e.errno == Some(EOPNOTSUPP)) {
                refused.push((step.clone(), e.clone()));
            }
        }
        for (step, e) in refused {
            let setting = step.setting.clone();
            let failure =
                write_setting::failure(&setting, &e, "the driver does not support it (checked before the first write)");
            let what = LearnedWrite::Refused { errno: EOPNOTSUPP, words: failure.words.clone() };
            let learned = self.learn(&setting, what);
            self.record(Record::NotDone { setting: setting.clone(), failure: Some(failure.clone()) })?;
            self.steps.retain(|s| s != &step);
            if self.replaced(&step, &failure, learned)? {
                continue;
            }
            self.event(Event::Refused {
                phase: crate::Phase::Apply,
                setting: setting.clone(),
                failure: failure.clone(),
            });
            self.given_up.extend(setting.address());
            self.out.refused.push(Refused { asked: setting, failure });
        }
        // Plan again at once: the remaining steps may depend on those that are not possible.
        self.plan_again(disk, 0).map(|_| ())
    }
}
