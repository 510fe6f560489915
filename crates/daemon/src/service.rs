//! What the service knows and publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Armed, BalancedSetting, Guardian, JournalFiles, ProcessId, Store};
use ringwise_discover::Options;
use ringwise_intent::Wanted;
use ringwise_knob::SettingMap;
use ringwise_model::{CpuSet, IntentFlags};
use ringwise_sys::proc::SignalFlag;
use ringwise_sys::service::Manager;
use ringwise_sys::{Host, io_text};

use crate::compared::{LoadLayout, NamedFlow, PermittedCpus, Prepared};
use crate::event::Event;
use crate::evidence::NotificationEvidence;
use crate::follow::Follow;
use crate::followed_groups::FollowedGroups;
use crate::link_watch::LinkWatches;
use crate::pauses::{Moment, Pauses};
use crate::schedule::Schedule;
use crate::state::{SCHEMA, ServiceState, ServiceTotals, VERSION};
use crate::unchanged::{WatchList, WatchedValues};

/// SIGHUP on every architecture of Linux.
pub(crate) const HANGUP: i32 = 1;
/// After this long a boot counts as survived.
pub(crate) const LIVED: Duration = Duration::from_secs(5 * 60);

/// How the service is set up.
#[derive(Debug, Clone)]
pub struct ServiceSetup {
    /// Where transactions are recorded.
    pub store: Store,
    /// The configuration file. `None`: the default one, if it exists; `none`: no file.
    pub config: Option<PathBuf>,
    /// Starts the guard of each transaction.
    pub guard: Option<Arc<dyn Guardian>>,
    /// Follows the load, and reports which indirection tables would be better.
    pub follow: bool,
    /// Interfaces whose table and interrupts it writes then, by name or pattern, besides those of the configuration.
    pub act_on_load: Vec<String>,
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
    pub setup: &'a ServiceSetup,
    pub log: &'a mut dyn FnMut(&Event),
    pub manager: Manager,
    pub signals: SignalFlag,
    pub schedule: Schedule,
    pub evidence: NotificationEvidence,
    /// What was heard is not settled yet: another run held the lock, or the host could not be read.
    pub unsettled: bool,
    pub pauses: Pauses,
    pub state: ServiceState,
    /// The journals that the last comparison read. They are not held: dozens of them would be most of its memory.
    pub journals: Option<JournalFiles>,
    /// What the next comparison reads, and what it saw the last time.
    pub to_read: Option<WatchList>,
    pub seen: Option<WatchedValues>,
    /// What was read for the next look since the last notification.
    pub prepared: Option<Prepared>,
    /// Manual changes that were reported, with their values.
    pub known: SettingMap,
    /// Why interfaces had no new plan at the last look.
    pub noted: Vec<String>,
    /// Flows of groups that name a program or unit, as last compared.
    pub named_flows: Vec<NamedFlow>,
    /// CPUs that were isolated at the last look.
    pub isolated: Option<CpuSet>,
    /// Receive and transmit queues of each interface at the last look.
    pub queue_counts: BTreeMap<String, [usize; 2]>,
    /// CPUs that were isolated at the first look.
    pub isolated_at_first: Option<CpuSet>,
    pub wanted: Option<Wanted>,
    /// Interfaces whose RSS table and interrupts are written when the load is uneven, by name or pattern, as configured for this host.
    pub act_on_load: Vec<String>,
    /// Why the configuration is not in effect. It is a problem until it is loaded again.
    pub config_fault: Option<String>,
    /// A person had it loaded again, and it is not applied yet.
    pub reloaded: bool,
    /// The configuration was applied, or a person decides instead.
    pub configured: bool,
    /// No transaction is recorded: nothing had to be written so far.
    pub unrecorded: bool,
    /// When this boot counts as survived, on the clock since boot.
    pub boot_good_at: Option<Duration>,
    /// Follows the load. `None`: it was switched off.
    pub follow: Option<Follow>,
    /// Groups of queues that follow the traffic.
    pub groups: FollowedGroups,
    /// The guard of tables and interrupts. `None`: none was written yet.
    pub table_guard: Option<Box<dyn Armed>>,
    /// Interfaces for which a person's last transaction is a rollback: nothing is written to them.
    pub rolled_back: BTreeSet<String>,
    /// Every setting was restored on request, at the end.
    pub restored: bool,
    /// CPUs that may serve the queues of each interface, as last compared.
    pub permitted: PermittedCpus,
    /// Cores and RPS masks, as last compared.
    pub machine: LoadLayout,
    /// Settings that were moved because of the load, as last compared or written.
    pub balanced: Vec<BalancedSetting>,
    /// Writes that may have taken a link down, or have.
    pub link_losses: LinkWatches,
    /// A table or an interrupt could not be restored, because another run holds the lock.
    pub retry: bool,
    /// What was last reported about moves that could not be written.
    pub noted_moves: Option<String>,
    published: Option<ServiceState>,
}

