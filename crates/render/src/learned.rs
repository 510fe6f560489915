//! The page of `learned`: one line for each setting that a device refused or ignored, or that took its link down.

use ringwise_knob::Learned;
use ringwise_knob::learned::LearnedWrite;

use super::table;
use ringwise_model::order::Order;
use ringwise_text::Style;
use ringwise_text::plural;
use ringwise_text::when;

fn found(l: &Learned, errno_text: fn(i32) -> String) -> String {
    match &l.what {
        LearnedWrite::Refused { errno, words } if words.is_empty() => format!("refused: {}", errno_text(*errno)),
        LearnedWrite::Refused { words, .. } => format!("refused: {words}"),
        LearnedWrite::Ignored { got } => format!("reads back as {}", got.value_text()),
        LearnedWrite::LinkWentDown { .. } => "the link went down".into(),
    }
}

/// The page. `errno_text` returns the name and the message of an errno.
pub fn text(list: &[Learned], forgotten: bool, errno_text: fn(i32) -> String, style: &Style) -> String {
    if list.is_empty() {
        return "Nothing was learned: no device has refused or ignored a setting yet.\n".into();
    }
    let mut sorted: Vec<&Learned> = list.iter().collect();
    sorted.order_by_key(|l| (l.device.name.clone(), l.address.clone(), l.unix_time));
    let mut rows = vec![["SETTING", "REQUESTED", "FOUND", "KERNEL", "WHEN"].map(String::from).to_vec()];
    for l in sorted {
        let when = when::minute(l.unix_time, style.utc);
        rows.push(vec![l.address.to_string(), l.asked.value_text(), found(l, errno_text), l.kernel.clone(), when]);
    }
    let mut out = table::plain(&rows, &[]);
    out.push_str(&match forgotten {
        true => format!("Forgotten: {}. The next plan tries them again.\n", plural(list.len(), "setting")),
        false => "Try them again: ringwise learned --forget\n".into(),
    });
    out
}
