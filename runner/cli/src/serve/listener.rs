//! The socket: its folder, what a killed daemon left of it, and its mode from the first moment on.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;

use super::error::{ServeError, call, file};
use super::holder::{Patience, pid_behind};
use super::{contained, trial_home};

/// sockaddr_un.sun_path holds 108 bytes with the zero at the end (unix(7)).
const PATH_MAX_BYTES: usize = 107;

/// Makes a folder that others may look into but not change, if it is not there.
pub(super) fn make_folder(path: &Path) -> Result<(), ServeError> {
    let mut builder = DirBuilder::new();
    // Others may look into it: what they may do with the socket is the socket's own mode.
    let before = rustix::process::umask(Mode::from_raw_mode(0o022));
    let made = builder.recursive(true).mode(0o755).create(path);
    rustix::process::umask(before);
    file("make", path, made)
}

/// Refuses a path that no socket address holds.
pub(super) fn check_path(path: &Path) -> Result<(), ServeError> {
    if path.as_os_str().len() <= PATH_MAX_BYTES {
        return Ok(());
    }
    Err(ServeError::Unsafe {
        path: path.to_owned(),
        why: "is too long for a socket, at most 107 bytes are taken",
        remedy: "name a shorter path with --socket",
    })
}

/// Whether a socket can be had there, seen by having one of another name in the same folder for a moment; where that folder
/// is still to be made, by making one where it will be.
pub(super) fn try_folder(path: &Path) -> Result<(), ServeError> {
    let name = format!(".toolcell-{}", trial_home::token()?);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let nearest = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    let tried = contained::with_root_s_privilege(|| {
        if nearest != folder {
            let made = nearest.join(&name);
            return DirBuilder::new().mode(0o700).create(&made).and_then(|()| std::fs::remove_dir(made));
        }
        // By the folder's descriptor, as a longer name need not fit where the named one does.
        let open = File::open(folder)?;
        let other = PathBuf::from(format!("/proc/self/fd/{}/{name}", open.as_raw_fd()));
        UnixListener::bind(&other).and_then(|_listener| std::fs::remove_file(&other))
    });
    file("listen at", path, tried)
}

/// Something else lies where the socket is to be.
pub(super) fn no_socket(path: &Path) -> ServeError {
    ServeError::Unsafe {
        path: path.to_owned(),
        why: "is there and is no socket",
        remedy: "remove it, or name another path with --socket",
    }
}

/// Listens at `path`, with `mode` from the first moment on. Waits at most so long for whoever listens there to end.
pub(super) fn listen(path: &Path, mode: u32, patience: Duration) -> Result<OwnedFd, ServeError> {
    check_path(path)?;
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    clear(path, patience)?;
    // bind(2) makes the file with 0777 less the mask: a chmod afterwards would leave a moment for others.
    let before = rustix::process::umask(Mode::from_raw_mode(0o777 & !mode));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = file("listen at", path, listener)?;
    call("fcntl(O_NONBLOCK)", listener.set_nonblocking(true))?;
    Ok(listener.into())
}

/// Removes a socket that nobody listens at any more; anything else at that path stays.
fn clear(path: &Path, patience: Duration) -> Result<(), ServeError> {
    let mut patience = Patience::begin(patience);
    let seen = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => file("look at", path, other)?,
    };
    if !seen.file_type().is_socket() {
        return Err(no_socket(path));
    }
    loop {
        match UnixStream::connect(path) {
            Ok(_somebody) => patience.wait(path, pid_behind(path))?,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return file("remove", path, std::fs::remove_file(path));
            }
            // Its owner has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return file("connect to", path, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_socket_has_its_mode_and_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/s");
        let _listener = listen(&path, 0o660, Duration::ZERO).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o660);
        assert!(UnixStream::connect(&path).is_ok());
    }

    #[test]
    fn a_socket_that_somebody_listens_at_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let first = listen(&path, 0o600, Duration::ZERO).unwrap();
        assert!(matches!(listen(&path, 0o600, Duration::ZERO), Err(ServeError::InUse { .. })));
        drop(first);
        assert!(listen(&path, 0o600, Duration::ZERO).is_ok(), "what a killed daemon leaves is removed");
    }

    #[test]
    fn a_daemon_that_is_about_to_end_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let first = listen(&path, 0o600, Duration::ZERO).unwrap();
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(first);
        });
        assert!(listen(&path, 0o600, Duration::from_secs(10)).is_ok());
        ending.join().unwrap();
    }

    #[test]
    fn a_file_at_the_path_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        std::fs::write(&path, "letter").unwrap();
        assert!(matches!(listen(&path, 0o600, Duration::ZERO), Err(ServeError::Unsafe { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"letter");
    }

    #[test]
    fn a_folder_in_which_nobody_can_listen_is_told_and_one_that_is_fit_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(105 - folder.path().as_os_str().len()));
        for path in [folder.path().join("s"), folder.path().join("run/lab/s"), long] {
            try_folder(&path).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays");
        }
        std::fs::write(folder.path().join("file"), "x").unwrap();
        for path in [Path::new("/proc/x.sock"), Path::new("/proc/x/s"), &folder.path().join("file/s")] {
            let told = try_folder(path).unwrap_err().to_string();
            assert_eq!(told, format!("cannot listen at {}", path.display()));
        }
    }

    #[test]
    fn a_path_that_no_socket_address_holds_is_refused() {
        let path = Path::new("/tmp").join("x".repeat(110));
        assert!(matches!(listen(&path, 0o600, Duration::ZERO), Err(ServeError::Unsafe { .. })));
    }
}
