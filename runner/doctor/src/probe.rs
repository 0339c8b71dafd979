//! The program of a survey's cell: tries, for each control that can be tried from inside, something that must work and
//! something that must fail, and prints what came of it as JSON.
//!
//! It is this program executed anew, under the tool's ids and every control, as any tool is. It trusts nothing that it is
//! told but the names of what is outside, and changes nothing but its scratch. What cannot be tried is said, with why.

mod files;
mod kernel;
mod limits;
mod namespaces;

use std::io::{self, Write as _};
use std::time::Duration;

use toolcell_types::doctor::{Outer, Side, SurveyAct, Trial};

/// Where the launcher puts this program in a survey's cell.
pub const PROGRAM: &str = "/toolcell-survey";
/// The name of the hidden command that it is started with.
pub const COMMAND: &str = "survey-probe";

/// Does what a survey's cell is for. `words` follow [`COMMAND`]: the act, and for [`SurveyAct::Probe`] what is outside, or
/// one of the probe's own children. The value is the exit code.
///
/// # Errors
/// Words that no survey says, or an output that cannot be written.
pub fn run(words: &[String]) -> io::Result<u8> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is = |act: SurveyAct| words.first() == Some(&act.as_str());
    match words.as_slice() {
        [_, outer] if is(SurveyAct::Probe) => {
            let outer: Outer = serde_json::from_str(outer)?;
            let text = serde_json::to_vec(&trials(&outer))?;
            io::stdout().lock().write_all(&text)?;
            Ok(0)
        }
        [_] if is(SurveyAct::Sleep) => {
            std::thread::sleep(Duration::from_secs(60));
            Ok(0)
        }
        [_] if is(SurveyAct::Spin) => Ok(limits::spin(Duration::from_secs(60))),
        [_] if is(SurveyAct::Flood) => flood(),
        ["nothing"] => Ok(0),
        ["hog", bytes] => Ok(limits::hog(bytes.parse().map_err(io::Error::other)?)),
        _ => Err(io::Error::other("expected an act of a survey; this command is for the launcher")),
    }
}

fn flood() -> io::Result<u8> {
    let line = [b"a survey's flood\n".as_slice(); 240].concat();
    loop {
        io::stdout().lock().write_all(&line)?;
    }
}

/// All that is tried from inside, in the order of the controls.
fn trials(outer: &Outer) -> Vec<Trial> {
    let limits = SurveyAct::Probe.limits();
    vec![
        namespaces::user(),
        namespaces::mount(outer),
        namespaces::pid(outer),
        namespaces::net(outer),
        namespaces::ipc(outer),
        namespaces::uts(outer),
        namespaces::cgroup(),
        files::read_only(),
        files::no_set_id(),
        files::devices(),
        files::masked(),
        kernel::capabilities(),
        kernel::no_new_privileges(),
        kernel::filter(),
        kernel::identity(),
        files::descriptors(),
        kernel::environment(),
        limits::memory(&limits),
        limits::processes(&limits),
        limits::open_files(&limits),
        limits::scratch(&limits),
    ]
}

/// The kernel's answer in a word.
fn word<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => "it worked".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(errno) => toolcell_types::names::errno(errno),
            None => error.to_string(),
        },
    }
}

/// Something that must work.
fn works<T>(act: impl Into<String>, result: &io::Result<T>) -> Side {
    Side::tried(act, word(result), result.is_ok())
}

/// Something that must fail with one of these errnos, which tell that it was this control that stopped it.
fn fails<T>(act: impl Into<String>, result: &io::Result<T>, errnos: &[i32]) -> Side {
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
    Side::tried(act, word(result), errno.is_some_and(|errno| errnos.contains(&errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_survey_are_understood() {
        for words in [&["probe"] as &[&str], &["probe", "x"], &["hog", "much"], &["sleep", "x"], &[], &["rm"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(run(&words).is_err(), "{words:?}");
        }
        assert_eq!(run(&["nothing".to_owned()]).unwrap(), 0);
    }

    #[test]
    fn a_refusal_counts_only_with_the_errno_of_its_control() {
        let refused: io::Result<()> = Err(io::Error::from_raw_os_error(nix::libc::EROFS));
        assert_eq!(fails("a", &refused, &[nix::libc::EROFS]).holds, Some(true));
        assert_eq!(fails("a", &refused, &[nix::libc::EPERM]).holds, Some(false));
        assert_eq!(fails("a", &Ok(()), &[nix::libc::EPERM]).got, "it worked");
        assert_eq!(works("a", &refused), Side::tried("a", "EROFS", false));
    }

    #[test]
    fn outside_of_a_cell_the_forbidden_works_or_fails_for_another_reason() {
        // The instruments, shown where no control is: each trial must be able to say no.
        let held = |trial: Trial| trial.forbidden.holds;
        let own = Outer { pid: 1, path: Some("/proc".to_owned()), ..Outer::default() };
        assert_eq!(held(namespaces::mount(&own)), Some(false));
        assert_eq!(held(namespaces::pid(&own)), Some(false));
        assert_eq!(held(kernel::filter()), Some(false));
        assert_eq!(held(kernel::environment()), Some(false));
        assert_eq!(held(files::no_set_id()), Some(false));
        assert_eq!(held(files::masked()), Some(false));
    }
}
