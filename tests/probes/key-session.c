// class: covert
// tries: name the session keyring, in which what is put stays for whoever has the same session
// stopped-by: seccomp
// source: keyctl(2), isolate 2.4 (keyrings)
#define _GNU_SOURCE
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long keyring = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    if (keyring < 0)
        refused("keyctl(KEYCTL_GET_KEYRING_ID)");
    reached("session keyring %ld", keyring);
}
