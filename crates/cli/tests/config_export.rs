//! `ringwise config export`: what another program can set, and what is left out.

use ringwise_testkit::dir::Dir;

use crate::config_import::{capture, ringwise};

#[test]
fn exports_say_what_they_cannot() {
    let d = Dir::named("config-export");
    let file = d.file(
        "e.toml",
        "version = 1\n[host]\nsysctl = { \"net.core.netdev_budget\" = 600 }\n[[interface]]\nmatch = { name = \"eth1\" }\n\
         rings = { rx = 512 }\nfeatures = { gro = true }\ncoalesce = { rx-usecs = 20 }\nxps_cpus = \"0-1\"\n\
         rule = [\"tcp4 dst-port 443 action 1\"]\n",
    );
    for (format, says, lacks) in [
        ("link", &["RxBufferSize=512", "GenericReceiveOffload=true", "RxCoalesceSec=20us"][..], "eth1 xps_cpus"),
        ("nmstate", &["rx: 512", "gro: true", "rx-usecs: 20"][..], "eth1 rule"),
        ("tuned", &["ring=rx 512", "features=gro on", "net.core.netdev_budget=600"][..], "eth1 rule"),
        ("udev", &["ATTR{queues/tx-0/xps_cpus}="][..], "eth1 rings"),
    ] {
        let (code, out, err) =
            ringwise(&["config", "export", &file, "--as", format, "--from", &capture("lab-router16-6.12")]);
        assert_eq!(code, Some(0), "{format}: {err}");
        for words in says {
            assert!(out.contains(words), "{format}: {words} is not in\n{out}");
        }
        assert!(err.contains(lacks) && err.contains("goal balanced"), "{format}: {err}");
    }
}

#[test]
fn an_export_without_any_setting_is_an_error() {
    let d = Dir::named("config-export-none");
    let file = d.file("e.toml", "version = 1\n[host]\ngoal = \"forward\"\n");
    for format in ["link", "nmstate", "tuned", "udev"] {
        let (code, out, err) =
            ringwise(&["config", "export", &file, "--as", format, "--from", &capture("lab-router16-6.12")]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{format}: {err}");
        assert!(err.contains("e.toml has nothing that this format can express:\n    goal forward"), "{format}: {err}");
    }
}
