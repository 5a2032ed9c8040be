//! Rules for names in a first row or a first column.
//!
//! Words are names. If numbers could be names (years above a table, the index of pandas), the
//! decision is a guess. The rules are few, and a note reports each guess.

/// Fields that are all numbers, seen as possible names.
pub(super) struct Numbers<'a>(pub(super) Vec<&'a str>);

impl Numbers<'_> {
    /// Returns true for 0, 1, 2, …, which pandas writes for columns and rows without names.
    pub(super) fn count_from_zero(&self) -> bool {
        let mut fields = self.0.iter().enumerate();
        fields.all(|(index, field)| **field == index.to_string())
    }

    /// At least three numbers that rise in equal steps: 1, 2, 3, wavelengths, times.
    pub(super) fn are_steps(&self) -> bool {
        let numbers: Option<Vec<f64>> = self.0.iter().map(|field| field.parse().ok()).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() > 2) else {
            return false;
        };
        let step = numbers[1] - numbers[0];
        let even = |two: &[f64]| (two[1] - two[0] - step).abs() <= 1e-9 * step;
        step > 0.0 && numbers.windows(2).all(even)
    }

    /// Rising whole numbers between 1000 and 2999.
    pub(super) fn are_years(&self) -> bool {
        let years: Option<Vec<u32>> = self.0.iter().map(|field| year(field)).collect();
        years.is_some_and(|years| !years.is_empty() && years.windows(2).all(|two| two[0] < two[1]))
    }

    /// Whole numbers, none of them twice.
    pub(super) fn are_distinct_integers(&self) -> bool {
        let integers = || self.0.iter().map(|field| field.parse::<i64>().ok());
        let mut sorted: Vec<i64> = integers().flatten().collect();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == self.0.len()
    }

    /// Returns true if no field is empty and none occurs twice.
    pub(super) fn are_distinct(&self) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == self.0.len() && sorted.first().is_none_or(|field| !field.is_empty())
    }
}

fn year(field: &str) -> Option<u32> {
    let year: u32 = field.parse().ok()?;
    (1000..3000).contains(&year).then_some(year)
}

/// Returns true if a number could be a year.
pub(super) fn is_year(value: f64) -> bool {
    value.fract() == 0.0 && (1000.0..3000.0).contains(&value)
}

/// Returns true if the name of a first column means row numbers.
pub(super) fn names_an_index(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "", "id", "index", "idx", "key", "no", "no.", "nr", "number", "row", "#",
    ];
    let name = name.trim().to_lowercase();
    NAMES.contains(&name.as_str())
        || name.starts_with("unnamed")
        || ["_id", " id", "-id", ".id", "_index", "_no", "_nr"]
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// Returns true for the corner above a column of row names: empty, or pandas' name for an empty
/// one.
pub(super) fn is_empty_corner(name: &str) -> bool {
    name.is_empty() || name == "Unnamed: 0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_may_be_names() {
        let of = |fields: &[&'static str]| Numbers(fields.to_vec());
        assert!(of(&["0", "1", "2"]).count_from_zero());
        assert!(!of(&["1", "2"]).count_from_zero());
        assert!(of(&["2001", "2002"]).are_years());
        assert!(!of(&["2002", "2001"]).are_years() && !of(&["2001.5"]).are_years());
        assert!(of(&["5", "2", "7"]).are_distinct_integers());
        assert!(!of(&["5", "2", "5"]).are_distinct_integers());
        assert!(!of(&["5", "2.5"]).are_distinct_integers());
        assert!(names_an_index("Sample ID") && names_an_index("id") && !names_an_index("weight"));
    }
}
