//! One instance after the other, killed at random moments and looked at after each.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use toolcell_tests::{Home, Instance, Process, eventually, run, status_field, toolcell};
use toolcell_types::{Answer, CallState, Effect, ErrorCode, ReceiptItem, Verdict};

use super::dice::Dice;
use super::load::{Call, Heard};
use super::witness::Witness;

/// Clients of an instance, and calls of each, one after the other.
const CLIENTS: usize = 3;
const CALLS: usize = 2;
/// The kill comes within this time after the first call was sent, or, in half of the rounds, after the first cell is there:
/// about as long as the calls take.
const WINDOW_US: u64 = 150_000;
/// How often is looked for a cell.
const STEP: Duration = Duration::from_millis(2);
/// The same as the window for a start.
const START_US: u64 = 120_000;
/// Of so many kills one hits the next start.
const STARTS: u64 = 5;
/// How many kills a state sees before a fresh one is taken: each start reads the whole log.
const AGE: u64 = 6;

/// Who is killed.
const VICTIMS: [&str; 4] = ["daemon", "launcher", "signer", "init"];

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Kills, by victim.
    pub(super) kills: BTreeMap<&'static str, u64>,
    /// Calls that were sent, by how they stand in the log in the end.
    calls: BTreeMap<String, u64>,
    /// Starts of tools that the witness counted.
    starts: usize,
    /// Receipts that were verified by the command line.
    verified: u64,
}

impl Tally {
    /// Both together.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (victim, count) in other.kills {
            *self.kills.entry(victim).or_default() += count;
        }
        for (end, count) in other.calls {
            *self.calls.entry(end).or_default() += count;
        }
        self.starts += other.starts;
        self.verified += other.verified;
        self
    }

    fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn killed(&mut self, victim: &'static str) {
        *self.kills.entry(victim).or_default() += 1;
    }
}

/// One lane.
#[derive(Debug)]
pub(super) struct Lane {
    dice: Dice,
    witness: Witness,
    tally: Tally,
}

impl Lane {
    /// With choices of its own.
    pub(super) fn new(dice: Dice) -> Self {
        Self { dice, witness: Witness::new(), tally: Tally::default() }
    }

    /// Kills that often.
    pub(super) fn run(mut self, kills: u64) -> Tally {
        while self.tally.kills() < kills {
            let most = kills.min(self.tally.kills() + AGE);
            let mut instance = Instance::start();
            while self.tally.kills() < most {
                instance = self.round(instance, most);
            }
            // An orderly end after all that: nothing at all is left, or this fails.
            drop(instance.stop());
            self.witness = Witness::new();
        }
        self.tally
    }

    /// Load, a kill, and a look at what is left and at every call.
    fn round(&mut self, instance: Instance, most: u64) -> Instance {
        let calls: Vec<Call> = (0..CLIENTS * CALLS).map(|_| Call::any(&mut self.dice, &mut self.witness)).collect();
        let victim = *self.dice.one_of(&VICTIMS);
        let moment = Duration::from_micros(self.dice.below(WINDOW_US));
        let waits_for_a_cell = self.dice.below(2) == 0;
        let name = instance.name().to_owned();
        let socket = instance.socket();
        let (instance, heard) = std::thread::scope(|scope| {
            let socket = socket.as_path();
            let clients: Vec<_> = calls
                .chunks(CALLS)
                .map(|calls| scope.spawn(move || calls.iter().map(|call| call.submit(socket)).collect::<Vec<_>>()))
                .collect();
            let is_over = || clients.iter().all(std::thread::ScopedJoinHandle::is_finished);
            while waits_for_a_cell && !is_over() && instance.cell_groups().is_empty() {
                std::thread::sleep(STEP);
            }
            std::thread::sleep(moment);
            let instance = if victim == "init" {
                if self.kill_an_init(&instance, is_over) {
                    self.tally.killed(victim);
                }
                Ok(instance)
            } else {
                self.tally.killed(victim);
                let part = match victim {
                    "daemon" => instance.daemon(),
                    "signer" => instance.signer(),
                    _ => instance.launcher(),
                };
                Err(instance.crash(&part))
            };
            let heard: Vec<Heard> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
            (instance, heard)
        });
        let has_restarted = instance.is_err();
        let instance = instance.unwrap_or_else(|home| self.start_again(home, &name, victim, most));
        let log = instance.receipts();
        let mut harmed = 0;
        for (call, heard) in calls.iter().zip(&heard) {
            let is_well = self.look_at((&instance, has_restarted), (call, heard), &log);
            harmed += usize::from(call.is_ordinary && !is_well);
        }
        // The death of one cell's init is nobody else's, and what the hostile ones do is not either.
        assert!(
            has_restarted || harmed <= 1,
            "{harmed} ordinary calls did not end well although no part of ours was killed"
        );
        assert_eq!(instance.health().status, "ok");
        instance
    }

    /// Whether one was there to be killed before the load was over.
    fn kill_an_init(&mut self, instance: &Instance, is_over: impl Fn() -> bool) -> bool {
        while !is_over() {
            let is_init = |process: &Process| {
                status_field(process.pid, "NSpid").is_some_and(|ids| ids.split_whitespace().last() == Some("1"))
            };
            let inits: Vec<Process> = instance.cell_processes().into_iter().filter(is_init).collect();
            if inits.is_empty() {
                std::thread::sleep(STEP);
                continue;
            }
            let init = self.dice.one_of(&inits);
            // It may have ended by itself meanwhile; its number is not given to another one so soon.
            return kill(Pid::from_raw(i32::try_from(init.pid).unwrap()), Signal::SIGKILL).is_ok();
        }
        false
    }

