//! Acts that are tried on both sides of a restriction.

use std::io;

use crate::{Act, ConfinementError};

/// The errno of each act, 0 where it worked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tries(Vec<(Act, i32)>);

impl Tries {
    /// What the acts came to.
    pub(crate) fn of(acts: impl IntoIterator<Item = (Act, rustix::io::Result<()>)>) -> Self {
        let errno = |result: rustix::io::Result<()>| result.err().map_or(0, rustix::io::Errno::raw_os_error);
        Self(acts.into_iter().map(|(act, result)| (act, errno(result))).collect())
    }

    /// Before a restriction: all have to work.
    pub(crate) fn all_work(&self) -> Result<(), ConfinementError> {
        match self.0.iter().find(|(_, errno)| *errno != 0) {
            None => Ok(()),
            Some((act, errno)) => {
                Err(ConfinementError::Instrument { act: *act, source: io::Error::from_raw_os_error(*errno) })
            }
        }
    }

    /// After it: each has to fail with its own number.
    pub(crate) fn all_refused(&self, expected: impl Fn(Act) -> i32) -> Result<(), ConfinementError> {
        match self.0.iter().find(|(act, errno)| *errno != expected(*act)) {
            None => Ok(()),
            Some((act, got)) => Err(ConfinementError::Open { act: *act, got: *got, expected: expected(*act) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_fails_before_proves_nothing_and_what_works_after_is_open() {
        let works = Tries::of([(Act::Tcp, Ok(())), (Act::Signal, Ok(()))]);
        let refused = Tries::of([(Act::Tcp, Err(Errno::ACCESS)), (Act::Signal, Err(Errno::PERM))]);
        let expected = |act| if act == Act::Tcp { 13 } else { 1 };
        works.all_work().unwrap();
        refused.all_refused(expected).unwrap();
        assert!(matches!(refused.all_work(), Err(ConfinementError::Instrument { act: Act::Tcp, .. })));
        assert!(matches!(works.all_refused(expected), Err(ConfinementError::Open { act: Act::Tcp, got: 0, .. })));
        let otherwise = Tries::of([(Act::Signal, Err(Errno::SRCH))]);
        assert!(matches!(otherwise.all_refused(expected), Err(ConfinementError::Open { got: 3, expected: 1, .. })));
    }
}
