//! `/proc/interrupts` (kernel/irq/proc.c, `show_interrupts`, and the architecture's extra rows).

use ringwise_model::{CpuId, IrqId};

use crate::ParseError;

const WHAT: &str = "/proc/interrupts";

/// The table with every count, which needs 8 bytes per count. See [`parse_totals`] if sums are enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupts {
    /// Columns: the CPUs that were online, in the order of the header.
    pub cpus: Vec<CpuId>,
    /// In the order of the file.
    pub rows: Vec<InterruptRow>,
}

/// One row of an [`Interrupts`] table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptRow {
    /// Everything in the row except the counts.
    pub head: InterruptRowHead,
    /// Interrupts since boot, one per CPU of the header. Rows without a number (`ERR`, `MIS`) may have fewer, and so
    /// does a row that was cut short: see [`Interrupts::is_whole`].
    pub counts: Vec<u64>,
}

impl Interrupts {
    /// Whether the row has a count for each CPU of the header. In a shorter row it is unknown which CPUs are missing,
    /// so its counts cannot be assigned to CPUs.
    pub fn is_whole(&self, row: &InterruptRow) -> bool {
        row.counts.len() == self.cpus.len()
    }
}

/// The table with one sum per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptTotals {
    /// CPUs that were online, in the order of the header.
    pub cpus: Vec<CpuId>,
    /// In the order of the file.
    pub rows: Vec<Total>,
}

/// One row of [`InterruptTotals`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Total {
    /// Everything in the row except the counts.
    pub head: InterruptRowHead,
    /// Interrupts since boot over all CPUs of the header. `None`: the row is numbered and has fewer counts than the
    /// header has CPUs.
    pub total: Option<u64>,
}

/// The content of a row besides its counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptRowHead {
    /// As printed before the colon: `36`, `NMI`, `IPI0`.
    pub label: String,
    /// The interrupt number, if the row has one.
    pub irq: Option<IrqId>,
    /// Interrupt chip: `IR-PCI-MSI`, `PCI-MSIX-0000:81:00.0`, `ITS-MSI`, `Hyper-V PCIe MSI`. Empty on unnumbered rows.
    pub chip: String,
    /// Number within the chip with the trigger, as printed: `524288-edge`, `524288 Edge`, `-event`. May be empty.
    pub hwirq: String,
    /// Names of the actions, which are separated by commas in the file and may contain spaces (`eth0 CQ 0`). Empty
    /// while no driver has requested the interrupt. On unnumbered rows, the description.
    pub names: Vec<String>,
}

/// Parses every count of every row. An error names the line.
pub fn parse(bytes: &[u8]) -> Result<Interrupts, ParseError> {
    let mut rows = Vec::new();
    let cpus = walk(bytes, |line, width, number| {
        // The length is not taken from the header at once: a short line must not allocate a long vector.
        let mut counts = Vec::with_capacity(width.min(line.len() / 2 + 1));
        let head = row(line, width, number, |n| {
            counts.push(n);
            Ok(())
        })?;
        rows.push(InterruptRow { head, counts });
        Ok(())
    })?;
    Ok(Interrupts { cpus, rows })
}

/// The same with each row's counts added up.
pub fn parse_totals(bytes: &[u8]) -> Result<InterruptTotals, ParseError> {
    let mut rows = Vec::new();
    let cpus = walk(bytes, |line, width, number| {
        let (mut total, mut counts) = (0u64, 0);
        let head = row(line, width, number, |n| {
            counts += 1;
            total = total
                .checked_add(n)
                .ok_or_else(|| ParseError::at(WHAT, number, line, "counts whose sum fits in 64 bits"))?;
            Ok(())
        })?;
        let whole = head.irq.is_none() || counts == width;
        rows.push(Total { head, total: whole.then_some(total) });
        Ok(())
    })?;
    Ok(InterruptTotals { cpus, rows })
}

fn walk(
    bytes: &[u8],
    mut each: impl FnMut(&[u8], usize, usize) -> Result<(), ParseError>,
) -> Result<Vec<CpuId>, ParseError> {
    let mut lines = bytes.split(|&b| b == b'\n').enumerate();
    let header = lines.next().map(|(_, l)| l).unwrap_or_default();
    let cpus = header_cpus(header)?;
    for (i, line) in lines {
        if !line.trim_ascii().is_empty() {
            each(line, cpus.len(), i + 1)?;
        }
    }
    Ok(cpus)
}

