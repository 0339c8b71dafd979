//! HTTP/1.1 over a Unix socket, by hand: requests with a body, answers by length, by chunks or until the end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use toolcell_types::{Answer, ErrorCode, Problem};

/// The longest that one read may block.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// Status line and headers.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header's value; names compare without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as a wire shape.
    ///
    /// # Panics
    /// With the body, if it is none or has members that the shape does not know.
    #[must_use]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status(), self.text()))
    }

    /// The answer to a call.
    ///
    /// # Panics
    /// With the body, if it is something else.
    #[must_use]
    pub fn answer(&self) -> Answer {
        assert_eq!(self.status(), 200, "{}", self.text());
        self.json()
    }

    /// The refusal, if it carries this code as the contract says: status, type, content type, first finding, texts.
    ///
    /// # Panics
    /// With the body, if anything differs.
    #[must_use]
    pub fn problem(&self, code: ErrorCode) -> Problem {
        assert_eq!(self.status(), code.status(), "expected {code}: {}", self.text());
        assert_eq!(self.head.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem: Problem = self.json();
        assert_eq!(problem.code, code, "{}", self.text());
        assert_eq!(problem.type_uri, format!("urn:toolcell:problem:{code}"));
        assert_eq!(problem.status, code.status());
        assert_eq!(problem.findings.first().map(|finding| finding.code), Some(code), "{}", self.text());
        assert!(!problem.detail.is_empty() && !problem.remedy.is_empty(), "a refusal says what and what next");
        problem
    }
}

/// One connection; requests on it follow each other.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        stream.set_write_timeout(Some(READ_LIMIT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Connects as another user, for the moment of connecting; the other side is told who connected (unix(7)).
    ///
    /// # Errors
    /// When nobody listens, or that user may not connect.
    ///
    /// # Panics
    /// If this process cannot be that user, or itself again.
    pub fn open_as(socket: &Path, (uid, gid): (u32, u32)) -> std::io::Result<Self> {
        use nix::unistd::{Gid, Uid, geteuid, setegid, seteuid};
        if geteuid().as_raw() == uid {
            return Self::open(socket);
        }
        setegid(Gid::from_raw(gid)).expect("root can be anybody");
        seteuid(Uid::from_raw(uid)).expect("root can be anybody");
        let opened = Self::open(socket);
        seteuid(Uid::from_raw(0)).expect("and root again");
        setegid(Gid::from_raw(0)).expect("and root again");
        opened
    }

    /// Sends a request without waiting for the answer.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<()> {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        bytes.push_str("\r\n");
        let whole = [bytes.as_bytes(), body].concat();
        match self.stream.get_mut().write_all(&whole) {
            // Refused before it was read to the end: what the other side said about it can still be read.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Reads status line and headers.
    ///
    /// # Errors
    /// When the other side ends before them, or sends something that is no HTTP.
    pub fn head(&mut self) -> std::io::Result<Head> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no status line: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.trim().to_owned(), value.trim().to_owned())),
                None => return Ok(Head { status, headers }),
            }
        }
    }

    /// The next piece of a chunked body; none at its end.
    ///
    /// # Errors
    /// When the other side ends in the middle of it.
    pub fn chunk(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|error| std::io::Error::other(format!("no chunk size: {line:?}: {error}")))?;
        let mut bytes = vec![0; size];
        self.stream.read_exact(&mut bytes)?;
        self.line()?;
        Ok(if size == 0 { None } else { Some(bytes) })
    }

    /// The whole body that belongs to `head`.
    ///
    /// # Errors
    /// When the other side ends in the middle of it.
    pub fn body(&mut self, head: &Head) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            while let Some(piece) = self.chunk()? {
                body.extend_from_slice(&piece);
            }
        } else if let Some(length) = head.header("content-length").and_then(|text| text.parse().ok()) {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        } else {
            self.stream.read_to_end(&mut body)?;
        }
        Ok(body)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the other side is gone in between.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        self.send(method, path, headers, body)?;
        let head = self.head()?;
        let body = self.body(&head)?;
        Ok(Response { head, body })
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
