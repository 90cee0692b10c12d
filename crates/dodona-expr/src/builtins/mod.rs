//! The functions and methods of the language, as two tables.

pub(crate) mod format;
pub(crate) mod functions;
pub(crate) mod methods;
pub(crate) mod percent;
mod strings;
mod unicode;

pub(crate) use unicode::{is_printable, is_space};

/// Defines an enum with a name, a range of positional arguments and the names of parameters for
/// each variant.
macro_rules! table {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident $name:literal $least:literal..$most:literal [$($parameter:literal)*])* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum $kind { $($variant,)* }

        impl $kind {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub(crate) fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How many arguments, at least and at most.
            pub(crate) fn arity(self) -> (usize, usize) {
                match self { $(Self::$variant => ($least, $most),)* }
            }

            /// Parameters that may be given by name, by position; empty for one that may not.
            pub(crate) fn parameters(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($parameter),*],)* }
            }

            pub(crate) fn names() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|one| one.name())
            }
        }
    };
}

table! {
    /// A function.
    Builtin {
        Int "int" 0..2 ["" "base"]
        Float "float" 0..1 []
        Str "str" 0..1 ["object"]
        Bool "bool" 0..1 []
        Abs "abs" 1..1 []
        Min "min" 1..0xffff []
        Max "max" 1..0xffff []
        Round "round" 1..2 ["number" "ndigits"]
        Sum "sum" 1..2 ["" "start"]
        Len "len" 1..1 []
        Any "any" 1..1 []
        All "all" 1..1 []
        Sorted "sorted" 1..1 []
        Reversed "reversed" 1..1 []
        List "list" 0..1 []
        Tuple "tuple" 0..1 []
        Set "set" 0..1 []
        Dict "dict" 0..1 []
    }
}

table! {
    /// A method of a text, list, tuple, dict, set or number.
    Method {
        Capitalize "capitalize" 0..0 []
        Casefold "casefold" 0..0 []
        Center "center" 1..2 []
        Count "count" 1..3 []
        EndsWith "endswith" 1..3 []
        ExpandTabs "expandtabs" 0..1 ["tabsize"]
        Find "find" 1..3 []
        Index "index" 1..3 []
        IsAlnum "isalnum" 0..0 []
        IsAlpha "isalpha" 0..0 []
        IsAscii "isascii" 0..0 []
        IsDecimal "isdecimal" 0..0 []
        IsDigit "isdigit" 0..0 []
        IsIdentifier "isidentifier" 0..0 []
        IsLower "islower" 0..0 []
        IsNumeric "isnumeric" 0..0 []
        IsPrintable "isprintable" 0..0 []
        IsSpace "isspace" 0..0 []
        IsTitle "istitle" 0..0 []
        IsUpper "isupper" 0..0 []
        Join "join" 1..1 []
        LJust "ljust" 1..2 []
        Lower "lower" 0..0 []
        LStrip "lstrip" 0..1 []
        Partition "partition" 1..1 []
        RemovePrefix "removeprefix" 1..1 []
        RemoveSuffix "removesuffix" 1..1 []
        Replace "replace" 2..3 []
        RFind "rfind" 1..3 []
        RIndex "rindex" 1..3 []
        RJust "rjust" 1..2 []
        RPartition "rpartition" 1..1 []
        RSplit "rsplit" 0..2 ["sep" "maxsplit"]
        RStrip "rstrip" 0..1 []
        Split "split" 0..2 ["sep" "maxsplit"]
        SplitLines "splitlines" 0..1 ["keepends"]
        StartsWith "startswith" 1..3 []
        Strip "strip" 0..1 []
        SwapCase "swapcase" 0..0 []
        Title "title" 0..0 []
        Upper "upper" 0..0 []
        ZFill "zfill" 1..1 []
        Copy "copy" 0..0 []
        Get "get" 1..2 []
        Has "has" 1..1 []
        Items "items" 0..0 []
        Keys "keys" 0..0 []
        Values "values" 0..0 []
        Difference "difference" 0..0xffff []
        Intersection "intersection" 0..0xffff []
        IsDisjoint "isdisjoint" 1..1 []
        IsSubset "issubset" 1..1 []
        IsSuperset "issuperset" 1..1 []
        SymmetricDifference "symmetric_difference" 1..1 []
        Union "union" 0..0xffff []
        BitLength "bit_length" 0..0 []
        IsInteger "is_integer" 0..0 []
    }
}

/// Methods that Python has and that would change their receiver.
const MUTATORS: &[&str] = &[
    "add",
    "append",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "insert",
    "intersection_update",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "symmetric_difference_update",
    "update",
];

/// Methods that Python has and that are left out.
const LEFT_OUT: &[(&str, &str)] = &[
    ("format", "use an f-string"),
    ("format_map", "use an f-string"),
    ("encode", "there are no bytes"),
    ("translate", "use `replace`"),
    ("maketrans", "use `replace`"),
];

pub(crate) fn is_mutator(name: &str) -> bool {
    MUTATORS.contains(&name)
}

pub(crate) fn left_out(name: &str) -> Option<&'static str> {
    let found = LEFT_OUT.iter().find(|(left_out, _)| *left_out == name);
    found.map(|(_, instead)| *instead)
}
