//! Numbers with the digits that they were printed with.

/// A number as it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    /// The number itself.
    pub value: f64,
    /// Digits after the point.
    pub digits: u8,
}

impl Decimal {
    /// The worth of one step of the last digit.
    pub fn last_digit(&self) -> f64 {
        0.1f64.powi(i32::from(self.digits))
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.*}", usize::from(self.digits), self.value)
    }
}
