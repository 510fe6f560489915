//! `cargo xtask grafana`: every query of the dashboard on a real Prometheus that scrapes a real `ringwise export`, and
//! both texts with `promtool`. It runs in its own network and mount namespaces, so it does not read or change the
//! machine.
//!
//! Two exporters: one on a veth pair with a journal of this boot, one that exports a generated recording, because a
//! veth has neither interrupts nor losses. `--schema` compares the dashboard with Grafana's own types (needs npm).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{apt, cmd, paths};

const HOST: &str = "127.0.0.1:9787";
const RECORDING: &str = "127.0.0.1:9788";
const PROMETHEUS: &str = "127.0.0.1:9790";
/// Generous: Prometheus starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let root = paths::root();
    let text = fs::read_to_string(root.join("contrib/grafana/ringwise.json"))?;
    let dashboard: Value = serde_json::from_str(&text).context("the dashboard")?;
    match args {
        [] => {}
        [word] if word == "--schema" => return schema(&text),
        [word, program, bin] if word == "--inside" => {
            return inside(&dashboard, Path::new(program), Path::new(bin));
        }
        _ => bail!("usage: cargo xtask grafana [--schema]"),
    }
    shape(&dashboard)?;
    let bin = prometheus()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    cmd::visible(Command::new(cargo).current_dir(&root).args(["build", "--quiet", "-p", "ringwise"]))?;
    let program = paths::target().join("debug/ringwise");
    let mut c = Command::new(cmd::need("unshare")?);
    c.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]).arg(std::env::current_exe()?);
    cmd::visible(c.args(["grafana", "--inside"]).arg(program).arg(bin))?;
    Ok(ExitCode::SUCCESS)
}

/// Prometheus and promtool of the distribution, unpacked into the cache.
pub(crate) fn prometheus() -> Result<PathBuf> {
    let root = paths::cache().join("prometheus");
    let bin = root.join("usr/bin");
    if bin.join("promtool").is_file() && bin.join("prometheus").is_file() {
        return Ok(bin);
    }
    println!("setup: fetching prometheus");
    let apt = apt::Apt::new("prometheus", &[&apt::codename()?])?;
    apt.update()?;
    let tmp = root.with_extension("tmp");
    for dir in [&tmp, &root] {
        let _ = fs::remove_dir_all(dir);
    }
    apt.unpack(&["prometheus".to_string()], &tmp)?;
    fs::rename(&tmp, &root).context("prometheus")?;
    Ok(bin)
}

/// Panels, each with its place.
fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().into_iter().flatten().collect()
}

/// Title and query of every target.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for p in panels(dashboard) {
        for t in p["targets"].as_array().into_iter().flatten() {
            let title = p["title"].as_str().unwrap_or_default();
            out.push((title.to_string(), t["expr"].as_str().unwrap_or_default().to_string()));
        }
    }
    out
}

/// Checks what a schema cannot: panels do not overlap, their numbers are unique, titles, units and texts exist.
fn shape(dashboard: &Value) -> Result<()> {
    let mut places = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for p in panels(dashboard) {
        let title = p["title"].as_str().unwrap_or_default();
        let g = |k: &str| p["gridPos"][k].as_u64().with_context(|| format!("{title}: no {k}"));
        let (x, y, w, h) = (g("x")?, g("y")?, g("w")?, g("h")?);
        if title.is_empty() || x + w > 24 || !ids.insert(p["id"].as_u64()) {
            bail!("{title:?}: no title, too wide, or a duplicate number");
        }
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            if !places.insert(cell) {
                bail!("{title} overlaps another panel");
            }
        }
        if p["type"] != "row" && (p["description"].as_str().is_none_or(str::is_empty) || queries_of(p) == 0) {
            bail!("{title} has no description or no query");
        }
    }
    println!("grafana: {} panels, {} queries", ids.len(), queries(dashboard).len());
    Ok(())
}

fn queries_of(panel: &Value) -> usize {
    panel["targets"].as_array().map_or(0, Vec::len)
}

/// The query with the values that Grafana inserts.
fn filled(query: &str) -> String {
    query.replace("$__rate_interval", "30s").replace("$instance", ".*").replace("$device", ".*")
}

