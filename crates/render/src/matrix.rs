//! The matrix of queues and CPUs: where each queue's interrupt is delivered.

use ringwise_model::{CpuSet, Fact, Nic, Topology, Vector};

use super::columns::{Column, CpuGroup, Ranks, columns};
use ringwise_text::{Mark, Style, Tint};
use ringwise_text::{hang, len, pad, plural, right, set, thousands, vector_label};

/// With more CPUs than this, a list is easier to read than a matrix.
const MAX_MATRIX_CPUS: usize = 96;
/// Fewer adjacent unused columns than this are not folded.
const MIN_FOLD: usize = 6;

struct Row {
    label: String,
    marks: Vec<Mark>,
    asked: String,
}

/// One or several columns that are printed as one cell.
struct Cell {
    columns: Vec<usize>,
    width: usize,
    /// Spaces before the cell.
    gap: usize,
    folded: bool,
}

/// What the legend explains besides the marks.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    /// Some cells stand for several CPUs.
    folded: bool,
    /// CPU numbers are written from top to bottom.
    upright: bool,
    /// A number of two digits in the row `per CPU` is written as `+`.
    overflow: bool,
}

/// The matrix with its legend, or the list on a host with many CPUs.
pub(crate) fn render(t: &Topology, nic: &Nic, style: &Style) -> String {
    let ranks = Ranks::of(t);
    let cols = columns(t, &ranks);
    let vectors: Vec<&Vector> = nic.queue_vectors().collect();
    if vectors.is_empty() {
        return String::new();
    }
    let isolated = t.isolated_all();
    let mut rows: Vec<Row> = vectors
        .iter()
        .map(|v| Row {
            label: vector_label(v),
            marks: cols.iter().map(|c| mark(&isolated, nic, v, c)).collect(),
            asked: cpu_set_text(&v.asked, style),
        })
        .collect();
    let mut shape = Shape::default();
    let body = if cols.len() > MAX_MATRIX_CPUS {
        None
    } else {
        let label = rows.iter().map(|r| len(&r.label) + 1).chain([15]).max().unwrap_or(15);
        let tail = 3 + rows.iter().map(|r| len(&r.asked)).chain([8]).max().unwrap_or(8);
        let fits = |cells: &[Cell]| {
            style.width.is_none_or(|w| label + cells.iter().map(|c| c.gap + c.width).sum::<usize>() + tail <= w)
        };
        let digits = cols.iter().map(|c| c.cpu.0).max().unwrap_or(0).to_string().len();
        let tries = [full(&cols, digits), compact(&cols), folded(&cols, &rows, style)];
        match tries.into_iter().find(|c| fits(c)) {
            Some(cells) => {
                shape = Shape {
                    folded: cells.iter().any(|c| c.folded),
                    upright: !is_wide(&cells) && cells.iter().any(|c| !c.folded && cols[c.columns[0]].cpu.0 > 9),
                    overflow: cells.iter().any(|c| overflows(c, deliveries(&rows, c))),
                };
                Some(grid(&cols, &cells, &rows, label, &ranks, style))
            }
            None => None,
        }
    };
    let body = body.unwrap_or_else(|| {
        // A line of the list has one mark only.
        for (row, v) in rows.iter_mut().zip(&vectors) {
            row.marks = vec![list_line(t, nic, v, &ranks, &isolated).1];
        }
        list(t, nic, &vectors, &ranks, style)
    });
    format!("{body}\n{}", legend(t, nic, &rows, shape, style))
}

/// A set of CPUs: as a list, with the hex mask for `--raw`, or as a number if it is too long for a terminal.
fn cpu_set_text(f: &Fact<CpuSet>, style: &Style) -> String {
    match f {
        Fact::Known(c) if style.raw => format!("{} ({})", set(c), ringwise_text::mask(c)),
        Fact::Known(c) => {
            let s = set(c);
            if style.width.is_some() && len(&s) > 24 { format!("{} CPUs", c.len()) } else { s }
        }
        Fact::Absent => "-".into(),
        Fact::Unknown(_) => "unknown".into(),
    }
}

fn mark(isolated: &CpuSet, nic: &Nic, v: &Vector, c: &Column) -> Mark {
    if c.place == CpuGroup::Offline {
        return Mark::Offline;
    }
    let rest = if isolated.contains(c.cpu) { Mark::Isolated } else { Mark::Could };
    match &v.effective {
        Fact::Known(e) if e.contains(c.cpu) => match (nic.node.known(), c.place) {
            _ if isolated.contains(c.cpu) => Mark::HereIsolated,
            (Some(n), CpuGroup::Node(m)) if *n != m => Mark::Far,
            _ => Mark::Here,
        },
        Fact::Known(e) if !e.is_empty() => rest,
        // The CPU that handles it is not known; it can only be one of the configured CPUs.
        _ => match &v.asked {
            Fact::Known(a) if !a.contains(c.cpu) => rest,
            _ => Mark::Unknown,
        },
    }
}

