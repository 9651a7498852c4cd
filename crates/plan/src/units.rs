//! Numbers as people read them: three significant digits, powers of ten (a MB is 10^6 bytes, as in PRESTO).

/// A bare number: `1,789`, `42.6`, `0.00521`. Whole from 100 on, three significant digits below.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "unknown".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "unlimited" } else { "-unlimited" }.to_owned();
    }
    if value < 0.0 {
        return format!("-{}", number(-value));
    }
    // 99.95 has three digits only as 100, which is written without a point.
    if value >= 99.95 { grouped(value.round()) } else { significant(value) }
}

/// A count with its thousands apart: `1,281,167`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// The units of sizes, each a thousand of the one before.
pub const BYTE_UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// A size: `512 B`, `115 kB`, `1.18 MB`, `1,389 PB`.
pub fn bytes(value: f64) -> String {
    let mut scaled = value;
    let mut unit = 0;
    // From 999.5 on, three digits would be the 1000 of the next unit.
    while scaled.abs() >= 999.5 && unit + 1 < BYTE_UNITS.len() && scaled.is_finite() {
        scaled /= 1000.0;
        unit += 1;
    }
    let text = if unit == 0 && scaled.fract() == 0.0 { format!("{scaled}") } else { number(scaled) };
    format!("{text} {}", BYTE_UNITS[unit])
}

/// A size as one types it, to the byte: `64MB`, `1500kB`, `7B`.
pub fn typed_bytes(value: u64) -> String {
    let (mut whole, mut unit) = (value, 0);
    while whole > 0 && whole.is_multiple_of(1000) && unit + 1 < BYTE_UNITS.len() {
        whole /= 1000;
        unit += 1;
    }
    format!("{whole}{}", BYTE_UNITS[unit])
}

/// A bandwidth: `438 MB/s`.
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// A rate of samples: `1,789 samples/s`.
pub fn samples_per_second(value: f64) -> String {
    format!("{} samples/s", number(value))
}

/// A duration: `0 s`, `350 µs`, `1.40 ms`, `12.0 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0 s".to_owned();
    }
    if value < 0.0 {
        return format!("-{}", seconds(-value));
    }
    // Each unit ends where three digits would round up to the next.
    match value {
        value if !value.is_finite() => format!("{} s", number(value)),
        value if value < 999.5e-9 => format!("{} ns", number(value * 1e9)),
        value if value < 999.5e-6 => format!("{} µs", number(value * 1e6)),
        value if value < 999.5e-3 => format!("{} ms", number(value * 1e3)),
        value if value < 59.95 => format!("{} s", number(value)),
        value if value < 3599.5 => two_units(value, 60.0, "min", "s"),
        value if value < 86_370.0 => two_units(value / 60.0, 60.0, "h", "min"),
        value => two_units(value / 3600.0, 24.0, "d", "h"),
    }
}

/// A share: `34 %`, `3.4 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() >= 9.95 || value == 0.0 { format!("{value:.0} %") } else { format!("{value:.1} %") }
}

/// A difference: `+12 %`, `-3 %`; what rounds to nothing has no sign.
pub fn signed_percent(share: f64) -> String {
    if share.abs() < 0.0005 {
        return percent(0.0);
    }
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}", percent(share))
}

/// `1 run`, `3 runs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `small` of the smaller unit, as an integer of the larger and the rest: `3 min 20 s`, or `3 min` without a rest.
fn two_units(small: f64, per_large: f64, large_unit: &str, small_unit: &str) -> String {
    let small = small.round();
    let large = (small / per_large).floor();
    let rest = small - large * per_large;
    let large = grouped(large);
    if rest == 0.0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {rest} {small_unit}") }
}

/// Three significant digits of a value from 0 to below 99.95.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounded in scientific notation first, so that 9.996 counts as the 10.0 that it becomes.
    let rounded = format!("{value:.2e}");
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if exponent < -6 { rounded } else { format!("{value:.*}", (2 - exponent).max(0) as usize) }
}

/// An integer with thousands separators.
fn grouped(value: f64) -> String {
    group(&format!("{value:.0}"))
}

fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_are_whole() {
        let cases = [
            (0.0, "0"),
            (0.005_214, "0.00521"),
            (0.999_6, "1.00"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (42.64, "42.6"),
            (99.94, "99.9"),
            (99.96, "100"),
            (999.6, "1,000"),
            (1789.2, "1,789"),
            (1_281_167.0, "1,281,167"),
            (1e-9, "1.00e-9"),
            (-42.64, "-42.6"),
            (f64::NAN, "unknown"),
            (f64::INFINITY, "unlimited"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn sizes_are_in_powers_of_ten() {
        let cases = [
            (0.0, "0 B"),
            (7.0, "7 B"),
            (512.0, "512 B"),
            (999.6, "1.00 kB"),
            (114_661.0, "115 kB"),
            (1_179_712.0, "1.18 MB"),
            (146.9e9, "147 GB"),
            (999.9e15, "1,000 PB"),
        ];
        for (value, text) in cases {
            assert_eq!(bytes(value), text);
        }
        let typed = [0, 7, 1_500_000, 64_000_000, 8_000_000_000].map(typed_bytes);
        assert_eq!(typed, ["0B", "7B", "1500kB", "64MB", "8GB"]);
        assert_eq!(bytes_per_second(438e6), "438 MB/s");
        assert_eq!(bytes(f64::INFINITY), "unlimited B");
    }

    #[test]
    fn durations_use_the_unit_that_fits() {
        let cases = [
            (0.0, "0 s"),
            (12e-9, "12.0 ns"),
            (350e-6, "350 µs"),
            (1.4e-3, "1.40 ms"),
            (0.999_6, "1.00 s"),
            (12.0, "12.0 s"),
            (59.96, "1 min"),
            (200.0, "3 min 20 s"),
            (3_599.7, "1 h"),
            (7_500.0, "2 h 5 min"),
            (86_399.0, "1 d"),
            (273_600.0, "3 d 4 h"),
            (-1.5, "-1.50 s"),
        ];
        for (value, text) in cases {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn shares_are_percent() {
        assert_eq!([percent(0.34), percent(0.034), percent(-0.5), percent(0.0)], ["34 %", "3.4 %", "-50 %", "0 %"]);
        let signed = [0.12, -0.031, -0.0004, 0.0].map(signed_percent);
        assert_eq!(signed, ["+12 %", "-3.1 %", "0 %", "0 %"]);
    }
}
