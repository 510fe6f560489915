//! `ringwise status`, and `ringwise` alone.

use ringwise_apply::Ending;
use ringwise_discover::Options;
use serde_json::json;

use super::transaction::{store, words};
use crate::args::{Common, StatusArgs};
use crate::exit::{Result, Status};
use crate::out;
use crate::render::json::Document;
use crate::render::standing::{self, Standings};
use crate::source;
use crate::style::Style;

pub fn run(a: &StatusArgs, common: &Common) -> Result<Status> {
    let source = source::open(&a.from)?;
    let s = source.snapshot(&Options::all(), common)?;
    let mut st = Standings::default();
    if !source.recorded {
        let store = store(common);
        let read = ringwise_apply::verify_in(&s, &store)
            .and_then(|v| ringwise_apply::history(&store, &s.host).map(|h| (v, h)));
        match read {
            Ok((v, list)) => {
                st.last = standing::last_in_force(&list).cloned();
                st.half_way =
                    standing::to_recover(&list).filter(|e| e.ending == Ending::PutBackIncomplete).map(|e| e.id);
                st.verify = Some(v);
            }
            Err(e) => st.unreadable = Some(words(&e)),
        }
    }
    let status = if standing::needs_somebody(&st) { Status::Findings } else { Status::Ok };
    if a.format.json(common) {
        let interfaces: Vec<_> = s
            .nics
            .iter()
            .filter(|n| n.has_own_queues())
            .map(|n| {
                json!({
                    "name": n.name(), "driver": n.driver, "node": n.node, "link": n.link,
                    "rx_queues": n.rx_queues.len(), "tx_queues": n.tx_queues.len(),
                })
            })
            .collect();
        let body = json!({
            "needs_somebody": status != Status::Ok,
            "host": s.host,
            "cpus_online": s.topology.online,
            "applied": st.last,
            "verify": st.verify,
            "not_put_back": st.half_way,
            "state_unreadable": st.unreadable,
            "interfaces": interfaces,
            "not_shown": s.bystanders.count,
        });
        out::json(&Document { schema: "ringwise.status", version: 1, body })?;
        return Ok(status);
    }
    let style = Style::detect(common);
    out::answer(&standing::status(&s, &st, source.recorded, a.all, &style))?;
    Ok(status)
}
