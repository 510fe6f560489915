//! Bonds, bridges and VLANs in the configuration file.

use ringwise_testkit::dir::Dir;

use crate::config::{plan_of, ringwise, root, text};

/// A bond and a VLAN stand for the interfaces below them, as arguments and in the file that is printed for them.
#[test]
fn a_software_interface_in_the_file_means_its_lower_interfaces() {
    let from = root().join("fixtures/hosts/interleaved/tree.tar.gz").display().to_string();
    let dir = Dir::new();
    for dev in ["bond0", "vlan0"] {
        let by_name = plan_of(&[dev, "--goal", "forward", "--from", &from]);
        let (code, printed, err) =
            text(&ringwise(&["plan", dev, "--goal", "forward", "--from", &from, "--print-config"]));
        assert_eq!(code, Some(0), "{err}");
        let file = dir.0.join("bond.toml").display().to_string();
        std::fs::write(&file, printed).unwrap();
        let by_file = plan_of(&["--config", &file, "--from", &from]);
        assert_eq!(by_file["intent"]["devs"], serde_json::json!(["eno1", "eno10"]), "{dev}");
        assert!(by_file["steps"] == by_name["steps"] && !by_file["steps"].as_array().unwrap().is_empty(), "{dev}");
        let (code, out, err) = text(&ringwise(&["config", "check", &file, "--from", &from, "-j"]));
        let checked: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, checked["config"]["verdict"].as_str()), (Some(0), Some("fits")), "{out}{err}");
    }
    let (code, out, _) = text(&ringwise(&["plan", "-j", "--set", "eth9.rps_cpus=0-3", "--from", &from]));
    let error: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, error["code"].as_str()), (Some(1), Some("config_unbound")), "{out}");
}
