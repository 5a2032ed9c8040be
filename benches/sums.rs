//! The time of a sum over processes: `mpirun -n 2 cargo bench --features mpi --bench sums`, or the
//! program that it builds under mpirun. Prints latency and bandwidth for docs/scale.md.

use std::time::Instant;

use altbi::processes::Job;

/// Repetitions of each length; the fastest third counts.
const REPETITIONS: usize = 60;

fn main() {
    let job = Job::join().expect("started by mpirun");
    let processes = job.processes();
    let mut table = Vec::new();
    for exponent in [0, 4, 8, 12, 14, 16, 18, 20] {
        let mut numbers = vec![1.0; 1 << exponent];
        let mut seconds: Vec<f64> = (0..REPETITIONS)
            .map(|_| {
                numbers.fill(1.0);
                // All begin together.
                processes.total(0.0);
                let start = Instant::now();
                processes.sum(&mut numbers);
                start.elapsed().as_secs_f64()
            })
            .collect();
        assert!(numbers.iter().all(|sum| *sum == processes.size() as f64));
        seconds.sort_by(f64::total_cmp);
        table.push((8usize << exponent, seconds[REPETITIONS / 3]));
    }
    if processes.is_first() {
        println!("{} processes", processes.size());
        for (bytes, seconds) in &table {
            println!("{bytes:>9} bytes {:>9.1} µs", seconds * 1e6);
        }
        let (bytes, seconds) = table[table.len() - 1];
        println!(
            "latency {:.1} µs, {:.1} GB/s",
            table[0].1 * 1e6,
            bytes as f64 / seconds / 1e9
        );
    }
}
