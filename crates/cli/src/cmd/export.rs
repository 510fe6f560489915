//! `ringwise export`: counters and applied settings, for Prometheus.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use ringwise_apply::{Ending, HistoryEntry, Journals, Store, TransactionKind};
use ringwise_daemon::pauses::PauseReason;
use ringwise_daemon::{MoveCount, ServiceState};
use ringwise_discover::Options;
use ringwise_export::{
    Bounds, ExporterFacts, Findings, Form, Keeper, LastTransaction, Page, PageResult, Service, VerifyCounts, counters,
    exporter, findings, serve, service, verify_counts,
};
use ringwise_knob::Match;
use ringwise_observe::{Counters, Layout, LiveCounters, Rates};
use ringwise_sys::{Host, proc, store as file};

use super::counting::follow;
use super::transaction::{store, words};
use super::{check, status};
use crate::args::{Common, ExportArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_model::shell::quote;
use ringwise_recording::{RecordingLine as Line, Replay};

/// Requests within this time get the same page, because some drivers query their firmware for counters.
const SAME: Duration = Duration::from_secs(1);
/// A client must not wait forever for a device that does not answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Limit of requests that wait for a page. Further requests are refused.
const WAITING: usize = 16;

pub(super) fn run(a: &ExportArgs, common: &Common) -> Result<Status> {
    if common.json {
        return Err(Fail::usage("export has no JSON output; for counters as JSON run ringwise watch -j"));
    }
    match &a.textfile {
        Some(dir) => textfile(dir, a, common),
        None => listen(a, common),
    }
}

fn textfile(dir: &Path, a: &ExportArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let mut maker = Maker::new(&source, a, common, a.interval.is_some())?;
    let path = dir.join("ringwise.prom");
    let mut next = source.host.since_boot();
    loop {
        let text = maker.page(Form::Prometheus);
        file::write_shared(&path, text.as_bytes()).map_err(|e| {
            let fail = Fail::from(e);
            if matches!(dir.try_exists(), Ok(false)) {
                fail.next(format!("mkdir -p {}", quote(&dir.to_string_lossy())))
            } else {
                fail
            }
        })?;
        let Some(interval) = a.interval else { return Ok(Status::Ok) };
        next = (next + interval).max(source.host.since_boot());
        source.host.sleep(next.saturating_sub(source.host.since_boot()));
    }
}

type PageRequest = (Form, SyncSender<String>);

fn listen(a: &ExportArgs, common: &Common) -> Result<Status> {
    let broken = |e: std::io::Error| Fail::io(a.listen, &e);
    let listener = TcpListener::bind(a.listen).map_err(broken)?;
    let at = listener.local_addr().map_err(broken)?;
    let (send, asked) = sync_channel::<PageRequest>(WAITING);
    let (ready, started) = channel();
    let (args, flags) = (a.clone(), common.clone());
    // One thread reads the host. A kernel call on a failing device may hang it; clients then get an error.
    let reader = move || reader(&args, &flags, &ready, &asked);
    std::thread::Builder::new()
        .name("reader".into())
        .spawn(reader)
        .map_err(|e| Fail::io("cannot start the thread that reads the host", &e))?;
    started.recv().map_err(|_| Fail::error("the thread that reads the host has ended unexpectedly"))??;
    out::note(common.quiet, &format!("ringwise: metrics at http://{at}/metrics"));
    let page = move |form| {
        let (to, page) = sync_channel(1);
        if send.try_send((form, to)).is_err() {
            return PageResult::Busy("too many requests wait for the counters already".into());
        }
        match page.recv_timeout(PATIENCE) {
            Ok(text) => PageResult::Page(text),
            Err(_) => PageResult::Busy("the counters could not be read in time: a device does not answer".into()),
        }
    };
    serve(&listener, Bounds::default(), page).map_err(broken)?;
    Ok(Status::Ok)
}

fn reader(a: &ExportArgs, common: &Common, ready: &Sender<Result<()>>, asked: &Receiver<PageRequest>) {
    let source = match source::live() {
        Ok(s) => s,
        Err(e) => return drop(ready.send(Err(e))),
    };
    let mut maker = match Maker::new(&source, a, common, true) {
        Ok(m) => m,
        Err(e) => return drop(ready.send(Err(e))),
    };
    drop(ready.send(Ok(())));
    let mut last: BTreeMap<&str, (Instant, String)> = BTreeMap::new();
    while let Ok((form, to)) = asked.recv() {
        let key = form.content_type();
        if last.get(key).is_none_or(|(at, _)| at.elapsed() >= SAME) {
            let text = maker.page(form);
            last.insert(key, (Instant::now(), text));
        }
        // The client may have disconnected.
        drop(to.send(last[key].1.clone()));
    }
}

/// The source of the counters.
enum CounterSource<'a> {
    Host(Box<LiveCounters<'a>>),
    Recording(Box<Recording>),
}

struct Recording {
    lines: Replay,
    layout: Layout,
    last: Option<Counters>,
}

impl CounterSource<'_> {
    /// The next sample. After the last sample of a recording it is repeated.
    fn read(&mut self) -> (Layout, Counters) {
        match self {
            Self::Host(c) => {
                let now = c.read();
                (c.layout().clone(), now)
            }
            Self::Recording(r) => {
                while let Ok(Some(entry)) = r.lines.next_entry() {
                    match entry {
                        Line::Begin { .. } => {}
                        Line::Layout(l) => r.layout = l,
                        Line::Sample(c) => {
                            r.last = Some(c);
                            break;
                        }
                    }
                }
                (r.layout.clone(), r.last.clone().unwrap_or_default())
            }
        }
    }
}

