/* Prints the effective user id. A copy of it with the set-uid bit shows whether that bit counts. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("%d\n", (int)geteuid());
    return 0;
}
