//! Who has the state or the socket already: an idle daemon that `run` started makes way, anybody else is named.
//!
//! Only a look beforehand, so that nobody waits for what will not come: the lock and the socket decide.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcell_client::Client;
use toolcell_types::Health;

use super::error::{ServeError, call};
use super::place::is_served;
use super::settings::Settings;
use crate::reach::{Ending, IDLE_EXIT_S, end_idle};

/// A daemon that was just told to end still answers for a moment; whoever starts the next one need not know.
const MOMENT: Duration = Duration::from_millis(500);
/// After so long whoever waits is told for what.
const SILENCE: Duration = Duration::from_millis(500);

/// Ends an idle daemon that `run` started and that has our state or our socket. Another is refused at once, by name.
pub(super) fn make_way(settings: &Settings) -> Result<(), ServeError> {
    for (path, socket) in held(settings) {
        if is_served(&socket) {
            call("epoll_create1", runtime())?.block_on(ask_to_end(path, &socket))?;
        }
    }
    Ok(())
}

/// Whether [`make_way`] would find a way, which it does for an idle daemon that `run` started. Ends nobody.
pub(super) fn look(settings: &Settings) -> Result<(), ServeError> {
    let mut makes_way = false;
    for (path, socket) in held(settings) {
        if is_served(&socket) {
            let health = call("epoll_create1", runtime())?.block_on(Client::new(&socket).health());
            match health {
                Ok(health) if health.ends_when_idle && health.live_calls == 0 => makes_way = true,
                Ok(health) if health.ends_when_idle => return Err(in_use_by_run(path, &socket, &health)),
                Ok(_) => return Err(in_use(path, &socket)),
                Err(error) if error.is_nobody_there() => {}
                Err(_) => return Err(in_use_by_another(path, pid_behind(&socket))),
            }
        }
    }
    match lock_holder(&settings.state) {
        Some(pid) if !makes_way => Err(in_use_by_another(&settings.state, Some(pid))),
        Some(_) | None => Ok(()),
    }
}

/// The toolcell that has both our socket and our state, if one has: calls run there.
pub(super) fn serving(settings: &Settings) -> Result<Option<Serving>, ServeError> {
    let has_state = match lock_holder(&settings.state) {
        Some(pid) => socket_of(pid).is_some_and(|socket| socket == settings.socket),
        // Whoever locked it may be in another pid namespace, and without a number here.
        None => false,
    };
    if !has_state || !is_served(&settings.socket) {
        return Ok(None);
    }
    let client = Client::new(&settings.socket);
    let told = call("epoll_create1", runtime())?.block_on(async {
        let health = client.health().await.ok()?;
        // An idle one that `run` started makes way for another.
        let makes_way = health.ends_when_idle && health.live_calls == 0;
        if makes_way { None } else { client.doctor().await.ok() }
    });
    let socket = settings.socket.clone();
    Ok(told.zip(pid_behind(&settings.socket)).map(|(report, pid)| Serving { pid, socket, is_ready: report.ready }))
}

/// A toolcell that serves already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Serving {
    /// Its process.
    pub(crate) pid: i32,
    /// Where it does.
    pub(crate) socket: PathBuf,
    /// Whether calls run there, by its own `GET /v1/doctor`.
    pub(crate) is_ready: bool,
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// What of ours somebody may have, and the socket at which he could be asked.
fn held(settings: &Settings) -> Vec<(&Path, PathBuf)> {
    let mut held = vec![(settings.socket.as_path(), settings.socket.clone())];
    if let Some(socket) = lock_holder(&settings.state).and_then(socket_of) {
        held.insert(0, (settings.state.as_path(), socket));
    }
    held
}

async fn ask_to_end(path: &Path, socket: &Path) -> Result<(), ServeError> {
    let client = Client::new(socket);
    let begin = Instant::now();
    loop {
        match client.health().await {
            Ok(health) if health.ends_when_idle => {
                return match end_idle(&client).await {
                    Ok(Ending::Gone) => {
                        tracing::info!(socket = %socket.display(), "an idle daemon that `toolcell run` had started was ended");
                        Ok(())
                    }
                    Ok(Ending::Busy(_) | Ending::Stuck) | Err(_) => Err(in_use_by_run(path, socket, &health)),
                };
            }
            Ok(_) if begin.elapsed() > MOMENT => return Err(in_use(path, socket)),
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) if error.is_nobody_there() => return Ok(()),
            Err(error) if error.is_gone() && begin.elapsed() < MOMENT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            // Nothing that can be talked to: the lock or the socket itself will tell.
            Err(_) => return Ok(()),
        }
    }
}

fn in_use(path: &Path, socket: &Path) -> ServeError {
    let (process, kill) = process(pid_behind(socket));
    ServeError::InUse {
        path: path.to_owned(),
        holder: format!("the toolcell that serves {}{process}", socket.display()),
        remedy: format!("give this one a --state and a --socket of its own, or {kill}"),
    }
}

fn in_use_by_run(path: &Path, socket: &Path, health: &Health) -> ServeError {
    let (process, kill) = process(pid_behind(socket));
    let calls = match health.live_calls {
        0 => "which is about to run something".to_owned(),
        1 => "which runs 1 call now".to_owned(),
        n => format!("which runs {n} calls now"),
    };
    ServeError::InUse {
        path: path.to_owned(),
        holder: format!("a toolcell that ends when it is idle{process}, {calls}"),
        remedy: format!(
            "one that `toolcell run` started ends by itself {IDLE_EXIT_S} s after its last call; or {kill}"
        ),
    }
}

