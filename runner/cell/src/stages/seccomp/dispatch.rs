//! A filter that finds its answer by halving instead of by trying every rule in turn.
//!
//! seccompiler's program asks for one system call number after the other. The kernel converts, compiles and tries the
//! whole program once per number whenever it is installed (seccomp_cache_prepare in kernel/seccomp.c), which for a long
//! one takes longer than the rest of a cell's set-up. What its answer is for each number without a look at the
//! arguments is worked out here once, by running it; the result is a search tree over ranges of equal answers, in
//! front of a program of the rules that look at arguments.
//!
//! Guarantees: the same answer as seccompiler's program for every number, argument and architecture; a program of
//! another make than expected is not taken apart but an error.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, sock_filter};

/// System call numbers below this are run through the program; it must not compare with a number from here on. 64-bit
/// calls have numbers below 512 and, of this architecture's own, none above; new ones go on from 470.
const NUMBERS: u32 = 1024;

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_NOT_LESS: u16 = 0x35;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
/// Offsets in `struct seccomp_data` (seccomp(2)).
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// What a program says to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Always this action.
    Fixed(u32),
    /// It depends on the arguments.
    Depends,
}

/// Why a program could not be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DispatchError {
    /// An instruction that seccompiler did not make when this was written.
    #[error("instruction {at} of a filter, {code:#x}, is not known")]
    Instruction {
        /// Where.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// It runs over its end, or loads what is no field.
    #[error("a filter does not end, or loads from {at}")]
    Broken {
        /// Where.
        at: usize,
    },
    /// It names a number that is too large.
    #[error("a filter names the system call {number}, and only those below {NUMBERS} are expected")]
    Number {
        /// Which.
        number: u32,
    },
    /// Too long for a jump.
    #[error("a search tree of {ranges} ranges is too large")]
    Size {
        /// How many ranges.
        ranges: usize,
    },
}

/// `whole` as a search tree, where that is shorter, with `conditional`, the program of its rules with arguments alone, at the end.
pub(super) fn dispatch(whole: &BpfProgram, conditional: &BpfProgram) -> Result<BpfProgram, DispatchError> {
    let mut answers = BTreeMap::new();
    for number in 0..NUMBERS {
        let _new = answers.insert(number, answer(whole, number)?);
    }
    let other = answer(whole, NUMBERS)?;
    for named in numbers_named(whole) {
        if named >= NUMBERS {
            return Err(DispatchError::Number { number: named });
        }
    }
    let ranges = ranges(&answers, other);
    // As seccompiler begins: an architecture that is not the filter's, then the number.
    let Some(prelude) = whole.get(..4) else { return Err(DispatchError::Broken { at: 0 }) };
    let mut program = prelude.to_vec();
    let tree = tree(&ranges)?;
    let after = tree.len();
    for (at, node) in tree.into_iter().enumerate() {
        program.push(match node {
            Node::Ask { from, not_below } => jump(JUMP_NOT_LESS, from, not_below, 0),
            Node::Answer(Answer::Fixed(action)) => plain(RETURN, action),
            Node::Answer(Answer::Depends) => {
                let ahead = after.saturating_sub(at).saturating_sub(1);
                plain(JUMP, u32::try_from(ahead).map_err(|_large| DispatchError::Size { ranges: after })?)
            }
        });
    }
    if ranges.iter().any(|(_, answer)| *answer == Answer::Depends) {
        program.extend_from_slice(conditional);
    }
    // A program of few rules may be the shorter one as it is.
    Ok(if program.len() < whole.len() { program } else { whole.clone() })
}

/// Ranges of equal answers, each from its first number to the next one's.
fn ranges(answers: &BTreeMap<u32, Answer>, other: Answer) -> Vec<(u32, Answer)> {
    let mut ranges: Vec<(u32, Answer)> = Vec::new();
    for (number, answer) in answers.iter().map(|(number, answer)| (*number, *answer)).chain([(NUMBERS, other)]) {
        if ranges.last().is_none_or(|(_, last)| *last != answer) {
            ranges.push((number, answer));
        }
    }
    ranges
}

#[derive(Debug, Clone, Copy)]
enum Node {
    /// Numbers from `from` on go on that many instructions further.
    Ask {
        from: u32,
        not_below: u8,
    },
    Answer(Answer),
}

fn tree(ranges: &[(u32, Answer)]) -> Result<Vec<Node>, DispatchError> {
    let middle = ranges.len().div_ceil(2);
    match (ranges, ranges.get(middle)) {
        ([], _) => Err(DispatchError::Size { ranges: 0 }),
        ([(_, answer)], _) => Ok(vec![Node::Answer(*answer)]),
        (_, None) => Err(DispatchError::Size { ranges: ranges.len() }),
        (_, Some((from, _))) => {
            let (below, not_below) = ranges.split_at(middle);
            let (below, not_below) = (tree(below)?, tree(not_below)?);
            let skip = u8::try_from(below.len()).map_err(|_large| DispatchError::Size { ranges: ranges.len() })?;
            Ok([vec![Node::Ask { from: *from, not_below: skip }], below, not_below].concat())
        }
    }
}

fn plain(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// What the program says to a number of its own architecture, if it says so without a look at the arguments.
fn answer(program: &BpfProgram, number: u32) -> Result<Answer, DispatchError> {
    let arch = program.get(1).map_or(0, |instruction| instruction.k);
    let ended = run(program, |at| match at {
        NUMBER_AT => Some(number),
        ARCH_AT => Some(arch),
        _ => None,
    })?;
    Ok(ended.map_or(Answer::Depends, Answer::Fixed))
}

/// Every constant that the number is compared with, on the way of a number that equals none.
fn numbers_named(program: &BpfProgram) -> Vec<u32> {
    let mut loaded = None;
    let mut named = Vec::new();
    for instruction in program {
        match instruction.code {
            LOAD_WORD => loaded = Some(instruction.k),
            JUMP_EQUAL | JUMP_GREATER | JUMP_NOT_LESS if loaded == Some(NUMBER_AT) => named.push(instruction.k),
            _ => {}
        }
    }
    named
}

/// Runs a program of seccompiler's as the kernel does. `field` gives the word at an offset of the data; none ends the
/// run without an action.
fn run(program: &BpfProgram, field: impl Fn(u32) -> Option<u32>) -> Result<Option<u32>, DispatchError> {
    let (mut at, mut word) = (0_usize, 0_u32);
    while let Some(instruction) = program.get(at) {
        let sock_filter { code, jt, jf, k } = *instruction;
        let mut ahead = 0_usize;
        let mut jump_if = |is: bool| ahead = usize::from(if is { jt } else { jf });
        match code {
            LOAD_WORD => match field(k) {
                Some(loaded) => word = loaded,
                None if k >= ARGUMENTS_AT => return Ok(None),
                None => return Err(DispatchError::Broken { at }),
            },
            JUMP => ahead = usize::try_from(k).map_err(|_large| DispatchError::Broken { at })?,
            JUMP_EQUAL => jump_if(word == k),
            JUMP_GREATER => jump_if(word > k),
            JUMP_NOT_LESS => jump_if(word >= k),
            AND => word &= k,
            RETURN => return Ok(Some(k)),
            _ => return Err(DispatchError::Instruction { at, code }),
        }
        at = at.saturating_add(ahead).saturating_add(1);
    }
    Err(DispatchError::Broken { at })
}

#[cfg(test)]
mod tests;
