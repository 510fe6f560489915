//! `cargo xtask figures`: the pages of generated sessions, as a test of crates/bench writes them, in a headless Chromium.
//! A script that only this check inserts into a copy reports which figures have no size, which texts leave their figure
//! or cover another one, and whether the page is wider than its window. Screenshots of the untouched pages stay in
//! target/figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{cmd, paths};

const SCRIPT: &str = r#"<script>
const wrong = [];
window.addEventListener("error", e => wrong.push("error: " + e.message));
window.addEventListener("load", () => {
  const all = [...document.querySelectorAll("figure svg")];
  for (const svg of all) {
    const name = svg.closest("figure").id, r = svg.getBoundingClientRect(), texts = [];
    if (r.width < 200 || r.height < 60) wrong.push(`${name}: ${r.width} x ${r.height}`);
    for (const t of svg.querySelectorAll("text")) {
      const b = t.getBoundingClientRect();
      if (!(b.width > 0 && b.height > 0)) wrong.push(`${name}: "${t.textContent}" is not drawn`);
      if (b.left < r.left - 1 || b.right > r.right + 1 || b.top < r.top - 1 || b.bottom > r.bottom + 1)
        wrong.push(`${name}: "${t.textContent}" leaves the figure`);
      for (const [o, word] of texts)
        if (b.left + 1 < o.right && o.left + 1 < b.right && b.top + 3 < o.bottom && o.top + 3 < b.bottom)
          wrong.push(`${name}: "${t.textContent}" covers "${word}"`);
      texts.push([b, t.textContent]);
    }
  }
  if (document.documentElement.scrollWidth > window.innerWidth) wrong.push("the page is wider than its window");
  for (const e of performance.getEntriesByType("resource")) wrong.push("loads " + e.name);
  const said = document.createElement("pre");
  said.id = "checked";
  said.textContent = `${all.length} figures\n` + wrong.join("\n");
  document.body.append(said);
});
</script>
"#;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(other) = args.first() {
        bail!("figures: expected no argument, found {other:?}");
    }
    let browser = cmd::need("chromium")?;
    let out = paths::target().join("figures");
    fs::create_dir_all(&out)?;
    let pages = pages()?;
    let mut wrong = Vec::new();
    for page in &pages {
        let name = page.file_stem().context("a page has a name")?.to_string_lossy().into_owned();
        let figures = check(&browser, page, &name, &out, &mut wrong)?;
        println!("figures: {name}: {figures} drawn, {}", out.join(format!("{name}.png")).display());
    }
    if !wrong.is_empty() {
        bail!("the pages have faults:\n  {}", wrong.join("\n  "));
    }
    Ok(ExitCode::SUCCESS)
}

/// The pages, in cargo's directory for files of tests.
fn pages() -> Result<Vec<PathBuf>> {
    let dir = paths::target().join("tmp/bench-pages");
    let _ = fs::remove_dir_all(&dir);
    let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.current_dir(paths::root()).env_remove("RINGWISE_BLESS");
    c.args(["test", "--quiet", "-p", "ringwise-bench", "--test", "report", "--", "--exact", "pages"]);
    cmd::output(&mut c)?;
    let mut pages: Vec<PathBuf> =
        fs::read_dir(&dir).with_context(|| dir.display().to_string())?.flatten().map(|e| e.path()).collect();
    pages.retain(|p| p.extension().is_some_and(|x| x == "html"));
    pages.sort();
    if pages.is_empty() {
        bail!("no page in {}", dir.display());
    }
    Ok(pages)
}

fn check(browser: &Path, page: &Path, name: &str, out: &Path, wrong: &mut Vec<String>) -> Result<usize> {
    let text = fs::read_to_string(page)?;
    let copy = out.join(format!("{name}-checked.html"));
    // It is the first script of the head, so that it receives every error.
    fs::write(&copy, text.replacen("<head>\n", &format!("<head>\n{SCRIPT}"), 1))?;
    let want = text.matches("<figure ").count();
    for width in [1300, 700] {
        let dom = String::from_utf8_lossy(&open(browser, out, &copy, width, "--dump-dom")?).into_owned();
        let said = dom.split_once("<pre id=\"checked\">").and_then(|(_, r)| r.split_once("</pre>")).map(|(s, _)| s);
        let said = said.with_context(|| format!("{name}: the script did not run in {}", copy.display()))?;
        let mut lines = said.lines();
        if lines.next() != Some(&format!("{want} figures")) || want == 0 {
            wrong.push(format!("{name}: {want} figures in the file, in the browser: {said}"));
        }
        wrong.extend(lines.filter(|l| !l.is_empty()).map(|l| format!("{name}, {width} px wide: {l}")));
    }
    let picture = out.join(format!("{name}.png"));
    let _ = fs::remove_file(&picture);
    open(browser, out, page, 1300, &format!("--screenshot={}", picture.display()))?;
    let bytes = fs::metadata(&picture).with_context(|| format!("{name}: no screenshot was made"))?.len();
    // A page of one colour is below 20 kB.
    if bytes < 40_000 {
        wrong.push(format!("{name}: the screenshot ({bytes} bytes) is empty"));
    }
    Ok(want)
}

fn open(browser: &Path, out: &Path, page: &Path, width: u32, what: &str) -> Result<Vec<u8>> {
    let mut c = Command::new(cmd::need("timeout")?);
    c.arg("120").arg(browser);
    // Root has no sandbox; nothing may be fetched.
    c.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]);
    c.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=4000"]);
    c.arg(format!("--user-data-dir={}", out.join("profile").display()));
    c.arg(format!("--window-size={width},4000")).arg(what).arg(format!("file://{}", page.display()));
    cmd::bytes(&mut c)
}
