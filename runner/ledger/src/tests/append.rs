use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use toolcell_types::{CallId, CallState, ErrorCode};

use super::fake::{Bench, Waiting, answer_of, digest, intent, key, mode, outcome, send, send_intent, send_outcome};
use crate::{LedgerError, QUEUE_MAX, Reader, Record, location};

#[test]
fn a_new_ledger_begins_with_its_genesis_and_nobody_else_can_read_it() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    assert_eq!(ledger.public_pem(), "PEM");
    let entry = bench.reader().entry(0).unwrap().unwrap();
    assert!(entry.payload.starts_with(b"genesis"));
    assert_eq!((entry.keyid, entry.tenant), (ledger.keyid(), None));
    for file in ["ledger.db", "ledger.db-wal"] {
        let metadata = std::fs::metadata(bench.path().with_file_name(file)).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn an_intent_and_its_outcome_are_found_and_the_answer_comes_back_byte_for_byte() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    let reader = bench.reader();
    let submitted = intent(&ledger, "a", 1).unwrap();
    let open = reader.open_intents().unwrap();
    assert_eq!((open.len(), open[0].intent_index, open[0].state), (1, submitted.index, CallState::Submitting));
    let ended = outcome(&ledger, "a", CallState::Complete).unwrap();
    let attempt = reader.latest("tenant", "a").unwrap().unwrap();
    assert_eq!((attempt.state, attempt.outcome_index), (CallState::Complete, Some(ended.index)));
    assert_eq!(reader.answer(&key("a", 1)).unwrap(), ended.answer);
    assert_eq!(ended.answer.as_ref().unwrap(), &answer_of(&ended));
    assert!(reader.open_intents().unwrap().is_empty());
    assert!(attempt.is_same_request(&digest("other"), &digest("identity")));
    assert!(attempt.is_same_request(&digest("a"), &digest("other")));
    assert!(!attempt.is_same_request(&digest("other"), &digest("other")));
}

#[test]
fn listings_are_per_tenant_newest_first_and_entries_have_no_gaps() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    for name in ["a", "b", "c"] {
        intent(&ledger, name, 1).unwrap();
    }
    let reader = bench.reader();
    let names = |attempts: Vec<crate::Attempt>| attempts.into_iter().map(|a| a.key.key).collect::<Vec<_>>();
    assert_eq!(names(reader.newest(None, 2).unwrap()), ["c", "b"]);
    assert_eq!(names(reader.newest(Some("tenant"), 9).unwrap()), ["c", "b", "a"]);
    assert!(reader.newest(Some("other"), 9).unwrap().is_empty());
    assert!(reader.latest("other", "a").unwrap().is_none());
    assert_eq!(names(reader.named(&CallId::new("b").unwrap(), 9).unwrap()), ["b"]);
    let indexes = |after, limit| {
        reader.entries_after(after, limit).unwrap().into_iter().map(|entry| entry.index).collect::<Vec<_>>()
    };
    assert_eq!(indexes(None, 100), [0, 1, 2, 3]);
    assert_eq!(indexes(Some(1), 1), [2]);
    assert!(indexes(Some(3), 100).is_empty());
    assert!(indexes(Some(u64::MAX), 100).is_empty());
}

#[test]
fn a_call_has_one_live_attempt_and_a_new_one_only_after_a_failed_one() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    let conflicts = |result: Result<crate::Committed, LedgerError>| {
        assert!(matches!(&result, Err(error) if error.code() == Some(ErrorCode::OutcomeUnknown)), "{result:?}");
    };
    conflicts(intent(&ledger, "a", 2));
    conflicts(outcome(&ledger, "a", CallState::Complete));
    intent(&ledger, "a", 1).unwrap();
    conflicts(intent(&ledger, "a", 1));
    conflicts(intent(&ledger, "a", 2));
    conflicts(outcome(&ledger, "a", CallState::Submitting));
    outcome(&ledger, "a", CallState::Failed).unwrap();
    conflicts(outcome(&ledger, "a", CallState::Complete));
    conflicts(intent(&ledger, "a", 1));
    conflicts(intent(&ledger, "a", 3));
    intent(&ledger, "a", 2).unwrap();
    assert_eq!(bench.reader().latest("tenant", "a").unwrap().unwrap().key.attempt, 2);
    for (name, state) in [("b", CallState::Complete), ("c", CallState::Unknown)] {
        intent(&ledger, name, 1).unwrap();
        outcome(&ledger, name, state).unwrap();
        conflicts(intent(&ledger, name, 2));
    }
    assert!(ledger.stopped().is_none());
}

#[test]
fn of_two_intents_for_one_call_in_one_group_one_is_written() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.close(true);
    let first = send_intent(&ledger, &key("first", 1));
    bench.signer.await_writer();
    let both: Vec<Waiting> = (0..2).map(|_| send_intent(&ledger, &key("a", 1))).collect();
    bench.signer.close(false);
    first.recv().unwrap().unwrap();
    let written = both.into_iter().filter(|waiting| waiting.recv().unwrap().is_ok()).count();
    assert_eq!(written, 1);
}

