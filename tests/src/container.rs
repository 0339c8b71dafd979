//! Containers of the machine's own Docker engine, in an image that is made here, with groups and volumes for them alone.
//!
//! Guarantees: an image, a container, a volume and a group are named after the test's process. All go with [`Grounds`],
//! after a failure too; those of a test process that was killed go when the next one begins.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::carried::{self, Report};
use crate::command::{Finished, command, run, workspace_root};
use crate::groups::{PREFIX, fresh_name, groups, is_removed, make_groups, named_groups};
use crate::host::cgroup_roots;
use crate::place::fresh_dir;

/// The tag of what the suite is carried in.
const SUITE: &str = "suite";

/// Ids that no test outside of a container has.
const FIRST_UID: u32 = 1_230_000_000;

/// What a container is given so that toolcell can work in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// The profile of system calls that lies beside the sources.
    Seccomp,
    /// The whole of /proc.
    SystemPaths,
    /// A group of the host's that was made for it, writable, per hierarchy.
    Groups,
    /// A volume for the state.
    State,
}

impl Flag {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Seccomp, Self::SystemPaths, Self::Groups, Self::State];
}

/// An image with the suite in it, and what containers of it use.
#[derive(Debug)]
pub struct Grounds {
    name: String,
}

impl Grounds {
    /// Makes the image from a root file system of our own, and a group per hierarchy.
    ///
    /// # Panics
    /// If the engine refuses.
    #[must_use]
    pub fn prepare() -> Self {
        sweep();
        let grounds = Self { name: fresh_name() };
        let dir = fresh_dir();
        let root = dir.path().join("root");
        carried::make_root(&root);
        grounds.import(&root, SUITE);
        drop(make_groups(&grounds.name));
        grounds
    }

    /// Makes an image of a root file system; the value is its name.
    ///
    /// # Panics
    /// If the engine refuses.
    pub fn import(&self, root: &Path, tag: &str) -> String {
        let image = self.image(tag);
        let mut import = command("sh");
        import.args(["-c", "tar -c -C \"$1\" . | docker import - \"$2\"", "sh"]).arg(root).arg(&image);
        assert_eq!(run(&mut import).expect_code(0).code, 0);
        image
    }

    /// Builds the image of the top-level `Dockerfile`, by the engine's own builder and with nothing from a registry: both
    /// bases are of these grounds, and the program is the one under test; the value is its name.
    ///
    /// # Panics
    /// If it does not build.
    #[must_use]
    pub fn build(&self) -> String {
        let dir = fresh_dir();
        let root = dir.path().join("root");
        carried::make_root(&root);
        carried::make_dir(&root.join("out"));
        fs::rename(root.join("suite/toolcell"), root.join("out/toolcell")).expect("the program can be moved");
        let arguments = [
            format!("BUILD_BASE={}", self.import(&root, "with-program")),
            format!("RUNTIME_BASE={}", self.image(SUITE)),
            "PACKAGES=".to_owned(),
        ];
        // Each stage with a name, so that none is left without one.
        for (tag, stage) in [("stage", &["--target", "build"][..]), ("built", &[])] {
            let mut docker = command("docker");
            docker
                .env("DOCKER_BUILDKIT", "0")
                .args(["build", "--network", "none", "--tag", &self.image(tag)])
                .args(stage);
            docker.args(arguments.iter().flat_map(|argument| ["--build-arg", argument])).arg(workspace_root());
            assert_eq!(run(&mut docker).expect_code(0).code, 0);
        }
        self.image("built")
    }

    /// The name of an image of these grounds.
    #[must_use]
    pub fn image(&self, tag: &str) -> String {
        format!("{}:{tag}", self.name)
    }

    /// Gives the groups to a user.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn give_groups_to(&self, uid: u32) {
        for group in groups(&self.name) {
            std::os::unix::fs::chown(&group, Some(uid), Some(uid)).expect("a group can be given away");
        }
    }

    /// A container to be started, with nothing but a name and no network.
    #[must_use]
    pub fn container(&self) -> Container<'_> {
        Container { grounds: self, flags: Vec::new(), image: self.image(SUITE) }
    }

    /// The options that stand for a flag; `state` is where the volume is seen.
    fn options(&self, flag: Flag, state: &str) -> Vec<String> {
        let pair = |name: &str, value: String| vec![name.to_owned(), value];
        match flag {
            Flag::Seccomp => {
                let profile = workspace_root().join("runner/cell/filters/container.json");
                pair("--security-opt", format!("seccomp={}", profile.display()))
            }
            Flag::SystemPaths => pair("--security-opt", "systempaths=unconfined".to_owned()),
            Flag::State => pair("-v", format!("{}:{state}", self.name)),
            Flag::Groups => groups(&self.name)
                .into_iter()
                .flat_map(|group| {
                    let top = group.parent().expect("a group lies in a hierarchy");
                    pair("-v", format!("{}:{}", group.display(), top.display()))
                })
                // Version 2 asks for the way between two groups to lie in the namespace of who moves a process.
                .chain(
                    cgroup_roots()
                        .iter()
                        .all(|root| root.is_unified())
                        .then(|| pair("--cgroupns", "host".to_owned()))
                        .into_iter()
                        .flatten(),
                )
                .collect(),
        }
    }
}

impl Drop for Grounds {
    fn drop(&mut self) {
        let left = clean(&self.name);
        assert!(std::thread::panicking() || left.is_empty(), "left: {left:#?}");
    }
}

/// A container before its start.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    grounds: &'a Grounds,
    flags: Vec<String>,
    image: String,
}

