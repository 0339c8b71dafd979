//! Who an event of the loop is for, as a number that epoll carries.

use crate::live::Alarm;

/// Who an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Daemon,
    DaemonEnd,
    SignerEnd,
    Signal,
    /// Of a slot, in one of its turns: a slot is given to the next cell while events of the one before may still be in
    /// the batch that is being worked off.
    Cell {
        slot: u32,
        turn: u32,
        part: Part,
    },
}

/// The descriptors of one cell, in the order of `Live::sources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Records,
    InitEnd,
    Alarm(Alarm),
    /// The mounts are open, or cannot be.
    Opened,
    /// Opening them takes too long.
    OpeningLate,
}

/// The descriptors of a cell whose mounts are being opened, in the order of `Opener::sources`.
pub(super) const OPENING_PARTS: [Part; 2] = [Part::Opened, Part::OpeningLate];
/// All parts, by their place in a token.
const ALL_PARTS: [Part; 7] = [
    Part::Records,
    Part::InitEnd,
    Part::Alarm(Alarm::Wall),
    Part::Alarm(Alarm::Cpu),
    Part::Alarm(Alarm::Round),
    Part::Opened,
    Part::OpeningLate,
];

pub(super) const PARTS: [Part; 5] =
    [Part::Records, Part::InitEnd, Part::Alarm(Alarm::Wall), Part::Alarm(Alarm::Cpu), Part::Alarm(Alarm::Round)];

impl Source {
    pub(super) fn token(self) -> u64 {
        match self {
            Self::Daemon => 0,
            Self::DaemonEnd => 1,
            Self::SignerEnd => 2,
            Self::Signal => 3,
            Self::Cell { slot, turn, part } => {
                let at = ALL_PARTS.iter().position(|known| *known == part).and_then(|at| u64::try_from(at).ok());
                (u64::from(turn) << 32) | ((u64::from(slot) + 1) * 8 + at.unwrap_or(0))
            }
        }
    }

    pub(super) fn from_token(token: u64) -> Option<Self> {
        let (turn, low) = (u32::try_from(token >> 32).ok()?, token & u64::from(u32::MAX));
        match low {
            0 => Some(Self::Daemon),
            1 => Some(Self::DaemonEnd),
            2 => Some(Self::SignerEnd),
            3 => Some(Self::Signal),
            4..=7 => None,
            _ => {
                let part = *ALL_PARTS.get(usize::try_from(low % 8).ok()?)?;
                Some(Self::Cell { slot: u32::try_from(low / 8 - 1).ok()?, turn, part })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_source() {
        let mut sources = vec![Source::Daemon, Source::DaemonEnd, Source::SignerEnd, Source::Signal];
        for (slot, turn) in [(0, 0), (1023, 1), (1023, u32::MAX)] {
            sources.extend(ALL_PARTS.into_iter().map(|part| Source::Cell { slot, turn, part }));
        }
        for source in sources {
            assert_eq!(Source::from_token(source.token()), Some(source));
        }
        assert_eq!(Source::from_token(5), None);
    }
}
