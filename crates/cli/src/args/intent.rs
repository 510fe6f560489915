//! What is requested, as flags of `plan`, `apply` and other commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ringwise_model::shell;
use ringwise_model::{CpuSet, FarNode, Goal, GoalChoice, IntentFlags, Smt};

use super::cpus;

/// What is wanted. The same flags for plan and apply.
#[derive(Debug, Clone, Default, Args)]
pub struct IntentArgs {
    /// balanced, forward, rpc, stream, latency or mixed; auto chooses by the host's role (router: forward, server: rpc)
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<GoalChoice>,
    /// What is wanted, as a file; flags go before it [default: /etc/ringwise/ringwise.toml where there is one;
    /// none: no file]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One key of such a file: eth0.rings.rx=1024, eth0.rss.table="equal 4", host.smt=all; repeatable
    #[arg(long, value_name = "DEV.KEY=VALUE")]
    pub set: Vec<String>,
    /// Let --goal override the goals in the file
    #[arg(long, requires = "goal")]
    pub override_config: bool,
    /// Use only these CPUs (a list as 0-3,8), isolated ones among them included
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,
    /// Keep these CPUs free of queues for other work
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub reserve: Option<CpuSet>,
    /// Never use these CPUs
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub exclude_cpus: Option<CpuSet>,
    /// Queues an interface; a change of the number interrupts traffic
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub queues: Option<u32>,
    /// Hardware threads of a core
    #[arg(long, value_name = "HOW", value_enum)]
    pub smt: Option<SmtArg>,
    /// CPUs of other nodes than the interface's own
    #[arg(long, value_name = "HOW", value_enum)]
    pub far_node: Option<FarNodeArg>,
    /// Include steps that interrupt traffic
    #[arg(long)]
    pub allow_disruption: bool,
    /// Groups of queues for latency and bulk, half of them on the far node
    #[arg(long)]
    pub pair_as_article: bool,
    /// Queues of the latency group with goal mixed [default: a third]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub latency_queues: Option<u32>,
    /// Fail when a configured setting is not possible here, instead of reporting it in the plan
    #[arg(long)]
    pub strict: bool,
    /// Overwrite manual changes, adopted ones too
    #[arg(long)]
    pub take_over: bool,
    /// Only print the configuration file that says the same
    #[arg(long)]
    pub print_config: bool,
}

impl IntentArgs {
    /// As words behind a command.
    pub fn text(&self, devs: &[String]) -> String {
        let mut words = self.flags(devs).words();
        words.extend(self.take_over.then(|| "--take-over".to_string()));
        shell::join(words)
    }

    /// As it is kept with a transaction.
    pub fn flags(&self, devs: &[String]) -> IntentFlags {
        IntentFlags {
            devs: devs.to_vec(),
            goal: self.goal,
            config: self.config.as_ref().map(|f| f.display().to_string()),
            set: self.set.clone(),
            override_config: self.override_config,
            cpus: self.cpus.clone(),
            reserve: self.reserve.clone(),
            exclude_cpus: self.exclude_cpus.clone(),
            queues: self.queues,
            smt: self.smt.map(Smt::from),
            far_node: self.far_node.map(FarNode::from),
            allow_disruption: self.allow_disruption,
            pair_as_article: self.pair_as_article,
            latency_queues: self.latency_queues,
            strict: self.strict,
        }
    }

    /// `None`: no goal is given, or `auto`, which is not resolved yet.
    pub fn named_goal(&self) -> Option<Goal> {
        match self.goal {
            Some(GoalChoice::Of(goal)) => Some(goal),
            Some(GoalChoice::Auto) | None => None,
        }
    }
}

/// Which hardware threads get queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SmtArg {
    /// At most one queue a physical core
    OnePerCore,
    /// Siblings too, after every core has one
    All,
}

/// Whether CPUs of remote nodes get queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum FarNodeArg {
    Never,
    /// Only when no near CPU is left
    Last,
    /// As good as near ones
    Ok,
}

impl From<SmtArg> for Smt {
    fn from(arg: SmtArg) -> Self {
        match arg {
            SmtArg::OnePerCore => Self::OnePerCore,
            SmtArg::All => Self::All,
        }
    }
}

impl From<FarNodeArg> for FarNode {
    fn from(arg: FarNodeArg) -> Self {
        match arg {
            FarNodeArg::Never => Self::Never,
            FarNodeArg::Last => Self::Last,
            FarNodeArg::Ok => Self::Ok,
        }
    }
}
