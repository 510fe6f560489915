//! `ringwise bench`: load, measure, compare, and leave the host as found.

mod forward;
mod load;
mod meter;
mod report;
mod search;
mod serve;
mod session;
mod sides;
mod states;

use ringwise_bench::file::Results;
use ringwise_discover::{Options, Parts};

use super::show;
use crate::args::{BenchArgs, BenchCmd, Common, RunArgs};
use crate::exit::{Fail, Result, Status};
use crate::source;
use load::{Kind, Messages};

pub(super) fn run(a: &BenchArgs, common: &Common) -> Result<Status> {
    match &a.what {
        BenchCmd::Rr(a) => messages(Kind::Rr, a, common),
        BenchCmd::Burst(a) => messages(Kind::Burst, a, common),
        BenchCmd::Mixed(a) => messages(Kind::Mixed, a, common),
        BenchCmd::Stream(a) => messages(Kind::Stream, a, common),
        BenchCmd::Receive(a) => messages(Kind::Receive, a, common),
        BenchCmd::Forward(a) => forward::run(a, common),
        BenchCmd::Search(a) => search::run(a, common),
        BenchCmd::Serve(a) => serve::run(a, common),
        BenchCmd::Report(a) => report::run(a, common),
    }
}

fn messages(kind: Kind, a: &RunArgs, common: &Common) -> Result<Status> {
    let dev = a.devs.first().ok_or_else(|| Fail::usage("no interface is named").next("ringwise show"))?;
    let (list, swept) = states::wanted(&a.states)?;
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, follow: a.devs.clone(), ..Options::all() }, common)?;
    show::names_in(&source, &s, &a.devs)?;
    let address = sides::address(a, dev, &s)?;
    let mut load = Messages::new(kind, a, sides::open(&a.peer)?, address, &s)?;
    if kind == Kind::Receive {
        load.find_places(&session::Cx::new(a, a.devs.clone(), &s, &source, common), &s)?;
    }
    let ready = session::ready(a, a.devs.clone(), &source, common, &load, &list, swept)?;
    ended(a, common, session::run(ready, &mut load))
}

/// What is shown at the end.
fn ended(a: &RunArgs, common: &Common, done: Result<(Results, Status)>) -> Result<Status> {
    let (results, status) = match done {
        // --dry-run has said what it would do.
        Err(f) if f.status == Status::Ok => return Ok(Status::Ok),
        other => other?,
    };
    report::show(&results, a.keep.html.as_deref(), None, a.format.json(common), common)?;
    Ok(status)
}
