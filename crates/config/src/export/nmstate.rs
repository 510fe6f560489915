//! A state for `nmstatectl apply`.

use std::fmt::{Display, Write as _};

use ringwise_model::{Intent, Knob, Nic};

use super::{Exported, HEAD, coalesce, devs, kernel_names, nic, of};
use crate::set::quote;

/// A desired state for `nmstatectl apply`: the `ethtool` part of each interface.
pub fn nmstate(i: &Intent, nics: &[Nic]) -> Exported {
    let mut out = Exported::beyond(i);
    let mut text = String::new();
    for dev in devs(i) {
        let mut parts: [(&str, String); 4] = ["feature", "pause", "ring", "coalesce"].map(|k| (k, String::new()));
        for w in of(i, dev) {
            let mut put = |at: usize, k: &str, v: &dyn Display| parts[at].1 += &format!("        {k}: {v}\n");
            match &w.knob {
                // Only names of the kernel: nmstate knows some of ethtool's names, but not those for several features.
                Knob::Feature { name, on } => match kernel_names(name, nic(nics, dev)) {
                    Some(names) => names.iter().for_each(|n| put(0, n, on)),
                    None => out.leave(w),
                },
                Knob::Pause { autoneg, rx, tx } => {
                    for (k, v) in [("autoneg", autoneg), ("rx", rx), ("tx", tx)] {
                        v.iter().for_each(|v| put(1, k, v));
                    }
                }
                Knob::Rings { values } => {
                    out.ring_sizes(w, values).iter().for_each(|(part, n)| put(2, part.word, &n));
                }
                Knob::Coalesce { queues: None, params } => {
                    for (word, v) in coalesce(&mut out, w, params) {
                        match word.starts_with("adaptive-") {
                            true => put(3, &word, &(v == 1)),
                            false => put(3, &word, &v),
                        }
                    }
                }
                _ => out.leave(w),
            }
        }
        if parts.iter().all(|(_, t)| t.is_empty()) {
            continue;
        }
        let _ = writeln!(text, "  - name: {}\n    state: up\n    ethtool:", quote(dev));
        for (key, lines) in parts.iter().filter(|(_, t)| !t.is_empty()) {
            let _ = write!(text, "      {key}:\n{lines}");
        }
    }
    if !text.is_empty() {
        out.files.push(("ringwise.yml".into(), format!("{HEAD}interfaces:\n{text}")));
    }
    out.leave_host(i);
    out
}
