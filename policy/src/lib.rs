//! Deciding which call may run, and with what.
//!
//! Two steps, both pure (no file, no clock, no randomness): [`request::decode`] turns the bytes of a request into a
//! [`toolcell_types::CallRequest`] with its digests, and [`Policy::decide`] turns that, for a [`Principal`], into an
//! [`AdmittedCall`] or a refusal that lists everything it found. Does not: open paths, know which images there are
//! (see [`Policy::check_images`]), count attempts, or look anything up.
//!
//! # How to write a `tools.toml`
//!
//! A policy is a folder with one file, `tools.toml`, in which each table `[tools.NAME]` registers a program. `NAME`
//! is `[a-z][a-z0-9_-]{0,63}`. What is not registered cannot be called. A key that is not listed here, a value of
//! another kind or out of bounds, and any other file in the folder are mistakes: the instance does not start, and
//! says file, line, column and what it expected. The policy that is built in is `policy/default/tools.toml`.
//!
//! ```toml
//! [tools.count]
//! description = "Counts the lines of a file that the caller shows at /data"
//! image = "host"
//! argv = ["wc", "-l", "--", "{path}"]
//! permission = "allow"
//! roles = ["caller", "operator"]
//! [tools.count.input_schema]
//! type = "object"
//! required = ["path"]
//! additionalProperties = false
//! properties = { path = { type = "string", pattern = "^/data/", maxLength = 4095 } }
//! [tools.count.limits]
//! wall_ms = 2000
//! [tools.count.allow]
//! mounts = ["/srv/texts"]
//! ```
//!
//! ## Keys of a tool
//!
//! | key | what it is | if left out |
//! |---|---|---|
//! | `description` | one line for a person or a model, 1 to 1024 bytes | a mistake |
//! | `image` | name of the image that the cell's root is made of; or `"{x}"`, then the text argument `x` chooses among `allow.image` | a mistake |
//! | `argv` | the program and its arguments, see below | a mistake |
//! | `input_schema` | what the arguments have to be, see below | a mistake |
//! | `permission` | `"allow"`, or `"deny"`: the tool is listed and every call is refused | a mistake |
//! | `roles` | who sees the tool: `"caller"`, `"operator"` or both; to others it does not exist. Auditors see every tool and call none | a mistake |
//! | `effect_class` | how the tool acts on the world outside its cell. Only `"read"`: in this version no cell has a channel through which it could do anything else, and a tool that needs one would fail or lie | `"read"` |
//! | `complete_exit_codes` | exit codes (0 to 255) that mean success, at least one | `[0]` |
//! | `transient_exit_codes` | exit codes by which the tool says "try again", none of them in `complete_exit_codes` | `[75]` (EX_TEMPFAIL) |
//! | `cwd` | working directory inside, absolute; or `"{x}"`, then the text argument `x` says it, `/tmp` if that is left out | `"/tmp"` |
//! | `env` | table of variables, over `PATH=/usr/local/bin:/usr/bin:/bin`, `HOME=/tmp` and `LANG=C.UTF-8`. Values are taken as they are, braces included | none more |
//! | `limits` | table: limits of a call that states none | the defaults below |
//! | `max_limits` | table: the most that a call may state | equal to the tool's `limits` |
//! | `allow.env` | array of names that a call may set, or `["*"]` for any. A call's value replaces the tool's | none |
//! | `allow.mounts` | array of absolute host paths; a call may show them, or what lies below, read-only. `["/"]` is any | none |
//! | `allow.stdin` | whether a call may give standard input | `false` |
//! | `allow.image` | array of images that a call may choose; used only with `image = "{x}"`. If `x` is left out, the first by name | none |
//!
//! `output_schema` and `result`, and `"ask"` as a permission, are refused as not in this version.
//!
//! ## Arguments
//!
//! In `argv` an element is either itself, or a placeholder that stands alone. `"{x}"` is one whole argument: a text
//! as it is, a number or a truth value as JSON writes it; `x` must be in `required`. `"{x...}"` is each item of an
//! array of texts, and nothing if `x` is left out. Nothing is joined, split or quoted and no shell sees it, so a call
//! cannot add an argument where you wrote `"{x}"`. It can still send a text that starts with `-`: write `"--"` before
//! it, or exclude it by `pattern`. A brace that is meant as such is doubled: `"{{"`, `"}}"`.
//!
//! `input_schema` is JSON Schema 2020-12 with `type = "object"` and `additionalProperties = false`. Each property
//! must be used in `argv`, `cwd` or `image`, and must state its `type` itself. Keywords that do not exist are mistakes
//! (to a validator, `maxLenght` would be a comment); `format` is checked; patterns have no back-references, so that
//! none takes more than linear time; `$ref` reaches nothing outside the schema. Whatever the schema says, an argument
//! has no NUL and fewer than 131,072 bytes (execve(2)).
//!
//! ## Limits
//!
//! In `limits` and `max_limits`. Whole numbers with the unit in the name; none is ever "unlimited".
//!
//! | key | what it bounds | if left out | least and most |
//! |---|---|---|---|
//! | `wall_ms` | time from the start to the kill, milliseconds | 10 s | 1 ms, 7 days |
//! | `cpu_ms` | processor time of the whole tree, milliseconds | 10 s | 1 ms, 7 days |
//! | `memory_bytes` | memory of the whole tree, page cache, scratch and swap included | 256 MiB | 1 MiB, 1 TiB |
//! | `pids` | processes and threads at once, the cell's own init included | 64 | 2, 32768 |
//! | `cpu_millis` | share of processors, in thousandths of one | 1000 | 10, 1024000 |
//! | `tmp_bytes` | the scratch (`/tmp` and `/dev/shm`), which counts as memory | 64 MiB | 4 KiB, 1 TiB |
//! | `tmp_inodes` | files in the scratch | 16384 | 8, 2^30 |
//! | `output_keep_bytes` | what is kept of each output stream, head and tail; the rest is counted and hashed | 1 MiB | 1, 64 MiB |
//! | `output_limit_bytes` | both streams together; more kills the tree | 64 MiB | 1, 1 TiB |
//! | `file_bytes` | one file that the tool writes | 64 MiB | 1, 1 TiB |
//! | `open_files` | descriptors of one process | 256 | 8, 2^20 |
//!
//! ## What a folder in `allow.mounts` means
//!
//! The path in a call is compared with it as a text, part by part (`/data` holds `/data/x` and not `/database`). The
//! launcher then opens the path with the caller's own ids, following links, and compares where it really leads with
//! the folder: a call never shows what its caller could not read himself, nor what lies outside of the folder.

mod admitted;
mod bounds;
mod decide;
mod denied;
mod document;
mod fault;
#[cfg(test)]
mod fixtures;
mod malformed;
mod members;
mod paths;
mod policy;
mod principal;
mod refusal;
pub mod request;
mod schema;
mod template;
#[cfg(test)]
mod texts;
mod tool;
mod tools_file;

pub use admitted::{AdmittedCall, AdmittedMount, EffectClass};
pub use fault::{InvalidPolicy, PolicyFault, Position};
pub use policy::Policy;
pub use principal::{Principal, Role};
