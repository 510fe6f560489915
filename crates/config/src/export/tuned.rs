//! A profile of tuned. Its net plugin uses ethtool's names; each interface has its own section here.

use std::fmt::Write as _;

use ringwise_model::{Intent, Knob, Nic};

use super::{Exported, HEAD, coalesce, devs, ethtool_word, of};

/// A TuneD profile: the `net` plug-in for offloads, moderation, rings and pause frames, and `sysctl`.
pub fn tuned(i: &Intent, _: &[Nic]) -> Exported {
    let mut out = Exported::beyond(i);
    let mut text = String::new();
    for dev in devs(i) {
        let mut lines = String::new();
        let mut features: Vec<String> = Vec::new();
        let on = |v: bool| if v { "on" } else { "off" };
        for w in of(i, dev) {
            match &w.knob {
                // tuned compares with the output of `ethtool -k`, and only with lines that are not indented.
                Knob::Feature { name, on: want } => match ethtool_word(name) {
                    Some(word) => features.push(format!("{word} {}", on(*want))),
                    None => out.leave(w),
                },
                // tuned converts one form into the other by the position of the values, so one complete form is
                // written.
                Knob::Channels { combined: Some(n), rx: None | Some(0), tx: None | Some(0) } if *n > 0 => {
                    let _ = writeln!(lines, "channels=combined {n}");
                }
                Knob::Channels { combined: None, rx: Some(rx), tx: Some(tx) } if *rx > 0 && *tx > 0 => {
                    let _ = writeln!(lines, "channels=rx {rx} tx {tx}");
                }
                Knob::Rings { values } => {
                    let sizes = out.ring_sizes(w, values);
                    let all: Vec<String> = sizes.iter().map(|(part, n)| format!("{} {n}", part.word)).collect();
                    if !all.is_empty() {
                        let _ = writeln!(lines, "ring={}", all.join(" "));
                    }
                }
                Knob::Pause { autoneg, rx, tx } => {
                    let all = [("autoneg", autoneg), ("rx", rx), ("tx", tx)];
                    let all = all.iter().filter_map(|(k, v)| Some(format!("{k} {}", on((**v)?))));
                    let _ = writeln!(lines, "pause={}", all.collect::<Vec<_>>().join(" "));
                }
                Knob::Coalesce { queues: None, params } => {
                    let all = coalesce(&mut out, w, params).into_iter().map(|(word, v)| {
                        match word.starts_with("adaptive-") {
                            true => format!("{word} {}", on(v == 1)),
                            false => format!("{word} {v}"),
                        }
                    });
                    let all: Vec<String> = all.collect();
                    if !all.is_empty() {
                        let _ = writeln!(lines, "coalesce={}", all.join(" "));
                    }
                }
                _ => out.leave(w),
            }
        }
        if !features.is_empty() {
            let _ = writeln!(lines, "features={}", features.join(" "));
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n[net_{dev}]\ntype=net\ndevices={dev}\n{lines}");
        }
    }
    let mut sysctl = String::new();
    for w in i.wishes.iter().filter(|w| w.dev.is_none()) {
        match &w.knob {
            Knob::Sysctl { name, value } => sysctl += &format!("{}={value}\n", name.replace('/', ".")),
            Knob::RfsEntries { entries } => sysctl += &format!("net.core.rps_sock_flow_entries={entries}\n"),
            _ => out.leave(w),
        }
    }
    if !sysctl.is_empty() {
        let _ = write!(text, "\n[sysctl]\n{sysctl}");
    }
    if !text.is_empty() {
        let main = format!("{HEAD}[main]\nsummary=Network tuning exported by ringwise\n");
        out.files.push(("tuned.conf".into(), main + &text));
    }
    out
}
