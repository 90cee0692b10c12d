//! What Python calls space, printable, digit and so on.

/// What Python's `str.isspace` and `str.split` take for space.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// Whether `repr` shows it as it is.
pub(crate) fn is_printable(character: char) -> bool {
    if character == ' ' {
        return true;
    }
    let invisible = character.is_control()
        || character.is_whitespace()
        || matches!(
            character,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{feff}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{e0000}'..='\u{10ffff}'
        );
    !invisible
}

/// The superscripts and circled digits that `isdigit` takes and `isdecimal` does not.
fn is_digit_like(character: char) -> bool {
    matches!(
        character,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{2070}' | '\u{2074}'..='\u{2079}'
            | '\u{2080}'..='\u{2089}' | '\u{2460}'..='\u{2468}' | '\u{2474}'..='\u{247c}'
            | '\u{2488}'..='\u{2490}'
    )
}

/// Decimal digits of any script: each script has its ten in a row.
pub(super) fn is_decimal(character: char) -> bool {
    const ZEROS: [u32; 20] = [
        0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
        0xe50, 0xed0, 0xf20, 0x1040, 0x17e0, 0x1810, 0xff10,
    ];
    let code = u32::from(character);
    ZEROS.iter().any(|&zero| (zero..zero + 10).contains(&code))
}

pub(super) fn is_digit(character: char) -> bool {
    is_decimal(character) || is_digit_like(character)
}

/// Cased letters: those with another case.
pub(super) fn is_cased(character: char) -> bool {
    character.is_lowercase() || character.is_uppercase()
}

/// As `str.casefold`, up to rare letters: the lower case of the upper case.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// The form of a letter at the start of a word: of one that becomes two, only the first is large.
pub(super) fn titled(character: char) -> String {
    match character {
        '\u{1c4}'..='\u{1c6}' => return '\u{1c5}'.into(),
        '\u{1c7}'..='\u{1c9}' => return '\u{1c8}'.into(),
        '\u{1ca}'..='\u{1cc}' => return '\u{1cb}'.into(),
        '\u{1f1}'..='\u{1f3}' => return '\u{1f2}'.into(),
        _ => {}
    }
    let mut upper = character.to_uppercase();
    let first = upper.next().into_iter();
    if first.clone().all(char::is_uppercase) {
        first.chain(upper.flat_map(char::to_lowercase)).collect()
    } else {
        first.chain(upper).collect()
    }
}
