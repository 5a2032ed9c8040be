//! The model of a run folder, and the order of its features.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use super::RunRecords;
use crate::config::AltBiConfig;
use crate::data::read_matrix;
use crate::device::Device;
use crate::divergence::Beta;
use crate::error::{Error, Result};
use crate::lambda::Units;
use crate::numerics::Precision;
use crate::penalty::{self, Graph, Penalty};
use crate::problem::{Scale, Scaling};
use crate::solver::{Model, WeightedPenalty};

/// Largest number of names in an error.
const SHOWN: usize = 3;

impl RunRecords {
    /// The model of the run, which encodes new data: its factors, divergence, exponent, penalties
    /// and λ.
    ///
    /// # Errors
    /// [`Error::ConfigFile`] for settings that are missing or damaged; [`Error::Shape`] for
    /// factors and λ that do not fit together.
    pub fn model(&self, precision: Precision, device: Device) -> Result<Model> {
        let mut config = AltBiConfig::new(self.w.ncols()).with_precision(precision);
        config.exponent = self.setting("exponent")?;
        config.tolerance = self.setting("tol")?;
        config.max_iterations = self.setting("max-iter")?;
        let units: Units = self.setting("lambda-units")?;
        let mut penalties = Vec::new();
        for (record, (_, lambda)) in self.penalties.iter().zip(&self.groups) {
            penalties.push(WeightedPenalty {
                side: record.factor,
                penalty: named(&record.penalty)?,
                scope: record.scope.parse()?,
                lambda: lambda.clone(),
                units,
            });
        }
        let factors = (self.w.clone(), self.h.clone());
        let divergence: Beta = self.setting("divergence")?;
        let model = Model::new(factors, divergence, config, penalties, device)?;
        Ok(model.with_scaling(self.scaling()?))
    }

    /// The scaling of the data, if they were scaled.
    ///
    /// # Errors
    /// [`Error::ConfigFile`], and those of reading `scale.npy`.
    pub fn scaling(&self) -> Result<Option<Scaling>> {
        // (Older runs do not have this setting.)
        if !self.config.contains_key("scale") {
            return Ok(None);
        }
        match self.setting("scale")? {
            Scale::None => Ok(None),
            scale => {
                let sizes = read_matrix(&self.config_path.with_file_name("scale.npy"))?;
                Scaling::read(scale, &sizes, [self.w.nrows(), self.h.ncols()])
            }
        }
    }

    /// A setting of `config.toml`.
    ///
    /// # Errors
    /// [`Error::ConfigFile`] if it is missing or has a bad value.
    pub fn setting<T: FromStr>(&self, key: &str) -> Result<T> {
        let broken = |reason| Error::ConfigFile {
            path: self.config_path.clone(),
            reason,
        };
        let text = match self.config.get(key) {
            Some(toml::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return Err(broken(format!("there is no '{key}'"))),
        };
        let value = text.parse();
        value.map_err(|_| broken(format!("'{text}' is not a valid value of '{key}'")))
    }
}

/// A built-in penalty. (`graph` needs no graph here: it couples rows, so it is refused for new
/// rows.)
fn named(name: &str) -> Result<Arc<dyn Penalty>> {
    match name {
        "graph" => Ok(Arc::new(Graph::from_edges(0, [])?)),
        name => penalty::by_name(name),
    }
}

/// For each feature of a run, the index of the feature of the same name in other data.
///
/// # Errors
/// [`Error::Features`] with the first names that are missing or unknown, or with one that occurs
/// twice.
pub(crate) fn arrangement(
    what: &'static str,
    known: &[String],
    found: &[String],
) -> Result<Vec<usize>> {
    if known == found {
        return Ok((0..known.len()).collect());
    }
    let places = |names: &[String]| -> Result<HashMap<String, usize>> {
        let mut places = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            if places.insert(name.clone(), place).is_some() {
                return Err(Error::Features {
                    what,
                    reason: format!("the name '{name}' occurs twice, and the order differs"),
                });
            }
        }
        Ok(places)
    };
    let (of_run, of_data) = (places(known)?, places(found)?);
    let missing = known.iter().filter(|name| !of_data.contains_key(*name));
    let unknown = found.iter().filter(|name| !of_run.contains_key(*name));
    let mut reasons = Vec::new();
    for (names, why) in [
        (missing.collect::<Vec<_>>(), "missing"),
        (unknown.collect(), "unknown to the run"),
    ] {
        if !names.is_empty() {
            let shown = names.iter().take(SHOWN).map(|name| format!("'{name}'"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(SHOWN);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            reasons.push(format!("{shown}{more} {} {why}", are(names.len())));
        }
    }
    if !reasons.is_empty() {
        let reason = reasons.join("; ");
        return Err(Error::Features { what, reason });
    }
    Ok(known.iter().map(|name| of_data[name]).collect())
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_put_in_order_by_their_names() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let places =
            |known: &str, found: &str| arrangement("columns", &names(known), &names(found));
        assert_eq!(places("a b c", "c a b").unwrap(), [1, 2, 0]);
        assert_eq!(places("a a", "a a").unwrap(), [0, 1]);
        let told = |known: &str, found: &str| places(known, found).unwrap_err().to_string();
        assert!(told("a b", "a").contains("'b' is missing"));
        assert!(told("a", "a b c d e").contains("'b', 'c', 'd' and 1 more are unknown"));
        assert!(told("a a b", "b a a").contains("occurs twice"));
    }
}
