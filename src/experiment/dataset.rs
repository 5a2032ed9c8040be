//! The matrices that are factorised.

use std::path::Path;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::data::published::{published_a, published_b, published_c, published_d};
use crate::data::{
    Benchmark, MAP_SIDE, benchmark_a, benchmark_b, benchmark_c, benchmark_d, poisson,
    separable_factors,
};
use crate::error::Result;
use crate::factors::Factors;
use crate::words::words;

/// The benchmarks by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkName {
    /// Clipped normal deviates.
    A,
    /// Clipped sinusoids.
    B,
    /// Spectra.
    C,
    /// A hyperspectral image.
    D,
    /// Counts of A; not one of the paper's.
    Poisson,
}

/// The size of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// The paper's size: 1000×50, and 224×3025 for D.
    #[default]
    Full,
    /// 400×40, and 100×400 for D.
    Medium,
    /// For a quick test: 120×24, and 48×144 for D.
    Small,
}

impl Size {
    /// n and m; the number of bands and the side of the maps of D.
    fn numbers(self) -> ([usize; 2], [usize; 2]) {
        match self {
            Self::Full => ([1000, 50], [224, MAP_SIDE]),
            Self::Medium => ([400, 40], [100, 20]),
            Self::Small => ([120, 24], [48, 12]),
        }
    }
}

impl BenchmarkName {
    /// The benchmark with its own rank.
    pub(crate) fn made(self, size: Size, seed: u64) -> Benchmark {
        let ([n, m], [bands, side]) = size.numbers();
        match self {
            Self::A => benchmark_a(n, m, 4, seed),
            Self::B => benchmark_b(n, m, 4, seed),
            Self::C => benchmark_c(n, m, 5, seed),
            Self::D => benchmark_d(bands, side, 5, seed),
            Self::Poisson => poisson(n, m, 4, POISSON_SCALE, seed),
        }
    }
}

words!(BenchmarkName, "benchmark" { A = "a", B = "b", C = "c", D = "d", Poisson = "poisson" });
words!(Size, "size" { Full = "full", Medium = "medium", Small = "small" });

/// The kind of W's columns and H's rows, for figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Arrangement {
    /// Numbers in no order.
    Unordered,
    /// Columns of W are signals.
    Signals,
    /// Columns of W are spectra, rows of H square maps.
    Maps {
        /// Pixels along a side.
        side: usize,
    },
}

/// A matrix to factorise, with its true factors if they are known.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// Name in file names.
    pub name: String,
    /// Name in headings.
    pub title: String,
    /// Its origin, in a sentence.
    pub origin: String,
    /// X, n×m.
    pub x: Array2<f64>,
    /// Its true factors, if they are known.
    pub truth: Option<Factors>,
    /// Number of components.
    pub rank: usize,
    /// The kind of W's columns and H's rows.
    pub(crate) layout: Arrangement,
}

/// Mean of the counts of the Poisson data relative to that of A.
const POISSON_SCALE: f64 = 10.0;

impl Dataset {
    /// Data of your own; `truth` its factors, where they are known.
    pub fn new(name: &str, x: Array2<f64>, rank: usize, truth: Option<Factors>) -> Self {
        Self {
            name: name.into(),
            title: name.into(),
            origin: "Given.".into(),
            x,
            truth,
            rank,
            layout: Arrangement::Unordered,
        }
    }

