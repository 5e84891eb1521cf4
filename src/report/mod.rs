//! What a simulated run comes to: figures, bounds, a table, machine forms, one page. Pure: outcomes come in, text goes
//! out; the commands write it. The same outcomes give the same bytes.
//!
//! | file or folder | what it does |
//! |---|---|
//! | [`mod@figures`] | everything that is computed of a run, in one place |
//! | [`bounds`] | what the same jobs would cost at the least |
//! | [`waiting`], [`costs`], [`elasticity`] | its parts, each with its conventions |
//! | [`names`] | the figures by name, label and unit |
//! | [`expectations`] | what a scenario expects, held against them |
//! | [`seeds`] | means over several seeds |
//! | [`mod@table`], [`machine`] | the table for a terminal; CSV and JSON |
//! | [`page`] | one self-contained HTML page; drawn by [`svg`] and [`axis`], thinned out by [`thin`] |
//! | [`words`] | figures as people write them |

pub mod axis;
pub mod bounds;
pub mod costs;
pub mod elasticity;
pub mod expectations;
pub mod figures;
pub mod machine;
pub mod names;
pub mod page;
pub mod seeds;
pub mod svg;
pub mod table;
pub mod thin;
pub mod waiting;
pub mod words;

pub use expectations::{Failure, check_expectations};
pub use figures::{Figures, figures};
pub use machine::{csv, json};
pub use page::{Page, Run, html};
pub use table::{table, tables};

/// To six decimals: a sum's last bits are noise, and text of them would be, too.
fn round(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    // Beyond what a double resolves to six decimals there is nothing to round.
    if rounded.is_finite() { rounded } else { value }
}
