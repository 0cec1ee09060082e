//! Each page as HTML, compared as a whole, and what happens to bad addresses.

use super::demo::{self, GRADED, SCRIPT};
use super::improvement::{HOSTILE, TESTED};
use super::runs::RUN;
use super::site::Site;
use super::skills::DISABLED;

#[test]
fn pages() {
    let site = Site::with(demo::few());
    let case = format!("/selftests/{RUN}/contradiction_detect");
    let pages = [
        ("sessions", "/?sort=quality"),
        ("session", &format!("/sessions/{GRADED}")),
        ("panel", "/sessions/agent%2Frun%207%3Fx%3D%3Cb%3E%26y%23z/panel"),
        ("sessions_open", &format!("/sessions?q=script&session={GRADED}")),
        ("selftests", "/selftests"),
        ("run", &format!("/selftests/{RUN}")),
        ("case", &case),
        ("weekly_list", "/weekly"),
        ("weekly", "/weekly/2026-W47"),
        ("reflections", "/reflections"),
        ("reflections_project", "/reflections?project=web-shop"),
        ("skills", "/skills"),
        ("skill", &format!("/skills/{DISABLED}")),
        ("proposal", &format!("/proposals/{TESTED}")),
        ("proposal_hostile", &format!("/proposals/{HOSTILE}")),
        ("missing", "/sessions/nobody"),
    ];
    insta::with_settings!({
        snapshot_path => "snapshots",
        prepend_module_to_snapshot => false,
        filters => vec![
            (r"/assets/[0-9a-f]{12}/", "/assets/[digest]/"),
            (r#"[^ <>"]*/selftest-site-[^/ <>"]+"#, "[folder]"),
        ],
    }, {
        for (name, path) in pages {
            let (status, html) = site.get(path);
            assert_eq!(status, if name == "missing" { 404 } else { 200 }, "{path}: {html}");
            assert!(!html.contains(SCRIPT), "{path}");
            for inline in [" style=", " onclick=", "<style", "javascript:"] {
                assert!(!html.contains(inline), "{inline} in {path}");
            }
            insta::assert_snapshot!(format!("page_{name}"), html);
        }
    });
}

#[test]
fn what_is_wrong_is_said() {
    let site = Site::with(demo::few());
    for (path, status, words) in [
        ("/?sort=colour", 400, "is not a valid column to sort by"),
        ("/?dir=up", 400, "asc or desc"),
        ("/?min_quality=2", 400, "a number from 0 to 1"),
        ("/?after=zz", 400, "begin at its first page"),
        ("/?completed=maybe", 400, "yes or no"),
        ("/?task_type=fun", 400, "is not a valid task type"),
        ("/selftests/selftest-20000101-0000-none", 404, "there is no report"),
        ("/selftests/..%2F..%2Fconfig", 404, "there is no report"),
        (&format!("/selftests/{RUN}/none"), 404, "has no finished case"),
        ("/weekly/2026-W99", 404, "there is no report"),
        ("/skills/nobody", 404, "there is no skill with the id"),
        ("/skills?after=zz", 400, "begin at its first page"),
        (&format!("/skills/{DISABLED}?after=7b7d"), 400, "begin at its first page"),
        ("/weekly/2026-W47/other.svg", 404, "trend.svg and errors.svg"),
        ("/live/runs/none", 404, "no such run"),
        ("/assets/0/style.css", 404, ""),
        ("/proposals/none", 404, "there is no proposal"),
        ("/proposals/..%2F..%2Fconfig", 404, "there is no proposal"),
        ("/reflections?project=none", 404, "no reflection of"),
        ("/reflections?after=zz", 400, "begin at its first page"),
    ] {
        let (got, html) = site.get(path);
        assert!(got == status && html.contains(words), "{path}: {got}\n{html}");
    }
}

#[test]
fn pictures_are_pictures() {
    let site = Site::with(demo::few());
    for path in [
        "/selftests/trend.svg",
        "/weekly/2026-W47/trend.svg",
        "/weekly/2026-W47/errors.svg",
        "/reflections/trend.svg",
        "/reflections/trend.svg?project=none",
        "/favicon.ico",
    ] {
        let (status, svg) = site.get(path);
        assert!(status == 200 && svg.starts_with("<svg "), "{path}: {status}");
    }
}

#[test]
fn nothing_to_show_is_shown_as_such() {
    let site = Site::with(super::site::Contents::default());
    for (path, words) in [
        ("/", "selftest grade latest"),
        ("/selftests", "<code>selftest</code> starts one"),
        ("/weekly", "selftest grade weekly"),
        ("/reflections", "selftest improve reflect grade"),
        ("/skills", "selftest improve skills record --from-sessions"),
        ("/gaps", "selftest improve gaps detect"),
        ("/?q=x", "No session matches"),
    ] {
        let (status, html) = site.get(path);
        assert!(status == 200 && html.contains(words), "{path}: {status}\n{html}");
    }
}
