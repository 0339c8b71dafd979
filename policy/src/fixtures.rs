//! What the tests of this crate share: principals, requests, and a policy with one tool for each rule.

use serde_json::{Map, Value, json};
use toolcell_types::{CallRequest, Problem};

use crate::{AdmittedCall, Policy, Principal, Role, request};

/// A principal of a role.
pub(crate) fn somebody(role: Role) -> Principal {
    Principal { uid: 1000, gid: 1000, role, id: "uid:1000".to_owned() }
}

/// A request for a tool with members besides the first three.
pub(crate) fn body(tool: &str, args: Value, more: Value) -> Vec<u8> {
    let mut members = json!({"call_id": "c-1", "tool": tool, "args": args});
    let more: Map<String, Value> = more.as_object().unwrap().clone();
    members.as_object_mut().unwrap().extend(more);
    serde_json::to_vec(&members).unwrap()
}

/// The same, decoded.
pub(crate) fn call(tool: &str, args: Value, more: Value) -> CallRequest {
    request::decode(&body(tool, args, more)).unwrap().request
}

/// A policy in which each tool narrows one thing.
pub(crate) const STRICT: &str = r#"
[tools.show]
description = "Prints what it is given"
image = "{image}"
argv = ["show", "--", "{text}", "{more...}"]
cwd = "{dir}"
permission = "allow"
roles = ["caller", "operator"]
complete_exit_codes = [0, 1]
transient_exit_codes = [2]
env = { TZ = "UTC", LANG = "C" }
[tools.show.input_schema]
type = "object"
required = ["text"]
additionalProperties = false
[tools.show.input_schema.properties]
text = { type = "string", maxLength = 200000 }
more = { type = "array", items = { type = "string" } }
dir = { type = "string" }
image = { type = "string" }
[tools.show.limits]
wall_ms = 1000
[tools.show.max_limits]
wall_ms = 2000
[tools.show.allow]
env = ["COLOR", "TZ"]
mounts = ["/data", "/srv/files"]
stdin = true
image = ["host", "other"]

[tools.shut]
description = "Known and forbidden"
image = "host"
argv = ["true"]
input_schema = { type = "object", additionalProperties = false }
permission = "deny"
roles = ["caller", "operator"]

[tools.hidden]
description = "For the operator alone"
image = "host"
argv = ["true"]
input_schema = { type = "object", additionalProperties = false }
permission = "allow"
roles = ["operator"]
"#;

/// A policy of this `tools.toml`.
pub(crate) fn policy(tools: &str) -> Policy {
    Policy::parse(&[("tools.toml".to_owned(), tools.as_bytes().to_vec())]).unwrap()
}

/// What [`STRICT`] says to a caller.
pub(crate) fn strict(tool: &str, args: Value, more: Value) -> Result<AdmittedCall, Problem> {
    policy(STRICT).decide(&somebody(Role::Caller), &call(tool, args, more))
}