#[test]
fn what_waits_is_signed_in_groups_and_in_order() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.close(true);
    let first = send_intent(&ledger, &key("first", 1));
    bench.signer.await_writer();
    let waiting: Vec<Waiting> = (0..200).map(|n| send_intent(&ledger, &key(&format!("c{n}"), 1))).collect();
    bench.signer.close(false);
    let indexes: Vec<u64> = waiting.iter().map(|waiting| waiting.recv().unwrap().unwrap().index).collect();
    assert_eq!(indexes, (2..=201).collect::<Vec<_>>());
    assert_eq!(first.recv().unwrap().unwrap().index, 1);
    assert_eq!(bench.signer.memory().groups, [1, 1, 64, 64, 64, 8]);
    drop(ledger);
    bench.open().unwrap();
}

#[test]
fn one_that_cannot_be_made_does_not_hold_up_the_others() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.close(true);
    let first = send_intent(&ledger, &key("first", 1));
    bench.signer.await_writer();
    let (words, long) = (Record::Genesis, vec![b'x'; 60_001]);
    let refused = [
        send(&ledger, words, Box::new(|_| Ok(Vec::new())), false),
        send(&ledger, record("bad"), Box::new(|_| Err("no".into())), false),
        send(&ledger, record("long"), Box::new(|_| Ok(long)), false),
    ];
    let last = send_intent(&ledger, &key("last", 1));
    bench.signer.close(false);
    assert_eq!(first.recv().unwrap().unwrap().index, 1);
    for waiting in refused {
        assert!(matches!(waiting.recv().unwrap(), Err(LedgerError::Callback { .. })));
    }
    assert_eq!(last.recv().unwrap().unwrap().index, 2);
}

fn record(name: &str) -> Record {
    let call_id = CallId::new(name).unwrap();
    let (tool, submitter) = ("python".to_owned(), "uid:0".to_owned());
    Record::Intent { key: key(name, 1), call_id, tool, request: digest(name), identity: None, submitter }
}

#[test]
fn a_full_queue_is_told_at_once() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    bench.signer.close(true);
    let waiting: Vec<Waiting> = (0..QUEUE_MAX + 100).map(|n| send_intent(&ledger, &key(&format!("c{n}"), 1))).collect();
    bench.signer.close(false);
    let results: Vec<_> = waiting.iter().map(|waiting| waiting.recv().unwrap()).collect();
    let busy = results.iter().filter(|result| matches!(result, Err(LedgerError::Busy { .. }))).count();
    assert!((1..=100).contains(&busy), "{busy}");
    assert!(results.iter().filter(|result| result.is_ok()).count() >= QUEUE_MAX);
}

#[test]
fn a_file_that_others_can_read_or_that_is_a_link_is_refused() {
    let mut bench = Bench::new();
    drop(bench.open().unwrap());
    for bad in [0o640, 0o604, 0o660, 0o400] {
        mode(&bench.path(), bad);
        assert!(matches!(bench.open(), Err(LedgerError::FileMode { .. })), "{bad:o}");
    }
    mode(&bench.path(), 0o600);
    drop(bench.open().unwrap());
    let moved = bench.path().with_extension("moved");
    std::fs::rename(bench.path(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, bench.path()).unwrap();
    assert!(matches!(bench.open(), Err(LedgerError::FileMode { .. })));
}

#[test]
fn a_file_system_that_is_not_known_to_be_local_is_refused() {
    let error = location::check_file_system(Path::new("/proc")).unwrap_err();
    assert!(error.to_string().contains("0x9fa0"), "{error}");
    assert!(location::check_file_system(Path::new("/dev/shm")).is_ok());
}

#[test]
fn an_intent_is_refused_when_little_space_is_left() {
    let directory = tempfile::tempdir().unwrap();
    assert!(location::check_space(directory.path(), 1).is_ok());
    let error = location::check_space(directory.path(), u64::MAX).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::QueueFull));
}

#[test]
fn a_reader_cannot_write_and_finds_no_ledger_where_there_is_none() {
    let mut bench = Bench::new();
    assert!(matches!(Reader::open(&bench.path()), Err(LedgerError::Database { .. })));
    drop(bench.open().unwrap());
    let connection = crate::store::connect_reader(&bench.path()).unwrap();
    assert!(connection.execute("DELETE FROM answer", []).is_err());
}

#[test]
fn answers_and_outcomes_of_other_attempts_are_kept_apart() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    intent(&ledger, "a", 1).unwrap();
    let failed = outcome(&ledger, "a", CallState::Failed).unwrap();
    intent(&ledger, "a", 2).unwrap();
    let complete = send_outcome(&ledger, &key("a", 2), CallState::Complete).recv().unwrap().unwrap();
    let reader = bench.reader();
    assert_eq!(reader.answer(&key("a", 1)).unwrap(), failed.answer);
    assert_eq!(reader.answer(&key("a", 2)).unwrap(), complete.answer);
    assert_eq!(reader.answer(&key("a", 3)).unwrap(), None);
}
