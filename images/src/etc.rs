//! The files of the made-up `/etc`: enough for name lookups in libc, nothing about the machine.
//!
//! 65533 is the cell's own init and 65534 the tool, as mapped in the cell's user namespace. 65534 is also the kernel's
//! overflow id (/proc/sys/kernel/overflowuid), so files of owners that are not mapped show as `nobody`, too.

/// `/etc/passwd` (passwd(5)).
pub(crate) const PASSWD: &str = "\
root:x:0:0:root:/:/usr/sbin/nologin
cell:x:65533:65533:init of the cell:/:/usr/sbin/nologin
nobody:x:65534:65534:the tool:/tmp:/bin/sh
";

/// `/etc/group` (group(5)).
pub(crate) const GROUP: &str = "\
root:x:0:
cell:x:65533:
nogroup:x:65534:
";

/// `/etc/hosts` (hosts(5)).
pub(crate) const HOSTS: &str = "\
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
";

/// `/etc/nsswitch.conf` (nsswitch.conf(5)): files only, so that no lookup waits for a network that is not there.
pub(crate) const NSSWITCH: &str = "\
passwd: files
group: files
shadow: files
hosts: files
networks: files
protocols: files
services: files
ethers: files
rpc: files
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_passwd_and_group_has_its_fields_and_its_ids_agree() {
        for line in PASSWD.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            assert_eq!(fields.len(), 7, "{line}");
            assert!(GROUP.lines().any(|group| group.split(':').nth(2) == Some(fields[3])), "{line}");
        }
        assert!(GROUP.lines().all(|line| line.split(':').count() == 4));
    }

    #[test]
    fn lookups_use_files_only() {
        assert!(NSSWITCH.lines().all(|line| line.ends_with(": files")));
    }
}
