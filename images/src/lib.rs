//! What the root of a cell is made of.
//!
//! An image is a list of [`ImageEntry`] that the daemon puts into a plan and the launcher carries out. In this version
//! there is one, `host`: the machine's own programs and libraries, read-only, and a made-up `/etc`.
//!
//! Guarantees: entries are absolute paths without `.` or `..`, parents before children, and name nothing of the host
//! beyond what [`host`] lists. Does not: touch the file system, mount, start anything, or provide `/proc`, `/dev` and
//! `/tmp`, which every cell gets from the launcher whatever its image.

mod etc;
mod host;

pub use host::host;
use toolcell_types::ImageRef;
use toolcell_types::plan::ImageEntry;

/// Names of all images, sorted.
pub const NAMES: &[&str] = &["host"];

/// An image that a cell can be made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// How answers and receipts name it.
    pub reference: ImageRef,
    /// What the launcher builds, in this order.
    pub entries: Vec<ImageEntry<'static>>,
}

/// The image of that name, or none. Names are compared byte for byte.
#[must_use]
pub fn find(name: &str) -> Option<Image> {
    match name {
        "host" => Some(Image {
            // No digest: /usr may change between two calls, and a receipt must not claim otherwise.
            reference: ImageRef { name: name.to_owned(), digest: None, pinned: false },
            entries: host(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_found_and_nothing_else_is() {
        for name in NAMES {
            assert_eq!(find(name).unwrap().reference.name, *name);
        }
        for name in ["", "Host", "host ", "../host", "debian"] {
            assert_eq!(find(name), None, "{name:?}");
        }
    }

    #[test]
    fn the_host_image_claims_no_digest_and_is_not_pinned() {
        let reference = find("host").unwrap().reference;
        assert_eq!((reference.digest, reference.pinned), (None, false));
    }
}
