//! A genetic algorithm (crate genetic_algorithm) on the dials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use genetic_algorithm::strategy::evolve::prelude::*;
use parking_lot::Mutex;

use super::books::{Answer, Solved, better};
use super::{Books, DIAL};
use crate::error::{Error, Result};

/// Size of the population.
const POPULATION: usize = 6;
/// Fitness is a whole number. This is its unit, relative to the first error.
const RESOLUTION: f64 = 1e-9;

/// The fitness of a chromosome: its held-out error. The crate clones this for each thread. All
/// clones share the same books.
#[derive(Clone)]
struct HeldOutError<'a> {
    shared: Arc<Mutex<Shared<'a>>>,
    spent: Arc<AtomicBool>,
}

impl std::fmt::Debug for HeldOutError<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HeldOutError")
    }
}

struct Shared<'a> {
    books: Books<'a>,
    best: Option<Solved>,
    unit: Option<f64>,
    failed: Option<Error>,
}

impl Fitness for HeldOutError<'_> {
    type Genotype = RangeGenotype<f64>;

    fn calculate_for_chromosome(
        &mut self,
        chromosome: &FitnessChromosome<Self>,
        _genotype: &FitnessGenotype<Self>,
    ) -> Option<FitnessValue> {
        let mut shared = self.shared.lock();
        match shared.books.solve(&chromosome.genes, None) {
            Ok(Some(solved)) => {
                let unit = *shared
                    .unit
                    .get_or_insert(solved.outer_error.max(f64::MIN_POSITIVE) * RESOLUTION);
                let fitness = fitness_score(solved.outer_error, unit);
                shared.best = better(shared.best.take(), solved);
                fitness
            }
            Ok(None) => {
                self.spent.store(true, Ordering::SeqCst);
                None
            }
            Err(error) => {
                shared.failed = Some(error);
                self.spent.store(true, Ordering::SeqCst);
                None
            }
        }
    }
}

pub(super) fn run(books: Books<'_>) -> Result<Answer> {
    let (dials, seed) = (books.dials(), books.task.seed);
    let spent = Arc::new(AtomicBool::new(false));
    let shared = Arc::new(Mutex::new(Shared {
        books,
        best: None,
        unit: None,
        failed: None,
    }));
    let genotype = RangeGenotype::<f64>::builder()
        .with_genes_size(dials)
        .with_allele_range(DIAL.0..=DIAL.1)
        .with_mutation_type(MutationType::Range(3.0))
        .build()
        .expect("a genotype with a range");
    let evolution = Evolve::builder()
        .with_genotype(genotype)
        .with_target_population_size(POPULATION)
        .with_max_stale_generations(1000)
        .with_fitness(HeldOutError {
            shared: shared.clone(),
            spent: spent.clone(),
        })
        .with_fitness_ordering(FitnessOrdering::Minimize)
        .with_select(SelectTournament::new(0.5, 0.2, 3))
        .with_crossover(CrossoverUniform::new(0.7, 0.8))
        .with_mutate(MutateSingleGene::new(0.8))
        .with_abort_flag(spent)
        .with_rng_seed_from_u64(seed)
        .call();
    drop(evolution.expect("a strategy with all its parts"));
    let shared = Arc::into_inner(shared).expect("the search is over");
    let Shared {
        books,
        best,
        failed,
        ..
    } = shared.into_inner();
    match failed {
        Some(error) => Err(error),
        None => books.answer(best),
    }
}
