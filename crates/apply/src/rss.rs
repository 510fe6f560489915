//! RSS. Uses RSS_SET and related messages if the kernel has them (since 6.17), because they return error messages; otherwise
//! ETHTOOL_SRSSH and ETHTOOL_SRXFH, which every supported kernel has.

use ringwise_kfmt::ethtool_ioctl::{self as ioctl, RssOrder, TableOrder};
use ringwise_kfmt::ethtool_nl::{self as nl, RssSet, msg};
use ringwise_kfmt::nl::unhex;
use ringwise_knob::rss::{TableError, default, moved, simulate};
use ringwise_model::errno::{ENOENT, EOPNOTSUPP};
use ringwise_model::{Dir, Fact, Nic, Rss, RssContext, Snapshot, Table};
use ringwise_sys::{Error, IoctlCmd, Request, Result};

use crate::host_access::HostAccess;

type Messages = Vec<Vec<u8>>;

const SET: (u8, &str) = (msg::RSS_SET, "rss-set");
const CREATE: (u8, &str) = (msg::RSS_CREATE_ACT, "rss-create-act");
const DELETE: (u8, &str) = (msg::RSS_DELETE_ACT, "rss-delete-act");

/// Maximum number of contexts that are created only to reach a number.
const FILLERS: usize = 64;

fn rss<'a>(now: &'a Snapshot, dev: &str) -> Option<&'a Rss> {
    now.nic(dev)?.rss.known()
}

/// `None`: unknown.
fn queues(nic: &Nic) -> Option<u32> {
    nic.queues_in_use(Dir::Rx)
}

