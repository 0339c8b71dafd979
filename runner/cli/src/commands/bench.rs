//! `toolcell bench`: what a call costs, beside other ways of running the same program.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use toolcell_lab::bench::{self, BenchError, Settings};

use crate::args::BenchArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Measures and prints. The exit code says whether it could be measured, not whether it was quick.
pub(crate) fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
    watch_for_the_end(&IS_INTERRUPTED).map_err(|error| Failure::plain(Exit::Failed, error))?;
    let settings = Settings {
        is_interrupted: &IS_INTERRUPTED,
        binary: std::env::current_exe().map_err(|error| Failure::plain(Exit::Failed, error))?,
        parent: args.dir.clone(),
        rounds: count(args.rounds),
        memory_calls: count(args.memory_calls),
        accept_unavailable: args.accept_unavailable.clone(),
    };
    let report = bench::run(&settings, &mut render::say).map_err(|error| {
        // What a terminal's Ctrl-C ended beside us is no failure of its own.
        let error = if IS_INTERRUPTED.load(Ordering::Relaxed) { BenchError::Interrupted } else { error };
        let exit = if matches!(error, BenchError::Interrupted) { Exit::Cancelled } else { Exit::Failed };
        let remedy = error.remedy();
        if remedy.is_empty() { Failure::plain(exit, error) } else { Failure::new(exit, error, remedy) }
    })?;
    if args.json {
        render::value(&report)?;
    } else {
        render::out(render::bench(&report).as_bytes())?;
    }
    Ok(Exit::Ok)
}

/// Ctrl-C and SIGTERM are looked at between two calls, so that nothing that was started for this stays.
fn watch_for_the_end(is_interrupted: &'static AtomicBool) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupted, mut terminated) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watching = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! { _ = interrupted.recv() => {}, _ = terminated.recv() => {} }
            is_interrupted.store(true, Ordering::Relaxed);
        });
    });
    // It ends with the process.
    watching.map(drop)
}
