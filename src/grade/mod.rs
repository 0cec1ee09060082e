//! Grades of recorded sessions: by rules (seed 000), and what many grades show together.
//!
//! Pure: sessions and grades come in, grades, patterns and reports go out. Reads no file, no
//! clock and no database.

mod completion;
mod error_class;
pub mod heuristic;
mod level;
pub mod overrides;
pub mod proposal;
mod quality_record;
mod record;
mod response;
mod tally;
mod task_type;
pub mod weights;

pub use error_class::ErrorClass;
pub use level::Level;
pub use overrides::{Field, Override};
pub use quality_record::QualityGrade;
pub use record::{Details, ErrorCount, Evidence, GradeRecord, Point, ToolUse};
pub use task_type::TaskType;
pub use weights::Weights;
