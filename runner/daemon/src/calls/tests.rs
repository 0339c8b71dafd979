use toolcell_types::Limits;

use super::*;
use crate::output::{RESERVATION, StreamName};

fn key(id: &str) -> CallKey {
    CallKey { tenant: "uid:1".to_owned(), call_id: CallId::new(id).unwrap() }
}

/// For an operator.
fn claim(calls: &Arc<Calls>, id: &str) -> Result<Place, NoPlace> {
    claim_for(calls, (key(id), true))
}

fn claim_for(calls: &Arc<Calls>, whose: (CallKey, bool)) -> Result<Place, NoPlace> {
    calls.claim(whose, (Sha256([1; 32]), Sha256([2; 32])), Output::new(&Limits::default()))
}

#[tokio::test]
async fn of_many_submissions_at_once_one_gets_the_place() {
    let calls = Arc::new(Calls::default());
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let calls = Arc::clone(&calls);
            tokio::task::spawn_blocking(move || claim(&calls, "a"))
        })
        .collect();
    let mut places = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(place) => places.push(place),
            Err(NoPlace::Live(live)) => assert_eq!(live.key, key("a")),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(places.len(), 1);
    drop(places);
    assert!(claim(&calls, "a").is_ok());
}

#[test]
fn an_end_for_want_of_calls_is_refused_while_one_is_live_and_lets_none_in_afterwards() {
    let calls = Arc::new(Calls::default());
    let place = claim(&calls, "a").unwrap();
    assert_eq!(calls.end_if_idle(), Err(1));
    drop(place);
    let place = claim(&calls, "b");
    assert!(place.is_ok() && !calls.stop().is_cancelled());
    drop(place);
    assert_eq!(calls.end_if_idle(), Ok(()));
    assert!(calls.stop().is_cancelled());
    assert!(matches!(claim(&calls, "c"), Err(NoPlace::Ending)));
}

#[test]
fn there_are_only_so_many_places_and_the_next_is_given_back() {
    let calls = Arc::new(Calls::default());
    let mut places: Vec<_> = (0..LIVE_MAX).map(|n| claim(&calls, &n.to_string()).unwrap()).collect();
    assert!(matches!(claim(&calls, "more"), Err(NoPlace::Full)));
    places.pop();
    assert!(claim(&calls, "more").is_ok());
}

#[tokio::test]
async fn an_ending_daemon_gives_no_place_and_waits_for_those_taken() {
    let calls = Arc::new(Calls::default());
    let place = claim(&calls, "a").unwrap();
    calls.end();
    assert!(matches!(claim(&calls, "b"), Err(NoPlace::Ending)));
    calls.cancel_all();
    place.live().cancelled().await;
    let waiting = tokio::spawn({
        let calls = Arc::clone(&calls);
        async move { calls.none_live().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(place);
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn output_outlives_its_call_for_a_follower_that_was_announced() {
    let calls = Arc::new(Calls::default());
    let place = claim(&calls, "a").unwrap();
    place.live().output().reserve();
    drop(place);
    assert!(calls.live(&key("a")).is_none());
    assert!(calls.output(&key("a")).unwrap().follow(StreamName::Stdout).is_some());
    tokio::time::sleep(RESERVATION * 2).await;
    assert!(calls.output(&key("a")).is_none());
}

fn of_tenant(tenant: usize, id: usize) -> CallKey {
    CallKey { tenant: format!("uid:{tenant}"), call_id: CallId::new(&format!("c{id}")).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn one_tenant_cannot_take_every_place_and_a_follower_that_is_awaited_counts() {
    let calls = Arc::new(Calls::default());
    let mut places: Vec<_> = (0..OWN_MAX).map(|n| claim_for(&calls, (of_tenant(1, n), false)).unwrap()).collect();
    assert!(matches!(claim_for(&calls, (of_tenant(1, 99), false)), Err(NoPlace::OwnFull)));
    assert!(claim_for(&calls, (of_tenant(2, 0), false)).is_ok());
    places[0].live().output().reserve();
    drop(places.remove(0));
    assert!(matches!(claim_for(&calls, (of_tenant(1, 99), false)), Err(NoPlace::OwnFull)));
    tokio::time::sleep(RESERVATION * 2).await;
    assert!(claim_for(&calls, (of_tenant(1, 99), false)).is_ok());
}

#[test]
fn all_tenants_together_leave_places_to_operators() {
    let calls = Arc::new(Calls::default());
    let others = LIVE_MAX - FOR_OPERATORS;
    let _places: Vec<_> = (0..others).map(|n| claim_for(&calls, (of_tenant(n / OWN_MAX, n), false)).unwrap()).collect();
    assert!(matches!(claim_for(&calls, (of_tenant(99, 0), false)), Err(NoPlace::Full)));
    let _operators: Vec<_> = (0..FOR_OPERATORS).map(|n| claim(&calls, &n.to_string()).unwrap()).collect();
    assert!(matches!(claim(&calls, "more"), Err(NoPlace::Full)));
}
