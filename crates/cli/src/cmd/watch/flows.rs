//! `ringwise watch --per-flow`: the heaviest flows of each queue, from sampled headers.

use std::time::Duration;

use ringwise_flow::UdpPortsCount;
use ringwise_kfmt::{link_stats, packet};
use ringwise_observe::{Flows, sampling_divisor};
use ringwise_sys::packets::{PacketListener, VNET};
use ringwise_sys::{Host, Request, proc};

use super::Screen;
use super::unhashed::Settings;
use crate::args::WatchArgs;
use crate::exit::{Fail, Result, Status};
use crate::source;
use ringwise_tui::lines::flows::{self, Interval};

/// Time between reads of the sockets. Their buffers hold more than that.
pub(in crate::cmd) const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn run(a: &WatchArgs, screen: &mut Screen) -> Result<Status> {
    let [dev] = a.devs.as_slice() else {
        return Err(Fail::usage("--per-flow listens on one interface: ringwise watch --per-flow DEV"));
    };
    let source = source::live()?;
    let host = source.host.as_ref();
    let queues = receive_queues(host, dev)?;
    let mut one_in = match a.sample {
        Some(n) => n.next_power_of_two(),
        None => sampling_divisor(rate(host, dev)),
    };
    let mut tap = PacketListener::open(dev, queues, one_in).map_err(Fail::from)?;
    let mut settings = Settings::read(&source, dev);
    screen.put(&flows::head(screen.shape, dev, host.unix_time(), a.interval.as_secs_f64(), &screen.style))?;
    loop {
        let mut i = Interval { dev: dev.clone(), one_in, flows: Flows::default(), ..Interval::default() };
        let (begin, cpu) = (host.since_boot(), proc::cpu_time());
        let mut udp = UdpPortsCount::default();
        let each = |queue, head: &[u8], packets| settings.count(&mut udp, queue, head, packets);
        listen(&mut tap, host, a.interval, queues, &mut i.flows, each, |_| ()).map_err(Fail::from)?;
        i.lost = tap.lost().map_err(Fail::from)?;
        i.seconds = (host.since_boot().saturating_sub(begin)).as_secs_f64();
        i.unix_time = host.unix_time();
        i.cpu_ms = (proc::cpu_time() - cpu).as_secs_f64() * 1e3;
        i.udp_ports = settings.gain(&udp);
        i.means = settings.means.clone();
        let looked_at = i.flows.packets() as f64;
        if !screen.print_interval(&flows::text(screen.shape, &i, a.top, &screen.style))? {
            return Ok(Status::Ok);
        }
        // The user may change what was proposed, so it is read again as long as something is.
        if i.udp_ports.is_some() || i.flows.is_much_limited() {
            settings = Settings::read(&source, dev);
        }
        let next = sampling_divisor(looked_at * f64::from(one_in) / i.seconds);
        // Sample more coarsely at once, but more finely only if a quarter of the present divisor is enough.
        if a.sample.is_none() && (next > one_in || next * 4 <= one_in) {
            one_in = next;
            tap.sample(one_in).map_err(Fail::from)?;
        }
    }
}

/// Adds the frames of this time to `flows`. `each` gets the queue of a frame, its first bytes, and the packets that it
/// represents; `left_now` the time that is left.
pub(in crate::cmd) fn listen(
    tap: &mut PacketListener,
    clock: &dyn Host,
    time: Duration,
    queues: u32,
    flows: &mut Flows,
    mut each: impl FnMut(Option<u32>, &[u8], u64),
    mut left_now: impl FnMut(Duration),
) -> ringwise_sys::Result<()> {
    let end = clock.since_boot() + time;
    loop {
        let left = end.saturating_sub(clock.since_boot());
        left_now(left);
        clock.sleep(left.min(PAUSE));
        tap.drain(|seen| {
            // With one queue, it must be that queue.
            let queue = seen.queue.or((queues == 1).then_some(0));
            let Some((vnet, head)) = seen.bytes.split_first_chunk::<VNET>() else { return };
            let (packets, bytes) = packet::put_together(vnet, seen.length as u64);
            flows.add(queue, head, packets, bytes);
            each(queue, head, packets);
        })?;
        if left.is_zero() {
            return Ok(());
        }
    }
}

/// The number of receive queues. 0: packets cannot be assigned to queues.
pub(in crate::cmd) fn receive_queues(host: &dyn Host, dev: &str) -> Result<u32> {
    let dir = format!("/sys/class/net/{dev}/queues");
    let names = host.list(&dir).map_err(|e| match e.is_absent() {
        true => {
            let names = ringwise_observe::interfaces(host).into_iter().filter(|n| n != "lo").collect();
            let none = ringwise_discover::Error::no_such_device(dev, names);
            Fail::error(none.to_string()).next("ringwise show --all")
        }
        false => Fail::error(e.to_string()),
    })?;
    let flags = host.read_text(&format!("/sys/class/net/{dev}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    // An interface that is down receives nothing, and sockets on it cannot be grouped.
    if flags.is_ok_and(|f| f & 1 == 0) {
        return Err(Fail::error(format!("{dev} is down")).next(format!("ip link set {dev} up")));
    }
    let queues = names.iter().filter(|n| n.starts_with("rx-")).count() as u32;
    // Interfaces that pass frames on (veth, bond) keep the queue number that another interface set.
    let own = queues == 1 || host.readlink(&format!("/sys/class/net/{dev}/device")).is_ok();
    Ok(if own { queues } else { 0 })
}

/// Received packets per second, now.
pub(in crate::cmd) fn rate(host: &dyn Host, dev: &str) -> f64 {
    let packets = || {
        let m = host.kernel(&Request::Link { dev: dev.into() }).ok()?;
        let s = link_stats::link_stats(m.first()?).ok()?;
        s.counts.first().copied()
    };
    let (before, begin) = (packets(), host.since_boot());
    host.sleep(Duration::from_millis(200));
    let passed = host.since_boot().saturating_sub(begin).as_secs_f64();
    before.zip(packets()).map_or(0.0, |(b, a)| a.saturating_sub(b) as f64 / passed)
}
