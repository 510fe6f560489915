//! `ringwise bench`: runs a load, measures, compares, and leaves the host as found.

mod fail;
mod report;
mod search;
mod serve;
mod session;
mod states;
mod workload;

use ringwise_discover::{Options, Parts};
use ringwise_experiment::{Finished, MessagesWorkload};

use super::show;
use crate::args::{BenchArgs, BenchCmd, Common, RunArgs};
use crate::exit::{Fail, Result, Status};
use crate::source;

pub(super) fn run(a: &BenchArgs, common: &Common) -> Result<Status> {
    match &a.what {
        BenchCmd::Rr(a) => messages(MessagesWorkload::Rr, a, common),
        BenchCmd::Burst(a) => messages(MessagesWorkload::Burst, a, common),
        BenchCmd::Mixed(a) => messages(MessagesWorkload::Mixed, a, common),
        BenchCmd::Stream(a) => messages(MessagesWorkload::Stream, a, common),
        BenchCmd::Receive(a) => messages(MessagesWorkload::Receive, a, common),
        BenchCmd::Forward(a) => forward(a, common),
        BenchCmd::Search(a) => search::run(a, common),
        BenchCmd::Serve(a) => serve::run(a, common),
        BenchCmd::Report(a) => report::run(a, common),
    }
}

fn messages(kind: MessagesWorkload, a: &RunArgs, common: &Common) -> Result<Status> {
    let dev = a.devs.first().ok_or_else(|| Fail::usage("no interface is named").next("ringwise show"))?;
    let (mut list, swept) = states::wanted(&a.states)?;
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: a.devs.clone(), ..Options::all() }, common)?;
    show::names_in(&source, &s, &a.devs)?;
    let mut load = workload::messages(kind, a, dev, &s)?;
    if kind == MessagesWorkload::Receive {
        load.find_places(&session::context(a, &a.devs, &s, &source), &s)?;
        // Without other states the places are compared with each other.
        if let [only] = list.as_slice()
            && only.flags.is_none()
        {
            list = states::of_places(load.compare_places());
        }
    }
    match session::ready(a, a.devs.clone(), &source, common, &load, &list, swept)? {
        Some(ready) => ended(a, common, ready.run(|e| e.run(&mut load))?),
        None => Ok(Status::Ok),
    }
}

fn forward(a: &RunArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, ..Options::all() }, common)?;
    let (mut list, swept) = states::wanted(&a.states)?;
    let (mut load, spec) = workload::forward(a, &s, &source)?;
    if a.forward.lead {
        states::lead(&mut list, &spec, &s)?;
    }
    let Some(ready) = session::ready(a, load.devs(), &source, common, &load, &list, swept)? else {
        return Ok(Status::Ok);
    };
    let find = a.forward.find_rate;
    ended(a, common, ready.run(|e| if find { e.find_rates(&mut load) } else { e.run(&mut load) })?)
}

/// Prints the end of a session.
fn ended(a: &RunArgs, common: &Common, done: Finished) -> Result<Status> {
    let (results, status) = session::ended(done);
    report::show(&results, a.keep.html.as_deref(), None, a.format.json(common), common)?;
    Ok(status)
}
