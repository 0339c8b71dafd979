//! The image `host`: this machine's programs, read-only, with nothing of its configuration or data.

use toolcell_types::plan::ImageEntry;

use crate::etc;

/// Entries of the image `host`, in the order in which the launcher builds them.
///
/// * `/usr`, read-only;
/// * `/bin`, `/sbin` and the `/lib*` as they are on the host: links into `/usr` on a merged system, directories on
///   an older one, absent where absent (hier(7));
/// * a made-up `/etc`, and from the host's only what programs in `/usr` need to run: the loader's cache
///   (ld.so(8)), `/etc/alternatives` (update-alternatives(1)) and the public certificates.
///
/// Nothing of `/etc` that describes the machine or its users, and none of `/home`, `/root`, `/run`, `/srv`, `/var`.
#[must_use]
pub fn host() -> Vec<ImageEntry<'static>> {
    vec![
        ImageEntry::Bind { host: "/usr", inside: "/usr", optional: false },
        ImageEntry::Mirror { path: "/bin" },
        ImageEntry::Mirror { path: "/sbin" },
        ImageEntry::Mirror { path: "/lib" },
        ImageEntry::Mirror { path: "/lib32" },
        ImageEntry::Mirror { path: "/lib64" },
        ImageEntry::Mirror { path: "/libx32" },
        ImageEntry::Dir { inside: "/etc" },
        ImageEntry::File { inside: "/etc/passwd", content: etc::PASSWD },
        ImageEntry::File { inside: "/etc/group", content: etc::GROUP },
        ImageEntry::File { inside: "/etc/hosts", content: etc::HOSTS },
        ImageEntry::File { inside: "/etc/nsswitch.conf", content: etc::NSSWITCH },
        ImageEntry::Bind { host: "/etc/ld.so.cache", inside: "/etc/ld.so.cache", optional: true },
        ImageEntry::Bind { host: "/etc/alternatives", inside: "/etc/alternatives", optional: true },
        ImageEntry::Dir { inside: "/etc/ssl" },
        ImageEntry::Bind { host: "/etc/ssl/certs", inside: "/etc/ssl/certs", optional: true },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn inside<'a>(entry: &ImageEntry<'a>) -> &'a str {
        match entry {
            ImageEntry::Dir { inside }
            | ImageEntry::Link { inside, .. }
            | ImageEntry::File { inside, .. }
            | ImageEntry::Bind { inside, .. } => inside,
            ImageEntry::Mirror { path } => path,
        }
    }

    #[test]
    fn parents_come_before_children_and_no_path_stands_twice() {
        let mut seen = BTreeSet::from([""]);
        for entry in &host() {
            let path = inside(entry);
            let (parent, name) = path.rsplit_once('/').unwrap();
            assert!(seen.contains(parent), "{path} before its parent");
            assert!(!matches!(name, "" | "." | ".."), "{path}");
            assert!(seen.insert(path), "{path} twice");
        }
    }

    #[test]
    fn what_is_taken_from_the_host_is_this_list_and_no_more() {
        let taken: Vec<&str> = host()
            .iter()
            .filter_map(|entry| match entry {
                ImageEntry::Bind { host, .. } => Some(*host),
                ImageEntry::Mirror { path } => Some(*path),
                ImageEntry::Dir { .. } | ImageEntry::Link { .. } | ImageEntry::File { .. } => None,
            })
            .collect();
        let expected = [
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/etc/ld.so.cache",
            "/etc/alternatives",
            "/etc/ssl/certs",
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn only_what_a_program_cannot_do_without_is_demanded_of_the_host() {
        for entry in host() {
            if let ImageEntry::Bind { host, optional, .. } = entry {
                assert_eq!(optional, host != "/usr", "{host}");
            }
        }
    }

    #[test]
    fn the_launcher_s_own_directories_are_left_to_it() {
        for entry in &host() {
            assert!(!["/proc", "/dev", "/tmp", "/sys"].contains(&inside(entry)));
        }
    }
}
