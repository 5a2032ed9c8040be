//! Order statistics of the numbers of all processes.

use super::Processes;

/// Bits that are determined in one round.
const BITS: u32 = 4;

/// Bits of a number, with the same order as the numbers.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

/// The inverse of [`ordered`].
fn number(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    })
}

impl Processes {
    /// The numbers at these places in the sorted list of all processes' numbers. They are exact.
    /// The cost is sixteen rounds of sixteen counts each, for any number of numbers.
    ///
    /// # Panics
    /// If a place is beyond the end.
    pub(crate) fn in_places<const N: usize>(&self, part: &[f64], places: [usize; N]) -> [f64; N] {
        let (mut settled, mut left) = ([0u64; N], places.map(|place| place as f64));
        for round in 1..=u64::BITS / BITS {
            let shift = u64::BITS - round * BITS;
            let mut counts = [[0.0; 1 << BITS]; N];
            for value in part {
                let bits = ordered(*value);
                let digit = (bits >> shift) as usize & ((1 << BITS) - 1);
                for (counts, settled) in counts.iter_mut().zip(settled) {
                    // Only numbers that begin with the bits found so far count.
                    if round == 1 || bits >> (shift + BITS) == settled {
                        counts[digit] += 1.0;
                    }
                }
            }
            self.sum(counts.as_flattened_mut());
            for ((counts, settled), left) in counts.iter().zip(&mut settled).zip(&mut left) {
                let digit = counts.iter().position(|count| {
                    let found = *left < *count;
                    if !found {
                        *left -= count;
                    }
                    found
                });
                let digit = digit.expect("there are more numbers than the place asked for");
                *settled = *settled << BITS | digit as u64;
            }
        }
        settled.map(number)
    }

    /// The smallest, the median and the largest of all processes' numbers, `count` in all.
    pub(crate) fn spread(&self, part: &[f64], count: usize) -> [f64; 3] {
        let mut ends = [f64::NEG_INFINITY; 2];
        for number in part {
            ends = [ends[0].max(*number), ends[1].max(-number)];
        }
        self.largest(&mut ends);
        let [most, least] = [ends[0], -ends[1]];
        if most == least {
            return [least; 3];
        }
        // The two middle numbers, which are the same one if the count is odd.
        let [lower, upper] = self.in_places(part, [(count - 1) / 2, count / 2]);
        // Each is halved first, because the sum of two large numbers may overflow.
        let median = if lower == upper {
            lower
        } else {
            lower / 2.0 + upper / 2.0
        };
        [least, median, most]
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
                let places = (0..10).map(|place| processes.in_places(part, [place])[0]);
                (places.collect::<Vec<f64>>(), processes.spread(part, 10))
            });
            for (places, spread) in found {
                assert_eq!(places, sorted);
                let median = (sorted[4] + sorted[5]) / 2.0;
                assert_eq!(spread, [sorted[0], median, sorted[9]]);
            }
        }
    }
}
