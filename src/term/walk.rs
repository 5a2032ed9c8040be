//! Passes over all rows of one side of a matrix, on all cores.

use pulp::Arch;
use rayon::prelude::*;

use super::columns::MANY;
use super::cotangent::{Cotangent, Memory, Of, SpareMemory};
use super::dense::sums;
use super::kernel::{TILE, WIDE, rows_together};
use super::lists::Lists;
use super::pass::{Pass, What, memory_length};
use super::tile::{Blocks, Tiles, Weighting};
use super::{At, Bars, Needs, PartsOf, Then};
use crate::divergence::Fused;
use crate::engine::{Aligned, AnyEntry, MOST_LANES, Real};
use crate::numerics::add;

/// With fewer multiplications, another thread costs more than it saves.
const WORTH_SHARING: usize = 1 << 16;
/// Tasks hold a multiple of this many rows, which are whole blocks on every machine.
pub(super) const WHOLE: usize = WIDE * MOST_LANES;
/// Largest number of rows in one task.
const ROWS: usize = 64;
/// Largest number of tasks of a pass whose results are added, and the fewest rows or columns in
/// one. They do not depend on the machine, so sums do not either.
const SUMMED_TASKS: usize = 64;
const SUMMED_LINES: usize = 256;
/// Numbers of the factor of rows that go over all columns together (128 kB).
const TOGETHER: usize = 1 << 14;
/// Numbers that one task adds.
const ADDED: usize = 1 << 12;

/// The source of a pass's rows.
pub(super) trait RowSource<T: Real>: Sync {
    /// n and m.
    fn shape(&self) -> [usize; 2];

    /// Largest number of rows that can be read together; `None` if all can.
    fn most_rows(&self) -> Option<usize>;

    /// Some rows, beginning with a whole block, and the index of that block in the given data.
    fn with_rows(
        &self,
        first: usize,
        count: usize,
        weighting: Weighting,
        run: &mut dyn FnMut(Blocks<'_, T>, usize),
    );

    /// Working memory of earlier passes. `None` if the source keeps none.
    fn spare(&self) -> Option<&SpareMemory<T>> {
        None
    }
}

/// Rows in one task, if each is multiplied by `columns` columns of this rank.
pub(super) fn share(rows: usize, columns: usize, rank: usize) -> usize {
    let threads = rayon::current_num_threads();
    if threads == 1 || rows * columns * rank < WORTH_SHARING {
        rows.next_multiple_of(WHOLE)
    } else {
        let fair = rows.div_ceil(2 * threads);
        let most = rows_together(columns * rank, ROWS);
        fair.next_multiple_of(WHOLE).min(most)
    }
}

/// Rows that go over all columns together, in passes with sums for columns. With many components,
/// their factor and its cotangents then stay in the second-level cache.
fn panel(rank: usize) -> usize {
    match rank {
        ..MANY => usize::MAX,
        _ => (TOGETHER / rank).next_multiple_of(WHOLE),
    }
}

/// The input of a pass beside X.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) at: At<'a>,
    /// For tangents, the directions of the factor and of the other factor (empty if it is fixed).
    pub(super) moves: [&'a [f64]; 2],
    /// Column sums for P, or its tangent, if ∇⁺ is 1 everywhere, or 1 except in gaps.
    pub(super) sums: &'a [f64],
    /// Is called with the index of the first row, and both results of some rows.
    pub(super) then: Option<&'a Then<'a>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(at: At<'a>) -> Self {
        Self {
            at,
            moves: [&[]; 2],
            sums: &[],
            then: None,
        }
    }
}

/// A divergence over the rows of a source.
pub(super) struct Walk<'a> {
    pub(super) divergence: &'a Fused,
    pub(super) weighting: Weighting,
    pub(super) floor: f64,
    /// The entries that are not fitted, by rows and by columns, if the sums of ∇⁺ are those of all
    /// entries minus these.
    pub(super) gaps: Option<[&'a Lists; 2]>,
}

impl Walk<'_> {
    /// The cotangents of the factors, from those of the rows' parts or errors. The factor is that
    /// of the rows.
    pub(super) fn cotangent<T: Real>(
        &self,
        side: &dyn RowSource<T>,
        at: At<'_>,
        of: Of<'_>,
        needs: Needs,
    ) -> Bars {
        if needs == Needs::NOTHING {
            return Bars::default();
        }
        let each = |needed: bool| usize::from(needed) * at.rank;
        let results = usize::from(needs.other);
        let (rows, [columns, _]) = self.with_columns(side, at, of, each(needs.factor), results);
        Bars {
            factor: needs.factor.then_some(rows),
            other: needs.other.then_some(columns),
        }
    }

