//! What runs when the kill comes: several clients, each with calls of ordinary and hostile tools.

use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Connection, Request, fresh_id, program_on_host, programs_dir};
use toolcell_types::{Answer, RunningCall};

use super::dice::Dice;
use super::witness::Witness;

const MIB: u64 = 1 << 20;
/// How a tool is that does what one expects.
const ORDINARY: [&str; 4] = ["true", "seq 1 2000", "cat /etc/hostname; echo done >&2", "sleep 0.05"];
/// The suite's programs that do not want to end, grow, multiply or talk, each with its words.
const HOSTILE: [(&str, &str); 7] = [
    ("fork_bomb", "stay"),
    ("leaves_children", "daemon stay"),
    ("leaves_children", "chain stay"),
    ("leaves_children", "stopped stay"),
    ("memory_hog", "main"),
    ("floods", "0"),
    ("waits", "deaf"),
];

/// One call of a lane.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Its request.
    pub(super) request: Request,
    /// Its id.
    pub(super) id: String,
    /// Whether its starts are counted by the witness.
    pub(super) is_witnessed: bool,
    /// Whether its tool ends by itself, and well.
    pub(super) is_ordinary: bool,
    /// Whether the client wants to wait for the end.
    waits: bool,
}

/// What a client heard of a call before the connection broke.
#[derive(Debug)]
pub(super) enum Heard {
    /// It was not sent: nobody listened any more.
    NotSent,
    /// Nothing.
    Nothing,
    /// It was not taken for want of a place.
    NoPlace,
    /// It was accepted, with a signed intent.
    Accepted(Box<RunningCall>),
    /// Its end.
    Ended(Box<Answer>),
}

impl Call {
    /// Any call, by chance.
    pub(super) fn any(dice: &mut Dice, witness: &mut Witness) -> Self {
        let id = format!("f{}", fresh_id());
        let waits = dice.below(2) == 0;
        let is_ordinary = dice.below(2) == 0;
        // A cell without mounts is another way through the launcher, and no witness can be in it.
        let is_witnessed = !is_ordinary || dice.below(4) != 0;
        let line = match is_ordinary {
            true => format!("echo nonce {id}; {}", dice.one_of(&ORDINARY)),
            false => {
                let (program, words) = dice.one_of(&HOSTILE);
                assert!(program_on_host(program).exists());
                format!("echo nonce {id}; exec /programs/{program} {words}")
            }
        };
        let request = if is_witnessed {
            witness.feed(&id);
            let (host, inside) = witness.mount();
            let request = Request::shell(&format!("{}; {line}", Witness::words(&id))).mount(&host, inside);
            request.mount(&programs_dir().to_string_lossy(), "/programs")
        } else {
            Request::shell(&line)
        };
        let request = request.id(&id).limits(if is_ordinary { json!({}) } else { narrow() });
        Self { request, id, is_witnessed, is_ordinary, waits }
    }

    /// Sends it on a connection of its own and hears what comes back.
    pub(super) fn submit(&self, socket: &Path) -> Heard {
        let headers: &[(&str, &str)] = match self.waits {
            true => &[("Content-Type", "application/json")],
            false => &[("Content-Type", "application/json"), ("Prefer", "respond-async")],
        };
        let Ok(mut connection) = Connection::open(socket) else { return Heard::NotSent };
        let asked = connection.ask("POST", "/v1/calls", headers, &self.request.bytes());
        let Ok(response) = asked else { return Heard::Nothing };
        match response.status() {
            200 => Heard::Ended(Box::new(response.answer())),
            202 => Heard::Accepted(Box::new(response.json())),
            // The daemon is still there and a part that it needs is not, or all places are taken.
            500 | 503 => Heard::NoPlace,
            status => panic!("{status}: {}", response.text()),
        }
    }
}

/// Small, so that a hostile one ends soon where nothing is killed, and does not slow the rest down.
fn narrow() -> Value {
    json!({ "wall_ms": 400, "pids": 24, "memory_bytes": 16 * MIB, "cpu_millis": 250, "output_limit_bytes": MIB })
}
