//! What is served of a ledger that somebody edits while it is open.

use super::*;

fn edit(world: &World, sql: &str) {
    let connection = rusqlite::Connection::open(world.folder.path().join("ledger.db")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys=0").unwrap();
    assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
}

fn lose_blobs(world: &World) {
    for blob in std::fs::read_dir(world.folder.path().join("blobs")).unwrap() {
        std::fs::remove_file(blob.unwrap().path()).unwrap();
    }
}

#[tokio::test]
async fn an_edited_answer_is_never_served() {
    let world = World::new();
    let first = world.submit(CALLER, "a", "print:42").await.body;
    edit(&world, "UPDATE answer SET body=CAST(replace(CAST(body AS TEXT),'\"42\"','\"43\"') AS BLOB)");
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.body, first);
    assert_eq!(world.submit(CALLER, "a", "print:42").await.body, first);
    // Without the kept output there is nothing left that could be believed.
    lose_blobs(&world);
    for reply in [world.get(CALLER, "/v1/calls/a").await, world.submit(CALLER, "a", "print:42").await] {
        assert_eq!((reply.status, reply.code().as_str()), (500, "LEDGER_INVALID"));
    }
    assert_eq!(world.launches(), 1);
}

#[tokio::test]
async fn an_answer_whose_kept_output_is_lost_is_served_from_its_row_if_that_is_right() {
    let world = World::new();
    let first = world.submit(CALLER, "a", "print:42").await.body;
    lose_blobs(&world);
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.body, first);
    assert_eq!(world.submit(CALLER, "a", "print:42").await.body, first);
}

#[tokio::test]
async fn an_attempt_that_points_to_the_outcome_of_another_call_is_told() {
    let world = World::new();
    world.submit(CALLER, "a", "print:secret").await.answer();
    world.submit(CALLER, "b", "print:x").await.answer();
    edit(&world, "DELETE FROM answer WHERE key='a'");
    edit(&world, "DELETE FROM attempt WHERE key='a'");
    edit(&world, "UPDATE attempt SET outcome_idx=2 WHERE key='b'");
    for path in ["/v1/calls/b", "/v1/calls/b/stdout"] {
        let reply = world.get(CALLER, path).await;
        assert_eq!((reply.status, reply.code().as_str()), (500, "LEDGER_INVALID"), "{path}");
    }
}

#[tokio::test]
async fn a_renamed_call_does_not_run_again_after_the_next_start() {
    let world = World::new();
    world.submit(CALLER, "a", "print:x").await.answer();
    edit(&world, "UPDATE attempt SET key='z', call_id='z' WHERE key='a'");
    let (daemon, seen) = cardboard::daemon(world.folder.path(), world.signer.clone());
    let next = World { daemon: Arc::new(daemon), seen, signer: world.signer.clone(), folder: cardboard::folder() };
    let reply = next.submit(CALLER, "a", "print:x").await;
    assert_eq!((reply.status, reply.code().as_str()), (500, "LEDGER_INVALID"));
    assert_eq!(next.launches(), 0);
}
