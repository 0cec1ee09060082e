//! Embedded style sheet, script and icon. Their URLs contain their digests, so browsers can cache
//! them forever and still receive updates.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

pub(super) struct StaticAsset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    path: LazyLock<String>,
}

pub(super) static STYLE: StaticAsset = StaticAsset {
    name: "style.css",
    media_type: "text/css; charset=utf-8",
    bytes: include_bytes!("../../assets/style.css"),
    path: LazyLock::new(|| STYLE.address()),
};

pub(super) static SCRIPT: StaticAsset = StaticAsset {
    name: "app.js",
    media_type: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../../assets/app.js"),
    path: LazyLock::new(|| SCRIPT.address()),
};

pub(super) static ICON: StaticAsset = StaticAsset {
    name: "favicon.svg",
    media_type: "image/svg+xml",
    bytes: include_bytes!("../../assets/favicon.svg"),
    path: LazyLock::new(|| ICON.address()),
};

impl StaticAsset {
    fn address(&self) -> String {
        let digest = selftest_text::digest::sha256_hex(self.bytes);
        format!("/assets/{}/{}", &digest[..12], self.name)
    }

    /// Returns the URL path of the asset.
    pub(super) fn path(&'static self) -> &'static str {
        &self.path
    }

    fn response(&self, caching: &'static str) -> Response {
        let headers = [(header::CONTENT_TYPE, self.media_type), (header::CACHE_CONTROL, caching)];
        (headers, self.bytes).into_response()
    }
}

pub(super) async fn file(Path((digest, name)): Path<(String, String)>) -> Response {
    let wanted = format!("/assets/{digest}/{name}");
    match [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path() == wanted) {
        Some(asset) => asset.response("public, max-age=31536000, immutable"),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Serves the icon at its default path, which browsers always request.
pub(super) async fn favicon() -> Response {
    ICON.response("no-cache")
}
