//! Letters without case and without diacritics, as text indexes of version 3 fold them: by Unicode 8.

use super::delimiters::in_table;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

/// What a word loses with its diacritics: the marks themselves, and letters that are used like marks.
#[rustfmt::skip]
const DIACRITICS: &[(u32, u32)] = &[
    (0xa8, 0xa8), (0xaf, 0xaf), (0xb4, 0xb4), (0xb7, 0xb8), (0x2b0, 0x344), (0x346, 0x34e), (0x350, 0x357),
    (0x35d, 0x362), (0x374, 0x375), (0x37a, 0x37a), (0x384, 0x385), (0x483, 0x487), (0x559, 0x559), (0x591, 0x5a1),
    (0x5a3, 0x5bd), (0x5bf, 0x5bf), (0x5c1, 0x5c2), (0x5c4, 0x5c4), (0x64b, 0x652), (0x657, 0x658), (0x6df, 0x6e0),
    (0x6e5, 0x6e6), (0x6ea, 0x6ec), (0x730, 0x74a), (0x7a6, 0x7b0), (0x7eb, 0x7f5), (0x818, 0x819), (0x8e3, 0x8fe),
    (0x93c, 0x93c), (0x94d, 0x94d), (0x951, 0x954), (0x971, 0x971), (0x9bc, 0x9bc), (0x9cd, 0x9cd), (0xa3c, 0xa3c),
    (0xa4d, 0xa4d), (0xabc, 0xabc), (0xacd, 0xacd), (0xb3c, 0xb3c), (0xb4d, 0xb4d), (0xbcd, 0xbcd), (0xc4d, 0xc4d),
    (0xcbc, 0xcbc), (0xccd, 0xccd), (0xd4d, 0xd4d), (0xdca, 0xdca), (0xe47, 0xe4c), (0xe4e, 0xe4e), (0xec8, 0xecc),
    (0xf18, 0xf19), (0xf35, 0xf35), (0xf37, 0xf37), (0xf39, 0xf39), (0xf3e, 0xf3f), (0xf82, 0xf84), (0xf86, 0xf87),
    (0xfc6, 0xfc6), (0x1037, 0x1037), (0x1039, 0x103a), (0x1087, 0x108d), (0x108f, 0x108f), (0x109a, 0x109b),
    (0x17c9, 0x17d3), (0x17dd, 0x17dd), (0x1939, 0x193b), (0x1a75, 0x1a7c), (0x1a7f, 0x1a7f), (0x1ab0, 0x1abd),
    (0x1b34, 0x1b34), (0x1b44, 0x1b44), (0x1b6b, 0x1b73), (0x1baa, 0x1bab), (0x1c36, 0x1c37), (0x1c78, 0x1c7d),
    (0x1cd0, 0x1ce8), (0x1ced, 0x1ced), (0x1cf4, 0x1cf4), (0x1cf8, 0x1cf9), (0x1d2c, 0x1d6a), (0x1dc4, 0x1dcf),
    (0x1df5, 0x1df5), (0x1dfd, 0x1dff), (0x1fbd, 0x1fbd), (0x1fbf, 0x1fc1), (0x1fcd, 0x1fcf), (0x1fdd, 0x1fdf),
    (0x1fed, 0x1fef), (0x1ffd, 0x1ffe), (0x2cef, 0x2cf1), (0x302a, 0x302f), (0x3099, 0x309c), (0x30fc, 0x30fc),
    (0xa66f, 0xa66f), (0xa67c, 0xa67d), (0xa67f, 0xa67f), (0xa69c, 0xa69d), (0xa6f0, 0xa6f1), (0xa717, 0xa721),
    (0xa788, 0xa788), (0xa7f8, 0xa7f9), (0xa8c4, 0xa8c4), (0xa8e0, 0xa8f1), (0xa92b, 0xa92e), (0xa953, 0xa953),
    (0xa9b3, 0xa9b3), (0xa9c0, 0xa9c0), (0xa9e5, 0xa9e5), (0xaa7b, 0xaa7d), (0xaabf, 0xaac2), (0xaaf6, 0xaaf6),
    (0xab5b, 0xab5f), (0xabec, 0xabed), (0xfb1e, 0xfb1e), (0xfe20, 0xfe2f), (0xfeff, 0xfeff), (0xff3e, 0xff3e),
    (0xff40, 0xff40), (0xff70, 0xff70), (0xff9e, 0xff9f), (0xffe3, 0xffe3), (0x102e0, 0x102e0), (0x10ae5, 0x10ae6),
    (0x110b9, 0x110ba), (0x11133, 0x11134), (0x11173, 0x11173), (0x111c0, 0x111c0), (0x111ca, 0x111cc),
    (0x11235, 0x11236), (0x112e9, 0x112ea), (0x1133c, 0x1133c), (0x1134d, 0x1134d), (0x11366, 0x1136c),
    (0x11370, 0x11374), (0x114c2, 0x114c3), (0x115bf, 0x115c0), (0x1163f, 0x1163f), (0x116b6, 0x116b7),
    (0x1172b, 0x1172b), (0x16af0, 0x16af4), (0x16f8f, 0x16f9f), (0x1d167, 0x1d169), (0x1d16d, 0x1d172),
    (0x1d17b, 0x1d182), (0x1d185, 0x1d18b), (0x1d1aa, 0x1d1ad), (0x1e8d0, 0x1e8d6),
];

