//! A set of controls, and which control falls with which.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ControlId;

/// Some of the 29 controls. On the wire between our own parts a number with one bit each, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct ControlSet(u32);

impl ControlSet {
    /// No control.
    pub const EMPTY: Self = Self(0);
    const ALL: u32 = (1 << 29) - 1;

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, id: ControlId) -> bool {
        self.0 & bit(id) != 0
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// With this one as well.
    #[must_use]
    pub fn with(self, id: ControlId) -> Self {
        Self(self.0 | bit(id))
    }

    /// All of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of this set that the other does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Its controls in the order of every report.
    pub fn iter(self) -> impl Iterator<Item = ControlId> {
        ControlId::ALL.into_iter().filter(move |id| self.has(*id))
    }

    /// What cannot hold without these, and so is not there either: see [`ControlId::falls_with`].
    #[must_use]
    pub fn falling(self) -> Self {
        self.iter().flat_map(ControlId::falls_with).copied().collect::<Self>().without(self)
    }
}

fn bit(id: ControlId) -> u32 {
    // A unit variant's discriminant is its place in the list, which a test compares.
    1 << (id as u32)
}

impl FromIterator<ControlId> for ControlSet {
    fn from_iter<I: IntoIterator<Item = ControlId>>(ids: I) -> Self {
        ids.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl Serialize for ControlSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ControlSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = u32::deserialize(deserializer)?;
        if bits & !Self::ALL == 0 { Ok(Self(bits)) } else { Err(de::Error::custom("a bit that is no control's")) }
    }
}

/// Controls that are part of what another makes.
const PARTS: [(ControlId, &[ControlId]); 3] = [
    // The limit would be that of the launcher's own user namespace, which is the machine's.
    (ControlId::NamespaceUser, &[ControlId::UsernsNested]),
    // The machine's mounts as they are: nothing of them can be changed for a cell.
    (
        ControlId::NamespaceMount,
        &[
            ControlId::RootReadonly,
            ControlId::MountsNosuidNodev,
            ControlId::DevMinimal,
            ControlId::ProcMasked,
            ControlId::TmpQuota,
        ],
    ),
    // What is mounted in the machine's /dev comes along where it cannot be left out.
    (ControlId::DevMinimal, &[ControlId::MountsNosuidNodev, ControlId::RootReadonly]),
];

impl ControlId {
    /// Controls that are part of what this one makes: with it switched off they may not hold either.
    #[must_use]
    pub fn falls_with(self) -> &'static [Self] {
        PARTS.iter().find(|(whole, _)| *whole == self).map_or(&[], |(_, parts)| parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of_in_the_order_of_the_list() {
        let set: ControlSet = [ControlId::Seccomp, ControlId::NamespaceUser, ControlId::CpuClock].into_iter().collect();
        assert!(set.iter().eq([ControlId::NamespaceUser, ControlId::Seccomp, ControlId::CpuClock]));
        assert!(ControlId::ALL.into_iter().collect::<ControlSet>().iter().eq(ControlId::ALL), "every bit is its own");
        assert!(ControlSet::EMPTY.is_empty() && !set.has(ControlId::NamespacePid));
    }

    #[test]
    fn what_falls_is_not_what_was_asked_for() {
        let set: ControlSet = [ControlId::NamespaceMount, ControlId::TmpQuota].into_iter().collect();
        assert!(set.falling().has(ControlId::RootReadonly) && !set.falling().has(ControlId::TmpQuota));
        assert!(ControlSet::EMPTY.falling().is_empty());
    }

    #[test]
    fn a_number_that_is_no_set_is_refused() {
        let set = ControlSet::EMPTY.with(ControlId::CpuClock);
        let bytes = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<ControlSet>(&bytes).unwrap(), set);
        assert!(serde_json::from_str::<ControlSet>(&(1_u32 << 29).to_string()).is_err());
    }
}
