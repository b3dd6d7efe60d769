//! Declares results: structs that are JSON objects of a documented format.

#[cfg(test)]
#[path = "report/described.rs"]
pub(crate) mod tests;

use serde::Serialize;

/// An object of JSON output that [`report!`](crate::report!) declares.
pub trait Declared: Serialize {
    /// The name and version of its format, as in `warploom.apps/1`; for a part of a report, its title on the page.
    const NAME: &'static str;
}

/// Declares objects of JSON output: structs whose fields have the text that `docs/json.md` says of them.
///
/// The name is that of a schema, or the title of a part. An empty one stands for fields of the object that the part is in.
/// A field may have another type in JSON than its own says (`as`), and a unit (`[...]`) that its name does not say.
///
/// The tests of the crate that uses it need the module `report::tests` (`described.rs` of this crate), which compares the
/// declaration with the page.
///
/// ```ignore
/// report! {
///     /// An output.
///     struct Output = "run output" {
///         name: String, "its name";
///         max: f64 as "number or null", "the largest sample";
///         spread: f64 ["share"], "what is left";
///     }
/// }
/// ```
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "every crate that declares reports has the tests of its own")]
macro_rules! report {
    ($($(#[$outer:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? = $title:literal {
        $($(#[$inner:meta])* $of:vis $field:ident: $ty:ty $(as $shape:literal)? $([$unit:literal])?
            $(, $meaning:literal)?;)*
    })*) => {$(
        #[derive(serde::Serialize)]
        $(#[$outer])*
        $vis struct $name $(<$life>)? {
            $($(#[$inner])* $(#[doc = $meaning])? $of $field: $ty,)*
        }

        impl $(<$life>)? $crate::report::Declared for $name $(<$life>)? {
            const NAME: &'static str = $title;
        }

        #[cfg(test)]
        impl $(<$life>)? crate::report::tests::Described for $name $(<$life>)? {
            fn shape() -> String {
                $title.to_owned()
            }

            fn rows() -> Vec<crate::report::tests::Row> {
                let mut rows = crate::report::tests::Rows::default();
                $(rows.add::<$ty>(
                    stringify!($field),
                    &[$(stringify!($inner)),*],
                    [None $(.or(Some($shape)))?, None $(.or(Some($unit)))?, None $(.or(Some($meaning)))?],
                );)*
                rows.0
            }
        }

        #[cfg(test)]
        #[test]
        #[allow(
            non_snake_case,
            clippy::extra_unused_lifetimes,
            reason = "the test is named after the object, and names its type as that is written"
        )]
        fn $name $(<$life>)? () {
            crate::report::tests::is_on_the_page::<$name $(<$life>)?>();
        }
    )*};
}

#[derive(Serialize)]
struct Object<'a, T> {
    schema: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

/// A report with its schema.
pub fn object<T: Declared>(content: &T) -> impl Serialize {
    with_schema(T::NAME, content)
}

/// The content of a JSON object with the name and version of its format.
pub fn with_schema<'a>(schema: &'a str, content: &'a impl Serialize) -> impl Serialize + 'a {
    Object { schema, content }
}
