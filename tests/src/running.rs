//! A call that runs while the test looks at it.

use std::path::PathBuf;

use toolcell_types::{Answer, RunningCall};

use crate::http::{Connection, Response};
use crate::process::Process;
use crate::wait::eventually;
use crate::{Instance, OrdinaryUser, Request};

/// A call that was accepted and is not over.
#[derive(Debug)]
pub struct Running {
    /// Its id.
    pub call_id: String,
    /// What 202 carried: the signed intent.
    pub accepted: RunningCall,
    socket: PathBuf,
    user: Option<(u32, u32)>,
    processes_of: String,
}

impl Running {
    /// Submits without waiting for the end, and waits until the program has printed `up`.
    ///
    /// # Panics
    /// If the call is refused or ends before.
    #[must_use]
    pub fn until_up(instance: &Instance, request: &Request) -> Self {
        let running = Self::submit(instance, request);
        let mut seen = Vec::new();
        let mut follow = running.follow("stdout");
        while !String::from_utf8_lossy(&seen).contains("up\n") {
            match follow.chunk().expect("the output can be followed") {
                Some(piece) => seen.extend_from_slice(&piece),
                None => panic!("ended without `up`: {:?}", running.answer()),
            }
        }
        running
    }

    /// Submits without waiting.
    ///
    /// # Panics
    /// If the call is refused.
    #[must_use]
    pub fn submit(instance: &Instance, request: &Request) -> Self {
        let response = instance.post_with("/v1/calls", &[("Prefer", "respond-async")], &request.bytes());
        assert_eq!(response.status(), 202, "{}", response.text());
        Self {
            call_id: request.call_id(),
            accepted: response.json(),
            socket: instance.socket().to_path_buf(),
            user: instance.home().user().map(OrdinaryUser::ids),
            processes_of: format!("/{}/", instance.name()),
        }
    }

    /// Follows one of its outputs from the beginning; read it by chunks.
    ///
    /// # Panics
    /// If it cannot be followed.
    #[must_use]
    pub fn follow(&self, stream: &str) -> Connection {
        let mut connection = self.connect();
        let path = format!("/v1/calls/{}/{stream}?follow=1", self.call_id);
        connection.send("GET", &path, &[], b"").expect("the request is sent");
        let head = connection.head().expect("an answer comes");
        assert_eq!(head.status, 200, "{:?}", connection.body(&head));
        connection
    }

    /// Asks for the call as it is now.
    ///
    /// # Panics
    /// If nobody answers.
    #[must_use]
    pub fn now(&self) -> Response {
        self.ask("GET", &format!("/v1/calls/{}", self.call_id))
    }

    /// Asks to cancel it.
    ///
    /// # Panics
    /// If nobody answers.
    #[must_use]
    pub fn cancel(&self) -> Response {
        self.ask("POST", &format!("/v1/calls/{}/cancel", self.call_id))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not come.
    #[must_use]
    pub fn answer(&self) -> Answer {
        eventually("the call's answer", || serde_json::from_slice(&self.now().body).ok())
    }

    /// The processes of all cells of its instance.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        Process::all().into_iter().filter(|process| process.cgroups.contains(&self.processes_of)).collect()
    }

    /// The process of that name in its cell.
    ///
    /// # Panics
    /// If there is none, or several.
    #[must_use]
    pub fn process(&self, name: &str) -> Process {
        let mut found: Vec<Process> = self.processes().into_iter().filter(|process| process.name == name).collect();
        assert_eq!(found.len(), 1, "one process named {name}: {:?}", self.processes());
        found.remove(0)
    }

    fn connect(&self) -> Connection {
        let opened = match self.user {
            Some(ids) => Connection::open_as(&self.socket, ids),
            None => Connection::open(&self.socket),
        };
        opened.expect("the daemon listens")
    }

    fn ask(&self, method: &str, path: &str) -> Response {
        let mut connection = self.connect();
        connection.ask(method, path, &[], b"").expect("an answer comes")
    }
}
