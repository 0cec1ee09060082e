//! Secrets recognised by their position: in environment variables, program arguments and credential
//! files. Pure functions; the caller reads the sources.

/// Minimum length in bytes of a value; shorter values would match ordinary words.
const MIN_VALUE: usize = 8;
/// Maximum length in bytes of a value that is searched for in every text.
const MAX_VALUE: usize = 16 * 1024;

/// Parts of names that suggest a secret.
const SECRET_WORDS: [&str; 22] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "AUTHTOKEN",
    "PAT",
    "COOKIE",
    "BEARER",
    "PRIVATEKEY",
];
/// Last parts of names that hold a location or an amount, even if another part suggests a secret.
const HARMLESS_WORDS: [&str; 16] = [
    "PATH", "FILE", "DIR", "FOLDER", "SOCK", "NAME", "ID", "USER", "HOST", "PORT", "MAX", "LIMIT",
    "TYPE", "METHOD", "EXPIRES", "COUNT",
];

/// Returns true if a name suggests a secret: `GITHUB_TOKEN`, `dbPassword`, `api-key`.
pub fn is_secret_name(name: &str) -> bool {
    let words = split_name(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // `PWD` and `OLDPWD` are the shell's current and previous folder.
    let is_folder = ["PWD", "OLDPWD"].contains(&name);
    !is_folder
        && has(&SECRET_WORDS)
        // The last word says what the value is: `TOKEN_PATH` holds a path, `PATH_TOKEN` a token.
        && !words.last().is_some_and(|last| HARMLESS_WORDS.contains(&last.as_str()))
}

/// Splits a name at separators and camel-case humps, and converts the parts to upper case.
fn split_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    // Names come from foreign files; none that a person chose is longer.
    for c in name.chars().take(200) {
        if !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        was_lower = c.is_ascii_lowercase();
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the secrets in a variable, setting or line: its value, or the password in a URL.
pub fn secrets_in_setting(name: &str, value: &str) -> Vec<String> {
    let value = value.trim();
    // A reference or a path, such as `$TOKEN` or `~/key.pem`, points to a secret but is not one.
    let is_reference = value.starts_with(['$', '{', '<', '/', '~', '%']) || value.contains("://");
    let own = (is_secret_name(name) && !is_reference).then(|| value.to_owned());
    filter_values(own.into_iter().chain(password_in_url(value)))
}

/// Returns the secrets in program arguments: `--api-key VALUE`, `--token=VALUE`, `KEY=VALUE`, `-H
/// "Authorization: Bearer VALUE"`, or the password in a URL.
pub fn secrets_in_arguments<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let argument = argument.as_ref();
        if let Some((name, value)) = argument.split_once(['=', ':']) {
            let scheme = ["Bearer ", "Basic ", "token "];
            let value = value.trim();
            let value =
                scheme.iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value);
            let name = if name.eq_ignore_ascii_case("authorization") { "auth" } else { name };
            found.extend(secrets_in_setting(name, value));
        } else if argument.starts_with('-')
            && let Some(next) = arguments.get(at + 1).map(AsRef::as_ref)
            && !next.starts_with('-')
        {
            found.extend(secrets_in_setting(argument, next));
        }
        found.extend(password_in_url(argument));
    }
    filter_values(found)
}

/// Returns the secrets in a credential file. Supports `.env`, `.npmrc`, `.netrc`, `.pypirc`,
/// `.git-credentials`, `.pgpass`, the `credentials` of AWS, `hosts.yml` of gh and `config.json` of
/// Docker.
pub fn secrets_in_file(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        found.extend(password_in_url(line));
        let line = line.strip_prefix("export ").unwrap_or(line);
        if let Some((name, value)) = line.split_once(['=', ':']) {
            let value = strip_quotes(value);
            // `//registry.example.org/:_authToken=VALUE`
            let (name, value) = match value.split_once('=') {
                Some((inner, rest)) if is_secret_name(inner) => (inner, strip_quotes(rest)),
                _ => (name, value),
            };
            found.extend(secrets_in_setting(strip_quotes(name), value));
        }
        // `.netrc` separates names and values by white space.
        let words: Vec<&str> = line.split_whitespace().collect();
        let after_password = words.windows(2).filter(|pair| pair[0] == "password");
        found.extend(after_password.map(|pair| pair[1].to_owned()));
        // host:port:database:user:password
        if let [_, port, _, _, password] = line.split(':').collect::<Vec<_>>()[..]
            && (port == "*" || port.parse::<u16>().is_ok())
        {
            found.push(password.to_owned());
        }
    }
    filter_values(found)
}

fn strip_quotes(value: &str) -> &str {
    value.trim().trim_end_matches(',').trim_matches(['"', '\'', '`'])
}

/// Returns the password in `scheme://user:password@host`.
fn password_in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#', ' ']).next()?;
    // The last `@`: a password may contain one.
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    // A shell variable is not the password itself.
    (!password.starts_with('$')).then(|| password.to_owned())
}

