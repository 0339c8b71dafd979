//! Vectors: what the profile takes, what it refuses, and the one form that each value has.

use super::*;

fn canonical_text(text: &str) -> String {
    String::from_utf8(canonical(&parse_strict(text.as_bytes()).unwrap()).unwrap()).unwrap()
}

fn refused(text: &str) -> StrictJsonError {
    parse_strict(text.as_bytes()).expect_err(text)
}

#[test]
fn members_are_ordered_by_utf16_units_so_a_supplementary_key_comes_before_u_e000_to_u_ffff() {
    // U+1F600 is D83D DE00 in UTF-16 and sorts before U+E000 and U+FFFD; by UTF-8 bytes it would sort behind.
    let text = "{\"\u{fffd}\":1,\"\u{1f600}\":2,\"\u{e000}\":3,\"z\":4}";
    assert_eq!(canonical_text(text), "{\"z\":4,\"\u{1f600}\":2,\"\u{e000}\":3,\"\u{fffd}\":1}");
    assert_eq!(canonical_text(r#"{"\ufffd":1,"\ud83d\ude00":2}"#), "{\"\u{1f600}\":2,\"\u{fffd}\":1}");
}

#[test]
fn the_example_of_rfc_8785_has_its_canonical_form() {
    let text = r#"{"numbers":[333333333.33333329,4.50,2e-3,0.000000000000000000000000001],
        "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
    let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,4.5,0.002,1e-27],\
        \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
    assert_eq!(canonical_text(text), expected);
}

#[test]
fn a_member_may_stand_twice_in_different_objects_but_not_in_one() {
    assert!(parse_strict(br#"[{"a":1},{"a":{"a":2}}]"#).is_ok());
    for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"y":{"a":1,"b":2,"a":3}}]}"#, r#"{"a":1,"\u0061":2}"#] {
        let error = refused(text);
        assert!(matches!(&error, StrictJsonError::DuplicateMember { key, .. } if key == "a"), "{text}: {error}");
    }
    assert_eq!(
        refused("{\"a\":1,\n \"a\":2}").to_string(),
        "member \"a\" stands twice in one object, the second time at line 2 column 4"
    );
}

#[test]
fn whole_numbers_are_taken_up_to_two_to_the_53_minus_one_however_they_are_written() {
    for text in ["9007199254740991", "-9007199254740991", "9007199254740991.0", "9.007199254740991e15"] {
        let value = parse_strict(text.as_bytes()).unwrap();
        assert_eq!(value.as_i64().map(i64::unsigned_abs), Some(NUMBER_MAX), "{text}");
    }
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "9007199254740992.0",
        "9007199254740991.5",
        "1e16",
        "1e300",
        "-1e300",
    ] {
        assert!(matches!(refused(text), StrictJsonError::NumberTooLarge { .. }), "{text}");
        assert!(matches!(refused(&format!("{{\"a\":[{text}]}}")), StrictJsonError::NumberTooLarge { .. }), "{text}");
    }
}

#[test]
fn numbers_that_no_double_holds_and_numbers_that_are_no_json_are_refused() {
    for text in ["1e400", "-1e400", "NaN", "Infinity", "01", "+1", "1.", ".5", "0x1", "1_000", "-"] {
        assert!(matches!(refused(text), StrictJsonError::Syntax { .. }), "{text}");
    }
}

#[test]
fn negative_zero_is_refused_and_zero_is_not() {
    for text in ["-0", "-0.0", "-0e5", "-1e-400", "[-0]"] {
        assert!(matches!(refused(text), StrictJsonError::NegativeZero { .. }), "{text}");
    }
    for text in ["0", "0.0", "0e5"] {
        assert_eq!(canonical_text(text), "0");
    }
}

#[test]
fn one_whole_number_has_one_value_and_one_text() {
    for text in ["1", "1.0", "1e0", "10e-1"] {
        assert_eq!(parse_strict(text.as_bytes()).unwrap(), Value::from(1_u64), "{text}");
        assert_eq!(canonical_text(text), "1");
    }
    assert_eq!(parse_strict(b"-3.0").unwrap(), Value::from(-3_i64));
}

#[test]
fn surrogates_come_in_pairs() {
    assert_eq!(parse_strict(br#""\ud83d\ude00""#).unwrap(), Value::from("\u{1f600}"));
    for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800x""#, r#"{"\udfff":1}"#] {
        assert!(matches!(refused(text), StrictJsonError::Syntax { .. }), "{text}");
    }
}

#[test]
fn depth_32_is_taken_and_33_is_not() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_strict(nested(32).as_bytes()).is_ok());
    assert!(matches!(refused(&nested(33)), StrictJsonError::TooDeep { .. }));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(parse_strict(objects(32).as_bytes()).is_ok());
    assert!(matches!(refused(&objects(33)), StrictJsonError::TooDeep { .. }));
    assert!(matches!(refused(&"[".repeat(1_000_000)), StrictJsonError::TooDeep { .. }));
}

