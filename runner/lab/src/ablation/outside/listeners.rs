//! Sockets outside of the cells, each of which tells the secret to who reaches it, and remembers that somebody did.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::task::JoinSet;

use super::secret::token;
use super::{AblationError, Secret};
use crate::ablation::words::{Instrument, Witness};

/// How long one that has connected may take to send its byte.
const PATIENCE: Duration = Duration::from_secs(5);

/// The listeners of one call. They end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    tasks: JoinSet<()>,
    met: Vec<(Witness, Arc<AtomicBool>)>,
}

impl Listeners {
    pub(super) fn open(
        needs: &[Instrument],
        folder: Option<&Path>,
        secret: &Secret,
        arguments: &mut Vec<(&'static str, String)>,
    ) -> Result<Self, AblationError> {
        let failed = |source| AblationError::System { doing: "listen for a probe", source };
        let mut listeners = Self::default();
        for need in needs {
            let value = match need {
                Instrument::Tcp => listeners.tcp(secret),
                Instrument::Udp => listeners.udp(secret),
                Instrument::Abstract => listeners.unix_abstract(secret),
                Instrument::Socket => listeners.unix_path(folder, secret),
                Instrument::Victim
                | Instrument::OpenFile
                | Instrument::OwnFile
                | Instrument::Target
                | Instrument::OwnTarget
                | Instrument::Shm
                | Instrument::Msg
                | Instrument::Sem
                | Instrument::Mqueue
                | Instrument::Hostname => continue,
            };
            arguments.push((need.as_str(), value.map_err(failed)?));
        }
        Ok(listeners)
    }

    /// Whether somebody reached the one of this witness.
    pub(super) fn were_met(&self, witness: Witness) -> bool {
        self.met.iter().any(|(known, met)| *known == witness && met.load(Ordering::Relaxed))
    }

    fn watch(&mut self, witness: Witness) -> Arc<AtomicBool> {
        let met = Arc::new(AtomicBool::new(false));
        self.met.push((witness, Arc::clone(&met)));
        met
    }

    fn tcp(&mut self, secret: &Secret) -> io::Result<String> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (listener, met, secret) = (TcpListener::from_std(listener)?, self.watch(Witness::Tcp), secret.clone());
        let _abort = self.tasks.spawn(async move {
            let mut answers = JoinSet::new();
            while let Ok((peer, _address)) = listener.accept().await {
                met.store(true, Ordering::Relaxed);
                let _abort = answers.spawn(answer(peer, secret.clone(), true));
            }
        });
        Ok(address.to_string())
    }

    fn udp(&mut self, secret: &Secret) -> io::Result<String> {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let (socket, met, secret) = (UdpSocket::from_std(socket)?, self.watch(Witness::Udp), secret.clone());
        let _abort = self.tasks.spawn(async move {
            let mut packet = [0_u8; 64];
            while let Ok((_length, peer)) = socket.recv_from(&mut packet).await {
                met.store(true, Ordering::Relaxed);
                // A peer that is gone by now has been met all the same.
                drop(socket.send_to(secret.text().as_bytes(), peer).await);
            }
        });
        Ok(address.to_string())
    }

    fn unix_abstract(&mut self, secret: &Secret) -> io::Result<String> {
        let name = format!("toolcell-outside-{}", token().map_err(io::Error::other)?);
        let listener = std::os::unix::net::UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        self.unix(listener, Witness::Abstract, secret)?;
        Ok(name)
    }

    fn unix_path(&mut self, folder: Option<&Path>, secret: &Secret) -> io::Result<String> {
        let folder = folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let path = folder.join(Instrument::Socket.as_str());
        let listener = std::os::unix::net::UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
        self.unix(listener, Witness::Socket, secret)?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn unix(
        &mut self,
        listener: std::os::unix::net::UnixListener,
        witness: Witness,
        secret: &Secret,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let (listener, met, secret) = (UnixListener::from_std(listener)?, self.watch(witness), secret.clone());
        let _abort = self.tasks.spawn(async move {
            let mut answers = JoinSet::new();
            while let Ok((peer, _address)) = listener.accept().await {
                met.store(true, Ordering::Relaxed);
                let _abort = answers.spawn(answer(peer, secret.clone(), false));
            }
        });
        Ok(())
    }
}

/// Sends the secret, at once or for a byte. Who does not take it has connected all the same.
async fn answer(mut peer: impl AsyncRead + AsyncWrite + Unpin, secret: Secret, is_for_a_byte: bool) {
    let work = async {
        let mut byte = [0_u8; 1];
        if is_for_a_byte && peer.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        if peer.write_all(secret.text().as_bytes()).await.is_ok() {
            drop(peer.shutdown().await);
        }
    };
    drop(tokio::time::timeout(PATIENCE, work).await);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    fn read_all(mut from: impl std::io::Read) -> String {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_reaches_a_listener_gets_the_secret_and_is_seen() {
        let (secret, mut arguments, folder) = (Secret::fresh().unwrap(), Vec::new(), tempfile::tempdir().unwrap());
        let needs = [Instrument::Tcp, Instrument::Udp, Instrument::Abstract, Instrument::Socket];
        let listeners = Listeners::open(&needs, Some(folder.path()), &secret, &mut arguments).unwrap();
        let witnesses = [Witness::Tcp, Witness::Udp, Witness::Abstract, Witness::Socket];
        assert!(witnesses.iter().all(|witness| !listeners.were_met(*witness)));
        let [tcp, udp, name, path] = [0, 1, 2, 3].map(|at: usize| arguments[at].1.clone());
        let text = secret.text().to_owned();
        let said = tokio::task::spawn_blocking(move || {
            let mut peer = std::net::TcpStream::connect(tcp).unwrap();
            peer.write_all(b"x").unwrap();
            let by_tcp = read_all(peer);
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.send_to(b"x", udp).unwrap();
            let mut packet = [0_u8; 64];
            let length = peer.recv(&mut packet).unwrap();
            let by_udp = String::from_utf8_lossy(&packet[..length]).into_owned();
            let address = SocketAddr::from_abstract_name(name).unwrap();
            let by_name = read_all(std::os::unix::net::UnixStream::connect_addr(&address).unwrap());
            [by_tcp, by_udp, by_name, read_all(std::os::unix::net::UnixStream::connect(path).unwrap())]
        });
        assert_eq!(said.await.unwrap(), [(); 4].map(|()| text.clone()));
        assert!(witnesses.iter().all(|witness| listeners.were_met(*witness)));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_only_connects_is_seen_and_told_nothing() {
        let (secret, mut arguments) = (Secret::fresh().unwrap(), Vec::new());
        let listeners = Listeners::open(&[Instrument::Tcp], None, &secret, &mut arguments).unwrap();
        let address = arguments[0].1.clone();
        let mut peer = std::net::TcpStream::connect(address).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let said = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            peer.read_to_string(&mut text).map(|_| text)
        });
        assert_eq!(said.await.unwrap().unwrap_or_default(), "");
        assert!(listeners.were_met(Witness::Tcp));
    }
}
