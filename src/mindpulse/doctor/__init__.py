"""The doctor: checks of files, environments and data, each with evidence, cure and next command."""
