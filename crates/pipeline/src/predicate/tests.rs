//! Conditions as they are written, and what rows meet them.

use proptest::prelude::*;

use super::*;

fn holds(condition: &str, row: &[(&str, Datum)]) -> Result<bool, String> {
    let predicate = Predicate::parse(condition)?;
    let value =
        |column: &String| row.iter().find(|(name, _)| name == column).map_or(Datum::Null, |(_, value)| value.clone());
    predicate.holds(&predicate.columns().iter().map(value).collect::<Vec<_>>())
}

fn written(text: &str) -> Datum {
    Datum::Written(text.to_owned())
}

#[test]
fn conditions_are_read_as_in_python() {
    let row = [
        ("split", written("train")),
        ("width", written("224")),
        ("ratio", Datum::Float(0.5)),
        ("label", Datum::Int(3)),
        ("is crowd", Datum::Bool(false)),
        ("name", Datum::Text("O'Hara".to_owned())),
        ("empty", written("")),
        ("null", Datum::Null),
    ];
    for (condition, expected) in [
        ("split == 'train'", true),
        ("split == \"train\" and width >= 224", true),
        ("split != 'train' or width < 225 and label in (1, 2, 3)", true),
        ("(split != 'train' or width < 225) and label in [1, 2]", false),
        ("width == 224.0 and width > 2.2e2", true),
        ("label not in (1, 2) AND NOT `is crowd`", true),
        ("`is crowd` == false", true),
        ("not not label == 3", true),
        ("ratio <= 0.5 and ratio > -1", true),
        ("name == 'O\\'Hara'", true),
        ("name < 'P'", true),
        ("empty == '' and empty != 0 and not empty > 0", true),
        ("null == 1 or null != 1 and not null in (1,)", true),
        ("null", false),
        ("label in ()", false),
    ] {
        assert_eq!(holds(condition, &row), Ok(expected), "{condition}");
    }
    for (condition, says) in [
        ("", "it ends"),
        ("split = 'train'", "write `==`"),
        ("split == train", "`'train'`"),
        ("split == 'train", "not closed"),
        ("3 == label", "left of its comparison"),
        ("label == 3 width", "`and`"),
        ("(label == 3", "`)`"),
        ("label in 3", "`(`"),
        ("label in (3 4)", "`,`"),
        ("label & 3", "means nothing"),
        ("label == 3x", "not a number"),
        ("split > 3", "not a number"),
        ("label == '3'", "without quotes"),
        ("split", "not a boolean"),
        ("name == 3", "not a number"),
        ("and", "name of a column"),
    ] {
        let error = holds(condition, &row).unwrap_err();
        assert!(error.contains(says), "{condition}: {error}");
    }
    let deep = "(".repeat(10_000) + "a" + &")".repeat(10_000);
    assert!(Predicate::parse(&deep).unwrap_err().contains("nested"));
    assert_eq!(Predicate::parse("b > 1 and a > 1 or b < 0").unwrap().columns(), ["b", "a"]);
}

proptest! {
    /// Whatever is written ends in a condition or an error.
    #[test]
    fn nothing_else_comes_of_any_text(text in "[a-c0-9 ()'\"`,.=!<>éandorti-]{0,40}") {
        if let Ok(predicate) = Predicate::parse(&text) {
            let values = vec![Datum::Int(1); predicate.columns().len()];
            let _ = predicate.holds(&values);
        }
    }

    /// Numbers are compared as numbers, however they are written.
    #[test]
    fn numbers_compare(one in -1000_i64..1000, other in -1000_i64..1000) {
        for value in [Datum::Int(one), Datum::Float(one as f64), written(&one.to_string()), written(&format!(" {one}.0 "))] {
            for (operator, expected) in
                [("==", one == other), ("!=", one != other), ("<", one < other), ("<=", one <= other), (">", one > other), (">=", one >= other)]
            {
                let condition = format!("a {operator} {other}");
                prop_assert_eq!(holds(&condition, &[("a", value.clone())]), Ok(expected), "{}", condition);
            }
        }
    }
}
