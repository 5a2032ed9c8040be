//! The tasks of a comparison: a benchmark with noise, or the user's data.

use std::path::Path;
use std::sync::Arc;

use crate::data::{Noise, Source, read_matrix};
use crate::report::Labels;
use crate::tuner::{Judge, Task, TaskSettings};
use crate::{Divergence, Error, Precision, Result};

use ndarray::Array2;

use super::CompareArguments;

impl CompareArguments {
    pub(super) fn tasks(&self) -> Result<Vec<Task>> {
        let divergence: Arc<dyn Divergence> = Arc::new(self.search.divergence);
        // (Neighbours are computed from the data that are not held out.)
        let with_graphs = |mut task: Task, labels: Option<&Labels>| {
            task.terms = self.search.penalties.terms_for(&task.split, labels)?;
            Ok(task)
        };
        let terms = self.search.penalties.terms()?;
        let settings = |rank| TaskSettings {
            rank,
            divergence: divergence.clone(),
            terms: terms.clone(),
            outer: self.search.outer(),
        };
        let seeds = (0..self.runs as u64).map(|run| self.search.seed.wrapping_add(run));
        let Some(data) = &self.data else {
            let conflict = |first, reason| {
                Err(Error::Conflict {
                    first,
                    second: "a benchmark",
                    reason,
                })
            };
            if self.search.table.mask.is_some() {
                return conflict("--mask", "a mask belongs to data; give DATA too");
            }
            if self.search.table.dtype != Precision::F64 {
                return conflict("--dtype f32", "benchmarks are made in 64 bits; give DATA");
            }
            let noise = Noise::of_beta(self.search.divergence.0);
            let tasks = seeds.map(|seed| {
                let clean = self.benchmark.made(self.size, seed);
                let rank = self.rank.unwrap_or(clean.w.ncols());
                Task::of_benchmark(&clean, noise, settings(rank), seed)
                    .and_then(|task| with_graphs(task, None))
            });
            return tasks.collect();
        };
        let rank = self.rank.ok_or(Error::RankMissing)?;
        let source = Source::from(data.as_str());
        let mut data = self.search.table.read(&source, self.search.quiet)?;
        let problem = data.problem(&self.search.table)?;
        let labels = data.labels;
        problem.check_domain(divergence.as_ref())?;
        let truth = self.truth.as_ref().map(|path| read_matrix(Path::new(path)));
        let truth = truth.transpose()?.map(Array2::into_shared);
        if let Some(truth) = &truth {
            Error::require_shape("the truth", truth.dim(), problem.shape())?;
        }
        let test = match &truth {
            Some(_) => 0.0,
            None => self.test.unwrap_or(0.1),
        };
        let tasks = seeds.map(|seed| {
            let task = Task::of_data(problem.clone(), test, settings(rank), seed);
            task.and_then(|mut task| {
                if let Some(truth) = &truth {
                    task.judge = Judge::Truth(truth.clone());
                }
                with_graphs(task, Some(&labels))
            })
        });
        tasks.collect()
    }
}
