//! Texts that were cut or put together: `split` and `join`.

use super::evidence::{KnownField, value_at};
use super::names::{ALIKE, likeness};
use super::search::Search;
use super::written::{self, WrittenStep};
use document::value::Path;
use document::{Doc, Value};

/// What usually stands between the parts of a text; of two that explain the same, the first.
const SEPARATORS: &[&str] = &[", ", " - ", " ", ",", ";", "|", "/", ":", "-", "_", ".", "@"];

/// A text has so many parts at most.
const MOST_PARTS: usize = 4;

/// Names of parts, and what is between them in the whole: the only evidence that schemas give.
const USUAL: &[(&[&str], &str)] =
    &[(&["first", "last"], " "), (&["given", "family"], " "), (&["fore", "sur"], " "), (&["street", "city"], ", ")];

/// A whole and its parts.
struct Cut {
    whole: KnownField,
    parts: Vec<KnownField>,
    separator: &'static str,
    is_sure: bool,
    because: String,
}

impl Search<'_> {
    pub(super) fn texts(&mut self) {
        for whole in self.gone().into_iter().filter(KnownField::is_text) {
            let parts: Vec<KnownField> = self.fresh().into_iter().filter(KnownField::is_text).collect();
            let Some(cut) = self.cut(whole, &parts, &self.gone(), Side::New) else { continue };
            let paths: Vec<Path> = cut.parts.iter().map(|part| part.path.clone()).collect();
            let step = written::split(&cut.whole.path, &paths, cut.separator);
            self.take(vec![step], &[cut.whole.path], &cut.parts, cut.is_sure, &cut.because);
        }
        for whole in self.fresh().into_iter().filter(KnownField::is_text) {
            let parts: Vec<KnownField> = self.gone().into_iter().filter(KnownField::is_text).collect();
            let Some(cut) = self.cut(whole, &parts, &self.fresh(), Side::Old) else { continue };
            let paths: Vec<Path> = cut.parts.iter().map(|part| part.path.clone()).collect();
            let step = written::join(&cut.whole.path, &paths, cut.separator);
            self.take(vec![step], &paths, &[cut.whole], cut.is_sure, &cut.because);
        }
    }

    /// `others` are the fields beside the whole: a part that is called like one of them is rather that one.
    fn cut(&self, whole: KnownField, parts: &[KnownField], others: &[KnownField], side: Side) -> Option<Cut> {
        if parts.len() < 2 {
            return None;
        }
        match (self.pairs.is_empty(), whole.values.is_empty()) {
            (false, _) => self.shown_cut(whole, parts, side),
            (true, false) => {
                let is_other = |part: &KnownField| {
                    let mut others = others.iter().filter(|other| other.path != whole.path);
                    others.any(|other| likeness(&other.path, &part.path) >= ALIKE)
                };
                let fits = |part: &&KnownField| part.always == whole.always && !is_other(part);
                let parts: Vec<KnownField> = parts.iter().filter(fits).cloned().collect();
                guessed(whole, &parts)
            }
            (true, true) => named(whole, parts),
        }
    }

    /// What the same documents show: at each place, the field that has what stands there.
    fn shown_cut(&self, whole: KnownField, parts: &[KnownField], side: Side) -> Option<Cut> {
        for separator in SEPARATORS {
            for count in (2..=MOST_PARTS.min(parts.len())).rev() {
                let mut chosen: Vec<KnownField> = Vec::new();
                for place in 0..count {
                    let fits = |part: &&KnownField| {
                        !chosen.iter().any(|other| other.path == part.path)
                            && self.is_at(&whole.path, &part.path, side, separator, (place, count))
                    };
                    let Some(part) = parts.iter().find(fits) else { break };
                    chosen.push(part.clone());
                }
                if chosen.len() < count {
                    continue;
                }
                let paths: Vec<Path> = chosen.iter().map(|part| part.path.clone()).collect();
                let (step, from, to) = step(&whole.path, &paths, separator, side);
                let Some(shown) = self.shown(&[step], &from.iter().collect::<Vec<_>>(), &to.iter().collect::<Vec<_>>())
                else {
                    continue;
                };
                if shown.by_most() {
                    let because = format!("{} {}", shown.text(), relation(&whole, &chosen, separator));
                    let is_sure = shown.by_all() && shown.of > 1;
                    return Some(Cut { whole, parts: chosen, separator, is_sure, because });
                }
            }
        }
        None
    }

    /// Whether the part is what stands at that place of the whole, in most documents where both are.
    fn is_at(&self, whole: &Path, part: &Path, side: Side, separator: &str, (place, count): (usize, usize)) -> bool {
        let (mut fits, mut of) = (0, 0);
        for (before, after) in &self.pairs {
            let (of_whole, of_part): (&Doc<'_>, &Doc<'_>) = match side {
                Side::New => (before, after),
                Side::Old => (after, before),
            };
            let (Some(Value::String(text)), Some(Value::String(found))) =
                (value_at(of_whole, whole), value_at(of_part, part))
            else {
                continue;
            };
            of += 1;
            fits += usize::from(text.as_str().splitn(count, separator).nth(place) == Some(found.as_str()));
        }
        of > 0 && fits * 10 >= of * 9
    }
}

