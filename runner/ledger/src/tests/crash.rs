use toolcell_types::{CallState, ErrorCode};

use super::fake::{Bench, answer_of, intent, key, outcome, send_intent};
use crate::{LedgerError, SignError};

#[test]
fn what_was_answered_is_there_after_a_crash() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    for n in 0..20 {
        let name = format!("c{n}");
        let submitted = intent(&ledger, &name, 1).unwrap();
        let mut crashed = bench.crashed();
        let reopened = crashed.open().unwrap();
        assert_eq!(crashed.reader().open_intents().unwrap()[0].intent_index, submitted.index);
        drop(reopened);
        let ended = outcome(&ledger, &name, CallState::Complete).unwrap();
        let mut crashed = bench.crashed();
        drop(crashed.open().unwrap());
        assert_eq!(crashed.reader().answer(&key(&name, 1)).unwrap(), ended.answer);
    }
}

#[test]
fn an_intent_that_was_signed_and_not_committed_is_appended_at_the_next_start() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.memory().loses_answer = true;
    let error = intent(&ledger, "a", 1).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::LedgerInvalid));
    assert!(bench.reader().latest("tenant", "a").unwrap().is_none());
    bench.signer.memory().loses_answer = false;
    let later = intent(&ledger, "b", 1).unwrap_err();
    let LedgerError::Stopped { cause: Some(cause) } = later else { panic!("{later:?}") };
    assert!(matches!(*cause, LedgerError::Signer { source: SignError::Unreachable { .. } }));
    assert!(ledger.stopped().is_some());
    drop(ledger);
    let ledger = bench.open().unwrap();
    let attempt = &bench.reader().open_intents().unwrap()[0];
    assert_eq!((attempt.key.clone(), attempt.intent_index, attempt.identity), (key("a", 1), 1, None));
    assert!(outcome(&ledger, "a", CallState::Failed).is_ok());
}

#[test]
fn an_outcome_that_was_signed_and_not_committed_is_appended_with_its_answer() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    intent(&ledger, "a", 1).unwrap();
    bench.signer.memory().loses_answer = true;
    assert!(outcome(&ledger, "a", CallState::Complete).is_err());
    bench.signer.memory().loses_answer = false;
    drop(ledger);
    let ledger = bench.open().unwrap();
    let reader = bench.reader();
    let entry = reader.entry(2).unwrap().unwrap();
    assert!(entry.payload.starts_with(b"outcome"));
    assert_eq!(reader.latest("tenant", "a").unwrap().unwrap().state, CallState::Complete);
    assert!(reader.answer(&key("a", 1)).unwrap().unwrap().starts_with(b"answer to outcome"));
    assert!(intent(&ledger, "b", 1).is_ok());
}

#[test]
fn a_whole_group_that_was_signed_and_not_committed_is_appended() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.close(true);
    let first = send_intent(&ledger, &key("first", 1));
    bench.signer.await_writer();
    let group: Vec<_> = (0..30).map(|n| send_intent(&ledger, &key(&format!("c{n}"), 1))).collect();
    // Group 1 is the genesis, group 2 the first intent.
    bench.signer.memory().loses_group = 3;
    bench.signer.close(false);
    first.recv().unwrap().unwrap();
    for waiting in group {
        assert!(matches!(waiting.recv().unwrap(), Err(LedgerError::Stopped { .. })));
    }
    assert_eq!(bench.signer.memory().groups, [1, 1, 30]);
    assert_eq!(bench.reader().open_intents().unwrap().len(), 1);
    drop(ledger);
    let ledger = bench.open().unwrap();
    assert_eq!(bench.reader().open_intents().unwrap().len(), 31);
    assert_eq!(intent(&ledger, "next", 1).unwrap().index, 32);
}

#[test]
fn a_first_entry_that_was_signed_and_not_committed_is_appended() {
    let mut bench = Bench::new();
    bench.signer.memory().loses_answer = true;
    assert!(matches!(bench.open(), Err(LedgerError::Signer { .. })));
    bench.signer.memory().loses_answer = false;
    let ledger = bench.open().unwrap();
    assert!(intent(&ledger, "a", 1).is_ok());
    assert_eq!(bench.reader().entries_after(None, 9).unwrap().len(), 2);
}

