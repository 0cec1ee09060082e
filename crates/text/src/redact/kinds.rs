//! Random keys of kinds that public lists of secrets name, in lines as people write them. The values
//! are drawn, so that no scanner takes this file for a leak.

use super::Redactor;

/// The kind, its form, and a line with `§` where the key is. In a form, `{h32}` stands for 32 hexadecimal
/// digits, and likewise `H` (in capitals), `d` decimal digits, `a` lower-case letters and digits, `U`
/// upper-case ones, `A` both, `b` base64 of URLs, `B` base64; `{u}` is a UUID.
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

#[test]
fn keys_of_listed_kinds_go() {
    let redactor = Redactor::default();
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let mut left = Vec::new();
    let mut kept_of_all = 0;
    for (kind, form, line) in KINDS {
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
    let all = KINDS.len() * DRAWS;
    println!("found {} of {all} keys of {} kinds", all - kept_of_all, KINDS.len());
    assert!(left.is_empty(), "{left:#?}");
    assert!(kept_of_all * 100 < all, "{kept_of_all} of {all}");
}
