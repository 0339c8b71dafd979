use toolcell_types::{CallId, CallState, ErrorCode, Sha256};

use super::fake::{Bench, Signer, intent, key, outcome};
use crate::chain;

/// Genesis, then an intent and an outcome each of `a`, `b` and `c`: indexes 0 to 6, one group each.
fn filled() -> Bench {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    for name in ["a", "b", "c"] {
        intent(&ledger, name, 1).unwrap();
        outcome(&ledger, name, CallState::Complete).unwrap();
    }
    drop(ledger);
    bench
}

const DROP_LAST: &str = "DELETE FROM answer WHERE key='c'; DELETE FROM entry WHERE idx=6;
    UPDATE attempt SET state='submitting', outcome_idx=NULL WHERE key='c';";

#[test]
fn a_tail_cut_off_within_the_last_group_comes_back_from_the_signer() {
    let mut bench = filled();
    let kept = bench.reader().entry(6).unwrap().unwrap();
    bench.tamper(DROP_LAST);
    drop(bench.open().unwrap());
    let reader = bench.reader();
    assert_eq!(reader.entry(6).unwrap().unwrap(), kept);
    assert!(reader.answer(&key("c", 1)).unwrap().is_some());
}

#[test]
fn a_tail_cut_off_further_is_told_with_the_first_missing_index() {
    let mut bench = filled();
    bench.tamper(DROP_LAST);
    bench.tamper("DELETE FROM attempt WHERE key='c'; DELETE FROM entry WHERE idx=5;");
    assert_eq!(bench.index_of(), 5);
}

#[test]
fn a_deleted_ledger_is_told() {
    let mut bench = filled();
    std::fs::remove_file(bench.path()).unwrap();
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn an_edited_entry_is_told_with_its_index() {
    for index in 0..=6 {
        let mut bench = filled();
        bench.tamper(&format!("UPDATE entry SET payload=CAST(payload||' ' AS BLOB) WHERE idx={index};"));
        assert_eq!(bench.index_of(), index);
    }
}

#[test]
fn a_last_entry_edited_together_with_its_leaf_is_unlike_the_signer_s_memory() {
    let mut bench = filled();
    let payload = [bench.reader().entry(6).unwrap().unwrap().payload.as_slice(), b" "].concat();
    let leaf = chain::leaf(&payload).hex();
    bench.tamper(&format!("UPDATE entry SET payload=CAST(payload||' ' AS BLOB), leaf=x'{leaf}' WHERE idx=6;"));
    assert_eq!(bench.index_of(), 6);
}

#[test]
fn an_entry_removed_or_moved_is_told_with_the_first_bad_index() {
    let mut bench = filled();
    bench.tamper("DELETE FROM entry WHERE idx=3;");
    assert_eq!(bench.index_of(), 3);
    let mut bench = filled();
    bench.tamper("UPDATE entry SET idx=100 WHERE idx=3; UPDATE entry SET idx=3 WHERE idx=4; UPDATE entry SET idx=4 WHERE idx=100;");
    assert_eq!(bench.index_of(), 3);
    let mut bench = filled();
    let zero = Sha256([0; 32]).hex();
    bench.tamper(&format!("UPDATE entry SET prev=x'{zero}' WHERE idx=2;"));
    assert_eq!(bench.index_of(), 2);
}

#[test]
fn a_ledger_ahead_of_the_signer_is_told_with_the_index_after_what_was_signed() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    intent(&ledger, "a", 1).unwrap();
    let before = bench.signer.copy();
    outcome(&ledger, "a", CallState::Complete).unwrap();
    drop(ledger);
    bench.signer = before;
    assert_eq!(bench.index_of(), 2);
}