    /// What is left by the dead, and the next start, which may be hit as well.
    fn start_again(&mut self, home: Home, name: &str, victim: &str, most: u64) -> Instance {
        let left = home.remains(Some(name));
        if victim == "launcher" {
            // Who cleaned up is dead: groups, the socket's name and the lock's are left to the next start.
            nothing_runs(&home, name);
        } else {
            left.vanish();
        }
        while self.tally.kills() < most && self.dice.below(STARTS) == 0 {
            home.start_and_kill(Duration::from_micros(self.dice.below(START_US)));
            self.tally.killed("start");
            nothing_runs(&home, name);
        }
        let instance = home.start();
        assert_eq!(instance.name(), name, "the instance keeps its name");
        assert_eq!(instance.cell_groups(), Vec::<std::path::PathBuf>::new(), "groups of the dead are removed");
        instance
    }

    /// One call's end, in the log, by what the client heard, and by the witness. Whether it ended well, or can be sent again.
    fn look_at(
        &mut self,
        (instance, has_restarted): (&Instance, bool),
        (call, heard): (&Call, &Heard),
        log: &[ReceiptItem],
    ) -> bool {
        let stored = eventually("the end of a call", || {
            let response = instance.get(&format!("/v1/calls/{}", call.id));
            let is_live = response.json::<Value>()["state"] == CallState::Submitting.as_str();
            assert!(!(is_live && has_restarted), "{}: the start has left it open", call.id);
            (!is_live).then_some(response)
        });
        if let Heard::Accepted(accepted) = heard {
            let is_there = log.iter().any(|entry| entry.envelope == accepted.intent);
            assert!(is_there, "the intent that was sent out is in the log: {}", call.id);
        }
        if stored.status() == 404 {
            drop(stored.problem(ErrorCode::NotFound));
            assert!(
                matches!(heard, Heard::NotSent | Heard::Nothing | Heard::NoPlace),
                "it was accepted and is gone: {heard:?}"
            );
            assert_eq!(self.starts(call, 0..=0), 0);
            let was_sent = if matches!(heard, Heard::NotSent) { "not sent" } else { "sent, no trace" };
            *self.tally.calls.entry(was_sent.to_owned()).or_default() += 1;
            self.try_again(instance, call);
            return true;
        }
        let answer = stored.answer();
        if let Heard::Ended(ended) = heard {
            assert_eq!(**ended, answer, "an answer that left is what stays");
        }
        if answer.verdict == Verdict::Lost {
            assert_eq!((answer.state, answer.effect), (CallState::Failed, Effect::None), "{answer:?}");
            assert!(!matches!(heard, Heard::Ended(_)));
        }
        let is_well = answer.verdict == Verdict::Exited { exit_code: 0 };
        // It ran, it did not run, or nobody can tell: each as the answer says it.
        let did_not_run = matches!(answer.verdict, Verdict::StartFailed { .. });
        let first = self.starts(call, usize::from(is_well)..=usize::from(!did_not_run));
        if is_well {
            assert_eq!(nonces(&answer, &call.id), 1, "{answer:?}");
        }
        *self.tally.calls.entry(word_of(&answer)).or_default() += 1;
        // A client that heard nothing asks again: the same end, and no second start.
        let again = instance.post(&call.request);
        if again.status() == 200 {
            assert_eq!(again.answer(), answer, "a replay");
        } else {
            drop(again.problem(ErrorCode::BudgetExhausted));
        }
        self.tally.starts += self.starts(call, first..=first);
        if self.dice.below(8) == 0 {
            self.verify(instance, &answer);
        }
        is_well
    }

    /// A call that left no trace was not begun, so that its client may send it again.
    fn try_again(&mut self, instance: &Instance, call: &Call) {
        if !call.is_ordinary || self.dice.below(2) == 0 {
            return;
        }
        let answer = instance.call(&call.request);
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
        self.tally.starts += self.starts(call, 1..=1);
        assert_eq!(nonces(&answer, &call.id), 1, "{answer:?}");
        *self.tally.calls.entry("then sent again".to_owned()).or_default() += 1;
    }

    /// What the witness says; without one it says nothing.
    fn starts(&self, call: &Call, expected: std::ops::RangeInclusive<usize>) -> usize {
        if !call.is_witnessed {
            return 0;
        }
        let starts = self.witness.starts(&call.id);
        assert!(expected.contains(&starts), "{} was started {starts} times, not {expected:?}", call.id);
        starts
    }

    /// By the command line, as anybody does it.
    fn verify(&mut self, instance: &Instance, answer: &Answer) {
        let file = instance.home().dir().join("receipt.json");
        std::fs::write(&file, serde_json::to_vec(&answer.receipt).unwrap()).unwrap();
        let key = instance.home().state().join("signer/public.pem");
        let words = ["verify", text(&file), "--key", text(&key)];
        let verified = run(&mut toolcell(&words));
        assert_eq!(verified.code, 0, "{}", verified.stderr);
        self.tally.verified += 1;
    }
}

/// Waits until no process and no mount of that instance is there.
fn nothing_runs(home: &Home, name: &str) {
    let remains = home.remains(Some(name));
    eventually("the end of every process", || remains.processes().is_empty().then_some(()));
    assert_eq!(remains.mounts(), Vec::<String>::new());
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// How often the tool has printed its nonce.
fn nonces(answer: &Answer, id: &str) -> usize {
    let stdout = serde_json::to_value(&answer.stdout).unwrap();
    stdout.as_str().unwrap_or_default().matches(&format!("nonce {id}\n")).count()
}

fn word_of(answer: &Answer) -> String {
    if let Verdict::StartFailed { stage, errno } = &answer.verdict {
        return format!("start_failed at {stage} with {errno}");
    }
    serde_json::to_value(&answer.verdict).unwrap()["cause"].as_str().unwrap().to_owned()
}
