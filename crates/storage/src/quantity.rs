//! Sizes, rates and times as people write them: `10GB`, `200MB/s`, `1h30min`.

/// A unit, and how many of the base unit it is.
type Units = &'static [(&'static str, f64)];

const BYTES: Units = &[
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const SECONDS: Units = &[
    ("", 1.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

const A_SIZE: &str = "write a size like `500MB` or `1.5GiB`";
const A_RATE: &str = "write a rate like `200MB/s`";
const A_TIME: &str = "write a time like `8ms`, `90s` or `1h30min`";

/// Bytes from `10GB`, `512 MiB` or `4096`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse(text, BYTES, A_SIZE)?;
    if bytes < u64::MAX as f64 {
        Ok(bytes.round() as u64)
    } else {
        Err("that is more than any storage holds".to_owned())
    }
}

/// Bytes per second from `910MB/s`.
pub fn parse_bytes_per_second(text: &str) -> Result<f64, String> {
    let size = text.trim().strip_suffix("/s").ok_or_else(|| format!("`{text}` is not a rate; {A_RATE}"))?;
    if size.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(format!("`{text}` has no unit; {A_RATE}"));
    }
    parse(size, BYTES, A_RATE)
}

/// Seconds from `2h`, `90 s`, `1h30min`, `8ms` or `45`.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(A_TIME.to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter| !is_of_number(letter)).unwrap_or(rest.len());
        let letters = rest[digits..].find(is_of_number).unwrap_or(rest.len() - digits);
        seconds += parse(&rest[..digits + letters], SECONDS, A_TIME)?;
        rest = &rest[digits + letters..];
    }
    Ok(seconds)
}

fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.'
}

/// A number and its unit; `expected` says how that is written.
fn parse(text: &str, units: Units, expected: &str) -> Result<f64, String> {
    let text = text.trim();
    let end = text.find(|letter| !is_of_number(letter)).unwrap_or(text.len());
    let refuse = |_| format!("`{text}` is not a number with a unit; {expected}");
    let (number, unit) = (text[..end].parse::<f64>().map_err(refuse)?, text[end..].trim());
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number * factor),
        None => Err(format!("there is no unit `{unit}`; {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_times_have_units() {
        assert_eq!(parse_bytes("10GB"), Ok(10_000_000_000));
        assert_eq!(parse_bytes("1.5 MiB"), Ok(1_572_864));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("10 GO").unwrap_err().contains("`GO`"));
        assert!(parse_bytes("many").is_err() && parse_bytes("-1GB").is_err() && parse_bytes("9000000000TB").is_err());
        assert_eq!(parse_bytes_per_second("910MB/s"), Ok(9.1e8));
        assert!(parse_bytes_per_second("910MB").is_err() && parse_bytes_per_second("910/s").is_err());
        assert_eq!(parse_seconds("2h"), Ok(7200.0));
        assert_eq!(parse_seconds("1h 30min"), Ok(5400.0));
        assert_eq!(parse_seconds("45"), Ok(45.0));
        assert_eq!(parse_seconds("8ms"), Ok(0.008));
        assert!(parse_seconds("soon").is_err() && parse_seconds("").is_err() && parse_seconds("3 weeks").is_err());
    }
}
