//! Pictures with other channels than an input takes. A conversion that loses nothing is made; any other has to be asked
//! for after the file's name, as in `photo.jpg:grey`.

use std::path::Path;

use warploom_interp::buffer::Buffer;
use warploom_interp::files::{self, FileError};
use warploom_interp::picture::{self, Loss, PictureError};

use super::InputError;
use super::layout::Layout;

/// The conversions that can be asked for, and what they may lose.
const ASKED: [(&str, usize, Loss); 3] =
    [("grey", 1, Loss::Colours), ("gray", 1, Loss::Colours), ("rgb", 3, Loss::Alpha)];

/// A conversion: the number of channels, and what it may lose.
type Asked = (usize, Loss);

/// Splits `FILE:grey` and `FILE:rgb`. A file that has such a name itself is taken as it is.
fn split(file: &str) -> (&str, Option<Asked>) {
    let asked = ASKED.iter().find_map(|(name, channels, loss)| {
        let file = file.strip_suffix(name)?.strip_suffix(':')?;
        Some((file, Some((*channels, *loss))))
    });
    asked.filter(|_| !Path::new(file).exists()).unwrap_or((file, None))
}

/// Reads `FILE`, `FILE:grey` or `FILE:rgb`. Returns the file too, and whether a conversion was asked for.
pub(super) fn read(given: &str) -> Result<(Buffer, &str, bool), InputError> {
    let (file, asked) = split(given);
    if !Path::new(file).exists() {
        return Err(InputError::NoFile { file: file.to_owned() });
    }
    let buffer = files::read_any(file)?;
    let Some((channels, may)) = asked else { return Ok((buffer, file, false)) };
    let converted = picture::with_channels(&buffer, channels, may);
    Ok((converted.map_err(|problem| unreadable(file, problem))?, file, true))
}

fn unreadable(file: &str, problem: PictureError) -> InputError {
    FileError::ReadPicture { name: file.to_owned(), problem }.into()
}

/// A picture with the channels that an input takes, if that loses nothing.
pub(super) fn fitted(
    picture: Buffer,
    file: &str,
    app: &str,
    layout: &Layout<'_>,
) -> Result<Buffer, InputError> {
    let (app, input) = (app.to_owned(), layout.name().to_owned());
    let found = picture.region().extents().get(2).map_or(1, |channels| *channels as usize);
    let Some(taken) = layout.channels().filter(|taken| *taken != found) else {
        let is_flat = layout.dimensions() == 3 && picture.region().dimensions() == 2;
        return if is_flat {
            Err(InputError::GreyPicture { app, file: file.to_owned(), input })
        } else {
            Ok(picture)
        };
    };
    picture::with_channels(&picture, taken, Loss::Nothing).map_err(|problem| match problem {
        PictureError::Lossy { lost, channels } => InputError::Channels {
            app,
            file: file.to_owned(),
            input,
            channels,
            lost,
            suffix: if taken == 1 { "grey" } else { "rgb" },
        },
        problem => unreadable(file, problem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_follows_a_colon() {
        assert_eq!(split("a.png"), ("a.png", None));
        assert_eq!(split("a:b.png:grey"), ("a:b.png", Some((1, Loss::Colours))));
        assert_eq!(split("a.png:rgb"), ("a.png", Some((3, Loss::Alpha))));
        assert_eq!(split("grey"), ("grey", None));
        assert_eq!(split("a.png:blue"), ("a.png:blue", None));
    }
}
