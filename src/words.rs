//! Settings with a few named values, which have the same names in files, in messages and on the
//! command line: [`FromStr`](std::str::FromStr) and [`Display`](std::fmt::Display) from one list.

/// A setting with a few named values.
pub(crate) trait Words:
    std::str::FromStr<Err = crate::Error> + Copy + Send + Sync + 'static
{
    /// The names, in the order of the values.
    const WORDS: &'static [&'static str];
}

/// Gives the variants of an enum their names. Further names of a variant, after `|`, are only read.
/// A method after the kind, `(to_ascii_lowercase)`, is called on names before they are looked up.
macro_rules! words {
    (
        $type:ty, $kind:literal $(($method:ident))? {
            $first:ident = $first_word:literal $(| $first_other:literal)*
            $(, $variant:ident = $word:literal $(| $other:literal)*)* $(,)?
        }
    ) => {
        impl $crate::words::Words for $type {
            const WORDS: &'static [&'static str] = &[$first_word $(, $word)*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                })
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(word: &str) -> $crate::Result<Self> {
                match word$(.$method().as_str())? {
                    $first_word $(| $first_other)* => Ok(Self::$first),
                    $($word $(| $other)* => Ok(Self::$variant),)*
                    _ => Err($crate::Error::UnknownName {
                        kind: $kind,
                        name: word.into(),
                        known: concat!($first_word $(, ", ", $word)*),
                    }),
                }
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::Words;
    use crate::{Error, Method, Mode};

    #[test]
    fn every_word_leads_back_to_itself() {
        fn round_trip<T: Words + std::fmt::Display>() {
            for word in T::WORDS {
                assert_eq!(word.parse::<T>().unwrap().to_string(), *word);
            }
        }
        round_trip::<Method>();
        round_trip::<Mode>();
        let unknown = "altby".parse::<Method>();
        assert!(
            matches!(unknown, Err(Error::UnknownName { kind: "method", known, .. })
                if known == "altbi, mu, p-mu, mu-t, frozen")
        );
    }
}
