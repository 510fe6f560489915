//! Receive-side scaling: table, key, function, hash fields and contexts (`ethtool -x`, `-n DEV rx-flow-hash`).

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl::{self, RxfhSizes};
use ringwise_kfmt::ethtool_nl::{self, RssParts, msg};
use ringwise_kfmt::nl::hex;
use ringwise_model::errno::{EINVAL, EOPNOTSUPP};
use ringwise_model::{Fact, Rss, RssContext, Unread};
use ringwise_sys::{Host, IoctlCmd, Request};

use crate::ethtool::{first, ioctl, request};
use crate::read::{Reader, failed};

/// Flow types that every driver with hash fields knows: if it reports nothing for these, the others are not requested.
const FLOWS: [&str; 4] = ["tcp4", "udp4", "tcp6", "udp6"];

/// The table of one context (0: the device's own), as netlink reports it now. `None`: netlink cannot read it.
pub fn table_now(host: &dyn Host, dev: &str, context: u32) -> Option<Vec<u32>> {
    let ask = match context {
        0 => request(dev, msg::RSS_GET, "rss-get"),
        _ => Request::EthtoolDump { cmd: msg::RSS_GET, name: "rss-get", dev: dev.to_string() },
    };
    let all = host.kernel(&ask).ok()?;
    let mut each = all.iter().filter_map(|m| ethtool_nl::rss(m).ok());
    each.find(|p| p.context.unwrap_or(0) == context).map(|p| p.indir)
}

/// Netlink where the kernel has it (since 6.2), else the ioctl. Absent: the device has no RSS.
pub(crate) fn rss(r: &mut Reader, dev: &str) -> Fact<Rss> {
    let ask = request(dev, msg::RSS_GET, "rss-get");
    let netlink = match r.host.kernel(&ask) {
        Ok(reply) => first(&reply).and_then(ethtool_nl::rss).map_err(|e| Fact::unknown(ask.to_string(), e.to_string())),
        Err(e) => Err(failed(&ask.to_string(), &e)),
    };
    // A kernel without RSS_GET is older than the transforms, so a missing value does not mean "none".
    let older = matches!(&netlink, Err(why) if why.is_absent());
    let parts = match netlink {
        Ok(parts) => Fact::Known(parts),
        Err(why) => match by_ioctl(r, dev) {
            Fact::Known(parts) => Fact::Known(parts),
            // Of two reasons, that of the newer interface. Absent only if both interfaces report that.
            Fact::Absent if why.is_absent() => Fact::Absent,
            Fact::Absent => r.note(why),
            Fact::Unknown(u) => r.note(if why.is_absent() { Fact::Unknown(u) } else { why }),
        },
    };
    parts.and_then(|parts| {
        if parts.indir.is_empty() && parts.hkey.is_empty() && parts.hfunc.is_none() && parts.fields.is_none() {
            return Fact::Absent;
        }
        let told = parts.fields.is_some();
        let no_transform = older && parts.input_xfrm.unwrap_or(0) == 0;
        let mut rss = parts.into_model();
        if no_transform {
            rss.symmetric = Fact::Absent;
        }
        if !told {
            rss.fields = all_fields(r, dev);
        }
        rss.contexts = contexts(r, dev);
        Fact::Known(rss)
    })
}

/// One request for each flow type, because RSS_GET does not report the fields before 6.17.
fn all_fields(r: &mut Reader, dev: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut ask = |flow: &str| {
        if let Some(letters) = fields(r, dev, flow) {
            out.insert(flow.to_string(), letters);
        }
        !out.is_empty()
    };
    FLOWS.into_iter().for_each(|f| _ = ask(f));
    let others = ethtool_ioctl::FLOW_TYPES.iter().map(|f| f.0).filter(|f| !FLOWS.contains(f));
    for flow in others {
        if !ask(flow) {
            break;
        }
    }
    out
}

