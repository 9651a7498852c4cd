//! The files that the AWS tools keep credentials in: `~/.aws/credentials` and `~/.aws/config`.

use std::path::PathBuf;

use super::failure::keep_secret;

/// What is read of such a file at most.
const BYTES_MAX: u64 = 1 << 20;
/// What a profile may say that is of use here.
const KNOWN: [&str; 5] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];

/// What the profile says that `AWS_PROFILE` names, or `default`. Nothing where there is none; a profile that assumes a role or signs on
/// elsewhere has no keys here.
pub(super) fn settings() -> Vec<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let file = |name: &str, default: &str| {
        let path =
            variable(name).map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".aws").join(default)))?;
        crate::read_text(&path, BYTES_MAX).ok()
    };
    let config = file("AWS_CONFIG_FILE", "config").unwrap_or_default();
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
    let mut found = section(&config, &format!("profile {profile}"));
    found.extend(section(&config, &profile));
    found.extend(section(&credentials, &profile));
    for (name, value) in &found {
        if super::connect::is_secret(name) {
            keep_secret(value);
        }
    }
    found
}

/// The known settings of one section.
fn section(text: &str, wanted: &str) -> Vec<(String, String)> {
    let mut within = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            within = name.trim() == wanted;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| within) {
            let (name, value) = (name.trim(), value.trim());
            if KNOWN.contains(&name) && !value.is_empty() {
                found.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_read() {
        let text = "[default]\naws_access_key_id = A\n# note\nother=x\n\n[profile lab]\nregion=eu-west-1\naws_access_key_id=B\n";
        assert_eq!(section(text, "default"), [("aws_access_key_id".to_owned(), "A".to_owned())]);
        assert_eq!(section(text, "profile lab").len(), 2);
        assert!(section(text, "lab").is_empty());
    }
}
