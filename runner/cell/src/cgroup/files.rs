//! Files of a hierarchy: opened, never created; each error with its path.

use std::fs;
use std::io;
use std::path::Path;

use super::CgroupError;

pub(super) fn access(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Access { action, path, source }
}

pub(super) fn mismatch<T>(path: &Path, wanted: &str, got: &str) -> Result<T, CgroupError> {
    Err(CgroupError::Mismatch { path: path.to_owned(), wanted: wanted.to_owned(), got: got.trim().to_owned() })
}

pub(super) fn read(path: &Path) -> Result<String, CgroupError> {
    fs::read_to_string(path).map_err(access("read", path))
}

pub(super) fn number(path: &Path) -> Result<u64, CgroupError> {
    let text = read(path)?;
    text.trim().parse().map_err(|_parse| CgroupError::NotANumber { path: path.to_owned(), got: text.trim().to_owned() })
}

pub(super) fn write(path: &Path, value: u64) -> Result<(), CgroupError> {
    write_text(path, &value.to_string())
}

/// Opens what the kernel made; never creates.
pub(super) fn write_text(path: &Path, text: &str) -> Result<(), CgroupError> {
    let open = fs::OpenOptions::new().write(true).open(path);
    open.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes())).map_err(access("write", path))
}

pub(super) fn remove_dir(path: &Path) -> Result<(), CgroupError> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(access("remove", path)(error)),
    }
}