#[test]
fn ten_thousand_values_are_taken_and_one_more_is_not() {
    let list = |items: usize| format!("[{}]", vec!["1"; items].join(","));
    assert!(parse_strict(list(NODES_MAX - 1).as_bytes()).is_ok());
    assert!(matches!(refused(&list(NODES_MAX)), StrictJsonError::TooManyValues { .. }));
}

#[test]
fn byte_order_marks_other_encodings_and_trailing_garbage_are_refused() {
    assert!(matches!(refused("\u{feff}{}"), StrictJsonError::ByteOrderMark));
    let error = parse_strict(b"{\"a\":\"\xff\"}").expect_err("0xff is no UTF-8");
    assert!(matches!(error, StrictJsonError::NotUtf8 { at: 6, .. }));
    // CESU-8: a surrogate pair encoded as two three-byte sequences.
    assert!(matches!(parse_strict(b"\"\xed\xa0\xbd\xed\xb8\x80\""), Err(StrictJsonError::NotUtf8 { .. })));
    assert!(matches!(parse_strict(b"{\0\"\0a\0\"\0"), Err(StrictJsonError::Syntax { .. })));
    for text in ["{} {}", "{}x", "{},", "1 2", "[]\u{feff}", "{}\0", "", " ", "// c\n{}", "{\"a\":1,}", "'a'"] {
        assert!(matches!(refused(text), StrictJsonError::Syntax { .. }), "{text:?}");
    }
    assert!(parse_strict(b" \r\n\t{} \n").is_ok());
}

#[test]
fn a_text_of_the_largest_size_is_taken_and_one_byte_more_is_not() {
    let mut text = format!("\"{}\"", "a".repeat(BODY_MAX_BYTES - 2)).into_bytes();
    assert!(parse_strict(&text).is_ok());
    text.push(b' ');
    assert!(matches!(parse_strict(&text), Err(StrictJsonError::TooLong { .. })));
}

#[test]
fn text_is_not_normalised() {
    assert_ne!(canonical_text("\"\u{e9}\""), canonical_text("\"e\u{301}\""));
}

#[test]
fn values_that_cannot_come_from_the_parser_have_no_canonical_form() {
    for number in [Value::from(1_u64 << 53), Value::from(u64::MAX), Value::from(i64::MIN), Value::from(1e300)] {
        let value = serde_json::json!({"a": [number]});
        assert!(matches!(canonical(&value), Err(CanonicalError::Number { .. })), "{value}");
    }
    assert!(matches!(canonical(&Value::from(-0.0)), Err(CanonicalError::Number { .. })));
    assert!(canonical(&serde_json::json!({"a": [NUMBER_MAX, 0.5]})).is_ok());
}

/// Any JSON value of the profile.
fn any_value() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let most = i64::try_from(NUMBER_MAX).unwrap();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-most..=most).prop_map(Value::from),
        any::<f64>().prop_filter_map("in the profile", |x| from_double(x).ok().map(Value::Number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn the_canonical_form_reads_back_as_the_same_value_and_is_its_own_canonical_form(value in any_value()) {
        let text = canonical(&value).unwrap();
        let back = parse_strict(&text).unwrap();
        proptest::prop_assert_eq!(&back, &value);
        proptest::prop_assert_eq!(canonical(&back).unwrap(), text);
    }

    #[test]
    fn the_parser_never_panics_and_takes_nothing_that_serde_json_refuses(bytes in proptest::collection::vec(0_u8..=255, 0..64)) {
        if parse_strict(&bytes).is_ok() {
            proptest::prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
        }
    }
}

#[test]
fn a_number_that_gets_lost_is_told_with_its_place_and_itself() {
    for (text, told) in [
        (
            r#"{"limits":{"wall_ms":18446744073709551615}}"#,
            "limits.wall_ms is 18446744073709551615 (line 1 column 41), ",
        ),
        (
            r#"{"limits":{"wall_ms":18446744073709551616}}"#,
            "limits.wall_ms is 1.8446744073709552e19 (line 1 column 41), ",
        ),
        ("{\n\"a\":[1,[2,-9007199254740992]]}", "a[1][1] is -9007199254740992 (line 2 column 27), "),
        ("9007199254740992", "the number is 9007199254740992 (line 1 column 16), "),
        ("[1e300]", "[0] is 1e300 (line 1 column 6), "),
        (r#"{"a b":{"\u0007":1e99}}"#, r#""a b"."\u{7}" is 1e99 (line 1 column 21), "#),
        (r#"{"":1e99}"#, r#""" is 1e99 (line 1 column 8), "#),
        (r#"{"a":-0}"#, "a is -0 (line 1 column 7)"),
    ] {
        let said = refused(text).to_string();
        assert!(said.starts_with(told), "{text}: {said}");
    }
}
