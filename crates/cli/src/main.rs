//! The `sidebloom` command.

fn main() -> std::process::ExitCode {
    sidebloom_cli::main()
}