/// A router's worth of counters, second by second, losses and a reset included.
fn recording() -> String {
    let mut out = String::from("begin 1 1795183320 edge3 .\nlayout");
    for (dev, base) in [("eth1", 30), ("eth2", 40)] {
        let _ = write!(out, " l/{dev}/n=0 l/{dev}/m=1000 l/{dev}/d/igb=-");
        for q in 0..4 {
            let irq = base + q;
            let _ = write!(out, " l/{dev}/r/{q}={irq} l/{dev}/t/{q}={irq} l/{dev}/g/{irq}={q}");
        }
    }
    out.push_str(" n/0=0 n/1=0 n/2=1 n/3=1 .\n");
    for n in 1..=300u64 {
        let _ = write!(out, "sample {} {}", n * 1_000_000, 1_795_183_320 + n);
        for (i, (dev, base)) in [("eth1", 30), ("eth2", 40)].into_iter().enumerate() {
            // The counters of one device are reset in the middle.
            let n = if i == 0 && n > 20 { n - 20 } else { n };
            let _ = write!(out, " l/{dev}/i={} l/{dev}/s=2", i + 2);
            for (name, k) in [("rx_packets", 1000), ("rx_bytes", 60_000), ("tx_packets", 900), ("tx_bytes", 54_000)] {
                let _ = write!(out, " l/{dev}/c/{name}={}", k * n);
            }
            for (name, k) in [("rx_missed_errors", 5), ("rx_dropped", 2), ("tx_dropped", 1), ("qdisc_drops", 1)] {
                let _ = write!(out, " l/{dev}/c/{name}={}", k * n);
            }
            for q in 0..4u64 {
                let _ = write!(out, " l/{dev}/r/{q}/packets={} l/{dev}/t/{q}/packets={}", (400 - 100 * q) * n, 225 * n);
                let _ = write!(out, " i/{}=- i/{}/{q}={}", base + q, base + q, 90 * n);
            }
        }
        for c in 0..4 {
            let _ = write!(out, " c/{c}/softirq={} c/{c}/irq={n} c/{c}/idle={}", 40 * n, 59 * n);
            let _ = write!(
                out,
                " c/{c}/softnet_processed={} c/{c}/softnet_dropped={n} c/{c}/softnet_squeezed={n}",
                400 * n
            );
        }
        let _ = writeln!(out, " h/Udp:RcvbufErrors={} .", 3 * n);
    }
    out
}

/// A child process that is killed when this value is dropped.
struct Running(Child, &'static str);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        let _ = self.0.wait();
    }
}

fn start(what: &'static str, c: &mut Command, dir: &Path) -> Result<Running> {
    let log = fs::File::create(dir.join(format!("{what}.log")))?;
    let child = c.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn().with_context(|| what)?;
    Ok(Running(child, what))
}

/// Fetches one page with a minimal HTTP client.
fn get(at: &str, path: &str, accept: &str) -> Result<String> {
    use std::io::{Read, Write};
    let mut s = std::net::TcpStream::connect(at)?;
    s.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(s, "GET {path} HTTP/1.1\r\nHost: {at}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")?;
    let mut out = Vec::new();
    s.read_to_end(&mut out)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{at}{path}: {}: {body}", head.lines().next().unwrap_or_default());
    }
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Ok(if chunked { unchunked(body) } else { body.to_string() })
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let n = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if n == 0 || rest.len() < n {
            break;
        }
        out.push_str(&rest[..n]);
        body = rest[n..].trim_start_matches("\r\n");
    }
    out
}

fn wait<T>(what: &str, mut f: impl FnMut() -> Result<T>) -> Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        match f() {
            Ok(v) => return Ok(v),
            Err(e) if Instant::now() > until => return Err(e).context(format!("{what}: timed out")),
            Err(_) => std::thread::sleep(Duration::from_millis(500)),
        }
    }
}