/// Where the parts are.
#[derive(Clone, Copy, Debug)]
enum Side {
    Old,
    New,
}

/// The step, the paths before it, and those after it.
fn step(whole: &Path, parts: &[Path], separator: &str, side: Side) -> (WrittenStep, Vec<Path>, Vec<Path>) {
    match side {
        Side::New => (written::split(whole, parts, separator), vec![whole.clone()], parts.to_vec()),
        Side::Old => (written::join(whole, parts, separator), parts.to_vec(), vec![whole.clone()]),
    }
}

/// From samples of different documents: almost all texts have as many parts as there are fields, and no field has what is between.
fn guessed(whole: KnownField, parts: &[KnownField]) -> Option<Cut> {
    let count = parts.len();
    if !(2..=MOST_PARTS).contains(&count) || parts.iter().any(|part| part.values.is_empty()) {
        return None;
    }
    for separator in SEPARATORS {
        let has = |value: &Value<'_>| value.as_str().is_some_and(|text| text.splitn(count, separator).count() == count);
        let most = whole.values.iter().filter(|value| has(value)).count() * 10 >= whole.values.len() * 8;
        let without = |part: &KnownField| {
            part.values.iter().all(|value| value.as_str().is_some_and(|text| !text.contains(separator)))
        };
        let all_but_last = parts.iter().take(count - 1).all(without);
        if most && all_but_last {
            let because = format!(
                "most texts of `{}` have {count} parts with {separator:?} between them, and {} are the only texts for them",
                whole.path.dotted(),
                list(parts)
            );
            return Some(Cut { whole, parts: parts.to_vec(), separator, is_sure: false, because });
        }
    }
    None
}

/// From schemas: by the names alone.
fn named(whole: KnownField, parts: &[KnownField]) -> Option<Cut> {
    for (names, separator) in USUAL {
        let part = |name: &&str| {
            let last = |field: &KnownField| field.path.parts.last().map(|part| part.name.to_lowercase());
            parts.iter().find(|field| last(field).is_some_and(|own| own.starts_with(*name))).cloned()
        };
        let found: Option<Vec<KnownField>> = names.iter().map(part).collect();
        let called = whole.path.dotted().to_lowercase();
        let is_whole = if *separator == " " { called.ends_with("name") } else { called.ends_with("address") };
        if let Some(parts) = found.filter(|_| is_whole) {
            let because = format!("the names of {} are usual for the parts of `{}`", list(&parts), whole.path.dotted());
            return Some(Cut { whole, parts, separator, is_sure: false, because });
        }
    }
    None
}

fn relation(whole: &KnownField, parts: &[KnownField], separator: &str) -> String {
    format!("`{}` is {} with {separator:?} between them", whole.path.dotted(), list(parts))
}

fn list(parts: &[KnownField]) -> String {
    let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.path.dotted())).collect();
    names.join(", ")
}