fn full(cols: &[Column], digits: usize) -> Vec<Cell> {
    let width = digits.max(2) + 1;
    let one = |i: usize| {
        let gap = if i > 0 && cols[i].place != cols[i - 1].place { 2 } else { 0 };
        Cell { columns: vec![i], width, gap, folded: false }
    };
    (0..cols.len()).map(one).collect()
}

fn compact_gap(cols: &[Column], i: usize) -> usize {
    match i.checked_sub(1).map(|p| (&cols[p], &cols[i])) {
        None => 2,
        Some((a, b)) if a.place != b.place => 2,
        Some((a, b)) if a.l3 != b.l3 => 1,
        _ => 0,
    }
}

fn compact(cols: &[Column]) -> Vec<Cell> {
    (0..cols.len()).map(|i| Cell { columns: vec![i], width: 1, gap: compact_gap(cols, i), folded: false }).collect()
}

/// Adjacent CPUs of one node to which no queue interrupt is delivered become one cell `·(56)`.
fn folded(cols: &[Column], rows: &[Row], style: &Style) -> Vec<Cell> {
    let unused = |i: usize| {
        let first = rows[0].marks[i];
        matches!(first, Mark::Could | Mark::Isolated | Mark::Offline) && rows.iter().all(|r| r.marks[i] == first)
    };
    let mut out: Vec<Cell> = Vec::new();
    let mut i = 0;
    let mut after_fold = false;
    while i < cols.len() {
        let same = |j: usize| {
            j < cols.len() && cols[j].place == cols[i].place && unused(j) && rows[0].marks[j] == rows[0].marks[i]
        };
        let mut end = i;
        while same(end) {
            end += 1;
        }
        let gap = compact_gap(cols, i);
        if end - i >= MIN_FOLD {
            let width = len(&fold_text(style, rows[0].marks[i], end - i)).max(len(&fold_head(cols, i, end)));
            out.push(Cell { columns: (i..end).collect(), width, gap: gap.max(1), folded: true });
            i = end;
            after_fold = true;
        } else {
            out.push(Cell {
                columns: vec![i],
                width: 1,
                gap: if after_fold { gap.max(1) } else { gap },
                folded: false,
            });
            i += 1;
            after_fold = false;
        }
    }
    out
}

fn fold_text(style: &Style, m: Mark, n: usize) -> String {
    format!("{}({n})", style.mark(m))
}

/// The CPUs of a folded cell if the list is short, otherwise `...`.
fn fold_head(cols: &[Column], from: usize, to: usize) -> String {
    let list = cols[from..to].iter().map(|c| c.cpu).collect::<CpuSet>().to_string();
    if len(&list) <= 9 { list } else { "...".into() }
}

