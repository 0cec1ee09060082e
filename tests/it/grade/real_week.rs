//! The weekly report of real sessions, which must read well to a person. The sessions are not part
//! of the project: their words and ids are left out of the snapshot.

use std::fs;
use std::path::Path;

use crate::real_sessions;
use crate::workspace::{Workspace, files};

fn copy(from: &Path, into: &Path) {
    for path in files(from) {
        let copy = into.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&path, &copy).unwrap();
    }
}

#[test]
fn the_report_of_a_real_week_reads_well() {
    let Some(folder) = real_sessions::sessions() else { return };
    let workspace = Workspace::new();
    for agent in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let name = agent.file_name().into_string().unwrap();
        if agent.path().is_dir() && name != "grader-outputs" {
            let into = workspace.path("sessions").join(&name);
            copy(&agent.path(), &into);
        }
    }
    let run = workspace.grade(&["weekly", "--week=2025-W29"]).run().exit(0);
    let page = run.read("docs/reports/weekly/2025-W29.md");
    insta::with_settings!({ filters => vec![
        ("“.*?”", "“[words]”"),
        (r"Met in .*\.", "Met in [ids]."),
        (r"failed calls? in “.*?” \(.*?, event [0-9]+\)", "failed in [id]"),
        (r"(Sessions|Sessions to look at): .*\.", "$1: [ids]."),
    ]}, {
        let _ = run.snapshot_of("grade_real_week", &page);
    });
}
