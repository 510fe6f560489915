#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ringwise_cli::main()
}