/// The iota below a letter: a letter of its own when it stands alone.
const IOTA_BELOW: char = '\u{345}';

/// Capitals that came after Unicode 8: they keep their case.
const LATER_CAPITALS: &[(u32, u32)] = &[
    (0x1c80, 0x1c8a),
    (0x1c90, 0x1cbf),
    (0x2c2f, 0x2c2f),
    (0xa7ae, 0xa7ae),
    (0xa7b8, 0xa7f6),
    (0x104b0, 0x104d3),
    (0x10570, 0x10595),
    (0x16e40, 0x16e5f),
    (0x1e900, 0x1e921),
];

/// The letter in lower case. Turkish has two letters i, each with its own capital.
pub(super) fn lower(letter: char, turkish: bool) -> char {
    if turkish {
        match letter {
            'I' => return '\u{131}',
            '\u{130}' => return 'i',
            _ => {}
        }
    }
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    match letter {
        // Forms of a letter that fold to its usual one.
        '\u{b5}' => '\u{3bc}',
        '\u{17f}' => 's',
        '\u{345}' | '\u{1fbe}' => '\u{3b9}',
        '\u{3c2}' => '\u{3c3}',
        '\u{3d0}' => '\u{3b2}',
        '\u{3d1}' => '\u{3b8}',
        '\u{3d5}' => '\u{3c6}',
        '\u{3d6}' => '\u{3c0}',
        '\u{3f0}' => '\u{3ba}',
        '\u{3f1}' => '\u{3c1}',
        '\u{3f5}' => '\u{3b5}',
        '\u{1e9b}' => '\u{1e61}',
        letter if in_table(LATER_CAPITALS, letter) => letter,
        letter => {
            let mut lower = letter.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(one), None) => one,
                // A capital with more than one small letter stays.
                _ => letter,
            }
        }
    }
}

/// Appends `text` in lower case.
pub(super) fn lower_into(text: &str, turkish: bool, out: &mut String) {
    out.extend(text.chars().map(|letter| lower(letter, turkish)));
}

/// Appends `text` without diacritics.
pub(super) fn strip_into(text: &str, out: &mut String) {
    out.extend(text.chars().filter_map(strip));
}

/// The letter without its marks; `None` if it is a mark.
fn strip(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return Some(letter);
    }
    if in_table(DIACRITICS, letter) {
        return None;
    }
    let mut base = String::new();
    decompose_canonical(letter, |part| {
        if !in_table(DIACRITICS, part) && (part != IOTA_BELOW || part == letter) {
            base.push(part);
        }
    });
    let mut composed = base.nfc();
    match (composed.next(), composed.next()) {
        (Some(one), None) if canonical_combining_class(one) == 0 || one == letter => Some(one),
        _ => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str, turkish: bool) -> String {
        let (mut small, mut plain) = (String::new(), String::new());
        lower_into(text, turkish, &mut small);
        strip_into(&small, &mut plain);
        plain
    }

    #[test]
    fn letters_lose_case_and_marks() {
        for (text, expected) in [
            ("Caf\u{e9} CAFE\u{301}", "cafe cafe"),
            ("\u{c5}ngstr\u{f6}m Stra\u{df}e", "angstrom stra\u{df}e"),
            (
                "\u{39f}\u{394}\u{39f}\u{3a3} \u{3bf}\u{3b4}\u{3cc}\u{3c2}",
                "\u{3bf}\u{3b4}\u{3bf}\u{3c3} \u{3bf}\u{3b4}\u{3bf}\u{3c3}",
            ),
            ("\u{41d}\u{430}\u{439}\u{451}", "\u{43d}\u{430}\u{438}\u{435}"),
            ("\u{1f80}", "\u{3b1}"),
            ("\u{130}I", "Ii"),
        ] {
            assert_eq!(folded(text, false), expected, "{text}");
        }
        assert_eq!(folded("\u{130}I", true), "i\u{131}");
        assert!(DIACRITICS.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
