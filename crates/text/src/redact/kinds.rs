//! Random keys of kinds that public lists of secrets name, in lines as people write them. The values
//! are drawn, so that no scanner takes this file for a leak.

use super::Redactor;

/// The kind, its form, and a line with `§` where the key is. In a form, `{h32}` stands for 32 hexadecimal
/// digits, and likewise `H` (in capitals), `d` decimal digits, `a` lower-case letters and digits, `U`
/// upper-case ones, `A` both, `b` base64 of URLs, `B` base64, `t` and `q` base32; `{u}` is a UUID.
const KINDS: &[(&str, &str, &str)] = &[
    ("ably", "{A6}.{A6}:{b43}", "const live = new Ably.Realtime(\"§\");"),
    ("ado.net", "{A12}!9x", "Server=db;User Id=sa;Password=§;Encrypt=true"),
    ("alchemy", "alcht_{A30}", "see https://eth-mainnet.g.alchemy.com/v2/§"),
    ("anyscale", "esecret_{A26}", "ray up with § and wait"),
    ("apify", "apify_api_{A36}", "use § for the demo"),
    ("asana", "2/12{d14}/12{d14}:{h32}", "use § for the demo"),
    ("axiom", "xaat-{u}", "axiom ingest § done"),
    ("baidu", "bce-v3/ALTAK-{A21}/{h40}", "use § for the demo"),
    ("bip32", "xprv9s21ZrQH143K{A96}", "the wallet is §\n"),
    ("cartesia", "sk_car_{A22}", "use § for the demo"),
    ("checkout.com", "sk_sbox_{a27}", "use § for the demo"),
    ("chromatic", "chpt_{h13}", "npx chromatic with §"),
    ("clickup", "pk_{d8}_{U32}", "use § for the demo"),
    ("cockroach", "CCDB1_{A22}_{A40}", "use § for the demo"),
    ("cookie", "{A32}", "Cookie: sessionid=§; theme=dark"),
    ("datadog", "{h32}", "DD_API_KEY=§ datadog-agent run"),
    ("deepl", "{u}:fx", "DEEPL_AUTH_KEY=§\n"),
    ("docker", "{B40}", r#"{"auths": {"registry.example.org": {"auth": "§"}}}"#),
    ("dropbox", "sl.u.{b130}", "use § for the demo"),
    ("elastic", "{B58}==", "Authorization: ApiKey §"),
    ("fal", "{u}:{h32}", "FAL_KEY=§\n"),
    ("feishu", "{u}", "https://open.feishu.cn/open-apis/bot/v2/hook/§"),
    ("friendli", "flp_{A46}", "use § for the demo"),
    ("godaddy", "{A12}_{A22}:{A22}", "Authorization: sso-key §"),
    ("hetzner", "{A64}", "HCLOUD_TOKEN=§ hcloud server list"),
    ("jenkins", "11{h32}", "JENKINS_API_TOKEN: §\n"),
    ("jsr", "jsrp_{A35}", "use § for the demo"),
    ("jwk", "{b43}", r#"{"kty":"EC","crv":"P-256","d":"§","use":"sig"}"#),
    ("klaviyo", "pk_{h34}", "Authorization: Klaviyo-API-Key §"),
    ("linkedin", "WPL_AP1.{A16}.{A6}==", "use § for the demo"),
    ("luma", "luma-{u}-{u}", "use § for the demo"),
    ("mem0", "m0-{A40}", "use § for the demo"),
    ("midtrans", "SB-Mid-server-{b24}", "use § for the demo"),
    ("mollie", "live_{A30}", "use § for the demo"),
    ("murf", "ap2_{u}", "use § for the demo"),
    ("mysql", "{A14}7", "mysql -u root -p§ shop"),
    ("netrc", "{A15}7", "machine api.example.org login me password §\n"),
    ("okta", "00{b40}", "Authorization: SSWS §"),
    ("opsgenie", "{u}", "Authorization: GenieKey §"),
    ("pagerduty", "u+{A18}", "Authorization: Token token=§"),
    ("pgpassword", "{A14}7", "PGPASSWORD=§ psql -h db"),
    ("rapidapi", "{h10}msh{h15}p1{h5}jsn{h12}", "'x-rapidapi-key': '§',"),
    ("rollbar", "{h32}", "ROLLBAR_ACCESS_TOKEN=§\n"),
    ("runway", "key_{h128}", "use § for the demo"),
    ("salesforce", "00D{A12}!AQ{A94}", "use § for the demo"),
    ("set-cookie", "s%3A{A32}.{A43}", "Set-Cookie: connect.sid=§; Path=/; HttpOnly"),
    ("socket", "sktsec_{b40}_api", "use § for the demo"),
    ("splunk", "{u}", "Authorization: Splunk §"),
    ("sshpass", "{A13}7", "sshpass -p '§' ssh root@example.org"),
    ("stytch", "secret-live-{b36}=", "use § for the demo"),
    ("subscription", "{h32}", "Ocp-Apim-Subscription-Key: §"),
    ("twitter", "AAAAAAAAAAAAAAAAAAAAA{A10}AAAAAA%2B{A30}%3D{A40}", "use § for the demo"),
    ("upcloud", "ucat_{U26}", "use § for the demo"),
    ("vault", "s.{A24}", "X-Vault-Token: §"),
    ("vultr", "{U36}", "VULTR_API_KEY: §\n"),
    ("wakatime", "waka_{u}", "use § for the demo"),
    ("wecom", "{u}", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=§"),
    ("wireguard", "{B43}=", "[Interface]\nPrivateKey = §\nAddress = 10.0.0.2/32"),
    ("xata", "xau_{A40}", "use § for the demo"),
    ("xendit", "xnd_development_{A48}", "use § for the demo"),
    ("zhipu", "{h32}.{A16}", "ZHIPUAI_API_KEY=§\n"),
    ("zoho", "1000.{h32}.{h32}", "use § for the demo"),
];

/// Further kinds, written down from memory of public lists before any of them was tried, each where it
/// is usually found: files of settings, JSON, YAML, addresses, command lines, headers, code. Before rules
/// were added, 1,447 of 1,660 keys were found, and twelve kinds stayed.
const FURTHER_KINDS: &[(&str, &str, &str)] = &[
    ("1password", "ops_eyJ{A250}", "the service account got § today"),
    (
        "1password-key",
        "A3-{U6}-{U11}-{U5}-{U5}-{U5}",
        "op signin my.1password.com me@example.org §",
    ),
    ("adyen", "AQE{B60}-{B44}=-{A16}", "X-API-Key: §\nContent-Type: application/json"),
    ("age", "AGE-SECRET-KEY-1{q58}", "# public key: age1q\n§\n"),
    ("airtable", "pat{A14}.{h64}", "fetch('/v0/meta', { key: '§' })"),
    ("artifactory", "AKCp{A69}", "curl -H 'X-JFrog-Art-Api: §' -T a.jar https://repo.example.org/"),
    ("azure-ad", "{A3}8Q~{b34}", "az login --service-principal -u app -p § --tenant t"),
    ("azure-cosmos", "{B86}==", "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=§;"),
    ("azure-devops", "{a52}", "AZURE_DEVOPS_EXT_PAT=§ az devops login"),
    ("azure-sas", "{A42}%3D", "https://x.blob.core.windows.net/c?sv=2022-11-02&sr=c&sig=§&se=2027"),
    ("bedrock", "ABSK{B120}", "export AWS_BEARER_TOKEN_BEDROCK=§\n"),
    ("binance", "{A64}", "X-MBX-APIKEY: §\n"),
    ("bitwarden", "{B86}==", "export BW_SESSION=\"§\""),
    ("brevo", "xkeysib-{h64}-{A16}", r#"{"mail": {"value": "§"}}"#),
    ("clojars", "CLOJARS_{a60}", "lein deploy with §"),
    ("codecov", "{u}", "      CODECOV_TOKEN: §\n"),
    ("cohere", "{A40}", "co = cohere.Client(\"§\")"),
    ("contentful", "CFPAT-{b43}", "contentful login --management-token §"),
    ("databricks", "dapi{h32}", "[DEFAULT]\nhost = https://x.cloud.databricks.com\ntoken = §\n"),
    ("digitalocean", "dop_v1_{h64}", "doctl auth init -t §"),
    ("discord-webhook", "{b68}", "https://discord.com/api/webhooks/118547921099590712/§"),
    ("django", "django-insecure-{b50}", "SECRET_KEY = '§'"),
    ("doppler", "dp.pt.{A43}", "doppler run -- with §"),
    ("drone", "{A32}", "export DRONE_TOKEN=§\n"),
    ("duffel", "duffel_live_{b43}", "Duffel({ token: \"§\" })"),
    ("dynatrace", "dt0c01.{U24}.{U64}", "Authorization: Api-Token §"),
    ("e2b", "e2b_{h40}", "sandbox with § is up"),
    ("easypost", "EZAK{h54}", "curl -u \"§:\" https://api.easypost.com/v2/addresses"),
    ("expo", "{b40}", "EXPO_TOKEN=§ eas build"),
    ("facebook", "EAA{A150}", "https://graph.facebook.com/v19.0/me?fields=id&access_token=§"),
    ("fastly", "{b32}", "curl -H \"Fastly-Key: §\" https://api.fastly.com/service"),
    ("firecrawl", "fc-{h32}", "FirecrawlApp(\"§\")"),
    ("flutterwave", "FLWSECK-{h32}-X", "use § for the demo"),
    ("fly", "fm2_{B120}", "flyctl deploy --access-token \"FlyV1 §\""),
    ("google-access", "ya29.{b140}", "$ gcloud auth print-access-token\n§\n"),
    ("google-refresh", "1//0{b60}", "creds = Credentials(None, \"§\")"),
    ("google-secret", "GOCSPX-{b28}", "the client secret is §, keep it"),
    ("grafana", "glsa_{A32}_{h8}", r#"{"datasource": {"auth": "§"}}"#),
    ("kubeadm", "{a6}.{a16}", "kubeadm join 10.0.0.1:6443 --token §"),
    ("kubeconfig", "LS0tLS1CRUdJTi{B200}", "    client-key-data: §\n"),
    ("laravel", "{B43}=", "APP_NAME=shop\nAPP_KEY=base64:§\nAPP_DEBUG=false"),
    ("launchdarkly", "sdk-{h8}-{h4}-4{h3}-{h4}-{h12}", "LDClient(\"§\", options)"),
    ("linear", "lin_api_{A40}", "use § for the demo"),
    ("linode", "{h64}", "LINODE_TOKEN=§ linode-cli linodes list"),
    ("mailchimp", "{h32}-us12", "mailchimp.setConfig({ apiKey: '§', server: 'us12' })"),
    ("mailgun", "key-{h32}", "curl -s --user 'api:§' https://api.mailgun.net/v3/x/messages"),
    ("mapbox", "sk.eyJ1{A60}.{b22}", "mapboxgl.config = '§'"),
    (
        "maven",
        "{A16}9",
        "<server><id>repo</id><username>ci</username><password>§</password></server>",
    ),
    ("nats", "SUA{t55}", "nats --nkey § sub '>'"),
    ("netlify", "nfp_{A36}", "netlify deploy --prod --auth §"),
    ("newrelic", "NRAK-{U27}", "newrelic profile add --apiKey §"),
    ("newrelic-license", "{h36}NRAL", "common:\n  license: §\n"),
    ("notion", "ntn_{d11}{A35}", "new Client({ auth: \"§\" })"),
    ("openssl", "{A15}7", "openssl rsa -in key.pem -passin pass:§ -out plain.pem"),
    ("pgpass", "{A15}7", "db.example.org:5432:shop:me:§\n"),
    ("plaid", "access-production-{u}", "item linked as §"),
    ("planetscale", "pscale_tkn_{b43}", "pscale auth with §"),
    ("portainer", "ptr_{B43}=", "curl -H 'X-API-Key: §' https://portainer:9443/api/stacks"),
    ("pulumi", "pul-{h40}", "pulumi login, then §"),
    ("pypi", "pypi-AgEIcHlwaS5vcmc{b150}", "twine upload -u __token__ -p § dist/*"),
    ("rails", "{h128}", "production:\n  secret_key_base: §\n"),
    ("readme", "rdme_xn8s9h{a65}", "npx rdme openapi --key=§"),
    ("redis-cli", "{A15}7", "redis-cli -h cache.example.org -a § ping"),
    ("redis-url", "{A24}", "REDIS=redis://:§@cache.example.org:6379/0"),
    ("restic", "{A15}7", "RESTIC_PASSWORD=§ restic backup /srv"),
    ("rubygems", "rubygems_{h48}", ":rubygems_key: §\n"),
    ("sendgrid", "SG.{b22}.{b43}", "sgMail.set('§')"),
    ("sentry", "sntrys_eyJpYXQiO{B60}_{B43}", "sentry-cli --auth § releases list"),
    ("shippo", "shippo_live_{h40}", "Authorization: ShippoToken §"),
    ("shopify", "shpat_{h32}", "X-Shopify-Access-Token: §"),
    ("slack-webhook", "{A24}", "https://hooks.slack.com/services/T0A1B2C3D4E/B0A1B2C3D4E/§"),
    ("snyk", "{u}", "snyk auth §"),
    ("sonar", "sqp_{h40}", "sonar-scanner -Dsonar.projectKey=x -Dsonar.login=§"),
    ("sourcegraph", "sgp_{h16}_{h40}", "src login https://sourcegraph.example.org with §"),
    ("spotify", "{h32}", "SPOTIPY_CLIENT_SECRET='§'"),
    ("square", "sq0csp-{b43}", "use § for the demo"),
    (
        "teams-webhook",
        "{h32}",
        "https://x.webhook.office.com/webhookb2/0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f@0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f/IncomingWebhook/§/0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f",
    ),
    ("terraform", "{A14}.atlasv1.{A67}", "credentials \"app.terraform.io\" {\n  token = \"§\"\n}"),
    ("twilio", "{h32}", "curl -u AC0123456789abcdef0123456789abcdef:§ https://api.twilio.com/"),
    ("twitch", "oauth:{a30}", "PASS §\nNICK bot\n"),
    ("typeform", "tfp_{b44}_{A14}", "use § for the demo"),
    ("vault", "hvs.{b90}", "vault login §"),
    (
        "zendesk",
        "{A40}",
        "curl -u me@example.org/token:§ https://x.zendesk.com/api/v2/tickets.json",
    ),
];

/// Draws characters, the same for the same seed.
struct Draw(u64);

impl Draw {
    fn of(&mut self, alphabet: &str, count: usize) -> String {
        let alphabet = alphabet.as_bytes();
        let mut one = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            char::from(alphabet[usize::try_from(self.0 >> 33).unwrap() % alphabet.len()])
        };
        (0..count).map(|_| one()).collect()
    }

    fn key(&mut self, form: &str) -> String {
        const DIGITS: &str = "0123456789";
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        let upper = LOWER.to_ascii_uppercase();
        let mut key = String::new();
        let mut rest = form;
        while let Some((before, behind)) = rest.split_once('{') {
            let (slot, after) = behind.split_once('}').unwrap();
            key += before;
            rest = after;
            if slot == "u" {
                let parts = [8, 4, 4, 4, 12].map(|count| self.of("0123456789abcdef", count));
                key += &parts.join("-");
                continue;
            }
            let (kind, count) = slot.split_at(1);
            let alphabet = match kind {
                "h" => "0123456789abcdef".to_owned(),
                "H" => "0123456789ABCDEF".to_owned(),
                "d" => DIGITS.to_owned(),
                "a" => format!("{DIGITS}{LOWER}"),
                "U" => format!("{DIGITS}{upper}"),
                "A" => format!("{DIGITS}{LOWER}{upper}"),
                "b" => format!("{DIGITS}{LOWER}{upper}_-"),
                "B" => format!("{DIGITS}{LOWER}{upper}+/"),
                // Base32, as in RFC 4648 and in Bech32.
                "t" => format!("{upper}234567"),
                "q" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
                _ => panic!("{form}"),
            };
            key += &self.of(&alphabet, count.parse().unwrap());
        }
        key + rest
    }
}

/// Draws of each kind, and the most that may stay: a value without two digits passes for words.
const DRAWS: usize = 20;
const MOST_KEPT: usize = 2;

/// Draws keys of each kind; returns how many stayed, and the kinds of which more than a few did.
fn kept(kinds: &[(&str, &str, &str)]) -> (usize, Vec<String>) {
    let redactor = Redactor::default();
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let mut left = Vec::new();
    let mut kept_of_all = 0;
    for (kind, form, line) in kinds {
        let mut kept = 0;
        let mut example = String::new();
        for _ in 0..DRAWS {
            let key = draw.key(form);
            let text = line.replace('§', &key);
            let redacted = redactor.apply(&text);
            // The secret part of `name.secret` is what counts, and the last of it.
            if redacted.contains(&key[key.len() / 2..]) {
                kept += 1;
                example = text;
            } else {
                assert_eq!(redactor.apply(&redacted), redacted, "twice: {kind}");
            }
        }
        kept_of_all += kept;
        if kept > MOST_KEPT {
            left.push(format!("{kind}, {kept} of {DRAWS}: {example}"));
        }
    }
    let all = kinds.len() * DRAWS;
    println!("found {} of {all} keys of {} kinds", all - kept_of_all, kinds.len());
    (kept_of_all, left)
}

#[test]
fn keys_of_listed_kinds_go() {
    for kinds in [KINDS, FURTHER_KINDS] {
        let (kept, left) = kept(kinds);
        assert!(left.is_empty(), "{left:#?}");
        assert!(kept * 100 < kinds.len() * DRAWS, "{kept}");
    }
}
