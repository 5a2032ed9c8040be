//! Sums of 256-bit whole numbers over processes. The fingerprint of a matrix is a sum over rows, so
//! it does not depend on how processes share them.

use super::Processes;

/// Bits of a limb. Sums of limbs stay exact in 64-bit floats up to 2³⁷ processes.
const LIMB: usize = 2;

/// A number of 256 bits, least significant byte first, modulo 2²⁵⁶.
pub(crate) type Wide = [u8; 32];

/// The sum of two.
pub(crate) fn add(a: &Wide, b: &Wide) -> Wide {
    let mut carry = 0;
    std::array::from_fn(|byte| {
        let sum = u16::from(a[byte]) + u16::from(b[byte]) + carry;
        carry = sum >> 8;
        sum as u8
    })
}

impl Processes {
    /// The sum of all processes' numbers.
    pub(crate) fn sum_of_wide(&self, number: &Wide) -> Wide {
        let limbs = number.chunks_exact(LIMB);
        let limbs = limbs.map(|limb| f64::from(u16::from_le_bytes([limb[0], limb[1]])));
        let mut limbs: Vec<f64> = limbs.collect();
        self.sum(&mut limbs);
        let mut carry = 0u64;
        let mut bytes = limbs.into_iter().flat_map(|limb| {
            let sum = limb as u64 + carry;
            carry = sum >> 16;
            (sum as u16).to_le_bytes()
        });
        std::array::from_fn(|_| bytes.next().expect("as many as before"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;

    #[test]
    fn wide_numbers_add_up_exactly() {
        let of =
            |rank: usize| -> Wide { std::array::from_fn(|byte| (200 + byte * 7 + rank) as u8) };
        let expected = (1..4).fold(of(0), |sum, rank| add(&sum, &of(rank)));
        let found = Threads::run(4, |processes| processes.sum_of_wide(&of(processes.rank())));
        assert!(found.iter().all(|sum| *sum == expected));
        let most = [255; 32];
        assert_eq!(add(&most, &most)[0], 254);
    }
}
