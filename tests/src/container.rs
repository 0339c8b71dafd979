//! Containers of the machine's own Docker engine, in an image that is made here, with groups and volumes for them alone.
//!
//! Guarantees: an image, a container, a volume and a group are named after the test's process. All go with [`Grounds`],
//! after a failure too; those of a test process that was killed go when the next one begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::carried::{self, Report};
use crate::command::{Finished, Live, command, run, workspace_root};
use crate::host::cgroup_roots;
use crate::place::fresh_dir;

/// Groups of the machine's, one per hierarchy, that go with it.
#[derive(Debug)]
pub struct Groups(String);

impl Groups {
    /// A name that nobody has; who gets it makes them.
    #[must_use]
    pub fn name() -> Self {
        Self(fresh_name())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let stays: Vec<PathBuf> = groups(&self.0).into_iter().filter(|group| !is_removed(group)).collect();
        assert!(std::thread::panicking() || stays.is_empty(), "left: {stays:#?}");
    }
}

fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Begins every name.
const PREFIX: &str = "toolcell-tests-";
/// What version 1 has in trees of their own.
const CONTROLLERS: [&str; 5] = ["memory", "cpu", "cpuacct", "pids", "freezer"];
/// The tag of what the suite is carried in.
const SUITE: &str = "suite";

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
        for group in groups(&grounds.name) {
            fs::create_dir(&group).unwrap_or_else(|error| panic!("{}: {error}", group.display()));
        }
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

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut docker = command("docker");
        let label = format!("toolcell-tests={}", self.grounds.name);
        docker.args(["run", "--rm", "--network", "none", "--label", &label]).args(&self.flags);
        docker.arg(&self.image).args(words);
        docker
    }

    /// Runs a command line in it to its end.
    ///
    /// # Panics
    /// If it takes longer than a minute.
    #[must_use]
    pub fn run(&self, words: &[&str]) -> Finished {
        run(&mut self.command(words))
    }

    /// Starts it in the background, with its own command, under the name that these grounds have.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(&self) -> Started<'_> {
        let name = &self.grounds.name;
        let container = self.clone().with(&["--detach", "--name", name]);
        assert_eq!(run(&mut container.command(&[])).expect_code(0).code, 0);
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
        let mut docker = self.command(&line);
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
    /// If it does not end within the engine's ten seconds.
    #[must_use]
    pub fn stop(&self) -> (i32, String) {
        let follow = Live::start(command("docker").args(["logs", "--follow", self.0]));
        let wait = Live::start(command("docker").args(["wait", self.0]));
        assert_eq!(run(command("docker").args(["stop", self.0])).expect_code(0).code, 0);
        let code = wait.finish().text().trim().parse().expect("the engine tells the exit code");
        (code, follow.finish().stderr)
    }
}

/// The groups of that name: one per hierarchy that cells need.
fn groups(name: &str) -> Vec<PathBuf> {
    let roots = cgroup_roots();
    let is_needed = |root: &&crate::CgroupRoot| CONTROLLERS.iter().any(|controller| root.has(controller));
    let version_1 = roots.iter().any(|root| !root.is_unified() && root.has("memory"));
    let needed = roots.iter().filter(is_needed).filter(|root| root.is_unified() != version_1);
    needed.map(|root| root.path.join(name)).collect()
}

/// Removes what test processes left that are not there any more.
fn sweep() {
    let listed = run(command("docker").args(["image", "ls", "--format", "{{.Repository}}"])).text();
    let volumes = run(command("docker").args(["volume", "ls", "--format", "{{.Name}}"])).text();
    for name in listed.lines().chain(volumes.lines()).filter_map(|name| name.strip_prefix(PREFIX)) {
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
    containers.lines().filter_map(|container| complaint(&["container", "rm", "--force", container])).collect()
}

fn complaint(words: &[&str]) -> Option<String> {
    let finished = run(command("docker").args(words));
    (finished.code != 0).then(|| format!("docker {}: {}", words.join(" "), finished.stderr))
}

/// Removes a group and those below; a member that was killed with its container may take a moment to be gone.
fn is_removed(group: &Path) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        remove_tree(group);
        if !group.exists() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Of a group's files none can be removed, and none need be.
fn remove_tree(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    // Busy, or gone: the caller looks.
    drop(fs::remove_dir(group));
}
