// class: posture
// kind: posture
// tries: see whether an exec could give privileges
// stopped-by: no-new-privs
// source: prctl(2) (PR_GET_NO_NEW_PRIVS)
#define _GNU_SOURCE
#include "probe.h"

int main(void)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        stopped("prctl(PR_GET_NO_NEW_PRIVS): 1");
    reached("no_new_privs is not set");
}
