//! The requested settings, as options of `plan`, `apply` and other commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ringwise_model::shell;
use ringwise_model::{CpuSet, FarNode, Goal, GoalChoice, IntentFlags, Smt};

use super::duration::sample_time;
use super::value::{at_least, cpus};

/// The requested settings. `plan` and `apply` have the same options.
#[derive(Debug, Clone, Default, Args)]
pub struct IntentArgs {
    /// Tune for balanced, forward, rpc, stream, latency or mixed; auto chooses by the role of the host (router: forward, server: rpc) [default: that of the configuration file, else balanced; an earlier --goal is not remembered]
    #[arg(long, value_name = "GOAL", help_heading = "Request")]
    pub goal: Option<GoalChoice>,
    /// Read settings from this configuration file; options override it; none: no file [default:
    /// /etc/ringwise/ringwise.toml if it exists]
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    pub config: Option<PathBuf>,
    /// Set one key of the configuration: eth0.rings.rx=1024, eth0.rss.table="equal 4", host.smt=all; repeatable
    #[arg(long, value_name = "DEV.KEY=VALUE", help_heading = "Request")]
    pub set: Vec<String>,
    /// Let --goal override the goals in the file
    #[arg(long, requires = "goal", help_heading = "Request")]
    pub override_config: bool,
    /// Use only these CPUs (a list such as 0-3,8), even if they are isolated
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "CPUs and queues")]
    pub cpus: Option<CpuSet>,
    /// Keep these CPUs free of queues, for programs that must not share CPUs with interrupts (start them there with CPUAffinity=LIST)
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "CPUs and queues")]
    pub reserve: Option<CpuSet>,
    /// Keep these CPUs free of queues as well; unlike --reserve, this does not replace the reserve of the configuration file
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "CPUs and queues")]
    pub exclude_cpus: Option<CpuSet>,
    /// Number of queues of each interface; changing it interrupts traffic
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1), help_heading = "CPUs and queues")]
    pub queues: Option<u32>,
    /// Use of the hardware threads of a core
    #[arg(long, value_name = "HOW", value_enum, help_heading = "CPUs and queues")]
    pub smt: Option<SmtArg>,
    /// Use of CPUs on remote nodes
    #[arg(long, value_name = "HOW", value_enum, help_heading = "CPUs and queues")]
    pub far_node: Option<FarNodeArg>,
    /// Include changes that interrupt traffic, often for seconds; without it the plan only lists them
    #[arg(long, help_heading = "Limits")]
    pub allow_disruption: bool,
    /// Make the queue groups of Intel's article about moderation of single queues: latency and bulk, half of the queues on
    /// the remote node
    #[arg(long, help_heading = "CPUs and queues")]
    pub pair_as_article: bool,
    /// Number of queues in the latency group of goal mixed [default: a third]
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1), help_heading = "CPUs and queues")]
    pub latency_queues: Option<u32>,
    /// Count traffic and CPU time for TIME, and assign CPUs by what each queue received; with goal mixed, choose the sizes of
    /// the groups and the policy of the bulk queues [default of TIME: 5s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "5s", value_parser = sample_time, conflicts_with = "print_config", help_heading = "CPUs and queues")]
    pub sample: Option<Duration>,
    /// Fail when a configured setting is not possible here, instead of reporting it in the plan
    #[arg(long, help_heading = "Limits")]
    pub strict: bool,
    /// Overwrite settings that were changed outside ringwise, also adopted ones
    #[arg(long, help_heading = "Limits")]
    pub take_over: bool,
    /// Only print the equivalent configuration file
    #[arg(long, help_heading = "Output")]
    pub print_config: bool,
}

impl IntentArgs {
    /// The options as arguments of a command line.
    pub fn text(&self, devs: &[String]) -> String {
        let mut words = self.flags(devs).words();
        words.extend(self.take_over.then(|| "--take-over".to_string()));
        shell::join(words)
    }

    /// The options as the journal of a transaction stores them.
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
            sample_ms: self.sample.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
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
    /// One thread of each core takes interrupts; queues beyond the number of local cores: see --far-node. Default of rpc,
    /// stream, latency
    OnePerCore,
    /// Second threads take interrupts too, after every core has a queue. Default of balanced, forward, mixed
    All,
}

/// Whether CPUs of remote nodes get queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarNodeArg {
    /// Only CPUs of the interface's node, which queues then share; refuse if none of them may be used
    Never,
    /// The default. First every local CPU that --smt allows; then nearby nodes (same socket, or a distance of at most 12),
    /// which goal forward prefers to second threads of local cores. Other nodes only if no nearer CPU may be used; goal
    /// mixed also uses them before queues share a CPU
    Last,
    /// CPUs of remote nodes count like local ones, the nearest first
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
