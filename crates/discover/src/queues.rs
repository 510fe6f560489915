//! Queue directories of an interface, in numeric order.

use ringwise_kfmt::sysfs;
use ringwise_knob::path;
use ringwise_model::{Bql, Fact, RxQueue, Subject, TxQueue};

use crate::parts::part;
use crate::read::{Reader, unread};
use crate::{natural, rfs, rps, xps};

/// Receive and transmit queues from `/sys/class/net/DEV/queues`. The directory may show more receive
/// queues than the device has rings (mlx5 with AF_XDP rings on some kernels).
pub(crate) fn queues(r: &mut Reader, dev: &str, steering: bool) -> (Vec<RxQueue>, Vec<TxQueue>) {
    let base = path::of_device(dev, "queues");
    let names = match r.host.list(&base) {
        Ok(names) => names,
        Err(e) => {
            if !e.is_absent() {
                r.unread.push(unread(&base, &e).of(Subject::Queues));
            }
            return (Vec::new(), Vec::new());
        }
    };
    let rx = natural::numbers(&names, "rx-")
        .into_iter()
        .map(|id| {
            let q = format!("{base}/rx-{id}");
            RxQueue {
                id,
                rps_cpus: part(steering, &q, || rps::mask(r, dev, id)),
                rps_flow_cnt: part(steering, &q, || rfs::queue(r, dev, id)),
            }
        })
        .collect();
    let tx = natural::numbers(&names, "tx-")
        .into_iter()
        .map(|id| {
            let q = format!("{base}/tx-{id}");
            TxQueue {
                id,
                xps_cpus: part(steering, &q, || xps::cpus(r, dev, id)),
                xps_rxqs: part(steering, &q, || xps::rx_queues(r, dev, id)),
                bql: part(steering, &q, || bql(r, &q)),
            }
        })
        .collect();
    (rx, tx)
}

/// Byte queue limits. Absent: the driver or kernel does not have them.
fn bql(r: &mut Reader, queue_dir: &str) -> Fact<Bql> {
    let mut one = |name: &str| r.parse(&format!("{queue_dir}/byte_queue_limits/{name}"), sysfs::parse_u64);
    one("limit").and_then(|limit_bytes| {
        one("limit_min").and_then(|limit_min_bytes| {
            one("limit_max").and_then(|limit_max_bytes| {
                one("inflight").map(|inflight_bytes| Bql {
                    limit_bytes,
                    limit_min_bytes,
                    limit_max_bytes,
                    inflight_bytes,
                })
            })
        })
    })
}
