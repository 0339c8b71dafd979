// class: init
// tries: take the user id of the cell's init
// stopped-by: capabilities
// source: setresuid(2)
#define _GNU_SOURCE
#include <unistd.h>

#include "probe.h"

/* Inside; see runner/cell/src/stages/mod.rs. */
#define INIT_ID 65533

int main(void)
{
    if (setresuid(INIT_ID, INIT_ID, INIT_ID) < 0)
        refused("setresuid");
    reached("user id %d", INIT_ID);
}
