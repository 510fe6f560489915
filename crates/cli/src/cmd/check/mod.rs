//! `ringwise check`

mod traffic;

pub(super) use self::repeated_findings::findings;

mod repeated_findings;
mod several;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringwise_check::accept::{self, AcceptedFinding, Baseline};
use ringwise_check::{AuditInput, GoalOrigin, Report, capability, formats, judge};
use ringwise_intent::{AppliedPart, AppliedRecord};
use ringwise_model::shell::quote;
use ringwise_model::{Goal, GoalChoice, Intent, Nic, Snapshot};

use super::transaction::{learned, store};
use super::{fleet, goals, manual_changes, show, wanted};
use crate::args::{CheckArgs, CheckOutput, Common, IntentArgs, SourceArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::check as page;
use ringwise_render::json::Document;
use ringwise_text::RecordingName;
use ringwise_text::when;

/// The file of accepted findings.
const ACCEPTED: &str = "/etc/ringwise/accepted.json";

pub(super) fn run(a: &CheckArgs, common: &Common) -> Result<Status> {
    if !a.explain.is_empty() {
        return explain(&a.explain, common);
    }
    if let Some(rule) = &a.accept {
        return accept(a, rule, common);
    }
    let (from, devs) = fleet::captures(&a.from, &a.devs);
    let a = &CheckArgs { from, devs, ..a.clone() };
    if a.capabilities {
        return capabilities(a, common);
    }
    let baseline = baseline(a)?;
    let html = a.output == CheckOutput::Html;
    if html && a.from.is_empty() {
        return Err(fleet::no_captures("check"));
    }
    if html || a.from.len() > 1 {
        return several::run(a, &baseline, common);
    }
    let from = SourceArgs { from: a.from.first().cloned(), passive: a.passive };
    let source = source::open(&from)?;
    let mut r = one(a, &source, common)?;
    r.file = from.from.as_ref().map(|f| f.display().to_string());
    for over in baseline.apply_to(&mut r, &today()?) {
        out::note(common.quiet, &format!("ringwise: {over}; it is a finding again"));
    }
    let failed = a.fail_on.severity().is_some_and(|s| r.worst() >= Some(s));
    match (a.output, common.json) {
        (CheckOutput::Json, _) | (CheckOutput::Text, true) => out::json(&r)?,
        (CheckOutput::Sarif, _) => out::json(&formats::sarif(&[r], &[]))?,
        (CheckOutput::Junit, _) => out::answer(&formats::junit(&[r], &[], a.fail_on.severity()))?,
        // Only about captures, see above.
        (CheckOutput::Html, _) => return Err(fleet::no_captures("check")),
        (CheckOutput::Text, false) => {
            let style = crate::style::detect(common).about(&RecordingName::of(from.from.as_deref()));
            let remark = source.remark(r.unreadable.iter().map(|u| u.cause), style.width);
            out::answer(&(page::report(&r, &until()?, &style) + &remark))?;
        }
    }
    Ok(if failed { Status::Findings } else { Status::Ok })
}

/// Reads the host and checks it.
pub(in crate::cmd) fn one(a: &CheckArgs, source: &Source, common: &Common) -> Result<Report> {
    let s = source.snapshot(&traffic::options(&a.devs), common)?;
    let devs = show::names_in(source, &s, &a.devs)?;
    let host = source.host.as_ref();
    let counted = match (source.recorded, source.passive) {
        (true, _) => traffic::recorded(host),
        (false, true) => None,
        (false, false) => traffic::live(host, &s, a.r#for, common),
    };
    let goal = match a.goal {
        Some(GoalChoice::Auto) => Some((goals::of_role(source, &s, common), GoalOrigin::Auto)),
        Some(GoalChoice::Of(goal)) => Some((goal, GoalOrigin::Requested)),
        None => None,
    };
    judged(goal, source, &s, &devs, counted.as_ref(), common)
}

/// Checks a host that was read, together with its counters.
fn judged(
    asked: Option<(Goal, GoalOrigin)>,
    source: &Source,
    s: &Snapshot,
    devs: &[String],
    counted: Option<&ringwise_check::HostTraffic>,
    common: &Common,
) -> Result<Report> {
    let host = source.host.as_ref();
    let deadline = traffic::options(&[]).deadline;
    let extra = ringwise_discover::extra(&source.host, s, deadline);
    let standing = match source.recorded {
        true => AppliedRecord::recorded(host),
        false => {
            let v = manual_changes::standing(source, s, common);
            AppliedRecord::live(s, v.as_ref(), &store(common), learned(common))
        }
    };
    let (goal_from, mut intent, mut parts) = wanted_of(asked, devs, source, s, &standing, common);
    for i in std::iter::once(&mut intent).chain(parts.iter_mut().map(|p| &mut p.1)) {
        let _ = ringwise_intent::look_up(host, i, true)?;
    }
    let (devs, notes) = &with_members(s, devs);
    for note in notes {
        out::note(common.quiet, &format!("ringwise: {note}"));
    }
    // Its ports have one layout, and the named ones alone may fit another.
    let others = s.tunable().map(Nic::name).filter(|n| !devs.iter().any(|d| d == n)).count();
    if !devs.is_empty() && others > 0 && parts.is_empty() && ringwise_plan::ports_alike(intent.goal) {
        let text = "ringwise: checked without the other interfaces. The ports of a router have one layout: check all of them together";
        out::note(common.quiet, text);
    }
    let plan = ringwise_intent::plan_in_effect(s, &intent, &parts, &standing.learned, &standing);
    let input = AuditInput {
        snapshot: s,
        extra: &extra,
        plan: plan.as_ref().map_err(ToString::to_string),
        intent: &intent,
        goal_from,
        traffic: counted,
        drift: standing.drift.clone(),
        devs,
    };
    Ok(judge(&input))
}

/// The named interfaces, and those that have the queues of a bond, bridge or VLAN among them, with notes for the user.
fn with_members(s: &Snapshot, devs: &[String]) -> (Vec<String>, Vec<String>) {
    let (members, notes) = ringwise_intent::members(s, devs);
    let above = devs.iter().filter(|d| !members.contains(d)).cloned().collect::<BTreeSet<_>>();
    (above.into_iter().chain(members).collect(), notes)
}

/// The intent for the whole host: from the flags, or from what was applied, or from the file; and the intents of
/// interfaces that were applied separately.
fn wanted_of(
    asked: Option<(Goal, GoalOrigin)>,
    named: &[String],
    source: &Source,
    s: &Snapshot,
    standing: &AppliedRecord,
    common: &Common,
) -> Wanted {
    let intent = |devs: &[String], args: &IntentArgs| {
        let quiet = Common { quiet: true, ..common.clone() };
        // A wrong or contradictory file is reported by `plan`; the host is checked all the same.
        wanted::read(devs, args, source.recorded).and_then(|w| wanted::intent(&w, source, s, &quiet)).unwrap_or_else(
            |e| {
                out::note(
                    common.quiet,
                    &format!(
                        "ringwise: checked against the goal alone, because the request cannot be used: {}",
                        e.message
                    ),
                );
                Intent { goal: args.named_goal().unwrap_or_default(), devs: devs.to_vec(), ..Intent::default() }
            },
        )
    };
    if let Some((goal, origin)) = asked {
        let args = IntentArgs { goal: Some(GoalChoice::Of(goal)), override_config: true, ..IntentArgs::default() };
        // The command that a finding names plans the same interfaces.
        return (origin, intent(named, &args), Vec::new());
    }
    let config = !source.recorded && Path::new(ringwise_model::DEFAULT_CONFIG).exists();
    let otherwise = if config { GoalOrigin::Config } else { GoalOrigin::Default };
    let known = standing.parts(s);
    if let Some(a) = &known.unknown {
        let which = a.transaction.map_or_else(|| "a transaction".into(), |id| format!("transaction {id}"));
        let text = "was recorded by an earlier version, so its goal and options are unknown: checked without them";
        out::note(common.quiet, &format!("ringwise: {which} {text}"));
    }
    let (whole, alone): (Vec<AppliedPart>, Vec<AppliedPart>) = known.list.into_iter().partition(|p| p.whole);
    let parts: Vec<_> = alone.into_iter().map(|p| (p.devs, p.intent)).collect();
    let of_whole = !whole.is_empty();
    let (from, mut all) = match whole.into_iter().next() {
        Some(p) if p.from_config => (GoalOrigin::Config, p.intent),
        Some(p) => (GoalOrigin::ActiveTransaction, p.intent),
        None => (otherwise, intent(if config { &[] } else { named }, &IntentArgs::default())),
    };
    let from = match parts.first() {
        Some(p) if !of_whole => {
            // The host gets the goal of the interfaces that were applied last; interfaces that were never applied keep
            // theirs.
            let rest: Vec<_> = s.tunable().map(|n| (n.name().to_string(), all.goal_of(n.name()))).collect();
            all.goal = p.1.goal;
            all.dev_goals.extend(rest);
            GoalOrigin::ActiveTransaction
        }
        _ => from,
    };
    ringwise_intent::join_goals(&mut all, &parts);
    (from, all, parts)
}

/// The intent for the whole host, and those for interfaces that were applied separately.
type Wanted = (GoalOrigin, Intent, Vec<(Vec<String>, Intent)>);

/// The error for an id that no rule has.
fn no_such_rule(id: &str) -> Fail {
    match ringwise_check::nearest(id) {
        Some(near) => Fail::usage(format!("there is no rule \"{id}\"; did you mean {near}?"))
            .next(format!("ringwise check --explain {near}")),
        None => Fail::usage(format!("there is no rule \"{id}\"; expected an id as ringwise check shows it, e.g. A02"))
            .next("ringwise help rules"),
    }
}

/// The pages of these rules; with JSON one document each. Nothing is printed if one of them does not exist.
fn explain(ids: &[String], common: &Common) -> Result<Status> {
    let width = crate::style::detect(common).text_width();
    let page = |id: &String| ringwise_check::explain(id, width).ok_or_else(|| no_such_rule(id));
    let pages = ids.iter().map(page).collect::<Result<Vec<String>>>()?;
    if !common.json {
        out::answer(&pages.join("\n"))?;
        return Ok(Status::Ok);
    }
    for (id, text) in ids.iter().zip(&pages) {
        let id = ringwise_check::find(id).map_or(id.as_str(), |r| r.id);
        let body = serde_json::json!({ "id": id, "page": text });
        let page = Document { schema: "ringwise.rule", version: 1, body };
        match ids.len() {
            1 => out::json(&page)?,
            _ => out::json_line(
                &serde_json::to_string(&page).map_err(|e| Fail::error(format!("cannot write JSON: {e}")))?,
            )?,
        }
    }
    Ok(Status::Ok)
}

fn capabilities(a: &CheckArgs, common: &Common) -> Result<Status> {
    if a.from.len() > 1 {
        let message = format!("--capabilities is about one host; found {} captures", a.from.len());
        return Err(Fail::usage(message).next("ringwise check --capabilities --from FILE"));
    }
    let from = SourceArgs { from: a.from.first().cloned(), passive: a.passive };
    let source = source::open(&from)?;
    let mut options = traffic::options(&a.devs);
    options.parts.xdp_metadata = true;
    let s = source.snapshot(&options, common)?;
    let extra = ringwise_discover::extra(&source.host, &s, options.deadline);
    let table = capability::table(&s, &extra);
    if common.json || a.output == CheckOutput::Json {
        let body = serde_json::json!({ "capabilities": table });
        out::json(&Document { schema: "ringwise.capabilities", version: 1, body })?;
    } else {
        out::answer(&page::capabilities(&s, &table, &crate::style::detect(common)))?;
    }
    Ok(Status::Ok)
}

fn path(a: &CheckArgs) -> Option<PathBuf> {
    match &a.baseline {
        Some(p) if p == Path::new("none") => None,
        Some(p) => Some(p.clone()),
        // Findings accepted on this host do not apply to a recorded host.
        None => a.from.is_empty().then(|| ACCEPTED.into()),
    }
}

fn baseline(a: &CheckArgs) -> Result<Baseline> {
    let Some(path) = path(a) else { return Ok(Baseline::default()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Baseline::parse(&text).map_err(|e| {
            let fail = Fail::error(format!("{}: {e}", path.display()));
            fail.next(begin_anew(a, &path))
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && (a.baseline.is_none() || a.accept.is_some()) => {
            Ok(Baseline::default())
        }
        Err(e) => Err(Fail::io(path.display(), &e)),
    }
}

/// What to do about a damaged baseline: keep it under another name, and begin a new one.
fn begin_anew(a: &CheckArgs, path: &Path) -> String {
    let file = path.display().to_string();
    let rule = a.accept.as_deref().unwrap_or("RULE");
    let reason = a.reason.as_deref().map_or_else(|| "\"...\"".to_string(), quote);
    let day = a.until.clone().or_else(|| until().ok()).unwrap_or_else(|| "DAY".into());
    let devs: String = a.devs.iter().map(|d| format!("{} ", quote(d))).collect();
    let baseline = a.baseline.as_ref().map_or_else(String::new, |_| format!(" --baseline {}", quote(&file)));
    format!(
        "mv {} {}      (then begin a new one: ringwise check {devs}--accept {rule} --reason {reason} --until {}{baseline})",
        quote(&file),
        quote(&format!("{file}.damaged")),
        quote(&day)
    )
}

fn accept(a: &CheckArgs, rule: &str, common: &Common) -> Result<Status> {
    let Some(path) = path(a) else { return Err(Fail::usage("--accept with --from needs --baseline FILE")) };
    let mut b = baseline(a)?;
    let rule = ringwise_check::find(rule).ok_or_else(|| no_such_rule(rule))?.id.to_string();
    let (reason, until) = (a.reason.clone().unwrap_or_default(), a.until.clone().unwrap_or_default());
    let today = today()?;
    if accept::is_date(&until) && until < today {
        let message = format!(
            "{rule}: {until} is in the past; expected the last day of the acceptance, {today} (today) or later"
        );
        return Err(Fail::usage(message));
    }
    let devs = accepted_devs(a, common)?;
    let of = devs.iter().flatten().map(|d| ringwise_text::visible(d)).collect::<Vec<_>>().join(" ");
    for dev in devs {
        b.add(AcceptedFinding { rule: rule.clone(), dev, reason: reason.clone(), until: until.clone() })
            .map_err(Fail::usage)?;
    }
    let mut text = serde_json::to_string_pretty(&b).map_err(|e| Fail::error(e.to_string()))?;
    text.push('\n');
    if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).map_err(|e| Fail::io(dir.display(), &e))?;
    }
    std::fs::write(&path, text).map_err(|e| Fail::io(path.display(), &e))?;
    let of = if of.is_empty() { String::new() } else { format!(" for {of}") };
    out::answer(&format!("{rule} is accepted{of} until {until} ({})\n", path.display()))?;
    Ok(Status::Ok)
}

/// The interfaces for which a rule is accepted. `None`: for all. Findings of a bond, bridge or VLAN are also about the
/// interfaces below it.
fn accepted_devs(a: &CheckArgs, common: &Common) -> Result<Vec<Option<String>>> {
    let (from, devs) = fleet::captures(&a.from, &a.devs);
    if devs.is_empty() {
        return Ok(vec![None]);
    }
    // Interfaces of several captures may have the same names and other members.
    let devs = match from.as_slice() {
        [_, _, ..] => devs,
        one => {
            let source = source::open(&SourceArgs { from: one.first().cloned(), passive: true })?;
            let s = source.snapshot(&traffic::options(&devs), common)?;
            with_members(&s, &show::names_in(&source, &s, &devs)?).0
        }
    };
    Ok(devs.into_iter().map(Some).collect())
}

fn now() -> Result<u64> {
    Ok(source::live()?.host.unix_time())
}

fn today() -> Result<String> {
    Ok(when::minute(now()?, false).split(' ').next().unwrap_or_default().to_string())
}

/// The proposed expiry day: in a hundred days.
fn until() -> Result<String> {
    Ok(when::minute(now()? + 100 * 86_400, false).split(' ').next().unwrap_or_default().to_string())
}
