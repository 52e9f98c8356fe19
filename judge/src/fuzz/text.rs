//! Random texts, text indexes and searches: few words of several languages, so that stems, stop words and diacritics meet.

use bson::{Bson, Document, doc};

use super::generate::Generator;
use super::trial::Trial;

const LANGUAGES: &[&str] = &[
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "none",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "turkish",
];

const WORDS: &[&str] = &[
    "the",
    "running",
    "runs",
    "mouse",
    "mice",
    "connections",
    "connected",
    "happiness",
    "U.S.A",
    "don't",
    "re-use",
    "café",
    "CAFÉ",
    "cafe",
    "naïve",
    "42",
    "3.14",
    "a_b",
    "foo.bar",
    "and",
    "not",
    "Häuser",
    "Haus",
    "Straße",
    "strasse",
    "läuft",
    "niños",
    "niño",
    "camión",
    "los",
    "chevaux",
    "l'été",
    "aujourd'hui",
    "бегать",
    "бегущий",
    "ёлка",
    "елка",
    "и",
    "ações",
    "coração",
    "ışık",
    "IŞIK",
    "løber",
    "bøger",
    "huizen",
    "talossa",
    "házak",
    "città",
    "husene",
    "casele",
    "löpning",
];

impl Generator {
    /// Documents with an index on their texts, and searches of them.
    pub(super) fn searches(&mut self) -> Vec<Trial> {
        // Few of all words, so that searches find something.
        let some: Vec<Bson> = (0..8).filter_map(|_| self.random.pick(WORDS)).map(|word| Bson::from(*word)).collect();
        self.pool = some;
        let documents: Vec<Document> =
            (1..=self.random.below(8) + 1).filter_map(|id| i32::try_from(id).ok()).map(|id| self.article(id)).collect();
        let (index, needs_prefix) = self.text_index();
        let trials = (0..40).map(|_| Trial {
            documents: documents.clone(),
            indexes: vec![index.clone()],
            run: self.search(needs_prefix),
        });
        trials.collect()
    }

    fn article(&mut self, id: i32) -> Document {
        let mut article = doc! { "_id": id, "kind": *self.random.pick(&["a", "b"]).unwrap_or(&"a") };
        for field in ["title", "body", "n"] {
            if !self.random.one_in(5) {
                article.insert(field, self.words_at(0));
            }
        }
        if self.random.one_in(3) {
            article.insert("language", self.language());
        }
        article
    }

    fn words_at(&mut self, depth: usize) -> Bson {
        match self.random.below(if depth < 2 { 10 } else { 7 }) {
            0..6 => self.sentence().into(),
            6 => self.number(),
            7 => (0..self.random.below(3)).map(|_| self.sentence()).collect::<Vec<_>>().into(),
            8 => doc! { "t": self.words_at(depth + 1), "language": self.language() }.into(),
            _ => {
                vec![doc! { "t": self.words_at(depth + 1) }, doc! { "t": self.sentence(), "language": self.language() }]
                    .into()
            }
        }
    }

    fn sentence(&mut self) -> String {
        let words: Vec<String> = (0..self.random.below(9) + 1).map(|_| self.word()).collect();
        words.join(self.random.pick(&[" ", " ", ", ", "-"]).unwrap_or(&" "))
    }

    fn word(&mut self) -> String {
        self.random.pick(&self.pool).and_then(Bson::as_str).unwrap_or("a").to_owned()
    }

    fn language(&mut self) -> &'static str {
        self.random.pick(LANGUAGES).copied().unwrap_or("none")
    }

    /// Whether a search must say what stands before the texts comes with it.
    fn text_index(&mut self) -> (Document, bool) {
        let form = self.random.below(5);
        let key = match form {
            0 => doc! { "title": "text" },
            1 => doc! { "title": "text", "body": "text" },
            2 => doc! { "$**": "text" },
            3 => doc! { "kind": 1, "title": "text", "n.t": "text" },
            _ => doc! { "title": "text", "n.t": "text", "kind": 1 },
        };
        let mut index = doc! { "key": key.clone(), "name": "texts" };
        if self.random.one_in(2) {
            let texts = key.iter().filter(|(_, kind)| kind.as_str().is_some());
            let weights: Document = texts
                .map(|(field, _)| (field.clone(), Bson::from(i32::try_from(self.random.below(8)).unwrap_or(0) + 1)))
                .collect();
            index.insert("weights", weights);
        }
        if self.random.one_in(2) {
            index.insert("default_language", self.language());
        }
        if self.random.one_in(8) {
            index.insert("partialFilterExpression", doc! { "kind": "a" });
        }
        (index, form == 3)
    }

    fn search(&mut self, needs_prefix: bool) -> Vec<Document> {
        let mut filter = doc! { "$text": self.sought() };
        if needs_prefix || self.random.one_in(5) {
            filter.insert("kind", *self.random.pick(&["a", "b"]).unwrap_or(&"a"));
        }
        let score = || doc! { "$meta": "textScore" };
        match self.random.below(8) {
            0 => vec![doc! { "count": "c", "query": filter }],
            1 => {
                let stages = vec![
                    doc! { "$match": filter },
                    doc! { "$set": { "score": score() } },
                    doc! { "$sort": { "score": score(), "_id": 1 } },
                ];
                vec![doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }]
            }
            2 => {
                let all = doc! { "find": "c", "sort": { "_id": 1 } };
                match self.random.one_in(2) {
                    true => vec![doc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }, all],
                    false => {
                        let statement = doc! { "q": filter, "u": { "$set": { "hit": true } }, "multi": true };
                        vec![doc! { "update": "c", "updates": [statement] }, all]
                    }
                }
            }
            3 => {
                let sort = doc! { "score": score(), "_id": 1 };
                vec![
                    doc! { "find": "c", "filter": filter, "projection": { "score": score() }, "sort": sort, "limit": 3 },
                ]
            }
            _ => vec![doc! { "find": "c", "filter": filter, "projection": { "score": score() }, "sort": { "_id": 1 } }],
        }
    }

    fn sought(&mut self) -> Document {
        let parts: Vec<String> = (0..self.random.below(4) + 1).map(|_| self.part_of_search()).collect();
        let mut sought = doc! { "$search": parts.join(" ") };
        if self.random.one_in(3) {
            sought.insert("$language", self.language());
        }
        for option in ["$caseSensitive", "$diacriticSensitive"] {
            if self.random.one_in(3) {
                sought.insert(option, !self.random.one_in(3));
            }
        }
        sought
    }

    /// A word, a phrase, one that must not be there, or what is none of these.
    fn part_of_search(&mut self) -> String {
        match self.random.below(20) {
            0..4 => format!("\"{} {}\"", self.word(), self.word()),
            4 => format!("\"{}\"", self.word()),
            5 | 6 => format!("-{}", self.word()),
            7 => format!("-\"{}\"", self.word()),
            8 => self.word().to_uppercase(),
            9 => (*self.random.pick(&["\"", "-", "--a", "\"open", "a-b", "", "\"\""]).unwrap_or(&"-")).to_owned(),
            _ => self.word(),
        }
    }
}
