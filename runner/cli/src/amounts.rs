//! Amounts as people type them: sizes, times, processors, counts. Each has a floor and a ceiling, none means
//! "unlimited", and an error says what is expected.

use toolcell_types::LimitName;

/// Why a text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}{note}")]
pub(crate) struct BadAmount {
    /// What is taken, with an example.
    expected: String,
    /// What came.
    got: String,
    /// What was probably meant, behind the rest.
    note: String,
}

/// A parser of one limit, for clap.
pub(crate) fn of(name: LimitName) -> impl Fn(&str) -> Result<u64, BadAmount> + Clone + Send + Sync + 'static {
    move |text| {
        let (least, most) = name.bounds();
        let kind = Kind::of(name);
        let bad = || BadAmount {
            expected: kind.expected(least, most),
            got: text.chars().take(64).collect(),
            note: kind.note(text),
        };
        match kind.read(text) {
            Some(amount) if (least..=most).contains(&amount) => Ok(amount),
            Some(_) | None => Err(bad()),
        }
    }
}

/// How an amount is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bytes,
    Millis,
    CpuMillis,
    Count,
}

/// An amount of one limit as it may be typed, in the largest unit that divides it.
pub(crate) fn typed(name: LimitName, amount: u64) -> String {
    match Kind::of(name) {
        Kind::Bytes => in_units(amount, &SIZES, ""),
        Kind::Millis => in_units(amount, &TIMES, "ms"),
        Kind::CpuMillis => processors(amount),
        Kind::Count => amount.to_string(),
    }
}

/// docker's units: powers of 1024.
const SIZES: [(&str, u64); 5] = [("b", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40)];
/// Their names by IEC 80000-13.
const LONG_SIZES: [(&str, u64); 4] = [("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40)];
/// Times in milliseconds; longest unit name first, so that `ms` is not read as `s`.
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

impl Kind {
    fn of(name: LimitName) -> Self {
        match name {
            LimitName::WallMs | LimitName::CpuMs => Self::Millis,
            LimitName::MemoryBytes
            | LimitName::TmpBytes
            | LimitName::OutputKeepBytes
            | LimitName::OutputLimitBytes
            | LimitName::FileBytes => Self::Bytes,
            LimitName::CpuMillis => Self::CpuMillis,
            LimitName::Pids | LimitName::TmpInodes | LimitName::OpenFiles => Self::Count,
        }
    }

    fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Bytes => {
                let text = text.to_ascii_lowercase();
                with_unit(&text, &SIZES, 1).or_else(|| with_unit(&text, &LONG_SIZES, 1))
            }
            Self::Millis => with_unit(text, &TIMES, 1000),
            Self::CpuMillis => thousandths(text),
            Self::Count => whole(text),
        }
    }

    /// Powers of 1000 are not taken: which of both is meant by `MB` is anybody's guess.
    fn note(self, text: &str) -> String {
        let lower = text.to_ascii_lowercase();
        let number = lower.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let unit = match (self, lower.strip_prefix(number)) {
            (Self::Bytes, Some("kb")) => "k",
            (Self::Bytes, Some("mb")) => "m",
            (Self::Bytes, Some("gb")) => "g",
            (Self::Bytes, Some("tb")) => "t",
            _ => return String::new(),
        };
        let long = format!("{}iB", unit.to_ascii_uppercase());
        format!("; {unit} means {long}: write {number}{unit} or {number}{long}")
    }

    fn expected(self, least: u64, most: u64) -> String {
        match self {
            Self::Bytes => format!(
                "a whole number of bytes, or one with the unit k, m, g or t (powers of 1024, KiB to TiB), from {} to {}, like 64m",
                in_units(least, &SIZES, ""),
                in_units(most, &SIZES, "")
            ),
            Self::Millis => format!(
                "a whole number with the unit ms, s, m or h (without a unit: seconds), from {} to {}, like 10s",
                in_units(least, &TIMES, "ms"),
                in_units(most, &TIMES, "ms")
            ),
            Self::CpuMillis => format!(
                "a number of processors with at most three decimals, from {} to {}, like 0.5",
                processors(least),
                processors(most)
            ),
            Self::Count => format!("a whole number from {least} to {most}"),
        }
    }
}

/// Digits only: no sign, no blank, no exponent.
fn whole(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn with_unit(text: &str, units: &[(&str, u64)], without: u64) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "" => without,
        unit => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    whole(number)?.checked_mul(factor)
}