/// Absent: the driver has none. Kernels that have contexts but cannot list them (before 6.12) report a context only if
/// its number is known.
fn contexts(r: &mut Reader, dev: &str) -> Fact<BTreeMap<u32, RssContext>> {
    let probe = ioctl(dev, IoctlCmd::RssGet, ethtool_ioctl::grssh_sizes_request(1));
    match r.host.kernel(&probe) {
        Err(e) if e.errno == Some(EOPNOTSUPP) => return Fact::Absent,
        Err(e) if e.errno.is_none() => {
            let old = r.is_older_recording(&e);
            let fact = failed(&format!("{probe} context 1"), &e);
            return if old { fact } else { r.note(fact) };
        }
        // Whether this context exists or not, there may be others.
        _ => {}
    }
    let ask = Request::EthtoolDump { cmd: msg::RSS_GET, name: "rss-get", dev: dev.to_string() };
    let fact = match r.host.kernel(&ask) {
        Ok(reply) => {
            let each = reply.iter().map(|m| ethtool_nl::rss(m));
            match each.collect::<Result<Vec<_>, _>>() {
                Ok(all) => Fact::Known(all.into_iter().filter_map(context).collect::<BTreeMap<_, _>>()),
                Err(e) => Fact::unknown(ask.to_string(), e.to_string()),
            }
        }
        Err(e) if e.errno == Some(EOPNOTSUPP) => {
            let why = "the driver may have RSS contexts, but this kernel cannot list them (Linux 6.12 and later can)";
            Fact::Unknown(Unread::new(ask.to_string(), e.errno, why))
        }
        Err(e) => failed(&ask.to_string(), &e),
    };
    r.note(fact)
}

fn context(parts: RssParts) -> Option<(u32, RssContext)> {
    let key = (!parts.hkey.is_empty()).then(|| hex(&parts.hkey));
    parts.context.filter(|c| *c > 0).map(|c| (c, RssContext { table: parts.indir, key }))
}

/// ETHTOOL_GRSSH twice: for the sizes, then for everything.
fn by_ioctl(r: &Reader, dev: &str) -> Fact<RssParts> {
    let ask = |payload| {
        let request = ioctl(dev, IoctlCmd::RssGet, payload);
        match r.host.kernel(&request) {
            Ok(reply) => Fact::Known(reply),
            Err(e) => failed(&request.to_string(), &e),
        }
    };
    let bad = |e: ringwise_kfmt::ParseError| Fact::unknown(format!("ETHTOOL_GRSSH {dev}"), e.to_string());
    ask(ethtool_ioctl::grssh_sizes_request(0)).and_then(|reply| {
        let sizes = match first(&reply).and_then(ethtool_ioctl::grssh_sizes) {
            Ok(s) => s,
            Err(e) => return bad(e),
        };
        if sizes == RxfhSizes::default() {
            return Fact::Absent;
        }
        ask(ethtool_ioctl::grssh_request(0, sizes)).and_then(|reply| {
            match first(&reply).and_then(ethtool_ioctl::grssh) {
                Ok(x) => Fact::Known(RssParts {
                    indir: x.indir,
                    hkey: x.key,
                    hfunc: (x.hfunc != 0).then_some(u32::from(x.hfunc)),
                    input_xfrm: Some(u32::from(x.input_xfrm)),
                    ..RssParts::default()
                }),
                Err(e) => bad(e),
            }
        })
    })
}

/// ETHTOOL_GRXFH. `None`: the driver does not report this flow type.
fn fields(r: &mut Reader, dev: &str, flow: &str) -> Option<String> {
    let request = ioctl(dev, IoctlCmd::RxfhFieldsGet, ethtool_ioctl::grxfh_request(flow)?);
    match r.host.kernel(&request) {
        Ok(reply) => match first(&reply).and_then(ethtool_ioctl::grxfh) {
            Ok(letters) => Some(letters),
            Err(e) => {
                r.note(Fact::<()>::unknown(format!("{request} {flow}"), e.to_string()));
                None
            }
        },
        // The driver does not know this type. Older recordings contain only the most common types.
        Err(e) if e.errno == Some(EINVAL) => None,
        Err(e) if r.is_older_recording(&e) && !FLOWS.contains(&flow) => None,
        Err(e) => {
            r.note(failed::<()>(&format!("{request} {flow}"), &e));
            None
        }
    }
}
