//! Requests as a controller writes them.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value, json};

use crate::programs::{PROGRAMS_INSIDE, program_inside, program_on_host, programs_dir};

static NEXT: AtomicU32 = AtomicU32::new(1);

/// A call id that nobody used before on this machine.
#[must_use]
pub fn fresh_id() -> String {
    format!("t-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The body of `POST /v1/calls`, built member by member.
#[derive(Debug, Clone)]
pub struct Request(Map<String, Value>);

impl Request {
    /// A call of any tool.
    #[must_use]
    pub fn tool(name: &str, args: Value) -> Self {
        let mut members = Map::new();
        members.insert("call_id".to_owned(), fresh_id().into());
        members.insert("tool".to_owned(), name.into());
        members.insert("args".to_owned(), args);
        Self(members)
    }

    /// A call of `exec`.
    #[must_use]
    pub fn exec(argv: &[&str]) -> Self {
        Self::tool("exec", json!({ "argv": argv }))
    }

    /// A shell line by `exec`.
    #[must_use]
    pub fn shell(line: &str) -> Self {
        Self::exec(&["/bin/sh", "-c", line])
    }

    /// One of the suite's own programs by `exec`, shown inside by a mount.
    #[must_use]
    pub fn program(name: &str, args: &[&str]) -> Self {
        let path = program_inside(name);
        let argv: Vec<&str> = std::iter::once(path.as_str()).chain(args.iter().copied()).collect();
        Self::exec(&argv).mount(&programs_dir().to_string_lossy(), PROGRAMS_INSIDE)
    }

    /// One of the suite's own programs in a cell without any mount: it comes in by standard input.
    ///
    /// # Panics
    /// If the program cannot be read.
    #[must_use]
    pub fn carried(name: &str, args: &[&str]) -> Self {
        use base64::Engine as _;
        let bytes = std::fs::read(program_on_host(name)).expect("a compiled program can be read");
        let line = "cat > /tmp/program && chmod 700 /tmp/program && exec /tmp/program \"$@\" < /dev/null";
        let argv: Vec<&str> = ["/bin/sh", "-c", line, name].into_iter().chain(args.iter().copied()).collect();
        Self::exec(&argv).with("stdin", json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) }))
    }

    /// Sets any member, also one that the contract does not know.
    #[must_use]
    pub fn with(mut self, member: &str, value: Value) -> Self {
        self.0.insert(member.to_owned(), value);
        self
    }

    /// Names the call.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        self.with("call_id", id.into())
    }

    /// States limits.
    #[must_use]
    pub fn limits(self, limits: Value) -> Self {
        self.with("limits", limits)
    }

    /// Adds an argument of the tool.
    #[must_use]
    pub fn arg(mut self, name: &str, value: Value) -> Self {
        if let Some(args) = self.0.get_mut("args").and_then(Value::as_object_mut) {
            args.insert(name.to_owned(), value);
        }
        self
    }

    /// Adds a read-only mount.
    #[must_use]
    pub fn mount(mut self, host: &str, inside: &str) -> Self {
        let mounts = self.0.entry("mounts").or_insert_with(|| json!([]));
        if let Some(mounts) = mounts.as_array_mut() {
            mounts.push(json!({ "host": host, "inside": inside, "mode": "ro" }));
        }
        self
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> String {
        self.0.get("call_id").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// As JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// As bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.value().to_string().into_bytes()
    }
}
