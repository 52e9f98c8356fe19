//! Scores as a real MongoDB gives them, and stemmers that stand every text.

use super::tokenizer::{Manner, Tokenizer};
use super::{Language, Search, TextQuery, TextSpec};
use crate::raw::Doc;
use bson::{Document, doc};
use proptest::prelude::*;

fn spec(weights: Document, language: &str) -> TextSpec {
    let spec = doc! { "weights": weights, "default_language": language, "language_override": "language" };
    TextSpec::of_index(&Doc::from(spec)).unwrap()
}

fn scores(spec: &TextSpec, doc: Document) -> Vec<(String, f64)> {
    let mut scores = spec.scores(&Doc::from(doc)).unwrap();
    scores.sort_by(|(a, _), (b, _)| a.cmp(b));
    scores
}

#[test]
fn terms_have_the_scores_that_mongodb_gives() {
    let spec = spec(doc! { "t": 1, "u.v": 10 }, "english");
    let check = |doc: Document, expected: &[(&str, f64)]| {
        let expected: Vec<(String, f64)> = expected.iter().map(|(term, score)| ((*term).to_owned(), *score)).collect();
        assert_eq!(scores(&spec, doc.clone()), expected, "{doc}");
    };
    check(doc! { "t": "coffee shop coffee" }, &[("coffe", 1.25), ("shop", 2.0 / 3.0)]);
    check(doc! { "t": "Coffee" }, &[("coffe", 1.0)]);
    check(doc! { "t": "SHOP" }, &[("shop", 1.1)]);
    check(doc! { "t": "the and of" }, &[]);
    check(doc! { "t": ["one dogs", { "z": "two" }, ["three"]] }, &[("dog", 0.75), ("one", 0.75)]);
    check(
        doc! { "u": [{ "v": "four" }, { "v": ["five", ["six"]] }, [{ "v": "seven" }]] },
        &[("five", 11.0), ("four", 11.0)],
    );
    check(
        doc! { "t": "chevaux", "language": "fr", "u": { "v": "running", "language": "en" } },
        &[("cheval", 1.0), ("run", 10.0)],
    );
    check(doc! { "t": "x\0y" }, &[("x", 1.0)]);
    check(doc! { "t": 5, "w": "x" }, &[]);
}

#[test]
fn a_wildcard_holds_every_text() {
    let spec = spec(doc! { "$**": 5, "title": 10 }, "none");
    let doc = doc! { "title": "a", "body": "b", "in": { "x": [["c"]], "language": "fr" }, "language": "en" };
    let expected = [("b", 1.1), ("c", 1.1)].map(|(term, score)| (term.to_owned(), score));
    assert_eq!(scores(&spec, doc), expected);
}

#[test]
fn languages_that_nobody_knows_are_refused() {
    let spec = spec(doc! { "t": 1 }, "english");
    let code = |doc: Document| spec.scores(&Doc::from(doc)).unwrap_err().code().number();
    assert_eq!(code(doc! { "t": "x", "language": "xx" }), 17262);
    assert_eq!(code(doc! { "t": "x", "language": 3 }), 17261);
    assert!(spec.scores(&Doc::from(doc! { "w": { "language": "xx" } })).is_ok());
}

fn search(text: &str, case: bool, diacritics: bool) -> Search {
    Search { search: text.to_owned(), language: None, case_sensitive: case, diacritic_sensitive: diacritics }
}

#[test]
fn phrases_negations_and_sensitivity_decide() {
    let spec = spec(doc! { "t": 1 }, "fr");
    let texts = ["le chat \"noir\" et Café", "chats CAFE", "Chat cafe noir et"];
    for (text, case, diacritics, expected) in [
        ("chat", false, false, "123"),
        ("chat", true, false, "12"),
        ("Chat", true, false, "3"),
        ("Café", true, false, "1"),
        ("\"Chat cafe\"", false, false, "3"),
        ("chat -noir", false, false, "2"),
        ("\"noir et\"", false, false, "3"),
        ("chat -\"noir et\"", false, false, "12"),
        ("-noir", false, false, ""),
        ("\"noir\"\"cafe\"", false, false, "13"),
        ("\"noir\"\"cafe\"", false, true, "3"),
        ("chat -\"\"", false, false, ""),
        ("le", false, false, ""),
    ] {
        let query = TextQuery::new(&search(text, case, diacritics), &spec).unwrap();
        let matches = |at: &usize| query.matches(&spec, &Doc::from(doc! { "t": texts[*at] })).unwrap();
        let found: String = (0..3).filter(matches).map(|at| (at + 1).to_string()).collect();
        assert_eq!(found, expected, "{text} {case} {diacritics}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_text_has_terms_in_every_language(text in "\\PC{0,40}", words in "[a-zßäöüéèąşıIğйюяő' -]{0,60}") {
        for language in Language::all() {
            for keeps_case in [false, true] {
                let mut tokenizer = Tokenizer::new(language, Manner { keeps_case, ..Manner::INDEX });
                tokenizer.each_term(&text, |_| true);
                tokenizer.each_term(&words, |_| true);
            }
        }
    }
}