fn thousandths(text: &str) -> Option<u64> {
    let (whole_part, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.len() > 3 || text.is_empty() {
        return None;
    }
    let fraction = whole(&format!("{fraction:0<3}")).filter(|_| !fraction.is_empty())?;
    // `.5` is short for `0.5`.
    let whole_part = if whole_part.is_empty() { "0" } else { whole_part };
    whole(whole_part)?.checked_mul(1000)?.checked_add(fraction)
}

/// The amount in the largest unit that divides it.
fn in_units(amount: u64, units: &[(&str, u64)], smallest: &str) -> String {
    let fitting = units.iter().filter(|(_, factor)| *factor > 1 && amount.is_multiple_of(*factor)).max_by_key(|u| u.1);
    match fitting {
        Some((name, factor)) => format!("{}{name}", amount / factor),
        None => format!("{amount}{smallest}"),
    }
}

fn processors(millis: u64) -> String {
    match (millis / 1000, millis % 1000) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_docker_s_units_as_powers_of_1024() {
        let parse = of(LimitName::MemoryBytes);
        for (text, bytes) in [
            ("1048576", 1 << 20),
            ("64m", 64 << 20),
            ("64M", 64 << 20),
            ("2g", 2 << 30),
            ("4096k", 4096 << 10),
            ("1t", 1 << 40),
            ("64MiB", 64 << 20),
            ("2048KiB", 2 << 20),
            ("1gib", 1 << 30),
            ("1048576b", 1 << 20),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_are_none_say_what_is_expected() {
        let parse = of(LimitName::MemoryBytes);
        for bad in [
            "0",
            "-1",
            "10x",
            "64mb",
            "",
            "m",
            " 64m",
            "1.5g",
            "64mi",
            "mib",
            "1e9",
            "+5m",
            "99999999999999999999",
            "2t",
            "0m",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("expected a whole number of bytes") && error.contains("like 64m"), "{error}");
        }
        insta::assert_snapshot!(parse("64mb").unwrap_err(), @r#"expected a whole number of bytes, or one with the unit k, m, g or t (powers of 1024, KiB to TiB), from 1m to 1t, like 64m, got "64mb"; m means MiB: write 64m or 64MiB"#);
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        let parse = of(LimitName::WallMs);
        for (text, millis) in [("10", 10_000), ("10s", 10_000), ("250ms", 250), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
        for bad in ["0", "0ms", "-1", "1d", "10 s", "1.5", "s", "1000h", "18446744073709551615h"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        insta::assert_snapshot!(parse("1d").unwrap_err(), @r#"expected a whole number with the unit ms, s, m or h (without a unit: seconds), from 1ms to 168h, like 10s, got "1d""#);
    }

    #[test]
    fn processors_take_up_to_three_decimals() {
        let parse = of(LimitName::CpuMillis);
        for (text, millis) in [("1", 1000), ("0.5", 500), ("2.25", 2250), ("0.01", 10), ("1.125", 1125), (".5", 500)] {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
        for bad in ["0", "-1", "0.0", "1.", ".", "", "1.0001", "1,5", "0.001", "9999999", "two", "1.-5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        insta::assert_snapshot!(parse("two").unwrap_err(), @r#"expected a number of processors with at most three decimals, from 0.01 to 1024, like 0.5, got "two""#);
    }

    #[test]
    fn amounts_are_shown_as_they_may_be_typed() {
        for (name, amount, text) in [
            (LimitName::MemoryBytes, 4 << 30, "4g"),
            (LimitName::MemoryBytes, 1_500_001, "1500001"),
            (LimitName::WallMs, 3_600_000, "1h"),
            (LimitName::CpuMs, 2500, "2500ms"),
            (LimitName::CpuMillis, 4000, "4"),
            (LimitName::Pids, 1024, "1024"),
        ] {
            assert_eq!(typed(name, amount), text);
            assert_eq!(of(name)(text), Ok(amount), "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_bounded() {
        let parse = of(LimitName::Pids);
        assert_eq!(parse("64"), Ok(64));
        for bad in ["0", "1", "-1", "64k", "100000", "1.0", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        insta::assert_snapshot!(parse("-1").unwrap_err(), @r#"expected a whole number from 2 to 32768, got "-1""#);
    }
}
