use toolcell_types::{Effect, Status};

use super::*;
use crate::samples::{self, STDOUT};
use crate::statement::Outcome;

fn payload_of(outcome: &Outcome) -> Vec<u8> {
    let [first, second, _] = samples::payloads();
    outcome.draft().unwrap().finish(&samples::after(&[&first, &second])).unwrap()
}

#[test]
fn the_answer_is_the_golden_one_and_made_again_the_same() {
    let [_, _, payload] = samples::payloads();
    let made = answer(&payload, STDOUT, b"", samples::sign(&payload)).unwrap();
    assert_eq!((made.status, made.effect, made.controls.len()), (Status::Ok, Effect::None, 29));
    assert_eq!(made.stdout, OutputText::Text("42\n".to_owned()));
    let bytes = encode(&made).unwrap();
    samples::golden("answer.json", &bytes);
    let read: Answer = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(encode(&read).unwrap(), bytes);
    let again = answer(&payload, STDOUT, b"", read.receipt).unwrap();
    assert_eq!(encode(&again).unwrap(), bytes);
}

#[test]
fn output_that_is_no_utf8_is_base64_and_dropped_bytes_are_told() {
    let kept = [0xff_u8, 0xfe];
    let stdout = Stream { size_bytes: 10, kept_bytes: 2, head_bytes: 1, dropped_bytes: 8, ..samples::stream(&kept) };
    let payload = payload_of(&Outcome { stdout, ..samples::outcome() });
    let made = answer(&payload, &kept, b"", samples::sign(&payload)).unwrap();
    assert_eq!(made.stdout, OutputText::Base64 { base64: "//4=".to_owned() });
    assert_eq!(made.truncated.stdout.map(|dropped| dropped.dropped_bytes), Some(8));
    assert_eq!(made.truncated.stderr, None);
}

#[test]
fn bytes_envelope_and_kind_must_belong_to_the_payload() {
    let [first, second, payload] = samples::payloads();
    let envelope = || samples::sign(&payload);
    assert!(matches!(
        answer(&payload, b"43\n", b"", envelope()),
        Err(AssembleError::OtherBytes { stream: "stdout", .. })
    ));
    assert!(matches!(
        answer(&payload, STDOUT, b"!", envelope()),
        Err(AssembleError::OtherBytes { stream: "stderr", .. })
    ));
    assert!(matches!(answer(&second, STDOUT, b"", envelope()), Err(AssembleError::OtherEnvelope)));
    let intent = samples::sign(&second);
    assert!(matches!(answer(&second, STDOUT, b"", intent.clone()), Err(AssembleError::OtherKind { .. })));
    assert_eq!(running(&second, intent).unwrap().call_id.as_str(), "sum-1");
    assert!(matches!(running(&first, samples::sign(&first)), Err(AssembleError::OtherKind { .. })));
}

#[test]
fn a_stored_answer_lends_its_output_and_nothing_else() {
    for kept in [b"42\n".as_slice(), &[0xff, 0xfe]] {
        let payload = payload_of(&Outcome { stdout: samples::stream(kept), ..samples::outcome() });
        let made = answer(&payload, kept, b"", samples::sign(&payload)).unwrap();
        let mut edited = made.clone();
        edited.tool = "other".to_owned();
        edited.effect = Effect::Unknown;
        let again_from = |answer: &Answer| again(&payload, &encode(answer).unwrap(), samples::sign(&payload));
        assert_eq!(again_from(&edited).unwrap(), made);
        edited.stdout = OutputText::Text("43\n".to_owned());
        assert!(matches!(again_from(&edited), Err(AssembleError::OtherBytes { .. })));
        edited.stdout = OutputText::Base64 { base64: "?".to_owned() };
        assert!(matches!(again_from(&edited), Err(AssembleError::Stored { .. })));
        assert!(matches!(again(&payload, b"{}", samples::sign(&payload)), Err(AssembleError::Stored { .. })));
    }
}
