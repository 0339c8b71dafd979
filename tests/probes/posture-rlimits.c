// class: posture
// kind: posture
// tries: see whether the limits per process are looser than those of a cell
// stopped-by: rlimits
// source: getrlimit(2)
#define _GNU_SOURCE
#include <sys/resource.h>

#include "probe.h"

/* Those that every cell has, whatever its request; see runner/cell/src/stages/rlimits.rs. */
static const struct {
    const char *name;
    int resource;
    rlim_t most;
} limits[] = {
    {"RLIMIT_CORE", RLIMIT_CORE, 1},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 64 * 1024},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, 64 * 1024},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, 1024},
};

int main(void)
{
    for (size_t n = 0; n < sizeof limits / sizeof *limits; n++) {
        struct rlimit now;
        if (getrlimit(limits[n].resource, &now) < 0)
            broken("getrlimit");
        if (now.rlim_max > limits[n].most)
            reached("%s up to %llu", limits[n].name, (unsigned long long)now.rlim_max);
    }
    stopped("getrlimit: none is looser");
}
