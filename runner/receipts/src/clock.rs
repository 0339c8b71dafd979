//! Points in time as receipts write them: RFC 3339, UTC, microseconds.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Microseconds since 1970-01-01T00:00:00Z (CLOCK_REALTIME); advisory, the order of the log is by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnixMicros(pub u64);

/// The last second that RFC 3339 can write, 9999-12-31T23:59:59Z.
const LAST_SECOND: u64 = 253_402_300_799;

impl UnixMicros {
    /// `2026-11-30T12:41:07.101877Z`. Times after the year 9999 are written as its last second.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let seconds = (self.0 / 1_000_000).min(LAST_SECOND);
        let at = i64::try_from(seconds)
            .ok()
            .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (date, time) = (at.date(), at.time());
        format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            time.hour(),
            time.minute(),
            time.second(),
            self.0 % 1_000_000
        )
    }

    /// Reads an RFC 3339 text, to the microsecond.
    ///
    /// # Errors
    /// [`BadTime`] repeats what came.
    pub fn parse(text: &str) -> Result<Self, BadTime> {
        let at = OffsetDateTime::parse(text, &Rfc3339)
            .map_err(|source| BadTime::Form { got: text.chars().take(64).collect(), source })?;
        u64::try_from(at.unix_timestamp_nanos() / 1000)
            .map(Self)
            .map_err(|source| BadTime::BeforeEpoch { got: text.chars().take(64).collect(), source })
    }
}

/// Why a text is no point in time.
#[derive(Debug, thiserror::Error)]
pub enum BadTime {
    /// No RFC 3339.
    #[error("expected a time like 2026-11-30T12:41:07.101877Z, got {got:?}")]
    Form {
        /// What came, cut to 64 characters.
        got: String,
        /// What the parser said.
        source: time::error::Parse,
    },
    /// Before 1970.
    #[error("expected a time after 1970, got {got:?}")]
    BeforeEpoch {
        /// What came, cut to 64 characters.
        got: String,
        /// The conversion that failed.
        source: std::num::TryFromIntError,
    },
}

impl std::fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

impl TryFrom<String> for UnixMicros {
    type Error = BadTime;
    fn try_from(text: String) -> Result<Self, BadTime> {
        Self::parse(&text)
    }
}

impl From<UnixMicros> for String {
    fn from(at: UnixMicros) -> Self {
        at.to_rfc3339()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip_to_the_microsecond() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_796_042_467_101_877, "2026-11-30T12:41:07.101877Z"),
            (1_709_210_096_000_001, "2024-02-29T12:34:56.000001Z"),
        ] {
            assert_eq!(UnixMicros(micros).to_rfc3339(), text);
            assert_eq!(UnixMicros::parse(text).unwrap(), UnixMicros(micros));
        }
    }

    #[test]
    fn absurd_times_are_clamped_and_other_texts_refused() {
        assert!(UnixMicros(u64::MAX).to_rfc3339().starts_with("9999-12-31T23:59:59."));
        for bad in ["", "yesterday", "2026-11-30 12:41", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            assert!(UnixMicros::parse(bad).is_err(), "{bad}");
        }
    }
}
