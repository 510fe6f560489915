//! Messages on the control socket of irqbalance (irqbalance(1), API).

use crate::ParseError;

/// Bytes of one message that irqbalance 1.9 reads. Versions after it read more, but keep only `LIST` bytes of the list.
const MESSAGE: usize = 500;
const LIST: usize = 255;
const ORDER: &str = "settings ban irqs ";

/// The answer to `setup`: `SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 IRQ … BANNED 00000000,00000003`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrqbalanceSetup {
    /// Seconds between two rounds of balancing (`SLEEP`).
    pub interval_s: u32,
    /// Banned interrupts, sorted.
    pub banned: Vec<u32>,
}

/// Parses the answer. An answer without `SLEEP`, or truncated before `BANNED`, is an error.
pub fn parse_setup(text: &str) -> Result<IrqbalanceSetup, ParseError> {
    let bad = |found: &str, expected| ParseError::new("irqbalance setup", found, expected);
    let mut words = text.split_whitespace();
    let mut interval_s = None;
    let mut banned = Vec::new();
    let mut whole = false;
    while let Some(word) = words.next() {
        // It is followed by a CPU mask.
        if word == "BANNED" {
            whole = true;
            break;
        }
        let value = words.next().ok_or_else(|| bad(word, "a value after it"))?;
        match word {
            "SLEEP" => interval_s = Some(value.parse().map_err(|_| bad(value, "seconds"))?),
            "IRQ" => banned.push(value.parse().map_err(|_| bad(value, "an interrupt number"))?),
            "LOAD" | "DIFF" | "CLASS" => {}
            _ => return Err(bad(word, "SLEEP, IRQ, LOAD, DIFF, CLASS or BANNED")),
        }
    }
    let interval_s = interval_s.ok_or_else(|| bad(text, "SLEEP and seconds"))?;
    if !whole {
        return Err(bad(text, "BANNED at the end"));
    }
    banned.sort();
    banned.dedup();
    Ok(IrqbalanceSetup { interval_s, banned })
}

/// The command that replaces the whole list. No number crosses the position where newer versions truncate the list, so
/// truncation omits whole numbers and never changes one. `None`: longer than any version accepts.
pub fn ban_order(irqs: &[u32]) -> Option<String> {
    if irqs.is_empty() {
        return Some(format!("{ORDER}NONE"));
    }
    let mut list = String::new();
    for irq in irqs {
        let word = irq.to_string();
        if !list.is_empty() {
            list.push(' ');
        }
        if list.len() < LIST && list.len() + word.len() > LIST {
            list.push_str(&" ".repeat(LIST - list.len()));
        }
        list.push_str(&word);
    }
    let order = format!("{ORDER}{list}");
    (order.len() <= MESSAGE).then_some(order)
}

/// The list in such a command. `None`: another command.
pub fn parse_ban_order(text: &str) -> Option<Vec<u32>> {
    let list = text.strip_prefix(ORDER)?;
    if list.starts_with("NONE") {
        return Some(Vec::new());
    }
    list.split_whitespace().map(|w| w.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_setup() {
        let s = parse_setup("SLEEP 10 BANNED 00000000,00000000").unwrap();
        assert_eq!(s, IrqbalanceSetup { interval_s: 10, banned: vec![] });
        // From 1.9.2 in the lab (router16), in another order and without the numbers in between.
        let real = "SLEEP 1 IRQ 8 LOAD 0 DIFF 0 CLASS 0 IRQ 35 LOAD 0 DIFF 0 CLASS 0 IRQ 34 LOAD 0 DIFF 0 CLASS 0 \
        BANNED 00000000";
        assert_eq!(parse_setup(real).unwrap(), IrqbalanceSetup { interval_s: 1, banned: vec![8, 34, 35] });
    }

    #[test]
    fn half_an_answer_is_none() {
        for bad in
            ["", "SLEEP", "SLEEP 10", "SLEEP 10 IRQ 3", "SLEEP 10 IRQ x BANNED 0", "IRQ 3 BANNED 0", "NO 1 BANNED"]
        {
            assert!(parse_setup(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn orders_both_ways() {
        for list in [vec![], vec![0], vec![30, 31], (100..200).collect()] {
            assert_eq!(parse_ban_order(&ban_order(&list).unwrap()).unwrap(), list);
        }
        assert_eq!(ban_order(&[]).unwrap(), "settings ban irqs NONE");
        assert_eq!(ban_order(&(1000..2000).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_cut_list_holds_no_other_number() {
        for first in [7, 97, 998] {
            let all: Vec<u32> = (first..first + 90).collect();
            let order = ban_order(&all).unwrap();
            let cut = &order[..(ORDER.len() + LIST).min(order.len())];
            let kept = parse_ban_order(cut).unwrap();
            assert_eq!(kept, all[..kept.len()]);
        }
    }
}
