//! The calls that are not over, and the places at which they run.
//!
//! Guarantees: of any number of submissions of one call at once, one gets the place and the others hear so; at most
//! [`LIVE_MAX`] calls are live, at most [`OWN_MAX`] of one tenant who is no operator, and some places are left to
//! operators whatever the others do; a place is given back however its task ends, a panic included. Does not: survive
//! a restart, the ledger does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, SetOnce};
use tokio_util::sync::CancellationToken;
use toolcell_types::{CallId, RunningCall, Sha256};

use crate::output::Output;

/// Most live calls: each has a cell, two pipes and two buffers.
pub(crate) const LIVE_MAX: usize = 64;

/// Most live calls of one tenant, so that none can take every place. Four of them, with some left over, keep a machine
/// of 64 places busy.
pub(crate) const OWN_MAX: usize = 16;
/// Places that only operators get: to look at, or to clear up, a machine that others keep busy.
pub(crate) const FOR_OPERATORS: usize = 8;

/// Names a call among those of everybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    /// Whose call it is.
    pub(crate) tenant: String,
    /// The controller's name for it.
    pub(crate) call_id: CallId,
}

/// A call that is not over.
#[derive(Debug)]
pub(crate) struct LiveCall {
    key: CallKey,
    request: Sha256,
    identity: Sha256,
    output: Arc<Output>,
    cancel: CancellationToken,
    running: SetOnce<RunningCall>,
    over: CancellationToken,
}

impl LiveCall {
    /// Whether a request with these digests is this call's request.
    pub(crate) fn is_same_request(&self, request: &Sha256, identity: &Sha256) -> bool {
        self.request == *request || self.identity == *identity
    }

    /// What comes from it.
    pub(crate) fn output(&self) -> &Arc<Output> {
        &self.output
    }

    /// Asks it to end. Its verdict says what came first.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until somebody asked it to end.
    pub(crate) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether somebody asked it to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// What is told of it, once its intent is signed; none if it was refused instead.
    pub(crate) async fn running(&self) -> Option<&RunningCall> {
        tokio::select! {
            biased;
            running = self.running.wait() => Some(running),
            () = self.over.cancelled() => None,
        }
    }

    /// The intent is signed.
    pub(crate) fn set_running(&self, running: RunningCall) {
        if self.running.set(running).is_err() {
            tracing::error!("a call had a second intent; the first one stays");
        }
    }
}

/// Why there is no place.
#[derive(Debug)]
pub(crate) enum NoPlace {
    /// The call is live already.
    Live(Arc<LiveCall>),
    /// Too many others are.
    Full,
    /// Too many of this tenant's are.
    OwnFull,
    /// The daemon is ending.
    Ending,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
    fewer: Notify,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    live: HashMap<CallKey, Arc<LiveCall>>,
    /// Output of calls that are over, as long as a follower that was announced has not come for it.
    awaited: HashMap<CallKey, Arc<Output>>,
    is_ending: bool,
}

impl Calls {
    /// Takes a place for a call.
    ///
    /// # Errors
    /// [`NoPlace`] says why not; nothing has changed.
    pub(crate) fn claim(
        self: &Arc<Self>,
        (key, is_operator): (CallKey, bool),
        (request, identity): (Sha256, Sha256),
        output: Arc<Output>,
    ) -> Result<Place, NoPlace> {
        let mut state = self.lock();
        if let Some(live) = state.live.get(&key) {
            return Err(NoPlace::Live(Arc::clone(live)));
        }
        if state.is_ending {
            return Err(NoPlace::Ending);
        }
        let names = || state.live.keys().chain(state.awaited.keys());
        let most = if is_operator { LIVE_MAX } else { LIVE_MAX - FOR_OPERATORS };
        if !is_operator && names().filter(|other| other.tenant == key.tenant).count() >= OWN_MAX {
            return Err(NoPlace::OwnFull);
        }
        if names().count() >= most {
            return Err(NoPlace::Full);
        }
        let live = Arc::new(LiveCall {
            key: key.clone(),
            request,
            identity,
            output,
            cancel: CancellationToken::new(),
            running: SetOnce::new(),
            over: CancellationToken::new(),
        });
        state.live.insert(key, Arc::clone(&live));
        drop(state);
        Ok(Place { calls: Arc::clone(self), live })
    }

    /// The live call of that name.
    pub(crate) fn live(&self, key: &CallKey) -> Option<Arc<LiveCall>> {
        self.lock().live.get(key).cloned()
    }

    /// Live calls of that name, of whatever tenant.
    pub(crate) fn live_named(&self, call_id: &CallId) -> Vec<Arc<LiveCall>> {
        self.lock().live.values().filter(|live| live.key.call_id == *call_id).cloned().collect()
    }

    /// The output of a call that is live, or over with a follower announced.
    pub(crate) fn output(&self, key: &CallKey) -> Option<Arc<Output>> {
        let state = self.lock();
        state.live.get(key).map(|live| &live.output).or_else(|| state.awaited.get(key)).cloned()
    }

    /// How many are live.
    pub(crate) fn live_count(&self) -> usize {
        self.lock().live.len()
    }

    /// No more places from now on.
    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
    }

    /// No more places from now on, and the end of accepting, if no call is live and nobody waits for an output: decided
    /// in one moment.
    ///
    /// # Errors
    /// How many there are; nothing has changed.
    pub(crate) fn end_if_idle(&self) -> Result<(), usize> {
        let mut state = self.lock();
        match state.live.len() + state.awaited.len() {
            0 => state.is_ending = true,
            busy => return Err(busy),
        }
        drop(state);
        self.stop.cancel();
        Ok(())
    }

    /// Says when to stop accepting.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks every live call to end.
    pub(crate) fn cancel_all(&self) {
        for live in self.lock().live.values() {
            live.cancel();
        }
    }

    /// Waits until none is live.
    pub(crate) async fn none_live(&self) {
        loop {
            // Made before the look, so that no notification is lost between the two.
            let fewer = self.fewer.notified();
            if self.live_count() == 0 {
                return;
            }
            fewer.await;
        }
    }

    /// The maps are whole after every operation on them. Followers that did not come are forgotten here.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.awaited.retain(|_, output| output.has_reservation());
        state
    }
}

/// The place of one live call. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    calls: Arc<Calls>,
    live: Arc<LiveCall>,
}

impl Place {
    /// The call that has it.
    pub(crate) fn live(&self) -> &Arc<LiveCall> {
        &self.live
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.live.output.close();
        let mut state = self.calls.lock();
        state.live.remove(&self.live.key);
        self.live.over.cancel();
        if self.live.output.has_reservation() {
            state.awaited.insert(self.live.key.clone(), Arc::clone(&self.live.output));
        }
        drop(state);
        self.calls.fewer.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
