//! `ringwise bench search`: searches queue count, ring size, moderation and placement for one workload, by successive
//! halving within a time limit. It leaves the host as found, and prints the result as a configuration file with its
//! evidence.

use ringwise_bench::halving::HalvingOutcome;
use ringwise_bench::result::Metric;
use ringwise_discover::{Options, Parts};
use ringwise_experiment::{MessagesWorkload, SearchSpace, Workload, candidates, metric};
use ringwise_model::Snapshot;

use super::states::{self, Wanted};
use super::{report, session, workload};
use crate::args::{self, Common, SearchArgs, SearchFor};
use crate::cmd::{show, wanted};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_text::plural;

pub(super) fn run(a: &SearchArgs, common: &Common) -> Result<Status> {
    let run = &a.run;
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: run.devs.clone(), ..Options::all() }, common)?;
    let kind = match a.workload {
        SearchFor::Rr => Some(MessagesWorkload::Rr),
        SearchFor::Burst => Some(MessagesWorkload::Burst),
        SearchFor::Stream => Some(MessagesWorkload::Stream),
        SearchFor::Forward => None,
    };
    let (mut load, devs): (Box<dyn Workload>, Vec<String>) = match kind {
        None => {
            let (load, _) = workload::forward(run, &s, &source)?;
            let devs = load.devs();
            (Box::new(load), devs)
        }
        Some(kind) => {
            let dev = run.devs.first().ok_or_else(|| Fail::usage("no interface is named").next("ringwise show"))?;
            show::names_in(&source, &s, &run.devs)?;
            (Box::new(workload::messages(kind, run, dev, &s)?), run.devs.clone())
        }
    };
    let points = load.points();
    let [point] = points.as_slice() else {
        return Err(Fail::usage(format!(
            "search needs one point, but these options make {}: name one size and one number of threads (--size 256 --threads 4)",
            points.len()
        )));
    };
    let (mut list, _) = states::wanted(&run.states)?;
    // The states of the command line are candidates as well.
    let among: Vec<SearchSpace> = a.among.iter().map(|a| kind_of(*a)).collect();
    let ours = candidates(&s, &devs, &among, a.allow_disruption);
    list.extend(states::of_candidates(&ours, &devs, a.allow_disruption));
    let Some(ready) = session::ready(run, devs.clone(), &source, common, load.as_ref(), &list, None)? else {
        return Ok(Status::Ok);
    };
    let by = metric(load.as_ref());
    let (done, outcome) = ready.run(|e| e.search(load.as_mut(), point, a.budget))?;
    let (results, status) = session::ended(done);
    if let Some(page) = &run.keep.html {
        report::page(&results, page, common)?;
    }
    let Some(o) = outcome.filter(|_| status == Status::Ok) else { return Ok(status) };
    let names: Vec<&str> = results.session.states.iter().map(|s| s.name.as_str()).collect();
    let words = evidence(&o, &names, by);
    let found = o.winner.map(|w| &list[w + 1]);
    let text = match found {
        None => format!("{words}\nNo candidate is better than the host as found.\n"),
        Some(w) => {
            let lines: String = words.lines().map(|l| format!("# {l}\n")).collect();
            format!("{lines}{}", file(w, &devs, &s, common)?)
        }
    };
    match (&a.save, found) {
        (Some(path), Some(w)) => {
            ringwise_sys::store::write_atomic(path, text.as_bytes()).map_err(Fail::from)?;
            out::answer(&format!(
                "{words}\n{} is written to {}. To apply it: ringwise apply --config {}\n",
                w.name,
                path.display(),
                path.display()
            ))?;
        }
        _ => out::answer(&text)?,
    }
    Ok(status)
}

fn kind_of(a: args::SearchSpaceArg) -> SearchSpace {
    match a {
        args::SearchSpaceArg::Placement => SearchSpace::Placement,
        args::SearchSpaceArg::Moderation => SearchSpace::Moderation,
        args::SearchSpaceArg::Queues => SearchSpace::Queues,
        args::SearchSpaceArg::Rings => SearchSpace::Rings,
    }
}

/// Which candidates were dropped and why, and how much the last one gains.
fn evidence(o: &HalvingOutcome, states: &[&str], metric: Metric) -> String {
    let name = |c: usize| states.get(c + 1).copied().unwrap_or("?");
    let mut text = {
        let (trials, all) = (plural(o.trials as usize, "trial"), plural(states.len() - 1, "candidate"));
        format!("{trials} of {all}, by {}\n", metric.name())
    };
    for d in &o.dropped {
        let change = d
            .change_percent
            .map(|c| format!(" ({c:+.1} % against the start, of {})", plural(d.blocks as usize, "block")));
        text.push_str(&format!(
            "  round {}: {} dropped{}\n",
            d.round + 1,
            name(d.candidate),
            change.unwrap_or_default()
        ));
    }
    if let Some(p) = &o.proof {
        let interval = p.low_percent.zip(p.high_percent).map(|(l, h)| format!(" [{l:+.1} ... {h:+.1}]"));
        let change = p.change_percent.map_or("unknown".into(), |c| format!("{c:+.1} %"));
        let who = o.winner.map_or("the last candidate", name);
        text.push_str(&format!(
            "  proof: {who} against the start: {change}{} of {}\n",
            interval.unwrap_or_default(),
            plural(p.pairs as usize, "pair")
        ));
    }
    for n in &o.notes {
        text.push_str(&format!("  {n}\n"));
    }
    if !metric.higher_is_better() {
        text.push_str("  (the inverse is compared, so higher is better)\n");
    }
    text
}

/// The configuration that is equivalent to a state's flags.
fn file(w: &Wanted, devs: &[String], s: &Snapshot, common: &Common) -> Result<String> {
    let intent = states::intent(w, w.flags.as_deref().unwrap_or_default())?;
    wanted::file(&wanted::read(devs, &intent, false)?, || Ok(s.clone()), common)
}
