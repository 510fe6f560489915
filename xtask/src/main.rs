//! Developer tasks: `cargo xtask setup | lab | demo | ...`.
#![forbid(unsafe_code)]

mod apt;
mod bench;
mod boot;
mod cargo_tool;
mod ci;
mod circles;
mod cmd;
mod cost;
mod coverage;
mod demo;
mod dev;
mod figures;
mod fixtures;
mod fleet;
mod grafana;
mod green;
mod heartbeat;
mod helm;
mod host;
mod host_access;
mod image;
mod irqbalance;
mod job;
mod kernel;
mod lab;
mod lane;
mod layering;
mod module;
mod mutants;
mod mutate;
mod package;
mod paths;
mod peers;
mod picture;
mod program;
mod progress;
mod prose;
mod qemu;
mod release;
mod reproduction;
mod scenario;
mod setup;
mod shellcheck;
mod site;
mod times;
mod tools;
mod tree;
mod userland;
mod words;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask TASK

  setup [--lane demo|quick|all]
                        install what the lab needs and print it, fetch QEMU, kernels and tools into the cache
  lab [options]         boot the lab hosts and run the scenarios
      --quick           only the quick set, as `make test` does (# quick: in a scenario's header)
      --since REV       only scenarios that a change since that revision can affect (lab/areas.toml)
      --arch A          hosts of this machine: amd64 (default) or arm64
      --host H          only this host (lab/hosts/H.toml)
      --kernel K        only this kernel (a name of lab/kernels.toml)
      --scenario TEXT   only scenarios whose name contains TEXT
      --program FILE    use this static ringwise instead of a new build
      --minutes N       end after that time; scenarios that have not run by then count as failed
      --record          after a green run, write its times and counts into lab/README.md
      --skip-unchanged  with --quick: skip boots that passed before if nothing has changed since
      --shuffle SEED    run each boot's scenarios in a random order; equal seeds give equal orders
      --list            show what would run, and stop
      --keep            keep the share directory of each boot
  lab shell [--host H] [--kernel K]   an interactive guest
  lab bench [--quick] [--only SECTIONS] [--kernel K] [--program FILE]
                        the experiments of the articles, one guest at a time; writes docs/reproduction.md (a separate lane)
      --against LIST    of a row of the matrix, only these: cpu0,kernel,loop,irqbalance,tuned
      --load WHAT       of a row of the matrix: only overload, or only lossless
      --page            only rewrite the page from the existing results
  fleet [--program FILE] [--keep]
                        plays of the Ansible collection over ssh, against five guests (docs/ansible.md)
  mutants [NAME...]     faults of the write path (lab/mutants); a scenario must find each of them
  mutate [options]      small faults in the pure crates, made by cargo-mutants; their tests must find them; continues where
                        an earlier run stopped
      --crate C         only in this crate (plan, knob, flow, kfmt, check or config)
      --since REV       only in files that changed since that revision
      --count N         number of faults, selected by the seed (default 300)
      --seed N          select other faults (default 18)
      --minutes N       stop after that time
      --again           forget the outcomes of earlier runs
      --list            show which would be tested, with the known outcomes, and stop
  ci [--again] [--all [--since REV]] [--step NAME]
                        what `make test` runs: format, dependencies, shell, clippy, tests, figures, the quick lab;
                        --again: repeats boots that passed, even if nothing has changed since;
                        --all: what `make test-all` runs, with the dashboard, the Helm chart, the packages and the whole lab
                        --step: only this step (may be repeated)
  grafana [--schema]    the dashboard's queries on a real Prometheus that scrapes ringwise export; promtool
                        --schema: its JSON by Grafana's own types (npm)
  figures               check in a headless Chromium that the pages of bench's tests are drawn completely and nothing overlaps
  helm [--cluster]      the tests of the Helm chart (needs Go 1.26, or an earlier one that may fetch it)
                        --cluster: install, upgrade and roll it back on a real kube-apiserver with 100 Node objects
  layering              compare the dependencies between crates with ARCHITECTURE.md
  words [PATH]          check that texts use the terms of the field; with a path, list the terms to replace there
      --lower           write the remaining counts into xtask/words.toml
      --strings [PATH]  list the strings of the program that a user may see
  shellcheck            check every shell script of the lab and of the Helm chart
  bless                 rewrite the golden results of all tests (review the changes afterwards)
  fixtures [--from-lab] archives of the hand-written hosts; captures of the lab hosts
  docs [DIR]            the documentation site (default target/site), built from docs/SUMMARY.md and what it links to
  package [options]     .deb, .rpm and tarball of the static program, and their checksums (target/package)
      --arch A          amd64 (default) or arm64
      --out DIR         write them to this directory
      --source          also the source with that of all dependencies; with --try, it is built without a network
      --key FILE        sign everything with this secret key of minisign
      --tests           also run the tests of the crates without I/O; those of arm64 by qemu-user
      --twice           build again in another directory; the bytes must be the same
      --try             install, upgrade, remove and purge them in fresh Debian trees; lintian, rpmlint
      --program FILE    use this static ringwise instead of a new build
  release [options]     all files of a release in target/dist/VERSION: packages for amd64 and arm64, source, site, checksums,
                        signatures; tried there; refuses if the tree, the versions and CHANGELOG.md do not agree
      --key FILE        sign everything with this secret key of minisign; SECURITY.md must name its public key
      --twice           build each package again in another directory; the bytes must be the same
      --rehearse        also without a date in CHANGELOG.md; in target/dist/VERSION-rehearsal, not to be published
      --program ARCH=FILE   in a rehearsal, use this static ringwise instead of a new build
  release --version X.Y.Z   set the version: Cargo.toml, Cargo.lock, and the newest heading of CHANGELOG.md with today's date
  man [DIR]             man pages and completions (default target/man)
  picture [FILE]        the README's pictures: docs/chain.svg, docs/watch-*.svg; with the saved output of `demo` docs/matrix.svg
  cost [--program FILE] the cost of a sample of watch on this machine, compared with other programs (root; own namespaces)
  demo                  run lab/demo.sh on router16, live
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((t, r)) => (t.as_str(), r),
        None => ("help", &[][..]),
    };
    let done = match task {
        "setup" => setup::run(rest),
        "lab" if rest.first().is_some_and(|w| w == "bench") => bench::run(&rest[1..]),
        "lab" => lab::run(rest),
        "demo" => demo::run(rest),
        "fleet" => fleet::run(rest),
        "mutants" => mutants::run(rest),
        "mutate" => mutate::run(rest),
        "cost" => cost::run(rest),
        "ci" => ci::run(rest),
        "shellcheck" => shellcheck::run(rest),
        "words" => words::run(rest),
        "layering" => layering::run(&paths::root()).map(|()| ExitCode::SUCCESS),
        "bless" => dev::bless(&paths::root()),
        "grafana" => grafana::run(rest),
        "figures" => figures::run(rest),
        "helm" => helm::run(rest),
        "fixtures" => fixtures::run(rest),
        "picture" => picture::run(&paths::root(), rest),
        "docs" => site::run(rest),
        "man" => dev::man(&paths::root(), rest),
        "package" => package::run(rest),
        "release" => release::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => {
            eprintln!("error: xtask has no task {other:?}\n\n{HELP}");
            Ok(ExitCode::from(2))
        }
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            eprintln!("error: xtask {task}: {e:#}");
            ExitCode::FAILURE
        }
    }
}
