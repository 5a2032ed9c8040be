//! Everything that a run of `fit` was told: the contents of `config.toml`.

use std::path::PathBuf;

use altbi::AltBiConfig;
use serde::Serialize;

/// All settings of `fit`, files by their names.
#[derive(Debug, Clone, Serialize)]
pub struct FitSettings {
    /// X; absent for the demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Its weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<PathBuf>,
    /// W at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_w: Option<PathBuf>,
    /// H at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_h: Option<PathBuf>,
    /// λ at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda_file: Option<PathBuf>,
    /// The divergence's name.
    pub divergence: String,
    /// The penalty's name.
    pub penalty: String,
    /// The rest.
    pub solver: AltBiConfig,
}
