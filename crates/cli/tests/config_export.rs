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

/// Each key of the file that is not in the result is listed, and the proposed command can be run as it is.
#[test]
fn an_export_lists_every_key_of_the_host_that_it_drops() {
    let d = Dir::named("config-export-host");
    let host = "version = 1\n[host]\ngoal = \"rpc\"\nqueues = 4\nreserve = \"0\"\nfar_node = \"ok\"\n\
                act_on_load = [\"eth*\"]\n";
    let some =
        d.file("some.toml", &format!("{host}[[interface]]\nmatch = {{ name = \"eth1\" }}\nrings = {{ rx = 512 }}\n"));
    let none = d.file("none.toml", host);
    let from = capture("lab-router16-6.12");
    let keys =
        ["goal rpc", "host queues = 4", "host reserve = \"0\"", "host far_node = \"ok\"", "host act_on_load = eth*"];
    for (file, format, code) in [(&some, "link", 0), (&some, "tuned", 0), (&some, "nmstate", 0), (&none, "link", 1)] {
        let (got, _, err) = ringwise(&["config", "export", file, "--as", format, "--from", &from]);
        assert_eq!(got, Some(code), "{format}: {err}");
        for key in keys {
            assert!(err.contains(&format!("\n    {key}")), "{format}: {key} is not in\n{err}");
        }
        let script = err.lines().find_map(|l| l.split_once(": ringwise plan ")).expect("a command");
        let words: Vec<&str> = script.1.split("    (").next().unwrap().split(' ').collect();
        assert_eq!(words, ["-o", "sh", "--config", file, "--from", &from], "{err}");
    }
}
