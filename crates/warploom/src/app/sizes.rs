//! The sizes of a pipeline in reports: numbers by name, or boxes by name for a pipeline from a file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warploom_lang::{Pipeline, Range, Realisation, Region};

use super::{App, Settings, Shapes};
use crate::show;

/// Sizes by name, in the order in which the app or pipeline declares them.
/// [`Display`](fmt::Display) is ` at W=640, H=480`, or nothing if there are none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sizes(Vec<(String, Size)>);

/// One of the [`Sizes`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// A size of an app.
    Points(i64),
    /// The box of an input or output.
    Box(Region),
}

impl Sizes {
    /// The sizes of an app with some settings.
    pub fn of_app(app: &App, settings: &Settings) -> Sizes {
        let size = |name: &str| (name.to_owned(), Size::Points(settings.int(name)));
        Sizes(app.sizes.iter().map(|setting| size(&setting.name)).collect())
    }

    /// The boxes of a pipeline's inputs and outputs, except single points.
    pub fn of_boxes(pipeline: &Pipeline, request: &Realisation) -> Sizes {
        let Shapes { inputs, outputs } = Shapes::of_request(pipeline, request);
        let boxes = inputs.into_iter().chain(outputs).filter(|(_, region)| region.dimensions() > 0);
        Sizes(boxes.map(|(name, region)| (name, Size::Box(region))).collect())
    }

    /// Sets them in an app's settings. Returns the first one that the app does not have.
    pub fn give(&self, settings: &mut Settings) -> Option<&str> {
        let mut unknown = self.0.iter().filter(|(name, size)| match size {
            Size::Points(points) => !settings.set(name, *points as f64),
            Size::Box(_) => true,
        });
        unknown.next().map(|(name, _)| name.as_str())
    }

    /// As `--size` takes them: `W=640,H=480`, or `input=640x480,output=1:638x1:478`; `None` if there are none.
    pub fn as_argument(&self) -> Option<String> {
        let range = |range: &Range| match range.min {
            0 => range.extent.to_string(),
            min => format!("{min}:{}", range.extent),
        };
        let size = |size: &Size| match size {
            Size::Points(points) => points.to_string(),
            Size::Box(region) => region.0.iter().map(range).collect::<Vec<_>>().join("x"),
        };
        let sizes: Vec<String> = self.0.iter().map(|(name, of)| format!("{name}={}", size(of))).collect();
        (!sizes.is_empty()).then(|| sizes.join(","))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, size)) in self.0.iter().enumerate() {
            write!(f, "{} {name}={size}", if number == 0 { " at" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Points(points) => write!(f, "{points}"),
            Size::Box(region) => f.write_str(&show::extents(region)),
        }
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, size)| (name, size)))
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sizes, D::Error> {
        let sizes: BTreeMap<String, Size> = Deserialize::deserialize(deserializer)?;
        Ok(Sizes(sizes.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_numbers_in_json_and_a_phrase_in_text() {
        let sizes = Sizes(vec![("W".to_owned(), Size::Points(640)), ("H".to_owned(), Size::Points(480))]);
        assert_eq!(sizes.to_string(), " at W=640, H=480");
        assert_eq!(sizes.as_argument().as_deref(), Some("W=640,H=480"));
        assert_eq!(serde_json::to_string(&sizes).unwrap(), r#"{"W":640,"H":480}"#);
        let back: Sizes = serde_json::from_value(json!({ "W": 640, "H": 480 })).unwrap();
        assert_eq!(back.as_argument().as_deref(), Some("H=480,W=640"));

        let boxes = Sizes(vec![("input".to_owned(), Size::Box(Region::of_extents(&[4, 3])))]);
        assert_eq!(boxes.to_string(), " at input=4x3");
        assert_eq!(boxes.as_argument().as_deref(), Some("input=4x3"));
        let inner = Region(vec![Range::new(1, 2), Range::new(-3, 1)]);
        let inner = Sizes(vec![("output".to_owned(), Size::Box(inner))]);
        assert_eq!(inner.as_argument().as_deref(), Some("output=1:2x-3:1"));
        let expected = json!({ "input": [{ "min": 0, "extent": 4 }, { "min": 0, "extent": 3 }] });
        assert_eq!(serde_json::to_value(&boxes).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Sizes>(expected).unwrap(), boxes);
        assert_eq!((Sizes::default().to_string(), Sizes::default().as_argument()), (String::new(), None));
    }
}