fn grid(cols: &[Column], cells: &[Cell], rows: &[Row], label: usize, ranks: &Ranks, style: &Style) -> String {
    let mut out = heads(cols, cells, label, ranks);
    let paint = |m: Mark, text: &str| match m {
        Mark::Far | Mark::HereIsolated => style.paint(Tint::Yellow, text),
        Mark::Here => style.paint(Tint::Bold, text),
        Mark::Could => style.paint(Tint::Dim, text),
        _ => text.to_string(),
    };
    for r in rows {
        let mut line = pad(&r.label, label);
        for cell in cells {
            let m = r.marks[cell.columns[0]];
            let text = if cell.folded { fold_text(style, m, cell.columns.len()) } else { style.mark(m).to_string() };
            let blanks = cell.gap + cell.width - len(&text);
            let (front, back) = if cell.folded { (cell.gap, blanks - cell.gap) } else { (blanks, 0) };
            line.push_str(&format!("{}{}{}", " ".repeat(front), paint(m, &text), " ".repeat(back)));
        }
        line.push_str(&format!("   {}", r.asked));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let mut line = pad("per CPU", label);
    for cell in cells {
        let text = match deliveries(rows, cell) {
            0 => style.mark(Mark::Could).to_string(),
            n if overflows(cell, n) => "+".into(),
            n => n.to_string(),
        };
        let text = if cell.folded { pad(&text, cell.width) } else { right(&text, cell.width) };
        line.push_str(&" ".repeat(cell.gap));
        line.push_str(&text);
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

/// Interrupts that are delivered to the first CPU of the cell.
fn deliveries(rows: &[Row], cell: &Cell) -> usize {
    rows.iter().filter(|r| r.marks[cell.columns[0]].is_delivery()).count()
}

/// Whether the number `n` of the row `per CPU` is wider than the cell.
fn overflows(cell: &Cell, n: usize) -> bool {
    cell.width == 1 && n > 9
}

/// Writes text at a column, unless there is text already.
fn put(line: &mut String, column: usize, text: &str) {
    if len(line) <= column {
        *line = pad(line, column);
        line.push_str(text);
    }
}

/// Whether each CPU number fits into its column.
fn is_wide(cells: &[Cell]) -> bool {
    cells.iter().all(|c| !c.folded && c.width > 1)
}

/// Lines for node, core and CPU numbers. In narrow columns the numbers are written from top to bottom.
fn heads(cols: &[Column], cells: &[Cell], label: usize, ranks: &Ranks) -> String {
    let wide = is_wide(cells);
    let mut marks = Vec::with_capacity(cells.len());
    let mut x = label;
    for c in cells {
        x += c.gap;
        marks.push(if wide { x + c.width - 1 } else { x });
        x += c.width;
    }
    let mut out = node_head(cols, cells, &marks);
    if wide && ranks.smt() {
        out.push_str(&core_head(cols, cells, &marks, label));
    }
    if wide {
        let mut line = pad("CPU", label);
        for c in cells {
            line.push_str(&" ".repeat(c.gap));
            line.push_str(&right(&cols[c.columns[0]].cpu.to_string(), c.width));
        }
        return format!("{out}{line}   affinity\n");
    }
    out + &upright_heads(cols, cells, label)
}

/// The name of each node above its first cell. `marks`: the column of the mark of each cell.
fn node_head(cols: &[Column], cells: &[Cell], marks: &[usize]) -> String {
    let mut nodes = String::new();
    for (i, c) in cells.iter().enumerate() {
        let place = cols[c.columns[0]].place;
        if i > 0 && cols[cells[i - 1].columns[0]].place == place {
            continue;
        }
        let text = match place {
            CpuGroup::Node(n) => format!("node {n}"),
            CpuGroup::NoNode => "node unknown".into(),
            CpuGroup::Offline => "offline".into(),
        };
        if !nodes.is_empty() && len(&nodes) >= marks[i] {
            nodes.push(' ');
            nodes.push_str(&text);
        } else {
            put(&mut nodes, marks[i], &text);
        }
    }
    format!("{nodes}\n")
}

/// The number of each core above its first thread.
fn core_head(cols: &[Column], cells: &[Cell], marks: &[usize], label: usize) -> String {
    let mut line = pad("core", label);
    for (i, c) in cells.iter().enumerate() {
        let core = cols[c.columns[0]].core;
        let new = i == 0 || core != cols[cells[i - 1].columns[0]].core;
        if let Some(n) = core.filter(|_| new) {
            let text = n.to_string();
            put(&mut line, marks[i] + 1 - len(&text), &text);
        }
    }
    format!("{line}\n")
}

/// CPU numbers from top to bottom, one digit on each line.
fn upright_heads(cols: &[Column], cells: &[Cell], label: usize) -> String {
    let digits = cols.iter().map(|c| c.cpu.0).max().unwrap_or(0).to_string().len();
    let mut rows = Vec::new();
    for d in 0..digits {
        let last = d + 1 == digits;
        let mut line = String::new();
        for c in cells {
            line.push_str(&" ".repeat(c.gap));
            let text = if c.folded {
                if last { fold_head(cols, c.columns[0], c.columns[0] + c.columns.len()) } else { String::new() }
            } else {
                right(&cols[c.columns[0]].cpu.to_string(), digits).chars().nth(d).unwrap_or(' ').to_string()
            };
            line.push_str(&pad(&text, c.width));
        }
        if last {
            line.push_str("   affinity");
        }
        if !line.trim().is_empty() {
            rows.push(line);
        }
    }
    let mut out = String::new();
    for (i, line) in rows.iter().enumerate() {
        let line = format!("{}{line}", pad(if i == 0 { "CPU" } else { "" }, label));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// One line for each queue: `TxRx-0  CPU 4  node 0 core 2  L3 0  affinity 4`.
fn list(t: &Topology, nic: &Nic, vectors: &[&Vector], ranks: &Ranks, style: &Style) -> String {
    let names: Vec<String> = vectors.iter().map(|v| vector_label(v)).collect();
    let width = names.iter().map(|n| len(n)).max().unwrap_or(0);
    let isolated = t.isolated_all();
    let lines: Vec<(String, Mark)> = vectors.iter().map(|v| list_line(t, nic, v, ranks, &isolated)).collect();
    let middle = lines.iter().map(|(l, _)| len(l)).max().unwrap_or(0);
    let mut out = String::new();
    for ((v, name), (line, m)) in vectors.iter().zip(&names).zip(&lines) {
        let text = format!(
            "{}  {} {}  affinity {}",
            pad(name, width),
            style.mark(*m),
            pad(line, middle),
            cpu_set_text(&v.asked, style)
        );
        let text = text.trim_end();
        out.push_str(&if matches!(m, Mark::Far | Mark::HereIsolated) {
            style.paint(Tint::Yellow, text)
        } else {
            text.to_string()
        });
        out.push('\n');
    }
    let mut per: std::collections::BTreeMap<u32, u32> = Default::default();
    for v in vectors {
        if let Some(c) = v.effective.known().filter(|e| e.len() == 1).and_then(CpuSet::first) {
            *per.entry(c.0).or_default() += 1;
        }
    }
    let most = per.values().max().copied().unwrap_or(0);
    let idle = t.online.len().saturating_sub(per.len());
    if most > 0 {
        let at: CpuSet = per.iter().filter(|(_, n)| **n == most).map(|(c, _)| ringwise_model::CpuId(*c)).collect();
        let at = if at.len() > 8 { plural(at.len(), "CPU") } else { format!("CPU {at}") };
        let text = format!("at most {most} ({at}); {} of {} CPUs have none", thousands(idle as u64), t.online.len());
        out.push_str(&hang("per CPU  ", &text, style.width));
    }
    out
}

fn list_line(t: &Topology, nic: &Nic, v: &Vector, ranks: &Ranks, isolated: &CpuSet) -> (String, Mark) {
    let Some(e) = v.effective.known().filter(|e| !e.is_empty()) else {
        return ("CPU unknown".into(), Mark::Unknown);
    };
    let Some(cpu) = e.first() else {
        return ("CPU unknown".into(), Mark::Unknown);
    };
    if e.len() > 1 {
        return (format!("one of CPUs {e}"), Mark::Here);
    }
    let node = t.node_of(cpu);
    let digits = t.online.last().map_or(1, |c| c.to_string().len());
    let mut line = format!("CPU {cpu:<digits$}");
    line.push_str(&node.map_or("  node unknown".to_string(), |n| format!("  node {n}")));
    if let Some(c) = ranks.core(cpu) {
        line.push_str(&format!(" core {c:<digits$}"));
    }
    if let Some(l) = ranks.l3(cpu) {
        line.push_str(&format!("  L3 {l}"));
    }
    let far = matches!((nic.node.known(), node), (Some(a), Some(b)) if *a != b);
    let mark = match far {
        _ if isolated.contains(cpu) => Mark::HereIsolated,
        true => Mark::Far,
        false => Mark::Here,
    };
    (line, mark)
}

fn legend(t: &Topology, nic: &Nic, rows: &[Row], shape: Shape, style: &Style) -> String {
    let used = |m: Mark| rows.iter().any(|r| r.marks.contains(&m));
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for (m, text) in [
        (Mark::Here, "interrupt is delivered here"),
        (Mark::Far, "here, on a remote node"),
        (Mark::HereIsolated, "here, although the CPU is isolated"),
        (Mark::Could, "not used"),
        (Mark::Isolated, "isolated"),
        (Mark::Offline, "offline"),
        (Mark::Unknown, "possible, actual CPU unknown"),
    ] {
        if used(m) {
            parts.push((m, text));
        }
    }
    if shape.folded {
        notes.push("·(16) 16 such CPUs".replace('·', &style.mark(Mark::Could).to_string()));
    }
    if shape.overflow {
        notes.push("+ 10 or more".to_string());
    }
    if shape.upright {
        notes.push("CPU numbers are written downwards".to_string());
    }
    // Spaces that must not break are replaced by a character that occurs in no word.
    let marks = parts.iter().map(|(m, w)| format!("{} {w}", style.mark(*m)));
    let text: Vec<String> = marks.chain(notes).map(|t| t.replace(' ', "\u{1}")).collect();
    let mut out = hang("", &text.join("\u{2}\u{2} "), style.width).replace(['\u{1}', '\u{2}'], " ");
    out = out.lines().map(|l| format!("{}\n", l.trim_end())).collect();
    if !nic.node.is_known() && t.nodes.known().is_some_and(|n| n.len() > 1) {
        out.push_str(&hang(
            "",
            "local and remote CPUs cannot be distinguished: the device's node is unknown",
            style.width,
        ));
    }
    out
}
