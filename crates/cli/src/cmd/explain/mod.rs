//! `ringwise explain`: the path of one flow, or the distribution of many.

mod many;
mod observe;
mod one;
mod population;
mod read;
mod seen;
mod what_if;

use std::str::FromStr;

use ringwise_discover::{Options, Parts};
use ringwise_flow::{FlowSpec, Tuple};
use ringwise_model::shell::quote;
use ringwise_model::{Fact, Nic, Snapshot};

use crate::args::{Common, ExplainArgs};
use crate::exit::{Fail, Result, Status};
use crate::source::{self, Source};

/// The flows to explain.
enum What {
    Flow(FlowSpec),
    Stdin,
    Many,
}

/// The data from which the answers are computed.
struct ExplainContext<'a> {
    a: &'a ExplainArgs,
    common: &'a Common,
    source: Source,
    /// The host as it is.
    now: Snapshot,
    /// The host as `--what-if` would change it. `None`: the option was not given.
    then: Option<Snapshot>,
    /// `net.core.netdev_rss_key`.
    key: Fact<String>,
    dev: Option<String>,
}

pub(super) fn run(a: &ExplainArgs, common: &Common) -> Result<Status> {
    let (what, dev) = words(a)?;
    if a.svg.is_some() && !matches!(what, What::Flow(_)) {
        return Err(Fail::usage("--svg draws the path of one flow: name one"));
    }
    if a.observe.is_some() && !matches!(what, What::Flow(_)) {
        return Err(Fail::usage("--observe works with one flow: name one"));
    }
    if a.if_queue.is_some() && !matches!(&what, What::Flow(spec) if spec.exact().is_some()) {
        return Err(Fail::usage("--if-queue works with one flow: name one, with both ports"));
    }
    if a.balance.is_some() && matches!(what, What::Flow(_)) {
        return Err(Fail::usage(
            "--balance needs many flows: --pcap, --sockets, --conntrack, --per-flow, --synthetic, or - (stdin)",
        ));
    }
    let source = source::open(&a.from)?;
    let now = source.snapshot(&Options { parts: Parts::ALL, ..Options::all() }, common)?;
    let key = ringwise_discover::flow_path::host_key(source.host.as_ref());
    let mut cx = ExplainContext { a, common, source, now, then: None, key, dev };
    if let Some(d) = &cx.dev
        && cx.now.nic(d).is_none()
    {
        return Err(cx.source.no_such_device(d, &cx.now));
    }
    match what {
        What::Flow(spec) => match spec.exact().map(|t| Tuple { vlan: a.vlan, ..t }) {
            Some(t) if a.observe.is_some() => observe::run(&mut cx, &t),
            Some(t) if !a.plain => one::run(&mut cx, &t),
            _ => many::run(&mut cx, read::of_spec(&spec)),
        },
        What::Stdin => {
            let flows = read::stdin(a.plain)?;
            many::run(&mut cx, flows)
        }
        What::Many => {
            if let Some(time) = a.per_flow {
                let dev = cx.interface()?;
                let flows = seen::live(&mut cx, &dev, time)?;
                return many::run(&mut cx, flows);
            }
            let flows = read::population(a, cx.source.host.as_ref(), common)?;
            many::run(&mut cx, flows)
        }
    }
}

/// The command for a flow through an interface.
fn form(flow: &str, dev: &str) -> String {
    format!("ringwise explain {} {}", quote(flow), quote(dev))
}

fn words(a: &ExplainArgs) -> Result<(What, Option<String>)> {
    let many = a.pcap.is_some() || a.sockets || a.conntrack || a.synthetic.is_some() || a.per_flow.is_some();
    let example = "10.0.0.1:1234-10.0.0.2:80/tcp";
    let form = || form(example, "eth0");
    let (what, dev) = match (&a.words[..], many) {
        ([], true) => (What::Many, None),
        ([dev], true) => (What::Many, Some(dev)),
        (_, true) => {
            return Err(Fail::usage(
                "with --pcap, --sockets, --conntrack, --per-flow and --synthetic only an interface may be named",
            ));
        }
        ([], false) => {
            return Err(Fail::usage(
                "name a flow, or a source of many flows (--pcap, --sockets, --conntrack, --per-flow, --synthetic, or - for stdin)",
            )
            .next(form()));
        }
        ([flow, rest @ ..], false) => {
            if rest.len() > 1 {
                return Err(Fail::usage("too many arguments: expected one flow and one interface").next(form()));
            }
            let what = match flow.as_str() {
                "-" => What::Stdin,
                f => What::Flow(FlowSpec::from_str(f).map_err(|e| {
                    // Without a protocol it is a flow with one more word; other mistakes need the whole form.
                    let tcp = format!("{f}/tcp");
                    let flow = if tcp.parse::<FlowSpec>().is_ok() { &tcp } else { example };
                    let next = rest.first().map_or_else(form, |dev| self::form(flow, dev));
                    Fail::usage(e.to_string()).next(next)
                })?),
            };
            (what, rest.first())
        }
    };
    Ok((what, dev.cloned()))
}

impl ExplainContext<'_> {
    /// The interface of a population: the named one, or the only candidate.
    fn interface(&self) -> Result<String> {
        if let Some(d) = &self.dev {
            return Ok(d.clone());
        }
        let all: Vec<&str> = self.now.tunable().map(Nic::name).collect();
        match all[..] {
            [one] => Ok(one.to_string()),
            [] => Err(Fail::error("no interface of this host has queues of its own")),
            [first, ..] => {
                let fail = Fail::usage(format!("name the interface that receives the flows: one of {}", all.join(" ")));
                Err(match self.a.words.first() {
                    Some(flow) => {
                        fail.next(self.source.recording.reads(format!("ringwise explain {} {first}", quote(flow))))
                    }
                    // The other options would have to be repeated.
                    None => fail,
                })
            }
        }
    }

    /// The host that answers are about.
    fn host(&self) -> &Snapshot {
        self.then.as_ref().unwrap_or(&self.now)
    }

    fn apply_what_if(&mut self, dev: &str) -> Result<()> {
        if !self.a.what_if.is_empty() {
            self.then = Some(what_if::apply(&self.now, dev, &self.a.what_if)?);
        }
        Ok(())
    }
}
