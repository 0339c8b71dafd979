//! `toolcell bench`: what a call costs, beside other ways of running the same program.

use toolcell_lab::bench::{self, Settings};

use crate::args::BenchArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Measures and prints. The exit code says whether it could be measured, not whether it was quick.
pub(crate) fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let settings = Settings {
        binary: std::env::current_exe().map_err(|error| Failure::plain(Exit::Failed, error))?,
        parent: args.dir.clone(),
        rounds: count(args.rounds),
        memory_calls: count(args.memory_calls),
        accept_unavailable: args.accept_unavailable.clone(),
    };
    let report = bench::run(&settings, &mut render::say).map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Failed, error, remedy)
    })?;
    if args.json {
        render::value(&report)?;
    } else {
        render::out(render::bench(&report).as_bytes())?;
    }
    Ok(Exit::Ok)
}
