//! Receive-side scaling of context 0: table, key, function and hash fields (`ethtool -x`, `-n DEV rx-flow-hash`).

use ringwise_kfmt::ethtool_ioctl::{self, RxfhSizes};
use ringwise_kfmt::ethtool_nl::{self, RssParts, msg};
use ringwise_model::{Fact, Rss};
use ringwise_sys::IoctlCmd;

use crate::ethtool::{first, ioctl, request};
use crate::read::{Reader, failed};

/// Flow types that are asked for one by one on kernels whose RSS_GET does not tell the fields (before 6.17).
const FLOWS: [&str; 4] = ["tcp4", "udp4", "tcp6", "udp6"];

/// Netlink where the kernel has it (since 6.2), else the ioctl. Absent: the device has no RSS.
pub fn rss(r: &mut Reader, dev: &str) -> Fact<Rss> {
    let ask = request(dev, msg::RSS_GET, "rss-get");
    let netlink = match r.host.kernel(&ask) {
        Ok(reply) => first(&reply).and_then(ethtool_nl::rss).map_err(|e| Fact::unknown(ask.to_string(), e.to_string())),
        Err(e) => Err(failed(&ask.to_string(), &e)),
    };
    let parts = match netlink {
        Ok(parts) => Fact::Known(parts),
        Err(why) => match by_ioctl(r, dev) {
            Fact::Known(parts) => Fact::Known(parts),
            // Of two reasons the one of the newer interface; "not here" only where both say so.
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
        let mut rss = parts.into_model();
        if !told {
            for flow in FLOWS {
                if let Some(letters) = fields(r, dev, flow) {
                    rss.fields.insert(flow.to_string(), letters);
                }
            }
        }
        Fact::Known(rss)
    })
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
                    ..RssParts::default()
                }),
                Err(e) => bad(e),
            }
        })
    })
}

/// ETHTOOL_GRXFH. None: the driver does not tell for this flow type.
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
        Err(e) => {
            r.note(failed::<()>(&format!("{request} {flow}"), &e));
            None
        }
    }
}
