//! What a call that was not taken means, in the words of the command line that it came from.

use toolcell_client::{Client, ClientError};
use toolcell_types::{CallId, ErrorCode, Problem, ToolInfo};

use crate::amounts;
use crate::args::LimitArgs;
use crate::failure::Failure;
use crate::reach::Reached;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Its name.
    pub(super) call: &'a CallId,
    /// The tool.
    pub(super) tool: &'a str,
    /// Limits, as they were typed.
    pub(super) limits: &'a LimitArgs,
}

impl Asked<'_> {
    /// The failure of a submission. Without a connection nothing was submitted; else it may have been.
    pub(super) async fn refused(
        self,
        error: ClientError,
        reached: &Reached,
        of: fn(ClientError) -> Failure,
    ) -> Failure {
        let is_sent = !matches!(error, ClientError::Connect { .. });
        let over = match error.problem() {
            Some(problem) => self.over_the_most(problem, &reached.client).await,
            None => None,
        };
        let mut failure = of(error);
        if let Some((text, hint)) = over {
            failure.error = anyhow::anyhow!(text);
            failure.hint = Some(hint);
        }
        if is_sent { failure.about(self.call, reached) } else { failure }
    }

    /// The daemon names members of the request and plain numbers; what was typed is an option with a unit.
    async fn over_the_most(self, problem: &Problem, client: &Client) -> Option<(String, String)> {
        if problem.code != ErrorCode::PermissionDenied || self.limits.typed().next().is_none() {
            return None;
        }
        let page = client.tools().await.ok()?;
        let tool = page.tools.iter().find(|tool| tool.name == self.tool)?;
        over_the_most(problem, tool, self.limits)
    }
}

/// Every limit that is over the most, and what else was found.
fn over_the_most(problem: &Problem, tool: &ToolInfo, limits: &LimitArgs) -> Option<(String, String)> {
    let over: Vec<_> = limits.typed().filter(|(name, _, value)| *value > tool.max_limits.value(*name)).collect();
    if over.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = Vec::new();
    for (name, option, value) in &over {
        let [most, got] = [tool.max_limits.value(*name), *value].map(|amount| amounts::typed(*name, amount));
        lines.push(format!("{option}: at most {most} for the tool {}, got {got}", tool.name));
    }
    let rest = problem.findings.iter().filter(|finding| !finding.detail.starts_with("limits."));
    lines.extend(rest.map(|finding| finding.detail.clone()));
    let keys: Vec<String> =
        over.iter().map(|(name, ..)| format!("tools.{}.max_limits.{}", tool.name, name.as_str())).collect();
    let hint = format!("ask for less, or have the operator raise {} in the policy's tools.toml", keys.join(" and "));
    Some((format!("{}: {}", problem.code, lines.join("\n")), hint))
}

#[cfg(test)]
mod tests {
    use toolcell_types::{Finding, Limits, Sha256};

    use super::*;

    fn tool() -> ToolInfo {
        ToolInfo {
            name: "exec".to_owned(),
            description: String::new(),
            input_schema: serde_json::json!({}),
            effect_class: "read".to_owned(),
            permission: "allow".to_owned(),
            digest: Sha256([0; 32]),
            limits: Limits::default(),
            max_limits: Limits { memory_bytes: 4 << 30, wall_ms: 3_600_000, ..Limits::default() },
        }
    }

    fn problem(details: &[&str]) -> Problem {
        let mut problem = Problem::new(ErrorCode::PermissionDenied, details[0], "send less");
        let finding = |detail: &&str| Finding { code: ErrorCode::PermissionDenied, detail: (*detail).to_owned() };
        problem.findings = details.iter().map(finding).collect();
        problem
    }

    #[test]
    fn a_limit_over_the_most_is_told_by_its_option_with_units_and_the_policy_s_key() {
        let typed = LimitArgs { memory: Some(100 << 30), cpus: Some(500), ..LimitArgs::default() };
        let problem = problem(&["limits.memory_bytes of exec must be at most 4294967296, got 107374182400"]);
        let (text, hint) = over_the_most(&problem, &tool(), &typed).unwrap();
        insta::assert_snapshot!(text, @"PERMISSION_DENIED: --memory: at most 4g for the tool exec, got 100g");
        insta::assert_snapshot!(hint, @"ask for less, or have the operator raise tools.exec.max_limits.memory_bytes in the policy's tools.toml");
    }

    #[test]
    fn several_limits_and_other_findings_are_all_told() {
        let typed = LimitArgs { memory: Some(5 << 30), timeout: Some(7_200_000), ..LimitArgs::default() };
        let problem = problem(&["limits.wall_ms of exec must be …", "limits.memory_bytes …", "mounts[0].host …"]);
        let (text, hint) = over_the_most(&problem, &tool(), &typed).unwrap();
        insta::assert_snapshot!(text, @r"
        PERMISSION_DENIED: --timeout: at most 1h for the tool exec, got 2h
        --memory: at most 4g for the tool exec, got 5g
        mounts[0].host …
        ");
        assert!(hint.contains("max_limits.wall_ms and tools.exec.max_limits.memory_bytes"), "{hint}");
    }

    #[test]
    fn a_refusal_for_something_else_keeps_its_own_words() {
        let typed = LimitArgs { memory: Some(1 << 30), ..LimitArgs::default() };
        assert_eq!(over_the_most(&problem(&["mounts[0].host …"]), &tool(), &typed), None);
    }
}