impl Container<'_> {
    /// Adds options as they are typed.
    #[must_use]
    pub fn with(mut self, options: &[&str]) -> Self {
        self.flags.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Adds flags, with the volume at root's default place for state.
    #[must_use]
    pub fn flags(self, flags: &[Flag]) -> Self {
        self.flags_with_state_at(flags, "/var/lib/toolcell")
    }

    /// Adds flags, with the volume there.
    #[must_use]
    pub fn flags_with_state_at(mut self, flags: &[Flag], state: &str) -> Self {
        self.flags.extend(flags.iter().flat_map(|flag| self.grounds.options(*flag, state)));
        self
    }

    /// Uses another image.
    #[must_use]
    pub fn of(mut self, image: &str) -> Self {
        image.clone_into(&mut self.image);
        self
    }

    fn command(&self, kind: &[&str], words: &[&str]) -> std::process::Command {
        let mut docker = command("docker");
        let label = format!("toolcell-tests={}", self.grounds.name);
        docker.arg("run").args(kind).args(["--network", "none", "--label", &label]).args(&self.flags);
        docker.arg(&self.image).args(words);
        docker
    }

    /// Runs a command line in it to its end.
    ///
    /// # Panics
    /// If it takes longer than a minute.
    #[must_use]
    pub fn run(&self, words: &[&str]) -> Finished {
        run(&mut self.command(&["--rm"], words))
    }

    /// Starts it in the background, with its own command, under the name that these grounds have.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(&self) -> Started<'_> {
        let name = &self.grounds.name;
        assert_eq!(run(&mut self.command(&["--detach", "--name", name], &[])).expect_code(0).code, 0);
        Started(name)
    }

    /// Runs this test binary in it with these words on its command line.
    ///
    /// # Panics
    /// If the engine cannot be started.
    #[must_use]
    pub fn run_suite(&self, words: &[&str], limit: Duration) -> Report {
        let dir = fresh_dir();
        let path = dir.path().join("results");
        let results = fs::File::create(&path).expect("a file for the results");
        let errors = results.try_clone().expect("a descriptor can be doubled");
        let line: Vec<&str> = std::iter::once("/suite/suite.sh").chain(words.iter().copied()).collect();
        let begin = Instant::now();
        let container = self.clone().with(&["--env", &format!("TOOLCELL_TESTS_FIRST_UID={FIRST_UID}")]);
        let mut docker = container.command(&["--rm"], &line);
        let mut running =
            docker.stdout(Stdio::from(results)).stderr(Stdio::from(errors)).spawn().expect("docker starts");
        while running.try_wait().expect("our own child can be waited for").is_none() {
            if begin.elapsed() > limit {
                drop(clean_containers(&self.grounds.name));
                running.wait().expect("our own child can be waited for");
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
        Report::read(text, begin.elapsed())
    }
}

/// A container in the background. It goes with its grounds.
#[derive(Debug)]
pub struct Started<'a>(&'a str);

impl Started<'_> {
    /// Runs a command line in it.
    #[must_use]
    pub fn exec(&self, words: &[&str]) -> Finished {
        run(command("docker").args(["exec", self.0]).args(words))
    }

    /// Ends its first process as an operator does; the value is its exit code, and what it printed.
    ///
    /// # Panics
    /// If the engine does not say how it ended.
    #[must_use]
    pub fn stop(&self) -> (i32, String) {
        assert_eq!(run(command("docker").args(["stop", self.0])).expect_code(0).code, 0);
        let inspect = ["inspect", "--format", "{{.State.ExitCode}}", self.0];
        let code = run(command("docker").args(inspect)).expect_code(0).text();
        let said = run(command("docker").args(["logs", self.0])).expect_code(0).stderr;
        (code.trim().parse().expect("the engine tells the exit code"), said)
    }
}

/// Removes what test processes left that are not there any more.
fn sweep() {
    let listed = run(command("docker").args(["image", "ls", "--format", "{{.Repository}}"])).text();
    let volumes = run(command("docker").args(["volume", "ls", "--format", "{{.Name}}"])).text();
    let groups = named_groups();
    let names = listed.lines().chain(volumes.lines()).chain(groups.iter().map(String::as_str));
    for name in names.filter_map(|name| name.strip_prefix(PREFIX)) {
        let owner = name.split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(owner).exists() {
            // Another test process may be at it as well.
            drop(clean(&format!("{PREFIX}{name}")));
        }
    }
}

/// Removes all of that name; the value is what stayed.
fn clean(name: &str) -> Vec<String> {
    let mut left = clean_containers(name);
    let images = run(command("docker").args(["image", "ls", "--format", "{{.Repository}}:{{.Tag}}", name])).text();
    for image in images.lines() {
        left.extend(complaint(&["image", "rm", "--force", image]));
    }
    left.extend(complaint(&["volume", "rm", "--force", name]));
    left.extend(groups(name).iter().filter(|group| !is_removed(group)).map(|group| group.display().to_string()));
    left
}

fn clean_containers(name: &str) -> Vec<String> {
    let filter = format!("label=toolcell-tests={name}");
    let containers = run(command("docker").args(["container", "ls", "--all", "--quiet", "--filter", &filter])).text();
    containers
        .lines()
        .filter_map(|container| complaint(&["container", "rm", "--force", "--volumes", container]))
        .collect()
}

fn complaint(words: &[&str]) -> Option<String> {
    let finished = run(command("docker").args(words));
    (finished.code != 0).then(|| format!("docker {}: {}", words.join(" "), finished.stderr))
}