/// Makes pages one after the other.
struct Maker<'a> {
    source: &'a Source,
    from: CounterSource<'a>,
    keep: Keeper,
    store: Store,
    common: Common,
    limit: usize,
    lasts: bool,
    start_unix: u64,
    verify_every: Duration,
    verified: Option<(Duration, VerifyCounts)>,
    devs: Vec<String>,
    /// Zero: never.
    check_every: Duration,
    /// The last findings. The inner `None`: the host could not be read then.
    checked: Option<(Duration, Option<Findings>)>,
    /// The counters of the previous page, for rules about rates.
    before: Option<(Layout, Counters)>,
}

impl<'a> Maker<'a> {
    fn new(source: &'a Source, a: &ExportArgs, common: &Common, lasts: bool) -> Result<Self> {
        let from = match &a.replay {
            Some(file) => CounterSource::Recording(Box::new(Recording {
                lines: Replay::open(file, None)?,
                layout: Layout::default(),
                last: None,
            })),
            None => CounterSource::Host(Box::new(follow(source, &a.devs, common, true)?.0)),
        };
        let limit = a.max_series as usize;
        Ok(Self {
            source,
            from,
            // Also keeps devices that disappear for a while.
            keep: Keeper::new(4 * limit),
            store: store(common),
            common: Common { quiet: true, ..common.clone() },
            limit,
            lasts,
            start_unix: source.host.unix_time(),
            verify_every: a.verify_every,
            verified: None,
            devs: a.devs.clone(),
            check_every: a.check_every,
            checked: None,
            before: None,
        })
    }

    fn page(&mut self, form: Form) -> String {
        let host: &dyn Host = self.source.host.as_ref();
        let now = host.since_boot();
        let standing_now = match self.verified.take() {
            Some((at, s)) if now.saturating_sub(at) < self.verify_every => Some((at, s)),
            // What was applied on a recorded host is unknown.
            _ if matches!(self.from, CounterSource::Recording(_)) => None,
            _ => Some((now, verified(self.source, &self.store, &self.common))),
        };
        let begin = host.since_boot();
        let (layout, c) = self.from.read();
        let sample = host.since_boot().saturating_sub(begin);
        let mut page = Page::default();
        self.keep.begin();
        counters(&mut page, &mut self.keep, &layout, &c);
        if let Some((_, s)) = &standing_now {
            verify_counts(&mut page, s);
        }
        // An unreadable state is unknown, and a recording has none: the metrics are absent.
        if matches!(self.from, CounterSource::Host(_))
            && let Ok(running) = ServiceState::running(&self.store, host)
        {
            service(&mut page, running.as_ref().map(numbers).as_ref());
        }
        if let Some(f) = self.findings(now, &layout, &c) {
            findings(&mut page, &f);
        }
        let o = ExporterFacts {
            version: env!("CARGO_PKG_VERSION"),
            lasts: self.lasts,
            start_unix: self.start_unix,
            cpu_seconds: proc::cpu_time().as_secs_f64(),
            sample_seconds: sample.as_secs_f64(),
            unread: c.unread.len(),
            limit: self.limit,
        };
        exporter(&mut page, &o, &self.keep);
        self.verified = standing_now;
        page.render(form, self.limit)
    }

    /// Checks the host again when the last findings are too old. Rates are computed since the previous page; a running
    /// exporter waits for it.
    fn findings(&mut self, now: Duration, layout: &Layout, c: &Counters) -> Option<Findings> {
        if self.check_every.is_zero() || matches!(self.from, CounterSource::Recording(_)) {
            return None;
        }
        let before = self.before.replace((layout.clone(), c.clone()));
        let due = match &self.checked {
            Some((at, _)) => now.saturating_sub(*at) >= self.check_every,
            None => before.is_some() || !self.lasts,
        };
        if due {
            let same = before.filter(|(l, _)| l == layout);
            let rates = same.and_then(|(l, b)| Rates::between(&l, &b, c));
            let made = check::findings(self.source, &self.devs, rates.as_ref(), &self.common);
            self.checked = Some((now, made.ok()));
        }
        self.checked.as_ref().and_then(|(_, f)| f.clone())
    }
}

