//! Leftovers under fire: SIGKILL to any of our processes at a random moment, while several clients have ordinary and
//! hostile tools run; then the next start.
//!
//! After each kill nothing may be left, and each call that was accepted has its honest end. How often a call's tool was
//! started is witnessed from outside: each takes one byte out of a pipe of its own, so that what is missing there is the
//! number of its starts, whatever our own log says.
//!
//! `KILLS=N` kills that often instead of 200 times, `SEED=N` makes the same choices again (the moments are the machine's).

mod dice;
mod lane;
mod load;
mod neighbours;
mod waves;
mod witness;

use std::io::Write as _;

use toolcell_tests::{Need, needs};

use dice::Dice;
use lane::{Lane, Tally};

/// Instances that live side by side.
const LANES: u64 = 4;
/// Kills unless `KILLS` says something else.
const KILLS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Descriptors and threads of this very program.
fn own_holdings() -> (usize, usize) {
    let count = |dir: &str| std::fs::read_dir(dir).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn kills_at_random_moments_leave_nothing_and_every_call_has_its_honest_end() {
    needs!(Need::Root);
    let (kills, seed) = (number("KILLS").unwrap_or(KILLS), number("SEED").unwrap_or_else(dice::any_seed));
    let repeat = format!("to repeat the choices: KILLS={kills} SEED={seed}");
    say(&repeat);
    let before = own_holdings();
    let tallies = std::thread::scope(|scope| {
        let run = |n: u64| {
            let share = kills / LANES + u64::from(n < kills % LANES);
            scope.spawn(move || Lane::new(Dice::new(seed, n)).run(share))
        };
        let lanes: Vec<_> = (0..LANES).map(run).collect();
        let ended: Vec<_> = lanes.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|lane| lane.unwrap_or_else(|_| panic!("a lane failed; {repeat}"))).collect::<Vec<_>>()
    });
    let sum = tallies.into_iter().fold(Tally::default(), Tally::and);
    say(&format!("{sum:#?}"));
    assert_eq!(sum.kills.values().sum::<u64>(), kills, "{repeat}");
    assert_eq!(own_holdings(), before, "descriptors and threads of this program; {repeat}");
}
