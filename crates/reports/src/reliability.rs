//! The reliability chart of a calibration: SVG without scripts or external references. Returns text
//! and opens no files.

use askama::Template;

use selftest_harness::calibration::LabelCalibration;
use selftest_stats::ReliabilityBin;
use selftest_stats::plot::{self, PlotScale, RIGHT};

/// Position of the plot within the 720 × 300 image.
const SHARES: PlotScale = PlotScale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };
/// Left side of the plot.
const LEFT: f64 = 56.0;

#[derive(Template)]
#[template(path = "reliability.svg")]
struct ReliabilityChart<'a> {
    bins: &'a [ReliabilityBin],
    /// Left side and width of the abstain band.
    band: Option<(String, String)>,
    description: String,
}

/// Renders the chart of a calibration.
pub fn render(calibration: &LabelCalibration) -> Result<String, askama::Error> {
    let band = calibration.abstain.filter(|band| band.high > band.low).map(|band| {
        let (left, right) = (position(band.low), position(band.high));
        (plot::number(left), plot::number(right - left))
    });
    let titles: Vec<String> = calibration.reliability.iter().map(title).collect();
    let description = format!("{} labels. {}.", calibration.labels, titles.join(". "));
    let picture = ReliabilityChart { bins: &calibration.reliability, band, description };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn position(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share.clamp(0.0, 1.0)
}

fn across(share: f64) -> String {
    plot::number(position(share))
}

fn height(share: f64) -> String {
    plot::number(SHARES.y(share))
}

fn title(bin: &ReliabilityBin) -> String {
    let answers = selftest_text::wording::plural(bin.count, "answer");
    format!("{answers} predicted {:.2}, good {:.2}", bin.forecast, bin.observed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_harness::fixtures::calibrated;

    #[test]
    fn picture() {
        let svg = render(&calibrated(110, 10)).unwrap();
        for forbidden in ["<script", "href", "url(", "<image", "<foreignObject", "@import"] {
            assert!(!svg.contains(forbidden), "{forbidden}");
        }
        insta::assert_snapshot!(svg);
    }
}
