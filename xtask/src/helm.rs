//! `cargo xtask helm`: the tests of the Helm chart, a small Go module. They build helm, lint and render the chart,
//! validate its manifests by the code of the API server, and check its configurations with ringwise.

use crate::{cmd, paths};
use anyhow::{Result, bail};
use std::process::{Command, ExitCode};

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(other) = args.first() {
        bail!("helm: expected no argument, found {other:?}");
    }
    let go = cmd::need("go")?;
    let root = paths::root();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    cmd::visible(Command::new(cargo).current_dir(&root).args(["build", "--quiet", "-p", "ringwise"]))?;
    println!("helm: on first use, go fetches and builds helm and the types of Kubernetes, in its own cache");
    let mut tests = Command::new(go);
    tests.args(["test", "-count=1", "-timeout=60m", "./..."]);
    tests.current_dir(root.join("contrib/helm/test")).env("RINGWISE_PROGRAM", paths::target().join("debug/ringwise"));
    cmd::visible(&mut tests)?;
    Ok(ExitCode::SUCCESS)
}