    /// All datasets of a benchmark: generated data, or those of the paper's authors if a folder
    /// holds them. The authors' A and B are fitted with r = 4, as in the paper, and with r = 5, the
    /// rank of their matrices.
    ///
    /// # Errors
    /// Those of reading the files in `published`.
    pub fn all_of(
        benchmark: BenchmarkName,
        size: Size,
        seed: u64,
        published: Option<&Path>,
    ) -> Result<Vec<Self>> {
        let ([_, m], [_, side]) = size.numbers();
        let data = || benchmark.made(size, seed);
        let made = |what: &str| format!("{what}, made here with seed {seed}.");
        let both_ranks = |name: &'static str, x: Option<Array2<f64>>| {
            let ranks = x.map(|x| [4, 5].map(|rank| Self::published(name, &x, rank)));
            ranks.into_iter().flatten()
        };
        let mut all = Vec::new();
        match benchmark {
            BenchmarkName::A => {
                let what = "W = max(normal, 0), H uniform on (0, 1)";
                all.push(Self::made(
                    "a",
                    "Benchmark A",
                    made(what),
                    data(),
                    Arrangement::Unordered,
                ));
                all.extend(both_ranks("a", published.map(published_a).transpose()?));
            }
            BenchmarkName::B => {
                let what = "W clipped sinusoids, H uniform with a tenth of zeros (α_H = 0.1)";
                all.push(Self::made(
                    "b",
                    "Benchmark B",
                    made(what),
                    data(),
                    Arrangement::Signals,
                ));
                all.extend(both_ranks("b", published.map(published_b).transpose()?));
            }
            BenchmarkName::C => {
                let (data, origin) = match published {
                    Some(folder) => (
                        published_c(folder, m, 5, seed)?,
                        format!(
                            "W: the first five signals of the authors' file AC10_art_spectr_noi; \
                             H uniform with a tenth of zeros (α_H = 0.1), made here with seed {seed}."
                        ),
                    ),
                    None => {
                        let what = "W spectra of Gaussian and Lorentzian peaks, H uniform with a \
                                    tenth of zeros (α_H = 0.1)";
                        (data(), made(what))
                    }
                };
                all.push(Self::made(
                    "c",
                    "Benchmark C",
                    origin,
                    data,
                    Arrangement::Signals,
                ));
            }
            BenchmarkName::D => {
                let (data, origin) = match published {
                    Some(folder) => (
                        published_d(folder, side, 5, seed)?,
                        format!(
                            "W: the first five spectra of the authors' file USGS_pruned_10_deg that \
                             are pairwise more than 15° apart; H smooth abundance maps that sum to \
                             1, made here with seed {seed}."
                        ),
                    ),
                    None => {
                        let what = "W smooth reflectances more than 15° apart, H smooth abundance \
                                    maps that sum to 1";
                        (data(), made(what))
                    }
                };
                all.push(Self::made(
                    "d",
                    "Benchmark D",
                    origin,
                    data,
                    Arrangement::Maps { side },
                ));
            }
            BenchmarkName::Poisson => {
                let what = "Poisson counts whose means are ten times benchmark A";
                let title = "Counts of benchmark A";
                all.push(Self::made(
                    "poisson",
                    title,
                    made(what),
                    data(),
                    Arrangement::Unordered,
                ));
            }
        }
        Ok(all)
    }

    fn made(name: &str, title: &str, origin: String, data: Benchmark, layout: Arrangement) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            origin,
            rank: data.w.ncols(),
            x: data.x,
            truth: Some(Factors {
                w: data.w,
                h: data.h,
            }),
            layout,
        }
    }

    fn published(name: &str, x: &Array2<f64>, rank: usize) -> Self {
        // The rank of their matrices, by their singular values.
        let truth = separable_factors(x, 5);
        let letter = name.to_uppercase();
        let about_truth = match &truth {
            Some(_) => {
                "Its factors were not published; successive projection finds nonnegative factors of \
                 rank 5 that are exact to rounding, and these are taken for the truth."
            }
            None => {
                "Its factors were not published, and successive projection does not find them, so \
                 there is no SIR."
            }
        };
        let about_rank = match &truth {
            Some(truth) if truth.w.ncols() > rank => {
                " With r = 4 its SIR is the mean over the four true components that come closest."
            }
            _ => "",
        };
        Self {
            name: format!("{name}-published-{rank}"),
            title: format!("Benchmark {letter} of the authors, r = {rank}"),
            origin: format!(
                "The authors' file Benchmark_{letter}, a matrix of rank 5. {about_truth}{about_rank}"
            ),
            x: x.clone(),
            truth: truth.map(|found| Factors {
                w: found.w,
                h: found.h,
            }),
            rank,
            layout: if name == "a" {
                Arrangement::Unordered
            } else {
                Arrangement::Signals
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_can_be_made_small() {
        for (name, shape, rank) in [
            (BenchmarkName::A, (120, 24), 4),
            (BenchmarkName::B, (120, 24), 4),
            (BenchmarkName::C, (120, 24), 5),
            (BenchmarkName::D, (48, 144), 5),
            (BenchmarkName::Poisson, (120, 24), 4),
        ] {
            let all = Dataset::all_of(name, Size::Small, 3, None).unwrap();
            assert_eq!(all.len(), 1);
            assert_eq!((all[0].x.dim(), all[0].rank), (shape, rank));
            let truth = all[0].truth.as_ref().unwrap();
            let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12;
            let noisy = name == BenchmarkName::Poisson;
            assert!(noisy || truth.w.dot(&truth.h).iter().zip(&all[0].x).all(close));
        }
    }
}