    /// The same if the factor is that of the columns.
    pub(super) fn cotangent_of_columns<T: Real>(
        &self,
        side: &dyn RowSource<T>,
        at: At<'_>,
        of: &PartsOf,
        needs: Needs,
    ) -> Bars {
        if needs == Needs::NOTHING {
            return Bars::default();
        }
        let of = Of::ColumnParts(&of.negative, &of.positive);
        let (at, results) = (at.turned(), usize::from(needs.factor));
        let each = usize::from(needs.other) * at.rank;
        let (rows, [columns, _]) = self.with_columns(side, at, of, each, results);
        Bars {
            factor: needs.factor.then_some(columns),
            other: needs.other.then_some(rows),
        }
    }

    /// N and P of the columns' factor, and the errors of the rows if they are requested. P is empty
    /// if it is the same in all rows. The factor is that of the columns.
    pub(super) fn parts_of_columns<T: Real>(
        &self,
        side: &dyn RowSource<T>,
        at: At<'_>,
        errors: bool,
    ) -> (PartsOf, Vec<f64>) {
        let has_positive = self.varies() || self.gaps.is_some();
        let (at, results) = (at.turned(), 1 + usize::from(has_positive));
        let (of, each) = (Of::Nothing, usize::from(errors));
        let (errors, [negative, positive]) = self.with_columns(side, at, of, each, results);
        (PartsOf { negative, positive }, errors)
    }

    /// Returns true if ∇⁺, weighted, is not 1 everywhere.
    fn varies(&self) -> bool {
        self.weighting.varies() || !self.divergence.positive_is_one()
    }

    fn tiles<'b, T: Real>(&'b self, blocks: Blocks<'b, T>) -> Tiles<'b, T> {
        let (divergence, shift) = AnyEntry::new(self.divergence);
        Tiles {
            divergence,
            blocks,
            floor: T::from_f64(self.floor),
            shift: T::from_f64(shift),
        }
    }

    /// Makes a pass over all rows. `out` and `second` get the results of each row.
    pub(super) fn over<T: Real>(
        &self,
        what: What,
        side: &dyn RowSource<T>,
        job: &Job<'_>,
        out: &mut [f64],
        second: &mut [f64],
    ) {
        let rank = job.at.rank;
        let [all_rows, columns] = side.shape();
        let other = T::rounded(job.at.other);
        let [own_dot, other_dot] = job.moves;
        let other_dot = T::rounded(other_dot);
        let rows = share(all_rows, columns, rank);
        let rows = side.most_rows().map_or(rows, |most| most.min(rows));
        let width = out.len() / all_rows;
        let gaps = self.gaps.map(|[of_rows, _]| of_rows);
        // (P, if it is requested, is a result of the pass.)
        let writes_second = gaps.is_none() && (self.varies() || !job.sums.is_empty());
        let length = memory_length(rank, columns);
        let memory = || Aligned::new(length);
        let run = |memory: &mut Aligned<T>, task: usize, out: &mut [f64], second: &mut [f64]| {
            let memory = memory.get_mut(length);
            let (first_row, count) = (task * rows, out.len() / width);
            let range = first_row * rank..(first_row + count) * rank;
            side.with_rows(first_row, count, self.weighting, &mut |blocks, first| {
                Arch::new().dispatch(Pass {
                    what,
                    tiles: self.tiles(blocks),
                    first,
                    own: &job.at.factor[range.clone()],
                    other: &other,
                    own_dot: own_dot.get(range.clone()).unwrap_or_default(),
                    other_dot: &other_dot,
                    sums: job.sums,
                    rank,
                    out: &mut *out,
                    second: if writes_second { &mut *second } else { &mut [] },
                    memory: &mut *memory,
                });
            });
            if let Some(gaps) = gaps {
                second.fill(0.0);
                let moves = what == What::PartsTangent;
                let values = if moves { job.moves[1] } else { job.at.other };
                if !values.is_empty() {
                    gaps.add_to_lines(first_row, job.sums, values, second);
                }
            }
            if let Some(then) = job.then {
                then(first_row, out, second);
            }
        };
        if rows >= all_rows {
            run(&mut memory(), 0, out, second);
        } else if second.is_empty() {
            let tasks = out.par_chunks_mut(rows * width).enumerate();
            tasks.for_each_init(memory, |memory, (task, out)| {
                run(memory, task, out, &mut [])
            });
        } else {
            let tasks = out
                .par_chunks_mut(rows * width)
                .zip(second.par_chunks_mut(rows * width));
            tasks
                .enumerate()
                .for_each_init(memory, |memory, (task, (out, second))| {
                    run(memory, task, out, second);
                });
        }
    }