#[test]
fn a_ledger_that_went_another_way_than_the_signer_is_told() {
    let mut bench = filled();
    let mut other = Bench::new();
    let ledger = other.open().unwrap();
    for name in ["a", "b", "x"] {
        intent(&ledger, name, 1).unwrap();
        outcome(&ledger, name, CallState::Complete).unwrap();
    }
    bench.signer = other.signer.copy();
    assert_eq!(bench.index_of(), 6);
    let ledger_of_other_length = Signer::new();
    bench.signer = ledger_of_other_length;
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn a_ledger_of_another_key_is_told() {
    let mut bench = filled();
    bench.signer.memory().status.keyid = Sha256([6; 32]).hex();
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn derived_rows_that_do_not_follow_from_the_entries_are_told() {
    let cases = [
        ("UPDATE attempt SET state='failed' WHERE key='b';", 4),
        ("UPDATE attempt SET state='submitting', outcome_idx=NULL WHERE key='b';", 4),
        ("DELETE FROM answer WHERE key='b'; DELETE FROM attempt WHERE key='b';", 3),
        ("UPDATE attempt SET outcome_idx=1 WHERE key='b';", 4),
        ("UPDATE attempt SET attempt=2 WHERE key='b';", 3),
    ];
    for (sql, index) in cases {
        let mut bench = filled();
        bench.tamper(sql);
        assert_eq!(bench.index_of(), index, "{sql}");
    }
}

#[test]
fn every_column_that_follows_from_a_payload_is_compared_with_it() {
    let zero = Sha256([0; 32]).hex();
    let entries = [
        ("predicate", "'x'"),
        ("event", "'fail'"),
        ("tenant", "'other'"),
        ("key", "'z'"),
        ("attempt", "2"),
        ("state", "'failed'"),
        ("actor", "'uid:1'"),
        ("role", "'caller'"),
        ("wall_us", "1"),
        ("boot_id", "'x'"),
        ("sig", &format!("x'{zero}{zero}'")),
        ("sig", "x'00'"),
        ("keyid", &format!("x'{zero}'")),
        ("payload", "x''"),
    ];
    for (column, value) in entries {
        let mut bench = filled();
        bench.tamper(&format!("UPDATE entry SET {column}={value} WHERE idx=4"));
        assert_eq!(bench.index_of(), 4, "{column}");
    }
    let attempts = [
        ("tenant", "'other'", 3),
        ("key", "'z'", 3),
        ("call_id", "'z'", 3),
        ("tool", "'exec'", 3),
        ("request", &format!("x'{zero}'"), 3),
        ("submitter", "'uid:1'", 3),
        ("submitted_us", "1", 3),
        ("intent_idx", "-3", 3),
        ("outcome_idx", "-3", 3),
    ];
    for (column, value, index) in attempts {
        let mut bench = filled();
        bench.tamper(&format!("UPDATE attempt SET {column}={value} WHERE key='b'"));
        assert_eq!(bench.index_of(), index, "{column}");
    }
}

#[test]
fn a_key_that_is_renamed_in_every_table_is_told_and_does_not_run_again() {
    let mut bench = filled();
    let tables = ["entry", "attempt", "answer"];
    let renames: String = tables.iter().map(|table| format!("UPDATE {table} SET key='z' WHERE key='b';")).collect();
    bench.tamper(&renames);
    assert_eq!(bench.index_of(), 3);
}

#[test]
fn rows_that_no_entry_accounts_for_are_told() {
    let copy = "INSERT INTO attempt SELECT 'other',key,attempt,call_id,tool,request,identity,state,submitter,\
        submitted_us,-1,-1 FROM attempt WHERE key='b'";
    let answer = "INSERT INTO answer VALUES('other','b',1,x'00')";
    for (sql, index) in [(copy, 0), (answer, 7)] {
        let mut bench = filled();
        bench.tamper(sql);
        assert_eq!(bench.index_of(), index, "{sql}");
    }
}

#[test]
fn an_index_that_hides_a_row_is_told() {
    let mut bench = filled();
    // Made anew without the row, under a definition that is then put back.
    let redefine = |tail: &str| {
        format!(
            "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql='CREATE INDEX attempt_call ON attempt(call_id){tail}' \
             WHERE name='attempt_call'; PRAGMA writable_schema=RESET;"
        )
    };
    bench.tamper(&format!("{}REINDEX attempt_call;{}", redefine(" WHERE call_id<>''b''"), redefine("")));
    assert!(bench.reader().named(&CallId::new("b").unwrap(), 1).unwrap().is_empty());
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn views_triggers_tables_and_other_definitions_are_told() {
    for sql in [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t(x)",
        "CREATE INDEX i ON attempt(tool)",
        "CREATE TRIGGER t AFTER INSERT ON attempt BEGIN DELETE FROM attempt; END",
        "DROP INDEX attempt_open",
        "ALTER TABLE answer RENAME TO old; CREATE VIEW answer AS SELECT * FROM old",
        "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql=replace(sql,'submitting','waiting') WHERE name='attempt'",
    ] {
        let mut bench = filled();
        bench.tamper(sql);
        assert_eq!(bench.index_of(), 0, "{sql}");
    }
    let mut bench = filled();
    rusqlite::Connection::open(bench.path()).unwrap().execute_batch("DROP TRIGGER entry_no_update").unwrap();
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn the_identity_stands_in_no_payload_and_an_edited_one_still_starts_nothing() {
    let mut bench = filled();
    let zero = Sha256([0; 32]).hex();
    bench.tamper(&format!("UPDATE attempt SET identity=x'{zero}' WHERE key='b'"));
    let ledger = bench.open().unwrap();
    assert!(intent(&ledger, "b", 1).is_err());
}

#[test]
fn a_long_log_is_checked_in_parts_and_says_how_far_it_is() {
    let mut bench = Bench::new();
    let ledger = bench.open().unwrap();
    for n in 0..150 {
        intent(&ledger, &format!("c{n}"), 1).unwrap();
        outcome(&ledger, &format!("c{n}"), CallState::Complete).unwrap();
    }
    drop(ledger);
    bench.progress.clear();
    drop(bench.open().unwrap());
    assert_eq!(bench.progress, [(128, 301), (256, 301), (301, 301)]);
    for index in [127, 128, 300] {
        bench.tamper(&format!("UPDATE entry SET wall_us=wall_us+1 WHERE idx={index}"));
        assert_eq!(bench.index_of(), index);
        bench.tamper(&format!("UPDATE entry SET wall_us=wall_us-1 WHERE idx={index}"));
    }
    drop(bench.open().unwrap());
}

#[test]
fn an_invalid_ledger_can_still_be_read_and_its_error_says_what_to_do() {
    let mut bench = filled();
    bench.tamper("UPDATE entry SET payload=x'00' WHERE idx=3;");
    let error = bench.open().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::LedgerInvalid));
    assert!(error.to_string().starts_with("the ledger is invalid from entry 3 on: expected leaf sha256:"), "{error}");
    assert!(!error.remedy().is_empty());
    assert_eq!(bench.reader().entries_after(None, 100).unwrap().len(), 7);
}

#[test]
fn a_ledger_of_another_schema_is_refused() {
    let mut bench = filled();
    bench.tamper("PRAGMA user_version=1;");
    assert_eq!(bench.index_of(), 0);
}

#[test]
fn the_triggers_keep_entries_from_being_changed_by_accident() {
    let bench = filled();
    let connection = rusqlite::Connection::open(bench.path()).unwrap();
    for sql in ["UPDATE entry SET actor='x'", "DELETE FROM entry WHERE idx=6"] {
        let error = connection.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}