impl<'a> Service<'a> {
    pub(crate) fn new(
        host: &'a Arc<dyn Host>,
        setup: &'a ServiceSetup,
        process: ProcessId,
        signals: SignalFlag,
        log: &'a mut dyn FnMut(&Event),
    ) -> Self {
        let (facts, _) = ringwise_discover::host_without_rivals(host.as_ref());
        let boot_id = facts.boot_id.known().cloned();
        // The state file has the manual changes that were found before a restart, and the pauses that users requested.
        let last = ServiceState::last(&setup.store).ok().flatten();
        let last = last.filter(|l| l.boot_id.is_some() && l.boot_id == boot_id);
        let known = last.iter().flat_map(|l| &l.manual).filter_map(|m| Some((m.address()?, m.setting.clone())));
        // An earlier service of this boot was killed after it had applied the configuration.
        let dir = setup.store.dirs().first();
        let has_yet_to_live = dir.is_some_and(|d| ringwise_persist::is_boot_unproven(d).unwrap_or(false));
        let state = ServiceState {
            schema: SCHEMA.into(),
            version: VERSION,
            process,
            boot_id,
            since_unix: host.unix_time(),
            config: None,
            keeps: 0,
            paused: last.as_ref().is_some_and(|l| l.paused),
            pauses: Vec::new(),
            manual: Vec::new(),
            actions: last.as_ref().map(|l| l.actions.clone()).unwrap_or_default(),
            totals: ServiceTotals::default(),
            problem: None,
            deaf: Vec::new(),
            loads: Vec::new(),
            moves: Vec::new(),
            no_table_writes: Vec::new(),
        };
        Self {
            host,
            setup,
            log,
            manager: Manager::of_environment(),
            signals,
            schedule: Schedule::default(),
            evidence: NotificationEvidence::incomplete(),
            unsettled: false,
            pauses: Pauses::requested(last.iter().flat_map(|l| &l.pauses)),
            state,
            journals: None,
            to_read: None,
            seen: None,
            prepared: None,
            known: known.collect(),
            noted: Vec::new(),
            named_flows: Vec::new(),
            isolated: None,
            queue_counts: BTreeMap::new(),
            isolated_at_first: None,
            wanted: None,
            act_on_load: Vec::new(),
            config_fault: None,
            reloaded: false,
            configured: false,
            unrecorded: false,
            boot_good_at: has_yet_to_live.then(|| host.since_boot() + LIVED),
            follow: setup.follow.then(Follow::default),
            groups: FollowedGroups::default(),
            table_guard: None,
            rolled_back: BTreeSet::new(),
            restored: false,
            permitted: PermittedCpus::new(),
            machine: LoadLayout::default(),
            balanced: Vec::new(),
            link_losses: LinkWatches::default(),
            retry: false,
            noted_moves: None,
            published: None,
        }
    }

    pub(crate) fn log(&mut self, event: &Event) {
        (self.log)(event);
    }

    pub(crate) fn now(&self) -> Duration {
        self.host.since_boot()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { since_boot: self.host.since_boot(), unix: self.host.unix_time() }
    }

    /// Reads the configuration. A file with faults is reported, and the earlier one stays.
    pub(crate) fn load(&mut self) -> bool {
        self.prepared = None;
        match ringwise_intent::read(&IntentFlags::default(), self.setup.config.as_deref(), false) {
            Ok(wanted) => {
                self.state.config = wanted.file().map(|f| f.display().to_string());
                let host = || ringwise_discover::snapshot(self.host, &Options::all());
                match wanted.act_on_load(host) {
                    Ok(patterns) => self.act_on_load = patterns,
                    Err(e) => self.report_problem(&e.to_string()),
                }
                self.wanted = Some(wanted);
                self.config_fault = None;
                true
            }
            Err(e) => {
                let why = e.to_string();
                self.report_problem(&why);
                self.config_fault = Some(why);
                false
            }
        }
    }

    /// Logs once what is wrong.
    pub(crate) fn report_problem(&mut self, why: &str) {
        if self.state.problem.as_deref() != Some(why) {
            self.state.problem = Some(why.to_string());
            self.log(&Event::Problem(why.to_string()));
        }
    }

    pub(crate) fn clear_problem(&mut self) {
        if let Some(why) = self.config_fault.clone() {
            self.report_problem(&why);
        } else if self.state.problem.take().is_some() {
            self.log(&Event::ProblemSolved);
        }
    }

    /// Publishes the state, if it differs from what was published.
    pub(crate) fn publish_state(&mut self) {
        self.state.pauses = self.pauses.list();
        if self.published.as_ref() == Some(&self.state) {
            return;
        }
        match self.state.publish(&self.setup.store) {
            Ok(()) => self.published = Some(self.state.clone()),
            Err(e) if self.published.is_some() || self.state.problem.is_none() => {
                self.published = None;
                self.report_problem(&format!("cannot write daemon.json: {}", io_text(&e)));
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

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.setup.store.dirs().first().cloned().unwrap_or_default()
    }

    pub(crate) fn mark_boot_good(&mut self) {
        self.boot_good_at = None;
        if let Err(e) = ringwise_persist::mark_boot_good(&self.state_dir()) {
            self.report_problem(&e.to_string());
        }
    }
}
