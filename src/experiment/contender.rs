//! The contenders of an experiment.

use super::{Moment, Protocol};
use crate::config::{AltBiConfig, Method};

/// λ of P-MU in the paper's response functions.
const RESPONSE_LAMBDAS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// λ of P-MU in comparisons.
const PAPER_LAMBDA: f64 = 0.5;

/// A method with its λ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contender {
    /// Name in file names and tables of numbers.
    pub name: String,
    /// Name in sentences and legends.
    pub label: String,
    /// The method.
    pub method: Method,
    /// λ, if it is given.
    pub lambda: Option<f64>,
    /// True if it is measured at every moment and saved with its factors. The others are measured
    /// only at the stopping rule, for the response function.
    pub followed: bool,
}

impl Contender {
    fn followed(name: &str, label: &str, method: Method, lambda: Option<f64>) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            method,
            lambda,
            followed: true,
        }
    }

    /// Updates of W in an iteration.
    pub fn updates_of_w(&self, protocol: &Protocol) -> usize {
        let config = AltBiConfig::new(1).with_method(self.method);
        config.with_bunch(protocol.bunch).updates_of_w()
    }

    /// The moments at which it is measured.
    pub fn moments(&self) -> &'static [Moment] {
        if self.followed {
            &Moment::ALL
        } else {
            &[Moment::Stopped]
        }
    }

    /// The five that are compared, in the order of tables and colours.
    pub fn compared() -> Vec<Self> {
        vec![
            Self::followed("mu", "MU", Method::Mu, None),
            Self::followed("p-mu", "P-MU", Method::PenalizedMu, Some(PAPER_LAMBDA)),
            Self::followed("mu-t", "MU-T", Method::MuT, None),
            Self::followed("frozen", "frozen λ", Method::Frozen, None),
            Self::followed("altbi", "AltBi", Method::AltBi, None),
        ]
    }

    /// P-MU with the λ of the response function, in their order; one of them is
    /// among the compared.
    pub fn responses() -> Vec<Self> {
        let with = |lambda: f64| Self {
            name: if lambda == PAPER_LAMBDA {
                "p-mu".into()
            } else {
                format!("p-mu-{lambda:.1}")
            },
            label: format!("P-MU λ = {lambda:.1}"),
            method: Method::PenalizedMu,
            lambda: Some(lambda),
            followed: false,
        };
        RESPONSE_LAMBDAS.map(with).into()
    }

    /// All contenders, AltBi first, because its time is the limit of the others.
    pub fn all() -> Vec<Self> {
        let mut all = Self::compared();
        all.rotate_right(1);
        let responses = Self::responses().into_iter();
        all.extend(responses.filter(|response| response.lambda != Some(PAPER_LAMBDA)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_a_name_of_their_own() {
        let all = Contender::all();
        assert_eq!(all.len(), 14);
        assert_eq!(all[0].method, Method::AltBi);
        for (index, contender) in all.iter().enumerate() {
            assert!(
                all[..index]
                    .iter()
                    .all(|other| other.name != contender.name)
            );
        }
        let responses = Contender::responses();
        let known = |response: &Contender| all.iter().any(|one| one.name == response.name);
        assert!(responses.iter().all(known));
    }
}
