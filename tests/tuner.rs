//! Ways to choose λ, at equal budget.

use std::sync::{Arc, Mutex};

use altbi::criterion::{OuterError, Unseen};
use altbi::data::{Noise, benchmark_b};
use altbi::divergence::Outer;
use altbi::practical::settings;
use altbi::tuner::{
    Answer, Books, BuiltIn, Contest, ContestSettings, DIAL, Judge, RIVALS, Rival, Standing, Task,
    TaskSettings, contest,
};
use altbi::{
    AltBiConfig, Beta, Error, Exponent, Initial, L1, Method, NoPenalty, PenaltyTerm, Precision,
    Problem, Scope, Selection, Side, Smooth, SmoothedKl, SquaredL2, Units,
};
use ndarray::Array2;

fn tasks(count: u64) -> Vec<Task> {
    let seeds = 7..7 + count;
    let tasks = seeds.map(|seed| {
        let terms = vec![
            (Side::W, PenaltyTerm::tuned(Smooth)),
            (Side::H, PenaltyTerm::tuned(L1)),
        ];
        let clean = benchmark_b(150, 30, 3, seed);
        let noise = Noise::of_beta(1.0);
        let settings = TaskSettings {
            rank: 4,
            divergence: Arc::new(Beta::KL),
            terms,
            outer: Unseen::Entries(0.1).into(),
        };
        Task::of_benchmark(&clean, noise, settings, seed).unwrap()
    });
    tasks.collect()
}

fn of_any_kind(rivals: &[BuiltIn]) -> Vec<&dyn Rival> {
    rivals.iter().map(|rival| rival as &dyn Rival).collect()
}

fn run(tasks: &[Task], rivals: &[BuiltIn], dials: Scope, budget: Option<f64>) -> Contest {
    let settings = ContestSettings {
        dials,
        budget,
        ..ContestSettings::default()
    };
    contest(tasks, &of_any_kind(rivals), settings).unwrap()
}

#[test]
fn scikit_learn_ends_by_its_own_rule() {
    let mut ends = Vec::new();
    let mut tasks = tasks(3);
    // (One component is found at once.)
    tasks[2].rank = 1;
    for task in tasks {
        let all = run(
            std::slice::from_ref(&task),
            &[BuiltIn::ScikitLearn],
            Scope::Shared,
            None,
        );
        let standing = all.of("scikit-learn").next().unwrap();
        // The same updates by the solver, ten in an iteration.
        let config = settings(task.rank, task.divergence.as_ref(), &task.terms)
            .with_seed(task.seed)
            .with_method(Method::MuT)
            .with_bunch(10)
            .with_max_iterations(20);
        let config = config.with_warm_up(0).with_initial(Initial::Nndsvda);
        let mut solver = config.penalizing(task.divergence.clone(), task.terms.clone());
        let outcome = solver.run(&task.split).unwrap();
        let errors = outcome
            .history
            .iter()
            .map(|record| record.divergence.sqrt());
        let errors: Vec<f64> = errors.collect();
        let small = |two: &[f64]| two[0] - two[1] < 1e-4 * errors[0];
        let expected = errors.windows(2).position(small).map_or(20, |at| at + 1);
        assert_eq!(standing.work, 10.0 * expected as f64);
        assert_eq!(standing.lambda, (0.0, 0.0));
        ends.push(expected);
    }
    assert!(ends[0] > 1 && ends[2] < 20, "{ends:?}");
}

/// ½ℓ2² under KL needs a smaller exponent. Updates without a penalty do not, whoever makes them.
#[test]
fn plain_updates_are_those_of_practical() {
    let mut task = tasks(1).remove(0);
    task.terms = vec![(Side::W, PenaltyTerm::tuned(SquaredL2))];
    let config = settings(task.rank, task.divergence.as_ref(), &task.terms);
    assert_eq!(config.exponent, Exponent::Monotone);
    let one = std::slice::from_ref(&task);
    let all = run(one, &[BuiltIn::Plain, BuiltIn::None], Scope::Shared, None);
    // The same updates by the solver, one in an iteration.
    let mut plain = config
        .with_seed(task.seed)
        .with_method(Method::Mu)
        .with_bunch(1)
        .with_warm_up(0)
        .with_max_iterations(1020)
        .with_tolerance(0.0)
        .with_scope(Scope::Row)
        .with_units(Units::Absolute)
        .solver(task.divergence.clone(), NoPenalty)
        .with_shared_criterion(task.outer.criterion());
    let outcome = plain.run(&task.split).unwrap();
    // Standings have the error per held-out entry.
    let held_out = task.split.held_out_weights().unwrap().to_array().sum();
    let errors = outcome
        .history
        .iter()
        .map(|record| record.outer_error / held_out);
    let errors: Vec<f64> = errors.collect();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
    // Rivals begin after 20 updates and look at the error after every fifth.
    let seen = errors[20..].iter().step_by(5);
    let stopped = all.of("plain").next().unwrap().held_out;
    assert!(
        seen.clone().any(|error| close(stopped, *error)),
        "{stopped}"
    );
    let last = all.of("none").next().unwrap().held_out;
    assert!(close(last, errors[1020]), "{last} and {}", errors[1020]);
}

