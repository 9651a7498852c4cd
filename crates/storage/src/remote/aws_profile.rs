//! The files that the AWS tools keep credentials in: `~/.aws/credentials` and `~/.aws/config`.

use std::path::PathBuf;
use std::time::SystemTime;

use object_store::aws::AwsCredential;

use super::failure::keep_secret;
use super::location::Settings;

/// What is read of such a file at most.
const BYTES_MAX: u64 = 1 << 20;
/// What a profile may say that is of use here.
const KNOWN: [&str; 5] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];

/// One profile, and where it is written.
#[derive(Debug)]
pub(super) struct Profile {
    name: String,
    config: Option<PathBuf>,
    credentials: Option<PathBuf>,
}

/// How the files of a profile look: another one where somebody wrote them. Of each, when that was, and its length.
pub(super) type Stamp = [Option<(SystemTime, u64)>; 2];

impl Profile {
    /// The one that `AWS_PROFILE` names in `settings`, or `default`.
    pub(super) fn of(settings: &Settings) -> Self {
        let set = |wanted: &str| {
            let last = settings.0.iter().rev().find(|(name, value)| name == wanted && !value.is_empty());
            last.map(|(_, value)| value.clone())
        };
        let file = |setting: &str, default: &str| {
            set(setting).map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".aws").join(default)))
        };
        Self {
            name: set("aws_profile").unwrap_or_else(|| "default".to_owned()),
            config: file("aws_config_file", "config"),
            credentials: file("aws_shared_credentials_file", "credentials"),
        }
    }

    /// What the files say of it now. Nothing where there are none; a profile that assumes a role or signs on elsewhere has no keys here.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let read = |path: &Option<PathBuf>| crate::read_text(path.as_ref()?, BYTES_MAX).ok();
        let config = read(&self.config).unwrap_or_default();
        let credentials = read(&self.credentials).unwrap_or_default();
        let mut found = section(&config, &format!("profile {}", self.name));
        found.extend(section(&config, &self.name));
        found.extend(section(&credentials, &self.name));
        for (name, value) in &found {
            if super::connect::is_secret(name) {
                keep_secret(value);
            }
        }
        found
    }

    /// The keys that it has now, if it has both.
    pub(super) fn keys(&self) -> Option<AwsCredential> {
        let mut settings = self.settings();
        let mut take = |wanted: &str| {
            let at = settings.iter().rposition(|(name, _)| name == wanted)?;
            Some(settings.swap_remove(at).1)
        };
        let (key_id, secret_key) = (take("aws_access_key_id")?, take("aws_secret_access_key")?);
        Some(AwsCredential { key_id, secret_key, token: take("aws_session_token") })
    }

    pub(super) fn stamp(&self) -> Stamp {
        [&self.config, &self.credentials].map(|path| {
            let status = std::fs::metadata(path.as_ref()?).ok()?;
            Some((status.modified().ok()?, status.len()))
        })
    }
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
