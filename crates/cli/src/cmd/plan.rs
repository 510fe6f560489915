//! `ringwise plan`

use ringwise_check::RoleGuess;
use ringwise_discover::Options;
use ringwise_knob::{self as knob, Hand, Learned};
use ringwise_model::{GoalChoice, Intent, Snapshot};
use ringwise_plan::{Hands, Plan, Refusal};

use super::flows::{self, Missing};
use super::goals;
use super::hands::{self, Take};
use super::replan::Again;
use super::reviewed::{self, Expiry};
use super::wanted;
use crate::args::{Common, From, IntentArgs, PlanArgs, PlanOutput};
use crate::exit::{Fail, Result, Status};
use crate::source::{self, Source};
use crate::{cmd::transaction, out};
use ringwise_emit::{diff, script};
use ringwise_render::plan::{self as page, Page};
use ringwise_text::no_answer;

pub(super) fn run(a: &PlanArgs, common: &Common) -> Result<Status> {
    if a.intent.print_config {
        return print_config(&a.devs, &a.intent, &a.from, common);
    }
    let source = source::open(&a.from)?;
    let a = &PlanArgs { intent: goals::settled(&a.intent, &source, common)?, ..a.clone() };
    let format = if common.json { PlanOutput::Json } else { a.output };
    let made = make(&source, &a.devs, &a.intent, false, common)?;
    let plan = made.plan(if a.intent.take_over { Take::Over } else { Take::Ask })?;
    let s = made.snapshot;
    if let Some(file) = &a.out {
        let expiry = a.expires.unwrap_or(Expiry(Some(std::time::Duration::from_secs(86_400))));
        reviewed::write(file, &plan, expiry, unix_time()?)?;
        out::note(common.quiet, &format!("ringwise: the plan is in {}", file.display()));
    }
    match format {
        PlanOutput::Json => out::json(&plan)?,
        PlanOutput::Diff => out::answer(&diff::text(&plan))?,
        PlanOutput::Sh => {
            let text = script::text(&plan, &s)
                .map_err(|why| Fail::error(format!("no script can be written for this plan: {why}")))?;
            out::file(&text)?;
        }
        PlanOutput::Text => {
            let style = crate::style::detect(common).about(&source.recording);
            let file = a.out.as_ref().map(|f| f.display().to_string());
            let how = Page { again: a.intent.text(&a.devs), file, recorded: source.recorded, full: a.full };
            out::answer(&page::text(&plan, Some(&s), &how, &style))?;
        }
    }
    Ok(if a.exit_code && !plan.steps.is_empty() { Status::Findings } else { Status::Ok })
}

/// `--print-config`: the file that says the same. A host is looked at where only it knows which entry `--set` means.
pub(super) fn print_config(devs: &[String], intent: &IntentArgs, from: &From, common: &Common) -> Result<Status> {
    let settled = match intent.goal {
        Some(GoalChoice::Auto) => &goals::settled(intent, &source::open(from)?, common)?,
        _ => intent,
    };
    let wanted = wanted::read(devs, settled, from.from.is_some())?;
    let host = || source::open(from)?.snapshot(&Options::all(), common);
    let full = wanted.joined(host, common)?;
    out::answer(&(ringwise_config::print(&full) + &goals::lay_down(&full)))?;
    Ok(Status::Ok)
}

/// The host as read, and what is wanted of it.
pub(super) struct Made {
    options: Options,
    pub snapshot: Snapshot,
    learned: Vec<Learned>,
    /// What somebody else has set on it.
    hands: Vec<Hand>,
    /// What our own transactions have made for groups.
    made: Vec<knob::Made>,
    /// Flows of groups that are not known now.
    missing: Vec<Missing>,
    /// As merged from flags and file; programs in it are looked up in `intent`.
    pub requested: Intent,
    intent: Intent,
    /// The guessed role, where neither a flag nor a file names a goal.
    role: Option<RoleGuess>,
}

