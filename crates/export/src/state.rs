//! Metrics of applied settings, of findings, and of the exporter itself. This module does no I/O.

use std::collections::BTreeMap;

use crate::keep::Keeper;
use crate::page::{Page, Value};
use crate::table as t;

/// What `verify` finds, as numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyCounts {
    /// Time of the verification, seconds since 1970.
    pub unix_time: u64,
    /// False: the record of transactions cannot be read, and nothing else here is known.
    pub readable: bool,
    /// Settings in effect by device (empty: the host): unchanged, drifted, and unreadable.
    pub settings: BTreeMap<String, [u64; 3]>,
    /// A transaction was interrupted and needs `ringwise recover`.
    pub unfinished: bool,
    /// Deadline of the trial, seconds since 1970. `None`: no transaction is on trial.
    pub trial_until_unix: Option<u64>,
    /// `None`: there was no transaction.
    pub last: Option<LastTransaction>,
}

/// What `check` finds, as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Time of the check, seconds since 1970.
    pub unix_time: u64,
    /// Number of findings of each severity.
    pub by_severity: [(&'static str, u64); 3],
    /// Rules that could not be evaluated completely, because something could not be read.
    pub unread_rules: u64,
    /// Rules about rates that were skipped, because there was no earlier page.
    pub skipped_rules: u64,
}

/// The last transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastTransaction {
    /// Number of the transaction.
    pub transaction: u64,
    /// `apply`, `rollback`, `adopt` or `other`.
    pub kind: String,
    /// How it ended: `kept`, `put_back`, `on_trial` and so on.
    pub verdict: String,
    /// When it began, seconds since 1970.
    pub unix_time: u64,
}