#[test]
fn every_rival_runs_within_its_budget_and_repeats() {
    let tasks = tasks(2);
    let all = run(&tasks, &RIVALS, Scope::Shared, None);
    assert_eq!(all.standings.len(), 2 * RIVALS.len());
    assert_eq!(all.rivals(), RIVALS.map(|rival| rival.name()));
    let mut beaten = false;
    for task in &tasks {
        let of = |rival: BuiltIn| {
            let name = rival.name();
            let standing = all.of(&name).find(|standing| standing.seed == task.seed);
            standing.unwrap().clone()
        };
        let budget = of(BuiltIn::Practical).work;
        // 20 + 70 bunches of 10 at three times the price, and two solves.
        assert!(budget > 2120.0 + 100.0, "{budget}");
        for rival in RIVALS {
            let standing = of(rival);
            assert!(standing.held_out.is_finite() && standing.judged > 0.0);
            assert!(standing.refit > 0.0 && standing.seconds > 0.0);
            if rival != BuiltIn::Practical {
                // The search ends at the first look after the budget is spent. Two solves of at
                // most 1000 updates follow.
                assert!(standing.work < budget + 5.0 + 2000.0, "{rival}");
            }
            if rival.searches() {
                assert!(standing.solves > 5, "{rival} made {}", standing.solves);
                let (least, most) = standing.lambda;
                let is_plain = most == 0.0;
                let within = least >= DIAL.0.exp() * 0.999 && most <= DIAL.1.exp() * 1.001;
                assert!(is_plain || within, "{rival}: {least} {most}");
            }
            // Points get better and end at the answer, where held-out errors decide.
            let errors: Vec<f64> = standing.points.iter().map(|point| point.held_out).collect();
            assert!(errors.windows(2).all(|two| two[1] < two[0]));
            // (A search that does not beat plain updates by the margin answers with them.)
            let own = rival.searches() && standing.lambda.1 > 0.0;
            if own || rival == BuiltIn::Plain {
                let last = errors.last().unwrap();
                assert!((last / standing.held_out - 1.0).abs() < 1e-12, "{rival}");
            }
        }
        assert_eq!(of(BuiltIn::Plain).lambda, (0.0, 0.0));
        assert_eq!(of(BuiltIn::Fixed).lambda, (0.5, 0.5));
        // Searches find something that beats no penalty on these data; practical takes what it
        // found only where it beats plain by a standard error.
        let plain = of(BuiltIn::Plain).held_out;
        for rival in [BuiltIn::Tpe, BuiltIn::Random, BuiltIn::Grid] {
            assert!(of(rival).held_out < plain, "{rival}");
        }
        assert!(of(BuiltIn::Practical).held_out <= plain * (1.0 + 1e-12));
        beaten |= of(BuiltIn::Practical).held_out < plain;
    }
    assert!(beaten, "practical takes a penalty on one task at least");
    let again = run(&tasks[..1], &RIVALS, Scope::Shared, None);
    for (a, b) in again.standings.iter().zip(&all.standings) {
        let same = |standing: &Standing| {
            (
                standing.rival.clone(),
                standing.held_out,
                standing.judged,
                standing.solves,
                standing.lambda,
            )
        };
        assert_eq!(same(a), same(b));
    }
}

/// A rival that knows its dials, and remembers the error of its only solve.
#[derive(Debug)]
struct Decided {
    dial: f64,
    error: Mutex<f64>,
}

impl Rival for Decided {
    fn name(&self) -> String {
        "decided".into()
    }

    fn choose(&self, mut books: Books<'_>) -> altbi::Result<Answer> {
        let dials = vec![self.dial; books.dials()];
        let solved = books.solve(&dials, None)?;
        *self.error.lock().unwrap() = solved.as_ref().expect("there is a budget").outer_error;
        books.answer(solved)
    }
}

/// A dial that beats plain updates, and one that is too strong.
const GOOD: f64 = -2.5;
const BAD: f64 = 3.0;

