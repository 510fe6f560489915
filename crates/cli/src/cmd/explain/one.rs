//! One flow, in both directions.

use std::path::Path;

use ringwise_discover::flow_path::{self, FlowPath as Found};
use ringwise_flow::chain::{self, Direction, FlowRoute, Route, Socket};
use ringwise_flow::steering::receive_queues;
use ringwise_flow::{Steering, Tuple};
use ringwise_model::{Fact, Nic};
use ringwise_sys::{Host, store};

use super::ExplainContext;
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_render::explain::observed::Observed;
use ringwise_render::explain::{self, OneFlow};

pub(super) fn run(cx: &mut ExplainContext, t: &Tuple) -> Result<Status> {
    let ways = Ways::find(cx, t)?;
    cx.apply_what_if(&ways.near)?;
    let one = answer(cx, t, &ways)?;
    if draw(cx, &one, None)? {
        return Ok(Status::Ok);
    }
    if cx.a.format.json(cx.common) {
        out::json(&explain::json(&one))?;
    } else {
        out::answer(&explain::text(&one, &crate::style::detect(cx.common).about(&cx.source.recording)))?;
    }
    Ok(Status::Ok)
}

/// Writes the file of `--svg`. Returns whether the drawing on stdout is the whole answer.
pub(super) fn draw(cx: &ExplainContext, one: &OneFlow, observed: Option<&Observed>) -> Result<bool> {
    let Some(file) = &cx.a.svg else { return Ok(false) };
    let text = explain::svg(one, observed);
    let alone = file == Path::new("-");
    if alone {
        out::answer(&text)?;
    } else {
        store::write_shared(file, text.as_bytes()).map_err(Fail::from)?;
    }
    Ok(alone)
}

/// The direction of a flow, seen from this host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    ToUs,
    FromUs,
    Through,
    /// The routes are unknown.
    Unknown(String),
}

/// The interfaces that a flow uses.
pub(super) struct Ways {
    role: Role,
    /// Packets of the first direction arrive here. For packets that this host sends: they leave here.
    near: String,
    /// The other interface of a forwarded flow.
    far: Option<String>,
    near_text: String,
    far_text: String,
    unknown: Vec<String>,
}

impl Ways {
    pub(super) fn find(cx: &ExplainContext, t: &Tuple) -> Result<Self> {
        let host = cx.source.host.as_ref();
        if cx.source.recorded {
            let near = cx.dev.clone().map_or_else(|| cx.interface(), Ok)?;
            let why = "a recording does not contain the routes to both ends";
            return Ok(Self {
                role: Role::Unknown(why.into()),
                near_text: near.clone(),
                near,
                far: None,
                far_text: String::new(),
                unknown: vec![why.into()],
            });
        }
        let (to_src, to_dst) = (flow_path::path_to(host, t.src), flow_path::path_to(host, t.dst));
        let mut unknown = Vec::new();
        let role = match (to_src.local, to_dst.local) {
            (true, true) => {
                return Err(Fail::error("both addresses belong to this host: such packets use no network interface"));
            }
            (false, true) => Role::ToUs,
            (true, false) => Role::FromUs,
            (false, false) => match &to_dst.members {
                Fact::Known(_) => Role::Through,
                other => Role::Unknown(other.unread().map_or_else(String::new, |u| u.to_string())),
            },
        };
        let near_way = if role == Role::FromUs { &to_dst } else { &to_src };
        let near = match &cx.dev {
            Some(d) => d.clone(),
            None => member(near_way, &mut unknown).ok_or_else(|| {
                let why =
                    near_way.members.unread().map_or_else(|| "no interface with queues".into(), |u| u.to_string());
                Fail::error(format!("cannot find the interface that receives the flow: {why}"))
                    .next(cx.source.recording.reads(format!("ringwise explain {t} DEV")))
            })?,
        };
        let far = if role == Role::Through { member(&to_dst, &mut unknown) } else { None };
        if let Role::Unknown(why) = &role {
            unknown.push(format!("where it goes: {why}"));
        }
        let near_text = if cx.dev.is_some() { near.clone() } else { text(near_way, &near) };
        let far_text = text(&to_dst, far.as_deref().unwrap_or_default());
        Ok(Self { role, near, far, near_text, far_text, unknown })
    }
}

fn member(w: &Found, unknown: &mut Vec<String>) -> Option<String> {
    let all = w.members.known()?;
    if all.len() > 1 {
        let over = w.out.as_deref().unwrap_or("the route");
        unknown.push(format!(
            "which member of {over} the flow uses ({}): the neighbour chooses for received packets, the bond for sent ones; shown for {}",
            all.join(" "),
            all[0]
        ));
    }
    all.first().cloned()
}

fn text(w: &Found, bottom: &str) -> String {
    match &w.out {
        Some(o) if o != bottom && !bottom.is_empty() => format!("{o} -> {bottom}"),
        Some(o) => o.clone(),
        None => bottom.to_string(),
    }
}

