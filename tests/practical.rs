//! The preset practical: what it chooses, and that it pays where it should.

use altbi::criterion::Unseen;
use altbi::data::{Benchmark, Noise, benchmark_a, benchmark_b};
use altbi::penalty::Graph;
use altbi::practical::{Practical, Stage};
use altbi::{
    Beta, BunchOver, Checkpoint, L1, NoPenalty, Observer, PenaltyTerm, Precision, Problem, Record,
    Side, Signal, Smooth, State,
};
use ndarray::Array2;
use std::sync::{Arc, Mutex};

fn structure() -> [(Side, PenaltyTerm); 2] {
    [
        (Side::W, PenaltyTerm::tuned(Smooth)),
        (Side::H, PenaltyTerm::tuned(L1)),
    ]
}

/// Squared error of WH against the truth, relative to the truth.
fn error(truth: &Array2<f64>, w: &Array2<f64>, h: &Array2<f64>) -> f64 {
    let squares = |matrix: Array2<f64>| matrix.iter().map(|x| x * x).sum::<f64>();
    squares(truth - &w.dot(h)) / squares(truth.clone())
}

/// Smooth signals with Poisson noise, fitted with twice their rank: the penalties know
/// something about them, and the error falls to less than 0.7 of that of plain updates
/// stopped early, which get the same refit. (In every one of these runs; on average it is
/// about 0.4, see docs/choosing-lambda.md.)
#[test]
fn structure_pays_on_noisy_signals() {
    for seed in 50..53 {
        let noisy = Noise::Poisson(3.0).on(&benchmark_b(200, 30, 4, seed), seed);
        let truth = noisy.w.dot(&noisy.h);
        let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
        let tuned = Practical::new(8, Beta::KL, structure());
        let tuned = tuned.run(&problem, seed).unwrap();
        let none = [(Side::W, PenaltyTerm::tuned(NoPenalty))];
        let plain = Practical::new(8, Beta::KL, none)
            .run(&problem, seed)
            .unwrap();
        let of = |result: &altbi::practical::PracticalOutcome| {
            error(&truth, &result.outcome.w, &result.outcome.h)
        };
        let ratio = of(&tuned) / of(&plain);
        assert!(ratio < 0.7, "seed {seed}: {ratio}");
        assert_ne!(tuned.candidates[tuned.chosen].stage, Stage::Plain);
        assert!(tuned.outcome.lambda.iter().all(|weight| *weight > 0.0));
        // The winner is the candidate with the lowest held-out error.
        let errors = tuned
            .candidates
            .iter()
            .map(|candidate| candidate.outer_error);
        let least = errors.fold(f64::INFINITY, f64::min);
        assert_eq!(tuned.candidates[tuned.chosen].outer_error, least);
        assert_eq!(tuned.outcome.outer_error, least);
        // The refit is on all entries: D is that of the whole matrix.
        assert!(tuned.outcome.divergence > 0.0 && tuned.before_refit.w != tuned.outcome.w);
    }
}

/// Where plain updates win, their factors are taken, with λ = 0.
#[test]
fn plain_updates_are_a_candidate() {
    // Without smoothness there is nothing for these penalties to know. (Without noise the solve with
    // a tiny λ would win: it goes on where the plain updates ended, at their limit.)
    let noisy = Noise::Poisson(3.0).on(&benchmark_a(150, 30, 4, 0), 0);
    let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
    let result = Practical::new(4, Beta::KL, structure())
        .run(&problem, 0)
        .unwrap();
    assert_eq!(result.candidates[result.chosen].stage, Stage::Plain);
    assert!(result.outcome.lambda.iter().all(|weight| *weight == 0.0));
    assert_eq!(result.outcome.weights().len(), 2);
}

struct Keep {
    at: usize,
    kept: Arc<Mutex<Option<Checkpoint>>>,
    history: Vec<Record>,
    start: Option<Array2<f64>>,
}

impl Observer for Keep {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        self.history.push(record.clone());
        let start = self.start.get_or_insert_with(|| state.lambda.clone());
        if record.iteration < self.at {
            return Signal::Continue;
        }
        *self.kept.lock().unwrap() = Some(Checkpoint::new("", "", state, start, &self.history));
        Signal::Stop
    }
}

