//! Limits: eleven named numbers, each with its unit in its name, none of them ever "unlimited".

use serde::{Deserialize, Serialize};

/// The limits of one attempt, complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Wall clock from *go* to the kill, in milliseconds (CLOCK_MONOTONIC).
    pub wall_ms: u64,
    /// Processor time of the whole tree, user and system, in milliseconds.
    pub cpu_ms: u64,
    /// Memory of the whole tree, page cache, tmpfs and swap included, in bytes.
    pub memory_bytes: u64,
    /// Processes and threads at once, the cell's own init included.
    pub pids: u64,
    /// Processor share in thousandths of one processor.
    pub cpu_millis: u64,
    /// Size of the scratch file system (/tmp and /dev/shm share it), in bytes.
    pub tmp_bytes: u64,
    /// Files in the scratch file system.
    pub tmp_inodes: u64,
    /// Output kept per stream, head and tail together, in bytes; more is counted and hashed, not kept.
    pub output_keep_bytes: u64,
    /// Output of both streams together, in bytes; more kills the tree.
    pub output_limit_bytes: u64,
    /// Size of one file that the tool writes (RLIMIT_FSIZE), in bytes.
    pub file_bytes: u64,
    /// Descriptors of one process (RLIMIT_NOFILE).
    pub open_files: u64,
}

impl Default for Limits {
    /// Enough for a small script, little enough that sixty at once do not hurt a small machine.
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            wall_ms: 10_000,
            cpu_ms: 10_000,
            memory_bytes: 256 * MIB,
            pids: 64,
            cpu_millis: 1000,
            tmp_bytes: 64 * MIB,
            tmp_inodes: 16_384,
            output_keep_bytes: MIB,
            output_limit_bytes: 64 * MIB,
            file_bytes: 64 * MIB,
            open_files: 256,
        }
    }
}

/// One of the eleven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field of `Limits` of the same name")]
pub enum LimitName {
    WallMs,
    CpuMs,
    MemoryBytes,
    Pids,
    CpuMillis,
    TmpBytes,
    TmpInodes,
    OutputKeepBytes,
    OutputLimitBytes,
    FileBytes,
    OpenFiles,
}

impl LimitName {
    /// All eleven, in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::WallMs,
        Self::CpuMs,
        Self::MemoryBytes,
        Self::Pids,
        Self::CpuMillis,
        Self::TmpBytes,
        Self::TmpInodes,
        Self::OutputKeepBytes,
        Self::OutputLimitBytes,
        Self::FileBytes,
        Self::OpenFiles,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WallMs => "wall_ms",
            Self::CpuMs => "cpu_ms",
            Self::MemoryBytes => "memory_bytes",
            Self::Pids => "pids",
            Self::CpuMillis => "cpu_millis",
            Self::TmpBytes => "tmp_bytes",
            Self::TmpInodes => "tmp_inodes",
            Self::OutputKeepBytes => "output_keep_bytes",
            Self::OutputLimitBytes => "output_limit_bytes",
            Self::FileBytes => "file_bytes",
            Self::OpenFiles => "open_files",
        }
    }

    /// What is sane at all, smallest and largest; the policy narrows it. Below the floor a cell could not start (its
    /// own init needs a process and about half a MiB); above the ceiling a number is a typing error.
    #[must_use]
    pub fn bounds(self) -> (u64, u64) {
        const TIB: u64 = 1 << 40;
        match self {
            Self::WallMs | Self::CpuMs => (1, 7 * 24 * 3_600_000),
            Self::MemoryBytes => (1 << 20, TIB),
            Self::Pids => (2, 32_768),
            Self::CpuMillis => (10, 1_024_000),
            Self::TmpBytes => (4096, TIB),
            Self::TmpInodes => (8, 1 << 30),
            Self::OutputKeepBytes => (1, 64 << 20),
            Self::OutputLimitBytes | Self::FileBytes => (1, TIB),
            Self::OpenFiles => (8, 1 << 20),
        }
    }
}