    /// A pass with sums for columns. Returns the results of the rows, so many numbers each, and up to
    /// two of the columns, r numbers each.
    fn with_columns<T: Real>(
        &self,
        side: &dyn RowSource<T>,
        at: At<'_>,
        of: Of<'_>,
        of_rows: usize,
        of_columns: usize,
    ) -> (Vec<f64>, [Vec<f64>; 2]) {
        let rank = at.rank;
        let [rows, columns] = side.shape();
        let other = T::rounded(at.other);
        let given = match of {
            Of::ColumnParts(negative, positive) => [negative, positive].map(T::rounded),
            _ => [&[][..]; 2].map(T::rounded),
        };
        let Tasks {
            rows: by_rows,
            of: lines,
        } = Tasks::new(side, rank);
        let results = [of_rows, of_columns];
        let complement = self
            .gaps
            .and_then(|gaps| WithoutGaps::new(gaps, of, at, results));
        // True if a task computes whole sums, for some of the lines. Otherwise it computes a share of
        // every sum, and what is in gaps is subtracted from the total.
        let in_tasks = |of: &&WithoutGaps<'_>| of.for_rows == by_rows;
        let task = |index: usize| {
            let cut = |all: usize| index * lines..all.min((index + 1) * lines);
            let (own_rows, own_columns) = if by_rows {
                (cut(rows), 0..columns)
            } else {
                (0..rows, cut(columns))
            };
            let mut rows_result = vec![0.0; own_rows.len() * of_rows];
            let each = own_columns.len() * rank;
            let mut columns_result = vec![0.0; of_columns * each];
            // (With gaps, P is not a result of the pass.)
            let by_pass = of_columns.min(1 + usize::from(self.varies()));
            let step = side.most_rows().unwrap_or(usize::MAX).min(panel(rank));
            let of_step = step.min(own_rows.len());
            let mut memory = match side.spare() {
                Some(spare) => spare.take(of, of_step, rank),
                None => Memory::new(of, of_step, rank),
            };
            for first_row in own_rows.clone().step_by(step) {
                let end = own_rows.end.min(first_row.saturating_add(step));
                let count = end - first_row;
                let from = first_row - own_rows.start;
                let of_rows = &mut rows_result[from * of_rows..(from + count) * of_rows];
                side.with_rows(first_row, count, self.weighting, &mut |blocks, first| {
                    Arch::new().dispatch(Cotangent {
                        of: of.rows(first_row..end, rows),
                        of_columns_given: [&given[0], &given[1]],
                        tiles: self.tiles(blocks),
                        first,
                        columns: own_columns.clone(),
                        own: &at.factor[first_row * rank..end * rank],
                        other: &other,
                        rank,
                        of_rows: &mut *of_rows,
                        of_columns: &mut columns_result[..by_pass * each],
                        memory: &mut memory,
                    });
                });
            }
            if let Some(spare) = side.spare() {
                spare.keep(memory);
            }
            let mut second = columns_result.split_off(each.min(columns_result.len()));
            // (A tape may keep it.)
            columns_result.shrink_to_fit();
            if let Some(of) = complement.as_ref().filter(in_tasks) {
                let out = of.place(&mut rows_result, [&mut columns_result, &mut second]);
                of.lists
                    .add_to_lines(index * lines, &of.sums, of.values, out);
            }
            (rows_result, (columns_result, second))
        };
        let all = if by_rows { rows } else { columns };
        let tasks = (0..all.div_ceil(lines)).into_par_iter();
        let (of_rows, (first, second)): (Vec<_>, (Vec<_>, Vec<_>)) = tasks.map(task).unzip();
        let (mut of_rows, [mut first, mut second]) = if by_rows {
            (joined(of_rows), [added(first), added(second)])
        } else {
            (added(of_rows), [joined(first), joined(second)])
        };
        if let Some(of) = complement.as_ref().filter(|of| !in_tasks(of)) {
            let out = of.place(&mut of_rows, [&mut first, &mut second]);
            of.lists.add_complement(&of.sums, of.values, out);
        }
        (of_rows, [first, second])
    }
}

