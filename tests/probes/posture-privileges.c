// class: posture
// kind: posture
// tries: see whether an exec could give privileges
// stopped-by: no-new-privs seccomp landlock.fs landlock.net landlock.scope
// source: prctl(2) (PR_GET_NO_NEW_PRIVS)
#define _GNU_SOURCE
#include "probe.h"

int main(void)
{
    /* Whoever installs a filter or a Landlock domain without a capability sets it as well. */
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        stopped("prctl(PR_GET_NO_NEW_PRIVS): 1");
    reached("no_new_privs is not set");
}
