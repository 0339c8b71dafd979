/* floods BYTES: writes that many bytes of `x` without a newline to standard output, for ever if 0; then exits 0. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char block[65536];
    unsigned long long left = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int endless = left == 0;
    memset(block, 'x', sizeof block);
    while (endless || left > 0) {
        size_t n = endless || left > sizeof block ? sizeof block : (size_t)left;
        ssize_t done = write(1, block, n);
        if (done < 0)
            return 1;
        if (!endless)
            left -= (unsigned long long)done;
    }
    return 0;
}
