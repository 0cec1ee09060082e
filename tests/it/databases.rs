//! Tests that hold on either engine.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
pub(crate) use postgres::{Schema, Server};

/// In a build without PostgreSQL there is none.
#[cfg(not(feature = "postgres"))]
pub(crate) enum Schema {}

#[cfg(not(feature = "postgres"))]
impl Schema {
    pub(crate) fn sql(&self, _: &str) -> Vec<Vec<String>> {
        match *self {}
    }
}

/// Makes each test two: in a project with SQLite, and with PostgreSQL where there is one.
macro_rules! on_each_database {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(crate::workspace::Workspace::new());
            })+
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test]
            fn $test() {
                if let Some(workspace) = crate::workspace::Workspace::on_postgres() {
                    super::$test(workspace);
                }
            })+
        }
    };
}
pub(crate) use on_each_database;
