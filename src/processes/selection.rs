//! The number in some place of the order, over the numbers of all processes.

use super::Processes;

/// Bits that are settled in one round.
const BITS: u32 = 8;

/// A number as bits whose order is that of the numbers.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The inverse of [`ordered`].
fn number(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

impl Processes {
    /// The number that has `place` smaller ones before it when all processes' numbers are
    /// sorted. Exact, and in eight rounds of 256 counts, however many there are.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn in_place(&self, part: &[f64], place: usize) -> f64 {
        let (mut settled, mut left) = (0u64, place as f64);
        for round in 1..=u64::BITS / BITS {
            let shift = u64::BITS - round * BITS;
            let mut counts = [0.0; 1 << BITS];
            for value in part {
                let bits = ordered(*value);
                // Those that begin like the number that is sought.
                if round == 1 || bits >> (shift + BITS) == settled {
                    counts[(bits >> shift) as usize & ((1 << BITS) - 1)] += 1.0;
                }
            }
            self.sum(&mut counts);
            let digit = counts.iter().position(|count| {
                let found = left < *count;
                if !found {
                    left -= count;
                }
                found
            });
            let digit = digit.expect("there are more numbers than the place asked for");
            settled = settled << BITS | digit as u64;
        }
        number(settled)
    }

    /// The median of all processes' numbers, `count` in all.
    pub(crate) fn median(&self, part: &[f64], count: usize) -> f64 {
        let upper = self.in_place(part, count / 2);
        if count.is_multiple_of(2) {
            (self.in_place(part, count / 2 - 1) + upper) / 2.0
        } else {
            upper
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;

    #[test]
    fn places_are_those_of_the_sorted_numbers() {
        let all = [3.5, -0.25, 1e-300, 0.0, 7.0, 3.5, -1e9, 12.0, 0.125, 1e200];
        let mut sorted = all.to_vec();
        sorted.sort_by(f64::total_cmp);
        for size in [1, 2, 3] {
            let found = Threads::run(size, |processes| {
                let rank = processes.rank();
                let part = &all[rank * 10 / size..(rank + 1) * 10 / size];
                let places = (0..10).map(|place| processes.in_place(part, place));
                (places.collect::<Vec<f64>>(), processes.median(part, 10))
            });
            for (places, median) in found {
                assert_eq!(places, sorted);
                assert_eq!(median, (sorted[4] + sorted[5]) / 2.0);
            }
        }
    }
}
