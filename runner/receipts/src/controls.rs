//! Control reports as they stand in receipts and answers, bounded so that every outcome fits into its entry.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::{ControlReport, Facts, Sha256};

/// Most bytes of `requested` and of `observed`, as JSON, per control.
pub const OBSERVED_MAX_BYTES: usize = 512;

/// The items of `controls`, in the order of the reports. Lists that make `requested` or `observed` longer than
/// [`OBSERVED_MAX_BYTES`] are given as their count and the SHA-256 of their JSON form; if that is not enough, so is the
/// whole object.
#[must_use]
pub fn control_items(reports: &[ControlReport]) -> Vec<Value> {
    reports
        .iter()
        .map(|report| {
            let mut item = report.to_json();
            if let Some(members) = item.as_object_mut() {
                members.insert("requested".to_owned(), bounded(&report.requested));
                members.insert("observed".to_owned(), bounded(&report.observed));
            }
            item
        })
        .collect()
}

/// Facts as JSON of at most [`OBSERVED_MAX_BYTES`].
pub(crate) fn bounded(facts: &Facts) -> Value {
    let Value::Object(mut whole) = facts.to_json() else {
        return json!({});
    };
    while length(&whole) > OBSERVED_MAX_BYTES {
        let longest = whole
            .iter_mut()
            .filter(|(_, value)| value.is_array())
            .max_by_key(|(_, value)| value.to_string().len())
            .map(|(_, value)| value);
        match longest {
            Some(list) => *list = counted(list.as_array().map_or(0, Vec::len), list),
            None => return counted(whole.len(), &Value::Object(whole)),
        }
    }
    Value::Object(whole)
}

fn counted(count: usize, value: &Value) -> Value {
    let digest = Sha256(Hasher::digest(value.to_string()).into());
    json!({"count": count, "sha256": digest.hex()})
}

fn length(members: &Map<String, Value>) -> usize {
    serde_json::to_string(members).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use toolcell_types::Fact;

    use super::*;

    #[test]
    fn short_facts_stay_as_they_are() {
        let facts = Facts::new().with("max", 64_u64).with("empty", Fact::List(vec![]));
        assert_eq!(bounded(&facts), facts.to_json());
    }

    #[test]
    fn only_the_longest_list_is_counted_when_that_is_enough() {
        let long: Vec<String> = (0..100).map(|n| format!("/proc/{n}")).collect();
        let facts = Facts::new().with("paths", Fact::List(long)).with("modes", Fact::Ints(vec![1, 2]));
        let value = bounded(&facts);
        assert_eq!(value["paths"]["count"], 100);
        assert_eq!(value["paths"]["sha256"].as_str().unwrap().len(), 64);
        assert_eq!(value["modes"], json!([1, 2]));
    }

    #[test]
    fn whatever_comes_the_result_is_short() {
        let text = "\u{1}".repeat(600);
        let facts = Facts::new().with("text", text).with("n", 1_u64);
        let value = bounded(&facts);
        assert_eq!(value["count"], 2);
        assert!(value.to_string().len() <= OBSERVED_MAX_BYTES);
    }
}
