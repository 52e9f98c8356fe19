//! Words that say nothing about a text: they are neither indexed nor searched for.
//!
//! MongoDB's lists are Snowball's in some older state. The lists of NLTK have the same origin; what a real MongoDB does
//! otherwise stands here, with the faults of its lists: letters are missing in Russian words, and Turkish ones were read in another
//! encoding.

use super::Language;
use std::collections::HashSet;
use std::sync::LazyLock;

type Words = HashSet<&'static str, foldhash::fast::FixedState>;

/// How MongoDB's list differs.
struct Change {
    language: Language,
    /// Separated by spaces.
    more: &'static str,
    fewer: &'static str,
}

#[rustfmt::skip]
const CHANGES: &[Change] = &[
    Change {
        language: Language::English,
        more: "can't cannot could here's how's let's ought that's there's what's when's where's who's why's would",
        fewer: "ain aren can couldn d didn doesn don hadn hasn haven isn it'd it'll just ll m ma mightn mightn't \
            mustn needn needn't now o re s shan should've shouldn t that'll ve wasn weren will won wouldn y",
    },
    Change {
        language: Language::Finnish,
        more: "tuota tällä",
        fewer: "tallä tuotä",
    },
    Change {
        language: Language::French,
        more: "a alors aucun aussi autre avant avoir bon car ceci cela cet cette ceux chaque ci comme comment \
            dedans dehors depuis deux devoir devrait devrez devriez devrions devrons devront dois doit donc dos \
            droite dès début dù elles encore faire fais faisez fait faites fois font force haut hors ici juste \
            leurs là maintenant moins mot ni nom nommé nommée nommés nouveau nouveaux où parce parole personne \
            personnes peu peut plupart pourquoi quand quel quelle quelles quels sans seulement si sien soi sous \
            sujet tandis tellement tels tous tout trop très valeur voient voit vont vu ça état être",
        fewer: "ayante ayantes ayants c s étante étantes étants étée étées",
    },
    Change {
        language: Language::German,
        more: "unse unsem unsen unses",
        fewer: "anderr unsere unserem unseren unseres",
    },
    Change {
        language: Language::Italian,
        more: "adesso allora altre altri altro ancora avere dentro ecco fare fino fra me no però poco qua quasi qui \
            quindi senza sopra sotto stesso te vai",
        fewer: "",
    },
    Change {
        language: Language::Portuguese,
        more: "",
        fewer: "estar haver ser é",
    },
    Change {
        language: Language::Romanian,
        more: "acolo acum aiurea alaturi asemenea astazi azi b bine c capat conform d degraba exact f g geaba h j k \
            l mare n niciodata p plus r s x z",
        fewer: "această acei acele aceşti aceştia aibă alea altcineva astea aveţi aş aţi cât câte câtva câţi cînd \
            cît cîte cîtva cîţi că căci cărei căror cărui către dacă dată dau deşi doi doilea două drept după dă \
            eram eşti fiecare fii fim fiu fiţi fără lângă lîngă mea mei mele mereu meu mie mine multă mulţi \
            mâine mîine mă nişte noastre noastră nostru nouă noştri oricare oricine oricând oricât oricînd \
            oricît oriunde patra patru pic poate pot prima primul puţin puţina puţină până pînă spate sunteţi să \
            săi său ta tale tine toată totuşi toţi trei treia treilea tăi tău undeva uneia unora unu unuia vi \
            voastre voastră vostru vouă voştri vă zi zice îi îl îmi în îţi ăla ălea ăsta ăstea ăştia şi ţi ţie",
    },
    Change {
        language: Language::Russian,
        more: "вроем говорил еловек ем еред ерез жизнь заем кажется конено луше ниего од осле оти отом отому оять \
            ри ро сегодня сейас сказал сказала сказать теерь тоб тобы уть",
        fewer: "впрочем еще зачем конечно лучше ничего опять перед по под после потом потому почти при про сейчас \
            теперь чего чем через что чтоб чтобы чуть",
    },
    Change {
        language: Language::Spanish,
        more: "sido siendo",
        fewer: "sentid sentida sentidas sentido sentidos siente sintiendo",
    },
    Change {
        language: Language::Turkish,
        more: "altmýþ altý bana bazý ben benden beni benim beþ bin bir birkez birþey birþeyi bizden bizi bizim buna \
            bunda bundan bunu bunun dahi doksan dokuz dört elli iki katrilyon kimden kime kimi kýrk milyar \
            milyon mý nasýl on ona ondan onlar onlardan onlari onlarýn onu otuz sekiz seksen sen senden seni \
            senin sizden sizi sizin trilyon yedi yetmiþ yirmi yüz üç þey þeyden þeyi þeyler þu þuna þunda þundan \
            þunu",
        fewer: "aslında az bazı birşey eğer mı nasıl o şey şu",
    },
];

static LISTS: LazyLock<Vec<(Language, Words)>> =
    LazyLock::new(|| Language::all().map(|language| (language, words(language))).collect());

/// The stop words of a language, in lower case with their diacritics.
pub(super) fn of(language: Language) -> Option<&'static Words> {
    LISTS.iter().find(|(own, _)| *own == language).map(|(_, words)| words)
}

fn words(language: Language) -> Words {
    let mut words: Words = stop_words::lookup(code(language)).unwrap_or_default().iter().copied().collect();
    for change in CHANGES.iter().filter(|change| change.language == language) {
        words.extend(change.more.split(' ').filter(|word| !word.is_empty()));
        for word in change.fewer.split(' ') {
            words.remove(word);
        }
    }
    words
}

/// What the crate calls a language; nothing is called by an empty name.
fn code(language: Language) -> &'static str {
    match language {
        Language::Danish => "da",
        Language::Dutch => "nl",
        Language::English => "en",
        Language::Finnish => "fi",
        Language::French => "fr",
        Language::German => "de",
        Language::Hungarian => "hu",
        Language::Italian => "it",
        Language::Norwegian => "no",
        Language::Portuguese => "pt",
        Language::Romanian => "ro",
        Language::Russian => "ru",
        Language::Spanish => "es",
        Language::Swedish => "sv",
        Language::Turkish => "tr",
        Language::None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_as_long_as_that_of_mongodb() {
        let long = |language| of(language).unwrap().len();
        for (language, length) in [
            (Language::Danish, 94),
            (Language::Dutch, 101),
            (Language::English, 174),
            (Language::Norwegian, 172),
            (Language::Swedish, 114),
            (Language::None, 0),
        ] {
            assert_eq!(long(language), length, "{language:?}");
        }
        assert!(Language::all().all(|language| language == Language::None || long(language) > 90));
    }

    #[test]
    fn changes_change_something() {
        for change in CHANGES {
            let before: Words = stop_words::lookup(code(change.language)).unwrap().iter().copied().collect();
            let now = of(change.language).unwrap();
            assert!(change.more.split(' ').filter(|word| !word.is_empty()).all(|word| !before.contains(word)));
            assert!(change.fewer.split(' ').filter(|word| !word.is_empty()).all(|word| before.contains(word)));
            assert!(change.fewer.split(' ').all(|word| !now.contains(word)));
        }
    }
}
