//! What a daemon makes of the state that another one left.

use super::*;

#[tokio::test]
async fn a_call_of_an_earlier_life_is_settled_as_lost() {
    for (leftovers_gone, state, effect) in
        [(true, CallState::Failed, Effect::None), (false, CallState::Unknown, Effect::Unknown)]
    {
        let world = World::new();
        assert_eq!(world.submit_async("a", "hang", "respond-async").await.status, 202);
        while world.launches() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The second daemon opens what the first one left; the first one writes nothing any more.
        let (daemon, seen) = cardboard::daemon(world.folder.path(), world.signer.clone());
        crate::recovery::settle(&daemon, leftovers_gone).await.unwrap();
        let next = World { daemon: Arc::new(daemon), seen, signer: PaperSigner::new(), folder: cardboard::folder() };
        let answer = next.get(CALLER, "/v1/calls/a").await.answer();
        assert_eq!((answer.verdict, answer.state, answer.effect), (Verdict::Lost, state, effect));
        let again = next.submit(CALLER, "a", "hang").await.code();
        assert_eq!(again, if leftovers_gone { "BUDGET_EXHAUSTED" } else { "OUTCOME_UNKNOWN" });
        assert_eq!(next.launches(), 0);
    }
}

#[tokio::test]
async fn an_outcome_that_was_signed_and_not_committed_is_there_after_the_next_start() {
    let world = World::new();
    assert_eq!(world.submit_async("a", "hang", "respond-async").await.status, 202);
    // The ledger as it is now; the signer goes on.
    let folder = cardboard::folder();
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(world.folder.path().join(name), folder.path().join(name)).unwrap();
    }
    world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await;
    world.answer("a").await;
    let answer = world.get(CALLER, "/v1/calls/a").await.body;
    let (daemon, seen) = cardboard::daemon(folder.path(), world.signer.clone());
    crate::recovery::settle(&daemon, true).await.unwrap();
    let next = World { daemon: Arc::new(daemon), seen, signer: world.signer.clone(), folder };
    assert_eq!(next.get(CALLER, "/v1/calls/a").await.body, answer, "made again, byte for byte");
    assert_eq!(next.entries(), 3);
}

#[tokio::test]
async fn an_invalid_ledger_leaves_receipts_keys_and_health_and_nothing_else() {
    let world = World::new();
    world.submit(CALLER, "a", "print:x").await.answer();
    let forgetful = PaperSigner::new();
    let (daemon, seen) = cardboard::daemon(world.folder.path(), forgetful.clone());
    let next = World { daemon: Arc::new(daemon), seen, signer: forgetful, folder: cardboard::folder() };
    for reply in [
        next.submit(CALLER, "b", "print:x").await,
        next.submit(CALLER, "a", "print:x").await,
        next.get(CALLER, "/v1/calls/a").await,
        next.get(CALLER, "/v1/calls").await,
        next.get(CALLER, "/v1/calls/a/stdout").await,
        next.get(CALLER, "/v1/tools").await,
        next.post(CALLER, "/v1/calls/a/cancel", &json!({})).await,
    ] {
        assert_eq!((reply.status, reply.code().as_str()), (500, "LEDGER_INVALID"));
    }
    assert_eq!(next.get(OPERATOR, "/healthz").await.json()["status"], "ledger_invalid");
    assert_eq!(next.get(OPERATOR, "/v1/receipts").await.json()["receipts"].as_array().unwrap().len(), 3);
    assert_eq!(next.get(OPERATOR, "/v1/keys").await.status, 200);
    assert_eq!(next.launches(), 0);
}
