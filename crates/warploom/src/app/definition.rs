//! Definitions in the notation of Tensor Comprehensions as apps.

use warploom_lang::{Pipeline, Realisation};
use warploom_tensor::Definition;

use super::{App, Setting, Settings, Shapes};

impl App {
    /// A definition in the notation of Tensor Comprehensions as an app. `pipeline` and `request` are the results of
    /// [`Definition::realise`] at `sizes`; the request may have more Params by now. The sizes may still change, as long
    /// as the pipeline does not.
    ///
    /// ```
    /// use warploom::app::{App, Settings};
    ///
    /// let text = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";
    /// let mv = warploom::tensor::parse("mv.tc", text)?.define(None)?;
    /// let sizes = [("M", 20), ("K", 30)];
    /// let (pipeline, request) = mv.realise(&sizes)?;
    /// let app = App::of_definition(mv, &sizes, &pipeline, &request);
    /// let mut settings = Settings::defaults(&app);
    /// assert!(settings.set("M", 10.0));
    /// assert_eq!(app.shapes_at(&settings).output("C").map(|region| region.extents()), Some(vec![10]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_definition(
        definition: Definition,
        sizes: &[(&str, i64)],
        pipeline: &Pipeline,
        request: &Realisation,
    ) -> App {
        let size = |(name, size): &(&str, i64)| Setting {
            name: (*name).to_owned(),
            default: *size as f64,
            whole: true,
        };
        let names: Vec<String> = sizes.iter().map(|(name, _)| (*name).to_owned()).collect();
        let hash = pipeline.structural_hash();
        let shapes = move |settings: &Settings| shapes_at(&definition, &names, hash, settings);
        App::of_pipeline(pipeline, request).sizes(sizes.iter().map(size).collect::<Vec<_>>()).shapes(shapes)
    }
}

/// The boxes of a definition at other sizes; none if its pipeline differs there.
fn shapes_at(definition: &Definition, names: &[String], hash: u128, settings: &Settings) -> Shapes {
    let at: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), settings.int(name))).collect();
    match definition.realise(&at) {
        Ok((pipeline, request)) if pipeline.structural_hash() == hash => {
            Shapes::of_request(&pipeline, &request)
        }
        _ => Shapes::new([], []),
    }
}
