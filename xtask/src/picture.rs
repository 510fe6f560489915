//! `cargo xtask picture [FILE]`: the pictures of the README. With the saved output of `cargo xtask demo`
//! docs/matrix.svg: the queue matrix of eth0 before and after, as `ringwise show` printed it. Without,
//! docs/chain.svg: what `ringwise show --svg` draws of a recorded lab host; and docs/watch-*.svg: the screen of `watch` on a
//! recording, as the test `pictures_of_the_readme` compares them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const CELL: usize = 22;
const LEFT: usize = 74;
const TOP: usize = 62;

/// One row: the queue and, per CPU, its mark.
type Matrix = Vec<(String, Vec<char>)>;

pub(crate) fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let file = match args {
        [] => return chain(root),
        [file] => file,
        _ => bail!("picture: expected no argument, or the saved output of `NO_COLOR=1 cargo xtask demo`"),
    };
    let text = std::fs::read_to_string(file).with_context(|| file.clone())?;
    let all = matrices(&text);
    let [before, .., after] = all.as_slice() else {
        bail!("{file}: expected two matrices, found {}; was it saved with NO_COLOR=1?", all.len())
    };
    let to = root.join("docs/matrix.svg");
    std::fs::write(&to, svg(before, after)?)?;
    println!("{}", to.display());
    Ok(ExitCode::SUCCESS)
}

/// A device with queues on both nodes. The test `the_picture_of_the_readme` draws the same.
fn chain(root: &Path) -> Result<ExitCode> {
    let to = root.join("docs/chain.svg");
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "ringwise", "--", "show", "mq3"])
        .args(["--from", "fixtures/hosts/lab-router16-6.12/capture.tar.gz", "--svg"])
        .arg(&to)
        .current_dir(root)
        .status()?;
    if !status.success() {
        bail!("ringwise show --svg: {status}");
    }
    println!("{}", to.display());
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "ringwise-tui", "pictures_of_the_readme"])
        .env("RINGWISE_BLESS", "1")
        .current_dir(root)
        .status()?;
    if !status.success() {
        bail!("the pictures of watch: {status}");
    }
    println!("{}", root.join("docs").join("watch-80x24.svg").display());
    println!("{}", root.join("docs").join("watch-200x60.svg").display());
    Ok(ExitCode::SUCCESS)
}

fn matrices(text: &str) -> Vec<Matrix> {
    let mut out: Vec<Matrix> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if !name.starts_with("TxRx-") {
            open = false;
            continue;
        }
        let marks: Vec<char> = words
            .filter(|w| w.chars().count() == 1)
            .filter_map(|w| w.chars().next())
            .filter(|c| "×!·Xi-?.".contains(*c))
            .collect();
        if !open {
            out.push(Matrix::new());
            open = true;
        }
        if let Some(m) = out.last_mut() {
            m.push((name.to_string(), marks));
        }
    }
    out
}

fn svg(before: &Matrix, after: &Matrix) -> Result<String> {
    let cpus = before.first().map_or(0, |r| r.1.len());
    if cpus == 0 || before.iter().chain(after).any(|r| r.1.len() != cpus) {
        bail!("the rows of the matrices differ in length");
    }
    let wide = LEFT + cpus * CELL + CELL + 30;
    let high = TOP + before.len() * CELL + 60;
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {high}\" font-family=\"ui-monospace, monospace\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        wide * 2
    );
    one(&mut s, 0, "before: one CPU handles every queue of eth0", before, "#c0392b")?;
    one(&mut s, wide, "after ringwise apply: a local CPU for each", after, "#1e7d46")?;
    let notes = [
        "rows: queue pairs of eth0 (igb, on node 0); columns: CPUs; a square: the queue's interrupt is delivered there",
        "as ringwise show printed it during make demo, Linux 6.12 in the lab",
    ];
    for (i, note) in notes.iter().enumerate() {
        writeln!(s, "<text x=\"12\" y=\"{}\" fill=\"#555\">{note}</text>", high - 30 + i * 18)?;
    }
    s.push_str("</svg>\n");
    Ok(s)
}

fn one(s: &mut String, x0: usize, title: &str, m: &Matrix, colour: &str) -> Result<()> {
    let cpus = m[0].1.len();
    // The lab's router16: two nodes of equal size.
    let x = |c: usize| x0 + LEFT + c * CELL + if c >= cpus / 2 { CELL / 2 } else { 0 };
    writeln!(s, "<text x=\"{}\" y=\"20\" font-size=\"14\" font-weight=\"bold\" fill=\"#222\">{title}</text>", x0 + 12)?;
    for (node, c) in [(0, 0), (1, cpus / 2)] {
        writeln!(s, "<text x=\"{}\" y=\"38\" fill=\"#555\">node {node}</text>", x(c))?;
    }
    for c in 0..cpus {
        writeln!(s, "<text x=\"{}\" y=\"54\" fill=\"#555\" text-anchor=\"middle\">{c}</text>", x(c) + CELL / 2)?;
    }
    for (r, (name, marks)) in m.iter().enumerate() {
        let y = TOP + r * CELL;
        writeln!(s, "<text x=\"{}\" y=\"{}\" fill=\"#222\">{name}</text>", x0 + 12, y + 15)?;
        for (c, mark) in marks.iter().enumerate() {
            match mark {
                '×' | 'X' | '!' => writeln!(
                    s,
                    "<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"16\" rx=\"3\" fill=\"{colour}\"/>",
                    x(c) + 3,
                    y + 3
                )?,
                _ => {
                    writeln!(s, "<circle cx=\"{}\" cy=\"{}\" r=\"1.5\" fill=\"#bbb\"/>", x(c) + CELL / 2, y + CELL / 2)?
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_matrices() {
        let m = matrices("a\nTxRx-0   ×  ·   ·  0-3\nTxRx-1   ·  !   ·  0-3\n\nTxRx-0 X . . 0\n");
        assert_eq!(m.len(), 2);
        assert_eq!(m[0][1], ("TxRx-1".to_string(), vec!['·', '!', '·']));
        assert!(svg(&m[0], &m[1]).is_ok());
        assert!(svg(&m[0], &vec![("TxRx-0".into(), vec!['X'])]).is_err());
    }
}