/// Practical solves for its final λ from iterates of plain updates, and falls back to plain updates.
/// The rivals' weights get the same.
#[test]
fn chosen_weights_are_solved_for_again_from_plain_updates() {
    let mut lowest = [0; 3];
    for (task, dial) in tasks(3)
        .into_iter()
        .flat_map(|task| [(task.clone(), GOOD), (task, BAD)])
    {
        let rival = Decided {
            dial,
            error: Mutex::new(f64::NAN),
        };
        let one = std::slice::from_ref(&task);
        let all = contest(one, &[&rival], ContestSettings::default()).unwrap();
        let found = all.of("decided").next().unwrap().held_out;
        // The same by the solver: five updates in an iteration, a patience of 50 updates.
        let settings = settings(task.rank, task.divergence.as_ref(), &task.terms)
            .with_seed(task.seed)
            .with_bunch(5)
            .with_max_iterations(200)
            .with_select(Selection::Best);
        let plain = |settings: AltBiConfig| {
            let settings = settings
                .with_method(Method::MuT)
                .with_scope(Scope::Row)
                .with_units(Units::Absolute);
            let solver = settings.solver(task.divergence.clone(), NoPenalty);
            let mut solver = solver
                .with_shared_criterion(task.outer.criterion())
                .with_patience(10);
            solver.run(&task.split).unwrap()
        };
        let stopped_early = plain(settings.clone());
        let end = stopped_early.iterations;
        let again = |iterations: usize| {
            let settings = settings.clone();
            let start = plain(
                settings
                    .clone()
                    .with_max_iterations(iterations)
                    .with_select(Selection::Last),
            );
            let outcome = settings
                .with_method(Method::Frozen)
                .with_scope(Scope::Shared)
                .with_warm_up(0)
                .penalizing(task.divergence.clone(), task.terms.clone())
                .with_shared_criterion(task.outer.criterion())
                .with_patience(10)
                .with_factors(start.factors().into())
                .with_lambda(Array2::from_elem((2, 1), rival.dial.exp()))
                .run(&task.split);
            outcome.unwrap().outer_error
        };
        let held_out = task.split.held_out_weights().unwrap().to_array().sum();
        // 20 updates lead to the start; 16 iterations make them 100.
        let early = if end < 16 { f64::INFINITY } else { again(16) };
        let errors = [*rival.error.lock().unwrap(), early, again(end)];
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let expected = match dial == GOOD {
            true => least / held_out,
            false => stopped_early.outer_error / held_out,
        };
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        for (error, lowest) in errors.iter().zip(&mut lowest) {
            *lowest += usize::from(*error <= least);
        }
    }
    // Solves from other starts do win.
    assert!(lowest[1] + lowest[2] > 0, "{lowest:?}");
}

#[test]
fn dials_may_belong_to_components_but_not_to_rows() {
    let tasks = tasks(1);
    let rivals = [
        BuiltIn::Practical,
        BuiltIn::Plain,
        BuiltIn::Random,
        BuiltIn::CmaEs,
    ];
    let all = run(&tasks, &rivals, Scope::Component, None);
    let (least, most) = all.of("random").next().unwrap().lambda;
    assert!(least < most, "components have dials of their own");
    let settings = ContestSettings {
        dials: Scope::Row,
        ..ContestSettings::default()
    };
    let found = contest(&tasks, &of_any_kind(&rivals), settings);
    assert!(matches!(found, Err(Error::ScopeUnsupported { .. })));
}

#[test]
fn a_test_mask_is_seen_by_nobody() {
    let x = benchmark_b(30, 20, 3, 1).x;
    let problem = Problem::new(&x, Precision::F64).unwrap();
    // X has many zeros, so the judge is smoothed KL.
    let by_data = OuterError::default().for_data(&problem, &Beta::KL);
    let Some(Outer::SmoothedKl(SmoothedKl(c))) = by_data.divergence else {
        panic!("{by_data}");
    };
    let settings = TaskSettings {
        rank: 3,
        divergence: Arc::new(Beta::KL),
        terms: vec![(Side::W, PenaltyTerm::tuned(L1))],
        outer: Unseen::Entries(0.1).into(),
    };
    let task = Task::of_data(problem, 0.2, settings, 5).unwrap();
    let Judge::Test(_, weights) = &task.judge else {
        panic!("test entries judge");
    };
    assert_eq!(weights.sum(), 120.0);
    let full = task.full.mask().unwrap().to_array();
    let split = task.split.mask().unwrap().to_array();
    let held_out = task.split.held_out_weights().unwrap().to_array();
    let all = weights.to_array() + &split + &held_out;
    assert!(
        all.iter().all(|weight| *weight == 1.0),
        "each entry has one use"
    );
    assert_eq!(split + held_out, full);
    // A perfect fit has no error there; zeros have that of a plain loop.
    let clean = benchmark_b(30, 20, 3, 1);
    let perfect = altbi::Factors {
        w: clean.w,
        h: clean.h,
    };
    assert!(task.judged(&perfect).abs() < 1e-12);
    let zero = altbi::Factors {
        w: Array2::zeros((30, 3)),
        h: perfect.h.clone(),
    };
    let weights = weights.to_array();
    let errors = x.iter().zip(&weights);
    let errors = errors.map(|(x, weight)| weight * ((x + c) * ((x + c) / c).ln() - x));
    let expected = errors.sum::<f64>() / 120.0;
    assert!((task.judged(&zero) / expected - 1.0).abs() < 1e-12);
    assert!(expected > 0.1, "{expected}");
}
