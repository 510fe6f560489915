//! Every setting as stored in plan files and journals, and the command that writes it without ringwise.

use ringwise_knob::Setting;
use ringwise_model::{Dir, Fact, Napi, NapiInstance, NapiThread, NapiValues, Snapshot};
use ringwise_testkit::machines::{HostSpec, NicSpec};
use ringwise_testkit::topo::CpuSpec;

pub(crate) fn host() -> Snapshot {
    HostSpec {
        name: "edge3".into(),
        cpu: CpuSpec::flat(8, 1),
        nics: vec![NicSpec::new("eth0", "ice", Some(0), 4, 4)],
        bonds: Vec::new(),
        rps_sock_flow_entries: 0,
        control: Vec::new(),
        held: Vec::new(),
    }
    .snapshot()
}

/// Settings whose command does not depend on the host.
const ALL: &[(&str, &str)] = &[
    (r#"{"knob":"channels","dev":"eth0","combined":4}"#, "ethtool -L eth0 combined 4"),
    (r#"{"knob":"channels","dev":"eth0","rx":4,"tx":2}"#, "ethtool -L eth0 rx 4 tx 2"),
    (r#"{"knob":"rings","dev":"eth0","rx":512,"tx":1024}"#, "ethtool -G eth0 rx 512 tx 1024"),
    (
        r#"{"knob":"rings","dev":"eth0","rx":512,"rx_buf_len":4096,"tcp_data_split":true,"hds_thresh":256}"#,
        "ethtool -G eth0 rx 512 rx-buf-len 4096 tcp-data-split on hds-thresh 256",
    ),
    (r#"{"knob":"rings","dev":"eth0","tcp_data_split":false}"#, "ethtool -G eth0 tcp-data-split off"),
    (
        r#"{"knob":"coalesce","dev":"eth0","params":{"rx-max-frames":64,"rx-usecs":20,"use-adaptive-rx":0}}"#,
        "ethtool -C eth0 rx-frames 64 rx-usecs 20 adaptive-rx off",
    ),
    (
        r#"{"knob":"queue_coalesce","dev":"eth0","queue":33,"params":{"rx-usecs":20}}"#,
        "ethtool --per-queue eth0 queue_mask 0x200000000 --coalesce rx-usecs 20",
    ),
    (r#"{"knob":"feature","dev":"eth0","name":"rx-gro","on":false}"#, "ethtool -K eth0 rx-gro off"),
    (r#"{"knob":"ntuple","dev":"eth0","on":true}"#, "ethtool -K eth0 rx-ntuple-filter on"),
    (r#"{"knob":"pause","dev":"eth0","autoneg":false,"rx":true}"#, "ethtool -A eth0 autoneg off rx on"),
    (r#"{"knob":"rss_table","dev":"eth0","table":[0,1,2,0,1,2]}"#, "ethtool -X eth0 equal 3"),
    (r#"{"knob":"rss_table","dev":"eth0","table":[4,5,4,5]}"#, "ethtool -X eth0 equal 2 start 4"),
    (r#"{"knob":"rss_table","dev":"eth0","table":[2,3,3,3]}"#, "ethtool -X eth0 weight 1 3 start 2"),
    (
        r#"{"knob":"rss_table","dev":"eth0","table":[3,0,1,2]}"#,
        "# eth0: this RSS table has no ethtool command; ringwise recover restores it",
    ),
    (
        r#"{"knob":"rss_hash","dev":"eth0","function":"toeplitz","key":"6d5a56","symmetric":"none"}"#,
        "ethtool -X eth0 hfunc toeplitz hkey 6d:5a:56 xfrm none",
    ),
    (r#"{"knob":"rss_context","dev":"eth0","context":1,"table":[0,1]}"#, "ethtool -X eth0 context 1 equal 2"),
    (r#"{"knob":"rss_context","dev":"eth0","context":1}"#, "ethtool -X eth0 context 1 delete"),
    (
        r#"{"knob":"flow_rule","dev":"eth0","location":7,"rule":{"flow":"tcp4","fields":{"dst-port":"443"},"action":{"queue":2}}}"#,
        "ethtool -N eth0 flow-type tcp4 dst-port 443 action 2 loc 7",
    ),
    (r#"{"knob":"flow_rule","dev":"eth0","location":7}"#, "ethtool -N eth0 delete 7"),
    (r#"{"knob":"sysctl","name":"net.core.netdev_budget","value":"600"}"#, "sysctl -w net.core.netdev_budget='600'"),
    (
        r#"{"knob":"xps_cpus","dev":"eth0","queue":3,"cpus":"0,33"}"#,
        "echo 2,00000001 > /sys/class/net/eth0/queues/tx-3/xps_cpus",
    ),
    (
        r#"{"knob":"xps_rxqs","dev":"eth0","queue":3,"rxqs":[1,4]}"#,
        "echo 12 > /sys/class/net/eth0/queues/tx-3/xps_rxqs",
    ),
    (
        r#"{"knob":"rps_cpus","dev":"eth0","queue":1,"cpus":"2-5"}"#,
        "echo 3c > /sys/class/net/eth0/queues/rx-1/rps_cpus",
    ),
    (
        r#"{"knob":"rps_flow_cnt","dev":"eth0","queue":1,"entries":4096}"#,
        "echo 4096 > /sys/class/net/eth0/queues/rx-1/rps_flow_cnt",
    ),
    (r#"{"knob":"rfs_entries","entries":32768}"#, "echo 32768 > /proc/sys/net/core/rps_sock_flow_entries"),
];

#[test]
fn the_command_of_each_setting() {
    let host = host();
    for (json, command) in ALL {
        let setting: Setting = serde_json::from_str(json).unwrap_or_else(|e| panic!("{json}: {e}"));
        assert_eq!(serde_json::to_string(&setting).unwrap(), *json);
        assert_eq!(setting.command(&host).as_deref(), Some(*command), "{json}");
    }
}

/// Each value has its own file; only the requested values are written.
#[test]
fn the_command_of_a_devices_napi_values() {
    let values = |defer_hard_irqs, threaded| NapiValues {
        defer_hard_irqs,
        gro_flush_timeout_ns: Some(20_000),
        threaded,
        ..NapiValues::default()
    };
    let command = |values| Setting::NapiDevice { dev: "eth0".into(), values }.command(&host()).unwrap();
    assert_eq!(
        command(values(Some(2), Some(1))),
        "echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs; echo 20000 > /sys/class/net/eth0/gro_flush_timeout; \
         echo 1 > /sys/class/net/eth0/threaded"
    );
    assert_eq!(command(values(None, None)), "echo 20000 > /sys/class/net/eth0/gro_flush_timeout");
}

/// The command names a NAPI thread by its process id.
#[test]
fn the_command_of_a_napi_thread() {
    let mut host = host();
    let thread = |pid| Some(NapiThread { pid, cpus: Fact::Known("0-7".parse().unwrap()) });
    let instance = |q: u32, thread| NapiInstance {
        id: 8193 + q,
        rx: vec![q],
        tx: vec![q],
        values: Fact::Known(NapiValues::default()),
        thread,
    };
    let instances = vec![instance(0, thread(701)), instance(1, None)];
    host.nics[0].napi = Fact::Known(Napi { device: NapiValues::default(), instances });
    let command = |json: &str| serde_json::from_str::<Setting>(json).unwrap().command(&host);
    assert_eq!(
        command(r#"{"knob":"napi_thread","dev":"eth0","of":{"rx":0},"cpus":"1,3"}"#).as_deref(),
        Some("taskset -pc 1,3 701")
    );
    assert_eq!(command(r#"{"knob":"napi_thread","dev":"eth0","of":{"rx":1},"cpus":"1,3"}"#), None, "no thread");
}

/// The command names an interrupt by its current number.
#[test]
fn the_command_of_an_interrupt() {
    let host = host();
    let setting = |json: &str| serde_json::from_str::<Setting>(json).unwrap();
    let irq = host.nic("eth0").unwrap().vector_of(Dir::Rx, 2).unwrap().irq;
    assert_eq!(
        setting(r#"{"knob":"irq_cpus","dev":"eth0","of":{"rx":2},"cpus":"1,3"}"#).command(&host),
        Some(format!("echo 1,3 > /proc/irq/{irq}/smp_affinity_list"))
    );
    for gone in [
        r#"{"knob":"irq_cpus","dev":"eth0","of":{"rx":9},"cpus":"1"}"#,
        r#"{"knob":"irq_cpus","dev":"eth9","of":{"rx":2},"cpus":"1"}"#,
        r#"{"knob":"flow_rule","dev":"eth0","location":7,"rule":{"flow":"type-9","action":"drop"}}"#,
    ] {
        assert_eq!(setting(gone).command(&host), None, "{gone}");
    }
}