#[test]
fn an_interrupted_procedure_goes_on_to_the_bit() {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(60, 20, 3, 4), 4);
    let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
    let practical =
        || Practical::new(3, Beta::KL, structure()).with_outer_error(Unseen::Entries(0.1));
    let mut splits = vec![problem.clone().speckled(0.1, 2).unwrap()];
    splits.extend(practical().further_splits(&problem, 2).unwrap());
    assert_eq!(splits.len(), 3);
    let whole = practical().run(&problem, 2).unwrap().outcome;
    for (stage_to_stop, at) in [(Stage::Tuned, 9), (Stage::Tuned, 69), (Stage::Plain, 3)] {
        let kept = Arc::new(Mutex::new(None));
        let mut observers = |stage: Stage| -> Vec<Box<dyn Observer>> {
            let keep = |at| Keep {
                at,
                kept: kept.clone(),
                history: Vec::new(),
                start: None,
            };
            match stage {
                // The tuned run's checkpoint is what there is to go on from.
                Stage::Tuned if stage_to_stop == Stage::Tuned => vec![Box::new(keep(at))],
                Stage::Plain if stage_to_stop == Stage::Plain => {
                    vec![Box::new(|_: &Record, _: &State| Signal::Stop)]
                }
                _ => Vec::new(),
            }
        };
        let stopped = practical()
            .watched(&splits, &problem, None, &mut observers)
            .unwrap();
        assert!(stopped.is_err(), "it was interrupted");
        let checkpoint = kept.lock().unwrap().take();
        let result = practical()
            .watched(&splits, &problem, checkpoint.as_ref(), &mut |_| Vec::new())
            .unwrap()
            .unwrap()
            .outcome;
        assert_eq!(
            (&result.w, &result.h, &result.lambda),
            (&whole.w, &whole.h, &whole.lambda)
        );
    }
}

/// What the observers of the preset have seen: stage, record, and WH.
type Seen = Vec<(Stage, Record, Array2<f64>)>;

/// The solve with the final λ starts from the last plain update, which is not the best one. If it
/// does not beat plain updates by a standard error, another starts from the hundredth, and the
/// better of both is the candidate.
#[test]
fn it_is_solved_again_from_iterates_of_plain_updates() {
    let run = |data: &Benchmark, mean: f64| {
        let noisy = Noise::Poisson(mean).on(data, 4);
        let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
        let practical = Practical::new(3, Beta::KL, structure());
        let practical = practical.with_outer_error(Unseen::Entries(0.1));
        let split = problem.speckled(0.1, 2).unwrap();
        let seen = Arc::new(Mutex::new(Seen::new()));
        let mut observers = |stage: Stage| -> Vec<Box<dyn Observer>> {
            let seen = seen.clone();
            vec![Box::new(move |record: &Record, state: &State| {
                let product = state.factors.w.dot(&state.factors.h);
                seen.lock().unwrap().push((stage, record.clone(), product));
                Signal::Continue
            })]
        };
        let result = practical.watched(&[split], &problem, None, &mut observers);
        let candidates = result.unwrap().unwrap().candidates;
        let seen = seen.lock().unwrap();
        let of = |stage: Stage| seen.iter().filter(move |(of, _, _)| *of == stage);
        let plain: Vec<&Array2<f64>> = of(Stage::Plain).map(|(_, _, product)| product).collect();
        // Plain updates make five in an iteration. They end fifty after the best one.
        assert!(plain.len() > 20 && plain.len() > candidates[0].iteration + 10);
        let mut starts: Vec<&Array2<f64>> = Vec::new();
        let mut least: Vec<f64> = Vec::new();
        for (_, record, product) in of(Stage::SolvedAgain) {
            if record.iteration == 0 {
                starts.push(product);
                least.push(f64::INFINITY);
            }
            let best = least.last_mut().unwrap();
            *best = best.min(record.outer_error);
        }
        // (The rows of H get unit size first.)
        for (start, from) in starts.iter().zip([plain[plain.len() - 1], plain[20]]) {
            let apart = (*start - from).mapv(f64::abs).sum() / from.sum();
            assert!(apart < 1e-13, "{apart}");
        }
        let again = candidates[2];
        assert_eq!(
            again.outer_error,
            least.iter().copied().fold(f64::INFINITY, f64::min)
        );
        let margin = again.standard_error.unwrap();
        let counts = candidates[0].outer_error - again.outer_error > margin;
        (starts.len(), counts)
    };
    // With little noise and few rows a penalty gains nothing.
    assert_eq!(run(&benchmark_b(150, 30, 3, 4), 20.0), (1, true));
    assert_eq!(run(&benchmark_b(60, 20, 3, 4), 100.0), (2, false));
}

