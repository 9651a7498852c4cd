//! Keys of a role, as the services of instances and of pods give them out.

use std::time::{Duration, SystemTime};

use super::{Answer, Request, State};

/// The name, the secret and the token of keys that were given out.
pub(super) fn keys_of(name: &str) -> [String; 3] {
    [name.to_owned(), format!("{name}/secret+of+it"), format!("{name}/token+of+it==")]
}

/// What the service for instances (of its second version) or for pods says; `None` for everything else.
pub(super) fn give_keys(state: &mut State, request: &Request, lifetime: Duration) -> Option<Answer> {
    const ROLE: &str = "latest/meta-data/iam/security-credentials/";
    let has = |name: &str, value: &str| request.headers.get(name).is_some_and(|sent| sent == value);
    match request.path.as_str() {
        "latest/api/token" if request.method == "PUT" => {
            return Some(Answer::new("200 OK", "a-session-of-the-service"));
        }
        path if path.starts_with(ROLE) && !has("x-aws-ec2-metadata-token", "a-session-of-the-service") => {
            return Some(Answer::new("401 Unauthorized", ""));
        }
        ROLE => return Some(Answer::new("200 OK", "role")),
        "pod-keys" if has("authorization", "a-token-of-the-pod") => {}
        path if path.strip_prefix(ROLE) == Some("role") => {}
        _ => return None,
    }
    let name = format!("ASIAISSUED{:08}", state.issued.len());
    let [_, secret, token] = keys_of(&name);
    let until = SystemTime::now() + lifetime;
    state.issued.push((name.clone(), until));
    let body = format!(
        r#"{{"Code":"Success","AccessKeyId":"{name}","SecretAccessKey":"{secret}","Token":"{token}","Expiration":"{}"}}"#,
        timestamp(until)
    );
    Some(Answer::new("200 OK", body))
}

/// As RFC 3339 has it, in UTC. The date is computed by Howard Hinnant's `civil_from_days`.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (seconds, days) = (since.as_secs() % 86_400, since.as_secs() / 86_400 + 719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}