/// Sends by netlink. If the kernel does not have the message, or the data does not fit into one, sends by ioctl.
fn either(
    cx: &HostAccess,
    dev: &str,
    (cmd, name): (u8, &'static str),
    order: &RssSet,
    by_ioctl: impl FnOnce() -> Result<Messages>,
) -> Result<Messages> {
    let Ok(attrs) = nl::rss_set(order) else { return by_ioctl() };
    match cx.ask(Request::EthtoolSet { cmd, name, dev: dev.to_string(), attrs }) {
        // The driver may answer EOPNOTSUPP too; then the ioctl returns the same errno, without a message.
        Err(e) if e.errno == Some(EOPNOTSUPP) => by_ioctl().map_err(|later| match later.errno {
            Some(EOPNOTSUPP) if e.words.is_some() => e,
            _ => later,
        }),
        done => done,
    }
}

/// Keeps the transform: not every kernel accepts a value for "unchanged".
fn srssh(cx: &HostAccess, now: &Snapshot, dev: &str, order: RssOrder) -> Result<Messages> {
    let symmetric = rss(now, dev).filter(|_| order.context == 0).and_then(|r| r.symmetric.known());
    let is = symmetric.and_then(|x| nl::xfrm_mask(x)).and_then(|x| u8::try_from(x).ok()).unwrap_or(0);
    let input_xfrm = if order.input_xfrm == 0 { is } else { order.input_xfrm };
    let mut last = Messages::new();
    for call in (RssOrder { input_xfrm, ..order }).calls() {
        let payload = ioctl::srssh(&call);
        last = cx.ask(Request::Ioctl { cmd: IoctlCmd::RssSet, dev: dev.to_string(), payload })?;
    }
    Ok(last)
}

/// Writes the table; key, function and transform stay as they are. The kernel's default table is written as a reset: the table
/// then does not count as set by a user, follows changes of channels, and does not prevent them.
pub(crate) fn write(cx: &HostAccess, now: &Snapshot, dev: &str, table: &[u32]) -> Result<()> {
    let Some(nic) = now.nic(dev) else { return set_table(cx, now, dev, 0, table, false) };
    let size = rss(now, dev).map_or(table.len(), |r| r.table.len());
    possible(dev, table, size, nic)?;
    set_table(cx, now, dev, 0, table, queues(nic).is_some_and(|n| default(size, n) == table))
}

/// Refuses a table that the kernel would refuse, by ioctl without a message.
fn possible(dev: &str, table: &[u32], size: usize, nic: &Nic) -> Result<()> {
    let refused = |e: TableError| Error::other(format!("RSS table of {dev}"), e.to_string());
    // If the number of queues is unknown, the kernel decides.
    let Some(queues) = queues(nic) else { return Ok(()) };
    simulate(&Table::Explicit(table.to_vec()), size, queues).map(|_| ()).map_err(refused)
}

fn set_table(cx: &HostAccess, now: &Snapshot, dev: &str, context: u32, table: &[u32], as_default: bool) -> Result<()> {
    let by_ioctl = || {
        let order = if as_default { TableOrder::Default } else { TableOrder::Set(table.to_vec()) };
        srssh(cx, now, dev, RssOrder { context, ..RssOrder::table(order) })
    };
    let indir = if as_default { Vec::new() } else { table.to_vec() };
    let order = RssSet { context: Some(context), indir: Some(indir), ..RssSet::default() };
    either(cx, dev, SET, &order, by_ioctl)?;
    // RSS_SET of 6.17 and later compares only the first quarter of the table to see whether anything changes.
    let name = dev.to_string();
    let is = cx.reading(move |h| ringwise_discover::table_now(h, &name, context)).flatten();
    // If the table cannot be read here, the caller's read-back finds whether it changed.
    if is.is_none_or(|t| t == table) {
        return Ok(());
    }
    by_ioctl().map(|_| ())
}

/// Prepares for fewer queues: the kernel does not remove queues that a table set by a user, or a context, names. Such a table
/// cannot be kept: the device's own table is reset to the driver's default, and that of a context is spread over the remaining
/// queues. A caller that requests another table sets it afterwards. `false`: nothing had to be changed.
pub(crate) fn make_way(cx: &HostAccess, now: &Snapshot, dev: &str, queues: u32) -> bool {
    let Some(rss) = rss(now, dev) else { return false };
    let doomed = |t: &[u32]| t.iter().any(|q| *q >= queues);
    let mut made = false;
    if doomed(&rss.table) {
        let order = RssSet { indir: Some(Vec::new()), ..RssSet::default() };
        let by_ioctl = || srssh(cx, now, dev, RssOrder::table(TableOrder::Default));
        made |= either(cx, dev, SET, &order, by_ioctl).is_ok();
    }
    for (number, c) in rss.contexts.known().into_iter().flatten().filter(|(_, c)| doomed(&c.table)) {
        made |= set_table(cx, now, dev, *number, &moved(&c.table, queues), false).is_ok();
    }
    made
}

/// Sends only what differs: drivers refuse a key or a function that they have already.
pub(crate) fn write_hash(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    function: Option<&str>,
    key: Option<&str>,
    symmetric: Option<&str>,
) -> Result<()> {
    let refused = |words: String| Error::other(format!("RSS hash of {dev}"), words);
    let have = rss(now, dev);
    let differs = |want: Option<&str>, have: Option<&Fact<String>>| {
        want.filter(|w| have.and_then(Fact::known).is_none_or(|h| h != w)).map(str::to_string)
    };
    let mask = |name: Option<String>, of: fn(&str) -> Option<u32>, what: &str| match name {
        Some(n) => of(&n).map(Some).ok_or_else(|| refused(format!("there is no {what} {n}"))),
        None => Ok(None),
    };
    let hfunc = mask(differs(function, have.map(|h| &h.function)), nl::hfunc_mask, "hash function")?;
    let input_xfrm = mask(differs(symmetric, have.map(|h| &h.symmetric)), nl::xfrm_mask, "input transform")?;
    let key = match differs(key, have.map(|h| &h.key)) {
        Some(k) => Some(key_bytes(&k, have).map_err(refused)?),
        None => None,
    };
    if hfunc.is_none() && input_xfrm.is_none() && key.is_none() {
        return Ok(());
    }
    let order = RssSet { hfunc, hkey: key.clone(), input_xfrm, ..RssSet::default() };
    let byte = |mask: Option<u32>| u8::try_from(mask.unwrap_or(0)).unwrap_or(u8::MAX);
    let by_ioctl = || {
        let order = RssOrder {
            key: key.unwrap_or_default(),
            hfunc: byte(hfunc),
            input_xfrm: byte(input_xfrm),
            ..RssOrder::table(TableOrder::Keep)
        };
        if input_xfrm == Some(0) { without_transform(cx, dev, order) } else { srssh(cx, now, dev, order) }
    };
    either(cx, dev, SET, &order, by_ioctl).map(|_| ())
}

fn without_transform(cx: &HostAccess, dev: &str, order: RssOrder) -> Result<Messages> {
    let payload = ioctl::srssh(&RssOrder { input_xfrm: 0, ..order });
    cx.ask(Request::Ioctl { cmd: IoctlCmd::RssSet, dev: dev.to_string(), payload })
}

/// The kernel answers a key of the wrong length with EINVAL and no message.
fn key_bytes(hex: &str, have: Option<&Rss>) -> std::result::Result<Vec<u8>, String> {
    let bytes = unhex(hex).map_err(|e| e.to_string())?;
    match have.map(|h| &h.key) {
        Some(Fact::Absent) => Err("the device has no hash key to set".into()),
        Some(Fact::Known(k)) if k.len() != hex.len() => {
            Err(format!("the key has {} bytes, the device expects {}", bytes.len(), k.len() / 2))
        }
        _ => Ok(bytes),
    }
}

pub(crate) fn write_fields(cx: &HostAccess, dev: &str, flow: &str, fields: &str) -> Result<()> {
    let order = RssSet { fields: [(flow.to_string(), fields.to_string())].into(), ..RssSet::default() };
    let by_ioctl = || {
        let bad = |e: ringwise_kfmt::ParseError| Error::other(format!("RSS fields of {dev}"), e.to_string());
        let payload = ioctl::srxfh_request(flow, fields).map_err(bad)?;
        cx.ask(Request::Ioctl { cmd: IoctlCmd::RxfhFieldsSet, dev: dev.to_string(), payload })
    };
    either(cx, dev, SET, &order, by_ioctl).map(|_| ())
}

/// Creates, changes or (`table` is `None`) deletes a context.
pub(crate) fn write_context(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    context: u32,
    table: Option<&[u32]>,
    key: Option<&str>,
) -> Result<()> {
    let refused = |words: String| Error::other(format!("RSS context {context} of {dev}"), words);
    let (Some(nic), Some(have)) = (now.nic(dev), rss(now, dev)) else {
        return Err(refused("RSS of the device could not be read".into()));
    };
    let contexts = match &have.contexts {
        Fact::Known(all) => all,
        Fact::Absent => return Err(refused("the driver does not support RSS contexts".into())),
        Fact::Unknown(u) => return Err(refused(format!("the existing contexts cannot be read: {}", u.why))),
    };
    let now_there = contexts.get(&context);
    let Some(table) = table else {
        return now_there.map_or(Ok(()), |_| delete(cx, now, dev, context));
    };
    possible(dev, table, have.table.len(), nic)?;
    let differs = |c: Option<&RssContext>| key.filter(|k| c.and_then(|c| c.key.as_deref()) != Some(*k));
    let hkey = match differs(now_there) {
        Some(k) => Some(key_bytes(k, Some(have)).map_err(refused)?),
        None => None,
    };
    let Some(there) = now_there else { return create(cx, now, dev, context, table, hkey) };
    if let Some(key) = hkey {
        let order = RssSet { context: Some(context), hkey: Some(key.clone()), ..RssSet::default() };
        either(cx, dev, SET, &order, || {
            srssh(cx, now, dev, RssOrder { context, key, ..RssOrder::table(TableOrder::Keep) })
        })?;
    }
    if there.table == table { Ok(()) } else { set_table(cx, now, dev, context, table, false) }
}

fn delete(cx: &HostAccess, now: &Snapshot, dev: &str, context: u32) -> Result<()> {
    let order = RssSet { context: Some(context), ..RssSet::default() };
    let by_ioctl = || srssh(cx, now, dev, RssOrder { context, ..RssOrder::table(TableOrder::Default) });
    match either(cx, dev, DELETE, &order, by_ioctl) {
        // Another program has deleted it already.
        Err(e) if e.errno == Some(ENOENT) => Ok(()),
        done => done.map(|_| ()),
    }
}

/// Creates a context. Netlink accepts the number. By ioctl the kernel chooses the lowest free number, so free numbers below the
/// requested one are occupied for a moment.
fn create(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    context: u32,
    table: &[u32],
    hkey: Option<Vec<u8>>,
) -> Result<()> {
    let order = RssSet { context: Some(context), indir: Some(table.to_vec()), hkey: hkey.clone(), ..RssSet::default() };
    let mut fillers = Vec::new();
    let by_ioctl = || loop {
        let order = RssOrder {
            context: ioctl::CONTEXT_ALLOC,
            key: hkey.clone().unwrap_or_default(),
            ..RssOrder::table(TableOrder::Set(table.to_vec()))
        };
        let reply = srssh(cx, now, dev, order)?;
        let made = reply.first().and_then(|m| ioctl::srssh_context(m).ok());
        match made.filter(|n| *n < context && fillers.len() < FILLERS) {
            Some(n) => fillers.push(n),
            None => {
                let parts = made.map(|n| nl::RssParts { context: Some(n), ..Default::default() });
                return Ok(parts.and_then(|p| nl::rss_reply(&p).ok()).into_iter().collect());
            }
        }
    };
    let reply = either(cx, dev, CREATE, &order, by_ioctl);
    let gone: Result<Vec<()>> = fillers.into_iter().map(|n| delete(cx, now, dev, n)).collect();
    let reply = reply?;
    gone?;
    // No answer: reading the contexts again shows what exists.
    let Some(made) = reply.first().and_then(|m| nl::rss(m).ok()).and_then(|p| p.context) else { return Ok(()) };
    if made == context {
        return Ok(());
    }
    delete(cx, now, dev, made)?;
    let words =
        format!("the kernel gave the new context the number {made} instead of {context}; ringwise deleted it again");
    Err(Error::other(format!("RSS context {context} of {dev}"), words))
}