fn header_cpus(line: &[u8]) -> Result<Vec<CpuId>, ParseError> {
    let bad = || ParseError::at(WHAT, 1, line.trim_ascii(), "a header with CPU0 CPU1 …");
    let mut cpus = Vec::new();
    for word in words(line) {
        let n = word.strip_prefix(b"CPU").and_then(decimal).and_then(|n| u32::try_from(n).ok()).ok_or_else(bad)?;
        cpus.push(CpuId(n));
    }
    if cpus.is_empty() { Err(bad()) } else { Ok(cpus) }
}

fn row(
    line: &[u8],
    width: usize,
    number: usize,
    mut count: impl FnMut(u64) -> Result<(), ParseError>,
) -> Result<InterruptRowHead, ParseError> {
    let bad = |expected| ParseError::at(WHAT, number, line.trim_ascii(), expected);
    let colon = line.iter().position(|&b| b == b':').ok_or_else(|| bad("a label with a colon"))?;
    let label = line[..colon].trim_ascii();
    if label.is_empty() {
        return Err(bad("a label with a colon"));
    }
    let irq = decimal(label).and_then(|n| u32::try_from(n).ok()).map(IrqId);
    let mut rest = &line[colon + 1..];
    let mut seen = 0;
    while seen < width {
        let at = rest.trim_ascii_start();
        let end = at.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(at.len());
        let word = &at[..end];
        if word.is_empty() || !word[0].is_ascii_digit() {
            break;
        }
        let Some(n) = decimal(word) else {
            if irq.is_none() {
                break;
            }
            return Err(bad("decimal counts"));
        };
        count(n)?;
        seen += 1;
        rest = &at[end..];
    }
    let mut head = InterruptRowHead { label: text(label), irq, ..InterruptRowHead::default() };
    let rest = rest.trim_ascii();
    if irq.is_none() {
        if !rest.is_empty() {
            head.names.push(text(rest));
        }
        return Ok(head);
    }
    let (chip, rest) = split_chip(rest);
    let (hwirq, names) = split_hwirq(rest);
    head.chip = text(chip);
    head.hwirq = text(hwirq);
    if !names.is_empty() {
        head.names = String::from_utf8_lossy(names).split(", ").map(|n| n.trim().to_string()).collect();
    }
    Ok(head)
}

/// Splits off the chip. Its name may contain single spaces (`Hyper-V PCIe MSI`, `PCH PCI MSI`); it ends at the hardware
/// number. If there is no number, the kernel prints at least two spaces before the first action (kernel/irq/proc.c,
/// `show_interrupts`).
fn split_chip(rest: &[u8]) -> (&[u8], &[u8]) {
    let first = first_word(rest);
    let mut after = first.1;
    loop {
        let (word, later) = first_word(after);
        if word.is_empty() {
            return first;
        }
        if is_hwirq(word) {
            return rest.split_at(rest.len() - after.len());
        }
        let gap = after.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if gap > 1 {
            return rest.split_at(rest.len() - after.len());
        }
        after = later;
    }
}

/// `24-edge`, `-event` (a trigger name without a number), `24`.
fn is_hwirq(word: &[u8]) -> bool {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_number = digits > 0 && (digits == word.len() || word[digits] == b'-');
    is_number || word.len() > 1 && word[0] == b'-'
}

/// Splits the text after the chip into the hardware number with its trigger and the action names.
fn split_hwirq(rest: &[u8]) -> (&[u8], &[u8]) {
    let (word, after) = first_word(rest);
    // Anything else is already a name.
    if !is_hwirq(word) {
        return (b"", rest);
    }
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = rest.len() - after.len();
    let mut names = after;
    // Architectures that print the trigger in a column of its own: `524288 Edge`, `27 Level`.
    let (trigger, later) = first_word(after.trim_ascii_start());
    if digits == word.len() && (trigger.starts_with(b"Edge") || trigger.starts_with(b"Level")) {
        let plain = trigger == b"Edge" || trigger == b"Level";
        if plain || trigger.contains(&b'-') {
            end = rest.len() - later.len();
            names = later;
        }
    }
    (rest[..end].trim_ascii(), names.trim_ascii())
}

fn first_word(s: &[u8]) -> (&[u8], &[u8]) {
    let s = s.trim_ascii_start();
    s.split_at(s.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(s.len()))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace()).filter(|w| !w.is_empty())
}

fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    word.iter().try_fold(0u64, |n, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 { None } else { n.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// As text, with runs of white space replaced with single spaces.
fn text(bytes: &[u8]) -> String {
    let s = String::from_utf8_lossy(bytes);
    if s.contains("  ") || s.contains('\t') {
        s.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        s.into_owned()
    }
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