/// The part that runs in its own namespaces.
fn inside(dashboard: &Value, program: &Path, bin: &Path) -> Result<ExitCode> {
    let dir = paths::target().join("grafana");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("state"))?;
    let ip = cmd::need("ip")?;
    // These mounts belong to the new namespaces and vanish with them.
    for (kind, to) in [("sysfs", "/sys"), ("proc", "/proc")] {
        cmd::output(Command::new("mount").args(["-t", kind, kind, to]))?;
    }
    for words in [
        "link set lo up",
        "link add rw0 numrxqueues 2 numtxqueues 2 type veth peer name rw1 numrxqueues 2 numtxqueues 2",
        "link set rw0 up",
        "link set rw1 up",
    ] {
        cmd::output(Command::new(&ip).args(words.split(' ')))?;
    }
    journal(&dir.join("state"))?;
    service(&dir.join("state"))?;
    fs::write(dir.join("made-up.rec"), recording())?;
    let mut all = Vec::new();
    let state = dir.join("state");
    let exporter = || {
        let mut c = Command::new(program);
        c.arg("export").arg("--state-dir").arg(&state);
        c
    };
    all.push(start("export", exporter().args(["rw0", "rw1", "--listen", HOST, "--verify-every", "1s"]), &dir)?);
    let replay = dir.join("made-up.rec");
    all.push(start("replay", exporter().arg("--replay").arg(&replay).args(["--listen", RECORDING]), &dir)?);
    for at in [HOST, RECORDING] {
        wait(at, || get(at, "/metrics", "text/plain"))?;
        promtool(bin, &get(at, "/metrics", "text/plain")?)?;
    }
    println!("grafana: promtool reports no problem in either page");
    let config = format!(
        "global: {{ scrape_interval: 2s, scrape_timeout: 2s }}\nscrape_configs:\n  - job_name: ringwise\n    \
         static_configs: [{{ targets: ['{HOST}', '{RECORDING}'] }}]\n"
    );
    fs::write(dir.join("prometheus.yml"), config)?;
    let mut c = Command::new(bin.join("prometheus"));
    c.arg(format!("--config.file={}", dir.join("prometheus.yml").display()));
    c.arg(format!("--storage.tsdb.path={}", dir.join("data").display()));
    all.push(start("prometheus", c.arg(format!("--web.listen-address={PROMETHEUS}")), &dir)?);
    let asked = queries(dashboard);
    for (title, query) in &asked {
        wait(title, || series(&filled(query)).with_context(|| format!("{title}: {query}")))?;
    }
    for v in dashboard["templating"]["list"].as_array().into_iter().flatten() {
        let Some(words) = v["query"]["query"].as_str() else { continue };
        let (metric, label) = words
            .strip_prefix("label_values(")
            .and_then(|w| w.strip_suffix(')')?.rsplit_once(", "))
            .with_context(|| format!("{words}: not label_values(metric, label)"))?;
        let query = format!("count by ({label}) ({})", filled(metric));
        wait(words, || series(&query))?;
    }
    for a in dashboard["annotations"]["list"].as_array().into_iter().flatten() {
        ask(&filled(a["target"]["expr"].as_str().context("an annotation without a query")?))?;
    }
    // A device vanishes while it is scraped: the pages stay complete except for the data of this device.
    cmd::output(Command::new(&ip).args(["link", "del", "rw0"]))?;
    for _ in 0..20 {
        promtool(bin, &get(HOST, "/metrics", "text/plain")?)?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = wait("the device is gone", || {
        let text = get(HOST, "/metrics", "text/plain")?;
        if text.contains("device=\"rw0\"") && text.contains("ringwise_device_packets_total{device=\"rw0\"") {
            bail!("rw0 is still exported");
        }
        Ok(text)
    })?;
    if !after.contains("ringwise_cpu_seconds_total") {
        bail!("without the device nothing is exported: {after}");
    }
    let open = get(HOST, "/metrics", "application/openmetrics-text;version=1.0.0")?;
    if !open.ends_with("# EOF\n") {
        bail!("no OpenMetrics text");
    }
    // The last scrape of each was read. A scrape that was late on a busy machine is not a failure.
    wait("up", || {
        let up = ask("up == 1")?;
        if up.len() < 2 { bail!("a scrape failed: {up:?}") } else { Ok(()) }
    })?;
    println!(
        "grafana: {} queries on Prometheus return series; after a device vanished, the rest was still exported",
        asked.len()
    );
    for r in &mut all {
        if let Ok(Some(status)) = r.0.try_wait() {
            bail!("{} exited with {status}: {}", r.1, dir.join(format!("{}.log", r.1)).display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A journal of an earlier release as one of this boot, so that there is something to compare.
fn journal(state: &Path) -> Result<()> {
    let old = fs::read_to_string(paths::root().join("fixtures/releases/0.1.0/tx-0001.jsonl"))?;
    let mut lines: Vec<String> = old.lines().map(str::to_string).collect();
    let mut head: Value = serde_json::from_str(lines.first().context("an empty journal")?)?;
    let id = |path: &str| fs::read_to_string(path).ok().map(|t| Value::from(t.trim()));
    head["boot_id"] = id("/proc/sys/kernel/random/boot_id").unwrap_or(Value::Null);
    head["machine_id"] = id("/etc/machine-id").unwrap_or(Value::Null);
    lines[0] = head.to_string();
    fs::write(state.join("tx-0001.jsonl"), lines.join("\n") + "\n")?;
    Ok(())
}

/// This process as the service, so that its metrics exist.
fn service(state: &Path) -> Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(") ").context("/proc/self/stat")?.1.split(' ').collect();
    let started: u64 = fields.get(19).context("/proc/self/stat")?.parse()?;
    let text = serde_json::json!({
        "schema": "ringwise.daemon", "version": 1, "process": { "pid": std::process::id(), "started": started },
        "boot_id": null, "since_unix": 1, "config": null, "keeps": 4, "paused": false, "pauses": [], "manual": [],
        "actions": [{
            "unix_time": 2, "transaction": 2, "cause": "reset", "interfaces": ["rw0"], "settings": 4, "ending": "kept",
            "why": null,
        }],
        "totals": { "kept": 1, "failed": 0, "settings": 4, "manual": 0, "overflows": 0 }, "problem": null, "deaf": [],
    });
    Ok(fs::write(state.join("daemon.json"), text.to_string())?)
}

fn promtool(bin: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let mut c = Command::new(bin.join("promtool"));
    let mut child = c
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("promtool")?;
    child.stdin.take().context("promtool")?.write_all(text.as_bytes())?;
    let out = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned();
    if !out.status.success() || !said.trim().is_empty() {
        bail!("promtool check metrics: {}\n{said}{text}", out.status);
    }
    Ok(())
}

fn ask(query: &str) -> Result<Vec<Value>> {
    let mut path = String::from("/api/v1/query?query=");
    for b in query.bytes() {
        let _ = write!(path, "%{b:02X}");
    }
    let doc: Value = serde_json::from_str(&get(PROMETHEUS, &path, "*/*")?)?;
    if doc["status"] != "success" {
        bail!("{query}: {doc}");
    }
    Ok(doc["data"]["result"].as_array().cloned().unwrap_or_default())
}

/// At least one series with a number.
fn series(query: &str) -> Result<String> {
    let got = ask(query)?;
    let number = |v: &Value| v["value"][1].as_str().and_then(|n| n.parse::<f64>().ok()).is_some_and(f64::is_finite);
    match got.iter().find(|v| number(v)) {
        Some(v) => Ok(v.to_string()),
        None => bail!("{query}: no series"),
    }
}

/// Checks the dashboard against Grafana's own types, with strings for the names of its enumerations.
const TYPES: &str = "import type { AnnotationQuery, Dashboard } from './node_modules/@grafana/schema/dist/types/veneer/dashboard.types';
import type { DataQuery } from './node_modules/@grafana/schema/dist/types/veneer/common.types';
type Json<T> = T extends string ? `${T}` : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Query = DataQuery & { expr: string; legendFormat: string };
type Whole = Omit<Dashboard, 'annotations'> & { annotations: { list: AnnotationQuery<Query>[] } };
export const dashboard: Json<Whole> = ";

/// By npm, which is why it is not part of `make test`: it fetches two packages from a registry.
fn schema(text: &str) -> Result<ExitCode> {
    let dir = paths::target().join("grafana-schema");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("package.json"), "{\"private\":true}\n")?;
    let npm = cmd::find("npm").context("npm is missing")?;
    let install =
        ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "typescript@7", "@grafana/schema@13"];
    cmd::output(Command::new(npm).current_dir(&dir).args(install))?;
    let check = |text: &str| -> Result<()> {
        fs::write(dir.join("check.ts"), format!("{TYPES}{text};\n"))?;
        let mut c = Command::new("node");
        c.current_dir(&dir).arg("node_modules/typescript/bin/tsc");
        let words =
            "--noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler --target es2022 check.ts";
        cmd::output(c.args(words.split(' '))).map(drop)
    };
    check(text)?;
    // The check must fail for a broken dashboard.
    if check(&text.replacen("\"gridPos\"", "\"gridpos\"", 1)).is_ok()
        || check(&text.replacen("\"thresholds\"", "\"x\"", 1)).is_ok()
    {
        bail!("a broken dashboard passes");
    }
    println!("grafana: the dashboard conforms to the types of @grafana/schema");
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_has_its_shape() {
        let text = fs::read_to_string(paths::root().join("contrib/grafana/ringwise.json")).unwrap();
        let mut d: Value = serde_json::from_str(&text).unwrap();
        shape(&d).unwrap();
        assert!(queries(&d).iter().all(|(_, q)| !filled(q).contains('$')));
        d["panels"][1]["gridPos"]["x"] = Value::from(4);
        assert!(shape(&d).is_err());
    }

    #[test]
    fn chunks() {
        assert_eq!(unchunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde");
    }
}
