//! Every metric: name, kind, unit, labels and help. They are written in this order, and kept in this order when there
//! are more series than allowed.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows; the name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Always 1: the information is in the labels; the name ends with `_info`.
    Info,
}

/// One metric with all its series.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name with the prefix `ringwise_`; a counter's name has the suffix `_total`.
    pub name: &'static str,
    /// Its `TYPE` in the text.
    pub kind: MetricKind,
    /// The unit at the end of the name, before `_total`. Empty: plain numbers.
    pub unit: &'static str,
    /// Its possible labels. A label whose value is unknown is omitted.
    pub labels: &'static [&'static str],
    /// Its `HELP` in the text, one sentence.
    pub help: &'static str,
}

macro_rules! families {
    ($($id:ident = $name:literal $kind:ident $unit:literal [$($label:literal)*] $help:literal;)*) => {
        $(#[doc = $help]
        pub const $id: MetricFamily =
            MetricFamily { name: $name, kind: MetricKind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)*
        /// All of them.
        pub const ALL: &[MetricFamily] = &[$($id),*];
    };
}

families! {
    BUILD = "ringwise_build_info" Info "" ["version"]
        "The version of ringwise.";
    START = "ringwise_export_start_time_seconds" Gauge "seconds" []
        "Unix time when this exporter was started.";
    SERIES_LIMIT = "ringwise_series_limit" Gauge "" []
        "Limit of series on one page (--max-series).";
    LEFT_OUT = "ringwise_series_left_out" Gauge "" ["metric"]
        "Series of this metric that were omitted from this page because of the limit. Absent if no series was omitted.";
    UNREAD = "ringwise_unread" Gauge "" []
        "Number of values that could not be read for this page; ringwise watch -v names them.";
    SAMPLE = "ringwise_export_sample_duration_seconds" Gauge "seconds" []
        "Time that reading the values of this page took.";
    OWN_CPU = "ringwise_export_cpu_seconds_total" Counter "seconds" []
        "CPU time that the exporter has used.";
    RESETS = "ringwise_resets_seen_total" Counter "" ["device"]
        "Samples in which counters of this device decreased since the exporter was started. Without a device: counters of CPUs and of the host.";
    STATE_READABLE = "ringwise_state_readable" Gauge "" []
        "1: the record of applied settings could be read. 0: it could not, and the metrics about it are absent.";
    VERIFIED = "ringwise_verify_timestamp_seconds" Gauge "seconds" []
        "Unix time when the host was last compared with what was applied.";
    SETTINGS = "ringwise_settings" Gauge "" ["device" "state"]
        "Settings in effect by state: holds, drifted (changed outside ringwise, or gone), unknown (cannot be read). Without a device: settings of the host.";
    UNFINISHED = "ringwise_transaction_unfinished" Gauge "" []
        "1: a transaction was interrupted and needs ringwise recover.";
    TRIAL = "ringwise_trial_deadline_timestamp_seconds" Gauge "seconds" []
        "Unix time when the trial of a transaction expires. Absent if no transaction is on trial.";
    LAST_TIME = "ringwise_last_apply_timestamp_seconds" Gauge "seconds" []
        "Unix time when the last transaction began.";
    LAST = "ringwise_last_apply_info" Info "" ["transaction" "kind" "verdict"]
        "The last transaction: its number, its kind (apply, rollback, adopt) and how it ended.";
    FINDINGS = "ringwise_findings" Gauge "" ["severity"]
        "Findings of ringwise check by severity, without accepted findings and findings that another one causes. Absent if the host was not checked.";
    CHECKED = "ringwise_check_timestamp_seconds" Gauge "seconds" []
        "Unix time of the check that produced these findings.";
    RULES_UNREAD = "ringwise_check_rules_unread" Gauge "" []
        "Rules that could not be evaluated completely, because a value could not be read; ringwise check names it.";
    RULES_SKIPPED = "ringwise_check_rules_skipped" Gauge "" []
        "Number of rules that were not evaluated: A05, H14, H21 and H27, which need the threads of programs, and those about rates if this is the first page.";
    SERVICE = "ringwise_service_running" Gauge "" []
        "1: the service (ringwise daemon) runs. 0: it does not, and the other metrics about it are absent. Absent if this is unknown.";
    SERVICE_START = "ringwise_service_start_time_seconds" Gauge "seconds" []
        "Unix time when the service was started.";
    SERVICE_PROBLEM = "ringwise_service_problem" Gauge "" []
        "1: the service cannot keep the layout at present; ringwise status shows why.";
    SERVICE_PAUSED = "ringwise_service_paused" Gauge "" []
        "1: ringwise daemon pause was run for the whole host.";
    SERVICE_PAUSES = "ringwise_service_pauses" Gauge "" ["reason"]
        "Interfaces that the service does not change, by reason: command (ringwise daemon pause), competing (irqbalance moved interrupts back twice), failed (a transaction failed).";
    SERVICE_SETTINGS = "ringwise_service_settings_kept" Gauge "" []
        "Settings in effect that the service keeps.";
    SERVICE_TRANSACTIONS = "ringwise_service_transactions_total" Counter "" ["verdict"]
        "Transactions of the service since it was started: kept, or failed (restored, not fully restored or refused).";
    SERVICE_WRITTEN = "ringwise_service_settings_written_total" Counter "" []
        "Settings that the service has written since it was started.";
    SERVICE_MANUAL = "ringwise_service_manual_changes_total" Counter "" []
        "Manual changes that the service has found since it was started; it does not overwrite them.";
    SERVICE_LOST = "ringwise_service_notifications_lost_total" Counter "" []
        "Number of times that the kernel dropped notifications to the service since it was started; the service then compares everything.";
    SERVICE_NOTIFICATIONS = "ringwise_service_notifications_total" Counter "" ["source"]
        "Notifications of changes that the service has received since it was started, by source: links (rtnetlink), ethtool, netdev, uevents, files (of a kubelet).";
    SERVICE_UNEVEN = "ringwise_service_uneven_load" Gauge "" ["device"]
        "1: the load of the receive queues of this interface is uneven; ringwise status shows the finding. Absent if it is even.";
    SERVICE_MOVES = "ringwise_service_moves_total" Counter "" ["device" "actuator" "reason"]
        "Changes that the service has made or restored because of the load since it was started, by what was changed (table, interrupt, rps, groups) and why.";
    SERVICE_NO_TABLE = "ringwise_service_table_moves_ended" Gauge "" ["device" "reason"]
        "1: the service no longer changes the RSS table of this interface to balance load, because a write took the link down. Absent otherwise.";
    SERVICE_BETTER = "ringwise_service_better_tables_total" Counter "" []
        "RSS tables that would have been better, found by the service since it was started, where it does not change the table itself.";
    SERVICE_MOVED = "ringwise_service_moved_entries_total" Counter "" []
        "Entries of RSS tables that the service has moved because of the load since it was started.";
    SERVICE_TAKEN_BACK = "ringwise_service_table_changes_taken_back_total" Counter "" []
        "Changes of RSS tables that the service has taken back since it was started, because they did not help as predicted.";
    SERVICE_BETTER_INTERRUPTS = "ringwise_service_better_interrupts_total" Counter "" []
        "Interrupts that another CPU would have served better, found by the service since it was started, where it does not move them itself.";
    SERVICE_MOVED_INTERRUPTS = "ringwise_service_moved_interrupts_total" Counter "" []
        "Interrupts that the service has moved to another CPU because of the load since it was started.";
    SERVICE_INTERRUPTS_TAKEN_BACK = "ringwise_service_interrupt_moves_taken_back_total" Counter "" []
        "Moves of interrupts that the service has taken back since it was started, because they did not help as predicted.";
    SERVICE_BETTER_MASKS = "ringwise_service_better_rps_masks_total" Counter "" []
        "RPS masks that would have been better, found by the service since it was started, where it does not change the mask itself.";
    SERVICE_CHANGED_MASKS = "ringwise_service_changed_rps_masks_total" Counter "" []
        "RPS masks that the service has changed because of the load since it was started.";
    SERVICE_MASKS_TAKEN_BACK = "ringwise_service_rps_mask_changes_taken_back_total" Counter "" []
        "Changes of RPS masks that the service has taken back since it was started, because they did not help as predicted.";
    SERVICE_BETTER_GROUPS = "ringwise_service_better_groups_total" Counter "" []
        "Other sizes or policies of groups of queues that would have suited the traffic, found by the service since it was started, where it does not change the groups itself.";
    SERVICE_CHANGED_GROUPS = "ringwise_service_changed_groups_total" Counter "" []
        "Changes of the sizes or policies of groups of queues that the service has made because of the traffic since it was started.";
    SERVICE_GROUPS_TAKEN_BACK = "ringwise_service_group_changes_taken_back_total" Counter "" []
        "Changes of groups of queues that the service has taken back since it was started, because they did harm or did not help.";
    SERVICE_ACTION = "ringwise_service_last_action_timestamp_seconds" Gauge "seconds" []
        "Unix time of the last transaction of the service, refused ones included. Absent if there was none in this boot.";
    DEVICE = "ringwise_device_info" Info "" ["device" "driver" "node" "queue_source"]
        "An interface: its driver, its NUMA node, and the source of its queue counters.";
    ANSWERS = "ringwise_device_answers" Gauge "" ["device"]
        "1: the device answered in time for this page. 0: it did not, and its counters are absent.";
    SPEED = "ringwise_device_speed_bytes_per_second" Gauge "bytes_per_second" ["device"]
        "Speed of the link. Absent if there is no link.";
    PACKETS = "ringwise_device_packets_total" Counter "packets" ["device" "direction"]
        "Packets that the interface received or sent.";
    BYTES = "ringwise_device_bytes_total" Counter "bytes" ["device" "direction"]
        "Bytes that the interface received or sent, as its driver counts them.";
    DROPS = "ringwise_device_drops_total" Counter "" ["device" "direction" "place"]
        "Lost packets by place: nic (no free descriptor), stack (driver and stack, including a full backlog), driver (transmission), qdisc.";
    ERRORS = "ringwise_device_errors_total" Counter "" ["device" "direction"]
        "Packets with errors, as the driver counts them.";
    PAUSE = "ringwise_device_pause_frames_total" Counter "" ["device" "direction"]
        "Pause frames, if the driver counts them.";
    CARRIER = "ringwise_device_carrier_changes_total" Counter "" ["device"]
        "Number of times that the link went up or down.";
    SOCKETS = "ringwise_socket_drops_total" Counter "" ["reason"]
        "Packets that sockets of this network namespace dropped, by the kernel's name of the reason.";
    CPU = "ringwise_cpu_seconds_total" Counter "seconds" ["cpu" "node" "mode"]
        "Time that the CPU spent in softirq, irq, steal, iowait and idle.";
    KSOFTIRQD = "ringwise_cpu_ksoftirqd_seconds_total" Counter "seconds" ["cpu" "node"]
        "Time that ksoftirqd of the CPU ran.";
    SOFT_PACKETS = "ringwise_softnet_packets_total" Counter "packets" ["cpu" "node"]
        "Packets that the CPU processed (softnet_stat).";
    SOFT_DROPS = "ringwise_softnet_drops_total" Counter "" ["cpu" "node"]
        "Packets dropped because the backlog of the CPU was full.";
    SOFT_SQUEEZED = "ringwise_softnet_squeezed_total" Counter "" ["cpu" "node"]
        "Number of times that the CPU stopped processing with packets left, because its budget or time was used up.";
    SOFT_RPS = "ringwise_softnet_rps_total" Counter "" ["cpu" "node"]
        "Number of times that another CPU woke this one to process packets by RPS.";
    SOFT_LIMIT = "ringwise_softnet_flow_limit_total" Counter "" ["cpu" "node"]
        "Packets dropped by the flow limit of the backlog.";
    BACKLOG = "ringwise_softnet_backlog_packets" Gauge "packets" ["cpu" "node"]
        "Packets in the backlog of the CPU now.";
    QUEUE = "ringwise_queue_info" Info "" ["device" "queue" "direction" "cpu" "node"]
        "A queue, and the CPU that its interrupt is delivered to, if it is a single one.";
    Q_PACKETS = "ringwise_queue_packets_total" Counter "packets" ["device" "queue" "direction"]
        "Packets that the queue received or sent.";
    Q_BYTES = "ringwise_queue_bytes_total" Counter "bytes" ["device" "queue" "direction"]
        "Bytes that the queue received or sent.";
    Q_DROPS = "ringwise_queue_drops_total" Counter "" ["device" "queue" "direction"]
        "Packets that the queue dropped, as its driver counts them.";
    Q_ALLOC = "ringwise_queue_alloc_failures_total" Counter "" ["device" "queue" "direction"]
        "Number of times that no memory was available for a buffer.";
    Q_QDISC = "ringwise_queue_qdisc_drops_total" Counter "" ["device" "queue" "direction"]
        "Packets that the queueing discipline of the transmit queue dropped.";
    Q_TIMEOUTS = "ringwise_queue_timeouts_total" Counter "" ["device" "queue" "direction"]
        "Number of times that the watchdog found the transmit queue stuck.";
    Q_LIMIT = "ringwise_queue_limit_bytes" Gauge "bytes" ["device" "queue" "direction"]
        "Byte queue limit (BQL) of the transmit queue now.";
    Q_INFLIGHT = "ringwise_queue_inflight_bytes" Gauge "bytes" ["device" "queue" "direction"]
        "Bytes that the transmit queue has passed to the device and that are not sent yet.";
    Q_INTERRUPTS = "ringwise_queue_interrupts_total" Counter "" ["device" "queue" "direction" "cpu" "node"]
        "Interrupts of the queue by the CPU that handled them. Direction rxtx: the vector serves both directions and is counted once.";
}

impl MetricFamily {
    /// The OpenMetrics name of the family, without `_total` and `_info`.
    pub fn base(&self) -> &'static str {
        match self.kind {
            MetricKind::Counter => self.name.strip_suffix("_total"),
            MetricKind::Info => self.name.strip_suffix("_info"),
            MetricKind::Gauge => None,
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
            assert!(seen.insert(f.name), "{} is listed twice", f.name);
            assert!(f.name.starts_with("ringwise_"), "{}", f.name);
            assert!(f.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", f.name);
            assert_eq!(f.kind == MetricKind::Counter, f.name.ends_with("_total"), "{}", f.name);
            assert_eq!(f.kind == MetricKind::Info, f.name.ends_with("_info"), "{}", f.name);
            assert!(f.unit.is_empty() || f.base().ends_with(&format!("_{}", f.unit)), "{}", f.name);
            assert!(f.help.ends_with('.') && !f.help.contains(['\n', '\\']), "{}", f.name);
        }
    }

    /// `docs/metrics.md` has a row with the same words for each metric.
    #[test]
    fn the_page_lists_every_metric() {
        let row = |f: &MetricFamily| {
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
