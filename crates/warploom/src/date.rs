//! Calendar dates.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 86_400;

/// Today's date in UTC, as 2026-01-31.
pub fn today() -> String {
    of(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// The date in UTC of a time in seconds since 1970.
pub fn of(seconds: u64) -> String {
    let (year, month, day) = date((seconds / SECONDS_A_DAY) as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day counted from 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let (mut year, mut left) = (1970, days);
    while left >= 365 + i64::from(leap(year)) {
        left -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_453), (2025, 12, 31));
        assert_eq!(of(1_794_762_182), "2026-11-15");
    }
}
