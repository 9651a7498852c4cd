//! The credential files of the AWS tools: `~/.aws/credentials` and `~/.aws/config`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use object_store::aws::AwsCredential;

use super::failure::{failure, keep_secret};
use super::location::Settings;
use crate::error::one_line;

/// What is read of such a file at most.
const BYTES_MAX: u64 = 1 << 20;
/// What a profile may say that the client of the store is to know. (Not more: what it says of a role is about another one's keys.)
const KNOWN: [&str; 2] = ["region", "endpoint_url"];

/// One profile, and where it is written.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    name: String,
    /// Whether somebody asked for it by its name.
    is_named: bool,
    config: Option<PathBuf>,
    credentials: Option<PathBuf>,
}

/// How the files of a profile look: another one where somebody wrote them. Of each, when that was, and its length.
pub(super) type Stamp = [Option<(SystemTime, u64)>; 2];

/// What a section says.
type Section = Vec<(String, String)>;

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
        let name = set("aws_profile");
        Self {
            is_named: name.is_some(),
            name: name.unwrap_or_else(|| "default".to_owned()),
            config: file("aws_config_file", "config"),
            credentials: file("aws_shared_credentials_file", "credentials"),
        }
    }

    /// What each of the files says of it now, if it does.
    fn sections(&self) -> [Option<Section>; 2] {
        let read = |path: &Option<PathBuf>| crate::read_text(path.as_ref()?, BYTES_MAX).ok();
        let found = [
            read(&self.config).and_then(|text| section(&text, &self.name, true)),
            read(&self.credentials).and_then(|text| section(&text, &self.name, false)),
        ];
        for (name, value) in found.iter().flatten().flatten() {
            if super::connect::is_secret(name) {
                keep_secret(value);
            }
        }
        found
    }

    fn all(&self) -> Section {
        self.sections().into_iter().flatten().flatten().collect()
    }

    /// What is known of the store by it.
    pub(super) fn settings(&self) -> Section {
        self.all().into_iter().filter(|(name, _)| KNOWN.contains(&name.as_str())).collect()
    }

    /// The keys that it has now, if it has both.
    pub(super) fn keys(&self) -> Option<AwsCredential> {
        let all = self.all();
        let (key_id, secret_key) = (last(&all, "aws_access_key_id")?, last(&all, "aws_secret_access_key")?);
        let token = last(&all, "aws_session_token");
        // Permanent keys next to a role are those that assume it: to the bucket, a different identity.
        let of_another = self.is_named && token.is_none() && last(&all, "role_arn").is_some();
        (!of_another).then_some(AwsCredential { key_id, secret_key, token })
    }

    /// The command that prints its keys.
    pub(super) fn process(&self) -> Option<String> {
        last(&self.all(), "credential_process")
    }

    /// What to say where somebody meant this profile, and nothing here can get at its keys.
    pub(super) fn refusal(&self) -> Option<io::Error> {
        let path = |path: &Option<PathBuf>| path.as_ref().map_or_else(|| "~/.aws".to_owned(), |path| one_line(path));
        let (config, credentials) = (path(&self.config), path(&self.credentials));
        let (name, sections) = (self.shown(), self.sections());
        if self.is_named && sections.iter().all(Option::is_none) {
            let said = format!("profile `{name}` of AWS_PROFILE is neither in `{config}` nor in `{credentials}`");
            let hint = "choose one that is there, or unset AWS_PROFILE to use the role of the machine";
            return Some(failure(io::ErrorKind::PermissionDenied, said, hint));
        }
        let file = if sections[0].is_some() { config } else { credentials };
        let all: Section = sections.into_iter().flatten().flatten().collect();
        let has = |names: &[&str]| all.iter().any(|(name, _)| names.contains(&name.as_str()));
        let is_half = has(&["aws_access_key_id", "aws_secret_access_key"]);
        if !self.is_named {
            let said = format!("profile `{name}` has one key of two in `{file}`");
            let hint = "write both `aws_access_key_id` and `aws_secret_access_key` there, or neither";
            return is_half.then(|| failure(io::ErrorKind::PermissionDenied, said, hint));
        }
        let why = match () {
            () if has(&["role_arn"]) => "it assumes a role",
            () if is_half => "it has one of two",
            () if has(&["sso_session", "sso_start_url"]) => "it uses single sign-on",
            () => "there are none",
        };
        let said = format!("profile `{name}` has no keys in `{file}` that can be used: {why}");
        let hint = format!(
            "add `credential_process = aws configure export-credentials --profile {name} --format process` to the profile, or \
             unset AWS_PROFILE to use the role of the machine"
        );
        Some(failure(io::ErrorKind::PermissionDenied, said, hint))
    }

    /// What it is called in messages.
    pub(super) fn shown(&self) -> String {
        one_line(Path::new(&self.name))
    }

    pub(super) fn stamp(&self) -> Stamp {
        [&self.config, &self.credentials].map(|path| {
            let status = std::fs::metadata(path.as_ref()?).ok()?;
            Some((status.modified().ok()?, status.len()))
        })
    }
}

/// A setting: of several, the last.
fn last(settings: &Section, wanted: &str) -> Option<String> {
    settings.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
}

/// What a file says of a profile; `None` where it says nothing. In `config` its section is `[profile NAME]`, or `[default]`.
fn section(text: &str, wanted: &str, is_config: bool) -> Option<Section> {
    let mut within = false;
    let mut found = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            within = is_section(name.trim(), wanted, is_config);
            if within {
                found.get_or_insert_with(Section::new);
            }
        } else if let (Some((name, value)), Some(found)) = (line.split_once('='), found.as_mut().filter(|_| within)) {
            let (name, value) = (name.trim(), value.trim());
            if !name.starts_with(['#', ';']) && !value.is_empty() {
                found.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    found
}

fn is_section(name: &str, wanted: &str, is_config: bool) -> bool {
    let of_profile = name.strip_prefix("profile").filter(|rest| rest.starts_with(char::is_whitespace));
    match of_profile.filter(|_| is_config) {
        Some(quoted) => quoted.trim().trim_matches('"') == wanted,
        None => name == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_read() {
        let text = "[default]\naws_access_key_id = A\n# note\n# off=1\nother=x=y\n\n[profile lab]\nregion=eu-west-1\naws_access_key_id=B\n\
                    [profile \"a b\"]\n[profile  far]\nregion =\n";
        let of = |name: &str, is_config: bool| section(text, name, is_config);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("default", true), Some(vec![pair("aws_access_key_id", "A"), pair("other", "x=y")]));
        assert_eq!(of("lab", true), Some(vec![pair("region", "eu-west-1"), pair("aws_access_key_id", "B")]));
        assert_eq!((of("a b", true), of("far", true)), (Some(Vec::new()), Some(Vec::new())));
        assert_eq!((of("lab", false), of("profile lab", false).map(|found| found.len())), (None, Some(2)));
        assert!(of("nobody", true).is_none());
    }
}
