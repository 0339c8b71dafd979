//! What a tool sees of processes.

use toolcell_tests::{Instance, Need, Request, Running, needs};
use toolcell_types::Verdict;

use super::stdout;

/// Starts a child and lists everybody as `ps` does; asks for process 1 by name and by signal.
const LIST: &str = "sleep 30 & child=$!
until [ \"$(cat /proc/$child/comm)\" = sleep ]; do :; done
for dir in /proc/[0-9]*; do
    [ -r $dir/comm ] && read -r name < $dir/comm && echo ${dir#/proc/} $name
done
[ -e /proc/1 ] && echo first is there || echo first is not there
kill -0 1 2>/dev/null && echo first can be signalled || echo first can not be signalled
kill -0 $child && echo child can be signalled
[ $(cat /proc/$$/stat | cut -d' ' -f4) = 1 ] && echo first is the parent
kill $child";

#[test]
fn only_the_tool_s_own_processes_are_listed_and_not_the_first_one() {
    needs!(Need::Root);
    let instance = Instance::start();
    let other = Running::until_up(&instance, &Request::program("waits", &[]));
    let seen = stdout(&instance.call(&Request::shell(LIST)));
    let listed: Vec<(u32, &str)> = seen
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(id, name)| Some((id.parse().ok()?, name)))
        .collect();
    let names: Vec<&str> = listed.iter().map(|(_, name)| *name).collect();
    assert_eq!(listed.len(), 2, "the shell and its child: {seen}");
    assert!(names.contains(&"sh") && names.contains(&"sleep"), "{seen}");
    assert!(listed.iter().all(|(id, _)| *id != 1), "{seen}");
    let words: Vec<&str> = seen.lines().filter(|line| line.starts_with(['f', 'c'])).collect();
    let expected = [
        "first is not there",
        "first can not be signalled",
        "child can be signalled",
        // The control: it is not shown, but it is there.
        "first is the parent",
    ];
    assert_eq!(words, expected, "{seen}");
    assert_eq!(other.cancel().status() / 100, 2);
    assert_eq!(other.answer().verdict, Verdict::Cancelled);
}
