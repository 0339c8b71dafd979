//! Signals and errnos by name (signal(7), errno(3)); unknown numbers keep their number.

use nix::errno::Errno;
use nix::sys::signal::Signal;

/// `SIGKILL` for 9; real-time and unknown signals as `SIG34`.
#[must_use]
pub fn signal(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_unknown| format!("SIG{number}"), |known| known.as_str().to_owned())
}

/// `ENOENT` for 2; unknown numbers as `E999`.
#[must_use]
pub fn errno(number: i32) -> String {
    let known = Errno::from_raw(number);
    if known == Errno::UnknownErrno { format!("E{number}") } else { format!("{known:?}") }
}

/// The number behind a signal's name, for exit codes of the command line (128 + n).
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    match name.parse::<Signal>() {
        Ok(known) => Some(known as i32),
        Err(_unknown) => name.strip_prefix("SIG").and_then(|digits| digits.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(super::signal(9), "SIGKILL");
        assert_eq!(super::signal(40), "SIG40");
        assert_eq!(super::signal_number("SIGKILL"), Some(9));
        assert_eq!(super::signal_number("SIG40"), Some(40));
        assert_eq!(super::errno(2), "ENOENT");
        assert_eq!(super::errno(9999), "E9999");
    }
}
