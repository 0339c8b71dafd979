use super::*;

/// The word at an offset, of a call with these arguments.
fn data(arch: u32, number: u32, arguments: [u64; 6]) -> impl Fn(u32) -> Option<u32> {
    move |at| match at {
        NUMBER_AT => Some(number),
        ARCH_AT => Some(arch),
        _ => {
            let word = (at - ARGUMENTS_AT) / 4;
            let argument = arguments[usize::try_from(word / 2).unwrap()];
            let shifted = if word.is_multiple_of(2) { argument } else { argument >> 32 };
            Some(u32::try_from(shifted & 0xffff_ffff).unwrap())
        }
    }
}

const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;

/// Arguments that the rules tell apart: constants that they compare with, their neighbours, and each bit.
fn arguments() -> Vec<[u64; 6]> {
    let bits = (0..64).map(|bit| 1_u64 << bit);
    let near = [0, 1, 2, 3, 4, 10, 22, 26, 50, 51, 52, 1024, 1026, 21522, 21532, 21539, 262_144, u64::from(u32::MAX)];
    let values: Vec<u64> = bits.chain(near).chain([u64::MAX, 1 << 40 | 21522, 5]).collect();
    let mut sets: Vec<[u64; 6]> = values.iter().map(|value| [*value; 6]).collect();
    for position in 0..6 {
        for value in &values {
            let mut set = [0; 6];
            set[position] = *value;
            sets.push(set);
            let mut set = [1; 6];
            set[position] = *value;
            sets.push(set);
        }
    }
    sets
}

#[test]
fn the_tree_answers_as_seccompiler_s_own_program_does() {
    for (name, whole, conditional) in super::super::sources().unwrap() {
        let made = dispatch(&whole, &conditional).unwrap();
        let numbers = (0..NUMBERS).chain([NUMBERS, 4096, 0x4000_0000, 0x4000_0000 + 59, 0x4000_0209, u32::MAX]);
        let (sets, mut told) = (arguments(), std::collections::BTreeSet::new());
        for number in numbers {
            let few = if answer(&whole, number).unwrap() == Answer::Depends { sets.as_slice() } else { &sets[..4] };
            for set in few {
                let wanted = run(&whole, data(X86_64, number, *set)).unwrap();
                assert_eq!(run(&made, data(X86_64, number, *set)).unwrap(), wanted, "{name} {number} {set:?}");
                let _new = told.insert(wanted);
            }
            let wanted = run(&whole, data(I386, number, [0; 6])).unwrap();
            assert_eq!(run(&made, data(I386, number, [0; 6])).unwrap(), wanted, "{name} {number} by another ABI");
        }
        // A filter that says the same to everything would make the comparison worthless.
        assert_eq!(told.len(), 2, "{name}");
        assert!(made.len() <= whole.len(), "{name}");
        assert!(name != "known" || made.len() * 4 < whole.len(), "{name}: {} instructions", made.len());
    }
}

#[test]
fn a_rule_on_arguments_is_not_answered_without_them() {
    let sources = super::super::sources().unwrap();
    let (_, refused, _) = sources.iter().find(|(name, ..)| *name == "refused").unwrap();
    let (ioctl, ptrace) = (16, 101);
    assert_eq!(answer(refused, ioctl).unwrap(), Answer::Depends);
    assert_eq!(answer(refused, ptrace).unwrap(), Answer::Fixed(0x0005_0001));
}

#[test]
fn a_program_of_another_make_is_an_error() {
    let load = plain(LOAD_WORD, NUMBER_AT);
    let unknown = vec![load.clone(), plain(0x87, 0)];
    assert_eq!(answer(&unknown, 0), Err(DispatchError::Instruction { at: 1, code: 0x87 }));
    assert_eq!(answer(&vec![load.clone()], 0), Err(DispatchError::Broken { at: 1 }));
    let (allow, kill) = (plain(RETURN, 0x7fff_0000), plain(RETURN, 0x8000_0000));
    let arch = plain(LOAD_WORD, ARCH_AT);
    let large =
        vec![arch, jump(JUMP_EQUAL, X86_64, 1, 0), kill.clone(), load, jump(JUMP_EQUAL, 5000, 0, 1), allow, kill];
    assert_eq!(dispatch(&large, &Vec::new()), Err(DispatchError::Number { number: 5000 }));
}