/// The service, as numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Service {
    /// When it started, seconds since 1970.
    pub start_unix: u64,
    /// It cannot keep the layout at present.
    pub problem: bool,
    /// The whole host is paused.
    pub paused: bool,
    /// Paused interfaces, by reason. Each reason is listed, also with 0.
    pub pauses: [(&'static str, u64); 3],
    /// Settings that it keeps.
    pub keeps: u64,
    /// Transactions that were kept, and those that failed or were refused.
    pub transactions: [u64; 2],
    /// Settings that it has written.
    pub written: u64,
    /// Manual changes that it has found.
    pub manual: u64,
    /// How often it lost notifications.
    pub lost: u64,
    /// Notifications that it received, by source: rtnetlink, ethtool, netdev, uevents, files.
    pub notifications: [u64; 5],
    /// Interfaces whose load is uneven.
    pub uneven: Vec<String>,
    /// Changes because of the load: interface, what was changed, why, and how often.
    pub moves: Vec<(String, &'static str, &'static str, u64)>,
    /// Interfaces whose RSS table is not written because of load, because a write took the link down.
    pub no_table_writes: Vec<String>,
    /// RSS tables that would have been better.
    pub better_tables: u64,
    /// Entries of RSS tables that it has moved.
    pub moved_entries: u64,
    /// Changes of RSS tables that it has taken back.
    pub taken_back: u64,
    /// Interrupts that another CPU would have served better.
    pub better_interrupts: u64,
    /// Interrupts that were moved because of the load.
    pub moved_interrupts: u64,
    /// Moves of interrupts that were taken back.
    pub interrupts_taken_back: u64,
    /// RPS masks that would have been better.
    pub better_masks: u64,
    /// RPS masks that were changed because of the load.
    pub changed_masks: u64,
    /// Changes of RPS masks that it has taken back.
    pub masks_taken_back: u64,
    /// Groups of queues that would have suited the traffic better.
    pub better_groups: u64,
    /// Groups of queues that were changed because of the traffic.
    pub changed_groups: u64,
    /// Changes of groups of queues that it has taken back.
    pub groups_taken_back: u64,
    /// Its last transaction, seconds since 1970. `None`: there was none.
    pub last_unix: Option<u64>,
}

const SOURCES: [&str; 5] = ["links", "ethtool", "netdev", "uevents", "files"];
const STATES: [&str; 3] = ["holds", "drifted", "unknown"];

/// Adds the state of the settings that were applied; without a readable record, only that it is unreadable.
pub fn verify_counts(page: &mut Page, s: &VerifyCounts) {
    page.add(&t::STATE_READABLE, &[], Value::Int(s.readable.into()));
    if s.readable {
        page.add(&t::VERIFIED, &[], Value::Int(s.unix_time));
        for (device, counts) in &s.settings {
            for (state, n) in STATES.iter().zip(counts) {
                page.add(&t::SETTINGS, &[("device", device), ("state", state)], Value::Int(*n));
            }
        }
        page.add(&t::UNFINISHED, &[], Value::Int(s.unfinished.into()));
        if let Some(until) = s.trial_until_unix {
            page.add(&t::TRIAL, &[], Value::Int(until));
        }
        if let Some(l) = &s.last {
            page.add(&t::LAST_TIME, &[], Value::Int(l.unix_time));
            let id = l.transaction.to_string();
            page.add(&t::LAST, &[("transaction", &id), ("kind", &l.kind), ("verdict", &l.verdict)], Value::Int(1));
        }
    }
}

/// Adds the service that runs. `None`: none runs.
pub fn service(page: &mut Page, s: Option<&Service>) {
    page.add(&t::SERVICE, &[], Value::Int(s.is_some().into()));
    let Some(s) = s else { return };
    page.add(&t::SERVICE_START, &[], Value::Int(s.start_unix));
    page.add(&t::SERVICE_PROBLEM, &[], Value::Int(s.problem.into()));
    page.add(&t::SERVICE_PAUSED, &[], Value::Int(s.paused.into()));
    for (reason, n) in s.pauses {
        page.add(&t::SERVICE_PAUSES, &[("reason", reason)], Value::Int(n));
    }
    page.add(&t::SERVICE_SETTINGS, &[], Value::Int(s.keeps));
    for (verdict, n) in ["kept", "failed"].into_iter().zip(s.transactions) {
        page.add(&t::SERVICE_TRANSACTIONS, &[("verdict", verdict)], Value::Int(n));
    }
    page.add(&t::SERVICE_WRITTEN, &[], Value::Int(s.written));
    page.add(&t::SERVICE_MANUAL, &[], Value::Int(s.manual));
    page.add(&t::SERVICE_LOST, &[], Value::Int(s.lost));
    for (source, n) in SOURCES.into_iter().zip(s.notifications) {
        page.add(&t::SERVICE_NOTIFICATIONS, &[("source", source)], Value::Int(n));
    }
    for device in &s.uneven {
        page.add(&t::SERVICE_UNEVEN, &[("device", device)], Value::Int(1));
    }
    for (device, actuator, reason, n) in &s.moves {
        let labels = [("device", device.as_str()), ("actuator", *actuator), ("reason", *reason)];
        page.add(&t::SERVICE_MOVES, &labels, Value::Int(*n));
    }
    for device in &s.no_table_writes {
        page.add(&t::SERVICE_NO_TABLE, &[("device", device), ("reason", "link_went_down")], Value::Int(1));
    }
    page.add(&t::SERVICE_BETTER, &[], Value::Int(s.better_tables));
    page.add(&t::SERVICE_MOVED, &[], Value::Int(s.moved_entries));
    page.add(&t::SERVICE_TAKEN_BACK, &[], Value::Int(s.taken_back));
    page.add(&t::SERVICE_BETTER_INTERRUPTS, &[], Value::Int(s.better_interrupts));
    page.add(&t::SERVICE_MOVED_INTERRUPTS, &[], Value::Int(s.moved_interrupts));
    page.add(&t::SERVICE_INTERRUPTS_TAKEN_BACK, &[], Value::Int(s.interrupts_taken_back));
    page.add(&t::SERVICE_BETTER_MASKS, &[], Value::Int(s.better_masks));
    page.add(&t::SERVICE_CHANGED_MASKS, &[], Value::Int(s.changed_masks));
    page.add(&t::SERVICE_MASKS_TAKEN_BACK, &[], Value::Int(s.masks_taken_back));
    page.add(&t::SERVICE_BETTER_GROUPS, &[], Value::Int(s.better_groups));
    page.add(&t::SERVICE_CHANGED_GROUPS, &[], Value::Int(s.changed_groups));
    page.add(&t::SERVICE_GROUPS_TAKEN_BACK, &[], Value::Int(s.groups_taken_back));
    if let Some(at) = s.last_unix {
        page.add(&t::SERVICE_ACTION, &[], Value::Int(at));
    }
}

/// Adds the findings by severity, and how many rules could not be evaluated.
pub fn findings(page: &mut Page, f: &Findings) {
    for (severity, n) in f.by_severity {
        page.add(&t::FINDINGS, &[("severity", severity)], Value::Int(n));
    }
    page.add(&t::CHECKED, &[], Value::Int(f.unix_time));
    page.add(&t::RULES_UNREAD, &[], Value::Int(f.unread_rules));
    page.add(&t::RULES_SKIPPED, &[], Value::Int(f.skipped_rules));
}

/// The exporter.
#[derive(Debug, Clone, Default)]
pub struct ExporterFacts<'a> {
    /// Version of ringwise.
    pub version: &'a str,
    /// The exporter keeps running. One that writes a page and exits has no start time to report.
    pub lasts: bool,
    /// When the exporter started, seconds since 1970.
    pub start_unix: u64,
    /// CPU time it has used, user and system together.
    pub cpu_seconds: f64,
    /// Time that reading the last sample took.
    pub sample_seconds: f64,
    /// Number of values that could not be read for this page.
    pub unread: usize,
    /// Limit of series on the page.
    pub limit: usize,
}

/// Adds the metrics about the exporter itself.
pub fn exporter(page: &mut Page, o: &ExporterFacts, keep: &Keeper) {
    page.add(&t::BUILD, &[("version", o.version)], Value::Int(1));
    page.add(&t::SERIES_LIMIT, &[], Value::Int(o.limit as u64));
    page.add(&t::UNREAD, &[], Value::Int(o.unread as u64));
    page.add(&t::SAMPLE, &[], Value::Num(o.sample_seconds));
    if o.lasts {
        page.add(&t::START, &[], Value::Int(o.start_unix));
        page.add(&t::OWN_CPU, &[], Value::Num(o.cpu_seconds));
        for (device, n) in keep.resets() {
            page.add(&t::RESETS, &[("device", device)], Value::Int(n));
        }
    }
}
