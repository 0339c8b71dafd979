use std::os::fd::OwnedFd;

use super::*;
use crate::folder::tests::private_directory;

fn folder(directory: &tempfile::TempDir) -> Folder {
    Folder::new(OwnedFd::from(File::open(directory.path()).unwrap())).unwrap()
}

fn entry(index: u64) -> Remembered {
    let group = vec![(vec![u8::try_from(index).unwrap(); 300], vec![1; 64])];
    Remembered { next_index: index, last_group: group, ..Remembered::nothing(Sha256([3; 32])) }
}

#[test]
fn what_was_remembered_last_is_read_again() {
    let directory = private_directory();
    let mut memory = Memory::create(&folder(&directory), Remembered::nothing(Sha256([3; 32]))).unwrap();
    for index in 1..6 {
        memory.remember(entry(index)).unwrap();
        assert_eq!(Memory::load(&folder(&directory)).unwrap().unwrap().now(), &entry(index));
    }
}

#[test]
fn a_shorter_memory_over_a_longer_one_is_read_whole() {
    let directory = private_directory();
    let mut memory = Memory::create(&folder(&directory), Remembered::nothing(Sha256([3; 32]))).unwrap();
    let long = vec![(vec![7; 50_000], vec![1; 64]); GROUP_MAX];
    memory.remember(Remembered { last_group: long.clone(), ..entry(1) }).unwrap();
    assert_eq!(Memory::load(&folder(&directory)).unwrap().unwrap().now().last_group, long);
    memory.remember(entry(2)).unwrap();
    memory.remember(entry(3)).unwrap();
    assert_eq!(Memory::load(&folder(&directory)).unwrap().unwrap().now(), &entry(3));
}

#[test]
fn a_write_cut_off_anywhere_leaves_the_memory_before_it() {
    let directory = private_directory();
    let mut memory = Memory::create(&folder(&directory), Remembered::nothing(Sha256([3; 32]))).unwrap();
    for index in 1..5 {
        memory.remember(entry(index)).unwrap();
    }
    // Sequence 5 lies in slot 0 and sequence 6 would go to slot 1, over sequence 4.
    let path = directory.path().join("memory.1");
    let before = std::fs::read(&path).unwrap();
    let after = encode(6, &entry(5)).unwrap();
    for cut in 0..=after.len() {
        let mut torn = before.clone();
        torn[..cut].copy_from_slice(&after[..cut]);
        std::fs::write(&path, &torn).unwrap();
        let expected = if cut == after.len() || torn[..after.len()] == after[..] { entry(5) } else { entry(4) };
        assert_eq!(Memory::load(&folder(&directory)).unwrap().unwrap().now(), &expected, "cut at {cut}");
    }
}

#[test]
fn any_flipped_byte_of_a_slot_makes_it_count_for_nothing() {
    let directory = private_directory();
    let mut memory = Memory::create(&folder(&directory), Remembered::nothing(Sha256([3; 32]))).unwrap();
    memory.remember(entry(1)).unwrap();
    let path = directory.path().join("memory.1");
    let whole = std::fs::read(&path).unwrap();
    for at in 0..encode(2, &entry(1)).unwrap().len() {
        let mut torn = whole.clone();
        torn[at] ^= 0x10;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(Memory::load(&folder(&directory)).unwrap().unwrap().now().next_index, 0, "byte {at}");
    }
}

#[test]
fn both_files_damaged_or_one_gone_is_an_error() {
    let directory = private_directory();
    drop(Memory::create(&folder(&directory), entry(1)).unwrap());
    let path = directory.path().join("memory.0");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(Memory::load(&folder(&directory)), Err(SignerError::Memory { .. })));
    std::fs::write(&path, &whole).unwrap();
    std::fs::remove_file(directory.path().join("memory.1")).unwrap();
    assert!(matches!(Memory::load(&folder(&directory)), Err(SignerError::Memory { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(Memory::load(&folder(&directory)).unwrap().is_none());
}
