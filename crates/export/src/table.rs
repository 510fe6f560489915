//! Every metric: name, kind, unit, labels and help. They are written in this order, and kept in this order when there
//! are more series than allowed.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; the name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Always 1: the information is in the labels; the name ends with `_info`.
    Info,
}

/// One metric with all its series.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The name with the prefix `ringwise_`; a counter's name has the suffix `_total`.
    pub name: &'static str,
    /// Its `TYPE` in the text.
    pub kind: Kind,
    /// The last word of the name before `_total`; empty: plain numbers.
    pub unit: &'static str,
    /// Its possible labels. A label whose value is unknown is omitted.
    pub labels: &'static [&'static str],
    /// Its `HELP` in the text, one sentence.
    pub help: &'static str,
}

macro_rules! families {
    ($($id:ident = $name:literal $kind:ident $unit:literal [$($label:literal)*] $help:literal;)*) => {
        $(#[doc = $help]
        pub const $id: Family =
            Family { name: $name, kind: Kind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)*
        /// All of them.
        pub const ALL: &[Family] = &[$($id),*];
    };
}

families! {
    BUILD = "ringwise_build_info" Info "" ["version"]
        "The version of ringwise.";
    START = "ringwise_export_start_time_seconds" Gauge "seconds" []
        "When this exporter was started, since 1970.";
    SERIES_LIMIT = "ringwise_series_limit" Gauge "" []
        "How many series one page may have (--max-series).";
    LEFT_OUT = "ringwise_series_left_out" Gauge "" ["metric"]
        "Series of this metric that are not on this page because it would have too many. Not there: none are left out.";
    UNREAD = "ringwise_unread" Gauge "" []
        "How many things could not be read for this page; ringwise watch -v names them.";
    SAMPLE = "ringwise_export_sample_duration_seconds" Gauge "seconds" []
        "How long the reading for this page took.";
    OWN_CPU = "ringwise_export_cpu_seconds_total" Counter "seconds" []
        "CPU time of the exporter itself.";
    RESETS = "ringwise_resets_seen_total" Counter "" ["device"]
        "Samples in which counters of this device went backwards since the exporter was started; without a device: of CPUs and of the host.";
    STATE_READABLE = "ringwise_state_readable" Gauge "" []
        "1: what was applied could be read; 0: it could not, and nothing is said about it.";
    VERIFIED = "ringwise_verify_timestamp_seconds" Gauge "seconds" []
        "When the host was last compared with what was applied, since 1970.";
    SETTINGS = "ringwise_settings" Gauge "" ["device" "state"]
        "Settings in force by how the host stands to them: holds, drifted (somebody changed it, or it is gone), unknown (cannot be read). Without a device: of the host.";
    UNFINISHED = "ringwise_transaction_unfinished" Gauge "" []
        "1: a transaction was cut short and waits for ringwise recover.";
    TRIAL = "ringwise_trial_deadline_timestamp_seconds" Gauge "seconds" []
        "Until when the transaction on trial has to be confirmed, since 1970. Not there: nothing is on trial.";
    LAST_TIME = "ringwise_last_apply_timestamp_seconds" Gauge "seconds" []
        "When the last transaction began, since 1970.";
    LAST = "ringwise_last_apply_info" Info "" ["transaction" "kind" "verdict"]
        "The last transaction: its number, what it was (apply, rollback, adopt) and what became of it.";
    FINDINGS = "ringwise_findings" Gauge "" ["severity"]
        "Findings of ringwise check by severity, without accepted ones and consequences. Not there: nothing was checked.";
    CHECKED = "ringwise_check_timestamp_seconds" Gauge "seconds" []
        "When these findings were made, since 1970.";
    RULES_UNREAD = "ringwise_check_rules_unread" Gauge "" []
        "Rules that could not be judged in full, as something could not be read; ringwise check names it.";
    RULES_SKIPPED = "ringwise_check_rules_skipped" Gauge "" []
        "Rules about rates that were not judged, for want of a page before.";
    DEVICE = "ringwise_device_info" Info "" ["device" "driver" "node" "queue_source"]
        "An interface: its driver, its NUMA node, and who counts its queues.";
    ANSWERS = "ringwise_device_answers" Gauge "" ["device"]
        "1: the device answered in time for this page; 0: it did not, and its counters are not on the page.";
    SPEED = "ringwise_device_speed_bytes_per_second" Gauge "bytes_per_second" ["device"]
        "Speed of the link, while there is one.";
    PACKETS = "ringwise_device_packets_total" Counter "packets" ["device" "direction"]
        "Packets of the interface.";
    BYTES = "ringwise_device_bytes_total" Counter "bytes" ["device" "direction"]
        "Bytes of the interface, as its driver counts them.";
    DROPS = "ringwise_device_drops_total" Counter "" ["device" "direction" "place"]
        "Packets lost by place: nic (no free descriptor), stack (driver and stack, a full backlog included), driver (transmission), qdisc.";
    ERRORS = "ringwise_device_errors_total" Counter "" ["device" "direction"]
        "Broken packets, as the driver counts them.";
    PAUSE = "ringwise_device_pause_frames_total" Counter "" ["device" "direction"]
        "Pause frames, where the driver counts them.";
    CARRIER = "ringwise_device_carrier_changes_total" Counter "" ["device"]
        "How often the link came or went.";
    SOCKETS = "ringwise_socket_drops_total" Counter "" ["reason"]
        "What sockets of this network namespace lost, by the kernel's names.";
    CPU = "ringwise_cpu_seconds_total" Counter "seconds" ["cpu" "node" "mode"]
        "Time of a CPU in softirq, irq, steal, iowait and idle.";
    KSOFTIRQD = "ringwise_cpu_ksoftirqd_seconds_total" Counter "seconds" ["cpu" "node"]
        "Time in which the CPU's ksoftirqd ran.";
    SOFT_PACKETS = "ringwise_softnet_packets_total" Counter "packets" ["cpu" "node"]
        "Packets that the CPU has processed (softnet_stat).";
    SOFT_DROPS = "ringwise_softnet_drops_total" Counter "" ["cpu" "node"]
        "Packets lost because the CPU's backlog was full.";
    SOFT_SQUEEZED = "ringwise_softnet_squeezed_total" Counter "" ["cpu" "node"]
        "How often the CPU stopped with packets left, for want of budget or time.";
    SOFT_RPS = "ringwise_softnet_rps_total" Counter "" ["cpu" "node"]
        "How often another CPU woke this one for packets that RPS gave to it.";
    SOFT_LIMIT = "ringwise_softnet_flow_limit_total" Counter "" ["cpu" "node"]
        "Packets lost to the flow limit of the backlog.";
    BACKLOG = "ringwise_softnet_backlog_packets" Gauge "packets" ["cpu" "node"]
        "Packets in the CPU's backlog now.";
    QUEUE = "ringwise_queue_info" Info "" ["device" "queue" "direction" "cpu" "node"]
        "A queue, and the CPU where its interrupt goes, where that is one.";
    Q_PACKETS = "ringwise_queue_packets_total" Counter "packets" ["device" "queue" "direction"]
        "Packets of the queue.";
    Q_BYTES = "ringwise_queue_bytes_total" Counter "bytes" ["device" "queue" "direction"]
        "Bytes of the queue.";
    Q_DROPS = "ringwise_queue_drops_total" Counter "" ["device" "queue" "direction"]
        "Packets that the queue lost, as its driver counts them.";
    Q_ALLOC = "ringwise_queue_alloc_failures_total" Counter "" ["device" "queue" "direction"]
        "How often there was no memory for a buffer.";
    Q_QDISC = "ringwise_queue_qdisc_drops_total" Counter "" ["device" "queue" "direction"]
        "Packets that the queueing discipline of the transmit queue threw away.";
    Q_TIMEOUTS = "ringwise_queue_timeouts_total" Counter "" ["device" "queue" "direction"]
        "How often the watchdog found the transmit queue stuck.";
    Q_LIMIT = "ringwise_queue_limit_bytes" Gauge "bytes" ["device" "queue" "direction"]
        "Byte queue limit of the transmit queue now.";
    Q_INFLIGHT = "ringwise_queue_inflight_bytes" Gauge "bytes" ["device" "queue" "direction"]
        "Bytes that the transmit queue has given to the device now.";
    Q_INTERRUPTS = "ringwise_queue_interrupts_total" Counter "" ["device" "queue" "direction" "cpu" "node"]
        "Interrupts of the queue by the CPU that took them. Direction rxtx: the vector serves both, and is counted once.";
}

impl Family {
    /// The OpenMetrics name of the family, without `_total` and `_info`.
    pub fn base(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total"),
            Kind::Info => self.name.strip_suffix("_info"),
            Kind::Gauge => None,
        }
        .unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        let mut seen = std::collections::BTreeSet::new();
        for f in ALL {
            assert!(seen.insert(f.name), "{} stands there twice", f.name);
            assert!(f.name.starts_with("ringwise_"), "{}", f.name);
            assert!(f.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", f.name);
            assert_eq!(f.kind == Kind::Counter, f.name.ends_with("_total"), "{}", f.name);
            assert_eq!(f.kind == Kind::Info, f.name.ends_with("_info"), "{}", f.name);
            assert!(f.unit.is_empty() || f.base().ends_with(&format!("_{}", f.unit)), "{}", f.name);
            assert!(f.help.ends_with('.') && !f.help.contains(['\n', '\\']), "{}", f.name);
        }
    }

    /// `docs/metrics.md` has a row with the same words for each metric.
    #[test]
    fn the_page_lists_every_metric() {
        let row = |f: &Family| {
            let kind = format!("{:?}", f.kind).to_lowercase();
            let unit = if f.unit.is_empty() { "–" } else { f.unit };
            let labels: Vec<String> = f.labels.iter().map(|l| format!("`{l}`")).collect();
            format!("| `{}` | {kind} | {unit} | {} | {} |\n", f.name, labels.join(", "), f.help)
        };
        let rows: String = ALL.iter().map(row).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let text = std::fs::read_to_string(path).unwrap();
        let head = "|---|---|---|---|---|\n";
        let (before, rest) = text.split_once(head).unwrap();
        let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
        ringwise_testkit::golden::compare(std::path::Path::new(path), &format!("{before}{head}{rows}\n{after}"));
    }
}