impl Made {
    /// None of the interfaces that are wanted is here, or has a link.
    pub(super) fn nothing_yet(&self) -> bool {
        // One that did not answer in time is there: that is an error, not nothing to do.
        if self.snapshot.nics.iter().any(|n| no_answer(n).is_some()) {
            return false;
        }
        let hands = Hands::default();
        let refusal = ringwise_plan::plan_around(&self.snapshot, &self.intent, &self.learned, &hands).err();
        matches!(
            refusal,
            Some(Refusal::NothingTunable { .. } | Refusal::UnknownDevice { .. } | Refusal::NotTunable { .. })
        )
    }

    /// Nobody is asked at boot: a device whose driver was loaded again gets what the file says.
    pub(super) fn at_boot(mut self, common: &Common) -> Self {
        self.hands = hands::chosen(self.hands, &self.snapshot, common);
        self
    }

    fn hands(&self, take: Take) -> Hands {
        // What leads flows that are not known now may be wanted still.
        let known =
            |m: &&knob::Made| m.address().is_none_or(|a| !self.missing.iter().any(|x| a.dev() == Some(x.dev.as_str())));
        hands::hands(&self.hands, self.made.iter().filter(known).cloned().collect(), take)
    }

    /// Who plans the same again when a step of it is refused.
    pub(super) fn planner(&self, take: Take, at_boot: bool) -> Again {
        Again {
            options: self.options.clone(),
            intent: self.intent.clone(),
            hands: self.hands(take),
            learned: self.learned.clone(),
            at_boot,
        }
    }

    pub(super) fn plan(&self, take: Take) -> Result<Plan> {
        let hands = self.hands(take);
        let mut plan = ringwise_plan::plan_around(&self.snapshot, &self.intent, &self.learned, &hands)
            .map_err(|r| Fail::error(r.to_string()))?;
        plan.refused.extend(self.missing.iter().map(Missing::not_possible));
        if let Some((role, goal)) = self.role.as_ref().and_then(|r| Some((r, r.goal()?))) {
            plan.advice.push(format!("this host {}: ringwise plan --goal {goal} is made for that", role.words()));
        }
        Ok(plan)
    }
}

/// Reads the host to be planned.
pub(super) fn make(
    source: &Source,
    devs: &[String],
    args: &IntentArgs,
    at_boot: bool,
    common: &Common,
) -> Result<Made> {
    let wanted = wanted::read(devs, args, source.recorded)?;
    let options = Options { follow: devs.to_vec(), ..Options::all() };
    let s = source.snapshot(&options, common)?;
    for n in &s.nics {
        let Some(why) = no_answer(n) else { continue };
        let text = format!("{}: {why}; it cannot be planned now", n.name());
        if devs.iter().any(|d| d == n.name()) {
            return Err(Fail::error(text).next(source.recording.reads(format!("ringwise show {}", n.name()))));
        }
        out::note(common.quiet, &format!("ringwise: {text}"));
    }
    let learned: Vec<Learned> = if source.recorded { Vec::new() } else { transaction::learned(common) };
    // At boot an interface may come later.
    if let Some(dev) = devs.iter().find(|d| !at_boot && s.nic(d).is_none()) {
        return Err(source.no_such_device(dev, &s));
    }
    let (hands, made) = hands::standing(source, &s, common).map(|v| (v.hands(), v.made)).unwrap_or_default();
    let requested = wanted.intent(&s, common)?;
    let mut intent = requested.clone();
    let missing = flows::look_up(source.host.as_ref(), &mut intent, at_boot)?;
    for m in missing.iter().filter(|_| at_boot) {
        let text = format!("ringwise: {m}; its flows are left out: when it listens, run ringwise apply");
        out::note(common.quiet, &text);
    }
    let said = intent.config.is_some() || args.goal.is_some();
    let role = (!said).then(|| goals::role(source.host.as_ref(), &s));
    Ok(Made { options, snapshot: s, learned, hands, made, missing, requested, intent, role })
}

/// Of now, also where the plan is for a recording.
fn unix_time() -> Result<u64> {
    Ok(source::live()?.host.unix_time())
}
