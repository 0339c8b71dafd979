//! What everybody needs and nobody may take all of: seats, bytes of bodies, bytes of answers.
//!
//! Guarantees: of a thing that has `all`, one user who is no operator has at most `per_user`, and all of them together
//! leave `for_operators`; a share is given back however its holder ends. A user without a share always gets one if the
//! thing is there at all, even one larger than is his: otherwise what is large could never be had. Does not: queue;
//! whoever waits gets what is free when he looks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How much there is of a thing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// For everybody together.
    pub(crate) all: u64,
    /// For one user who is no operator.
    pub(crate) per_user: u64,
    /// Part of `all` that only operators get.
    pub(crate) for_operators: u64,
}

/// Who wants a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    /// The user.
    pub(crate) uid: u32,
    /// Whether he is an operator.
    pub(crate) is_operator: bool,
}

/// Why there is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// This user has as much as one may have.
    Own,
    /// Everybody together has.
    All,
}

/// One thing.
#[derive(Debug)]
pub(crate) struct Shares {
    bounds: Bounds,
    taken: Mutex<HashMap<u32, u64>>,
    freed: Notify,
}

impl Shares {
    /// All of it free.
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a share.
    ///
    /// # Errors
    /// [`Short`]; nothing has changed.
    pub(crate) fn take(self: &Arc<Self>, who: Who, amount: u64) -> Result<Share, Short> {
        let mut share = Share { shares: Arc::clone(self), who, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    /// Takes a share, and waits for one that long.
    ///
    /// # Errors
    /// [`Short`]; nothing has changed.
    pub(crate) async fn take_within(
        self: &Arc<Self>,
        who: Who,
        amount: u64,
        patience: Duration,
    ) -> Result<Share, Short> {
        let mut share = Share { shares: Arc::clone(self), who, amount: 0 };
        share.grow_within(amount, patience).await?;
        Ok(share)
    }

    /// The map is whole after every operation on it.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part that somebody has. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    who: Who,
    amount: u64,
}

impl Share {
    /// Adds to it.
    ///
    /// # Errors
    /// [`Short`]; nothing has changed.
    pub(crate) fn grow(&mut self, amount: u64) -> Result<(), Short> {
        let Bounds { all, per_user, for_operators } = self.shares.bounds;
        let mut taken = self.shares.lock();
        let total: u64 = taken.values().sum();
        let own = taken.get(&self.who.uid).copied().unwrap_or(0);
        let for_him = if self.who.is_operator { all } else { all.saturating_sub(for_operators) };
        if total > 0 && total.saturating_add(amount) > for_him {
            return Err(Short::All);
        }
        if !self.who.is_operator && own > 0 && own.saturating_add(amount) > per_user {
            return Err(Short::Own);
        }
        taken.insert(self.who.uid, own.saturating_add(amount));
        drop(taken);
        self.amount = self.amount.saturating_add(amount);
        Ok(())
    }

    /// Adds to it, and waits that long until it can.
    ///
    /// # Errors
    /// [`Short`]; nothing has changed.
    pub(crate) async fn grow_within(&mut self, amount: u64, patience: Duration) -> Result<(), Short> {
        let end = tokio::time::Instant::now() + patience;
        let shares = Arc::clone(&self.shares);
        loop {
            // Made before the look, so that no notification is lost between the two.
            let freed = shares.freed.notified();
            let short = match self.grow(amount) {
                Ok(()) => return Ok(()),
                Err(short) => short,
            };
            if tokio::time::timeout_at(end, freed).await.is_err() {
                return Err(short);
            }
        }
    }

    /// Makes it that much, whatever there is: for what turned out to be larger or smaller than it was expected to be.
    pub(crate) fn become_amount(&mut self, amount: u64) {
        let mut taken = self.shares.lock();
        let own = taken.get(&self.who.uid).copied().unwrap_or(0);
        taken.insert(self.who.uid, own.saturating_sub(self.amount).saturating_add(amount));
        drop(taken);
        self.amount = amount;
        self.shares.freed.notify_waiters();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        let left = taken.get(&self.who.uid).copied().unwrap_or(0).saturating_sub(self.amount);
        if left == 0 {
            taken.remove(&self.who.uid);
        } else {
            taken.insert(self.who.uid, left);
        }
        drop(taken);
        self.shares.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: Who = Who { uid: 0, is_operator: true };

    fn user(uid: u32) -> Who {
        Who { uid, is_operator: false }
    }

    fn shares() -> Arc<Shares> {
        Shares::new(Bounds { all: 10, per_user: 4, for_operators: 2 })
    }

    #[test]
    fn no_user_gets_more_than_his_part_and_no_number_of_them_the_operators_part() {
        let shares = shares();
        let mut first: Vec<_> = (0..4).map(|_| shares.take(user(1), 1).unwrap()).collect();
        assert_eq!(shares.take(user(1), 1).unwrap_err(), Short::Own);
        let second = shares.take(user(2), 4).unwrap();
        assert_eq!(shares.take(user(3), 1).unwrap_err(), Short::All);
        let operator = shares.take(OPERATOR, 2).unwrap();
        assert_eq!(shares.take(OPERATOR, 1).unwrap_err(), Short::All);
        first.pop();
        assert_eq!(shares.take(user(3), 1).unwrap_err(), Short::All, "what is left is the operators'");
        drop((first, second));
        assert!(shares.take(user(3), 4).is_ok());
        drop(operator);
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn an_operator_may_have_all_of_it() {
        let shares = shares();
        let _all = shares.take(OPERATOR, 10).unwrap();
        assert_eq!(shares.take(OPERATOR, 1).unwrap_err(), Short::All);
    }

    #[test]
    fn what_is_larger_than_everything_is_had_by_one_at_a_time() {
        let shares = shares();
        let large = shares.take(user(1), 100).unwrap();
        assert_eq!(shares.take(user(2), 1).unwrap_err(), Short::All);
        assert_eq!(shares.take(user(1), 1).unwrap_err(), Short::All);
        drop(large);
        let _small = shares.take(user(2), 1).unwrap();
        assert_eq!(shares.take(user(1), 100).unwrap_err(), Short::All);
    }

    #[test]
    fn a_share_becomes_what_is_needed() {
        let shares = shares();
        let mut share = shares.take(user(1), 4).unwrap();
        share.become_amount(1);
        assert!(shares.take(user(1), 3).is_ok());
        share.become_amount(20);
        drop(share);
        assert!(shares.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_what_is_given_back_in_time() {
        let shares = shares();
        let held = shares.take(user(1), 4).unwrap();
        let patience = Duration::from_secs(5);
        assert_eq!(shares.take_within(user(1), 1, patience).await.unwrap_err(), Short::Own);
        let waiting = tokio::spawn({
            let shares = Arc::clone(&shares);
            async move { shares.take_within(user(1), 1, patience).await }
        });
        tokio::time::sleep(patience / 2).await;
        drop(held);
        assert!(waiting.await.unwrap().is_ok());
    }
}