/// Why a limit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{name} must be a whole number from {least} to {most}, got {got}")]
pub struct BadLimit {
    /// Which limit.
    pub name: &'static str,
    /// The smallest value that is taken.
    pub least: u64,
    /// The largest value that is taken.
    pub most: u64,
    /// What came.
    pub got: u64,
}

impl Limits {
    /// The value of one limit.
    #[must_use]
    pub fn value(&self, name: LimitName) -> u64 {
        match name {
            LimitName::WallMs => self.wall_ms,
            LimitName::CpuMs => self.cpu_ms,
            LimitName::MemoryBytes => self.memory_bytes,
            LimitName::Pids => self.pids,
            LimitName::CpuMillis => self.cpu_millis,
            LimitName::TmpBytes => self.tmp_bytes,
            LimitName::TmpInodes => self.tmp_inodes,
            LimitName::OutputKeepBytes => self.output_keep_bytes,
            LimitName::OutputLimitBytes => self.output_limit_bytes,
            LimitName::FileBytes => self.file_bytes,
            LimitName::OpenFiles => self.open_files,
        }
    }

    /// The first limit outside its bounds, if any.
    ///
    /// # Errors
    /// [`BadLimit`] names it with what would be taken.
    pub fn validate(&self) -> Result<(), BadLimit> {
        for name in LimitName::ALL {
            let (least, most) = name.bounds();
            let got = self.value(name);
            if got < least || got > most {
                return Err(BadLimit { name: name.as_str(), least, most, got });
            }
        }
        Ok(())
    }
}

/// Some of the limits: what a request or a policy file states; the rest stays as it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the field of `Limits` of the same name")]
pub struct LimitsPatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_inodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_keep_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl LimitsPatch {
    /// `base` with what this patch states.
    #[must_use]
    pub fn over(&self, base: &Limits) -> Limits {
        Limits {
            wall_ms: self.wall_ms.unwrap_or(base.wall_ms),
            cpu_ms: self.cpu_ms.unwrap_or(base.cpu_ms),
            memory_bytes: self.memory_bytes.unwrap_or(base.memory_bytes),
            pids: self.pids.unwrap_or(base.pids),
            cpu_millis: self.cpu_millis.unwrap_or(base.cpu_millis),
            tmp_bytes: self.tmp_bytes.unwrap_or(base.tmp_bytes),
            tmp_inodes: self.tmp_inodes.unwrap_or(base.tmp_inodes),
            output_keep_bytes: self.output_keep_bytes.unwrap_or(base.output_keep_bytes),
            output_limit_bytes: self.output_limit_bytes.unwrap_or(base.output_limit_bytes),
            file_bytes: self.file_bytes.unwrap_or(base.file_bytes),
            open_files: self.open_files.unwrap_or(base.open_files),
        }
    }

    /// Whether nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_absurd_values_are_refused_and_the_defaults_are_not() {
        assert_eq!(Limits::default().validate(), Ok(()));
        for name in LimitName::ALL {
            let text = format!(r#"{{"{}":0}}"#, name.as_str());
            let patch: LimitsPatch = serde_json::from_str(&text).unwrap();
            assert!(patch.over(&Limits::default()).validate().is_err(), "{text}");
            let text = format!(r#"{{"{}":9007199254740991}}"#, name.as_str());
            let patch: LimitsPatch = serde_json::from_str(&text).unwrap();
            assert!(patch.over(&Limits::default()).validate().is_err(), "{text}");
        }
    }

    #[test]
    fn negative_and_misspelt_limits_do_not_parse() {
        for bad in [r#"{"wall_ms":-1}"#, r#"{"wall":1}"#, r#"{"wall_ms":"1"}"#, r#"{"wall_ms":1.5}"#] {
            assert!(serde_json::from_str::<LimitsPatch>(bad).is_err(), "{bad}");
        }
    }
}
