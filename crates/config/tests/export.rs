//! A configuration in the formats of other programs.

use ringwise_config::{export, parse};
use ringwise_model::{Fact, Feature, Intent, Nic, Wish};
use ringwise_testkit::machines;

fn of_eth0(features: &str) -> Intent {
    let text = format!("version = 1\n[[interface]]\nmatch = {{ name = \"eth0\" }}\nfeatures = {features}\n");
    let c = parse("f.toml", &text).unwrap_or_else(|f| panic!("{f}"));
    let wishes = c.entries[0].wishes.iter().map(|w| Wish { dev: Some("eth0".into()), ..w.clone() }).collect();
    Intent { wishes, ..Intent::default() }
}

/// The lines of features, and what the format cannot express.
fn features(intent: &Intent, nics: &[Nic]) -> (Vec<String>, Vec<String>) {
    let out = export::nmstate(intent, nics);
    let lines = out.files[0].1.lines().filter_map(|l| l.strip_prefix("        ")).map(str::to_string).collect();
    (lines, out.left_out.into_iter().filter(|l| l.contains("feature")).collect())
}

/// ethtool's words become names of the kernel; a word for several features needs the device's list of features.
#[test]
fn nmstate_gets_the_kernels_names_of_features() {
    let intent = of_eth0("{ gro = false, rx-hashing = true, tso = false }");
    let (lines, left_out) = features(&intent, &[]);
    assert_eq!(lines, ["rx-gro: false", "rx-hashing: true"]);
    assert!(left_out.len() == 1 && left_out[0].contains("tso"), "{left_out:?}");

    let mut nic = machines::ten()[0].snapshot().nics.remove(0);
    nic.dev.name = "eth0".into();
    let feature = |fixed| Feature { on: true, wanted: true, fixed };
    nic.features = Fact::Known(
        [("tx-tcp-segmentation", false), ("tx-tcp6-segmentation", false), ("tx-tcp-ecn-segmentation", true)]
            .map(|(name, fixed)| (name.to_string(), feature(fixed)))
            .into(),
    );
    let (lines, left_out) = features(&intent, &[nic]);
    assert_eq!(
        lines,
        ["rx-gro: false", "rx-hashing: true", "tx-tcp-segmentation: false", "tx-tcp6-segmentation: false"]
    );
    assert_eq!(left_out, [""; 0]);
}
