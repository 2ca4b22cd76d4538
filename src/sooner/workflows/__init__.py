"""Reads and edits CI workflow files (GitHub Actions YAML), keeping comments, quoting, line ends and layout."""