fn in_use_by_another(path: &Path, pid: Option<i32>) -> ServeError {
    let (process, kill) = process(pid);
    ServeError::InUse {
        path: path.to_owned(),
        holder: format!("another program{process}"),
        remedy: format!("give this one a --state and a --socket of its own, or {kill}"),
    }
}

fn process(pid: Option<i32>) -> (String, String) {
    match pid {
        // With its first process the container ends.
        Some(1) => (" (process 1)".to_owned(), "end the container in which it is the first process".to_owned()),
        Some(pid) => (format!(" (process {pid})"), format!("end it with `kill {pid}`")),
        None => (String::new(), "end it".to_owned()),
    }
}

/// Whoever called listen(2), which has become the launcher: its end is the end of all (unix(7), SO_PEERCRED).
pub(super) fn pid_behind(socket: &Path) -> Option<i32> {
    let stream = UnixStream::connect(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// The process that locked the folder, if the kernel tells (proc(5), /proc/locks).
pub(super) fn lock_holder(folder: &Path) -> Option<i32> {
    let seen = folder.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(seen.dev()), rustix::fs::minor(seen.dev()));
    locked_by(&std::fs::read_to_string("/proc/locks").ok()?, &format!("{major:02x}:{minor:02x}:{}", seen.ino()))
}

fn locked_by(locks: &str, file: &str) -> Option<i32> {
    locks.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        [_, "FLOCK", _, _, pid, at, ..] if *at == file => pid.parse().ok().filter(|pid| *pid > 0),
        _ => None,
    })
}

/// The socket that a launcher removes at its end is the one that it serves.
fn socket_of(pid: i32) -> Option<PathBuf> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    socket_in(&String::from_utf8(line).ok()?)
}

fn socket_in(command_line: &str) -> Option<PathBuf> {
    let mut words = command_line.split('\0').skip(1);
    if words.next() != Some("launcher") {
        return None;
    }
    words.find(|word| *word == "--unlink")?;
    words.next().map(PathBuf::from)
}

/// How long it is waited for somebody who lets go.
#[derive(Debug)]
pub(super) struct Patience {
    begin: Instant,
    most: Duration,
    is_told: bool,
}

impl Patience {
    /// Begins to wait, at most so long.
    pub(super) fn begin(most: Duration) -> Self {
        Self { begin: Instant::now(), most, is_told: false }
    }

    /// Waits a little for `path`, and says so if it takes long.
    ///
    /// # Errors
    /// [`ServeError::InUse`] once it was long enough.
    pub(super) fn wait(&mut self, path: &Path, pid: Option<i32>) -> Result<(), ServeError> {
        if self.begin.elapsed() >= self.most {
            return Err(in_use_by_another(path, pid));
        }
        let (process, _kill) = process(pid);
        if !self.is_told && self.begin.elapsed() > SILENCE {
            self.is_told = true;
            let (most, path) = (self.most.as_secs(), path.display());
            tracing::info!("waiting at most {most} s for another program{process} to let go of {path}");
        }
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 3568 fe:00:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 77 fe:00:7 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 78 fe:00:8 0 EOF\n3: FLOCK  ADVISORY  WRITE -1 fe:00:9 0 EOF\n";
        assert_eq!(locked_by(locks, "fe:00:7"), Some(77));
        assert_eq!(locked_by(locks, "fe:00:8"), None, "one that waits has nothing");
        assert_eq!(locked_by(locks, "fe:00:9"), None, "one of another pid namespace has no number here");
    }

    #[test]
    fn a_folder_that_we_lock_is_held_by_us() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(lock_holder(folder.path()), None);
        let open = std::fs::File::open(folder.path()).unwrap();
        rustix::fs::flock(&open, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(lock_holder(folder.path()), i32::try_from(std::process::id()).ok());
    }

    #[test]
    fn a_launcher_s_socket_is_the_first_file_that_it_removes() {
        let line = "toolcell\0launcher\0--deny-path\0/a\0--unlink\0/run/x.sock\0--unlink\0/run/uids/1\0";
        assert_eq!(socket_in(line), Some(PathBuf::from("/run/x.sock")));
        assert_eq!(socket_in("vim\0launcher.rs\0--unlink\0/x\0"), None);
    }

    #[test]
    fn patience_ends_with_the_name_of_the_holder() {
        let error = Patience::begin(Duration::ZERO).wait(Path::new("/state"), Some(7)).unwrap_err();
        assert_eq!(error.to_string(), "/state is in use by another program (process 7)");
        assert!(error.remedy().contains("kill 7"), "{}", error.remedy());
        let first = in_use_by_another(Path::new("/state"), Some(1)).remedy();
        assert!(!first.contains("kill") && first.starts_with("give this one"), "{first}");
    }

    #[test]
    fn somebody_who_serves_is_named_with_the_way_to_end_him() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let pid = std::process::id();
        let error = in_use(Path::new("/state"), &socket);
        assert!(error.to_string().ends_with(&format!("(process {pid})")), "{error}");
        assert!(error.remedy().contains(&format!("`kill {pid}`")), "{}", error.remedy());
    }
}