/// The sums of P, or of its cotangent, over all entries minus those in gaps.
struct WithoutGaps<'a> {
    of: Of<'a>,
    /// The gaps in the lines that get sums.
    lists: &'a Lists,
    /// What is summed, and its sums.
    values: &'a [f64],
    sums: Vec<f64>,
    /// True if the lines are rows, false for columns.
    for_rows: bool,
}

impl<'a> WithoutGaps<'a> {
    /// `None` if the pass has no sums of P among its results, of which there are so many for rows and
    /// for columns.
    fn new(
        [in_rows, in_columns]: [&'a Lists; 2],
        of: Of<'a>,
        at: At<'a>,
        [of_rows, of_columns]: [usize; 2],
    ) -> Option<Self> {
        let (lists, values, for_rows) = match of {
            Of::Nothing => (in_columns, at.factor, false),
            Of::Parts(_, positive) => (in_columns, positive, false),
            Of::ColumnParts(_, positive) => (in_rows, positive, true),
            Of::Errors(_) => return None,
        };
        let results = if for_rows { of_rows } else { of_columns };
        (results > 0).then(|| Self {
            of,
            lists,
            values,
            sums: sums(values, at.rank),
            for_rows,
        })
    }

    /// The result that gets these sums: that of the rows, or one of those of the columns.
    fn place<'b>(&self, rows: &'b mut [f64], [first, second]: [&'b mut [f64]; 2]) -> &'b mut [f64] {
        match self.of {
            Of::ColumnParts(..) => rows,
            Of::Nothing => second,
            _ => first,
        }
    }
}

/// The tasks of a pass whose results are added: some rows, or some columns of all rows.
struct Tasks {
    /// True if the rows are shared among tasks, otherwise the columns.
    rows: bool,
    /// Rows or columns in one task.
    of: usize,
}

impl Tasks {
    fn new<T: Real>(side: &dyn RowSource<T>, rank: usize) -> Self {
        let [rows, columns] = side.shape();
        // The longer side is shared, so that the results to add are the smaller ones. (Rows that
        // cannot be read together would be read again for each task.)
        let by_rows = rows >= columns || side.most_rows().is_some();
        let (all, whole) = if by_rows {
            (rows, WHOLE)
        } else {
            (columns, TILE)
        };
        let tasks = if rows * columns * rank < WORTH_SHARING {
            1
        } else {
            // (The results of all tasks take a fourth of the memory of X at most.)
            (all / SUMMED_LINES.max(4 * rank)).clamp(1, SUMMED_TASKS)
        };
        // A power of two, so that threads have equally many.
        let tasks = 1 << tasks.ilog2();
        Self {
            rows: by_rows,
            of: all.div_ceil(tasks).next_multiple_of(whole),
        }
    }
}

/// One after another.
fn joined(mut parts: Vec<Vec<f64>>) -> Vec<f64> {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => parts.concat(),
    }
}

/// The sum, in the order of the tasks.
fn added(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    let others: Vec<Vec<f64>> = parts.collect();
    let tasks = sum.par_chunks_mut(ADDED).enumerate();
    tasks.for_each(|(task, sum)| {
        for other in &others {
            add(sum, &other[task * ADDED..]);
        }
    });
    sum
}
