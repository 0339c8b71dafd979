//! What a refusal says, for somebody who types commands: the daemon speaks to controllers and names endpoints.

use std::path::Path;

use toolcell_types::{ErrorCode, Problem};

/// Text and hint of a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) hint: String,
}

/// The refusal in commands; `socket` is repeated in them if it was named.
pub(super) fn words(problem: &Problem, socket: Option<&Path>) -> Words {
    let socket = socket.map(|path| format!(" --socket {}", path.display())).unwrap_or_default();
    let id = problem.call_id.as_deref().unwrap_or("ID");
    let text = Rewriter { id, socket: &socket }.rewrite(&problem.to_string());
    match problem.code {
        ErrorCode::OutcomeUnknown if problem.live == Some(true) => Words {
            text: format!("call {id} is still running"),
            hint: format!("see toolcell calls {id}{socket}, end it with toolcell cancel {id}{socket}"),
        },
        ErrorCode::OutcomeUnknown => Words {
            text,
            hint: format!("look at it with toolcell calls {id}{socket}; use a new --call-id for new work"),
        },
        ErrorCode::NotFound => Words { text, hint: format!("list what there is: toolcell calls{socket}") },
        ErrorCode::UnknownTool => {
            Words { text, hint: format!("name a tool that toolcell tools{socket} lists, or ask the operator for it") }
        }
        ErrorCode::KeyPayloadMismatch => {
            Words { text, hint: "use a new --call-id, or send exactly the request that was sent first".to_owned() }
        }
        ErrorCode::LedgerInvalid
        | ErrorCode::RoleDenied
        | ErrorCode::KillSwitch
        | ErrorCode::InvalidArguments
        | ErrorCode::PermissionDenied
        | ErrorCode::ApprovalRequired
        | ErrorCode::BudgetExhausted
        | ErrorCode::PreconditionFailed
        | ErrorCode::InvalidRequest
        | ErrorCode::AblationRefused
        | ErrorCode::QueueFull
        | ErrorCode::ControlUnavailable
        | ErrorCode::ResolveNotIndependent
        | ErrorCode::ResolveNotPending => {
            Words { text, hint: Rewriter { id, socket: &socket }.rewrite(&problem.remedy) }
        }
    }
}

/// Puts the command in the place of every endpoint that a text names.
#[derive(Debug, Clone, Copy)]
struct Rewriter<'a> {
    id: &'a str,
    socket: &'a str,
}

impl Rewriter<'_> {
    fn rewrite(self, text: &str) -> String {
        let mut done = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, method)) = first_endpoint(rest) {
            let (before, from) = rest.split_at(at);
            let path = from.get(method..).unwrap_or_default();
            let length = path.find(|letter: char| letter.is_whitespace() || ",;:`)\"".contains(letter));
            let (path, after) = path.split_at(length.unwrap_or(path.len()));
            done.push_str(before);
            match self.command(path) {
                Some(command) => done.push_str(&command),
                None => done.push_str(from.get(..method + path.len()).unwrap_or_default()),
            }
            rest = after;
        }
        done.push_str(rest);
        done
    }

    fn command(self, path: &str) -> Option<String> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let id = |named: &str| if named.starts_with('{') { self.id.to_owned() } else { named.to_owned() };
        let words = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["calls"] => "calls".to_owned(),
            ["calls", call] => format!("calls {}", id(call)),
            ["calls", call, "cancel"] => format!("cancel {}", id(call)),
            ["calls", call, stream @ ("stdout" | "stderr")] => {
                let follow = if query.contains("follow") { " --follow" } else { "" };
                format!("calls {} --output {stream}{follow}", id(call))
            }
            ["tools"] => "tools".to_owned(),
            ["receipts"] => "receipts".to_owned(),
            ["keys"] => "keys show".to_owned(),
            _ => return None,
        };
        Some(format!("toolcell {words}{}", self.socket))
    }
}

/// Where the next endpoint stands, and how long everything before its own path is.
fn first_endpoint(text: &str) -> Option<(usize, usize)> {
    ["GET /v1/", "POST /v1/"].into_iter().filter_map(|lead| text.find(lead).map(|at| (at, lead.len()))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(code: ErrorCode, detail: &str, remedy: &str) -> Problem {
        let mut problem = Problem::new(code, detail, remedy);
        problem.call_id = Some("demo".to_owned());
        problem
    }

    #[test]
    fn refusals_name_commands_and_no_endpoints() {
        let live = |is_live| {
            let mut problem = problem(ErrorCode::OutcomeUnknown, "an intent and no outcome", "look at GET /v1/calls");
            problem.live = Some(is_live);
            problem
        };
        let refusals = [
            live(true),
            live(false),
            problem(ErrorCode::NotFound, "there is no call demo, or it is not yours", "see GET /v1/calls"),
            problem(ErrorCode::UnknownTool, "there is no tool \"x\"", "name a tool that GET /v1/tools lists"),
            problem(ErrorCode::KeyPayloadMismatch, "this call_id was used", "use a new call_id"),
            problem(ErrorCode::BudgetExhausted, "it has failed; its answer is GET /v1/calls/demo", "use a new call_id"),
            problem(ErrorCode::RoleDenied, "for operators", "your own are in your answers: GET /v1/calls/{call_id}"),
            problem(ErrorCode::InvalidRequest, "not kept", "GET /v1/calls/demo/stdout without follow gives the rest"),
        ];
        let said = |problem: &Problem| {
            let Words { text, hint } = words(problem, None);
            format!("{text}\n  {hint}")
        };
        let said: Vec<String> = refusals.iter().map(said).collect();
        assert!(said.iter().all(|words| !words.contains("/v1/")), "{said:?}");
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn a_socket_that_was_named_is_repeated() {
        let hint = words(&problem(ErrorCode::NotFound, "no", "see"), Some(Path::new("/run/x"))).hint;
        assert_eq!(hint, "list what there is: toolcell calls --socket /run/x");
    }

    #[test]
    fn every_endpoint_has_its_command() {
        let rewriter = Rewriter { id: "a", socket: "" };
        for (endpoint, command) in [
            ("POST /v1/calls/{id}/cancel", "toolcell cancel a"),
            ("GET /v1/calls/b/stderr?follow=1,", "toolcell calls b --output stderr --follow,"),
            ("(GET /v1/keys) and GET /v1/receipts", "(toolcell keys show) and toolcell receipts"),
            ("GET /v1/nonsense stays", "GET /v1/nonsense stays"),
            ("nothing to do", "nothing to do"),
        ] {
            assert_eq!(rewriter.rewrite(endpoint), command);
        }
    }
}
