//! `cargo xtask helm`: the tests of the Helm chart, two small Go modules. Without an option they build helm, lint and
//! render the chart, validate its manifests by the code of the API server, and check its configurations with ringwise.
//! With `--cluster` they install the chart with helm on a real kube-apiserver.

use crate::{cmd, paths};
use anyhow::{Result, bail};
use std::process::{Command, ExitCode};

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    match args {
        [] => manifests(),
        [option] if option == "--cluster" => cluster(),
        other => bail!("helm: expected no argument or --cluster, found {:?}", other.join(" ")),
    }
}

fn manifests() -> Result<ExitCode> {
    let mut tests = go_test("test")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    cmd::visible(Command::new(cargo).current_dir(paths::root()).args(["build", "--quiet", "-p", "ringwise"]))?;
    println!("helm: on first use, go fetches and builds helm and the types of Kubernetes, in its own cache");
    cmd::visible(tests.arg("./...").env("RINGWISE_PROGRAM", paths::target().join("debug/ringwise")))?;
    Ok(ExitCode::SUCCESS)
}

fn cluster() -> Result<ExitCode> {
    let mut tests = go_test("cluster")?;
    println!(
        "helm: on first use, go fetches and builds helm, kube-apiserver, etcd and two controllers of Kubernetes, in its own cache: \
         more than 2,000 packages"
    );
    // vet would analyse each of these packages, also those that are built already.
    cmd::visible(tests.args(["-vet=off", "-v", "./..."]))?;
    Ok(ExitCode::SUCCESS)
}

/// `go test` in a directory of `contrib/helm`.
fn go_test(dir: &str) -> Result<Command> {
    let mut tests = Command::new(cmd::need("go")?);
    tests.args(["test", "-count=1", "-timeout=60m"]).current_dir(paths::root().join("contrib/helm").join(dir));
    Ok(tests)
}
