"""The command line: one module per command, loaded when it is called.

group    the commands and their lazy loading, errors to exit codes
options  arguments that several commands share
output   where text, JSON and progress go
analyze probe query export report compare watch demo   the commands
"""

from mindpulse.cli.group import main

__all__ = ["main"]
