//! klamp's metric families, their bounded labels, and the exporter.