#[test]
fn a_refusing_signer_stops_the_ledger_and_nothing_is_written() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.memory().refuses = true;
    assert!(matches!(intent(&ledger, "a", 1), Err(LedgerError::Stopped { cause: Some(_) })));
    assert_eq!(bench.reader().entries_after(None, 9).unwrap().len(), 1);
    bench.signer.memory().refuses = false;
    assert!(intent(&ledger, "a", 1).is_err());
    drop(ledger);
    assert!(intent(&bench.open().unwrap(), "a", 1).is_ok());
}

/// Makes one write fail; undone by the second text.
const FAULTS: [(&str, &str); 5] = [
    ("CREATE TRIGGER fault BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT,'fault'); END;", "DROP TRIGGER fault;"),
    ("CREATE TRIGGER fault AFTER INSERT ON entry BEGIN SELECT RAISE(ROLLBACK,'fault'); END;", "DROP TRIGGER fault;"),
    ("CREATE TRIGGER fault BEFORE UPDATE ON attempt BEGIN SELECT RAISE(ABORT,'fault'); END;", "DROP TRIGGER fault;"),
    ("CREATE TRIGGER fault BEFORE INSERT ON answer BEGIN SELECT RAISE(ABORT,'fault'); END;", "DROP TRIGGER fault;"),
    // Breaks a deferred rule, so that only COMMIT itself fails.
    (
        "CREATE TABLE broken(x INTEGER REFERENCES entry(idx) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER fault AFTER INSERT ON entry BEGIN INSERT INTO broken VALUES(-1); END;",
        "DROP TRIGGER fault; DROP TABLE broken;",
    ),
];

#[test]
fn a_failed_write_or_commit_is_final_and_the_next_start_mends_it() {
    for (fault, undo) in FAULTS {
        let mut bench = Bench::new();
        let ledger = bench.open().unwrap();
        intent(&ledger, "a", 1).unwrap();
        let hand = rusqlite::Connection::open(bench.path()).unwrap();
        hand.execute_batch(fault).unwrap();
        let error = outcome(&ledger, "a", CallState::Complete).unwrap_err();
        assert!(matches!(&error, LedgerError::Stopped { cause: Some(_) }), "{fault}: {error:?}");
        hand.execute_batch(undo).unwrap();
        drop(hand);
        // Mended meanwhile, and still final.
        assert!(intent(&ledger, "b", 1).is_err());
        assert!(!bench.reader().open_intents().unwrap().is_empty());
        drop(ledger);
        let ledger = bench.open().unwrap();
        let reader = bench.reader();
        assert!(reader.answer(&key("a", 1)).unwrap().is_some(), "{fault}");
        assert_eq!(reader.latest("tenant", "a").unwrap().unwrap().outcome_index, Some(2));
        assert!(intent(&ledger, "b", 1).is_ok());
    }
}

#[test]
fn a_missing_answer_is_made_again_byte_for_byte() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    intent(&ledger, "a", 1).unwrap();
    let ended = outcome(&ledger, "a", CallState::Complete).unwrap();
    drop(ledger);
    bench.tamper("DELETE FROM answer;");
    drop(bench.open().unwrap());
    assert_eq!(bench.reader().answer(&key("a", 1)).unwrap().unwrap(), answer_of(&ended));
}

#[test]
fn an_answer_that_cannot_be_made_again_concerns_its_call_only() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    intent(&ledger, "a", 1).unwrap();
    outcome(&ledger, "a", CallState::Complete).unwrap();
    drop(ledger);
    bench.tamper("DELETE FROM answer;");
    bench.lines.loses_blobs = true;
    let ledger = bench.open().unwrap();
    assert_eq!(bench.reader().answer(&key("a", 1)).unwrap(), None);
    assert!(intent(&ledger, "b", 1).is_ok());
    drop(ledger);
    bench.lines.loses_blobs = false;
    drop(bench.open().unwrap());
    assert!(bench.reader().answer(&key("a", 1)).unwrap().is_some());
}
