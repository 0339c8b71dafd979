/* Has 64 MiB of static memory. With an argument it writes to all of it; prints what it wrote to. */
#include <stdio.h>
#include <string.h>

static char big[64 << 20];

int main(int argc, char **argv)
{
    (void)argv;
    size_t size = argc > 1 ? sizeof big : 1;
    memset(big, 'x', size);
    printf("%zu %c\n", size, big[size - 1]);
    return 0;
}