/// The result of `ringwise verify`, which reads only what it needs. Nothing is written.
fn verified(source: &Source, store: &Store, common: &Common) -> VerifyCounts {
    let unix_time = source.host.unix_time();
    let unknown = VerifyCounts { unix_time, ..VerifyCounts::default() };
    let options = Options { skip_rivals: true, parts: status::needed(store), ..Options::all() };
    let read = || -> std::result::Result<VerifyCounts, String> {
        // The journals are read first, so that a transaction that ends meanwhile does not look like a manual change.
        let journals = Journals::read(store).map_err(|e| words(&e))?;
        let s = source.snapshot(&options, common).map_err(|e| e.message)?;
        let journals = journals.fresh().map_err(|e| words(&e))?;
        let v = journals.verify(&s);
        let mut settings: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for st in &v.settings {
            let dev = st.want.address().and_then(|a| a.dev().map(str::to_string)).unwrap_or_default();
            let state = match &st.how {
                how if how.holds() => 0,
                Match::Unknown(_) => 2,
                _ => 1,
            };
            settings.entry(dev).or_default()[state] += 1;
        }
        Ok(VerifyCounts {
            readable: true,
            settings,
            unfinished: v.unfinished.is_some(),
            trial_until_unix: v.trial.as_ref().map(|t| t.trial.until(source.host.as_ref())),
            last: journals.history(&s.host).last().map(last),
            ..unknown.clone()
        })
    };
    read().unwrap_or(unknown)
}

/// What the service has published, as numbers.
fn numbers(s: &ServiceState) -> Service {
    let mut pauses = [("command", 0), ("competing", 0), ("failed", 0)];
    for p in &s.pauses {
        let at = match p.why {
            PauseReason::Command => 0,
            PauseReason::Competing { .. } => 1,
            PauseReason::Failed { .. } => 2,
        };
        pauses[at].1 += 1;
    }
    Service {
        start_unix: s.since_unix,
        problem: s.problem.is_some(),
        paused: s.paused,
        pauses,
        keeps: s.keeps as u64,
        transactions: [s.totals.kept, s.totals.failed],
        written: s.totals.settings,
        manual: s.totals.manual,
        lost: s.totals.overflows,
        notifications: {
            let heard = &s.totals.heard;
            [heard.links, heard.ethtool, heard.netdev, heard.uevents, heard.files]
        },
        uneven: s.loads.iter().filter(|l| !l.finding.is_about_groups()).map(|l| l.interface.clone()).collect(),
        moves: {
            let of = |m: &MoveCount| (m.interface.clone(), m.actuator.name(), m.reason.name(), m.count);
            s.moves.iter().map(of).collect()
        },
        no_table_writes: s.no_table_writes.clone(),
        better_tables: s.totals.better_tables,
        moved_entries: s.totals.moved_entries,
        taken_back: s.totals.taken_back,
        better_interrupts: s.totals.better_interrupts,
        moved_interrupts: s.totals.moved_interrupts,
        interrupts_taken_back: s.totals.interrupts_taken_back,
        better_masks: s.totals.better_masks,
        changed_masks: s.totals.changed_masks,
        masks_taken_back: s.totals.masks_taken_back,
        better_groups: s.totals.better_groups,
        changed_groups: s.totals.changed_groups,
        groups_taken_back: s.totals.groups_taken_back,
        last_unix: s.actions.last().map(|a| a.unix_time),
    }
}

fn last(e: &HistoryEntry) -> LastTransaction {
    let kind = match e.kind {
        TransactionKind::Apply => "apply",
        TransactionKind::Rollback { .. } => "rollback",
        TransactionKind::Adopt => "adopt",
        TransactionKind::Other => "other",
    };
    let verdict = match &e.ending {
        Ending::Kept if e.undone_by.is_some() => "rolled_back",
        Ending::Kept => "kept",
        Ending::PutBack => "put_back",
        Ending::PutBackIncomplete => "put_back_incomplete",
        Ending::Unfinished => "unfinished",
        Ending::Running { .. } => "running",
        Ending::OnTrial { .. } => "on_trial",
        Ending::Closed { .. } => "closed",
    };
    LastTransaction { transaction: e.id, kind: kind.into(), verdict: verdict.into(), unix_time: e.unix_time }
}