pub(super) fn answer<'a>(cx: &'a ExplainContext, t: &Tuple, ways: &Ways) -> Result<OneFlow<'a>> {
    let s = cx.host();
    let nic = |name: &str| -> Result<&Nic> {
        s.nic(name).ok_or_else(|| Fail::error(format!("{name} has no known queues of its own")))
    };
    let near = nic(&ways.near)?;
    let far = ways.far.as_deref().and_then(|f| s.nic(f));
    let near_steers = Steering::new(near, &cx.key).by_queue(requested_queue(cx, near)?);
    let far_steers = far.map(|f| Steering::new(f, &cx.key));
    // A forwarded flow leaves through another interface, and returns through it with that interface's VLAN tag.
    let through = matches!(ways.role, Role::Through);
    let back = Tuple { vlan: t.vlan.filter(|_| !through), ..t.reversed() };
    let host = cx.source.host.as_ref();
    let mut directions = Vec::new();
    let mut unknown = ways.unknown.clone();
    match &ways.role {
        Role::ToUs => {
            let socket = socket(host, t, &mut unknown);
            let way = FlowRoute { route: Route::ToThisHost, local: true, out: None, socket: socket.clone() };
            directions.push(chain::incoming(s, near, &near_steers, t, way));
            let way = FlowRoute { route: Route::Dev(ways.near_text.clone()), local: false, out: Some(near), socket };
            let out = chain::outgoing(s, &back, way, &directions[0]);
            directions.push(out);
        }
        Role::FromUs => {
            let socket = socket(host, &back, &mut unknown);
            let way = FlowRoute {
                route: Route::Dev(ways.near_text.clone()),
                local: false,
                out: Some(near),
                socket: socket.clone(),
            };
            let here = FlowRoute { route: Route::ToThisHost, local: true, out: None, socket };
            let answers = chain::incoming(s, near, &near_steers, &back, here);
            directions.push(chain::outgoing(s, t, way, &answers));
            directions.push(answers);
        }
        Role::Through => {
            let way =
                |route: &str, out| FlowRoute { route: Route::Dev(route.to_string()), local: false, out, socket: None };
            directions.push(chain::incoming(s, near, &near_steers, t, way(&ways.far_text, far)));
            if let (Some(far), Some(steers)) = (far, &far_steers) {
                directions.push(chain::incoming(s, far, steers, &back, way(&ways.near_text, Some(near))));
            }
        }
        Role::Unknown(why) => {
            let way = FlowRoute { route: Route::Unknown(why.clone()), local: false, out: None, socket: None };
            directions.push(chain::incoming(s, near, &near_steers, t, way));
        }
    }
    for d in &directions {
        for u in chain::unknowns(d) {
            if !unknown.contains(&u) {
                unknown.push(u);
            }
        }
    }
    let steerings: Vec<&Steering> = [Some(&near_steers), far_steers.as_ref()].into_iter().flatten().collect();
    Ok(OneFlow {
        crossings: chain::crossings(s, &directions),
        meeting: chain::direction_summary(s, &directions, &steerings),
        forwarding: s.host.forwarding.known().copied(),
        through,
        host: s,
        what_if: &cx.a.what_if,
        recorded_by: cx.source.recorded_by.as_ref(),
        directions,
        unknown,
    })
}

/// The queue of `--if-queue`, which must exist.
pub(super) fn requested_queue(cx: &ExplainContext, nic: &Nic) -> Result<Option<u32>> {
    match (cx.a.if_queue, receive_queues(nic)) {
        (Some(q), None) => {
            Err(Fail::error(format!("--if-queue {q}: the number of receive queues of {} is unknown", nic.name())))
        }
        (Some(q), Some(queues)) if q >= queues => Err(Fail::usage(format!(
            "--if-queue {q}: {} has the receive queues 0 to {}",
            nic.name(),
            queues.max(1) - 1
        ))),
        (asked, _) => Ok(asked),
    }
}

/// The socket that receives the packets. If it cannot be looked up, the reason is added to `unknown`.
fn socket(host: &dyn Host, t: &Tuple, unknown: &mut Vec<String>) -> Option<Socket> {
    match socket_and_inode(host, t) {
        Ok(s) => s.map(|s| s.0),
        Err(why) => {
            unknown.push(format!("which socket receives the packets: {why}"));
            None
        }
    }
}

/// The socket and its inode.
pub(super) fn socket_and_inode(host: &dyn Host, t: &Tuple) -> std::result::Result<Option<(Socket, u64)>, String> {
    let Some((src, dst)) = t.ports else { return Ok(None) };
    let all = flow_path::connections(host)?;
    let connected = all.iter().find(|(p, c)| *p == t.protocol && c.local == (t.dst, dst) && c.peer == (t.src, src));
    let (kind, inode) = match connected {
        Some((_, c)) => ("connection", c.inode),
        None => match flow_path::waiting_socket(host, t.protocol, (t.dst, dst))? {
            Some(inode) => ("listening", inode),
            None => return Ok(None),
        },
    };
    let holder = flow_path::holder(host, inode);
    let socket = Socket {
        kind,
        program: holder.as_ref().and_then(|h| h.name.clone()),
        pid: holder.as_ref().map(|h| h.pid),
        last_cpu: holder.and_then(|h| h.last_cpu),
    };
    Ok(Some((socket, inode)))
}

/// Index of the direction that arrives, for `--observe`.
pub(super) fn arriving(one: &OneFlow) -> Option<usize> {
    one.directions.iter().position(|d: &Direction| d.arrival.is_some())
}