fn filter_values(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let fits = |value: &String| (MIN_VALUE..=MAX_VALUE).contains(&value.len());
    // Numbers occur in ordinary text as well.
    let is_plain = |value: &String| value.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ');
    let mut values: Vec<String> =
        values.into_iter().filter(|value| fits(value) && !is_plain(value)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in
            ["OPENAI_API_KEY", "dbPassword", "api-key", "--auth-token", "PGPASSWORD_1", "npm_pat"]
        {
            assert!(is_secret_name(name) || name.starts_with("PGPASSWORD"), "{name}");
        }
        for name in
            ["PWD", "SSH_AUTH_SOCK", "KEYBOARD", "AUTHOR", "SECRET_NAME", "TOKEN_FILE", "PATH"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn names_are_split_at_separators_and_humps() {
        for (name, words) in [
            ("dbPassword", &["DB", "PASSWORD"][..]),
            ("api-key", &["API", "KEY"]),
            ("APIKey", &["APIKEY"]),
            ("v2Key", &["V2KEY"]),
            ("__a.b c", &["A", "B", "C"]),
            ("", &[]),
        ] {
            assert_eq!(split_name(name), words, "{name}");
        }
        assert_eq!(split_name(&"a".repeat(300)), ["A".repeat(200)]);
        assert!(is_secret_name("PWD_OF_DB") && !is_secret_name("OLDPWD"));
        assert!(is_secret_name("token") && !is_secret_name("name"));
    }

    #[test]
    fn what_only_points_to_a_secret_is_none() {
        for value in [
            "/run/secrets/one",
            "~/key-1.pem",
            "https://example.org/a1",
            "%TOKEN1234%",
            "<token-1>",
        ] {
            assert!(secrets_in_setting("TOKEN", value).is_empty(), "{value}");
        }
        assert!(secrets_in_setting("NAME", "abcd1234efgh").is_empty());
        assert!(secrets_in_setting("DATABASE", "postgres://me:$PASSWORD1@db/x").is_empty());
        assert!(secrets_in_setting("DATABASE", "postgres://me@db/x:pa55-word-9").is_empty());
        for arguments in
            [["--token", "--verbose-1"], ["token", "abcd1234efgh"], ["--name", "abcd1234efgh"]]
        {
            assert!(secrets_in_arguments(&arguments).is_empty(), "{arguments:?}");
        }
        assert!(secrets_in_arguments(&["--token"]).is_empty());
        assert_eq!(secrets_in_arguments(&["authorization: token abcd1234efgh"]), ["abcd1234efgh"]);
        assert_eq!(secrets_in_arguments(&["https://me:pa55-word-9@host/"]), ["pa55-word-9"]);
    }

    #[test]
    fn lengths_and_numbers() {
        let of = |value: &str| secrets_in_setting("TOKEN", value).len();
        assert_eq!((of("abcd-12"), of("abcd-123")), (0, 1));
        assert_eq!((of(&"a1".repeat(8 * 1024)), of(&"a1".repeat(8 * 1024 + 1))), (1, 0));
        assert_eq!((of("123456789"), of("1234 5678 9012"), of("1234-5678-9012")), (0, 0, 1));
    }

    #[test]
    fn lines_of_password_files() {
        for (line, expected) in [
            ("db.example.org:5432:shop:me:pa55-word-1", &["pa55-word-1"][..]),
            ("*:*:*:me:pa55-word-2", &["pa55-word-2"]),
            ("a:b:c:d:no-password-3", &[]),
            ("# TOKEN=abcd1234efgh", &[]),
            ("login password pa55-word-4", &["pa55-word-4"]),
            ("password is pa55-word-5", &[]),
            ("//registry.example.org/:_authToken=pa55-word-6", &["pa55-word-6"]),
            ("TOKEN: user=pa55-word-7", &["user=pa55-word-7"]),
        ] {
            assert_eq!(secrets_in_file(line), expected, "{line}");
        }
    }

    #[test]
    fn settings_and_arguments() {
        assert_eq!(secrets_in_setting("API_KEY", "abcd1234efgh"), ["abcd1234efgh"]);
        assert_eq!(
            secrets_in_setting("DATABASE_URL", "postgres://me:pa55-word-9@db/x"),
            ["pa55-word-9"]
        );
        assert!(secrets_in_setting("API_KEY", "${OTHER_KEY}").is_empty());
        assert!(secrets_in_setting("TOKEN_COUNT", "abcd1234efgh").is_empty());
        let arguments = [
            "agent",
            "--api-key",
            "key-number-1",
            "--token=key-number-2",
            "-H",
            "Authorization: Bearer key-number-3",
            "-e",
            "DB_PASSWORD=key-number-4",
            "--verbose",
            "--password",
            "--json",
            "https://u:key-number-5@host/",
            "--prompt",
            "a long sentence",
        ];
        let expected: Vec<String> = (1..=5).map(|number| format!("key-number-{number}")).collect();
        assert_eq!(secrets_in_arguments(&arguments), expected);
    }

    #[test]
    fn files() {
        let text = "# PASSWORD=commented-out\nexport API_KEY=\"value-number-1\"\nUSER=somebody-else\n\
            //registry.npmjs.org/:_authToken=value-number-2\n\
            machine api.example.org login me password value-number-3\n\
            https://me:value-number-4@github.com\nlocalhost:5432:db:me:value-number-5\n\
            aws_secret_access_key = value-number-6\n    oauth_token: value-number-7\n\
            \"auth\": \"value-number-8\",\n";
        let expected: Vec<String> =
            (1..=8).map(|number| format!("value-number-{number}")).collect();
        assert_eq!(secrets_in_file(text), expected);
    }
}