/// Solves without tuning update both factors in turn, whatever the bunch of the tuned run is over.
#[test]
fn plain_updates_do_not_depend_on_the_bunch() {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(60, 20, 3, 4), 4);
    let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
    let plain = |over: BunchOver| {
        let terms = [(Side::W, PenaltyTerm::tuned(Smooth))];
        let mut practical = Practical::new(3, Beta::KL, terms).with_splits(1);
        practical.config = practical
            .config
            .with_bunch_over(over)
            .with_max_iterations(2);
        practical.run(&problem, 2).unwrap().candidates[0]
    };
    assert_eq!(plain(BunchOver::One), plain(BunchOver::Both));
}

/// Each split has factors of its own, and results are those of the first.
#[test]
fn splits_take_turns() {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(60, 20, 3, 4), 4);
    let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
    let practical = |splits| Practical::new(3, Beta::KL, structure()).with_splits(splits);
    let one = practical(1).run(&problem, 2).unwrap().outcome;
    let three = practical(3).run(&problem, 2).unwrap().outcome;
    let errors = |outcome: &altbi::Outcome| -> Vec<f64> {
        let errors = outcome.history.iter().map(|record| record.outer_error);
        errors.collect()
    };
    let (alone, in_turn) = (errors(&one), errors(&three));
    // The start and the first bunch are those of the first split; then it waits for two bunches.
    assert_eq!(alone[..2], in_turn[..2]);
    assert_eq!(in_turn[1..4], [in_turn[1]; 3]);
    assert_ne!(in_turn[4], in_turn[3]);
    // λ moves in every iteration.
    let lambda: Vec<f64> = three.history.iter().map(|one| one.lambda_median).collect();
    assert!(
        lambda.windows(2).all(|pair| pair[0] != pair[1]),
        "{lambda:?}"
    );
    assert_eq!(three.history.len(), one.history.len());
}

/// Neighbours are computed from the data that the updates of the first split see. Another split
/// would hold out data that the graph has seen.
#[test]
fn a_graph_made_from_data_has_one_split() {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(30, 20, 3, 4), 4);
    let problem = Problem::new(&noisy.x, Precision::F64).unwrap();
    let splits = |graph: Graph| {
        let terms = [(Side::W, PenaltyTerm::tuned(graph))];
        let practical = Practical::new(3, Beta::KL, terms);
        1 + practical.further_splits(&problem, 2).unwrap().len()
    };
    assert_eq!(splits(Graph::nearest(&problem, Side::W, 3).unwrap()), 1);
    assert_eq!(splits(Graph::grid(6, 5)), 3);
}

/// A component that dies makes y tiny where entries are held out; what is infinite there
/// must not become what is not a number elsewhere.
#[test]
fn entries_that_are_not_fitted_do_not_spoil_the_hypergradient() {
    use altbi::update::Rule;
    use altbi::{Bunch, HeldOut, Mode, Pair, Span};
    let x = Array2::from_shape_fn((6, 5), |(i, j)| 1.0 + ((3 * i + 2 * j) % 4) as f64);
    let problem = Problem::new(&x, Precision::F64)
        .unwrap()
        .speckled(0.2, 1)
        .unwrap();
    let held_out = problem.held_out_weights().unwrap();
    let rule = || Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
    let bunch =
        Bunch::with_rules(&problem, rule(), rule(), Arc::new(HeldOut), Span::Both, 3).unwrap();
    let (row, _) = held_out.places(|weight| weight > 0.0).next().unwrap();
    // The row's reconstruction is about 1e-140 everywhere.
    let w = Array2::from_shape_fn((6, 2), |(i, k)| {
        if i == row {
            1e-140
        } else {
            0.5 + (i + k) as f64 * 0.1
        }
    });
    let h = Array2::from_shape_fn((5, 2), |(j, k)| 0.3 + ((j + 2 * k) % 3) as f64);
    let pair = Pair {
        w: problem.tensor("W", &w, [6, 2]).unwrap(),
        h: problem.tensor("H", &h, [5, 2]).unwrap(),
    };
    let weights = problem
        .tensor("λ", &Array2::from_elem((1, 2), 0.1), [1, 2])
        .unwrap();
    for mode in [Mode::Adjoint, Mode::Forward, Mode::Reverse] {
        let lambda = [weights.clone(), weights.clone()];
        let result = bunch.hypergradient(&pair, &lambda, mode).unwrap();
        for gradient in result.gradients {
            let values = altbi::ToMatrix::to_matrix(&gradient).unwrap();
            assert!(
                values.iter().all(|value| value.is_finite()),
                "{mode}: {values}"
            );
        }
    }
}
